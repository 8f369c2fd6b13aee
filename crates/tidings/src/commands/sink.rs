//! `tidings sink`: the state of the sinks, their dead letters, and how to test, install,
//! retry, replay, rebuild, disable, enable, move and remove them.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;
use tidings_sinks::{Report, SinkConfig, rebuild};
use tidings_store::{
    FrontierId, Moment, NewAuditEntry, OutboxState, RetriedDeadLetters, Role, Store,
};

use crate::config::{Config, NamedSink};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{node, output, sinks, stores};

/// List, test, install, disable and move sinks; retry dead letters, replay, rebuild
#[derive(Debug, Args)]
#[command(
    after_help = "Sinks are tables of the configuration file; docs/SINKS.md has every kind:
  [sinks.index]
  kind = \"elasticsearch\"
  url = \"https://es.example:9200\"

Examples:
  tidings sink ls
  tidings sink test index
  tidings sink install index
  tidings sink dead index
  tidings sink retry index
  tidings sink replay index --since 2026-11-01T00:00:00Z
  tidings sink rebuild search
  tidings sink disable index; tidings sink enable index
  tidings sink move search
  tidings sink rm index --yes"
)]
pub(crate) struct SinkArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List sinks with delivered, pending and dead documents
    Ls,
    /// Test connection, login and mapping; changes nothing on the server
    Test(NamedArgs),
    /// Create what a sink needs on its server: index template and index, or stream
    Install(NamedArgs),
    /// List the dead letters of a sink, with reasons
    Dead(DeadArgs),
    /// Retry the dead letters of a sink
    Retry(NamedArgs),
    /// Deliver all documents to a sink again, or those fetched since a time
    Replay(ReplayArgs),
    /// Rebuild the embedded search from the documents
    Rebuild(NamedArgs),
    /// Disable a sink on all machines, until it is enabled
    Disable(NamedArgs),
    /// Enable a sink, and deliver what changed while it was disabled
    Enable(NamedArgs),
    /// Make this node the one that serves a sink with local files
    Move(NamedArgs),
    /// Remove a sink with its pending deliveries and dead letters
    Rm(RmArgs),
}

#[derive(Debug, Args)]
struct RmArgs {
    /// Name of the sink
    name: String,

    /// Delete without asking
    #[arg(long)]
    yes: bool,
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
        What::Install(args) => install(named(config, &args.name)?, config, json).await,
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
            let known = store.register_sink(&sink.name, sink.wants_duplicates).await;
            known.map_err(anyhow::Error::new)?;
            if !registered(&store, &sink.name).await?.enabled {
                return Err(disabled(&sink.name).into());
            }
            let since = args.since.map(Moment::from);
            let count = store
                .replay(&sink.name, since)
                .await
                .map_err(anyhow::Error::new)?;
            Ok(report(json, "replayed", count, "will be delivered again")?)
        }
        What::Disable(args) => Ok(disable(&store, &args.name, json).await?),
        What::Enable(args) => Ok(enable(&store, &args.name, json).await?),
        What::Move(args) => Ok(move_here(&store, named(config, &args.name)?, config, json).await?),
        What::Rm(args) => Ok(remove(&store, args, json).await?),
        What::Rebuild(args) => {
            refuse_other_node(&store, &args.name, config).await?;
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

/// The row of a sink that some process has registered.
async fn registered(store: &Store, name: &str) -> anyhow::Result<OutboxState> {
    let states = store.outbox().await?;
    let known: Vec<_> = states.iter().map(|state| state.sink.clone()).collect();
    let found = states.into_iter().find(|state| state.sink == name);
    found.with_context(|| {
        let known = known.join(", ");
        format!("no sink named {name:?} is registered; registered are: {known}")
    })
}

fn disabled(name: &str) -> anyhow::Error {
    anyhow::anyhow!("{name} is disabled; enable it with: tidings sink enable {name}")
}

/// A change in the audit log: whoever has the store's password is an admin.
async fn audit(store: &Store, action: &str, verb: &str, name: &str) -> anyhow::Result<()> {
    let entry = NewAuditEntry {
        who: "command line",
        role: Role::Admin,
        action,
        method: "CLI",
        path: &format!("sink {verb} {name}"),
        status: 200,
        request_id: "",
    };
    Ok(store.add_audit_entry(&entry).await?)
}

async fn disable(store: &Store, name: &str, json: bool) -> anyhow::Result<()> {
    registered(store, name).await?;
    store.disable_sink(name).await?;
    audit(store, "Disable sink", "disable", name).await?;
    match json {
        true => output::json(&json!({ "disabled": name })),
        false => output::line(&format!("{name} is disabled on all machines")),
    }
}

async fn enable(store: &Store, name: &str, json: bool) -> anyhow::Result<()> {
    registered(store, name).await?;
    let missed = store.enable_sink(name).await?.unwrap_or_default();
    audit(store, "Enable sink", "enable", name).await?;
    match json {
        true => output::json(&json!({ "enabled": name, "queued": missed })),
        false => output::line(&format!(
            "{name} is enabled; documents that changed meanwhile and will be delivered: {missed}"
        )),
    }
}

/// An index that is rebuilt here would not be the one that is served.
async fn refuse_other_node(store: &Store, name: &str, config: &Config) -> anyhow::Result<()> {
    let states = store.outbox().await?;
    let owner = states.into_iter().find(|state| state.sink == name);
    let owner = owner.and_then(|state| state.node);
    let this = node::existing_id(config.data_dir())?;
    match owner.filter(|owner| this.as_ref() != Some(owner)) {
        None => Ok(()),
        Some(owner) => anyhow::bail!(
            "{name} is served by {owner}; rebuild it there, or take it over first with: tidings sink move {name}"
        ),
    }
}

async fn move_here(
    store: &Store,
    sink: &NamedSink,
    config: &Config,
    json: bool,
) -> anyhow::Result<()> {
    let name = &sink.name;
    let context = sinks::context(config).map_err(|_| anyhow::anyhow!("cannot build the sinks"))?;
    let built = sinks::build_one(sink, &context);
    if !built.is_ok_and(|built| built.is_local()) {
        anyhow::bail!("{name} is a service, which every node can serve: nothing to move");
    }
    let before = registered(store, name).await?.node;
    let node = node::id(config.data_dir())?;
    if before.as_ref() == Some(&node) {
        anyhow::bail!("{name} is served by this node already");
    }
    store.move_sink(name, &node).await?;
    audit(store, "Move sink", "move", name).await?;
    if json {
        return output::json(&json!({ "moved": name, "from": before, "to": node }));
    }
    let fill = match sink.config {
        SinkConfig::Search(_) => "rebuild",
        _ => "replay",
    };
    output::line(&format!(
        "{name} is served by {node} now. Its files stay where they are: copy them, or write them anew with: tidings sink {fill} {name}"
    ))
}

async fn remove(store: &Store, args: &RmArgs, json: bool) -> anyhow::Result<()> {
    let name = &args.name;
    let state = registered(store, name).await?;
    if !args.yes {
        anyhow::bail!(
            "this removes {name} with {} pending deliveries and {} dead letters; confirm with: tidings sink rm {name} --yes",
            state.waiting,
            state.dead
        );
    }
    store.remove_sink(name).await?;
    audit(store, "Remove sink", "rm", name).await?;
    if json {
        return output::json(&json!({ "removed": name }));
    }
    output::line(&format!("{name} is removed"))?;
    match state.is_unserved(store.now().await?) || !state.enabled {
        true => Ok(()),
        false => output::line(&format!(
            "A process still has {name} in its configuration, and registers it again when it restarts"
        )),
    }
}

async fn ls(store: &Store, config: &Config, json: bool) -> anyhow::Result<()> {
    let states = store.outbox().await?;
    if json {
        return states.iter().try_for_each(output::json);
    }
    let now = store.now().await?;
    let mut rows = Vec::new();
    for state in &states {
        let label = match state.enabled {
            true if state.is_unserved(now) => "not served",
            true => "on",
            false => "off",
        };
        let node = state.node.as_ref().map(|node| format!("on {node}"));
        let oldest = state.oldest.map(|oldest| format!("oldest from {oldest}"));
        rows.push([
            state.sink.clone(),
            label.to_owned(),
            format!("{} delivered", state.delivered),
            format!("{} pending", state.waiting),
            format!("{} dead", state.dead),
            node.unwrap_or_default(),
            oldest.unwrap_or_default(),
        ]);
    }
    let is_known = |name: &str| states.iter().any(|state| state.sink == name);
    for sink in config.sinks.iter().filter(|sink| !is_known(&sink.name)) {
        let not_yet =
            "not used yet; tidings run delivers new documents, tidings sink replay the stored ones";
        rows.push([sink.name.as_str(), "new", "", "", "", "", not_yet].map(str::to_owned));
    }
    output::columns(&rows)
}

async fn test(sink: &NamedSink, config: &Config, json: bool) -> Result<(), Failure> {
    let built = sinks::build_one(sink, &sinks::context(config)?)?;
    show(&sink.name, &built.check(Timestamp::now()).await, json)
}

async fn install(sink: &NamedSink, config: &Config, json: bool) -> Result<(), Failure> {
    let built = sinks::build_one(sink, &sinks::context(config)?)?;
    let report = built.install(Timestamp::now()).await;
    if report.lines.is_empty() && !json {
        let name = &sink.name;
        return Ok(output::line(&format!(
            "{name} needs nothing on its server"
        ))?);
    }
    show(&sink.name, &report, json)
}

/// Prints the findings; a failure if one is.
fn show(name: &str, report: &Report, json: bool) -> Result<(), Failure> {
    if json {
        let line = |finding: &tidings_sinks::Finding| {
            let (is_ok, said) = match &finding.result {
                Ok(said) => (true, said),
                Err(said) => (false, said),
            };
            json!({ "what": finding.what, "ok": is_ok, "said": said })
        };
        let lines: Vec<_> = report.lines.iter().map(line).collect();
        output::json(&json!({ "sink": name, "ok": report.is_ok(), "findings": lines }))?;
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
