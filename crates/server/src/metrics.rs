//! Metrics of the HTTP server itself: requests by route and status, with their
//! durations. Routes are templates of the table, never text that a client sent.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper bounds in seconds: from a cached number to a collection run.
const DURATION_BUCKETS: [f64; 10] = [0.002, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0, 120.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteStatus {
    route: String,
    status: u16,
}

#[derive(Debug)]
pub(crate) struct RequestMetrics {
    requests: Family<RouteStatus, Counter>,
    durations: Family<RouteStatus, Histogram>,
}

impl Default for RequestMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(DURATION_BUCKETS)),
        }
    }
}

impl RequestMetrics {
    /// `route` is a path template of the table.
    pub(crate) fn record(&self, route: &str, status: u16, duration: Duration) {
        let labels = RouteStatus {
            route: route.to_owned(),
            status,
        };
        self.requests.get_or_create(&labels).inc();
        let durations = self.durations.get_or_create(&labels);
        durations.observe(duration.as_secs_f64());
    }

    /// Adds these families to a registry; the values are shared, not copied.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "http_requests",
            "HTTP requests by route and status",
            self.requests.clone(),
        );
        registry.register(
            "http_request_seconds",
            "Duration of HTTP requests by route and status",
            self.durations.clone(),
        );
    }
}
