//! `tidings source`: the registry of sources.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use tidings_engine::{
    FetchContext, ListFormat, PollOutcome, PolledSource, Poller, SourceDraft, SourceSettings,
    add_starter_sources, change_source, import_list, list_end, list_start, read_list, write_row,
};
use tidings_net::{Client, Purpose, Redirects, Request, RobotsGate};
use tidings_store::{Feed, FetchLogRow, Source, Store, Task};
use tidings_url::FetchUrl;

use super::add::{self, AddArgs, SettingArgs, SourceWithFeed};
use super::article_preview;
use crate::config::Config;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{output, stores};

/// Add, list and change sources
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings source add https://example.com/            discover its feed and poll it
  tidings source add https://example.com/ --feed https://example.com/feed.xml --name example
  tidings source add https://example.com/ --preset media-cloud
  tidings source ls
  tidings source show example
  tidings source edit example --policy fixed --interval 30
  tidings source disable example --reason 'asked to stop'
  tidings source poll example --dry-run
  tidings source test https://example.com/story --selector title=h1.headline
  tidings source import subscriptions.opml --dry-run
  tidings source export --format csv > sources.csv")]
pub(crate) struct SourceArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Add a source; without --feed its feed is discovered
    Add(AddArgs),
    /// List all sources and the state of their feeds
    Ls,
    /// Show one source, its feed, and its last polls
    Show(NamedArgs),
    /// Change a source; takes effect at its next poll
    Edit(EditArgs),
    /// Remove a source; its URLs and documents stay
    Rm(NamedArgs),
    /// Resume polling a source
    Enable(NamedArgs),
    /// Stop polling a source
    Disable(DisableArgs),
    /// Poll a source now, at most once per minute
    Poll(PollArgs),
    /// Extract one page as a source would, and show what each selector matched
    Test(TestArgs),
    /// List recent tasks and their results
    Tasks,
    /// Import sources from an OPML, CSV or JSON lines file
    Import(ImportArgs),
    /// Export all sources as a list that can be imported
    Export(ExportArgs),
    /// Add the starter sources: a small list of well-known ones
    Starter(StarterArgs),
}

#[derive(Debug, Args)]
struct NamedArgs {
    /// Name of the source
    name: String,
}

#[derive(Debug, Args)]
struct EditArgs {
    /// Name of the source
    name: String,

    #[command(flatten)]
    settings: SettingArgs,
}

#[derive(Debug, Args)]
struct TestArgs {
    /// A page of the source
    url: FetchUrl,

    /// Whose selectors [default: the source of the same site]
    #[arg(long)]
    source: Option<String>,

    /// Test a selector before it is saved, for example --selector title=h1.headline
    #[arg(long = "selector", value_name = "FIELD=CSS")]
    selectors: Vec<String>,
}

#[derive(Debug, Args)]
struct PollArgs {
    /// Name of the source
    name: String,

    /// Show the items of its feed, NEW, KNOWN or SKIP, and write nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Each of them is added once: a starter source that you remove is not added again."
)]
struct StarterArgs {
    /// Print the changes, and write nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct ImportArgs {
    /// File whose extension names its format: .opml or .xml, .csv, .jsonl
    file: PathBuf,

    /// Print the changes, and write nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
struct ExportArgs {
    #[arg(long, default_value = "opml")]
    format: FormatName,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatName {
    Opml,
    Csv,
    Jsonl,
}

impl FormatName {
    fn format(self) -> ListFormat {
        match self {
            Self::Opml => ListFormat::Opml,
            Self::Csv => ListFormat::Csv,
            Self::Jsonl => ListFormat::JsonLines,
        }
    }
}

#[derive(Debug, Args)]
struct DisableArgs {
    /// Name of the source
    name: String,

    /// Reason, shown with the source
    #[arg(long, default_value = "disabled by an operator")]
    reason: String,
}

pub(crate) fn run(args: &SourceArgs, config: &Config, json: bool) -> Result<(), Failure> {
    stores::with_store(config, async |store| match &args.what {
        What::Add(args) => add::add(&store, args, config, json).await,
        What::Starter(args) => Ok(starter(&store, args, json).await?),
        What::Ls => Ok(ls(&store, json).await?),
        What::Show(args) => Ok(show(&store, &args.name, json).await?),
        What::Edit(args) => Ok(edit(&store, args).await?),
        What::Rm(args) => {
            let source = named(&store, &args.name).await?;
            store
                .remove_source(source.source_id)
                .await
                .map_err(anyhow::Error::new)?;
            Ok(output::line(&format!("removed {}", source.name))?)
        }
        What::Enable(args) => Ok(set_enabled(&store, &args.name, None).await?),
        What::Disable(args) => Ok(set_enabled(&store, &args.name, Some(&args.reason)).await?),
        What::Poll(args) => poll_source(&store, args, config, json).await,
        What::Test(args) => test(&store, args, config, json).await,
        What::Tasks => Ok(tasks(&store, json).await?),
        What::Import(args) => Ok(import(&store, args, json).await?),
        What::Export(args) => Ok(export(&store, args.format.format()).await?),
    })
}

async fn named(store: &Store, name: &str) -> anyhow::Result<Source> {
    let found = store.source_named(name).await?;
    found.with_context(|| {
        format!("there is no source named {name:?}; `tidings source ls` lists them")
    })
}

const PAGE: u32 = 1000;

async fn ls(store: &Store, json: bool) -> anyhow::Result<()> {
    let mut after = i64::MIN;
    loop {
        let sources = store.sources_after(after, PAGE).await?;
        let Some(last) = sources.last() else {
            return Ok(());
        };
        after = last.source_id;
        let mut rows = Vec::new();
        for source in sources {
            let feed = store
                .feeds_of_source(source.source_id)
                .await?
                .into_iter()
                .next();
            if json {
                output::json(&SourceWithFeed::of(source, feed))?;
            } else {
                rows.push(row(&source, feed.as_ref()));
            }
        }
        output::columns(&rows)?;
    }
}

fn row(source: &Source, feed: Option<&Feed>) -> [String; 5] {
    let state = match feed {
        _ if !source.enabled => format!(
            "disabled: {}",
            source.reason.as_deref().unwrap_or("no reason given")
        ),
        None => "no feed".to_owned(),
        Some(feed) => feed_state(feed),
    };
    let items = feed
        .map(|feed| format!("{} items", feed.item_count))
        .unwrap_or_default();
    let next = feed
        .map(|feed| format!("next {}", feed.next_poll_at))
        .unwrap_or_default();
    [
        source.name.clone(),
        state,
        items,
        next,
        feed.map_or_else(|| source.url.clone(), |feed| feed.url.clone()),
    ]
}

fn feed_state(feed: &Feed) -> String {
    if let Some(reason) = &feed.paused_reason {
        return format!("paused: {reason}");
    }
    match (&feed.last_error, feed.last_polled_at) {
        (Some(note), _) if feed.consecutive_errors == 0 => format!("ok; {note}"),
        (Some(error), _) => format!("failed {} times: {error}", feed.consecutive_errors),
        (None, None) => "not polled yet".to_owned(),
        (None, Some(_)) => "ok".to_owned(),
    }
}

async fn show(store: &Store, name: &str, json: bool) -> anyhow::Result<()> {
    let source = named(store, name).await?;
    let feeds = store.feeds_of_source(source.source_id).await?;
    let feed = feeds.first().cloned();
    let log = match &feed {
        Some(feed) => store.fetch_log(feed.feed_id, 10).await?,
        None => Vec::new(),
    };
    if json {
        #[derive(Serialize)]
        struct WithLog {
            #[serde(flatten)]
            shown: SourceWithFeed,
            feeds: Vec<Feed>,
            polls: Vec<FetchLogRow>,
        }
        let shown = SourceWithFeed::of(source, feed);
        let polls = log;
        return output::json(&WithLog {
            shown,
            feeds,
            polls,
        });
    }
    output::columns(&[row(&source, feed.as_ref())])?;
    output::line(&format!("settings {}", source.config))?;
    if feeds.len() > 1 {
        let row = |feed: &Feed| {
            [
                feed.kind.clone(),
                feed_state(feed),
                format!("{} items", feed.item_count),
                format!("next {}", feed.next_poll_at),
                feed.url.clone(),
            ]
        };
        output::columns(&feeds.iter().map(row).collect::<Vec<_>>())?;
    }
    let line = |poll: &FetchLogRow| {
        [
            poll.started_at.to_string(),
            poll.outcome.clone(),
            format!("{} items, {} new", poll.items_seen, poll.items_new),
            format!("{} ms", poll.elapsed_ms),
            poll.error_message.clone().unwrap_or_default(),
        ]
    };
    output::columns(&log.iter().map(line).collect::<Vec<_>>())
}

async fn edit(store: &Store, args: &EditArgs) -> anyhow::Result<()> {
    let source = named(store, &args.name).await?;
    let mut draft = SourceDraft {
        name: source.name.clone(),
        url: FetchUrl::parse(&source.url)?,
        priority: source.priority,
        settings: SourceSettings::of(&source)?,
    };
    args.settings
        .apply(&args.name, &mut draft.settings, &mut draft.priority)?;
    change_source(store, &source, &draft).await?;
    output::line(&format!(
        "changed {}; effective from the next poll",
        source.name
    ))
}

async fn set_enabled(store: &Store, name: &str, reason: Option<&str>) -> anyhow::Result<()> {
    let source = named(store, name).await?;
    store.set_source_enabled(source.source_id, reason).await?;
    let verb = if reason.is_some() {
        "disabled"
    } else {
        "enabled"
    };
    output::line(&format!("{verb} {}", source.name))
}

/// Extracts one page with the selectors of a source, and stores nothing.
async fn test(store: &Store, args: &TestArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let source = match &args.source {
        Some(name) => Some(named(store, name).await?),
        None => of_site(store, &args.url).await?,
    };
    let mut settings = match &source {
        Some(source) => SourceSettings::of(source).map_err(anyhow::Error::new)?,
        None => SourceSettings::default(),
    };
    let mut selectors = serde_json::to_value(&settings.selectors.article)
        .context("cannot serialize the selectors")?;
    for pair in &args.selectors {
        let (field, css) = pair
            .split_once('=')
            .with_context(|| format!("--selector {pair:?} is not FIELD=CSS"))?;
        selectors[field] = match field {
            "exclude" => serde_json::json!([css]),
            _ => css.into(),
        };
    }
    settings.selectors.article = serde_json::from_value(selectors).context(
        "unknown field of an article; fields are title, body, author, published, image, important, exclude",
    )?;
    let parsed = settings
        .selectors
        .parsed()
        .map_err(|why| anyhow::anyhow!(why))?;
    let client = Client::new(config.net.options()?).context("cannot create the HTTP client")?;
    let robots = RobotsGate::new(client.clone(), None);
    let place = || format!("cannot fetch {}", args.url);
    robots.permit(&args.url).await.with_context(place)?;
    let request = Request::get(args.url.clone(), Purpose::Page);
    let response = client
        .fetch(request, Redirects::Check(&robots))
        .await
        .with_context(place)?;
    let matched = article_preview::matches(&response, &settings.selectors.article)?;
    let article = article_preview::article(&response, Some(&parsed));
    if json {
        let name = source.map(|source| source.name);
        return Ok(output::json(
            &serde_json::json!({ "source": name, "status": response.status, "selectors": matched, "article": article }),
        )?);
    }
    let whose = source.map_or("no source".to_owned(), |source| source.name);
    output::line(&format!("status {}, selectors of {whose}", response.status))?;
    for found in &matched {
        let first = found.texts.first().map_or("nothing", String::as_str);
        let first: String = first.chars().take(80).collect();
        output::line(&format!(
            "{:<9}  {}  matched {}: {first}",
            found.field,
            found.selector,
            found.texts.len()
        ))?;
    }
    output::line("")?;
    Ok(article_preview::show(&article)?)
}

/// The source that a page belongs to, by its site.
async fn of_site(store: &Store, url: &FetchUrl) -> anyhow::Result<Option<Source>> {
    let mut after = i64::MIN;
    loop {
        let sources = store.sources_after(after, PAGE).await?;
        let Some(last) = sources.last() else {
            return Ok(None);
        };
        after = last.source_id;
        let is_of_site = |source: &Source| {
            let home = FetchUrl::parse(&source.url);
            home.is_ok_and(|home| home.registrable_domain() == url.registrable_domain())
        };
        if let Some(source) = sources.into_iter().find(is_of_site) {
            return Ok(Some(source));
        }
    }
}

async fn tasks(store: &Store, json: bool) -> anyhow::Result<()> {
    let tasks = store.tasks(None, 100).await?;
    if json {
        return tasks.iter().try_for_each(output::json);
    }
    let row = |task: &Task| {
        [
            task.created_at.to_string(),
            task.kind.clone(),
            task.subject.clone(),
            task.status.clone(),
            task.detail.clone(),
        ]
    };
    output::columns(&tasks.iter().map(row).collect::<Vec<_>>())
}

/// Adds the starter sources, without those that were added before.
async fn starter(store: &Store, args: &StarterArgs, json: bool) -> anyhow::Result<()> {
    let report = add_starter_sources(store, args.dry_run).await?;
    if json {
        return output::json(&report);
    }
    for source in &report.added {
        output::line(source)?;
    }
    let verb = if args.dry_run {
        "would be added"
    } else {
        "added"
    };
    let (added, known) = (report.added.len(), report.known);
    output::line(&format!("{added} {verb}, {known} added before"))
}

async fn import(store: &Store, args: &ImportArgs, json: bool) -> anyhow::Result<()> {
    let format = format_of(&args.file)?;
    let place = args.file.display();
    let bytes = std::fs::read(&args.file).with_context(|| format!("{place} can't be read"))?;
    let rows = read_list(format, &bytes).map_err(|why| anyhow::anyhow!("{place}: {why}"))?;
    let mut progress = Progress::new("rows", Some(rows.len() as u64));
    let report = import_list(store, rows, args.dry_run, |n| progress.advance(n as u64)).await?;
    progress.finish();
    if json {
        return output::json(&report);
    }
    for (line, why) in &report.bad {
        output::line(&format!("{place}:{line}: {why}"))?;
    }
    let verb = if args.dry_run {
        "would be added"
    } else {
        "added"
    };
    let (added, known, bad) = (report.added, report.known, report.bad.len());
    output::line(&format!("{added} {verb}, {known} known, {bad} invalid"))
}

fn format_of(file: &Path) -> anyhow::Result<ListFormat> {
    let ending = file
        .extension()
        .map(|ending| ending.to_string_lossy().to_lowercase());
    match ending.as_deref() {
        Some("opml" | "xml") => Ok(ListFormat::Opml),
        Some("csv") => Ok(ListFormat::Csv),
        Some("jsonl" | "ndjson") => Ok(ListFormat::JsonLines),
        _ => anyhow::bail!(
            "{}: unknown extension; .opml, .xml, .csv or .jsonl is expected",
            file.display()
        ),
    }
}

async fn export(store: &Store, format: ListFormat) -> anyhow::Result<()> {
    list_start(format).map_or(Ok(()), output::line)?;
    let mut after = i64::MIN;
    loop {
        let sources = store.sources_after(after, PAGE).await?;
        let Some(last) = sources.last() else {
            break;
        };
        after = last.source_id;
        for source in &sources {
            output::line(&write_row(format, source))?;
        }
    }
    list_end(format).map_or(Ok(()), output::line)
}

async fn poll_source(
    store: &Store,
    args: &PollArgs,
    config: &Config,
    json: bool,
) -> Result<(), Failure> {
    let source = named(store, &args.name).await?;
    let client = Client::new(config.net.options()?).context("cannot create the HTTP client")?;
    let poller = Poller::new(
        FetchContext::new(client, store.clone()),
        config.poll_options(),
    );
    let refused =
        |why: String| Failure::Command(anyhow::anyhow!("{} was not polled: {why}", source.name));
    if args.dry_run {
        let seen = poller
            .preview_source(&source)
            .await
            .context("store unavailable")?;
        for item in seen.map_err(refused)? {
            if json {
                output::json(&item)?;
                continue;
            }
            let (label, why) = match (item.skipped, item.is_new) {
                (Some(why), _) => ("SKIP ", why),
                (None, true) => ("NEW  ", ""),
                (None, false) => ("KNOWN", ""),
            };
            output::line(&format!(
                "{label}  {}{why}  {}",
                item.url,
                item.title.unwrap_or_default()
            ))?;
        }
        return Ok(());
    }
    match poller
        .poll_source(&source)
        .await
        .context("store unavailable")?
    {
        PolledSource::Polled(poll) if poll.outcome == PollOutcome::Failed => {
            Err(refused(poll.error.unwrap_or_default()))
        }
        PolledSource::Polled(poll) if json => Ok(output::json(&poll)?),
        PolledSource::Polled(poll) => {
            let outcome = poll.outcome.as_str();
            let remark = poll
                .error
                .map_or_else(String::new, |why| format!("; {why}"));
            Ok(output::line(&format!(
                "{outcome}: {} items, {} new{remark}",
                poll.items_seen, poll.items_new
            ))?)
        }
        PolledSource::TooSoon { last } => Err(refused(format!(
            "it was polled at {last}; at most one manual poll per minute is allowed"
        ))),
        PolledSource::Busy => Err(refused(
            "its feed is being polled or its host is busy; try again later".to_owned(),
        )),
        PolledSource::NoFeed => Err(refused("it has no feed".to_owned())),
    }
}
