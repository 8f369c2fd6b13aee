//! What a policy achieved: how late items were found, at how many requests, and
//! how many were never seen.

use serde::Serialize;

use crate::simulate::world::World;

/// Counts and delays of one run. Delays in seconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) without_news: u64,
    pub(crate) lost: u64,
    pub(crate) delays: Vec<f32>,
}

/// The figures of one run. Delays in minutes, from publication to discovery;
/// items that were never seen have none and are counted as lost.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    pub requests: u64,
    pub requests_per_feed_day: f64,
    pub items: u64,
    pub lost: u64,
    #[serde(rename = "mean_minutes")]
    pub mean: f64,
    #[serde(rename = "p50_minutes")]
    pub p50: f64,
    #[serde(rename = "p90_minutes")]
    pub p90: f64,
    #[serde(rename = "p99_minutes")]
    pub p99: f64,
    /// Share of the requests that found nothing new.
    pub without_news: f64,
    /// Share of all items (lost ones too) found within each [`Measured::within`].
    #[serde(skip)]
    pub found_within: Vec<f64>,
}

impl Measured {
    /// Minutes from 1 to just over a week, evenly on a logarithmic scale.
    pub fn within() -> impl Iterator<Item = f64> {
        (0..=40).map(|step| 1.26_f64.powi(step))
    }

    pub(crate) fn from(mut tally: Tally, world: &World) -> Self {
        tally.delays.sort_by(f32::total_cmp);
        let delays = &tally.delays;
        let minutes = |seconds: f32| f64::from(seconds) / 60.0;
        let quantile = |share: f64| {
            let at = (share * delays.len() as f64) as usize;
            delays.get(at.min(delays.len().saturating_sub(1)))
        };
        let quantile = |share| quantile(share).map_or(0.0, |seconds| minutes(*seconds));
        let items = delays.len() as u64 + tally.lost;
        let sum: f64 = delays.iter().map(|seconds| minutes(*seconds)).sum();
        let found = |limit: f64| delays.partition_point(|seconds| minutes(*seconds) <= limit);
        let feed_days = world.feeds.len() as f64 * world.judged_days();
        Self {
            requests: tally.requests,
            requests_per_feed_day: tally.requests as f64 / feed_days.max(1e-9),
            items,
            lost: tally.lost,
            mean: sum / delays.len().max(1) as f64,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            without_news: tally.without_news as f64 / tally.requests.max(1) as f64,
            found_within: Self::within()
                .map(|limit| found(limit) as f64 / items.max(1) as f64)
                .collect(),
        }
    }
}
