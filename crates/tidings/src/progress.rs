//! Progress of long work: one line on a terminal that renews itself, nothing
//! anywhere else.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(200);

/// Counts what is done and shows it now and then.
#[derive(Debug)]
pub(crate) struct Progress {
    what: String,
    done: u64,
    total: Option<u64>,
    since: Instant,
    shown: Option<Instant>,
    is_shown: bool,
}

impl Progress {
    pub(crate) fn new(what: &str, total: Option<u64>) -> Self {
        Self {
            what: what.to_owned(),
            done: 0,
            total,
            since: Instant::now(),
            shown: None,
            is_shown: io::stderr().is_terminal(),
        }
    }

    pub(crate) fn advance(&mut self, by: u64) {
        self.done += by;
        let due = self.shown.is_none_or(|shown| shown.elapsed() >= EVERY);
        if self.is_shown && due {
            self.shown = Some(Instant::now());
            self.write(&self.line());
        }
    }

    /// Clears the line; results follow.
    pub(crate) fn finish(self) {
        if self.shown.is_some() {
            self.write("");
        }
    }

    fn line(&self) -> String {
        let rate = self.done as f64 / self.since.elapsed().as_secs_f64().max(0.001);
        let of = self
            .total
            .map(|total| format!(" of {total}"))
            .unwrap_or_default();
        format!("{}{of} {}, {rate:.0}/s", self.done, self.what)
    }

    fn write(&self, text: &str) {
        // Progress that can't be shown is no reason to stop.
        let _ = write!(io::stderr(), "\r\x1b[K{text}").and_then(|()| io::stderr().flush());
    }
}
