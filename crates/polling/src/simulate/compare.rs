//! Policies side by side at equal requests: the adaptive one is given, once for
//! each baseline, exactly what that baseline spent.

use std::time::Duration;

use serde::Serialize;

use crate::policy::Policy;
use crate::price::Budget;
use crate::simulate::measure::Measured;
use crate::simulate::run::{Spending, run};
use crate::simulate::world::World;

/// Who is compared.
#[derive(Debug, Clone, Copy)]
pub struct Contestants {
    /// The interval of the fixed policy.
    pub every: Duration,
    pub fixed: bool,
    pub doubling: bool,
    pub adaptive: bool,
}

impl Contestants {
    /// How many runs the comparison takes.
    pub fn runs(self) -> u64 {
        let baselines = u64::from(self.fixed) + u64::from(self.doubling);
        baselines + u64::from(self.adaptive) * baselines.max(1)
    }
}

/// One line of the comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub policy: &'static str,
    /// Whose requests it was allowed, or its interval.
    pub spends: String,
    #[serde(flatten)]
    pub measured: Measured,
    /// Its mean delay as a multiple of that of the baseline above it.
    pub mean_ratio: Option<f64>,
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
    let every = contestants.every;
    let like_fixed = Budget::like_fixed(world.feeds.len() as u64, every);
    let mut play = |policy, budget| run(world, Spending { policy, budget }, seed, progress);
    let mut rows = Vec::new();
    let minutes = every.as_secs_f64() / 60.0;
    let baselines = [
        (
            contestants.fixed,
            "fixed",
            Policy::Fixed { every },
            format!("every {minutes} min"),
        ),
        (
            contestants.doubling,
            "doubling",
            Policy::Doubling,
            "5 min to 7 d".to_owned(),
        ),
    ];
    for (is_wanted, name, policy, spends) in baselines {
        if !is_wanted {
            continue;
        }
        let baseline = play(policy, like_fixed);
        let mean = baseline.mean;
        let requests_per_day = baseline.requests as f64 / world.judged_days();
        rows.push(Row {
            policy: name,
            spends,
            measured: baseline,
            mean_ratio: None,
        });
        if contestants.adaptive {
            let measured = play(Policy::Adaptive, Budget { requests_per_day });
            let mean_ratio = Some(measured.mean / mean.max(1e-9));
            let spends = format!("as {name}");
            rows.push(Row {
                policy: "adaptive",
                spends,
                measured,
                mean_ratio,
            });
        }
    }
    if rows.is_empty() && contestants.adaptive {
        let measured = play(Policy::Adaptive, like_fixed);
        let spends = format!("as every {minutes} min");
        rows.push(Row {
            policy: "adaptive",
            spends,
            measured,
            mean_ratio: None,
        });
    }
    Comparison {
        world: world.name.clone(),
        feeds: world.feeds.len(),
        judged_days: world.judged_days(),
        seed,
        rows,
    }
}
