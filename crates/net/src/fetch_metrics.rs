//! Metrics of a client: responses by status class, how long they took, and their
//! bytes. Each hop of a redirect is a response of its own.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::failure::Failure;
use crate::request::Response;

/// Upper bounds in seconds: from a server next door to the longest timeout.
const BUCKETS: [f64; 11] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// The classes of responses; the last one has none.
const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "failed"];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabel {
    class: &'static str,
}

/// Metrics of all requests of a client.
#[derive(Debug)]
pub struct FetchMetrics {
    seconds: Histogram,
    responses: Family<ClassLabel, Counter>,
    bytes: Counter,
}

impl Default for FetchMetrics {
    fn default() -> Self {
        let responses = Family::<ClassLabel, Counter>::default();
        for class in CLASSES {
            drop(responses.get_or_create(&ClassLabel { class }));
        }
        Self {
            seconds: Histogram::new(BUCKETS),
            responses,
            bytes: Counter::default(),
        }
    }
}

impl FetchMetrics {
    /// `elapsed` has no time in which the request waited for others.
    pub(crate) fn record(&self, result: &Result<Response, Failure>, elapsed: Duration) {
        let class = match result {
            Ok(response) => class_of(response.status),
            Err(_) => "failed",
        };
        self.responses.get_or_create(&ClassLabel { class }).inc();
        if let Ok(response) = result {
            self.seconds.observe(elapsed.as_secs_f64());
            self.bytes.inc_by(response.wire_bytes);
        }
    }

    /// Adds these families to a registry; the values are shared, not copied.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "fetch_seconds",
            "Time from the connection to the end of the response, of this process",
            self.seconds.clone(),
        );
        registry.register(
            "fetch_responses",
            "Responses of this process by status class; failed: without one",
            self.responses.clone(),
        );
        registry.register(
            "fetch_bytes",
            "Bytes of response bodies of this process, as they were sent",
            self.bytes.clone(),
        );
    }
}

fn class_of(status: u16) -> &'static str {
    let class = usize::from(status / 100).saturating_sub(1);
    CLASSES[class.min(4)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_class() {
        let rows = [(101, "1xx"), (200, "2xx"), (304, "3xx"), (451, "4xx")];
        for (status, class) in rows.into_iter().chain([(503, "5xx"), (999, "5xx")]) {
            assert_eq!(class_of(status), class);
        }
    }
}
