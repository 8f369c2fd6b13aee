//! Metrics for Prometheus in the OpenMetrics text format. Totals are read from the
//! store at each scrape; requests, polls and batches are those of this process. The only label that is not a fixed word is the name of a
//! sink, which comes from the configuration.

use std::sync::atomic::AtomicU64;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, header};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tidings_engine::MANY_FAILURES;
use tidings_net::MemoryUse;
use tidings_store::{ConnectionCounts, MaintenanceReport, Moment, OutboxState, Stats};

use crate::app::App;
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Seconds = Gauge<f64, AtomicU64>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabel {
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OriginLabel {
    origin: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SinkLabel {
    sink: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TableLabel {
    table: String,
}

pub(crate) async fn show(request: CheckedRequest) -> HandlerResult {
    let registry = collect(&request.app).await?;
    let mut body = String::new();
    text::encode(&mut body, &registry).map_err(Problem::internal)?;
    let mut response = Response::new(Body::from(body));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    Ok(response)
}

async fn collect(app: &App) -> Result<Registry, Problem> {
    let store = &app.store;
    let mut registry = Registry::with_prefix("tidings");
    let stats = store.stats().await?;
    register_frontier(&mut registry, &stats);
    if let Some(connections) = store.connections() {
        register_connections(&mut registry, connections);
    }
    let overdue = Seconds::default();
    overdue.set(
        store
            .longest_overdue()
            .await?
            .unwrap_or_default()
            .as_secs_f64(),
    );
    registry.register(
        "frontier_overdue_seconds",
        "Lag of the oldest overdue URL",
        overdue,
    );
    let (feeds, _) = store.feed_demand().await?;
    gauge(
        &mut registry,
        "feeds",
        "Feeds that are polled",
        feeds as i64,
    );
    let polls: Counter = Counter::default();
    polls.inc_by(store.polls().await? as u64);
    registry.register("polls", "Finished polls of feeds", polls);
    let (failing, broken) = store.failing_feeds(MANY_FAILURES).await?;
    gauge(
        &mut registry,
        "failing_feeds",
        "Feeds and sitemaps whose last poll failed",
        failing as i64,
    );
    gauge(
        &mut registry,
        "broken_feeds",
        "Feeds and sitemaps that failed at least 10 times in a row",
        broken as i64,
    );
    let (now, sinks) = (store.now().await?, store.outbox().await?);
    register_sinks(&mut registry, &sinks, now);
    let report = store.maintenance_report().await?;
    register_maintenance(&mut registry, report.as_ref());
    register_memory(&mut registry, app.client.memory().usage());
    app.client.metrics().register(&mut registry);
    app.options.poll.metrics.register(&mut registry);
    app.request_metrics.register(&mut registry);
    let streams = app.streams.count() as i64;
    gauge(&mut registry, "streams", "Open live streams", streams);
    let sessions = app.access.sessions() as i64;
    gauge(&mut registry, "sessions", "Dashboard sessions", sessions);
    Ok(registry)
}

fn register_connections(registry: &mut Registry, connections: ConnectionCounts) {
    let rows = [
        ("open", "Open connections to the store", connections.open),
        ("idle", "Open connections that are idle", connections.idle),
        (
            "waiting",
            "Operations that wait for a connection",
            connections.waiting,
        ),
    ];
    for (what, help, count) in rows {
        let name = format!("store_connections_{what}");
        gauge(
            registry,
            &name,
            help,
            i64::try_from(count).unwrap_or(i64::MAX),
        );
    }
}

/// Before the first run its time is 0, so that an alert notices.
fn register_maintenance(registry: &mut Registry, report: Option<&MaintenanceReport>) {
    let last_run = Seconds::default();
    last_run.set(report.map_or(0.0, |report| report.at.0 as f64 / 1000.0));
    registry.register(
        "maintenance_last_run_timestamp_seconds",
        "When expired rows were last looked for",
        last_run,
    );
    let removed = Family::<TableLabel, Counter>::default();
    for (table, count) in report.iter().flat_map(|report| &report.removed) {
        let table = table.clone();
        removed.get_or_create(&TableLabel { table }).inc_by(*count);
    }
    registry.register(
        "maintenance_removed_rows",
        "Expired rows that were removed, by table",
        removed,
    );
}

fn register_memory(registry: &mut Registry, usage: MemoryUse) {
    let rows = [
        ("used_bytes", "Memory that bodies hold", usage.used),
        ("limit_bytes", "Memory that bodies may hold", usage.limit),
        (
            "waiting",
            "Bodies that wait for memory",
            usage.waiting as u64,
        ),
    ];
    for (what, help, value) in rows {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        gauge(registry, &format!("body_memory_{what}"), help, value);
    }
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: i64) {
    let gauge: Gauge = Gauge::default();
    gauge.set(value);
    registry.register(name, help, gauge);
}

fn register_frontier(registry: &mut Registry, stats: &Stats) {
    let by_status = Family::<StatusLabel, Gauge>::default();
    for (status, count) in &stats.by_status {
        by_status.get_or_create(&StatusLabel { status }).set(*count);
    }
    registry.register("frontier_urls", "URLs by status", by_status);
    let by_origin = Family::<OriginLabel, Gauge>::default();
    for (origin, count) in &stats.by_origin {
        by_origin.get_or_create(&OriginLabel { origin }).set(*count);
    }
    registry.register("frontier_found_urls", "URLs by origin", by_origin);
    gauge(registry, "hosts", "Known hosts", stats.hosts);
}

fn register_sinks(registry: &mut Registry, sinks: &[OutboxState], now: Moment) {
    let waiting = Family::<SinkLabel, Gauge>::default();
    let dead = Family::<SinkLabel, Gauge>::default();
    let delivered = Family::<SinkLabel, Counter>::default();
    let lag = Family::<SinkLabel, Seconds>::default();
    for state in sinks {
        let label = SinkLabel {
            sink: state.sink.clone(),
        };
        waiting.get_or_create(&label).set(state.waiting);
        dead.get_or_create(&label).set(state.dead);
        let total = u64::try_from(state.delivered).unwrap_or(0);
        delivered.get_or_create(&label).inc_by(total);
        let oldest = state.oldest.map(|oldest| now.since(oldest));
        lag.get_or_create(&label)
            .set(oldest.unwrap_or_default().as_secs_f64());
    }
    registry.register("sink_waiting", "Pending deliveries by sink", waiting);
    registry.register("sink_dead", "Dead letters by sink", dead);
    registry.register("sink_delivered", "Delivered documents by sink", delivered);
    registry.register(
        "sink_lag_seconds",
        "Lag of the oldest pending delivery by sink",
        lag,
    );
}
