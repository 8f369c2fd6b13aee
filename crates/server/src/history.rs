//! Samples of the last hour, for rates and charts. Held in memory: it starts empty
//! after a restart, and nothing but charts depends on it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidings_store::{Moment, Store, StoreError};
use tracing::debug;

const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
const MAX_SAMPLES: usize = 720;

/// Totals at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) at: Moment,
    pub(crate) found: i64,
    pub(crate) queued: i64,
    pub(crate) fetched: i64,
    pub(crate) retrying: i64,
    /// Status `dead`: failed permanently or redirected.
    pub(crate) dead: i64,
    pub(crate) delivered: i64,
}

#[derive(Debug, Default)]
pub(crate) struct History(Mutex<VecDeque<Sample>>);

impl History {
    pub(crate) fn record(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == MAX_SAMPLES {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    pub(crate) fn all(&self) -> Vec<Sample> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        samples.iter().copied().collect()
    }

    /// Growth per minute, over the last five minutes.
    pub(crate) fn per_minute(&self, of: impl Fn(&Sample) -> i64) -> Option<f64> {
        let samples = self.all();
        let last = samples.last()?;
        let is_recent = |sample: &&Sample| last.at.0 - sample.at.0 <= 300_000;
        let first = samples.iter().find(is_recent)?;
        let minutes = (last.at.0 - first.at.0) as f64 / 60_000.0;
        (minutes > 0.0).then(|| (of(last) - of(first)) as f64 / minutes)
    }
}

pub(crate) async fn sample(store: &Store) -> Result<Sample, StoreError> {
    let stats = store.stats().await?;
    let of = |status: &str| stats.by_status.get(status).copied().unwrap_or(0);
    let sinks = store.outbox().await?;
    Ok(Sample {
        at: store.now().await?,
        found: stats.by_status.values().sum(),
        queued: of("pending") + of("failed") + of("fetching"),
        fetched: of("fetched"),
        retrying: of("failed"),
        dead: of("dead"),
        delivered: sinks.iter().map(|sink| sink.delivered).sum(),
    })
}

/// Records samples for as long as the server runs.
pub(crate) async fn record_samples(history: Arc<History>, store: Store) {
    loop {
        match sample(&store).await {
            Ok(sample) => history.record(sample),
            Err(error) => debug!(%error, "cannot sample totals"),
        }
        tokio::time::sleep(SAMPLE_INTERVAL).await;
    }
}
