//! Deliveries: how many are pending for a sink and how old, dead letters, and
//! whether any process delivers. Pure.

use std::time::Duration;

use tidings_store::OutboxState;

use super::Finding;
use crate::format::{count, duration, number};

#[derive(Debug, Clone)]
pub(super) struct SinkFacts {
    pub(super) state: OutboxState,
    pub(super) is_configured: bool,
    /// Age of the oldest pending delivery.
    pub(super) oldest: Option<Duration>,
    /// How long the oldest delivery has been due.
    pub(super) overdue: Duration,
    /// The reason of the latest dead letter.
    pub(super) last_dead_letter: Option<String>,
    pub(super) max_pending: u64,
}

/// A running deliverer claims more often than this.
const UNCLAIMED_AFTER: Duration = Duration::from_secs(120);
const MAX_LAG: Duration = Duration::from_secs(600);

pub(super) fn diagnose(facts: &SinkFacts) -> Vec<Finding> {
    let name = &facts.state.sink;
    if !facts.state.enabled {
        return Vec::new();
    }
    if !facts.is_configured {
        return vec![Finding::warning(
            "sinks",
            format!("deliveries are queued for {name}, which is not configured here"),
            "unless another machine has it configured, they stay pending forever",
            "tidings sink ls",
        )];
    }
    let mut found = Vec::new();
    let pending = format!(
        "{} pending for {name}, the oldest for {}",
        count(facts.state.waiting.unsigned_abs(), "document"),
        duration(facts.oldest.unwrap_or_default())
    );
    let is_lagging = facts.oldest.is_some_and(|oldest| oldest >= MAX_LAG);
    if facts.overdue >= UNCLAIMED_AFTER {
        found.push(Finding::error(
            "delivering",
            format!("not claimed: {pending}"),
            "no process with the role deliver is running on this store",
            "tidings run",
        ));
    } else if is_lagging {
        found.push(Finding::error(
            "delivering",
            format!("lagging: {pending}"),
            "it is unavailable, rejects documents, or accepts them slower than they are fetched",
            format!("tidings sink test {name}"),
        ));
    }
    if facts.state.waiting.unsigned_abs() > facts.max_pending {
        found.push(Finding::error(
            "delivering",
            format!(
                "{pending}, and outbox.max_pending is {}",
                number(facts.max_pending)
            ),
            "fetching stops until there are fewer",
            format!("tidings sink test {name}"),
        ));
    }
    if facts.state.dead > 0 {
        let why = facts.last_dead_letter.as_deref().unwrap_or("unknown");
        found.push(Finding::error(
            "delivering",
            format!(
                "{} in the dead letters of {name}, the latest because: {why}",
                count(facts.state.dead.unsigned_abs(), "document")
            ),
            "they are missing there until they are retried or change",
            format!("tidings sink dead {name}, and when it is fixed: tidings sink retry {name}"),
        ));
    }
    if found.is_empty() {
        found.push(Finding::ok(
            "delivering",
            format!(
                "{name} has accepted {}, {} pending",
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
    use crate::doctor::Severity;

    #[test]
    fn every_problem_of_a_sink_has_its_finding() {
        let healthy = SinkFacts {
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
            overdue: Duration::from_secs(1),
            last_dead_letter: None,
            max_pending: 1000,
        };
        let state = |waiting, dead| OutboxState {
            waiting,
            dead,
            ..healthy.state.clone()
        };
        type Row<'a> = (&'a str, SinkFacts, Severity, &'a str, &'a str);
        let rows: [Row<'_>; 6] = [
            (
                "healthy",
                healthy.clone(),
                Severity::Ok,
                "index has accepted 1,200 documents, 3 pending",
                "",
            ),
            (
                "lagging",
                SinkFacts {
                    oldest: Some(Duration::from_secs(900)),
                    ..healthy.clone()
                },
                Severity::Error,
                "lagging: 3 documents pending for index, the oldest for 15 min",
                "tidings sink test index",
            ),
            (
                "no deliverer",
                SinkFacts {
                    oldest: Some(Duration::from_secs(900)),
                    overdue: Duration::from_secs(880),
                    ..healthy.clone()
                },
                Severity::Error,
                "not claimed: 3 documents pending for index, the oldest for 15 min",
                "tidings run",
            ),
            (
                "too many pending",
                SinkFacts {
                    state: state(1001, 0),
                    ..healthy.clone()
                },
                Severity::Error,
                "1,001 documents pending for index, the oldest for 4 s, and outbox.max_pending is 1,000",
                "tidings sink test index",
            ),
            (
                "dead letters",
                SinkFacts {
                    state: state(0, 2),
                    last_dead_letter: Some("the field is no date".to_owned()),
                    ..healthy.clone()
                },
                Severity::Error,
                "2 documents in the dead letters of index, the latest because: the field is no date",
                "tidings sink dead index, and when it is fixed: tidings sink retry index",
            ),
            (
                "not configured",
                SinkFacts {
                    is_configured: false,
                    ..healthy.clone()
                },
                Severity::Warning,
                "deliveries are queued for index, which is not configured here",
                "tidings sink ls",
            ),
        ];
        for (name, facts, severity, what, next) in rows {
            let found = diagnose(&facts);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert_eq!(found[0].severity, severity, "{name}");
            assert_eq!(found[0].what, what, "{name}");
            assert_eq!(found[0].next.as_deref().unwrap_or_default(), next, "{name}");
        }
        let off = SinkFacts {
            state: OutboxState {
                enabled: false,
                ..healthy.state.clone()
            },
            ..healthy
        };
        assert_eq!(diagnose(&off), []);
    }
}
