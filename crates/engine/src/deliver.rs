//! Documents to sinks: for each sink a loop of its own that claims orders of the
//! outbox, hands the documents over, and writes down what the sink said of each.
//! One that is down waits by itself and holds up no other.

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
use tidings_store::{Delivery, DeliveryVerdict, FrontierId, Result, Store, StoredDocument};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use crate::chance::random;
use crate::work::stored_document;
use backoff::{after_attempt, after_outage};

/// How documents are delivered.
#[derive(Debug, Clone, Copy)]
pub struct DeliverOptions {
    /// How long a batch may take before another deliverer may have it.
    pub lease: Duration,
    /// The longest sleep between two looks for orders.
    pub every: Duration,
}

impl Default for DeliverOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(120),
            every: Duration::from_secs(1),
        }
    }
}

/// How often a file sink is asked to finish files that are complete.
const TIDY_EVERY: Duration = Duration::from_secs(60);

/// Delivers to all sinks that are configured.
#[derive(Debug)]
pub struct Deliverer {
    store: Store,
    sinks: Vec<Delivering>,
    options: DeliverOptions,
}

#[derive(Debug)]
struct Delivering {
    sink: Arc<dyn Sink>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicU64,
    retried: AtomicU64,
    dead: AtomicU64,
}

/// What this process did for one sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SinkTally {
    pub sink: String,
    pub accepted: u64,
    pub retried: u64,
    pub dead: u64,
}

impl Deliverer {
    pub fn new(store: Store, sinks: Vec<Box<dyn Sink>>, options: DeliverOptions) -> Self {
        let delivering = |sink: Box<dyn Sink>| Delivering {
            sink: sink.into(),
            counts: Counts::default(),
        };
        Self {
            store,
            sinks: sinks.into_iter().map(delivering).collect(),
            options,
        }
    }

    /// Makes the sinks known, so that documents get orders for them. Those that
    /// are no longer configured get none.
    pub async fn register(&self, wants_duplicates: impl Fn(&str) -> bool) -> Result<()> {
        for old in self.store.sinks().await? {
            if !self.sinks.iter().any(|known| known.sink.name() == old) {
                warn!(
                    sink = old,
                    "a sink is no longer configured; it gets no orders"
                );
                self.store.put_sink(&old, false, false).await?;
            }
        }
        for known in &self.sinks {
            let name = known.sink.name();
            self.store
                .put_sink(name, true, wants_duplicates(name))
                .await?;
        }
        Ok(())
    }

    pub fn tally(&self) -> Vec<SinkTally> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let tally = |known: &Delivering| SinkTally {
            sink: known.sink.name().to_owned(),
            accepted: read(&known.counts.accepted),
            retried: read(&known.counts.retried),
            dead: read(&known.counts.dead),
        };
        self.sinks.iter().map(tally).collect()
    }

    /// Delivers until `stop` is done; what is under way is finished.
    pub async fn run(self: &Arc<Self>, stop: impl Future<Output = ()>) {
        let (end, ending) = watch::channel(false);
        let mut loops = JoinSet::new();
        for at in 0..self.sinks.len() {
            let (deliverer, ending) = (Arc::clone(self), ending.clone());
            loops.spawn(async move { deliverer.deliver_on(at, ending).await });
        }
        drop(ending);
        stop.await;
        // The loops hold receivers until they have ended.
        let _ = end.send(true);
        while let Some(ended) = loops.join_next().await {
            if let Err(error) = ended {
                warn!(%error, "a deliverer broke off; its leases will end");
            }
        }
    }

    /// One sink, until it is asked to end.
    async fn deliver_on(&self, at: usize, mut ending: watch::Receiver<bool>) {
        let known = &self.sinks[at];
        let name = known.sink.name();
        let mut failures = 0;
        let mut tidied = tokio::time::Instant::now();
        while !*ending.borrow() {
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
                    warn!(%error, sink = name, "orders can't be had now");
                    self.options.every
                }
            };
            if tidied.elapsed() >= TIDY_EVERY {
                tidied = tokio::time::Instant::now();
                known.sink.deliver(&[], Timestamp::now()).await;
            }
            tokio::select! {
                () = sleep(pause) => {}
                _ = ending.changed() => {}
            }
        }
    }

    async fn until_due(&self, sink: &str) -> Duration {
        let every = self.options.every;
        let due = async {
            let due = self.store.next_delivery_due(sink).await.ok()??;
            let now = self.store.now().await.ok()?;
            Some(due.since(now))
        };
        // Orders that are leased look due later; new ones come any time.
        due.await
            .unwrap_or(every)
            .clamp(Duration::from_millis(20), every)
    }

    /// Claims, delivers and settles once.
    async fn deliver_batch(&self, known: &Delivering) -> Result<Delivered> {
        let name = known.sink.name();
        let limits = known.sink.limits();
        let most = u32::try_from(limits.max_docs).unwrap_or(u32::MAX).max(1);
        let orders = self
            .store
            .claim_deliveries(name, most, self.options.lease)
            .await?;
        if orders.is_empty() {
            return Ok(Delivered::Nothing);
        }
        let ids: Vec<FrontierId> = orders.iter().map(|order| order.id).collect();
        let documents = self.store.documents(&ids).await?;
        let (batch, mut verdicts) = pair(&orders, &documents);
        let documents: Vec<Document> = batch.iter().map(|(_, document)| document.clone()).collect();
        let said = self.hand_over(known, &documents).await;
        let mut has_accepted = false;
        for ((order, _), verdict) in batch.into_iter().zip(said) {
            has_accepted |= verdict == Verdict::Accepted;
            verdicts.push((order.clone(), settled(&order, verdict)));
        }
        known.count(&verdicts);
        self.store.complete_deliveries(name, &verdicts).await?;
        let has_ended = verdicts
            .iter()
            .any(|(_, verdict)| matches!(verdict, DeliveryVerdict::Dead { .. }));
        debug!(sink = name, orders = orders.len(), "delivered");
        Ok(match has_accepted || has_ended {
            true => Delivered::Some,
            false => Delivered::Refused,
        })
    }

    /// What the sink says; a sink that breaks or hangs says "not now".
    async fn hand_over(&self, known: &Delivering, documents: &[Document]) -> Vec<Verdict> {
        let not_now = |error: &str| {
            let verdict = Verdict::Retry {
                error: error.to_owned(),
                after: None,
            };
            vec![verdict; documents.len()]
        };
        // Settled while the lease is still ours.
        let limit = self.options.lease * 3 / 4;
        let deliver = AssertUnwindSafe(known.sink.deliver(documents, Timestamp::now()));
        match timeout(limit, catch(deliver)).await {
            Ok(Ok(verdicts)) if verdicts.len() == documents.len() => verdicts,
            Ok(Ok(_)) => not_now("the sink did not speak of every document"),
            Ok(Err(())) => not_now("the sink broke; that is a defect of ours"),
            Err(_) => not_now("the sink took too long"),
        }
    }
}

enum Delivered {
    Nothing,
    Some,
    /// Everything was put off: the sink is down, or full.
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

type Settlement = (Delivery, DeliveryVerdict);

/// Orders with their documents, and verdicts on those that have none.
fn pair(
    orders: &[Delivery],
    stored: &[StoredDocument],
) -> (Vec<(Delivery, Document)>, Vec<Settlement>) {
    let by_id: HashMap<FrontierId, &StoredDocument> = stored
        .iter()
        .map(|document| (document.frontier_id, document))
        .collect();
    let (mut batch, mut ended) = (Vec::with_capacity(orders.len()), Vec::new());
    for order in orders {
        let document = by_id
            .get(&order.id)
            .ok_or_else(|| "the document is gone".to_owned())
            .and_then(|stored| stored_document(stored).map_err(|error| error.to_string()));
        match document {
            Ok(document) => batch.push((order.clone(), document)),
            Err(reason) => ended.push((order.clone(), DeliveryVerdict::Dead { reason })),
        }
    }
    (batch, ended)
}

fn settled(order: &Delivery, verdict: Verdict) -> DeliveryVerdict {
    match verdict {
        Verdict::Accepted => DeliveryVerdict::Accepted,
        Verdict::Dead { reason } => DeliveryVerdict::Dead { reason },
        Verdict::Retry { error, after } => DeliveryVerdict::Retry {
            after: after.unwrap_or_else(|| after_attempt(order.attempt, random())),
            error,
        },
    }
}

impl Delivering {
    fn count(&self, verdicts: &[Settlement]) {
        for (order, verdict) in verdicts {
            let count = match verdict {
                DeliveryVerdict::Accepted => &self.counts.accepted,
                DeliveryVerdict::Retry { .. } => &self.counts.retried,
                DeliveryVerdict::Dead { reason } => {
                    info!(sink = self.sink.name(), id = %order.id, reason, "a delivery was given up");
                    &self.counts.dead
                }
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
