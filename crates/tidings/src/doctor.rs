//! Diagnoses an installation: errors and warnings, why they matter, and the next
//! step. `collect` reads the facts, each diagnosis is a pure function of the facts
//! of one subject; nothing is ever changed here.

mod collect;
mod feeds;
mod finding;
mod frontier;
mod machine;
mod sinks;
mod store;

use tidings_store::SCHEMA_VERSION;

pub(crate) use collect::facts;
pub(crate) use finding::{Finding, Severity};

use feeds::FeedFacts;
use frontier::FrontierFacts;
use machine::MachineFacts;
use sinks::SinkFacts;
use store::StoreFacts;

/// The facts that findings are derived from.
#[derive(Debug)]
pub(crate) struct Facts {
    machine: MachineFacts,
    store: StoreState,
}

/// The store, and everything read from it.
#[derive(Debug)]
enum StoreState {
    /// It was not created yet.
    Missing,
    /// A start of this program would migrate its schema.
    Outdated {
        found: i64,
    },
    /// It can't be opened or read.
    Unavailable {
        place: String,
        why: String,
    },
    Open(Box<StoreContents>),
}

#[derive(Debug)]
struct StoreContents {
    store: StoreFacts,
    frontier: FrontierFacts,
    feeds: FeedFacts,
    sinks: Vec<SinkFacts>,
}

/// All findings, the most severe first.
pub(crate) fn findings(facts: &Facts) -> Vec<Finding> {
    let mut findings = match &facts.store {
        StoreState::Outdated { found } => vec![Finding::warning(
            "store",
            format!("it has schema version {found}, and this program {SCHEMA_VERSION}"),
            "the first start migrates the schema; nothing else is diagnosed before",
            "tidings run",
        )],
        StoreState::Missing => vec![Finding::warning(
            "store",
            "it does not exist yet",
            "sources, URLs and documents are stored there",
            "tidings run",
        )],
        StoreState::Unavailable { place, why } => vec![Finding::error(
            "store",
            format!("{place} can't be opened: {why}"),
            "nothing works without it",
            "tidings check",
        )],
        StoreState::Open(all) => {
            let mut found = frontier::diagnose(&all.frontier);
            found.extend(feeds::diagnose(&all.feeds));
            found.extend(all.sinks.iter().flat_map(sinks::diagnose));
            found.extend(store::diagnose(&all.store));
            found
        }
    };
    findings.extend(machine::diagnose(&facts.machine));
    findings.sort_by_key(|finding| finding.severity);
    findings
}
