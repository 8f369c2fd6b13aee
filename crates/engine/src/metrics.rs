//! Metrics of the loops of this process: how polls ended, and how long sinks take.
//! What the store counts for all processes is not here.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper bounds in seconds: from a local file to the timeout of a batch.
const SINK_BUCKETS: [f64; 12] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 90.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SinkLabel {
    sink: String,
}

/// Metrics of the loops of this process.
#[derive(Debug)]
pub struct LoopMetrics {
    polls: Family<ResultLabel, Counter>,
    sinks: Family<SinkLabel, Histogram>,
}

impl Default for LoopMetrics {
    fn default() -> Self {
        Self {
            polls: Family::default(),
            sinks: Family::new_with_constructor(|| Histogram::new(SINK_BUCKETS)),
        }
    }
}

impl LoopMetrics {
    /// Shows results that did not occur yet as 0.
    pub(crate) fn expect_polls(&self, results: impl IntoIterator<Item = &'static str>) {
        for result in results {
            drop(self.polls.get_or_create(&ResultLabel { result }));
        }
    }

    pub(crate) fn record_poll(&self, result: &'static str) {
        self.polls.get_or_create(&ResultLabel { result }).inc();
    }

    /// Shows a sink that received nothing yet.
    pub(crate) fn expect_sink(&self, sink: &str) {
        drop(self.sinks.get_or_create(&sink_label(sink)));
    }

    /// The duration of one batch.
    pub(crate) fn record_batch(&self, sink: &str, duration: Duration) {
        let seconds = duration.as_secs_f64();
        self.sinks.get_or_create(&sink_label(sink)).observe(seconds);
    }

    /// Adds these families to a registry; the values are shared, not copied.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "poll_results",
            "Finished polls of this process by result",
            self.polls.clone(),
        );
        registry.register(
            "sink_seconds",
            "Duration of one batch of deliveries of this process by sink",
            self.sinks.clone(),
        );
    }
}

fn sink_label(sink: &str) -> SinkLabel {
    SinkLabel {
        sink: sink.to_owned(),
    }
}
