//! Sources: their settings, the registry that keeps rows and feeds in step, and
//! the ways sources are added (lists, a TOML file, the starter list, discovery).

mod apply;
mod discover;
mod lists;
mod presets;
mod registry;
mod selectors;
mod settings;
mod starter;

pub use apply::{Applied, SourceFileError, apply, read_sources};
pub use discover::{ProbedCandidate, discover};
pub use lists::{
    ListFormat, ListReport, ListRow, import_list, list_end, list_start, read_list, write_row,
};
pub use presets::{Preset, follow_preset};
pub use registry::{RegistryError, SourceDraft, add_source, change_source};
pub use selectors::{ArticleSelectors, SelectorSettings};
pub use settings::{
    IngestionMode, PollPolicy, Recrawl, Retries, SettingsError, SourceSettings, Undated,
};
pub use starter::{StarterReport, add_starter_sources};

pub(crate) use discover::{SiteProbe, search_site};
pub(crate) use settings::{ITEM_PARAM, LISTING, SITE, priority, target};
