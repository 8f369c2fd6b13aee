//! Documents on their way: what waits for a sink and how long, what it could
//! not take, and whether anybody delivers. Pure.

use std::time::Duration;

use tidings_store::OutboxState;

use super::Finding;
use crate::words::{count, duration, number};

#[derive(Debug, Clone)]
pub(super) struct SinkFacts {
    pub(super) state: OutboxState,
    pub(super) is_configured: bool,
    /// Since the first document that it does not have was stored.
    pub(super) oldest: Option<Duration>,
    /// Since the first order could have been handed over.
    pub(super) due: Duration,
    /// Why the last dead letter died.
    pub(super) last_death: Option<String>,
    pub(super) bound: u64,
}

/// Somebody who delivers looks more often than this.
const NOBODY: Duration = Duration::from_secs(120);
const LAGS: Duration = Duration::from_secs(600);

pub(super) fn judge(facts: &SinkFacts) -> Vec<Finding> {
    let name = &facts.state.sink;
    if !facts.state.enabled {
        return Vec::new();
    }
    if !facts.is_configured {
        return vec![Finding::notable(
            "sinks",
            format!("{name} gets documents, but is not configured here"),
            "if no other machine knows it either, they wait for ever",
            "tidings sink ls",
        )];
    }
    let mut found = Vec::new();
    let waiting = format!(
        "{} for {name}, the first for {}",
        count(facts.state.waiting.unsigned_abs(), "document"),
        duration(facts.oldest.unwrap_or_default())
    );
    let is_late = facts.oldest.is_some_and(|oldest| oldest >= LAGS);
    if facts.due >= NOBODY {
        found.push(Finding::trouble(
            "delivering",
            format!("nobody delivers: {waiting}"),
            "no process with the role deliver is running on this store",
            "tidings run",
        ));
    } else if is_late {
        found.push(Finding::trouble(
            "delivering",
            format!("it lags: {waiting}"),
            "it is down, refuses, or takes fewer than are made",
            format!("tidings sink test {name}"),
        ));
    }
    if facts.state.waiting.unsigned_abs() > facts.bound {
        found.push(Finding::trouble(
            "delivering",
            format!("{waiting}, and outbox.bound is {}", number(facts.bound)),
            "no page is fetched until there are fewer",
            format!("tidings sink test {name}"),
        ));
    }
    if facts.state.dead > 0 {
        let why = facts.last_death.as_deref().unwrap_or("it did not say");
        found.push(Finding::trouble(
            "delivering",
            format!(
                "{} could not be delivered to {name}, the last because: {why}",
                count(facts.state.dead.unsigned_abs(), "document")
            ),
            "they are missing there until they are tried again or change",
            format!("tidings sink dead {name}, and when it is mended: tidings sink retry {name}"),
        ));
    }
    if found.is_empty() {
        found.push(Finding::fine(
            "delivering",
            format!(
                "{name} has accepted {}, and {} on the way",
                count(facts.state.delivered.unsigned_abs(), "document"),
                number(facts.state.waiting.unsigned_abs())
            ),
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity::{self, AdapterErrorKind, Fine, WorthKnowing};

    #[test]
    fn every_trouble_of_a_sink_has_its_finding() {
        let well = SinkFacts {
            state: OutboxState {
                sink: "index".to_owned(),
                enabled: true,
                delivered: 1200,
                waiting: 3,
                dead: 0,
                oldest: None,
            },
            is_configured: true,
            oldest: Some(Duration::from_secs(4)),
            due: Duration::from_secs(1),
            last_death: None,
            bound: 1000,
        };
        let state = |waiting, dead| OutboxState {
            waiting,
            dead,
            ..well.state.clone()
        };
        type Row<'a> = (&'a str, SinkFacts, Severity, &'a str, &'a str);
        let rows: [Row<'_>; 6] = [
            (
                "all is well",
                well.clone(),
                Fine,
                "index has accepted 1,200 documents, and 3 on the way",
                "",
            ),
            (
                "it lags",
                SinkFacts {
                    oldest: Some(Duration::from_secs(900)),
                    ..well.clone()
                },
                AdapterErrorKind,
                "it lags: 3 documents for index, the first for 15 min",
                "tidings sink test index",
            ),
            (
                "nobody delivers",
                SinkFacts {
                    oldest: Some(Duration::from_secs(900)),
                    due: Duration::from_secs(880),
                    ..well.clone()
                },
                AdapterErrorKind,
                "nobody delivers: 3 documents for index, the first for 15 min",
                "tidings run",
            ),
            (
                "too many wait",
                SinkFacts {
                    state: state(1001, 0),
                    ..well.clone()
                },
                AdapterErrorKind,
                "1,001 documents for index, the first for 4 s, and outbox.bound is 1,000",
                "tidings sink test index",
            ),
            (
                "some are dead",
                SinkFacts {
                    state: state(0, 2),
                    last_death: Some("the field is no date".to_owned()),
                    ..well.clone()
                },
                AdapterErrorKind,
                "2 documents could not be delivered to index, the last because: the field is no date",
                "tidings sink dead index, and when it is mended: tidings sink retry index",
            ),
            (
                "nobody knows it",
                SinkFacts {
                    is_configured: false,
                    ..well.clone()
                },
                WorthKnowing,
                "index gets documents, but is not configured here",
                "tidings sink ls",
            ),
        ];
        for (name, facts, severity, what, next) in rows {
            let found = judge(&facts);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert_eq!(found[0].severity, severity, "{name}");
            assert_eq!(found[0].what, what, "{name}");
            assert_eq!(found[0].next.as_deref().unwrap_or_default(), next, "{name}");
        }
        let off = SinkFacts {
            state: OutboxState {
                enabled: false,
                ..well.state.clone()
            },
            ..well
        };
        assert_eq!(judge(&off), []);
    }
}
