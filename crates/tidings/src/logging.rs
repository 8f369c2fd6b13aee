//! Structured logs on standard error: one line per event, as text or as JSON.
//! Standard output belongs to results.

use std::io::{self, IsTerminal as _};

use tracing::level_filters::LevelFilter;

use crate::config::{LogConfig, LogFormat};

pub(crate) fn start(config: &LogConfig) {
    let level = LevelFilter::from_level(config.level);
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr);
    match config.format {
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .init(),
        LogFormat::Pretty => builder
            .with_ansi(io::stderr().is_terminal())
            .with_target(false)
            .init(),
    }
}
