//! The three loops that turn sources into URLs, URLs into documents, and
//! documents into deliveries, and the one that removes what has expired. Each loop
//! gathers values, calls a pure policy and stores the result; they share state only
//! through the store, so any number of machines can run them.

mod deliver;
mod fetch;
mod maintenance;
mod metrics;
mod near_duplicates;
mod politeness;
mod poll;
mod rng;
mod sources;
mod stored_document;

pub use deliver::{DeliverOptions, Deliverer, SinkTally};
pub use fetch::{FetchOptions, PageArchive, RetryPolicy, StageTimes, Tally, Worker};
pub use maintenance::{Maintenance, Retention};
pub use metrics::LoopMetrics;
pub use near_duplicates::{NearDuplicateStory, near_duplicates};
pub use politeness::{FetchContext, StoreRobotsCache};
pub use poll::{
    CollectError, CollectOptions, Collected, CollectedSource, LIMITED, MANY_FAILURES, PollOptions,
    PollOutcome, PollReport, PollTask, PolledSource, Poller, RunTask, SeenItem, SourceCheck,
    StartedPoll, environment,
};
pub use sources::{
    Applied, ArticleSelectors, IngestionMode, ListFormat, ListReport, ListRow, PollPolicy, Preset,
    ProbedCandidate, Recrawl, RegistryError, Retries, SelectorSettings, SettingsError, SourceDraft,
    SourceFileError, SourceSettings, StarterReport, Undated, add_source, add_starter_sources,
    apply, change_source, discover, follow_preset, import_list, list_end, list_start, read_list,
    read_sources, write_row,
};
pub use stored_document::stored_document;
