//! `tidings extract`: articles from saved pages, as JSON lines, to inspect or to
//! compare with other extractors. Reads files only; never the network.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};
use tidings_extract::{Article, BlockNote, Options, Page};

use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;

/// Larger pages are truncated, compressed ones while they are decompressed.
const MAX_PAGE_BYTES: u64 = 64 << 20;

/// Extract articles from saved pages (.html, .htm, .html.gz)
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings extract page.html
  tidings extract pages/ > articles.jsonl
  tidings extract page.html.gz --url https://example.com/story --explain")]
pub(crate) struct ExtractArgs {
    /// A page, or a folder of pages (with its subfolders)
    #[arg(required = true, value_name = "DIR|FILE")]
    paths: Vec<PathBuf>,

    /// The URL that a single page was fetched from
    #[arg(long, value_name = "URL", conflicts_with = "urls")]
    url: Option<String>,

    /// The URLs of the pages: JSON lines with id and url
    #[arg(long, value_name = "FILE")]
    urls: Option<PathBuf>,

    /// Output the text as Markdown too
    #[arg(long)]
    markdown: bool,

    /// Explain for every block of the page why it is in the article or not
    #[arg(long)]
    explain: bool,

    /// Time budget per page; beyond it a cheaper method is used
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 500)]
    budget: u64,

    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Serialize)]
struct Row {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    markdown: Option<String>,
    title: Option<String>,
    author: Option<String>,
    published: Option<String>,
    language: Option<String>,
    page_type: &'static str,
    method: &'static str,
    ms: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<BlockNote>,
}

#[derive(Deserialize)]
struct PageUrl {
    id: String,
    url: String,
}

pub(crate) fn run(args: &ExtractArgs) -> Result<(), Failure> {
    let mut pages = Vec::new();
    for path in &args.paths {
        collect(path, &mut pages)?;
    }
    pages.sort();
    if pages.is_empty() {
        return Err(anyhow::anyhow!(
            "no pages (.html, .htm, .html.gz) in {}",
            args.paths[0].display()
        )
        .into());
    }
    let urls = read_urls(args)?;
    let threads = args
        .threads
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let failed = extract_all(args, &pages, &urls, threads.clamp(1, pages.len()))?;
    if failed > 0 {
        Err(Failure::Reported)
    } else {
        Ok(())
    }
}

/// All pages below a path.
fn collect(path: &Path, pages: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let about = || format!("{} can't be read", path.display());
    if !fs::metadata(path).with_context(about)?.is_dir() {
        pages.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path).with_context(about)? {
        let entry = entry.with_context(about)?;
        let inner = entry.path();
        if entry.file_type().with_context(about)?.is_dir() {
            collect(&inner, pages)?;
        } else if id_of(&inner).is_some() {
            pages.push(inner);
        }
    }
    Ok(())
}

/// The file name of a page without its extension.
fn id_of(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    [".html.gz", ".htm.gz", ".html", ".htm"]
        .into_iter()
        .find_map(|end| name.strip_suffix(end))
}

fn read_urls(args: &ExtractArgs) -> anyhow::Result<HashMap<String, String>> {
    let mut urls = HashMap::new();
    if let Some(file) = &args.urls {
        let about = || format!("{} can't be read", file.display());
        for line in BufReader::new(fs::File::open(file).with_context(about)?).lines() {
            let PageUrl { id, url } = serde_json::from_str(&line.with_context(about)?)
                .with_context(|| {
                    format!("{}: a line is not JSON with id and url", file.display())
                })?;
            urls.insert(id, url);
        }
    }
    Ok(urls)
}

/// Extracts in parallel, prints in order, and counts pages that failed.
fn extract_all(
    args: &ExtractArgs,
    pages: &[PathBuf],
    urls: &HashMap<String, String>,
    threads: usize,
) -> anyhow::Result<usize> {
    let next = AtomicUsize::new(0);
    let (done, results) = mpsc::sync_channel::<(usize, Row)>(threads * 4);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (done, next) = (done.clone(), &next);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    // The receiver is gone when printing failed.
                    if pages
                        .get(index)
                        .is_none_or(|path| done.send((index, extract(args, path, urls))).is_err())
                    {
                        return;
                    }
                }
            });
        }
        drop(done);
        let mut progress = Progress::new("pages", u64::try_from(pages.len()).ok());
        let mut early = BTreeMap::new();
        let (mut printed, mut failed) = (0, 0);
        for (index, row) in results {
            progress.advance(1);
            early.insert(index, row);
            while let Some(row) = early.remove(&printed) {
                failed += usize::from(row.error.is_some());
                output::json(&row)?;
                printed += 1;
            }
        }
        progress.finish();
        Ok(failed)
    })
}

fn extract(args: &ExtractArgs, path: &Path, urls: &HashMap<String, String>) -> Row {
    let id = id_of(path).map_or_else(|| path.display().to_string(), str::to_owned);
    let html = match read(path) {
        Ok(html) => html,
        Err(error) => {
            return row(
                id,
                Some(format!("{error:#}")),
                Article::default(),
                Duration::ZERO,
            );
        }
    };
    let start = Instant::now();
    let deadline = start + Duration::from_millis(args.budget);
    let within_budget = || Instant::now() < deadline;
    let url = args
        .url
        .as_deref()
        .or_else(|| urls.get(&id).map(String::as_str))
        .unwrap_or("");
    let page = Page {
        html: &html,
        url,
        charset: None,
        selectors: None,
        feed: None,
        now: jiff::Timestamp::now(),
    };
    let options = Options {
        markdown: args.markdown,
        explain: args.explain,
        within_budget: &within_budget,
        ..Options::default()
    };
    let article = tidings_extract::extract(&page, &options);
    row(id, None, article, start.elapsed())
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let about = || format!("{} can't be read", path.display());
    let file = fs::File::open(path).with_context(about)?;
    let mut html = Vec::new();
    if path.extension().is_some_and(|end| end == "gz") {
        GzDecoder::new(file)
            .take(MAX_PAGE_BYTES)
            .read_to_end(&mut html)
            .with_context(about)?;
    } else {
        file.take(MAX_PAGE_BYTES)
            .read_to_end(&mut html)
            .with_context(about)?;
    }
    Ok(html)
}

fn row(id: String, error: Option<String>, article: Article, took: Duration) -> Row {
    Row {
        id,
        error,
        text: article.text,
        markdown: article.markdown,
        title: article.title.map(|title| title.value),
        author: article.authors.map(|authors| authors.value.join(", ")),
        published: article.published.map(|when| when.value.to_string()),
        language: article.language.map(|language| language.value),
        page_type: article.page_type.as_str(),
        method: article.method.as_str(),
        ms: (took.as_secs_f64() * 1e6).round() / 1e3,
        blocks: article.blocks,
    }
}
