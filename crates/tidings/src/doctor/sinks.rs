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
    /// Whether no live process delivers to it.
    pub(super) is_unserved: bool,
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
        return match facts.is_configured {
            false => Vec::new(),
            true => vec![Finding::warning(
                "sinks",
                format!("{name} is configured here, but disabled"),
                "nothing is delivered to it; what changes meanwhile is delivered when it is enabled",
                format!("tidings sink enable {name}"),
            )],
        };
    }
    let mut found = Vec::new();
    let pending = format!(
        "{} pending for {name}, the oldest for {}",
        count(facts.state.waiting.unsigned_abs(), "document"),
        duration(facts.oldest.unwrap_or_default())
    );
    let is_lagging = facts.oldest.is_some_and(|oldest| oldest >= MAX_LAG);
    if facts.overdue >= UNCLAIMED_AFTER || facts.is_unserved {
        let what = match facts.overdue >= UNCLAIMED_AFTER {
            true => format!("not claimed: {pending}"),
            false => format!("{name} is served by no process"),
        };
        let (why, next) = missing_process(facts);
        found.push(Finding::error("delivering", what, why, next));
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

/// Which process is missing, and how to get one.
fn missing_process(facts: &SinkFacts) -> (String, String) {
    let name = &facts.state.sink;
    match (&facts.state.node, facts.is_configured) {
        (Some(node), _) => (
            format!("it belongs to {node}, where no process with the role deliver is running"),
            format!("tidings run (on that node), or if it is gone: tidings sink move {name}"),
        ),
        (None, true) => (
            "no process with the role deliver is running on this store".to_owned(),
            "tidings run".to_owned(),
        ),
        (None, false) => (
            "it is not configured here, and no process that has it is running".to_owned(),
            format!("tidings run (where it is configured), or: tidings sink disable {name}"),
        ),
    }
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
                disabled_at: None,
                node: None,
                last_seen: None,
            },
            is_configured: true,
            is_unserved: false,
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
        let rows: [Row<'_>; 10] = [
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
                "of another process",
                SinkFacts {
                    is_configured: false,
                    ..healthy.clone()
                },
                Severity::Ok,
                "index has accepted 1,200 documents, 3 pending",
                "",
            ),
            (
                "not served",
                SinkFacts {
                    is_unserved: true,
                    ..healthy.clone()
                },
                Severity::Error,
                "index is served by no process",
                "tidings run",
            ),
            (
                "not served, of another process",
                SinkFacts {
                    is_unserved: true,
                    is_configured: false,
                    ..healthy.clone()
                },
                Severity::Error,
                "index is served by no process",
                "tidings run (where it is configured), or: tidings sink disable index",
            ),
            (
                "not served, with files on a node",
                SinkFacts {
                    is_unserved: true,
                    state: OutboxState {
                        node: Some("alpha-1".to_owned()),
                        ..healthy.state.clone()
                    },
                    ..healthy.clone()
                },
                Severity::Error,
                "index is served by no process",
                "tidings run (on that node), or if it is gone: tidings sink move index",
            ),
            (
                "disabled",
                SinkFacts {
                    state: OutboxState {
                        enabled: false,
                        ..healthy.state.clone()
                    },
                    ..healthy.clone()
                },
                Severity::Warning,
                "index is configured here, but disabled",
                "tidings sink enable index",
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
            is_configured: false,
            ..healthy
        };
        assert_eq!(diagnose(&off), []);
    }
}
