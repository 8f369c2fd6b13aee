//! Policies side by side at equal requests: the adaptive one is given, once for
//! each baseline, exactly what that baseline spent.

use serde::Serialize;

use crate::policy::Policy;
use crate::price::Budget;
use crate::simulate::measure::Measured;
use crate::simulate::run::{Spending, run};
use crate::simulate::world::World;
use std::time::Duration;

/// Who is compared.
#[derive(Debug, Clone, Copy)]
pub struct Contestants {
    /// The interval of the fixed policy.
    pub every: Duration,
    pub fixed: bool,
    pub doubling: bool,
    pub adaptive: bool,
}

/// One line of the comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub policy: &'static str,
    /// Whose requests it was allowed, or the interval.
    pub spends: String,
    #[serde(flatten)]
    pub measured: Measured,
}

/// All lines, each adaptive one below the baseline that it is measured against.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    pub world: String,
    pub feeds: usize,
    pub judged_days: f64,
    pub seed: u64,
    pub rows: Vec<Row>,
}

pub fn compare(
    world: &World,
    contestants: Contestants,
    seed: u64,
    progress: &mut dyn FnMut(),
) -> Comparison {
    let Contestants { every, .. } = contestants;
    let feeds = world.feeds.len() as u64;
    let minutes = every.as_secs_f64() / 60.0;
    let baselines = [
        (
            "fixed",
            Policy::Fixed { every },
            format!("every {minutes} min"),
            contestants.fixed,
        ),
        (
            "doubling",
            Policy::Doubling,
            "5 min to 7 d".to_owned(),
            contestants.doubling,
        ),
    ];
    let mut rows = Vec::new();
    for (name, policy, spends, is_wanted) in baselines {
        // Without a baseline on the table, the budget is what `fixed` would spend.
        let is_measure = contestants.adaptive && name == "fixed" && !contestants.doubling;
        if !is_wanted && !is_measure {
            continue;
        }
        let budget = Budget::like_fixed(feeds, every);
        let baseline = run(world, Spending { policy, budget }, seed, progress);
        let budget = Budget {
            requests_per_day: baseline.requests as f64 / world.judged_days(),
        };
        if is_wanted {
            rows.push(Row {
                policy: name,
                spends,
                measured: baseline,
            });
        }
        if contestants.adaptive {
            let policy = Policy::Adaptive;
            rows.push(Row {
                policy: "adaptive",
                spends: format!("as {name}"),
                measured: run(world, Spending { policy, budget }, seed, progress),
            });
        }
    }
    Comparison {
        world: world.name.clone(),
        feeds: world.feeds.len(),
        judged_days: world.judged_days(),
        seed,
        rows,
    }
}
