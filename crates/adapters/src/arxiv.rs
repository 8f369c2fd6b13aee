//! arXiv: papers by the date of their first version, oldest first, through the
//! Atom API. One request per three seconds, a few pulls per day: the results
//! change once per day. Abstracts are the texts.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value as Json;
use tidings_document::License;
use tidings_feed::{Hints, Item};

use crate::adapter::{
    AdapterError, AdapterErrorKind, AdapterItem, Pull, PullContext, SourceAdapter, Text,
};
use crate::quota::Quota;
use crate::requests::{Session, days, number, overlap};
use crate::schema;
use crate::window::Window;

const SERVICE: &str = "https://export.arxiv.org";
const GAP: Duration = Duration::from_secs(3);
const PAGE_SIZE: usize = 200;
/// Papers are announced up to days after they were submitted.
const OVERLAP_MINUTES: u64 = 5 * 24 * 60;
const BACK_DAYS: u64 = 7;
const MAX_PAGES: u64 = 5;
const PULLS_PER_DAY: u32 = 4;

#[derive(Debug)]
pub(crate) struct Arxiv;

#[async_trait]
impl SourceAdapter for Arxiv {
    fn kind(&self) -> &'static str {
        "arxiv"
    }

    fn schema(&self) -> Json {
        schema::object(
            [
                (
                    "query",
                    schema::text("Query in arXiv syntax, for example cat:cs.CL AND abs:news"),
                ),
                ("back_days", schema::back_days(BACK_DAYS)),
                ("overlap_minutes", schema::overlap_minutes(OVERLAP_MINUTES)),
                ("max_pages", schema::max_pages(MAX_PAGES)),
            ],
            &["query"],
        )
    }

    async fn pull(
        &self,
        config: &Json,
        cursor: Option<&str>,
        context: &PullContext<'_>,
    ) -> Result<Pull, AdapterError> {
        let mut session = Session::new(context, GAP);
        let overlap = overlap(config, OVERLAP_MINUTES);
        let mut window = Window::parse(cursor);
        let range = window.range(context.now, days(config, BACK_DAYS), overlap);
        let mut pull = Pull {
            has_more: true,
            ..Pull::default()
        };
        'pages: for page in 0..number(config, "max_pages", MAX_PAGES) {
            let start = page as usize * PAGE_SIZE;
            let items = match fetch_page(&mut session, config, context, range.from, start).await {
                Ok(items) => items,
                Err(error) if page == 0 => return Err(error),
                Err(error) => {
                    pull.note = Some(error.message);
                    break;
                }
            };
            let count = items.len();
            for item in items.into_iter().filter_map(paper) {
                if pull.items.len() >= context.max_items {
                    break 'pages;
                }
                let at = item.published.unwrap_or(context.now);
                if window.insert(&item.guid, at.as_second()) {
                    pull.items.push(item);
                }
            }
            if count < PAGE_SIZE {
                pull.has_more = false;
                break;
            }
        }
        window.advance();
        pull.cursor = window.to_json(overlap);
        (pull.requests, pull.bytes) = (session.requests, session.bytes);
        // A backfill continues at its own pace; new papers of the day can wait.
        pull.quota = (!pull.has_more).then(|| Quota {
            left: PULLS_PER_DAY * pull.requests,
            resets_in: Duration::from_secs(86_400),
        });
        Ok(pull)
    }
}

async fn fetch_page(
    session: &mut Session<'_>,
    config: &Json,
    context: &PullContext<'_>,
    from: i64,
    start: usize,
) -> Result<Vec<Item>, AdapterError> {
    let stamp = |seconds: i64| {
        let time = Timestamp::from_second(seconds).unwrap_or_default();
        time.strftime("%Y%m%d%H%M").to_string()
    };
    let wanted = config["query"].as_str().unwrap_or_default();
    let (from, to) = (stamp(from), stamp(context.now.as_second() + 86_400));
    let words = format!("({wanted}) AND submittedDate:[{from} TO {to}]");
    let (start, size) = (start.to_string(), PAGE_SIZE.to_string());
    let query = [
        ("search_query", words.as_str()),
        ("start", start.as_str()),
        ("max_results", size.as_str()),
        ("sortBy", "submittedDate"),
        ("sortOrder", "ascending"),
    ];
    let url = session.address(SERVICE, "/api/query", &query)?;
    let response = session.get(&url).await?;
    let hints = Hints {
        content_type: response.header("content-type"),
        url: Some(&url),
        ..Hints::default()
    };
    let parsed = tidings_feed::parse(&response.body, &hints);
    // An error is a feed, too, with one entry of this name.
    if let Ok(feed) = &parsed
        && let [only] = feed.items.as_slice()
        && only.title.as_deref() == Some("Error")
    {
        let reason = only.summary.as_ref().map(|summary| summary.text());
        let mut error = session.status_error(&response, reason.as_deref());
        error.kind = AdapterErrorKind::Config;
        return Err(error);
    }
    if !response.is_success() {
        return Err(session.status_error(&response, None));
    }
    match parsed {
        Ok(feed) => Ok(feed.items),
        Err(error) => {
            let message = session.readable(&format!("the response is not a feed: {error}"));
            Err(AdapterError::new(AdapterErrorKind::Malformed, message))
        }
    }
}

/// Versions of a paper are one paper: the address without a version shows the
/// newest.
fn paper(item: Item) -> Option<AdapterItem> {
    let id = item.guid.or(item.link)?;
    let (_, id) = id.rsplit_once("/abs/")?;
    let id = match id.rsplit_once('v') {
        Some((id, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => id,
        _ => id,
    };
    let summary = item.summary.map(|summary| summary.text());
    Some(AdapterItem {
        url: format!("https://arxiv.org/abs/{id}"),
        guid: id.to_owned(),
        title: item.title.unwrap_or_default(),
        authors: item.authors,
        published: item.published,
        updated: item.updated,
        text: summary.clone().map(Text::Plain),
        summary,
        tags: item.categories,
        language: Some("en".to_owned()),
        content_type: Some("abstract".to_owned()),
        license: Some(License::Restricted),
        ..AdapterItem::default()
    })
}
