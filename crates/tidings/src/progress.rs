//! Progress of long work: one line that is redrawn on a terminal, nothing
//! anywhere else.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// Counts completed units and redraws the line at most once per interval.
#[derive(Debug)]
pub(crate) struct Progress {
    what: String,
    done: u64,
    total: Option<u64>,
    started_at: Instant,
    drawn_at: Option<Instant>,
    is_terminal: bool,
}

impl Progress {
    pub(crate) fn new(what: &str, total: Option<u64>) -> Self {
        Self {
            what: what.to_owned(),
            done: 0,
            total,
            started_at: Instant::now(),
            drawn_at: None,
            is_terminal: io::stderr().is_terminal(),
        }
    }

    pub(crate) fn advance(&mut self, by: u64) {
        self.done += by;
        let is_due = self
            .drawn_at
            .is_none_or(|drawn_at| drawn_at.elapsed() >= REDRAW_INTERVAL);
        if self.is_terminal && is_due {
            self.drawn_at = Some(Instant::now());
            self.write(&self.line());
        }
    }

    /// Clears the line; results follow.
    pub(crate) fn finish(self) {
        if self.drawn_at.is_some() {
            self.write("");
        }
    }

    fn line(&self) -> String {
        let rate = self.done as f64 / self.started_at.elapsed().as_secs_f64().max(0.001);
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
