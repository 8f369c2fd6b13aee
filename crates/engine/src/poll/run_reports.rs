//! A finished collection run is reported to the sinks that show the last one. A sink
//! that fails is logged: the run counts all the same, and the next one replaces it.

use std::time::Duration;

use jiff::Timestamp;
use tidings_sinks::{RunReport, Sink, SourceReport};
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::{Collected, Poller};

/// For all sinks together; less than what is left of the lease of the run.
const REPORT_TIMEOUT: Duration = Duration::from_secs(60);

impl Poller {
    /// Reports a run to all sinks that show it, unless they are disabled.
    pub(super) async fn report_run(&self, collected: &Collected, retry_delays: &[Duration]) {
        if self.options.run_sinks.is_empty() {
            return;
        }
        let report = report_of(collected);
        let reporting = async {
            for sink in &self.options.run_sinks {
                if self.is_disabled(sink.name()).await {
                    continue;
                }
                if let Err(error) = record(&**sink, &report, retry_delays).await {
                    warn!(sink = sink.name(), error, "cannot report collection run");
                }
            }
        };
        if timeout(REPORT_TIMEOUT, reporting).await.is_err() {
            warn!("cannot report collection run: timed out");
        }
    }

    async fn is_disabled(&self, sink: &str) -> bool {
        let states = self.context.store.outbox().await.unwrap_or_default();
        states
            .iter()
            .any(|state| state.sink == sink && !state.enabled)
    }
}

async fn record(
    sink: &dyn Sink,
    report: &RunReport,
    retry_delays: &[Duration],
) -> Result<(), String> {
    for delay in retry_delays {
        if sink.record_run(report, Timestamp::now()).await.is_ok() {
            return Ok(());
        }
        sleep(*delay).await;
    }
    sink.record_run(report, Timestamp::now()).await
}

fn report_of(collected: &Collected) -> RunReport {
    let sources = collected.sources.iter().map(|source| SourceReport {
        name: source.name.clone(),
        items_new: source.items_new as u64,
        error: source.error.clone(),
    });
    RunReport {
        duration: Duration::from_millis(collected.elapsed_ms),
        sources: sources.collect(),
    }
}
