//! Whether it lives, whether it is ready, and the numbers for Prometheus. No
//! label is ever text from outside but the names of sinks, which are ours.

use std::fmt::Write as _;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, header};
use serde_json::json;

use crate::call::{Answer, Call, json};
use crate::problem::Problem;

pub(crate) async fn alive(_: Call) -> Answer {
    json(&json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}

pub(crate) async fn ready(call: Call) -> Answer {
    call.app.store.now().await?;
    json(&json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}

/// Metrics as they are gathered.
#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string can't fail.
        let _ = writeln!(
            self.0,
            "# HELP tidings_{name} {help}\n# TYPE tidings_{name} {kind}"
        );
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let escaped = |text: &str| {
            text.replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n")
        };
        let labels: Vec<_> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        let _ = writeln!(self.0, "tidings_{name}{labels} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }
}

pub(crate) async fn metrics(call: Call) -> Answer {
    let (app, store) = (&call.app, &call.app.store);
    let stats = store.stats().await?;
    let mut text = Text::default();
    text.family("frontier_urls", "gauge", "URLs of the frontier by status");
    for (status, count) in &stats.by_status {
        text.sample("frontier_urls", &[("status", status)], *count as f64);
    }
    text.family(
        "frontier_found_urls",
        "gauge",
        "URLs of the frontier by how they were found",
    );
    for (origin, count) in &stats.by_origin {
        text.sample("frontier_found_urls", &[("origin", origin)], *count as f64);
    }
    text.gauge("hosts", "hosts that are known", stats.hosts as f64);
    let overdue = store.longest_overdue().await?.unwrap_or_default();
    text.gauge(
        "frontier_overdue_seconds",
        "how late the first URL is",
        overdue.as_secs_f64(),
    );
    let (feeds, _) = store.feed_demand().await?;
    text.gauge("feeds", "feeds that are polled", feeds as f64);
    text.family("polls_total", "counter", "polls of feeds that have ended");
    text.sample("polls_total", &[], store.polls().await? as f64);
    let (now, sinks) = (store.now().await?, store.outbox().await?);
    for (name, kind, help) in [
        ("sink_waiting", "gauge", "documents that wait for a sink"),
        ("sink_dead", "gauge", "documents that a sink could not take"),
        (
            "sink_delivered_total",
            "counter",
            "documents that a sink has accepted",
        ),
        (
            "sink_lag_seconds",
            "gauge",
            "how long the first document has waited",
        ),
    ] {
        text.family(name, kind, help);
        for state in &sinks {
            let value = match name {
                "sink_waiting" => state.waiting as f64,
                "sink_dead" => state.dead as f64,
                "sink_delivered_total" => state.delivered as f64,
                _ => state
                    .oldest
                    .map_or(0.0, |oldest| now.since(oldest).as_secs_f64()),
            };
            text.sample(name, &[("sink", &state.sink)], value);
        }
    }
    let answered = app.answered.all();
    text.family(
        "http_requests_total",
        "counter",
        "requests by route and status",
    );
    for ((route, status), (count, _)) in &answered {
        let labels = [("route", *route), ("status", &status.to_string())];
        text.sample("http_requests_total", &labels, *count as f64);
    }
    text.family(
        "http_request_seconds_total",
        "counter",
        "time that requests took, by route and status",
    );
    for ((route, status), (_, time)) in &answered {
        let labels = [("route", *route), ("status", &status.to_string())];
        text.sample("http_request_seconds_total", &labels, time.as_secs_f64());
    }
    text.gauge("streams", "open live streams", app.open_streams() as f64);
    text.gauge(
        "sessions",
        "people who are logged in",
        app.access.sessions() as f64,
    );
    let mut response = Response::new(Body::from(text.0));
    let kind = HeaderValue::from_str("text/plain; version=0.0.4; charset=utf-8");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, kind.map_err(Problem::internal)?);
    Ok(response)
}
