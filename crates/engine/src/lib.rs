//! The loops: what turns sources into URLs and URLs into documents. Each loop
//! gathers, asks a pure function what to do, and stores the answer; they meet
//! only in the store, so any number of machines can run them.

mod apply;
mod chance;
mod deliver;
mod discover;
mod lists;
mod manners;
mod memory;
mod outside;
mod poll;
mod registry;
mod robots_cache;
mod seeds;
mod selectors;
mod settings;
mod tellings;
mod way;
mod work;

pub use apply::{Applied, SourceFileError, apply, read_sources};
pub use deliver::{DeliverOptions, Deliverer, SinkTally};
pub use discover::{ProbedCandidate, discover};
pub use lists::{
    ListFormat, ListReport, ListRow, import_list, list_end, list_start, read_list, write_row,
};
pub use outside::FetchContext;
pub use poll::{
    CollectError, CollectOptions, Collected, CollectedSource, PollOptions, PollOutcome, PollReport,
    PolledSource, Poller, SeenItem, SourceCheck, environment,
};
pub use registry::{RegistryError, SourceDraft, add_source, change_source};
pub use robots_cache::StoreRobotsCache;
pub use seeds::{StarterReport, seed};
pub use selectors::{ArticleSelectors, SelectorSettings};
pub use settings::{IngestionMode, PollPolicy, Recrawl, SettingsError, SourceSettings};
pub use tellings::{NearDuplicateStory, near_duplicates};
pub use work::{FetchOptions, PageArchive, StageTimes, Tally, Worker, stored_document};
