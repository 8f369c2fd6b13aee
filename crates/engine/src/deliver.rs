//! Delivery of documents to sinks: one loop per sink that claims deliveries of the
//! outbox, hands the documents to the sink, and completes each delivery with the
//! sink's verdict. A sink that is down backs off alone and holds up no other.

mod backoff;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use tidings_document::Document;
use tidings_sinks::{Sink, Verdict};
use tidings_store::{
    Delivery, DeliveryVerdict, FrontierId, Result, SinkService, Store, StoredDocument,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, error, info, warn};

use crate::metrics::LoopMetrics;
use crate::rng::random;
use crate::stored_document::stored_document;
use backoff::{after_attempt, after_outage};

/// Options of a deliverer.
#[derive(Debug, Clone, Copy)]
pub struct DeliverOptions {
    /// How long a batch may take before another deliverer may claim it.
    pub lease: Duration,
    /// The longest sleep between two claims.
    pub check_interval: Duration,
    /// How often a sink gets an empty batch, so that file sinks finish complete files.
    pub flush_interval: Duration,
}

impl Default for DeliverOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(120),
            check_interval: Duration::from_secs(1),
            flush_interval: Duration::from_secs(60),
        }
    }
}

/// Delivers to all configured sinks.
#[derive(Debug)]
pub struct Deliverer {
    store: Store,
    sinks: Vec<SinkLoop>,
    options: DeliverOptions,
    /// The node whose files local sinks write.
    node: Option<String>,
    metrics: Arc<LoopMetrics>,
}

#[derive(Debug)]
struct SinkLoop {
    sink: Arc<dyn Sink>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicU64,
    retried: AtomicU64,
    dead: AtomicU64,
}

/// Deliveries of this process to one sink, by verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SinkTally {
    pub sink: String,
    pub accepted: u64,
    pub retried: u64,
    pub dead: u64,
}

impl Deliverer {
    pub fn new(store: Store, sinks: Vec<Box<dyn Sink>>, options: DeliverOptions) -> Self {
        let sink_loop = |sink: Box<dyn Sink>| SinkLoop {
            sink: sink.into(),
            counts: Counts::default(),
        };
        Self {
            store,
            sinks: sinks.into_iter().map(sink_loop).collect(),
            options,
            node: None,
            metrics: Arc::default(),
        }
    }

    /// Records how long batches take.
    pub fn with_metrics(mut self, metrics: &Arc<LoopMetrics>) -> Self {
        for known in &self.sinks {
            metrics.expect_sink(known.sink.name());
        }
        self.metrics = Arc::clone(metrics);
        self
    }

    /// Serves local sinks only if they belong to this node, or to none yet.
    pub fn on_node(mut self, node: String) -> Self {
        self.node = Some(node);
        self
    }

    /// Registers the sinks, so that documents get deliveries for them. Sinks of
    /// other processes stay as they are, and one that was disabled stays disabled.
    pub async fn register(&self, wants_duplicates: impl Fn(&str) -> bool) -> Result<()> {
        for known in &self.sinks {
            let name = known.sink.name();
            self.store
                .register_sink(name, wants_duplicates(name))
                .await?;
        }
        Ok(())
    }

    pub fn tally(&self) -> Vec<SinkTally> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let tally = |known: &SinkLoop| SinkTally {
            sink: known.sink.name().to_owned(),
            accepted: read(&known.counts.accepted),
            retried: read(&known.counts.retried),
            dead: read(&known.counts.dead),
        };
        self.sinks.iter().map(tally).collect()
    }

    /// Delivers until `stop` is done; batches in flight are finished.
    pub async fn run(self: &Arc<Self>, stop: impl Future<Output = ()>) {
        let (end, ending) = watch::channel(false);
        let mut loops = JoinSet::new();
        for at in 0..self.sinks.len() {
            let (deliverer, ending) = (Arc::clone(self), ending.clone());
            loops.spawn(async move { deliverer.keep_delivering(at, ending).await });
        }
        drop(ending);
        stop.await;
        // The loops hold receivers until they have ended.
        let _ = end.send(true);
        while let Some(ended) = loops.join_next().await {
            if let Err(error) = ended {
                warn!(%error, "delivery task panicked; leases will expire");
            }
        }
    }

    /// Runs the loop of one sink, again after a panic: the others do not notice, and
    /// its leases expire.
    async fn keep_delivering(&self, at: usize, ending: watch::Receiver<bool>) {
        let deliver = || AssertUnwindSafe(self.deliver_loop(at, ending.clone()));
        while catch(deliver()).await.is_err() {
            let sink = self.sinks[at].sink.name();
            error!(sink, "delivery loop panicked; restarted");
            sleep(self.options.check_interval).await;
        }
    }

    /// Delivers to one sink until it is stopped: a batch, a pause by its result, and
    /// now and then a flush.
    async fn deliver_loop(&self, at: usize, mut ending: watch::Receiver<bool>) {
        let known = &self.sinks[at];
        let name = known.sink.name();
        let mut failures = 0;
        let mut flushed = tokio::time::Instant::now();
        let mut service = Service::default();
        let mut is_installed = false;
        while !*ending.borrow() {
            if !self.may_deliver(known, &mut service).await {
                tokio::select! {
                    () = sleep(self.options.check_interval) => {}
                    _ = ending.changed() => {}
                }
                continue;
            }
            if !is_installed {
                is_installed = true;
                self.install(known).await;
            }
            let pause = match self.deliver_batch(known).await {
                Ok(Delivered::Nothing) => self.until_due(name).await,
                Ok(Delivered::Some) => {
                    failures = 0;
                    Duration::ZERO
                }
                Ok(Delivered::Refused) => {
                    failures += 1;
                    after_outage(failures)
                }
                Err(error) => {
                    warn!(%error, sink = name, "cannot claim deliveries");
                    self.options.check_interval
                }
            };
            if flushed.elapsed() >= self.options.flush_interval {
                flushed = tokio::time::Instant::now();
                // There is no verdict on nothing: only the panic or timeout is logged.
                self.send(known, &[]).await;
            }
            tokio::select! {
                () = sleep(pause) => {}
                _ = ending.changed() => {}
            }
        }
    }

    /// Creates what the sink needs on its server before the first document comes. What
    /// fails here is repeated by the first delivery.
    async fn install(&self, known: &SinkLoop) {
        let install = AssertUnwindSafe(known.sink.install(Timestamp::now()));
        let installed = timeout(self.options.lease * 3 / 4, catch(install)).await;
        let findings = match installed {
            Ok(Ok(report)) => report.lines,
            _ => Vec::new(),
        };
        for finding in findings {
            if let Err(error) = finding.result {
                let (sink, what) = (known.sink.name(), finding.what);
                warn!(sink, what, error, "cannot install what the sink needs");
            }
        }
    }

    /// Whether the sink is enabled and on this node. Asks the store once in an
    /// interval, which also records that the sink is served.
    async fn may_deliver(&self, known: &SinkLoop, service: &mut Service) -> bool {
        let is_fresh = |at: tokio::time::Instant| at.elapsed() < self.options.check_interval;
        if service.checked_at.is_some_and(is_fresh) {
            return service.state == Some(SinkService::Served);
        }
        let name = known.sink.name();
        let node = self.node.as_deref().filter(|_| known.sink.is_local());
        let state = match self.store.serve_sink(name, node).await {
            Ok(state) => state,
            Err(error) => {
                warn!(%error, sink = name, "cannot read the state of the sink");
                return false;
            }
        };
        service.checked_at = Some(tokio::time::Instant::now());
        if service.state.as_ref() != Some(&state) {
            known.log_service(&state, service.state.is_some());
        }
        let may_deliver = state == SinkService::Served;
        service.state = Some(state);
        may_deliver
    }

    async fn until_due(&self, sink: &str) -> Duration {
        let interval = self.options.check_interval;
        let due = async {
            let due = self.store.next_delivery_due(sink).await.ok()??;
            let now = self.store.now().await.ok()?;
            Some(due.since(now))
        };
        // Leased deliveries look due later; new ones may come any time.
        due.await
            .unwrap_or(interval)
            .clamp(Duration::from_millis(20), interval)
    }

    /// Claims, delivers and completes one batch.
    async fn deliver_batch(&self, known: &SinkLoop) -> Result<Delivered> {
        let name = known.sink.name();
        let limits = known.sink.limits();
        let max = u32::try_from(limits.max_docs).unwrap_or(u32::MAX).max(1);
        let deliveries = self
            .store
            .claim_deliveries(name, max, limits.max_bytes as u64, self.options.lease)
            .await?;
        if deliveries.is_empty() {
            return Ok(Delivered::Nothing);
        }
        let ids: Vec<FrontierId> = deliveries.iter().map(|delivery| delivery.id).collect();
        let documents = self.store.documents(&ids).await?;
        let count = deliveries.len();
        let (batch, documents, mut verdicts) = pair(deliveries, documents);
        let results = self.send(known, &documents).await;
        drop(documents);
        let mut has_accepted = false;
        for (delivery, verdict) in batch.into_iter().zip(results) {
            has_accepted |= verdict == Verdict::Accepted;
            let completed = completion(&delivery, verdict);
            verdicts.push((delivery, completed));
        }
        known.count(&verdicts);
        self.store.complete_deliveries(name, &verdicts).await?;
        let has_ended = verdicts
            .iter()
            .any(|(_, verdict)| matches!(verdict, DeliveryVerdict::Dead { .. }));
        debug!(sink = name, deliveries = count, "completed deliveries");
        Ok(match has_accepted || has_ended {
            true => Delivered::Some,
            false => Delivered::Refused,
        })
    }

    /// The verdicts of the sink; a sink that panics or hangs is retried.
    async fn send(&self, known: &SinkLoop, documents: &[Document]) -> Vec<Verdict> {
        let retry = |error: &str| {
            warn!(sink = known.sink.name(), error, "batch not delivered");
            let verdict = Verdict::Retry {
                error: error.to_owned(),
                after: None,
            };
            vec![verdict; documents.len()]
        };
        // Completed while the lease is still held.
        let limit = self.options.lease * 3 / 4;
        let deliver = AssertUnwindSafe(known.sink.deliver(documents, Timestamp::now()));
        let start = std::time::Instant::now();
        let delivered = timeout(limit, catch(deliver)).await;
        if !documents.is_empty() {
            let name = known.sink.name();
            self.metrics.record_batch(name, start.elapsed());
        }
        match delivered {
            Ok(Ok(verdicts)) if verdicts.len() == documents.len() => verdicts,
            Ok(Ok(_)) => retry("the sink returned no verdict on some documents"),
            Ok(Err(())) => retry("the sink panicked; please report this bug"),
            Err(_) => retry("the sink timed out"),
        }
    }
}

/// What the store said last about a sink, and when.
#[derive(Default)]
struct Service {
    state: Option<SinkService>,
    checked_at: Option<tokio::time::Instant>,
}

enum Delivered {
    Nothing,
    Some,
    /// Every delivery was deferred: the sink is down, or full.
    Refused,
}

/// Runs a future; a panic inside is an error.
async fn catch<T>(future: AssertUnwindSafe<impl Future<Output = T>>) -> std::result::Result<T, ()> {
    let mut future = std::pin::pin!(future.0);
    std::future::poll_fn(|context| {
        let poll = AssertUnwindSafe(|| future.as_mut().poll(context));
        match std::panic::catch_unwind(poll) {
            Ok(poll) => poll.map(Ok),
            Err(_) => std::task::Poll::Ready(Err(())),
        }
    })
    .await
}

type CompletedDelivery = (Delivery, DeliveryVerdict);

/// Deliveries, their documents in the same order, and verdicts on those without one.
/// What is stored is freed document by document as it is parsed.
fn pair(
    deliveries: Vec<Delivery>,
    stored: Vec<StoredDocument>,
) -> (Vec<Delivery>, Vec<Document>, Vec<CompletedDelivery>) {
    let mut by_id: HashMap<FrontierId, StoredDocument> = stored
        .into_iter()
        .map(|document| (document.frontier_id, document))
        .collect();
    let (mut batch, mut documents) = (Vec::with_capacity(deliveries.len()), Vec::new());
    let mut ended = Vec::new();
    for delivery in deliveries {
        let document = by_id
            .remove(&delivery.id)
            .ok_or_else(|| "the document was deleted".to_owned())
            .and_then(|stored| stored_document(&stored).map_err(|error| error.to_string()));
        match document {
            Ok(document) => {
                batch.push(delivery);
                documents.push(document);
            }
            Err(reason) => ended.push((delivery, DeliveryVerdict::Dead { reason })),
        }
    }
    (batch, documents, ended)
}

fn completion(delivery: &Delivery, verdict: Verdict) -> DeliveryVerdict {
    match verdict {
        Verdict::Accepted => DeliveryVerdict::Accepted,
        Verdict::Dead { reason } => DeliveryVerdict::Dead { reason },
        Verdict::Retry { error, after } => DeliveryVerdict::Retry {
            after: after.unwrap_or_else(|| after_attempt(delivery.attempt, random())),
            error,
        },
    }
}

impl SinkLoop {
    fn log_service(&self, state: &SinkService, is_change: bool) {
        let sink = self.sink.name();
        match state {
            SinkService::Served if is_change => info!(sink, "deliveries resumed"),
            SinkService::Served => {}
            SinkService::Disabled => {
                warn!(
                    sink,
                    "sink is disabled; enable it with: tidings sink enable {sink}"
                );
            }
            SinkService::OtherNode(node) => {
                warn!(
                    sink,
                    node,
                    "sink is served by {node}; if that node is gone: tidings sink move {sink}"
                );
            }
            SinkService::Removed => warn!(sink, "sink was removed; a restart registers it again"),
        }
    }

    fn count(&self, verdicts: &[CompletedDelivery]) {
        for (delivery, verdict) in verdicts {
            let count = match verdict {
                DeliveryVerdict::Accepted => &self.counts.accepted,
                DeliveryVerdict::Retry { .. } => &self.counts.retried,
                DeliveryVerdict::Dead { reason } => {
                    info!(sink = self.sink.name(), id = %delivery.id, reason, "delivery failed permanently");
                    &self.counts.dead
                }
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
