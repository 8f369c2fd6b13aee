//! Hacker News: all stories by date through the search API, or one of the
//! front-page lists through the Firebase API. Posts without a link are their
//! own page.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value as Json;
use tidings_document::License;

use crate::adapter::{AdapterError, AdapterItem, Pull, PullContext, SourceAdapter, Text};
use crate::requests::{Session, days, number, overlap};
use crate::schema;
use crate::window::{Range, Window};

const SEARCH: &str = "https://hn.algolia.com";
const FIREBASE: &str = "https://hacker-news.firebaseio.com";
const GAP: Duration = Duration::from_millis(100);
/// The search API shows no more than this of one query.
const PAGE_SIZE: usize = 1000;
const OVERLAP_MINUTES: u64 = 10;
const BACK_DAYS: u64 = 1;
const MAX_PAGES: u64 = 10;
/// Requests for single items of a list.
const MAX_LIST_ITEMS: u64 = 100;
/// How long the items of a list are remembered.
const LIST_SEEN_TTL: Duration = Duration::from_secs(30 * 86_400);

#[derive(Debug)]
pub(crate) struct HackerNews;

#[derive(Debug, Deserialize)]
struct Found {
    hits: Vec<Hit>,
}

#[derive(Debug, Deserialize)]
struct Hit {
    #[serde(rename = "objectID")]
    id: String,
    created_at_i: i64,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    author: Option<String>,
    #[serde(default)]
    story_text: Option<String>,
    #[serde(default)]
    points: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Post {
    id: i64,
    by: Option<String>,
    time: i64,
    title: Option<String>,
    url: Option<String>,
    text: Option<String>,
    score: i64,
    dead: bool,
    deleted: bool,
}

#[async_trait]
impl SourceAdapter for HackerNews {
    fn kind(&self) -> &'static str {
        "hackernews"
    }

    fn schema(&self) -> Json {
        let lists = ["all", "top", "best", "new", "ask", "show", "job"];
        schema::object(
            [
                (
                    "list",
                    schema::one_of("All stories by date, or a list of the front page", &lists),
                ),
                ("q", schema::text("Words that must be in the story (all)")),
                (
                    "min_points",
                    schema::number("Minimum points of a story", 0, 100_000, 0),
                ),
                ("back_days", schema::back_days(BACK_DAYS)),
                ("overlap_minutes", schema::overlap_minutes(OVERLAP_MINUTES)),
                ("max_pages", schema::max_pages(MAX_PAGES)),
                (
                    "max_list_items",
                    schema::number("Max items of a list per pull", 1, 500, MAX_LIST_ITEMS),
                ),
            ],
            &[],
        )
    }

    async fn pull(
        &self,
        config: &Json,
        cursor: Option<&str>,
        context: &PullContext<'_>,
    ) -> Result<Pull, AdapterError> {
        let mut session = Session::new(context, GAP);
        let mut pull = match config["list"].as_str() {
            None | Some("all") => by_date(&mut session, config, cursor, context).await?,
            Some(list) => by_list(&mut session, list, config, cursor, context).await?,
        };
        (pull.requests, pull.bytes) = (session.requests, session.bytes);
        Ok(pull)
    }
}

/// Newest first, in slices: each begins where the one before ended.
async fn by_date(
    session: &mut Session<'_>,
    config: &Json,
    cursor: Option<&str>,
    context: &PullContext<'_>,
) -> Result<Pull, AdapterError> {
    let overlap = overlap(config, OVERLAP_MINUTES);
    let mut window = Window::parse(cursor);
    let mut range = window.range(context.now, days(config, BACK_DAYS), overlap);
    let min_points = number(config, "min_points", 0) as i64;
    let mut pull = Pull::default();
    let mut is_complete = false;
    'slices: for slice in 0..number(config, "max_pages", MAX_PAGES) {
        let found: Found = match search(session, config, range).await {
            Ok(found) => found,
            Err(error) if slice == 0 => return Err(error),
            Err(error) => {
                pull.note = Some(error.message);
                break;
            }
        };
        let is_last = found.hits.len() < PAGE_SIZE;
        let oldest = found.hits.iter().map(|hit| hit.created_at_i).min();
        for hit in found.hits {
            if pull.items.len() >= context.max_items {
                break 'slices;
            }
            let is_wanted = hit.points.unwrap_or_default() >= min_points;
            if window.insert(&hit.id, hit.created_at_i) && is_wanted {
                pull.items.push(item(hit));
            }
        }
        if is_last {
            is_complete = true;
            break;
        }
        // A second with a thousand stories would be requested again and again.
        range.to = match (oldest, range.to) {
            (Some(oldest), Some(to)) if oldest >= to => Some(to - 1),
            (oldest, _) => oldest,
        };
    }
    match is_complete {
        true => window.advance(),
        false => window.interrupt(),
    }
    pull.has_more = !is_complete;
    pull.cursor = window.to_json(overlap);
    Ok(pull)
}

async fn search(
    session: &mut Session<'_>,
    config: &Json,
    range: Range,
) -> Result<Found, AdapterError> {
    let mut filter = format!("created_at_i>={}", range.from);
    if let Some(to) = range.to {
        filter.push_str(&format!(",created_at_i<={to}"));
    }
    let size = PAGE_SIZE.to_string();
    let mut query = vec![
        ("tags", "story"),
        ("numericFilters", filter.as_str()),
        ("hitsPerPage", size.as_str()),
    ];
    if let Some(words) = config["q"].as_str() {
        query.push(("query", words));
    }
    let url = session.address(SEARCH, "/api/v1/search_by_date", &query)?;
    let response = session.get(&url).await?;
    match response.is_success() {
        true => session.json(&response),
        false => Err(session.status_error(&response, None)),
    }
}

/// What a list shows now and did not show before, each with a request of its own.
async fn by_list(
    session: &mut Session<'_>,
    list: &str,
    config: &Json,
    cursor: Option<&str>,
    context: &PullContext<'_>,
) -> Result<Pull, AdapterError> {
    let url = session.address(FIREBASE, &format!("/v0/{list}stories.json"), &[])?;
    let response = session.get(&url).await?;
    if !response.is_success() {
        return Err(session.status_error(&response, None));
    }
    let ids: Vec<i64> = session.json(&response)?;
    let mut window = Window::parse(cursor);
    let now = context.now.as_second();
    let min_points = number(config, "min_points", 0) as i64;
    let max_items = number(config, "max_list_items", MAX_LIST_ITEMS);
    let mut pull = Pull::default();
    let mut requested = 0;
    for id in ids {
        if window.contains(&id.to_string()) {
            // Still shown, still remembered.
            window.insert(&id.to_string(), now);
            continue;
        }
        if requested == max_items || pull.items.len() >= context.max_items {
            pull.has_more = true;
            break;
        }
        requested += 1;
        let url = session.address(FIREBASE, &format!("/v0/item/{id}.json"), &[])?;
        let post = match session.get(&url).await {
            Ok(response) if response.is_success() => session.json::<Option<Post>>(&response),
            Ok(response) => Err(session.status_error(&response, None)),
            Err(error) => Err(error),
        };
        match post {
            // An item whose request failed stays unknown.
            Err(error) if pull.items.is_empty() => return Err(error),
            Err(error) => {
                pull.note = Some(error.message);
                pull.has_more = true;
                break;
            }
            Ok(None) => {}
            Ok(Some(post)) => {
                // Points come later: it may be wanted the next time.
                if post.score < min_points {
                    continue;
                }
                if !post.dead && !post.deleted {
                    pull.items.push(item(post.into()));
                }
            }
        }
        window.insert(&id.to_string(), now);
    }
    window.advance();
    pull.cursor = window.to_json(LIST_SEEN_TTL);
    Ok(pull)
}

impl From<Post> for Hit {
    fn from(post: Post) -> Self {
        Self {
            id: post.id.to_string(),
            created_at_i: post.time,
            title: post.title,
            url: post.url,
            author: post.by,
            story_text: post.text,
            points: Some(post.score),
        }
    }
}

fn item(hit: Hit) -> AdapterItem {
    let discussion = format!("https://news.ycombinator.com/item?id={}", hit.id);
    let text = hit.story_text.filter(|text| !text.is_empty());
    let link = hit.url.filter(|url| !url.is_empty());
    AdapterItem {
        // Who posts a link did not write what it leads to.
        authors: match link {
            Some(_) => Vec::new(),
            None => hit.author.into_iter().collect(),
        },
        url: link.unwrap_or_else(|| discussion.clone()),
        guid: hit.id,
        title: hit.title.unwrap_or_default(),
        published: Timestamp::from_second(hit.created_at_i).ok(),
        text: text.map(Text::Html),
        license: Some(License::Api),
        comments: Some(discussion),
        ..AdapterItem::default()
    }
}
