//! `tidings doc`: the stored document of a URL.

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tidings_document::Document;
use tidings_engine::{NearDuplicateStory, PageArchive, near_duplicates, stored_document};
use tidings_store::{FrontierId, Store, StoredDocument};

use super::frontier::target;
use crate::config::Config;
use crate::failure::Failure;
use crate::{output, stores};

/// Print the document of a URL
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings doc https://example.com/story
  tidings doc https://example.com/story --json
  tidings doc https://example.com/story --html > story.html    the archived page")]
pub(crate) struct DocArgs {
    url: String,

    /// Print the archived page; needs `fetch.archive_html = true`
    #[arg(long)]
    html: bool,
}

#[derive(Serialize)]
struct DocumentWithDuplicates {
    #[serde(flatten)]
    document: Document,
    /// Documents with nearly the same text.
    near_duplicates: Vec<NearDuplicateStory>,
}

pub(crate) fn run(args: &DocArgs, config: &Config, json: bool) -> Result<(), Failure> {
    stores::with_store(config, async |store| {
        let target = target(&args.url, store.proxy_hosts());
        let id = target.map_err(anyhow::Error::new)?.id();
        let stored = find(&store, id).await?.with_context(|| {
            format!(
                "{url} has no document; to see why: tidings explain {url}",
                url = args.url
            )
        })?;
        let document = stored_document(&stored).context("the document can't be read")?;
        if args.html {
            let name = document.raw_html.as_deref().with_context(
                || "the page was not archived; set fetch.archive_html = true to archive pages from now on",
            )?;
            let pages = PageArchive::in_folder(config.data_dir().join("pages"));
            let page = pages
                .read(name)
                .with_context(|| format!("the page {name} can't be read"))?;
            return Ok(output::bytes(&page)?);
        }
        let near_duplicates = near_duplicates(&store, &stored)
            .await
            .map_err(anyhow::Error::new)?;
        let shown = DocumentWithDuplicates {
            document,
            near_duplicates,
        };
        match json {
            true => output::json(&shown)?,
            false => print(&shown)?,
        }
        Ok(())
    })
}

/// The document of a URL, or of the URL it redirects to.
async fn find(store: &Store, id: FrontierId) -> anyhow::Result<Option<StoredDocument>> {
    if let Some(document) = store.document(id).await? {
        return Ok(Some(document));
    }
    match store.explain(id).await?.alias_of {
        Some(other) => Ok(store.document(other).await?),
        None => Ok(None),
    }
}

fn print(shown: &DocumentWithDuplicates) -> anyhow::Result<()> {
    let document = &shown.document;
    let date = |at: jiff::Timestamp| at.to_string();
    let quality = format!(
        "{} ({} words, extracted by {}, confidence {:.2})",
        document.content_quality,
        document.word_count,
        document.extraction.method,
        document.extraction.confidence
    );
    let known = [
        ("title", Some(document.title.clone())),
        ("url", Some(document.address().to_owned())),
        ("source", Some(document.source_name.clone())),
        ("authors", Some(document.authors.join(", "))),
        ("published", document.published_at.map(date)),
        ("modified", document.modified_at.map(date)),
        ("fetched", Some(date(document.fetched_at))),
        ("language", document.language.clone()),
        ("section", document.section.clone()),
        ("tags", Some(document.tags.join(", "))),
        ("image", document.image.clone()),
        ("license", Some(document.license.to_string())),
        ("quality", Some(quality)),
        ("revision", Some(document.revision.to_string())),
        ("duplicate of", document.duplicate_of.clone()),
        ("id", Some(document.id.clone())),
    ];
    let others = shown.near_duplicates.iter().map(|other| {
        let name = format!("{} ({})", other.url, other.source_name);
        ("near-duplicate", Some(name))
    });
    let rows: Vec<[String; 2]> = known
        .into_iter()
        .chain(others)
        .filter_map(|(name, value)| Some([name.to_owned(), value.filter(|v| !v.is_empty())?]))
        .collect();
    output::columns(&rows)?;
    output::line("")?;
    output::line(&document.body_text)
}
