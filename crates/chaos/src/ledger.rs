//! The sum at the end of a scenario: what was published against what the index
//! holds, and the request log against the politeness that is guaranteed.

use std::collections::BTreeMap;
use std::fmt;

use tidings_sim::{Expected, FakeElasticsearch, RobotsKind, politeness_violations};

use crate::environment::{Environment, HOST_DELAY, INDEX};

/// The ledger of the simulated web beside the index and the request log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LedgerSummary {
    pub(crate) expected: usize,
    /// Articles that should be in the index, and are not.
    pub(crate) lost: usize,
    /// Documents in the index without an article, or with a second revision
    /// though the article never changed.
    pub(crate) duplicated: usize,
    /// Requests that came too soon, while another was in flight, or for what
    /// robots.txt disallows.
    pub(crate) politeness_violations: Vec<String>,
    pub(crate) requests: u64,
}

impl LedgerSummary {
    pub(crate) fn of(env: &Environment) -> Self {
        Self::of_index(env, &env.index)
    }

    /// The same with another index than that of the environment.
    pub(crate) fn of_index(env: &Environment, index: &FakeElasticsearch) -> Self {
        let mut indexed: BTreeMap<String, i64> = index
            .documents(INDEX)
            .into_iter()
            // The sink leaves the lower half of a version to readers of the index.
            .map(|(id, (version, _))| (id, version >> 32))
            .collect();
        let revised = indexed.values().filter(|revision| **revision > 1).count();
        let (mut expected, mut lost) = (0, 0);
        for entry in env.sim.ledger().entries() {
            if entry.expected == Expected::Document {
                expected += 1;
                lost += usize::from(indexed.remove(&entry.key.to_string()).is_none());
            }
        }
        Self {
            expected,
            lost,
            duplicated: indexed.len() + revised,
            politeness_violations: violations(env),
            requests: env.sim.log().total(),
        }
    }

    /// Something was published, and all of it arrived once and politely.
    pub(crate) fn is_consistent(&self) -> bool {
        self.expected > 0 && !self.has_violations()
    }

    pub(crate) fn has_violations(&self) -> bool {
        (self.lost, self.duplicated) != (0, 0) || !self.politeness_violations.is_empty()
    }
}

impl fmt::Display for LedgerSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} articles, {} lost, {} duplicated; {} requests, {} politeness violations",
            self.expected,
            self.lost,
            self.duplicated,
            self.requests,
            self.politeness_violations.len()
        )?;
        match self.politeness_violations.first() {
            Some(first) => write!(f, " ({first})"),
            None => Ok(()),
        }
    }
}

fn violations(env: &Environment) -> Vec<String> {
    let log = env.sim.log().snapshot();
    let too_soon = politeness_violations(&log, HOST_DELAY, 1)
        .into_iter()
        .map(|violation| {
            format!(
                "{}: {:?} after the previous request, {} in flight",
                violation.host, violation.gap, violation.in_flight
            )
        });
    let has_robots = |host: &str| {
        let site = env.sim.world().site_named(host);
        site.is_some_and(|site| site.robots != RobotsKind::Absent)
    };
    let disallowed = log
        .iter()
        .filter(|record| record.path.starts_with("/members/") && has_robots(&record.host))
        .map(|record| format!("{}{} is disallowed", record.host, record.path));
    too_soon.chain(disallowed).collect()
}
