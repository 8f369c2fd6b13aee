//! The sum at the end of a scenario: what was published against what the index
//! holds, and the request log against the manners that were promised.

use std::collections::BTreeMap;
use std::fmt;

use tidings_sim::{Expected, RobotsKind, politeness_violations};

use super::ground::{GAP, Ground, INDEX};

/// How the books stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Books {
    pub(super) expected: usize,
    /// Articles that should be in the index, and are not.
    pub(super) lost: usize,
    /// Documents in the index that no article stands for, or that were taken
    /// for a new revision though nobody changed them.
    pub(super) doubled: usize,
    /// Requests that came too soon, while another was under way, or for what
    /// robots.txt forbids.
    pub(super) impolite: Vec<String>,
    pub(super) requests: u64,
}

impl Books {
    pub(super) fn of(ground: &Ground) -> Self {
        let mut held: BTreeMap<String, i64> = ground
            .index
            .documents(INDEX)
            .into_iter()
            .map(|(id, (revision, _))| (id, revision))
            .collect();
        let revised = held.values().filter(|revision| **revision > 1).count();
        let (mut expected, mut lost) = (0, 0);
        for entry in ground.sim.ledger().entries() {
            if entry.expected == Expected::Document {
                expected += 1;
                lost += usize::from(held.remove(&entry.key.to_string()).is_none());
            }
        }
        Self {
            expected,
            lost,
            doubled: held.len() + revised,
            impolite: impolite(ground),
            requests: ground.sim.log().total(),
        }
    }

    pub(super) fn are_right(&self) -> bool {
        self.expected > 0 && (self.lost, self.doubled, self.impolite.len()) == (0, 0, 0)
    }
}

impl fmt::Display for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} articles, {} lost, {} doubled; {} requests, {} impolite",
            self.expected,
            self.lost,
            self.doubled,
            self.requests,
            self.impolite.len()
        )?;
        match self.impolite.first() {
            Some(first) => write!(f, " ({first})"),
            None => Ok(()),
        }
    }
}

/// What was impolite, in words.
fn impolite(ground: &Ground) -> Vec<String> {
    let log = ground.sim.log().snapshot();
    let hasty = politeness_violations(&log, GAP, 1)
        .into_iter()
        .map(|hasty| {
            format!(
                "{}: {:?} after the one before, {} at once",
                hasty.host, hasty.gap, hasty.in_flight
            )
        });
    let forbidding = |host: &str| {
        let site = ground.sim.world().site_named(host);
        site.is_some_and(|site| site.robots != RobotsKind::Absent)
    };
    let forbidden = log
        .iter()
        .filter(|record| record.path.starts_with("/members/") && forbidding(&record.host))
        .map(|record| format!("{}{} is forbidden", record.host, record.path));
    hasty.chain(forbidden).collect()
}
