//! Sources: add, change, import, export, fire, discover, try selectors.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;
use serde_json::{Map, Value as Json, json};
use tidings_engine::{
    ListFormat, PolledSource, SelectorSettings, SourceDraft, SourceSettings, StoreRobotsCache,
    add_source, change_source, import_list, list_end, list_start, read_list, write_row,
};
use tidings_extract::{Options, Page, Selector, Selectors, When, extract};
use tidings_feed::discovery::Ranked;
use tidings_net::{Failure, Purpose, Redirects, Request, RobotsGate};
use tidings_store::{Feed, Source};
use tidings_url::{FetchUrl, ProxyHosts};

use super::Changed;
use crate::app::App;
use crate::call::{Answer, Call, Fields, List, json, json_with};
use crate::problem::{Problem, field_in};

/// Between two requests of a search for feeds.
const PAUSE: Duration = Duration::from_millis(500);

pub(crate) async fn list(call: Call) -> Answer {
    let limit = call.limit()?;
    let after = call.parsed("after")?.unwrap_or(i64::MIN);
    let sources = call.app.store.sources_after(after, limit + 1).await?;
    json(&List::cut(sources, limit, |source: &Source| {
        source.source_id.to_string()
    }))
}

pub(crate) async fn found(call: &Call) -> Result<Source, Problem> {
    let id: i64 = call.needed("id")?;
    let source = call.app.store.source(id).await?;
    source.ok_or_else(|| Problem::not_found(&format!("source {id}")))
}

pub(crate) async fn one(call: Call) -> Answer {
    let source = found(&call).await?;
    let feeds = call.app.store.feeds_of_source(source.source_id).await?;
    let mut answer = serde_json::to_value(&source).map_err(Problem::internal)?;
    answer["feeds"] = json!(feeds);
    json(&answer)
}

/// A source as a body describes it: name, url, priority, and its settings beside.
pub(crate) fn draft(mut fields: Fields) -> Result<SourceDraft, Problem> {
    let url = fields.url("url")?;
    let name = match fields.optional_text("name")? {
        Some(name) if !name.trim().is_empty() => name.trim().to_owned(),
        _ => url.host().to_owned(),
    };
    if name.chars().count() > 200 {
        return Err(Problem::field("name", "name is longer than 200 characters"));
    }
    let priority = fields.number("priority", 1..=10)?.unwrap_or(5) as u8;
    let settings = settings(&name, fields.rest())?;
    Ok(SourceDraft {
        name,
        url,
        priority,
        settings,
    })
}

/// Settings, with the one named that is wrong: each is also tried alone.
fn settings(name: &str, fields: Map<String, Json>) -> Result<SourceSettings, Problem> {
    let all = Json::Object(fields.clone());
    SourceSettings::parse(name, &all).map_err(|error| {
        let why = error.to_string();
        let is_wrong = |(key, value): &(String, Json)| {
            SourceSettings::parse(name, &json!({ key: value })).is_err()
        };
        match fields.into_iter().find(is_wrong) {
            Some((key, _)) => Problem::field(key, why),
            None => Problem::field(field_in(&why), why),
        }
    })
}

pub(crate) async fn add(call: Call) -> Answer {
    let draft = draft(call.json()?)?;
    let (source, _) = add_source(&call.app.store, &draft).await?;
    json_with(StatusCode::CREATED, &source)
}

pub(crate) async fn change(call: Call) -> Answer {
    let source = found(&call).await?;
    let draft = draft(call.json()?)?;
    change_source(&call.app.store, &source, &draft).await?;
    json(&found(&call).await?)
}

pub(crate) async fn remove(call: Call) -> Answer {
    call.app.store.remove_source(call.needed("id")?).await?;
    json(&Changed { changed: 1 })
}

pub(crate) async fn enable(call: Call) -> Answer {
    let id = call.needed("id")?;
    call.app.store.set_source_enabled(id, None).await?;
    json(&found(&call).await?)
}

pub(crate) async fn disable(call: Call) -> Answer {
    let mut fields = call.json()?;
    let reason = fields.text("reason")?;
    fields.end()?;
    let id = call.needed("id")?;
    call.app.store.set_source_enabled(id, Some(&reason)).await?;
    json(&found(&call).await?)
}

pub(crate) async fn poll_source(call: Call) -> Answer {
    let source = found(&call).await?;
    if call.is_set("dry_run") {
        return match call.app.poller.preview_source(&source).await? {
            Ok(items) => json(&json!({ "fired": "dry_run", "items": items })),
            Err(why) => Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, why)),
        };
    }
    match fired(&call.app, source).await? {
        PolledSource::Polled(poll) => json(&json!({ "fired": "polled", "poll": poll })),
        PolledSource::TooSoon { last } => Err(Problem::too_many(
            60,
            &format!("it was fired at {last}; once a minute is enough"),
        )),
        PolledSource::Busy => Err(Problem {
            retry_after: Some(10),
            ..Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the feed or its host is busy",
            )
        }),
        PolledSource::NoFeed => Err(Problem::new(
            StatusCode::CONFLICT,
            "the source has no feed yet; the poller looks for one",
        )),
    }
}

/// In a task of its own: a client that goes away must not break off a poll.
pub(crate) async fn fired(app: &Arc<App>, source: Source) -> Result<PolledSource, Problem> {
    let poller = Arc::clone(&app.poller);
    let poll_source = tokio::spawn(async move { poller.poll_source(&source).await });
    Ok(poll_source.await.map_err(Problem::internal)??)
}

pub(crate) async fn fetch_log(call: Call) -> Answer {
    let source = found(&call).await?;
    let limit = call.limit()?;
    let mut items = Vec::new();
    for Feed { feed_id, url, .. } in call.app.store.feeds_of_source(source.source_id).await? {
        let log = call.app.store.fetch_log(feed_id, limit).await?;
        items.push(json!({ "feed_id": feed_id, "url": url, "log": log }));
    }
    json(&List { items, next: None })
}

fn format(call: &Call) -> Result<ListFormat, Problem> {
    Ok(match call.needed::<String>("format")?.as_str() {
        "opml" => ListFormat::Opml,
        "csv" => ListFormat::Csv,
        _ => ListFormat::JsonLines,
    })
}

pub(crate) async fn import(call: Call) -> Answer {
    let format = format(&call)?;
    let body = call.body.clone();
    // Long lists are parsed where they hold nobody up.
    let rows = tokio::task::spawn_blocking(move || read_list(format, &body)).await;
    let rows = rows
        .map_err(Problem::internal)?
        .map_err(|why| Problem::field("body", why))?;
    let report = import_list(&call.app.store, rows, call.is_set("dry_run"), |_| {}).await?;
    let bad: Vec<_> = report
        .bad
        .iter()
        .map(|(line, why)| json!({ "line": line, "error": why }))
        .collect();
    json(&json!({ "added": report.added, "known": report.known, "bad": bad }))
}

pub(crate) async fn export(call: Call) -> Answer {
    let format = format(&call)?;
    let mut text = String::new();
    let mut line = |part: &str| {
        text.push_str(part);
        text.push('\n');
    };
    if let Some(start) = list_start(format) {
        line(start);
    }
    let mut after = i64::MIN;
    loop {
        let sources = call.app.store.sources_after(after, 1000).await?;
        let Some(last) = sources.last() else { break };
        after = last.source_id;
        sources
            .iter()
            .for_each(|source| line(&write_row(format, source)));
    }
    if let Some(end) = list_end(format) {
        line(end);
    }
    let (kind, name) = match format {
        ListFormat::Opml => ("text/x-opml; charset=utf-8", "sources.opml"),
        ListFormat::Csv => ("text/csv; charset=utf-8", "sources.csv"),
        ListFormat::JsonLines => ("application/x-ndjson", "sources.jsonl"),
    };
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let attachment = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    headers.insert(
        header::CONTENT_DISPOSITION,
        attachment.map_err(Problem::internal)?,
    );
    Ok(response)
}

pub(crate) async fn discover(call: Call) -> Answer {
    let mut fields = call.json()?;
    let url = fields.url("url")?;
    fields.end()?;
    let items = candidates(&call.app, &url).await?;
    json(&List { items, next: None })
}

pub(crate) async fn candidates(app: &App, url: &FetchUrl) -> Result<Vec<Ranked>, Problem> {
    let robots = robots(app);
    let found =
        tidings_engine::discover(&app.client, &robots, url, PAUSE, Timestamp::now(), |_| {});
    found.await.map_err(|failure| outside(&failure))
}

fn robots(app: &App) -> RobotsGate {
    let cache = Arc::new(StoreRobotsCache::new(app.store.clone()));
    RobotsGate::new(app.client.clone(), Some(cache), ProxyHosts::default())
}

/// Why the outside did not answer. The class says what it is; addresses that
/// were refused stay with us.
fn outside(failure: &Failure) -> Problem {
    Problem {
        cause: Some(failure.to_string()),
        field: Some("url".to_owned()),
        ..Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("the site did not answer as hoped: {}", failure.code()),
        )
    }
}

pub(crate) async fn test(call: Call) -> Answer {
    let mut fields = call.json()?;
    let url = fields.url("url")?;
    let given = Json::Object(fields.object("selectors")?);
    fields.end()?;
    json(&tested(&call.app, &url, &given).await?)
}

/// What would become of a page under these selectors.
pub(crate) async fn tested(app: &App, url: &FetchUrl, given: &Json) -> Result<Json, Problem> {
    let settings: SelectorSettings = serde_json::from_value(given.clone())
        .map_err(|error| Problem::field("selectors", format!("selectors: {error}")))?;
    let mut selectors = Selectors::default();
    for (name, text) in settings.article.named() {
        let field = format!("selectors.article.{name}");
        let selector = Selector::parse(&text)
            .map_err(|error| Problem::field(&field, format!("{field}: {error}")))?;
        *match name {
            "title" => &mut selectors.title,
            "body" => &mut selectors.body,
            "author" => &mut selectors.author,
            "published" => &mut selectors.published,
            "image" => &mut selectors.image,
            _ => &mut selectors.remove,
        } = Some(selector);
    }
    let robots = robots(app);
    let asked = async {
        robots.permit(url).await?;
        let request = Request::get(url.clone(), Purpose::Page);
        app.client.fetch(request, Redirects::Check(&robots)).await
    };
    let response = asked.await.map_err(|failure| outside(&failure))?;
    let status = response.status;
    let address = response.url.as_str().to_owned();
    let article = tokio::task::spawn_blocking(move || {
        let text = response.text().text;
        let page = Page {
            html: text.as_bytes(),
            url: response.url.as_str(),
            charset: Some("utf-8"),
            selectors: Some(&selectors),
            feed: None,
            now: Timestamp::now(),
        };
        extract(&page, &Options::default())
    });
    let article = article.await.map_err(Problem::internal)?;
    Ok(json!({
        "url": address,
        "status": status,
        "title": article.title.as_ref().map(|title| &title.value),
        "authors": article.authors.as_ref().map(|authors| &authors.value),
        "published": article.published.as_ref().map(|when| match when.value {
            When::Moment(moment, _) => moment.to_string(),
            When::Day(day) => day.to_string(),
        }),
        "language": article.language.as_ref().map(|language| &language.value),
        "image": article.image.as_ref().map(|image| &image.value),
        "excerpt": article.excerpt,
        "text": article.text,
    }))
}

pub(crate) async fn schemas(_: Call) -> Answer {
    json(&crate::openapi::source_schema())
}
