//! The database itself: does it have room for us, and does it know what time it
//! is? Pure.

use std::time::Duration;

use super::Finding;
use crate::words::{bytes, duration, number};

#[derive(Debug, Clone)]
pub(super) struct StoreFacts {
    pub(super) place: String,
    pub(super) schema_version: i64,
    pub(super) bytes: u64,
    /// Open connections, and the most that there may be.
    pub(super) connections: Option<(u64, u64)>,
    /// How many a process takes at most.
    pub(super) pool: u64,
    /// How far the clock of this machine is from the one of the database.
    pub(super) clock: Duration,
}

const ODD_CLOCK: Duration = Duration::from_secs(5);
const WRONG_CLOCK: Duration = Duration::from_secs(300);

pub(super) fn judge(facts: &StoreFacts) -> Vec<Finding> {
    let mut found = vec![Finding::fine(
        "store",
        format!(
            "{} has schema version {} and {}",
            facts.place,
            facts.schema_version,
            bytes(facts.bytes)
        ),
    )];
    if let Some((used, most)) = facts.connections
        && most.saturating_sub(used) < facts.pool
    {
        found.push(Finding::trouble(
            "store",
            format!(
                "{} of {} connections to PostgreSQL are open",
                number(used),
                number(most)
            ),
            format!(
                "a process takes up to {}; another one would wait, or fail",
                facts.pool
            ),
            format!(
                "psql -c 'ALTER SYSTEM SET max_connections = {}', and start PostgreSQL anew",
                (most * 2).max(100)
            ),
        ));
    }
    let clock = format!(
        "the clock of this machine is {} from the one of the database",
        duration(facts.clock)
    );
    if facts.clock >= ODD_CLOCK {
        let why = "leases follow the database; but certificates, dates of pages and logs follow this machine";
        let next = "timedatectl set-ntp true";
        found.push(match facts.clock >= WRONG_CLOCK {
            true => Finding::trouble("clock", clock, why, next),
            false => Finding::notable("clock", clock, why, next),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity::{AdapterErrorKind, Fine, WorthKnowing};

    #[test]
    fn a_database_is_judged_by_its_room_and_its_clock() {
        let well = StoreFacts {
            place: "postgres://db/tidings".to_owned(),
            schema_version: 5,
            bytes: 12_000_000,
            connections: Some((12, 100)),
            pool: 6,
            clock: Duration::from_millis(40),
        };
        let with = |connections, seconds| StoreFacts {
            connections,
            clock: Duration::from_secs(seconds),
            ..well.clone()
        };
        let rows = [
            ("all is well", well.clone(), vec![Fine]),
            ("embedded", with(None, 0), vec![Fine]),
            ("few are left", with(Some((94, 100)), 0), vec![Fine]),
            (
                "too few are left",
                with(Some((95, 100)), 0),
                vec![Fine, AdapterErrorKind],
            ),
            (
                "more than there may be",
                with(Some((103, 100)), 0),
                vec![Fine, AdapterErrorKind],
            ),
            ("an odd clock", with(None, 5), vec![Fine, WorthKnowing]),
            (
                "a wrong clock",
                with(None, 300),
                vec![Fine, AdapterErrorKind],
            ),
        ];
        for (name, facts, expected) in rows {
            let found = judge(&facts);
            let found: Vec<_> = found.iter().map(|finding| finding.severity).collect();
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(
            judge(&well)[0].what,
            "postgres://db/tidings has schema version 5 and 12.0 MB"
        );
    }
}
