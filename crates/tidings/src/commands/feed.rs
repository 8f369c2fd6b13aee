//! `tidings feed`: the items parsed from a feed or a sitemap, and the defects that
//! were repaired. The first thing to check when a story is missing.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use tidings_feed::sitemap::{self, Sitemap};
use tidings_feed::{Defects, Feed, Found, Hints, NotRecognised, parse};
use tidings_net::{Client, Purpose, Redirects, Request, RobotsGate};
use tidings_url::FetchUrl;
use url::Url;

use crate::config::Config;
use crate::failure::Failure;
use crate::output;

/// Parse a feed or a sitemap, and show its items and defects
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings feed news.xml
  tidings feed --check news.xml
  tidings feed https://example.com/feed
  tidings feed --json --base https://example.com/feed news.xml
  tidings feed --dump feeds/ > feeds.jsonl")]
pub(crate) struct FeedArgs {
    /// A feed or a sitemap: a file, gzip or not, or a URL
    #[arg(required_unless_present = "dump", value_name = "FILE|URL")]
    place: Option<String>,

    /// List each defect with its place instead of the items
    #[arg(long)]
    check: bool,

    /// URL of the file, to resolve relative links
    #[arg(long, value_name = "URL")]
    base: Option<Url>,

    /// Print one JSON line per file in a folder, to compare parsers
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["place", "check", "base"])]
    dump: Option<PathBuf>,
}

pub(crate) fn run(args: &FeedArgs, config: &Config, json: bool) -> Result<(), Failure> {
    if let Some(folder) = &args.dump {
        return dump(folder);
    }
    let place = args.place.as_deref().unwrap_or_default();
    let is_url = place.starts_with("http://") || place.starts_with("https://");
    let document = if is_url {
        fetch(place, args.base.clone(), config)?
    } else {
        Document {
            name: place.to_owned(),
            bytes: read(Path::new(place))?,
            content_type: None,
            url: args.base.clone(),
        }
    };
    show(&document, args.check, json)
}

/// One request, if robots.txt allows it.
fn fetch(place: &str, base: Option<Url>, config: &Config) -> Result<Document, Failure> {
    let url = FetchUrl::parse(place).context("invalid URL")?;
    let options = config.net.options()?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    let response = runtime.block_on(async {
        let client = Client::new(options)?;
        let robots = RobotsGate::new(client.clone(), None);
        robots.permit(&url).await?;
        // The limits of a sitemap: it may be either.
        let request = Request::get(url, Purpose::Sitemap);
        client.fetch(request, Redirects::Check(&robots)).await
    });
    let response = response.with_context(|| format!("cannot fetch {place}"))?;
    if !response.is_success() {
        let status = anyhow::anyhow!("{place} responded with status {}", response.status);
        return Err(Failure::Command(status));
    }
    Ok(Document {
        name: response.url.to_string(),
        bytes: response.body.to_vec(),
        content_type: response.header("content-type").map(str::to_owned),
        url: base.or_else(|| Some(response.url.as_url().clone())),
    })
}

/// A feed or sitemap to parse, from a file or a URL.
struct Document {
    name: String,
    bytes: Vec<u8>,
    content_type: Option<String>,
    url: Option<Url>,
}

/// The parsed document.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Parsed {
    Feed(Box<Feed>),
    Sitemap(Sitemap),
}

impl Parsed {
    fn read(bytes: &[u8], hints: &Hints<'_>) -> Result<Self, NotRecognised> {
        match parse(bytes, hints) {
            Ok(feed) => Ok(Self::Feed(Box::new(feed))),
            Err(error) if matches!(error.found, Found::Sitemap | Found::Text) => {
                let sitemap = sitemap::parse(bytes, hints).map(Self::Sitemap);
                sitemap.map_err(|_| error)
            }
            Err(error) => Err(error),
        }
    }

    fn defects(&self) -> &Defects {
        match self {
            Self::Feed(feed) => &feed.defects,
            Self::Sitemap(sitemap) => &sitemap.defects,
        }
    }
}

fn show(document: &Document, check: bool, json: bool) -> Result<(), Failure> {
    let hints = Hints {
        content_type: document.content_type.as_deref(),
        url: document.url.as_ref(),
        now: Some(Timestamp::now()),
        ..Hints::default()
    };
    let parsed = Parsed::read(&document.bytes, &hints)
        .with_context(|| format!("{} can't be read as a feed", document.name))?;
    match (check, json) {
        (true, true) => output::json(parsed.defects())?,
        (true, false) => print_defects(&document.name, parsed.defects())?,
        (false, true) => output::json(&parsed)?,
        (false, false) => print(&parsed)?,
    }
    Ok(())
}

fn print(parsed: &Parsed) -> anyhow::Result<()> {
    let (head, rows) = match parsed {
        Parsed::Feed(feed) => (feed_head(feed), feed_rows(feed)),
        Parsed::Sitemap(sitemap) => (sitemap_head(sitemap), sitemap_rows(sitemap)),
    };
    output::columns(&head)?;
    if rows.is_empty() {
        return Ok(());
    }
    output::line("")?;
    let titles = ["PUBLISHED", "TITLE", "LINK"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(titles).chain(rows).collect();
    output::columns(&rows)
}

fn feed_head(feed: &Feed) -> Vec<[String; 2]> {
    let mut head = vec![row("format", feed.format)];
    let optional = [
        ("title", &feed.title),
        ("home page", &feed.home_page),
        ("feed url", &feed.self_url),
        ("next page", &feed.next_page),
        ("language", &feed.language),
    ];
    for (name, value) in optional {
        head.extend(value.as_ref().map(|value| row(name, value)));
    }
    head.extend(feed.hubs.iter().map(|hub| row("hub", hub)));
    head.extend(
        feed.ttl_minutes
            .map(|ttl| row("ttl", format!("{ttl} minutes"))),
    );
    head.push(row("items", feed.items.len()));
    head.push(row("defects", feed.defects.len()));
    head
}

fn sitemap_head(sitemap: &Sitemap) -> Vec<[String; 2]> {
    let kind = match sitemap.kind {
        sitemap::SitemapKind::UrlSet => "sitemap",
        sitemap::SitemapKind::Index => "sitemap index",
        sitemap::SitemapKind::Text => "sitemap as text",
        sitemap::SitemapKind::Feed => "feed as sitemap",
    };
    let trust = if sitemap.lastmod_is_trusted {
        "trusted"
    } else {
        "not trusted: nearly all are the same"
    };
    vec![
        row("format", kind),
        row("lastmod", trust),
        row("entries", sitemap.entries.len()),
        row("defects", sitemap.defects.len()),
    ]
}

fn row(name: &str, value: impl ToString) -> [String; 2] {
    [name.to_owned(), value.to_string()]
}

fn feed_rows(feed: &Feed) -> Vec<[String; 3]> {
    let items = feed.items.iter().map(|item| {
        let link = item.link.clone().or_else(|| item.guid.clone());
        [
            item.date()
                .map_or_else(String::new, |date| date.to_string()),
            shortened(item.title.as_deref().unwrap_or("(no title)")),
            link.unwrap_or_else(|| "(no link)".to_owned()),
        ]
    });
    items.collect()
}

fn sitemap_rows(sitemap: &Sitemap) -> Vec<[String; 3]> {
    let entries = sitemap.entries.iter().map(|entry| {
        let title = entry.news.as_ref().and_then(|news| news.title.as_deref());
        [
            entry
                .lastmod
                .map_or_else(String::new, |date| date.to_string()),
            shortened(title.unwrap_or_default()),
            entry.url.clone(),
        ]
    });
    entries.collect()
}

fn shortened(title: &str) -> String {
    const WIDTH: usize = 50;
    match title.char_indices().nth(WIDTH) {
        None => title.to_owned(),
        Some((end, _)) => format!("{}…", &title[..end]),
    }
}

fn print_defects(name: &str, defects: &Defects) -> anyhow::Result<()> {
    for defect in defects {
        let place = format!("{name}:{} (byte {})", defect.line, defect.offset);
        let detail = defect.detail.replace(['\n', '\r'], " ");
        output::line(format!("{place}  {}: {detail}", defect.kind).trim_end_matches([' ', ':']))?;
    }
    let shown = defects.iter().count();
    if defects.len() > shown {
        output::line(&format!("and {} more", defects.len() - shown))?;
    }
    if defects.is_empty() {
        output::line(&format!("{name}: no defects"))?;
    }
    Ok(())
}

/// One file of a dump, with the fields that parsers are compared by.
#[derive(Serialize)]
struct Dumped {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    items: Vec<DumpedItem>,
}

#[derive(Serialize)]
struct DumpedItem {
    link: Option<String>,
    title: Option<String>,
    /// Or the date of the last change, where that is the only one.
    published: Option<Timestamp>,
    guid: Option<String>,
}

fn dump(folder: &Path) -> Result<(), Failure> {
    let mut files = Vec::new();
    list(folder, &mut files)?;
    files.sort();
    for path in files {
        let name = path.strip_prefix(folder).unwrap_or(&path).display();
        // As published: nothing is resolved, and no date is called implausible.
        let (error, items) = match Parsed::read(&read(&path)?, &Hints::default()) {
            Ok(parsed) => (None, dumped(parsed)),
            Err(error) => (Some(error.to_string()), Vec::new()),
        };
        output::json(&Dumped {
            file: name.to_string(),
            error,
            items,
        })?;
    }
    Ok(())
}

fn dumped(parsed: Parsed) -> Vec<DumpedItem> {
    match parsed {
        Parsed::Feed(feed) => feed
            .items
            .into_iter()
            .map(|item| DumpedItem {
                published: item.date(),
                link: item.link,
                title: item.title,
                guid: item.guid,
            })
            .collect(),
        Parsed::Sitemap(sitemap) => sitemap
            .entries
            .into_iter()
            .map(|entry| DumpedItem {
                link: Some(entry.url),
                title: entry.news.and_then(|news| news.title),
                published: entry.lastmod,
                guid: None,
            })
            .collect(),
    }
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let unreadable = || format!("{} can't be listed", folder.display());
    for entry in std::fs::read_dir(folder).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("{} can't be read", path.display()))
}
