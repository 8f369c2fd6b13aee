//! The Guardian Open Platform: `/search`, oldest first from the cursor on, so
//! that a cap leaves the newest for the next pull. Bodies come along when texts
//! are wanted. The key is a parameter, so addresses are never shown.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value as Json;
use tidings_document::License;

use crate::adapter::{AdapterError, AdapterItem, Pull, PullContext, SourceAdapter, Text};
use crate::quota::Quota;
use crate::requests::{Session, days, number, overlap};
use crate::schema;
use crate::secret::Secret;
use crate::window::Window;

const SERVICE: &str = "https://content.guardianapis.com";
const KEY: &str = "GUARDIAN_API_KEY";
/// The smaller plan: 1 request per second, 500 per day.
const GAP: Duration = Duration::from_secs(1);
const REQUESTS_PER_DAY: u64 = 500;
const PAGE_SIZE: u64 = 200;
const OVERLAP_MINUTES: u64 = 10;
const BACK_DAYS: u64 = 1;
const MAX_PAGES: u64 = 10;

#[derive(Debug)]
pub(crate) struct Guardian;

#[derive(Debug, Deserialize)]
struct Envelope {
    response: Found,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Found {
    status: String,
    message: Option<String>,
    pages: u64,
    results: Vec<Content>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    id: String,
    web_title: String,
    web_url: String,
    #[serde(default)]
    web_publication_date: Option<Timestamp>,
    #[serde(default)]
    section_name: Option<String>,
    #[serde(default)]
    fields: Fields,
    #[serde(default)]
    tags: Vec<Tag>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Fields {
    trail_text: Option<String>,
    byline: Option<String>,
    body: Option<String>,
    thumbnail: Option<String>,
    last_modified: Option<Timestamp>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tag {
    web_title: String,
}

#[async_trait]
impl SourceAdapter for Guardian {
    fn kind(&self) -> &'static str {
        "guardian"
    }

    fn key_variable(&self) -> Option<&'static str> {
        Some(KEY)
    }

    fn schema(&self) -> Json {
        schema::object(
            [
                ("q", schema::text("Search query; all content without it")),
                ("section", schema::text("Section ids, a|b for either")),
                ("tag", schema::text("Tag ids, a,b for both")),
                ("back_days", schema::back_days(BACK_DAYS)),
                ("overlap_minutes", schema::overlap_minutes(OVERLAP_MINUTES)),
                ("max_pages", schema::max_pages(MAX_PAGES)),
                (
                    "requests_per_day",
                    schema::number(
                        "Requests per day that the key allows",
                        1,
                        1_000_000,
                        REQUESTS_PER_DAY,
                    ),
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
        let key = Secret::key(context, KEY)?;
        session.hide(key.clone());
        let overlap = overlap(config, OVERLAP_MINUTES);
        let mut window = Window::parse(cursor);
        let range = window.range(context.now, days(config, BACK_DAYS), overlap);
        let from = Timestamp::from_second(range.from)
            .unwrap_or_default()
            .to_string();
        let mut pull = Pull {
            has_more: true,
            quota: Some(Quota {
                left: number(config, "requests_per_day", REQUESTS_PER_DAY) as u32,
                resets_in: Duration::from_secs(86_400),
            }),
            ..Pull::default()
        };
        'pages: for page in 1..=number(config, "max_pages", MAX_PAGES) {
            let result =
                fetch_page(&mut session, config, context, &key, &from, page, &mut pull).await;
            let found = match result {
                Ok(found) => found,
                Err(error) if page == 1 => return Err(error),
                Err(error) => {
                    pull.note = Some(error.message);
                    break;
                }
            };
            for content in found.results {
                if pull.items.len() >= context.max_items {
                    break 'pages;
                }
                let at = content.web_publication_date.unwrap_or(context.now);
                if window.insert(&content.id, at.as_second()) {
                    pull.items.push(item(content));
                }
            }
            if page >= found.pages {
                pull.has_more = false;
                break;
            }
        }
        window.advance();
        pull.cursor = window.to_json(overlap);
        (pull.requests, pull.bytes) = (session.requests, session.bytes);
        Ok(pull)
    }
}

async fn fetch_page(
    session: &mut Session<'_>,
    config: &Json,
    context: &PullContext<'_>,
    key: &Secret,
    from: &str,
    page: u64,
    pull: &mut Pull,
) -> Result<Found, AdapterError> {
    let fields = match context.wants_text {
        true => "trailText,byline,thumbnail,lastModified,body",
        false => "trailText,byline,thumbnail,lastModified",
    };
    let (page, size) = (page.to_string(), PAGE_SIZE.to_string());
    let mut query = vec![
        ("order-by", "oldest"),
        ("use-date", "published"),
        ("from-date", from),
        ("show-fields", fields),
        ("show-tags", "keyword"),
        ("page-size", size.as_str()),
        ("page", page.as_str()),
        ("api-key", key.expose()),
    ];
    for name in ["q", "section", "tag"] {
        query.extend(config[name].as_str().map(|value| (name, value)));
    }
    let url = session.address(SERVICE, "/search", &query)?;
    let response = session.get(&url).await?;
    // Of this day; when it ends is unknown, so the rest is spread over 24 hours.
    let left = response.header("x-ratelimit-remaining-day");
    if let (Some(left), Some(quota)) = (left.and_then(|left| left.parse().ok()), &mut pull.quota) {
        quota.left = left;
    }
    let envelope: Result<Envelope, _> = session.json(&response);
    match envelope {
        Ok(envelope) if response.is_success() && envelope.response.status == "ok" => {
            Ok(envelope.response)
        }
        Ok(envelope) => Err(session.status_error(&response, envelope.response.message.as_deref())),
        Err(_) if !response.is_success() => Err(session.status_error(&response, None)),
        Err(error) => Err(error),
    }
}

fn item(content: Content) -> AdapterItem {
    let fields = content.fields;
    let tags = content.section_name.into_iter();
    AdapterItem {
        url: content.web_url,
        guid: content.id,
        title: content.web_title,
        authors: fields.byline.into_iter().collect(),
        published: content.web_publication_date,
        updated: fields.last_modified,
        summary: fields.trail_text,
        text: fields.body.filter(|body| !body.is_empty()).map(Text::Html),
        tags: tags
            .chain(content.tags.into_iter().map(|tag| tag.web_title))
            .collect(),
        image: fields.thumbnail,
        language: Some("en".to_owned()),
        license: Some(License::Api),
        ..AdapterItem::default()
    }
}
