//! What all requests share: the store, the HTTP client, sessions and metrics. State
//! that must survive a restart is in the store; what is here may be lost.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;
use tidings_engine::{FetchContext, Poller};
use tidings_net::Client;
use tidings_sinks::{SearchError, SearchIndex};
use tidings_store::Store;

use crate::access::Access;
use crate::event_tail::EventTail;
use crate::expensive::ExpensiveLimit;
use crate::history::History;
use crate::integrity::Integrity;
use crate::metrics::RequestMetrics;
use crate::open_streams::OpenStreams;
use crate::options::ServerOptions;

#[derive(Debug)]
pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) client: Client,
    /// For polls that a user starts; its loop never runs here.
    pub(crate) poller: Arc<Poller>,
    pub(crate) options: ServerOptions,
    pub(crate) address: SocketAddr,
    pub(crate) access: Access,
    pub(crate) expensive: ExpensiveLimit,
    /// The OpenAPI document of the routes that are served.
    pub(crate) openapi: Json,
    pub(crate) history: Arc<History>,
    pub(crate) integrity: Arc<Integrity>,
    pub(crate) request_metrics: RequestMetrics,
    pub(crate) streams: Arc<OpenStreams>,
    pub(crate) event_tail: Arc<EventTail>,
    search: Mutex<Option<Arc<SearchIndex>>>,
}

impl App {
    pub(crate) fn new(
        options: ServerOptions,
        address: SocketAddr,
        store: Store,
        client: Client,
        openapi: Json,
    ) -> Self {
        let max_streams = options.max_connections - options.max_connections / 4;
        let context = FetchContext::new(client.clone(), store.clone());
        Self {
            poller: Arc::new(Poller::new(context, options.poll.clone())),
            access: Access::new(store.clone()),
            expensive: ExpensiveLimit::default(),
            store,
            client,
            options,
            address,
            openapi,
            history: Arc::default(),
            integrity: Arc::default(),
            request_metrics: RequestMetrics::default(),
            streams: Arc::new(OpenStreams::new(max_streams)),
            event_tail: Arc::default(),
            search: Mutex::default(),
        }
    }

    /// The embedded search index: opened at first use, because the first delivery
    /// creates it.
    pub(crate) fn search(&self) -> Option<Result<Arc<SearchIndex>, SearchError>> {
        let folder = self.options.search_folder.as_ref()?;
        let mut opened = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = opened.as_ref() {
            return Some(Ok(Arc::clone(index)));
        }
        Some(SearchIndex::open(folder).map(|index| Arc::clone(opened.insert(Arc::new(index)))))
    }
}
