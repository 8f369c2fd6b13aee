//! The last hour in samples, for rates and charts. Kept in memory: after a
//! restart it begins anew, and nothing but charts depends on it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidings_store::{Moment, StoreError};
use tracing::debug;

use crate::app::App;

const EVERY: Duration = Duration::from_secs(5);
const KEPT: usize = 720;

/// How things stood at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) at: Moment,
    pub(crate) found: i64,
    pub(crate) waiting: i64,
    pub(crate) fetched: i64,
    /// Failed or dead right now.
    pub(crate) failed: i64,
    pub(crate) delivered: i64,
}

#[derive(Debug, Default)]
pub(crate) struct History(Mutex<VecDeque<Sample>>);

impl History {
    pub(crate) fn note(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == KEPT {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    pub(crate) fn all(&self) -> Vec<Sample> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        samples.iter().copied().collect()
    }

    /// How much something grew in a minute, over the last five.
    pub(crate) fn per_minute(&self, of: impl Fn(&Sample) -> i64) -> Option<f64> {
        let samples = self.all();
        let last = samples.last()?;
        let is_recent = |sample: &&Sample| last.at.0 - sample.at.0 <= 300_000;
        let first = samples.iter().find(is_recent)?;
        let minutes = (last.at.0 - first.at.0) as f64 / 60_000.0;
        (minutes > 0.0).then(|| (of(last) - of(first)) as f64 / minutes)
    }
}

pub(crate) async fn take(app: &App) -> Result<Sample, StoreError> {
    let stats = app.store.stats().await?;
    let of = |status: &str| stats.by_status.get(status).copied().unwrap_or(0);
    let sinks = app.store.outbox().await?;
    Ok(Sample {
        at: app.store.now().await?,
        found: stats.by_status.values().sum(),
        waiting: of("pending") + of("failed") + of("fetching"),
        fetched: of("fetched"),
        failed: of("failed") + of("dead"),
        delivered: sinks.iter().map(|sink| sink.delivered).sum(),
    })
}

/// Takes a sample now and then, for ever.
pub(crate) async fn sample(app: Arc<App>) {
    loop {
        match take(&app).await {
            Ok(sample) => app.history.note(sample),
            Err(error) => debug!(%error, "there is no sample of now"),
        }
        tokio::time::sleep(EVERY).await;
    }
}
