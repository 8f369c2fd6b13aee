//! The benchmarks, each with the commands of its runs at every size and with what
//! its figures come to. Pure: nothing is started here.

mod api;
mod checkout;
mod fetch;
mod frontier;
mod near;
mod polling;

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::report::Shown;

/// One benchmark.
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    /// What would have to change for its figures to become better.
    pub(super) limits: &'static str,
    pub(super) runs: fn(Size) -> Vec<Planned>,
    /// Takes what was measured, which may be a part of the runs or nothing.
    pub(super) show: fn(&[Json]) -> anyhow::Result<Shown>,
}

pub(super) static PARTS: [Part; 10] = [
    frontier::PART,
    fetch::PART,
    near::PART,
    api::PART,
    polling::PART,
    checkout::URL,
    checkout::FEED,
    checkout::NET,
    checkout::SEARCH,
    checkout::EXTRACT,
];

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// For the record.
    Full,
    /// To try it out, within three minutes.
    Quick,
    /// The least that can be measured, without servers and peers: for tests.
    Tiny,
}

impl Size {
    pub(super) fn choose<T>(self, full: T, quick: T, tiny: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
            Self::Tiny => tiny,
        }
    }
}

/// One process to start.
pub(super) struct Planned {
    pub(super) what: &'static str,
    /// As it is typed. `tidings` is this program, `python3` and `CORPUS` are
    /// what was named for them.
    pub(super) command: String,
    pub(super) needs: Need,
}

/// What a run can't do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    Postgres,
    Scrapy,
    /// The sources of Tidings, and cargo.
    Checkout,
    /// These, and pages with their truth.
    Corpus,
}

impl Planned {
    pub(super) fn new(what: &'static str, needs: Need, command: String) -> Self {
        Self {
            what,
            command,
            needs,
        }
    }
}

/// The lists under `name` in all that was measured, one after the other.
fn rows<T: DeserializeOwned>(measured: &[Json], name: &str) -> anyhow::Result<Vec<T>> {
    let mut all = Vec::new();
    for one in measured {
        let rows = one.get(name).cloned().unwrap_or_default();
        let rows: Vec<T> = serde_json::from_value(rows)
            .with_context(|| format!("its list \"{name}\" is not as expected"))?;
        all.extend(rows);
    }
    Ok(all)
}

/// Values in order, each once.
fn distinct<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let set: std::collections::BTreeSet<T> = values.collect();
    set.into_iter().collect()
}

/// `what` of all that was measured, in the order in which it came.
fn names<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names = Vec::new();
    for value in values {
        if !names.contains(&value) {
            names.push(value);
        }
    }
    names
}
