//! `tidings sink`: the state of the sinks, their dead letters, and how to test,
//! retry, replay and rebuild them.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;
use tidings_sinks::{SinkConfig, rebuild};
use tidings_store::{FrontierId, Moment, RetriedDeadLetters, Store};

use crate::config::{Config, NamedSink};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{output, sinks, stores};

/// List and test sinks, retry dead letters, replay and rebuild
#[derive(Debug, Args)]
#[command(
    after_help = "Sinks are tables of the configuration file; docs/SINKS.md has every kind:
  [sinks.index]
  kind = \"elasticsearch\"
  url = \"https://es.example:9200\"

Examples:
  tidings sink ls
  tidings sink test index
  tidings sink dead index
  tidings sink retry index
  tidings sink replay index --since 2026-11-01T00:00:00Z
  tidings sink rebuild search"
)]
pub(crate) struct SinkArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List sinks with delivered, pending and dead documents
    Ls,
    /// Test connection, login and mapping
    Test(NamedArgs),
    /// List the dead letters of a sink, with reasons
    Dead(DeadArgs),
    /// Retry the dead letters of a sink
    Retry(NamedArgs),
    /// Deliver all documents to a sink again, or those fetched since a time
    Replay(ReplayArgs),
    /// Rebuild the embedded search from the documents
    Rebuild(NamedArgs),
}

#[derive(Debug, Args)]
struct NamedArgs {
    /// Name of the sink
    name: String,
}

#[derive(Debug, Args)]
struct DeadArgs {
    /// Name of the sink
    name: String,

    /// Max number of dead letters, the latest first
    #[arg(long, default_value_t = 100)]
    limit: u32,
}

#[derive(Debug, Args)]
struct ReplayArgs {
    /// Name of the sink
    name: String,

    /// Only documents fetched at this time or later
    #[arg(long, value_name = "TIME")]
    since: Option<Timestamp>,
}

pub(crate) fn run(args: &SinkArgs, config: &Config, json: bool) -> Result<(), Failure> {
    stores::with_store(config, async |store| match &args.what {
        What::Ls => Ok(ls(&store, config, json).await?),
        What::Test(args) => test(named(config, &args.name)?, config, json).await,
        What::Dead(args) => Ok(dead(&store, args, json).await?),
        What::Retry(args) => {
            let letters = store
                .retry_dead_letters(&args.name)
                .await
                .map_err(anyhow::Error::new)?;
            Ok(report_retried(json, letters)?)
        }
        What::Replay(args) => {
            let sink = named(config, &args.name)?;
            let known = store
                .put_sink(&sink.name, true, sink.wants_duplicates)
                .await;
            known.map_err(anyhow::Error::new)?;
            let since = args.since.map(Moment::from);
            let count = store
                .replay(&sink.name, since)
                .await
                .map_err(anyhow::Error::new)?;
            Ok(report(json, "replayed", count, "will be delivered again")?)
        }
        What::Rebuild(args) => {
            Ok(rebuild_search(&store, named(config, &args.name)?, config, json).await?)
        }
    })
}

fn report(json: bool, key: &str, count: u64, what: &str) -> anyhow::Result<()> {
    match json {
        true => output::json(&json!({ key: count })),
        false => output::line(&format!("{count} documents {what}")),
    }
}

fn report_retried(json: bool, letters: RetriedDeadLetters) -> anyhow::Result<()> {
    if json {
        return output::json(&letters);
    }
    report(json, "retried", letters.retried, "will be retried")?;
    match letters.missing_documents {
        0 => Ok(()),
        missing => output::line(&format!(
            "{missing} dead letters deleted, because their documents are not stored any more"
        )),
    }
}

fn named<'a>(config: &'a Config, name: &str) -> anyhow::Result<&'a NamedSink> {
    let found = config.sinks.iter().find(|sink| sink.name == name);
    found.with_context(|| {
        let known: Vec<_> = config.sinks.iter().map(|sink| sink.name.as_str()).collect();
        format!(
            "no sink named {name:?} is configured; configured are: {}",
            known.join(", ")
        )
    })
}

async fn ls(store: &Store, config: &Config, json: bool) -> anyhow::Result<()> {
    let states = store.outbox().await?;
    if json {
        return states.iter().try_for_each(output::json);
    }
    let mut rows = Vec::new();
    for state in &states {
        let is_configured = config.sinks.iter().any(|sink| sink.name == state.sink);
        let label = match (state.enabled, is_configured) {
            (true, _) => "on",
            (false, _) => "off",
        };
        let oldest = state.oldest.map(|oldest| format!("oldest from {oldest}"));
        rows.push([
            state.sink.clone(),
            label.to_owned(),
            format!("{} delivered", state.delivered),
            format!("{} pending", state.waiting),
            format!("{} dead", state.dead),
            oldest.unwrap_or_default(),
        ]);
    }
    let is_known = |name: &str| states.iter().any(|state| state.sink == name);
    for sink in config.sinks.iter().filter(|sink| !is_known(&sink.name)) {
        let not_yet =
            "not used yet; tidings run delivers new documents, tidings sink replay the stored ones";
        rows.push([sink.name.as_str(), "new", "", "", "", not_yet].map(str::to_owned));
    }
    output::columns(&rows)
}

async fn test(sink: &NamedSink, config: &Config, json: bool) -> Result<(), Failure> {
    let built = sinks::build_one(sink, &sinks::context(config)?)?;
    let report = built.check(Timestamp::now()).await;
    if json {
        let line = |finding: &tidings_sinks::Finding| {
            let (is_ok, said) = match &finding.result {
                Ok(said) => (true, said),
                Err(said) => (false, said),
            };
            json!({ "what": finding.what, "ok": is_ok, "said": said })
        };
        let lines: Vec<_> = report.lines.iter().map(line).collect();
        output::json(&json!({ "sink": sink.name, "ok": report.is_ok(), "findings": lines }))?;
    } else {
        output::text(&report.to_string())?;
    }
    match report.is_ok() {
        true => Ok(()),
        false => Err(Failure::Reported),
    }
}

async fn dead(store: &Store, args: &DeadArgs, json: bool) -> anyhow::Result<()> {
    let letters = store.dead_letters(&args.name, None, args.limit).await?;
    let mut rows = Vec::new();
    for letter in &letters {
        if json {
            output::json(letter)?;
            continue;
        }
        let url = store.url(letter.id).await?.map(|row| row.url);
        rows.push([
            letter.died_at.to_string(),
            url.unwrap_or_else(|| letter.id.to_string()),
            letter.reason.clone(),
        ]);
    }
    output::columns(&rows)
}

/// Documents page by page, while the index is written on another thread.
async fn rebuild_search(
    store: &Store,
    sink: &NamedSink,
    config: &Config,
    json: bool,
) -> anyhow::Result<()> {
    let SinkConfig::Search(search) = &sink.config else {
        anyhow::bail!(
            "{} is not an embedded search; use: tidings sink replay {}",
            sink.name,
            sink.name
        );
    };
    let context = sinks::context(config).map_err(|_| anyhow::anyhow!("cannot build the sinks"))?;
    let (folder, full_text) = (search.folder(&context), search.full_text);
    let (send, mut receive) = tokio::sync::mpsc::channel(1000);
    let mut progress = Progress::new("documents", None);
    let writing = tokio::task::spawn_blocking(move || {
        let documents = std::iter::from_fn(|| receive.blocking_recv());
        let mut before = 0;
        rebuild(&folder, documents, full_text, |done| {
            progress.advance(done - before);
            before = done;
        })
        .inspect(|_| progress.finish())
    });
    let mut after: Option<FrontierId> = None;
    'pages: loop {
        let page = store.documents_after(after, 500).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.frontier_id);
        for stored in &page {
            let document = tidings_engine::stored_document(stored)?;
            if stored.duplicate_of.is_some() && !sink.wants_duplicates {
                continue;
            }
            // The writer returns the error.
            if send.send(document).await.is_err() {
                break 'pages;
            }
        }
    }
    drop(send);
    let done = writing.await.context("the index writer panicked")?;
    let done = done.context("the index was not rebuilt; is `tidings run` using it?")?;
    report(json, "rebuilt", done, "are in the new index")
}
