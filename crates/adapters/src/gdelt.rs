//! GDELT: articles that match a query (DOC 2.0), oldest first, 250 per request. Its
//! errors are plain texts with status 200, and its JSON has bad escapes. The
//! files of every quarter of an hour are in `gdelt_files`.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tidings_document::License;

use crate::adapter::{
    AdapterError, AdapterErrorKind, AdapterItem, Pull, PullContext, SourceAdapter,
};
use crate::gdelt_files;
use crate::requests::{Session, days, number, overlap};
use crate::schema::{self, ConfigError};
use crate::window::Window;

const SERVICE: &str = "https://api.gdeltproject.org";
const GAP: Duration = Duration::from_secs(5);
const PAGE_SIZE: usize = 250;
const OVERLAP_MINUTES: u64 = 60;
const BACK_DAYS: u64 = 1;
const MAX_PAGES: u64 = 10;

#[derive(Debug)]
pub(crate) struct Gdelt;

#[derive(Debug, Deserialize)]
struct SearchResult {
    /// Nothing found is `{}`.
    #[serde(default)]
    articles: Vec<Article>,
}

#[derive(Debug, Deserialize)]
struct Article {
    url: String,
    #[serde(default)]
    title: String,
    seendate: String,
    #[serde(default)]
    socialimage: String,
    #[serde(default)]
    domain: String,
}

#[async_trait]
impl SourceAdapter for Gdelt {
    fn kind(&self) -> &'static str {
        "gdelt"
    }

    fn schema(&self) -> Json {
        let tables = ["export", "mentions", "gkg"];
        let mut max_slots = schema::number("Quarters of an hour per pull (files)", 1, 1000, 1);
        max_slots["default"] = json!(gdelt_files::MAX_SLOTS);
        schema::object(
            [
                (
                    "mode",
                    schema::one_of(
                        "Search by query, or the files of every quarter of an hour",
                        &["articles", "files"],
                    ),
                ),
                (
                    "query",
                    schema::text(
                        "Query in GDELT syntax, for example harbour sourcelang:english (articles)",
                    ),
                ),
                ("table", schema::one_of("Which files (files)", &tables)),
                (
                    "back_days",
                    schema::number(
                        "Days to look back on the first pull (articles)",
                        1,
                        90,
                        BACK_DAYS,
                    ),
                ),
                ("overlap_minutes", schema::overlap_minutes(OVERLAP_MINUTES)),
                ("max_pages", schema::max_pages(MAX_PAGES)),
                ("max_slots", max_slots),
            ],
            &[],
        )
    }

    fn validate(&self, config: &Json) -> Result<(), ConfigError> {
        schema::check(&self.schema(), config)?;
        if config["mode"] != "files" && config.get("query").is_none() {
            return Err(ConfigError {
                field: "query".to_owned(),
                why: "is missing; or mode = \"files\"".to_owned(),
            });
        }
        Ok(())
    }

    async fn pull(
        &self,
        config: &Json,
        cursor: Option<&str>,
        context: &PullContext<'_>,
    ) -> Result<Pull, AdapterError> {
        let mut session = Session::new(context, GAP);
        let mut pull = match config["mode"] == "files" {
            true => gdelt_files::pull(&mut session, config, cursor, context).await?,
            false => by_query(&mut session, config, cursor, context).await?,
        };
        (pull.requests, pull.bytes) = (session.requests, session.bytes);
        Ok(pull)
    }
}

async fn by_query(
    session: &mut Session<'_>,
    config: &Json,
    cursor: Option<&str>,
    context: &PullContext<'_>,
) -> Result<Pull, AdapterError> {
    let overlap = overlap(config, OVERLAP_MINUTES);
    let mut window = Window::parse(cursor);
    let mut from = window
        .range(context.now, days(config, BACK_DAYS), overlap)
        .from;
    let mut pull = Pull {
        has_more: true,
        ..Pull::default()
    };
    'slices: for slice in 0..number(config, "max_pages", MAX_PAGES) {
        let articles = match fetch_page(session, config, context, from).await {
            Ok(articles) => articles,
            Err(error) if slice == 0 => return Err(error),
            Err(error) => {
                pull.note = Some(error.message);
                break;
            }
        };
        let count = articles.len();
        let mut newest = from;
        for article in articles {
            if pull.items.len() >= context.max_items {
                break 'slices;
            }
            let at = seen_at(&article.seendate).unwrap_or(context.now);
            newest = newest.max(at.as_second());
            if window.insert(&article.url, at.as_second()) {
                pull.items.push(item(article, at));
            }
        }
        if count < PAGE_SIZE {
            pull.has_more = false;
            break;
        }
        // All of one quarter of an hour, which has more than a request can list.
        if newest == from {
            pull.note =
                Some("more than 250 articles in a quarter of an hour; narrow the query".to_owned());
            newest += 1;
        }
        from = newest;
    }
    window.advance();
    pull.cursor = window.to_json(overlap);
    Ok(pull)
}

async fn fetch_page(
    session: &mut Session<'_>,
    config: &Json,
    context: &PullContext<'_>,
    from: i64,
) -> Result<Vec<Article>, AdapterError> {
    let stamp = |seconds: i64| {
        let time = Timestamp::from_second(seconds).unwrap_or_default();
        time.strftime("%Y%m%d%H%M%S").to_string()
    };
    let (from, to, size) = (
        stamp(from),
        stamp(context.now.as_second()),
        PAGE_SIZE.to_string(),
    );
    let query = [
        ("query", config["query"].as_str().unwrap_or_default()),
        ("mode", "ArtList"),
        ("format", "json"),
        ("sort", "DateAsc"),
        ("maxrecords", size.as_str()),
        ("startdatetime", from.as_str()),
        ("enddatetime", to.as_str()),
    ];
    let url = session.address(SERVICE, "/api/v2/doc/doc", &query)?;
    let response = session.get(&url).await?;
    if !response.is_success() {
        return Err(session.status_error(&response, None));
    }
    let result: Result<SearchResult, AdapterError> = session.json(&response);
    let error = match result {
        Ok(result) => return Ok(result.articles),
        Err(error) => error,
    };
    let text = String::from_utf8_lossy(&response.body);
    if let Ok(result) = serde_json::from_str::<SearchResult>(&repaired(&text)) {
        return Ok(result.articles);
    }
    let kind = match text.to_lowercase().contains("limit requests") {
        true => AdapterErrorKind::RateLimited { after: Some(GAP) },
        false => error.kind,
    };
    Err(AdapterError { kind, ..error })
}

/// JSON whose texts hold escapes and control characters that JSON has not.
fn repaired(text: &str) -> String {
    let mut fixed = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.peek().copied() {
                Some(next) if "\"\\/bfnrtu".contains(next) => {
                    fixed.extend(['\\', next]);
                    rest.next();
                }
                _ => fixed.push_str("\\\\"),
            },
            c if c.is_control() => fixed.push(' '),
            c => fixed.push(c),
        }
    }
    fixed
}

/// `20261115T093000Z`
fn seen_at(text: &str) -> Option<Timestamp> {
    let time = DateTime::strptime("%Y%m%dT%H%M%SZ", text).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

fn item(article: Article, at: Timestamp) -> AdapterItem {
    AdapterItem {
        guid: article.url.clone(),
        url: article.url,
        title: article.title.trim().to_owned(),
        // When GDELT saw it, which is minutes after it was published.
        published: Some(at),
        tags: Some(article.domain)
            .filter(|domain| !domain.is_empty())
            .into_iter()
            .collect(),
        image: Some(article.socialimage).filter(|image| !image.is_empty()),
        license: Some(License::Api),
        ..AdapterItem::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_escapes_are_repaired_and_good_ones_stay() {
        let text = "{\"articles\":[{\"url\":\"u\",\"title\":\"a\\'b \\\"c\\\" \\u00e9\tx\",\"seendate\":\"\"}]}";
        assert!(serde_json::from_str::<SearchResult>(text).is_err());
        let result: SearchResult = serde_json::from_str(&repaired(text)).unwrap();
        assert_eq!(result.articles[0].title, "a\\'b \"c\" é x");
    }

    #[test]
    fn the_time_of_a_sighting() {
        let at = seen_at("20261115T093000Z").unwrap();
        assert_eq!(at.to_string(), "2026-11-15T09:30:00Z");
        assert_eq!(seen_at("yesterday"), None);
    }
}
