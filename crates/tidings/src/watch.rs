//! What people see while the loops run: one line that renews itself on a
//! terminal, a line of the log now and then anywhere else, JSON for programs. In
//! a demo that line is the ledger.

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

/// How often it is told anew on a terminal, and how often elsewhere.
const ON_A_TERMINAL: Duration = Duration::from_secs(1);
const ELSEWHERE: Duration = Duration::from_secs(10);

/// How things stand.
#[derive(Debug, Serialize)]
pub(crate) struct Standing {
    /// URLs that were ever found.
    pub(crate) discovered: i64,
    /// Waiting for their turn, or for another try.
    pub(crate) queued: i64,
    pub(crate) fetching: i64,
    pub(crate) fetched: i64,
    pub(crate) dead: i64,
    /// Seconds that the URL that should have been fetched first is late.
    pub(crate) oldest_waits_seconds: u64,
    /// Pages a second of this process, since the last time.
    pub(crate) pages_per_second: f64,
    /// What this process did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) work: Option<Tally>,
}

pub(crate) struct Watch<'a> {
    store: Store,
    worker: Option<Arc<Worker>>,
    demo: Option<&'a Demo<'a>>,
    json: bool,
    is_terminal: bool,
}

impl<'a> Watch<'a> {
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

    /// Runs the loops, tells how they stand meanwhile, and sums up.
    pub(crate) async fn during(
        &self,
        roles: &Roles,
        stop: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let started = Instant::now();
        let loops = roles.run(stop, |_| {});
        tokio::select! {
            ended = loops => ended?,
            () = self.tell_on() => {}
        }
        self.clear();
        let standing = self.standing(0, started.elapsed()).await?;
        if self.json {
            return output::json(&standing);
        }
        output::line(&standing.line())
    }

    async fn tell_on(&self) {
        let every = if self.is_terminal {
            ON_A_TERMINAL
        } else {
            ELSEWHERE
        };
        let mut before = self.answered();
        loop {
            tokio::time::sleep(every).await;
            // A store that is away is told of by the loops.
            let Ok(standing) = self.standing(before, every).await else {
                continue;
            };
            before = self.answered();
            let ledger = match self.demo {
                Some(demo) => demo.look().await.ok(),
                None => None,
            };
            if self.is_terminal {
                let line = ledger.map_or_else(|| standing.line(), |sum| sum.to_string());
                self.renew(&line);
            } else if self.json {
                // A closed pipe ends the program; nothing else can go wrong here.
                let _ = output::json(&standing);
                let _ = ledger.map(|sum| output::json(&json!({ "ledger": sum })));
            } else {
                info!("{}", standing.line());
                if let Some(sum) = ledger {
                    info!("{sum}");
                }
            }
        }
    }

    fn answered(&self) -> u64 {
        let worker = self.worker.as_ref();
        worker.map_or(0, |worker| worker.tally().responses())
    }

    async fn standing(&self, before: u64, passed: Duration) -> anyhow::Result<Standing> {
        let Stats { by_status, .. } = self.store.stats().await?;
        let count = |status: &str| by_status.get(status).copied().unwrap_or(0);
        let late = self.store.longest_overdue().await?;
        let answered = self.answered().saturating_sub(before);
        Ok(Standing {
            discovered: by_status.values().sum(),
            queued: count("pending") + count("failed"),
            fetching: count("fetching"),
            fetched: count("fetched"),
            dead: count("dead"),
            oldest_waits_seconds: late.unwrap_or_default().as_secs(),
            pages_per_second: answered as f64 / passed.as_secs_f64().max(0.001),
            work: self.worker.as_ref().map(|worker| worker.tally()),
        })
    }

    fn renew(&self, text: &str) {
        let columns = terminal_width();
        let text: String = text.chars().take(columns.saturating_sub(1)).collect();
        // What can't be shown is no reason to stop.
        let _ = write!(io::stderr(), "\r\x1b[K{text}").and_then(|()| io::stderr().flush());
    }

    fn clear(&self) {
        if self.is_terminal {
            self.renew("");
        }
    }
}

/// As the terminal says, else what most have.
fn terminal_width() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => 120,
    }
}

impl Standing {
    pub(crate) fn line(&self) -> String {
        let mut parts = vec![
            format!("{} found", self.discovered),
            format!("{} queued", self.queued),
            format!("{} fetching", self.fetching),
            format!("{} fetched", self.fetched),
        ];
        if let Some(work) = &self.work {
            parts.push(format!("{} documents", work.documents));
        }
        parts.push(format!("{:.0}/s", self.pages_per_second));
        if self.oldest_waits_seconds > 0 {
            parts.push(format!("oldest waits {} s", self.oldest_waits_seconds));
        }
        if self.dead > 0 {
            parts.push(format!("{} given up{}", self.dead, self.reasons()));
        }
        parts.join(" · ")
    }

    /// The most frequent reasons of this process, in brackets.
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
            words.push(format!("{} to be tried again", work.failed));
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
    fn a_line_says_what_counts() {
        let mut work = Tally {
            documents: 7,
            failed: 1,
            ..Tally::default()
        };
        work.dead.insert("gone".to_owned(), 2);
        work.dead.insert("not_found".to_owned(), 3);
        let standing = Standing {
            discovered: 20,
            queued: 4,
            fetching: 1,
            fetched: 10,
            dead: 5,
            oldest_waits_seconds: 12,
            pages_per_second: 3.4,
            work: Some(work),
        };
        assert_eq!(
            standing.line(),
            "20 found · 4 queued · 1 fetching · 10 fetched · 7 documents · 3/s · oldest waits 12 s · 5 given up (3 not_found, 2 gone, 1 to be tried again)"
        );
    }
}
