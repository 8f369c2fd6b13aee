//! `tidings search`: queries the embedded search.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use tidings_sinks::{Hit, SearchIndex, SearchQuery, SinkConfig};

use crate::config::Config;
use crate::failure::Failure;
use crate::{node, output, sinks, stores};

/// Search the documents
#[derive(Debug, Args)]
#[command(
    after_help = "Words must all occur; \"a phrase\", -without, this OR that, title:word.

Examples:
  tidings search 'harbour council'
  tidings search '\"new pier\" -budget' --source Example --since 2026-11-01T00:00:00Z
  tidings search --language de --limit 5
  tidings search harbour --json | jq -r .hits[].url"
)]
pub(crate) struct SearchArgs {
    /// Query; without it all documents, the newest first
    #[arg(default_value = "")]
    text: String,

    /// Only of this source
    #[arg(long)]
    source: Option<String>,

    /// Only with this tag
    #[arg(long)]
    tag: Option<String>,

    /// Only in this language, for example en
    #[arg(long)]
    language: Option<String>,

    /// Published then or later
    #[arg(long, value_name = "TIME")]
    since: Option<Timestamp>,

    /// Published before then
    #[arg(long, value_name = "TIME")]
    until: Option<Timestamp>,

    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,

    /// Skip the first N results
    #[arg(long, default_value_t = 0)]
    offset: usize,
}

pub(crate) fn run(args: &SearchArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let search = config.sinks.iter().find_map(|sink| match &sink.config {
        SinkConfig::Search(search) => Some(search),
        _ => None,
    });
    let search = search.context("the embedded search is disabled; set search.enabled = true")?;
    let folder = search.folder(&sinks::context(config)?);
    if let Some(node) = other_node(config)? {
        return Err(Failure::Command(anyhow::anyhow!(
            "the index is on {node}; run tidings search there, or move it here with: tidings sink move search"
        )));
    }
    let index = SearchIndex::open(&folder).with_context(|| {
        format!(
            "there is no index in {} yet; create it with tidings run, or rebuild it with: tidings sink rebuild search",
            folder.display()
        )
    })?;
    let query = SearchQuery {
        source: args.source.clone(),
        tag: args.tag.clone(),
        language: args.language.clone(),
        since: args.since,
        until: args.until,
        limit: usize::from(args.limit),
        offset: args.offset,
        ..SearchQuery::new(args.text.clone())
    };
    let found = index.search(&query).context("the search failed")?;
    if json {
        return Ok(output::json(&found)?);
    }
    let is_terminal = std::io::stdout().is_terminal();
    for hit in &found.hits {
        show(hit, is_terminal)?;
    }
    Ok(output::line(&format!("{} found", found.total))?)
}

/// The node that has the index, if it is another one. A SQLite store has one node.
fn other_node(config: &Config) -> Result<Option<String>, Failure> {
    if config.store_address().starts_with("sqlite:") {
        return Ok(None);
    }
    let this = node::existing_id(config.data_dir())?;
    let is_search = |name: &str| {
        let named = config.sinks.iter().find(|sink| sink.name == name);
        named.is_some_and(|sink| matches!(sink.config, SinkConfig::Search(_)))
    };
    let mut other = None;
    stores::with_store(config, async |store| {
        let sinks = store.outbox().await.map_err(anyhow::Error::new)?;
        let search = sinks.into_iter().find(|sink| is_search(&sink.sink));
        other = search.and_then(|sink| sink.node);
        Ok(())
    })?;
    Ok(other.filter(|node| this.as_ref() != Some(node)))
}

fn show(hit: &Hit, is_terminal: bool) -> anyhow::Result<()> {
    let date = hit.published_at.unwrap_or(hit.fetched_at);
    output::line(&hit.title)?;
    output::line(&format!(
        "  {}  {}  {}",
        date.strftime("%Y-%m-%d %H:%M"),
        hit.source,
        hit.url
    ))?;
    let snippet = match is_terminal {
        true => bold(&hit.snippet.text, &hit.snippet.highlights),
        false => hit.snippet.text.clone(),
    };
    let snippet = snippet.split_whitespace().collect::<Vec<_>>().join(" ");
    if !snippet.is_empty() {
        output::line(&format!("  {snippet}"))?;
    }
    output::line("")
}

/// The matched words in bold. Control characters are removed: a page must not
/// control the terminal.
fn bold(text: &str, highlights: &[std::ops::Range<usize>]) -> String {
    let plain = |part: Option<&str>| -> String {
        let part = part.unwrap_or_default().chars();
        part.filter(|c| !c.is_control() || c.is_whitespace())
            .collect()
    };
    let mut bold = String::new();
    let mut at = 0;
    for range in highlights {
        bold += &plain(text.get(at..range.start));
        bold += &format!("\x1b[1m{}\x1b[0m", plain(text.get(range.clone())));
        at = range.end;
    }
    bold + &plain(text.get(at..))
}

#[cfg(test)]
mod tests {
    use super::bold;

    #[test]
    fn pages_do_not_control_the_terminal() {
        let text = "a \x1b[2Jpier";
        let pier = std::iter::once(6..10).collect::<Vec<_>>();
        assert_eq!(bold(text, &pier), "a [2J\x1b[1mpier\x1b[0m");
        let beyond = std::iter::once(3..99).collect::<Vec<_>>();
        assert_eq!(bold("short", &beyond), "sho\x1b[1m\x1b[0m");
    }
}
