//! What is wrong, why it matters, and what to do next. `collect` reads the
//! facts, each judge is a pure function of the facts of one subject; nothing is
//! ever changed or mended here.

mod collect;
mod feeds;
mod finding;
mod frontier;
mod machine;
mod sinks;
mod store;

pub(crate) use collect::facts;
pub(crate) use finding::{Finding, Severity};

use feeds::FeedFacts;
use frontier::FrontierFacts;
use machine::MachineFacts;
use sinks::SinkFacts;
use store::StoreFacts;

/// Everything that is known when findings are made.
#[derive(Debug)]
pub(crate) struct Facts {
    machine: MachineFacts,
    kept: Kept,
}

/// What the store says.
#[derive(Debug)]
enum Kept {
    /// It was not made yet.
    Nothing {
        place: String,
    },
    /// It can't be asked.
    Closed {
        place: String,
        why: String,
    },
    All(Box<Everything>),
}

#[derive(Debug)]
struct Everything {
    store: StoreFacts,
    frontier: FrontierFacts,
    feeds: FeedFacts,
    sinks: Vec<SinkFacts>,
}

/// All findings, the gravest first.
pub(crate) fn findings(facts: &Facts) -> Vec<Finding> {
    let mut findings = match &facts.kept {
        Kept::Nothing { place } => vec![Finding::notable(
            "store",
            format!("there is nothing at {place} yet"),
            "sources, URLs and documents are kept there",
            "tidings run",
        )],
        Kept::Closed { place, why } => vec![Finding::trouble(
            "store",
            format!("{place} can't be opened: {why}"),
            "nothing works without it",
            "tidings check",
        )],
        Kept::All(all) => {
            let mut found = frontier::judge(&all.frontier);
            found.extend(feeds::judge(&all.feeds));
            found.extend(all.sinks.iter().flat_map(sinks::judge));
            found.extend(store::judge(&all.store));
            found
        }
    };
    findings.extend(machine::judge(&facts.machine));
    findings.sort_by_key(|finding| finding.severity);
    findings
}
