//! The loops that a process runs, and what they share: one store, one door to
//! the outside. Everything else they say to each other through the store.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use serde::Serialize;
use tidings_engine::{
    Deliverer, FetchContext, FetchOptions, PageArchive, PollOptions, PollReport, Poller, Worker,
};
use tidings_net::{Client, NetOptions};
use tidings_server::{Server, ServerOptions};
use tidings_sinks::SinkConfig;
use tidings_store::Store;
use tokio::sync::watch;

use crate::config::Config;
use crate::failure::Failure;
use crate::{output, sinks};

/// What a process can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Asks feeds and sitemaps for news
    Poll,
    /// Fetches pages and makes documents of them
    Fetch,
    /// Hands documents to the sinks
    Deliver,
    /// Serves the API and the dashboard
    Serve,
}

impl Role {
    /// Everything that is configured.
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
    /// Until it is run.
    server: Mutex<Option<Server>>,
    dashboard: Option<Dashboard>,
}

/// Where the dashboard is, and the token that the first start made.
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
        let client = Client::new(net).context("the network can't be used")?;
        let outside = || FetchContext {
            lease: config.lease,
            ..FetchContext::new(client.clone(), store.clone())
        };
        let poller = || Arc::new(Poller::new(outside(), poll_options(config)));
        let worker = || Arc::new(Worker::new(outside(), work_options(config)));
        // Before the first document: it gets its orders when it is stored.
        let deliverer = match roles.contains(&Role::Deliver) {
            false => None,
            true => {
                let deliverer = sinks::deliverer(config, store)?;
                let registered = deliverer.register(|name| sinks::wants_duplicates(config, name));
                registered.await.context("the sinks can't be made known")?;
                Some(Arc::new(deliverer))
            }
        };
        let server = match roles.contains(&Role::Serve) {
            false => None,
            true => Some(serve(store, client.clone(), config).await?),
        };
        Ok(Self {
            dashboard: server.as_ref().map(|server| Dashboard {
                dashboard: format!("http://{}/", server.address()),
                token: server.first_token().map(str::to_owned),
            }),
            server: Mutex::new(server),
            deliverer,
            poller: roles.contains(&Role::Poll).then(poller),
            worker: roles.contains(&Role::Fetch).then(worker),
        })
    }

    pub(crate) fn worker(&self) -> Option<&Arc<Worker>> {
        self.worker.as_ref()
    }

    /// Tells where the dashboard is, and once how to get in.
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
        let (end, ending) = watch::channel(false);
        let asked = || {
            let mut ending = ending.clone();
            async move {
                // A sender that is gone means the same.
                let _ = ending.wait_for(|end| *end).await;
            }
        };
        // One that can't go on ends all: half of a process would go unnoticed.
        let give_up = || {
            // The loops hold receivers until they have ended.
            let _ = end.send(true);
        };
        let polling = async {
            match &self.poller {
                Some(poller) => poller.run(asked(), polled).await.inspect_err(|_| give_up()),
                None => Ok(()),
            }
        };
        let fetching = async {
            match &self.worker {
                Some(worker) => worker.run(asked()).await.inspect_err(|_| give_up()),
                None => Ok(()),
            }
        };
        let delivering = async {
            if let Some(deliverer) = &self.deliverer {
                deliverer.run(asked()).await;
            }
        };
        let server = self
            .server
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let serving = async {
            match server {
                Some(server) => server.run(asked()).await,
                None => Ok(()),
            }
        };
        let stopping = async {
            tokio::select! {
                () = stop => {}
                () = asked() => {}
            }
            give_up();
        };
        let (polled, fetched, (), served, ()) =
            tokio::join!(polling, fetching, delivering, serving, stopping);
        served?;
        polled.context("feeds can't be polled")?;
        fetched.context("pages can't be fetched")
    }
}

async fn serve(store: &Store, client: Client, config: &Config) -> Result<Server, Failure> {
    let context = sinks::context(config)?;
    let search = config.sinks.iter().find_map(|sink| match &sink.config {
        SinkConfig::Search(search) => Some(search.folder(&context)),
        _ => None,
    });
    let options = ServerOptions {
        public_hosts: config.server.public_hosts.clone(),
        search_folder: search,
        settings: config.server.shown.clone(),
        ..ServerOptions::new(config.server.bind)
    };
    let server = Server::bind(options, store.clone(), client).await;
    server.map_err(|error| Failure::Command(error.into()))
}

fn poll_options(config: &Config) -> PollOptions {
    PollOptions {
        // Whoever adds a source, here or elsewhere, watches for its first news.
        check_interval: Duration::from_secs(2),
        concurrency: config.polls_at_once,
        lease: config.lease * 5,
        collect_interval: config.collect_every,
        ..PollOptions::default()
    }
}

fn work_options(config: &Config) -> FetchOptions {
    let options = FetchOptions::default();
    let pages = || PageArchive::in_folder(config.data_dir().join("pages"));
    FetchOptions {
        concurrency: config.fetch.at_once,
        threads: config.fetch.cores.unwrap_or(options.threads),
        lease: config.lease,
        page_archive: config.fetch.keep_html.then(pages),
        outbox_max_pending: config.outbox_bound,
        crash_journal: Some(config.data_dir().join("readings")),
        ..options
    }
}
