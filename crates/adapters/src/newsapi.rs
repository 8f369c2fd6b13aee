//! NewsAPI.org v2: `everything` by date, newest first, and `top-headlines`.
//! Plans cap how many results can be seen; what a cap leaves out comes with
//! the next pulls. Texts are cut by the service, so items are pages to fetch.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tidings_document::License;

use crate::adapter::{
    AdapterError, AdapterErrorKind, AdapterItem, Pull, PullContext, SourceAdapter,
};
use crate::quota::Quota;
use crate::requests::{Session, days, number, overlap};
use crate::schema;
use crate::secret::Secret;
use crate::window::{Range, Window};

const SERVICE: &str = "https://newsapi.org";
const KEY: &str = "NEWSAPI_KEY";
const GAP: Duration = Duration::from_millis(200);
const PAGE_SIZE: usize = 100;
/// Listed one to two hours late, and a day late on the free plan.
const OVERLAP_MINUTES: u64 = 120;
const BACK_DAYS: u64 = 2;
const MAX_PAGES: u64 = 5;
const REQUESTS_PER_DAY: u64 = 100;

#[derive(Debug)]
pub(crate) struct NewsApi;

#[derive(Debug, Deserialize)]
struct ResultPage {
    #[serde(rename = "totalResults")]
    total: usize,
    articles: Vec<Article>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Article {
    source: Option<Publisher>,
    author: Option<String>,
    title: Option<String>,
    description: Option<String>,
    url: Option<String>,
    url_to_image: Option<String>,
    published_at: Option<Timestamp>,
}

#[derive(Debug, Deserialize)]
struct Publisher {
    name: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ErrorBody {
    code: String,
    message: String,
}

#[async_trait]
impl SourceAdapter for NewsApi {
    fn kind(&self) -> &'static str {
        "newsapi"
    }

    fn key_variable(&self) -> Option<&'static str> {
        Some(KEY)
    }

    fn schema(&self) -> Json {
        let mut query = schema::text("Search query: words, \"phrases\", AND, OR, NOT");
        query["maxLength"] = json!(500);
        schema::object(
            [
                (
                    "endpoint",
                    schema::one_of("API endpoint", &["everything", "top-headlines"]),
                ),
                ("q", query),
                (
                    "sources",
                    schema::text("Publisher ids (comma separated), max 20"),
                ),
                (
                    "domains",
                    schema::text("Include only these domains (everything)"),
                ),
                (
                    "exclude_domains",
                    schema::text("Exclude these domains (everything)"),
                ),
                (
                    "language",
                    schema::text("ISO 639-1 language code (everything)"),
                ),
                (
                    "country",
                    schema::text("ISO 3166-1 country code (top-headlines; not with sources)"),
                ),
                (
                    "category",
                    schema::text("business, science, … (top-headlines; not with sources)"),
                ),
                ("back_days", schema::back_days(BACK_DAYS)),
                ("overlap_minutes", schema::overlap_minutes(OVERLAP_MINUTES)),
                ("max_pages", schema::max_pages(MAX_PAGES)),
                (
                    "requests_per_day",
                    schema::number(
                        "Requests per day that the plan allows",
                        1,
                        1_000_000,
                        REQUESTS_PER_DAY,
                    ),
                ),
            ],
            &[],
        )
    }

    fn validate(&self, config: &Json) -> Result<(), schema::ConfigError> {
        schema::check(&self.schema(), config)?;
        let has = |name: &str| config.get(name).is_some();
        let wrong = |field: &str, why: &str| {
            Err(schema::ConfigError {
                field: field.to_owned(),
                why: why.to_owned(),
            })
        };
        let publishers = config["sources"].as_str().unwrap_or_default();
        if publishers.split(',').count() > 20 {
            return wrong("sources", "has more than 20 ids");
        }
        if is_headlines(config) {
            if has("sources") && (has("country") || has("category")) {
                return wrong("sources", "can't be combined with country or category");
            }
            if !["sources", "country", "category", "q"].into_iter().any(has) {
                return wrong("q", "is missing; or country, category or sources");
            }
        } else if !["q", "sources", "domains"].into_iter().any(has) {
            return wrong("q", "is missing; or sources or domains");
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
        let key = Secret::key(context, KEY)?;
        session.send_secret("x-api-key", "", key)?;
        let overlap = overlap(config, OVERLAP_MINUTES);
        let mut window = Window::parse(cursor);
        let range = window.range(context.now, days(config, BACK_DAYS), overlap);
        let mut pull = Pull::default();
        let mut is_complete = false;
        let mut listed = 0;
        'pages: for page in 1..=number(config, "max_pages", MAX_PAGES) {
            let results = match fetch_page(&mut session, config, range, page).await {
                Ok(Some(results)) => results,
                // The plan shows no more.
                Ok(None) => break,
                Err(error) if page == 1 => return Err(error),
                Err(error) => {
                    pull.note = Some(error.message);
                    break;
                }
            };
            let count = results.articles.len();
            listed += count;
            for article in results.articles {
                if pull.items.len() >= context.max_items {
                    break 'pages;
                }
                let Some(item) = item(article) else { continue };
                // Headlines have no order: they are known by when they were seen.
                let at = match is_headlines(config) {
                    true => context.now,
                    false => item.published.unwrap_or(context.now),
                };
                if window.insert(&item.guid, at.as_second()) {
                    pull.items.push(item);
                }
            }
            if count < PAGE_SIZE || listed >= results.total {
                is_complete = true;
                break;
            }
        }
        match is_complete || is_headlines(config) {
            true => window.advance(),
            false => window.interrupt(),
        }
        pull.has_more = !is_complete;
        pull.cursor = window.to_json(overlap);
        (pull.requests, pull.bytes) = (session.requests, session.bytes);
        pull.quota = Some(Quota {
            left: number(config, "requests_per_day", REQUESTS_PER_DAY) as u32,
            resets_in: Duration::from_secs(86_400),
        });
        Ok(pull)
    }
}

fn is_headlines(config: &Json) -> bool {
    config["endpoint"] == "top-headlines"
}

/// One page; `None` when the plan does not show it.
async fn fetch_page(
    session: &mut Session<'_>,
    config: &Json,
    range: Range,
    page: u64,
) -> Result<Option<ResultPage>, AdapterError> {
    let time = |seconds: i64| {
        Timestamp::from_second(seconds)
            .unwrap_or_default()
            .to_string()
    };
    let mut query = vec![
        ("pageSize".to_owned(), PAGE_SIZE.to_string()),
        ("page".to_owned(), page.to_string()),
    ];
    for (name, parameter) in [
        ("q", "q"),
        ("sources", "sources"),
        ("domains", "domains"),
        ("exclude_domains", "excludeDomains"),
        ("language", "language"),
        ("country", "country"),
        ("category", "category"),
    ] {
        if let Some(value) = config[name].as_str() {
            query.push((parameter.to_owned(), value.to_owned()));
        }
    }
    let path = match is_headlines(config) {
        true => "/v2/top-headlines",
        false => {
            query.push(("sortBy".to_owned(), "publishedAt".to_owned()));
            query.push(("from".to_owned(), time(range.from)));
            query.extend(range.to.map(|to| ("to".to_owned(), time(to))));
            "/v2/everything"
        }
    };
    let query: Vec<_> = query
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let response = session
        .get(&session.address(SERVICE, path, &query)?)
        .await?;
    if response.is_success() {
        return session.json(&response).map(Some);
    }
    let body: Option<ErrorBody> = serde_json::from_slice(&response.body).ok();
    let Some(ErrorBody { code, message }) = body else {
        return Err(session.status_error(&response, None));
    };
    if code == "maximumResultsReached" {
        return Ok(None);
    }
    let mut error = session.status_error(&response, Some(&format!("{code}: {message}")));
    if code == "apiKeyExhausted" {
        error.kind = AdapterErrorKind::RateLimited { after: None };
    }
    Err(error)
}

fn item(article: Article) -> Option<AdapterItem> {
    let url = article.url.filter(|url| !url.is_empty())?;
    let title = article.title.unwrap_or_default();
    // What was taken down stays listed under this name.
    if title == "[Removed]" {
        return None;
    }
    Some(AdapterItem {
        guid: url.clone(),
        url,
        title,
        authors: article.author.into_iter().collect(),
        published: article.published_at,
        summary: article.description,
        tags: article
            .source
            .and_then(|source| source.name)
            .into_iter()
            .collect(),
        image: article.url_to_image,
        license: Some(License::Api),
        ..AdapterItem::default()
    })
}
