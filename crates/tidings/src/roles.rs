//! The loops that a process runs, and what they share: one store, one HTTP client.
//! They communicate through the store alone.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use serde::Serialize;
use tidings_engine::{
    Deliverer, FetchContext, FetchOptions, Maintenance, PageArchive, PollOptions, PollReport,
    Poller, Worker,
};
use tidings_net::{Client, NetOptions};
use tidings_server::{Server, ServerOptions};
use tidings_sinks::SinkConfig;
use tidings_store::Store;
use tokio::sync::watch;
use tracing::info;

use crate::config::Config;
use crate::failure::Failure;
use crate::{open_files, output, sinks};

/// One loop of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Polls feeds and sitemaps
    Poll,
    /// Fetches pages and builds documents
    Fetch,
    /// Delivers documents to the sinks
    Deliver,
    /// Serves the API and the dashboard
    Serve,
}

impl Role {
    /// Every role that is enabled.
    pub(crate) fn all(config: &Config) -> Vec<Self> {
        let mut all = vec![Self::Poll, Self::Fetch, Self::Deliver];
        if config.server.is_enabled {
            all.push(Self::Serve);
        }
        all
    }
}

/// The loops of one process.
#[derive(Debug)]
pub(crate) struct Roles {
    poller: Option<Arc<Poller>>,
    worker: Option<Arc<Worker>>,
    deliverer: Option<Arc<Deliverer>>,
    /// In every process, whatever its roles.
    maintenance: Maintenance,
    /// Until it is run.
    server: Mutex<Option<Server>>,
    dashboard: Option<Dashboard>,
}

/// The address of the dashboard, and the token that the first start created.
#[derive(Debug, Serialize)]
pub(crate) struct Dashboard {
    pub(crate) dashboard: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
}

impl Roles {
    pub(crate) async fn new(
        roles: &[Role],
        store: &Store,
        net: NetOptions,
        config: &Config,
    ) -> Result<Self, Failure> {
        let client = Client::new(net).context("cannot create the HTTP client")?;
        let context = || FetchContext {
            lease: config.lease,
            ..FetchContext::new(client.clone(), store.clone())
        };
        // Shared by the loops and the server, which shows them.
        let shared = PollOptions {
            run_sinks: sinks::run_sinks(config)?,
            ..config.poll_options()
        };
        let poller = || Arc::new(Poller::new(context(), poll_options(config, &shared)));
        let worker = || Arc::new(Worker::new(context(), fetch_options(config)));
        // Before the first document: its deliveries are queued when it is stored.
        let deliverer = match roles.contains(&Role::Deliver) {
            false => None,
            true => {
                let deliverer = sinks::deliverer(config, store, &shared.metrics)?;
                let registered = deliverer.register(|name| sinks::wants_duplicates(config, name));
                registered.await.context("cannot register the sinks")?;
                Some(Arc::new(deliverer))
            }
        };
        let server = match roles.contains(&Role::Serve) {
            false => None,
            true => Some(serve(store, client.clone(), config, &shared).await?),
        };
        Ok(Self {
            dashboard: server.as_ref().map(|server| Dashboard {
                dashboard: server.url(),
                token: server.first_token().map(str::to_owned),
            }),
            server: Mutex::new(server),
            deliverer,
            maintenance: Maintenance::new(store.clone(), config.retention)
                .with_page_archive(page_archive(config)),
            poller: roles.contains(&Role::Poll).then(poller),
            worker: roles.contains(&Role::Fetch).then(worker),
        })
    }

    pub(crate) fn worker(&self) -> Option<&Arc<Worker>> {
        self.worker.as_ref()
    }

    /// Prints the address of the dashboard, and on the first start its token.
    pub(crate) fn announce(&self, json: bool) -> anyhow::Result<()> {
        let Some(dashboard) = &self.dashboard else {
            return Ok(());
        };
        if json {
            return output::json(dashboard);
        }
        output::line(&format!("Dashboard: {}", dashboard.dashboard))?;
        match &dashboard.token {
            None => Ok(()),
            Some(token) => output::line(&format!(
                "Log in with this token, which is not shown again: {token}"
            )),
        }
    }

    /// Runs all loops until `stop` is done, and then until each has ended.
    pub(crate) async fn run(
        &self,
        stop: impl Future<Output = ()>,
        polled: impl FnMut(&PollReport),
    ) -> anyhow::Result<()> {
        let (stop_sender, stop_receiver) = watch::channel(false);
        let stopped = || {
            let mut stop_receiver = stop_receiver.clone();
            async move {
                // A dropped sender means the same.
                let _ = stop_receiver.wait_for(|stop| *stop).await;
            }
        };
        // A loop that fails stops all: a process with some loops dead would go unnoticed.
        let stop_all = || {
            // The loops hold receivers until they have ended.
            let _ = stop_sender.send(true);
        };
        let polling = async {
            match &self.poller {
                Some(poller) => poller
                    .run(stopped(), polled)
                    .await
                    .inspect_err(|_| stop_all()),
                None => Ok(()),
            }
        };
        let fetching = async {
            match &self.worker {
                Some(worker) => worker.run(stopped()).await.inspect_err(|_| stop_all()),
                None => Ok(()),
            }
        };
        let delivering = async {
            if let Some(deliverer) = &self.deliverer {
                deliverer.run(stopped()).await;
            }
        };
        let maintaining = self.maintenance.run(stopped());
        let server = self
            .server
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let serving = async {
            if let Some(server) = server {
                server.run(stopped()).await;
            }
        };
        let stopping = async {
            tokio::select! {
                () = stop => {}
                () = stopped() => {}
            }
            stop_all();
        };
        let (polled, fetched, (), (), (), ()) = tokio::join!(
            polling,
            fetching,
            delivering,
            maintaining,
            serving,
            stopping
        );
        polled.context("cannot poll feeds")?;
        fetched.context("cannot fetch pages")
    }
}

async fn serve(
    store: &Store,
    client: Client,
    config: &Config,
    shared: &PollOptions,
) -> Result<Server, Failure> {
    let context = sinks::context(config)?;
    let search = config.sinks.iter().find_map(|sink| match &sink.config {
        SinkConfig::Search(search) => Some(search.folder(&context)),
        _ => None,
    });
    let options = ServerOptions {
        public_hosts: config.server.public_hosts.clone(),
        trusted_proxies: config.server.trusted_proxies.clone(),
        tls: config.server.tls.clone(),
        max_connections: max_connections(config.server.max_connections, open_files::limit()),
        search_folder: search,
        settings: config.server.settings.clone(),
        poll: shared.clone(),
        ..ServerOptions::new(config.server.bind)
    };
    let server = Server::bind(options, store.clone(), client).await;
    server.map_err(|error| Failure::Command(error.into()))
}

/// Half of the file descriptors are for the crawler, its store and its sinks.
fn max_connections(configured: usize, open_files: Option<u64>) -> usize {
    let half = open_files.and_then(|limit| usize::try_from(limit / 2).ok());
    let fitting = half.map_or(configured, |half| configured.min(half));
    if fitting < configured {
        info!(
            configured,
            max = fitting,
            open_files,
            "server.max_connections lowered to half of the open files that are allowed"
        );
    }
    fitting
}

fn poll_options(config: &Config, shared: &PollOptions) -> PollOptions {
    PollOptions {
        // Whoever adds a source, here or elsewhere, waits for its first items.
        check_interval: Duration::from_secs(2),
        concurrency: config.poll_concurrency,
        lease: config.lease * 5,
        collect_interval: config.collect_interval,
        ..shared.clone()
    }
}

fn page_archive(config: &Config) -> PageArchive {
    PageArchive::in_folder(config.data_dir().join("pages"))
}

fn fetch_options(config: &Config) -> FetchOptions {
    let options = FetchOptions::default();
    let pages = || page_archive(config);
    FetchOptions {
        concurrency: config.fetch.concurrency,
        threads: config.fetch.extract_threads.unwrap_or(options.threads),
        lease: config.lease,
        page_archive: config.fetch.archive_html.then(pages),
        outbox_max_pending: config.outbox_max_pending,
        retries: Arc::new(config.retries.clone()),
        check_interval: config.fetch.claim_interval,
        crash_journal: Some(config.data_dir().join("readings")),
        ..options
    }
}
