//! `tidings frontier add`: URLs from the command line, a file or a pipe.

use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tidings_store::{Origin, Store, Submission, Target, Verdict};
use tidings_url::{FetchUrl, ProxyHosts, Rules, UrlError};

use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;

/// Add URLs to the frontier
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings frontier add https://example.com/story
  tidings frontier add --file urls.txt --priority 8
  sort -u urls.txt | tidings frontier add -")]
pub(crate) struct AddArgs {
    /// URLs; - reads them from standard input, one per line
    #[arg(value_name = "URL", required_unless_present = "file")]
    urls: Vec<String>,

    /// Read URLs from a file, one per line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// 1 (lowest) to 10 (highest)
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=10))]
    priority: u8,

    /// Id of their source
    #[arg(long, value_name = "ID", default_value_t = 0)]
    source: i64,
}

/// URLs submitted together; a bound on memory however long the input is.
const CHUNK: usize = 10_000;

#[derive(Debug, Default, Serialize)]
struct VerdictCounts {
    new: u64,
    raised: u64,
    known: u64,
    invalid: u64,
}

pub(super) async fn add(store: &Store, args: &AddArgs, json: bool) -> Result<(), Failure> {
    let mut counts = VerdictCounts::default();
    let mut progress = Progress::new("URLs", None);
    let mut chunk = Vec::with_capacity(CHUNK);
    for text in inputs(args)? {
        let text = text.context("cannot read the URLs")?;
        if text.trim().is_empty() {
            continue;
        }
        chunk.push(text);
        if chunk.len() == CHUNK {
            submit(store, args, &mut chunk, &mut counts, json).await?;
            progress.advance(CHUNK as u64);
        }
    }
    submit(store, args, &mut chunk, &mut counts, json).await?;
    progress.finish();
    if !json {
        let VerdictCounts {
            new,
            raised,
            known,
            invalid,
        } = &counts;
        output::line(&format!(
            "{new} new, {raised} raised, {known} known, {invalid} invalid"
        ))?;
    }
    if counts.invalid > 0 {
        Err(Failure::Reported)
    } else {
        Ok(())
    }
}

type Lines = Box<dyn Iterator<Item = io::Result<String>>>;

fn inputs(args: &AddArgs) -> anyhow::Result<Lines> {
    let mut all: Vec<Lines> = Vec::new();
    for url in &args.urls {
        if url == "-" {
            all.push(Box::new(io::stdin().lock().lines()));
        } else {
            all.push(Box::new(std::iter::once(Ok(url.clone()))));
        }
    }
    if let Some(path) = &args.file {
        let file = std::fs::File::open(path)
            .with_context(|| format!("{} can't be read", path.display()))?;
        all.push(Box::new(BufReader::new(file).lines()));
    }
    Ok(Box::new(all.into_iter().flatten()))
}

/// One line of the JSON output.
#[derive(Serialize)]
struct Line<'a> {
    url: &'a str,
    verdict: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

async fn submit(
    store: &Store,
    args: &AddArgs,
    chunk: &mut Vec<String>,
    counts: &mut VerdictCounts,
    json: bool,
) -> anyhow::Result<()> {
    let proxies = store.proxy_hosts();
    let parsed: Vec<Result<Submission, UrlError>> = chunk
        .iter()
        .map(|text| submission(text, args, proxies))
        .collect();
    let good: Vec<Submission> = parsed
        .iter()
        .filter_map(|one| one.as_ref().ok().cloned())
        .collect();
    let mut verdicts = store.submit(&good).await?.into_iter();
    for (text, one) in chunk.iter().zip(&parsed) {
        let (verdict, error) = match one {
            Ok(_) => match verdicts.next().context("every URL has a verdict")? {
                Verdict::New => ("new", None),
                Verdict::Raised => ("raised", None),
                Verdict::Known => ("known", None),
            },
            Err(error) => ("invalid", Some(error.rule.to_string())),
        };
        match verdict {
            "new" => counts.new += 1,
            "raised" => counts.raised += 1,
            "known" => counts.known += 1,
            _ => counts.invalid += 1,
        }
        if json {
            output::json(&Line {
                url: text,
                verdict,
                error,
            })?;
        } else if let Err(error) = one {
            output::line(&error.to_string())?;
        }
    }
    chunk.clear();
    Ok(())
}

fn submission(text: &str, args: &AddArgs, proxies: &ProxyHosts) -> Result<Submission, UrlError> {
    let target = target(text, proxies)?;
    Ok(Submission {
        source_id: args.source,
        priority: args.priority,
        ..Submission::new(target, Origin::Manual)
    })
}

pub(crate) fn target(text: &str, proxies: &ProxyHosts) -> Result<Target, UrlError> {
    let url = FetchUrl::parse(text)?;
    Ok(Target {
        key: url.canonical(&Rules::default()).key(),
        host: url.host_key(proxies),
        url,
    })
}
