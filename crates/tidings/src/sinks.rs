//! Builds the configured sinks, with an HTTP client of their own: what sinks may
//! reach is open to nothing else.

use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use tidings_document::Document;
use tidings_engine::{DeliverOptions, Deliverer, LoopMetrics, PageArchive};
use tidings_net::Client;
use tidings_sinks::{Context, Page, PageSource, Sink, SinkConfig, build};
use tidings_store::Store;
use tracing::warn;

use crate::config::{Config, NamedSink};
use crate::failure::Failure;
use crate::node;

/// The page archive, as sinks read it.
#[derive(Debug)]
struct ArchivedPages(PageArchive);

#[async_trait]
impl PageSource for ArchivedPages {
    async fn page(&self, document: &Document) -> std::io::Result<Option<Page>> {
        let Some(name) = document.raw_html.clone() else {
            return Ok(None);
        };
        let pages = self.0.clone();
        let read = tokio::task::spawn_blocking(move || pages.read(&name)).await;
        match read.map_err(std::io::Error::other)? {
            Ok(body) => Ok(Some(Page {
                body,
                headers: Vec::new(),
            })),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The HTTP client, folder and page archive that sinks are built with.
pub(crate) fn context(config: &Config) -> Result<Context, Failure> {
    let client =
        Client::new(config.net.sink_options()?).context("cannot create the HTTP client")?;
    let pages = PageArchive::in_folder(config.data_dir().join("pages"));
    Ok(Context {
        pages: Some(Arc::new(ArchivedPages(pages))),
        ..Context::new(client, config.data_dir())
    })
}

/// One sink.
pub(crate) fn build_one(sink: &NamedSink, context: &Context) -> Result<Box<dyn Sink>, Failure> {
    build(&sink.name, &sink.config, context).map_err(|error| Failure::InvalidConfig(error.into()))
}

/// The sinks that show the last collection run. One that can't be built here is left
/// out: a process that delivers refuses to start then, the others run without it.
pub(crate) fn run_sinks(config: &Config) -> Result<Vec<Arc<dyn Sink>>, Failure> {
    let shows_runs = |sink: &&NamedSink| matches!(sink.config, SinkConfig::Firestore(_));
    let named: Vec<_> = config.sinks.iter().filter(shows_runs).collect();
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let context = context(config)?;
    let mut sinks: Vec<Arc<dyn Sink>> = Vec::new();
    for sink in named {
        match build(&sink.name, &sink.config, &context) {
            Ok(built) => sinks.push(built.into()),
            Err(error) => warn!(%error, "collection runs are not reported to this sink"),
        }
    }
    Ok(sinks)
}

/// All sinks, and the loop that delivers to them.
pub(crate) fn deliverer(
    config: &Config,
    store: &Store,
    metrics: &Arc<LoopMetrics>,
) -> Result<Deliverer, Failure> {
    let context = context(config)?;
    let sinks: Result<Vec<_>, _> = config
        .sinks
        .iter()
        .map(|sink| build_one(sink, &context))
        .collect();
    let options = DeliverOptions {
        lease: config.lease * 2,
        ..DeliverOptions::default()
    };
    let node = node::id(config.data_dir())?;
    let deliverer = Deliverer::new(store.clone(), sinks?, options);
    Ok(deliverer.with_metrics(metrics).on_node(node))
}

/// Whether a sink receives documents that duplicate the text of another.
pub(crate) fn wants_duplicates(config: &Config, name: &str) -> bool {
    let named = config.sinks.iter().find(|sink| sink.name == name);
    named.is_some_and(|sink| sink.wants_duplicates)
}
