//! The status of a running process: one line that is redrawn on a terminal, a log
//! line per interval anywhere else, or JSON. In a demo the ledger comes with it.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;
use tidings_engine::{Tally, Worker};
use tidings_store::{Stats, Store};
use tracing::info;

use crate::demo::Demo;
use crate::output;
use crate::roles::Roles;

const TERMINAL_INTERVAL: Duration = Duration::from_secs(1);
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Counts of the frontier, and the work of this process.
#[derive(Debug, Serialize)]
pub(crate) struct RunStatus {
    /// All URLs of the frontier.
    pub(crate) discovered: i64,
    /// Pending, or waiting for a retry.
    pub(crate) queued: i64,
    pub(crate) fetching: i64,
    pub(crate) fetched: i64,
    pub(crate) dead: i64,
    /// How long the oldest overdue URL has been due.
    pub(crate) oldest_overdue_seconds: u64,
    /// Responses per second of this process, since the last report.
    pub(crate) pages_per_second: f64,
    /// Outcomes of this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) work: Option<Tally>,
}

/// Reports the status while the loops run.
pub(crate) struct StatusReporter<'a> {
    store: Store,
    worker: Option<Arc<Worker>>,
    demo: Option<&'a Demo<'a>>,
    json: bool,
    is_terminal: bool,
}

impl<'a> StatusReporter<'a> {
    pub(crate) fn new(store: &Store, worker: Option<Arc<Worker>>, json: bool) -> Self {
        Self {
            store: store.clone(),
            worker,
            demo: None,
            json,
            is_terminal: io::stderr().is_terminal() && !json,
        }
    }

    /// With the ledger of a demo.
    pub(crate) fn with_demo(self, demo: &'a Demo<'a>) -> Self {
        Self {
            demo: Some(demo),
            ..self
        }
    }

    /// Runs the loops, reports their status meanwhile, and once more at the end.
    pub(crate) async fn run(
        &self,
        roles: &Roles,
        stop: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let started = Instant::now();
        let loops = roles.run(stop, |_| {});
        tokio::select! {
            ended = loops => ended?,
            () = self.report_periodically() => {}
        }
        self.clear();
        let status = self.read_status(0, started.elapsed()).await?;
        if self.json {
            return output::json(&status);
        }
        output::line(&status.line())
    }

    async fn report_periodically(&self) {
        let interval = if self.is_terminal {
            TERMINAL_INTERVAL
        } else {
            LOG_INTERVAL
        };
        let mut before = self.responses();
        loop {
            tokio::time::sleep(interval).await;
            // The loops report a store that is unavailable.
            let Ok(status) = self.read_status(before, interval).await else {
                continue;
            };
            before = self.responses();
            let ledger = match self.demo {
                Some(demo) => demo.read_ledger().await.ok(),
                None => None,
            };
            if self.is_terminal {
                let line = ledger.map_or_else(|| status.line(), |totals| totals.to_string());
                self.redraw(&line);
            } else if self.json {
                // A closed pipe ends the program; other errors of the output are ignored.
                let _ = output::json(&status);
                let _ = ledger.map(|totals| output::json(&json!({ "ledger": totals })));
            } else {
                info!(
                    urls = status.discovered,
                    queued = status.queued,
                    fetching = status.fetching,
                    fetched = status.fetched,
                    failed_or_redirected = status.dead,
                    pages_per_second = status.pages_per_second,
                    oldest_overdue_seconds = status.oldest_overdue_seconds,
                    "run status"
                );
                if let Some(totals) = ledger {
                    info!("{totals}");
                }
            }
        }
    }

    fn responses(&self) -> u64 {
        let worker = self.worker.as_ref();
        worker.map_or(0, |worker| worker.tally().answered())
    }

    async fn read_status(&self, before: u64, passed: Duration) -> anyhow::Result<RunStatus> {
        let Stats { by_status, .. } = self.store.stats().await?;
        let count = |status: &str| by_status.get(status).copied().unwrap_or(0);
        let overdue = self.store.longest_overdue().await?;
        let responses = self.responses().saturating_sub(before);
        Ok(RunStatus {
            discovered: by_status.values().sum(),
            queued: count("pending") + count("failed"),
            fetching: count("fetching"),
            fetched: count("fetched"),
            dead: count("dead"),
            oldest_overdue_seconds: overdue.unwrap_or_default().as_secs(),
            pages_per_second: responses as f64 / passed.as_secs_f64().max(0.001),
            work: self.worker.as_ref().map(|worker| worker.tally()),
        })
    }

    fn redraw(&self, text: &str) {
        let columns = terminal_width();
        let text: String = text.chars().take(columns.saturating_sub(1)).collect();
        // A terminal that can't be written is no reason to stop.
        let _ = write!(io::stderr(), "\r\x1b[K{text}").and_then(|()| io::stderr().flush());
    }

    fn clear(&self) {
        if self.is_terminal {
            self.redraw("");
        }
    }
}

/// The width that the terminal reports, else 120 columns.
fn terminal_width() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => 120,
    }
}

impl RunStatus {
    pub(crate) fn line(&self) -> String {
        let mut parts = vec![
            format!("{} URLs", self.discovered),
            format!("{} queued", self.queued),
            format!("{} fetching", self.fetching),
            format!("{} fetched", self.fetched),
        ];
        if let Some(work) = &self.work {
            parts.push(format!("{} documents", work.documents));
        }
        parts.push(format!("{:.0}/s", self.pages_per_second));
        if self.oldest_overdue_seconds > 0 {
            parts.push(format!("oldest overdue {} s", self.oldest_overdue_seconds));
        }
        if self.dead > 0 {
            parts.push(format!(
                "{} failed or redirected{}",
                self.dead,
                self.reasons()
            ));
        }
        parts.join(" · ")
    }

    /// The most frequent reasons in this process, in brackets.
    fn reasons(&self) -> String {
        let Some(work) = &self.work else {
            return String::new();
        };
        let mut reasons: Vec<_> = work.dead.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let mut words: Vec<_> = reasons
            .iter()
            .take(4)
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        if work.failed > 0 {
            words.push(format!("{} to be retried", work.failed));
        }
        match words.is_empty() {
            true => String::new(),
            false => format!(" ({})", words.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_has_the_counts_and_reasons() {
        let mut work = Tally {
            documents: 7,
            failed: 1,
            ..Tally::default()
        };
        work.dead.insert("gone".to_owned(), 2);
        work.dead.insert("not_found".to_owned(), 3);
        let status = RunStatus {
            discovered: 20,
            queued: 4,
            fetching: 1,
            fetched: 10,
            dead: 5,
            oldest_overdue_seconds: 12,
            pages_per_second: 3.4,
            work: Some(work),
        };
        assert_eq!(
            status.line(),
            "20 URLs · 4 queued · 1 fetching · 10 fetched · 7 documents · 3/s · oldest overdue 12 s · 5 failed or redirected (3 not_found, 2 gone, 1 to be retried)"
        );
    }
}
