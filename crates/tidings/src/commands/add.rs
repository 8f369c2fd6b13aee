//! `tidings add`: add a source. Its feeds are discovered, the best is shown with its
//! latest items, and from then on it is polled.

use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use tidings_engine::{
    IngestionMode, PollPolicy, Preset, SourceDraft, SourceSettings, add_source, discover,
    follow_preset,
};
use tidings_feed::discovery::{CandidateKind, Ranked};
use tidings_net::{Client, RobotsGate};
use tidings_store::{Feed, Source, Store};
use tidings_url::FetchUrl;

use super::discover::rows;
use crate::config::Config;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{output, stores};

/// Add a source: discover its feed, show the latest items, and poll it from now on
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings add https://example.com/
  tidings add https://example.com/ --dry-run        only discover
  tidings add https://example.com/ --feed https://example.com/feed.xml --name example
  tidings add https://example.com/ --tag local --priority 8
  tidings add https://example.com/ --mode spider    crawl its pages, whatever feeds it has
  tidings add https://example.com/ --preset sembr   as an earlier system did; other options win
  tidings add https://www.theguardian.com/ --kind guardian --adapter-config '{\"q\": \"harbour\"}'")]
pub(crate) struct AddArgs {
    /// Any page of the site, or the feed itself
    url: FetchUrl,

    /// Name of the source [default: its host]
    #[arg(long)]
    name: Option<String>,

    #[command(flatten)]
    settings: SettingArgs,

    /// Show what is discovered, and add nothing
    #[arg(long)]
    dry_run: bool,

    /// Milliseconds between two requests of the discovery
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    delay: u64,
}

/// The settings of a source.
#[derive(Debug, Args)]
pub(crate) struct SettingArgs {
    /// URL of its feed
    #[arg(long, value_name = "URL")]
    feed: Option<FetchUrl>,

    /// Polling, newness and retries of an earlier system; other options win
    #[arg(long)]
    preset: Option<PresetName>,

    /// Polling policy of its feed
    #[arg(long)]
    policy: Option<PolicyName>,

    /// Minutes between two polls under the fixed policy
    #[arg(long, value_name = "MINUTES")]
    interval: Option<u32>,

    /// How its articles are discovered [default: by its feed, else by its pages]
    #[arg(long)]
    mode: Option<ModeName>,

    /// Its adapter: guardian, newsapi, arxiv, …
    #[arg(long)]
    kind: Option<String>,

    /// `config` of the adapter, as JSON
    #[arg(long, value_name = "JSON", requires = "kind")]
    adapter_config: Option<String>,

    /// 1 to 10; higher is fetched sooner
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=10))]
    priority: Option<u8>,

    /// Tag of all its documents; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,

    /// Any other setting of a source, for example --option rate_limit=0.5
    #[arg(long = "option", value_name = "KEY=VALUE")]
    options: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PolicyName {
    Fixed,
    Doubling,
    Adaptive,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PresetName {
    MediaCloud,
    NorthCloud,
    Sembr,
    Collection,
}

impl PresetName {
    fn preset(self) -> Preset {
        match self {
            Self::MediaCloud => Preset::MediaCloud,
            Self::NorthCloud => Preset::NorthCloud,
            Self::Sembr => Preset::Sembr,
            Self::Collection => Preset::Collection,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ModeName {
    Feed,
    Spider,
    Both,
}

impl SettingArgs {
    pub(crate) fn apply(
        &self,
        name: &str,
        settings: &mut SourceSettings,
        priority: &mut u8,
    ) -> anyhow::Result<()> {
        if let Some(preset) = self.preset {
            let option = format!("preset={}", preset.preset().as_str());
            *settings = with_options(name, settings, &[option])?;
        }
        if let Some(feed) = &self.feed {
            settings.feed_url = Some(feed.clone());
        }
        if let Some(policy) = self.policy {
            settings.poll_policy = match policy {
                PolicyName::Fixed => PollPolicy::Fixed,
                PolicyName::Doubling => PollPolicy::Doubling,
                PolicyName::Adaptive => PollPolicy::Adaptive,
            };
        }
        if let Some(mode) = self.mode {
            settings.ingestion_mode = Some(match mode {
                ModeName::Feed => IngestionMode::Feed,
                ModeName::Spider => IngestionMode::Spider,
                ModeName::Both => IngestionMode::Both,
            });
        }
        if let Some(kind) = &self.kind {
            settings.kind.clone_from(kind);
        }
        if let Some(config) = &self.adapter_config {
            settings.config = serde_json::from_str(config)
                .with_context(|| format!("--adapter-config {config} is not JSON"))?;
        }
        if self.kind.is_some() {
            // The error names the field, before any request.
            SourceSettings::parse(name, &settings.to_json())?;
        }
        if let Some(minutes) = self.interval {
            settings.feed_poll_interval_minutes = minutes;
        }
        if !self.tags.is_empty() {
            settings.tags.clone_from(&self.tags);
        }
        *priority = self.priority.unwrap_or(*priority);
        if !self.options.is_empty() {
            *settings = with_options(name, settings, &self.options)?;
        }
        Ok(())
    }
}

/// `key=value`, where the value is JSON, or else text.
fn with_options(
    name: &str,
    settings: &SourceSettings,
    options: &[String],
) -> anyhow::Result<SourceSettings> {
    let before = settings.to_json();
    let before = before.as_object().cloned().unwrap_or_default();
    let mut config = before.clone();
    for option in options {
        let (key, value) = option
            .split_once('=')
            .with_context(|| format!("--option {option:?} is not KEY=VALUE"))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        config.insert(key.to_owned(), value);
    }
    follow_preset(&before, &mut config);
    Ok(SourceSettings::parse(name, &config.into())?)
}

/// A source with its feed, as JSON.
#[derive(Serialize)]
pub(crate) struct SourceWithFeed {
    #[serde(flatten)]
    source: Source,
    feed: Option<Feed>,
}

impl SourceWithFeed {
    pub(crate) fn of(source: Source, feed: Option<Feed>) -> Self {
        Self { source, feed }
    }
}

pub(crate) fn run(args: &AddArgs, config: &Config, json: bool) -> Result<(), Failure> {
    stores::with_store(config, async |store| add(&store, args, config, json).await)
}

pub(crate) async fn add(
    store: &Store,
    args: &AddArgs,
    config: &Config,
    json: bool,
) -> Result<(), Failure> {
    let name = args.name.as_deref().unwrap_or(args.url.host());
    let mut draft = SourceDraft {
        name: name.to_owned(),
        url: args.url.clone(),
        priority: 5,
        settings: SourceSettings::default(),
    };
    args.settings
        .apply(name, &mut draft.settings, &mut draft.priority)?;
    let is_explicit = draft.settings.feed_url.is_some()
        || draft.settings.kind != "feed"
        || draft.settings.ingestion_mode == Some(IngestionMode::Spider);
    if !is_explicit {
        let found = discover_feeds(args, config).await?;
        if args.dry_run {
            return Ok(preview(&found, json)?);
        }
        if !json {
            preview(&found, false)?;
        }
        choose_best(&mut draft, &found)?;
    }
    if args.dry_run {
        let what = polled(&draft);
        return Ok(output::line(&format!("{name} would poll {what}"))?);
    }
    let (source, feed) = add_source(store, &draft)
        .await
        .with_context(|| format!("source {:?} was not added", draft.name))?;
    if json {
        return Ok(output::json(&SourceWithFeed::of(source, feed))?);
    }
    let what = polled(&draft);
    Ok(output::line(&format!(
        "added {}, which polls {what}",
        source.name
    ))?)
}

fn polled(draft: &SourceDraft) -> String {
    let settings = &draft.settings;
    let feed = settings.feed_url.as_ref().or(settings.sitemap_url.as_ref());
    match feed {
        _ if settings.kind != "feed" => format!("the adapter {}", settings.kind),
        Some(feed) if settings.mode() != IngestionMode::Spider => feed.as_str().to_owned(),
        _ => format!("the pages of {}", draft.url),
    }
}

async fn discover_feeds(args: &AddArgs, config: &Config) -> Result<Vec<Ranked>, Failure> {
    let client = Client::new(config.net.options()?).context("cannot create the HTTP client")?;
    let robots = RobotsGate::new(client.clone(), None);
    let delay = Duration::from_millis(args.delay);
    let mut progress = Progress::new("URLs probed", None);
    let found = discover(&client, &robots, &args.url, delay, Timestamp::now(), |_| {
        progress.advance(1);
    })
    .await;
    progress.finish();
    Ok(found.with_context(|| format!("feed discovery failed on {}", args.url))?)
}

/// The best feed, or a sitemap where there is none, or else its pages.
fn choose_best(draft: &mut SourceDraft, found: &[Ranked]) -> anyhow::Result<()> {
    let Some(best) = found.first() else {
        anyhow::ensure!(
            draft.settings.ingestion_mode.is_none(),
            "no feed or sitemap found on {}; name its feed with --feed",
            draft.url
        );
        draft.settings.ingestion_mode = Some(IngestionMode::Spider);
        return Ok(());
    };
    let url =
        FetchUrl::parse(&best.candidate.url).context("the discovered feed has an invalid URL")?;
    match best.candidate.kind {
        CandidateKind::Feed => draft.settings.feed_url = Some(url),
        CandidateKind::Sitemap => draft.settings.sitemap_url = Some(url),
    }
    Ok(())
}

/// The discovered feeds, and the latest items of the best.
fn preview(found: &[Ranked], json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&found);
    }
    output::columns(&rows(found))?;
    let Some(best) = found.first() else {
        return Ok(());
    };
    let items: Vec<[String; 3]> = best
        .latest
        .iter()
        .map(|item| {
            let date = item.published.map(|at| at.strftime("%Y-%m-%d %H:%M"));
            [
                format!(
                    "  {}",
                    date.map(|date| date.to_string()).unwrap_or_default()
                ),
                item.title.clone().unwrap_or_default(),
                item.link.clone().unwrap_or_default(),
            ]
        })
        .collect();
    if !items.is_empty() {
        output::line("\nLatest items of the best:")?;
        output::columns(&items)?;
        output::line("")?;
    }
    Ok(())
}
