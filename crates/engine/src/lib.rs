//! The loops: what turns sources into URLs and URLs into documents. Each loop
//! gathers, asks a pure function what to do, and stores the answer; they meet
//! only in the store, so any number of machines can run them.

mod discover;
mod memory;
mod outside;
mod poll;
mod registry;
mod settings;

pub use discover::{Tried, discover};
pub use outside::Outside;
pub use poll::{PollEnded, PollOptions, PollOutcome, Poller};
pub use registry::{RegistryError, SourceDraft, add_source, change_source};
pub use settings::{IngestionMode, PollPolicy, SettingsError, SourceSettings};
