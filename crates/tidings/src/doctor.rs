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

use tidings_store::SCHEMA_VERSION;

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
    Nothing,
    /// A start of this program would bring it up to date.
    Older {
        found: i64,
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
        Kept::Older { found } => vec![Finding::notable(
            "store",
            format!("it has schema version {found}, and this program {SCHEMA_VERSION}"),
            "the first start brings it up to date; nothing else is looked at before",
            "tidings run",
        )],
        Kept::Nothing => vec![Finding::notable(
            "store",
            "there is nothing in it yet",
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
