//! Reddit: the newest posts of a subreddit, newest first, about a thousand deep;
//! as JSON (reliable with a key, often refused without one) or as RSS.

use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tidings_document::License;
use tidings_feed::Hints;
use tidings_net::http::{HeaderValue, header};
use tidings_net::{Purpose, Request, Response};

use crate::adapter::{
    AdapterError, AdapterErrorKind, AdapterItem, Pull, PullContext, SourceAdapter, Text,
};
use crate::quota::Quota;
use crate::requests::{Session, days, fetchable, number, overlap};
use crate::schema;
use crate::secret::Secret;
use crate::window::Window;

const SITE: &str = "https://www.reddit.com";
const OAUTH: &str = "https://oauth.reddit.com";
const CLIENT_ID: &str = "REDDIT_CLIENT_ID";
const CLIENT_SECRET: &str = "REDDIT_CLIENT_SECRET";
/// 100 requests per minute with a key, about 10 without.
const GAP_WITH_KEY: Duration = Duration::from_millis(700);
const GAP: Duration = Duration::from_secs(6);
const OVERLAP_MINUTES: u64 = 60;
const BACK_DAYS: u64 = 1;
const MAX_PAGES: u64 = 10;

#[derive(Debug)]
pub(crate) struct Reddit;

/// Where the next pull continues.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Cursor {
    window: Window,
    /// Of an interrupted backfill: the last post that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Listing {
    data: Page,
}

#[derive(Debug, Deserialize)]
struct Page {
    after: Option<String>,
    children: Vec<Child>,
}

#[derive(Debug, Deserialize)]
struct Child {
    data: Post,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Post {
    name: String,
    title: String,
    url: String,
    permalink: String,
    selftext: String,
    author: String,
    created_utc: f64,
    over_18: bool,
    is_self: bool,
}

#[derive(Debug, Deserialize)]
struct Token {
    access_token: String,
}

#[async_trait]
impl SourceAdapter for Reddit {
    fn kind(&self) -> &'static str {
        "reddit"
    }

    fn schema(&self) -> Json {
        schema::object(
            [
                (
                    "subreddit",
                    schema::text("Name of the subreddit, without r/"),
                ),
                (
                    "format",
                    schema::one_of("Format of the listing; rss needs no key", &["json", "rss"]),
                ),
                ("over_18", schema::flag("Include posts marked as over 18")),
                ("back_days", schema::back_days(BACK_DAYS)),
                ("overlap_minutes", schema::overlap_minutes(OVERLAP_MINUTES)),
                ("max_pages", schema::max_pages(MAX_PAGES)),
            ],
            &["subreddit"],
        )
    }

    async fn pull(
        &self,
        config: &Json,
        cursor: Option<&str>,
        context: &PullContext<'_>,
    ) -> Result<Pull, AdapterError> {
        let keys = Secret::find(context, CLIENT_ID).zip(Secret::find(context, CLIENT_SECRET));
        let is_rss = config["format"] == "rss";
        let gap = if keys.is_some() { GAP_WITH_KEY } else { GAP };
        let mut session = Session::new(context, gap);
        let mut pull = match (is_rss, keys) {
            (true, _) => by_feed(&mut session, config, cursor, context).await?,
            (false, keys) => {
                let service = match keys {
                    Some((id, secret)) => {
                        log_in(&mut session, id, secret).await?;
                        OAUTH
                    }
                    None => SITE,
                };
                by_listing(&mut session, service, config, cursor, context).await?
            }
        };
        (pull.requests, pull.bytes) = (session.requests, session.bytes);
        Ok(pull)
    }
}

/// A token for the requests of this pull; it is not stored.
async fn log_in(session: &mut Session<'_>, id: Secret, secret: Secret) -> Result<(), AdapterError> {
    let url = session.address(SITE, "/api/v1/access_token", &[])?;
    let url = fetchable(&url)?;
    let pair = format!("{}:{}", id.expose(), secret.expose());
    let pair = base64::engine::general_purpose::STANDARD.encode(pair);
    let mut request = Request::post(url, Purpose::Api, "grant_type=client_credentials");
    let form = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers.push((header::CONTENT_TYPE, form));
    let mut basic = HeaderValue::from_str(&format!("Basic {pair}")).map_err(|_| {
        AdapterError::new(
            AdapterErrorKind::Auth,
            "the key has characters that no header can carry",
        )
    })?;
    basic.set_sensitive(true);
    request.headers.push((header::AUTHORIZATION, basic));
    for secret in [Secret::from(pair), id, secret] {
        session.hide(secret);
    }
    let response = session.send(request).await?;
    if !response.is_success() {
        return Err(session.status_error(&response, None));
    }
    let token: Token = session.json(&response)?;
    session.send_secret("authorization", "Bearer ", token.access_token.into())
}

async fn by_listing(
    session: &mut Session<'_>,
    service: &str,
    config: &Json,
    cursor: Option<&str>,
    context: &PullContext<'_>,
) -> Result<Pull, AdapterError> {
    let overlap = overlap(config, OVERLAP_MINUTES);
    let mut cursor: Cursor = parse(cursor);
    let from = cursor
        .window
        .range(context.now, days(config, BACK_DAYS), overlap)
        .from;
    let includes_over_18 = config["over_18"] == true;
    let mut pull = Pull {
        has_more: true,
        ..Pull::default()
    };
    'pages: for page in 0..number(config, "max_pages", MAX_PAGES) {
        let result = list(session, service, config, cursor.after.as_deref(), &mut pull).await;
        let listing = match result {
            Ok(listing) => listing,
            Err(error) if page == 0 => return Err(error),
            Err(error) => {
                pull.note = Some(error.message);
                break;
            }
        };
        let mut is_past = listing.data.children.is_empty();
        for Child { data: post } in listing.data.children {
            if pull.items.len() >= context.max_items {
                break 'pages;
            }
            let at = post.created_utc as i64;
            is_past |= at < from;
            cursor.after = Some(post.name.clone());
            let is_wanted = includes_over_18 || !post.over_18;
            if at >= from && cursor.window.insert(&post.name, at) && is_wanted {
                pull.items.push(item(post, config));
            }
        }
        if is_past || listing.data.after.is_none() {
            pull.has_more = false;
            break;
        }
    }
    if !pull.has_more {
        cursor.after = None;
        cursor.window.advance();
    }
    pull.cursor = to_json(&cursor, overlap);
    Ok(pull)
}

async fn list(
    session: &mut Session<'_>,
    service: &str,
    config: &Json,
    after: Option<&str>,
    pull: &mut Pull,
) -> Result<Listing, AdapterError> {
    let name = config["subreddit"].as_str().unwrap_or_default();
    let mut query = vec![("limit", "100"), ("raw_json", "1")];
    query.extend(after.map(|after| ("after", after)));
    let url = session.address(service, &format!("/r/{name}/new.json"), &query)?;
    let response = session.get(&url).await?;
    record_quota(&response, pull);
    if response.is_success() {
        return session.json(&response);
    }
    let mut error = session.status_error(&response, None);
    if response.status == 403 {
        let hint = format!("; set {CLIENT_ID} and {CLIENT_SECRET}, or format = \"rss\"");
        error.message.push_str(&hint);
    }
    Err(error)
}

fn record_quota(response: &Response, pull: &mut Pull) {
    let number = |name: &str| response.header(name)?.parse::<f64>().ok();
    let left = number("x-ratelimit-remaining");
    if let Some((left, reset)) = left.zip(number("x-ratelimit-reset")) {
        pull.quota = Some(Quota {
            left: left.max(0.0) as u32,
            resets_in: Duration::from_secs_f64(reset.clamp(0.0, 86_400.0)),
        });
    }
}

/// One page without paging: the entries that are new.
async fn by_feed(
    session: &mut Session<'_>,
    config: &Json,
    cursor: Option<&str>,
    context: &PullContext<'_>,
) -> Result<Pull, AdapterError> {
    let name = config["subreddit"].as_str().unwrap_or_default();
    let url = session.address(SITE, &format!("/r/{name}/new/.rss"), &[("limit", "100")])?;
    let response = session.get(&url).await?;
    if !response.is_success() {
        return Err(session.status_error(&response, None));
    }
    let hints = Hints {
        content_type: response.header("content-type"),
        url: Some(&url),
        ..Hints::default()
    };
    let feed = tidings_feed::parse(&response.body, &hints).map_err(|error| {
        let message = session.readable(&format!("the response is not a feed: {error}"));
        AdapterError::new(AdapterErrorKind::Malformed, message)
    })?;
    let overlap = overlap(config, OVERLAP_MINUTES).max(Duration::from_secs(7 * 86_400));
    let mut cursor: Cursor = parse(cursor);
    let mut pull = Pull::default();
    for entry in feed.items {
        let (Some(guid), Some(link)) = (entry.guid.clone(), entry.link.clone()) else {
            continue;
        };
        if pull.items.len() >= context.max_items {
            pull.has_more = true;
            break;
        }
        if cursor.window.insert(&guid, context.now.as_second()) {
            pull.items.push(AdapterItem {
                url: link,
                guid,
                title: entry.title.clone().unwrap_or_default(),
                authors: entry.authors.clone(),
                published: entry.date(),
                image: entry.image,
                tags: vec![name.to_owned()],
                license: Some(License::Api),
                ..AdapterItem::default()
            });
        }
    }
    cursor.window.advance();
    pull.cursor = to_json(&cursor, overlap);
    Ok(pull)
}

fn parse(cursor: Option<&str>) -> Cursor {
    let known = cursor.and_then(|text| serde_json::from_str(text).ok());
    known.unwrap_or_default()
}

fn to_json(cursor: &Cursor, overlap: Duration) -> String {
    let stored = Cursor {
        window: Window::parse(Some(&cursor.window.to_json(overlap))),
        after: cursor.after.clone(),
    };
    // Strings and numbers only: there is nothing that could fail.
    serde_json::to_string(&stored).unwrap_or_else(|_| "{}".to_owned())
}

fn item(post: Post, config: &Json) -> AdapterItem {
    let discussion = format!("{SITE}{}", post.permalink);
    let text = Some(post.selftext).filter(|text| !text.is_empty());
    let is_own = post.is_self || post.url.is_empty();
    AdapterItem {
        url: if is_own { discussion.clone() } else { post.url },
        guid: post.name,
        title: post.title,
        // Who posts a link did not write what it leads to.
        authors: if is_own {
            vec![post.author]
        } else {
            Vec::new()
        },
        published: Timestamp::from_second(post.created_utc as i64).ok(),
        text: text.filter(|_| is_own).map(Text::Plain),
        tags: config["subreddit"]
            .as_str()
            .map(str::to_owned)
            .into_iter()
            .collect(),
        license: Some(License::Api),
        comments: Some(discussion),
        ..AdapterItem::default()
    }
}
