//! The database itself: schema version, size, free connections, clock offset and
//! maintenance. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Finding;
use crate::format::{bytes, duration, number};

#[derive(Debug, Clone)]
pub(super) struct StoreFacts {
    pub(super) place: String,
    pub(super) schema_version: i64,
    pub(super) bytes: u64,
    /// Open connections, and the limit of the server.
    pub(super) connections: Option<(u64, u64)>,
    /// Connections that a process opens at most.
    pub(super) pool_size: u64,
    /// Offset between the clock of this machine and the clock of the database.
    pub(super) clock_offset: Duration,
    /// How long ago maintenance ran, and the rows it has removed by table; `None`: no
    /// process of this version has run yet.
    pub(super) maintenance: Option<(Duration, BTreeMap<String, u64>)>,
}

const WARN_CLOCK_OFFSET: Duration = Duration::from_secs(5);
const MAX_CLOCK_OFFSET: Duration = Duration::from_secs(300);

/// It looks for expired rows every five minutes.
const MAINTENANCE_OVERDUE: Duration = Duration::from_secs(3600);

pub(super) fn diagnose(facts: &StoreFacts) -> Vec<Finding> {
    let mut found = vec![Finding::ok(
        "store",
        format!(
            "{} has schema version {} and {}",
            facts.place,
            facts.schema_version,
            bytes(facts.bytes)
        ),
    )];
    if let Some((used, max)) = facts.connections
        && max.saturating_sub(used) < facts.pool_size
    {
        found.push(Finding::error(
            "store",
            format!(
                "{} of {} connections to PostgreSQL are open",
                number(used),
                number(max)
            ),
            format!(
                "a process opens up to {}; another one would wait, or fail",
                facts.pool_size
            ),
            format!(
                "psql -c 'ALTER SYSTEM SET max_connections = {}', and restart PostgreSQL",
                (max * 2).max(100)
            ),
        ));
    }
    let clock = format!(
        "the clocks of this machine and of the database differ by {}",
        duration(facts.clock_offset)
    );
    if facts.clock_offset >= WARN_CLOCK_OFFSET {
        let why = "leases follow the database; but certificates, dates of pages and logs follow this machine";
        let next = "timedatectl set-ntp true";
        found.push(match facts.clock_offset >= MAX_CLOCK_OFFSET {
            true => Finding::error("clock", clock, why, next),
            false => Finding::warning("clock", clock, why, next),
        });
    }
    if let Some((ago, removed)) = &facts.maintenance {
        let mut what = format!(
            "last run {} ago; {} expired rows removed so far",
            duration(*ago),
            number(removed.values().sum::<u64>())
        );
        for (table, rows) in removed {
            what.push_str(&format!(", {} of {table}", number(*rows)));
        }
        found.push(match *ago >= MAINTENANCE_OVERDUE {
            true => Finding::warning(
                "maintenance",
                what,
                "expired rows are removed and counters folded by every running process; without it the store grows and lists become slow",
                "tidings run",
            ),
            false => Finding::ok("maintenance", what),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn a_database_is_diagnosed_by_its_connections_and_its_clock() {
        let healthy = StoreFacts {
            place: "postgres://db/tidings".to_owned(),
            schema_version: 5,
            bytes: 12_000_000,
            connections: Some((12, 100)),
            pool_size: 6,
            clock_offset: Duration::from_millis(40),
            maintenance: None,
        };
        let maintained = |seconds| StoreFacts {
            maintenance: Some((
                Duration::from_secs(seconds),
                BTreeMap::from([("events".to_owned(), 1000), ("runs".to_owned(), 200)]),
            )),
            ..healthy.clone()
        };
        let with = |connections, seconds| StoreFacts {
            connections,
            clock_offset: Duration::from_secs(seconds),
            ..healthy.clone()
        };
        let rows = [
            ("healthy", healthy.clone(), vec![Severity::Ok]),
            ("embedded", with(None, 0), vec![Severity::Ok]),
            ("few are left", with(Some((94, 100)), 0), vec![Severity::Ok]),
            (
                "too few are left",
                with(Some((95, 100)), 0),
                vec![Severity::Ok, Severity::Error],
            ),
            (
                "more than there may be",
                with(Some((103, 100)), 0),
                vec![Severity::Ok, Severity::Error],
            ),
            (
                "a clock offset",
                with(None, 5),
                vec![Severity::Ok, Severity::Warning],
            ),
            (
                "maintained",
                maintained(3599),
                vec![Severity::Ok, Severity::Ok],
            ),
            (
                "not maintained for an hour",
                maintained(3600),
                vec![Severity::Ok, Severity::Warning],
            ),
            (
                "a large clock offset",
                with(None, 300),
                vec![Severity::Ok, Severity::Error],
            ),
        ];
        for (name, facts, expected) in rows {
            let found = diagnose(&facts);
            let found: Vec<_> = found.iter().map(|finding| finding.severity).collect();
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(
            diagnose(&maintained(120))[1].what,
            "last run 2 min ago; 1,200 expired rows removed so far, 1,000 of events, 200 of runs"
        );
        assert_eq!(
            diagnose(&healthy)[0].what,
            "postgres://db/tidings has schema version 5 and 12.0 MB"
        );
    }
}
