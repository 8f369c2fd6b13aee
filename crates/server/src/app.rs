//! What all requests share: the store, the way out, who is logged in, and the
//! counters. State that matters is in the store; what is here may be lost.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tidings_engine::{FetchContext, PollOptions, Poller};
use tidings_net::Client;
use tidings_sinks::{SearchError, SearchIndex};
use tidings_store::Store;
use tokio::sync::watch;

use crate::access::Access;
use crate::history::History;
use crate::server::ServerOptions;
use crate::tail::Tail;

#[derive(Debug)]
pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) client: Client,
    /// For polls that a person asks for; its loop is never run here.
    pub(crate) poller: Arc<Poller>,
    pub(crate) options: ServerOptions,
    pub(crate) address: SocketAddr,
    pub(crate) access: Access,
    pub(crate) history: History,
    pub(crate) answered: Answered,
    pub(crate) streams: AtomicUsize,
    pub(crate) tail: Tail,
    search: Mutex<Option<Arc<SearchIndex>>>,
    stopping: watch::Sender<bool>,
}

impl App {
    pub(crate) fn new(
        options: ServerOptions,
        address: SocketAddr,
        store: Store,
        client: Client,
    ) -> Self {
        let outside = FetchContext::new(client.clone(), store.clone());
        Self {
            poller: Arc::new(Poller::new(outside, PollOptions::default())),
            access: Access::new(store.clone()),
            store,
            client,
            options,
            address,
            history: History::default(),
            answered: Answered::default(),
            streams: AtomicUsize::new(0),
            tail: Tail::default(),
            search: Mutex::default(),
            stopping: watch::Sender::new(false),
        }
    }

    /// The embedded search: opened when it is first needed, for it is made by
    /// the first delivery.
    pub(crate) fn search(&self) -> Option<Result<Arc<SearchIndex>, SearchError>> {
        let folder = self.options.search_folder.as_ref()?;
        let mut kept = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = kept.as_ref() {
            return Some(Ok(Arc::clone(index)));
        }
        Some(SearchIndex::open(folder).map(|index| Arc::clone(kept.insert(Arc::new(index)))))
    }

    pub(crate) fn stop_streams(&self) {
        // Without receivers there is no stream to stop.
        self.stopping.send_replace(true);
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    pub(crate) fn open_streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }
}

/// How requests were answered, for the metrics.
#[derive(Debug, Default)]
pub(crate) struct Answered(Mutex<BTreeMap<RouteStatus, (u64, Duration)>>);

/// A path of the table, and a status.
type RouteStatus = (&'static str, u16);

impl Answered {
    /// `route` is a path of the table, never what a stranger typed.
    pub(crate) fn note(&self, route: &'static str, status: u16, since: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, time) = all.entry((route, status)).or_default();
        *count += 1;
        *time += since.elapsed();
    }

    pub(crate) fn all(&self) -> Vec<(RouteStatus, (u64, Duration))> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(key, value)| (*key, *value)).collect()
    }
}
