//! Sources: add, change, import, export, poll, discover, test selectors.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;
use serde_json::{Map, Value as Json, json};
use tidings_engine::{
    ListFormat, PolledSource, SelectorSettings, SourceDraft, SourceSettings, StartedPoll,
    StoreRobotsCache, add_source, change_source, import_list, list_end, list_start, read_list,
    write_row,
};
use tidings_extract::{Options, Page, Selector, Selectors, When, extract};
use tidings_feed::discovery::Ranked;
use tidings_net::{Failure, Purpose, Redirects, Request, RobotsGate};
use tidings_store::{Feed, Moment, Source};
use tidings_url::FetchUrl;

use crate::app::App;
use crate::body_fields::BodyFields;
use crate::problem::{Problem, field_in};
use crate::request::CheckedRequest;
use crate::response::{Changed, HandlerResult, List, json, json_with_status};

/// Between two requests of a discovery.
const DISCOVERY_DELAY: Duration = Duration::from_millis(500);

pub(crate) async fn list(request: CheckedRequest) -> HandlerResult {
    let limit = request.params.limit()?;
    let after = request.params.parsed("after")?.unwrap_or(i64::MIN);
    let sources = request.app.store.sources_after(after, limit + 1).await?;
    json(&List::page(sources, limit, |source: &Source| {
        source.source_id.to_string()
    }))
}

pub(crate) async fn find_source(request: &CheckedRequest) -> Result<Source, Problem> {
    let id: i64 = request.params.required("id")?;
    let source = request.app.store.source(id).await?;
    source.ok_or_else(|| Problem::not_found(&format!("source {id}")))
}

pub(crate) async fn get(request: CheckedRequest) -> HandlerResult {
    let source = find_source(&request).await?;
    let feeds = request.app.store.feeds_of_source(source.source_id).await?;
    let mut body = serde_json::to_value(&source).map_err(Problem::internal)?;
    body["feeds"] = json!(feeds);
    json(&body)
}

/// A source as a body describes it: name, url, priority, and its settings.
pub(crate) fn draft(mut fields: BodyFields) -> Result<SourceDraft, Problem> {
    let url = fields.url("url")?;
    let name = match fields.optional_text("name")? {
        Some(name) if !name.trim().is_empty() => name.trim().to_owned(),
        _ => url.host().to_owned(),
    };
    if name.chars().count() > 200 {
        return Err(Problem::field("name", "name is longer than 200 characters"));
    }
    let priority = fields.number("priority", 1..=10)?.unwrap_or(5) as u8;
    let settings = parse_settings(&name, fields.into_unread())?;
    Ok(SourceDraft {
        name,
        url,
        priority,
        settings,
    })
}

/// Parses settings; an error names the invalid one, found by parsing each alone.
fn parse_settings(name: &str, fields: Map<String, Json>) -> Result<SourceSettings, Problem> {
    let all = Json::Object(fields.clone());
    SourceSettings::parse(name, &all).map_err(|error| {
        let why = error.to_string();
        let is_invalid = |(key, value): &(String, Json)| {
            SourceSettings::parse(name, &json!({ key: value })).is_err()
        };
        match fields.into_iter().find(is_invalid) {
            Some((key, _)) if key != "config" => Problem::field(key, why),
            Some((key, _)) => match field_in(&why) {
                field if field.starts_with("config.") => Problem::field(field, why),
                _ => Problem::field(key, why),
            },
            None => Problem::field(field_in(&why), why),
        }
    })
}

pub(crate) async fn add(request: CheckedRequest) -> HandlerResult {
    let draft = draft(request.json()?)?;
    let (source, _) = add_source(&request.app.store, &draft).await?;
    json_with_status(StatusCode::CREATED, &source)
}

pub(crate) async fn change(request: CheckedRequest) -> HandlerResult {
    let source = find_source(&request).await?;
    let draft = draft(request.json()?)?;
    change_source(&request.app.store, &source, &draft).await?;
    json(&find_source(&request).await?)
}

pub(crate) async fn remove(request: CheckedRequest) -> HandlerResult {
    request
        .app
        .store
        .remove_source(request.params.required("id")?)
        .await?;
    json(&Changed { changed: 1 })
}

pub(crate) async fn enable(request: CheckedRequest) -> HandlerResult {
    let id = request.params.required("id")?;
    request.app.store.set_source_enabled(id, None).await?;
    json(&find_source(&request).await?)
}

pub(crate) async fn disable(request: CheckedRequest) -> HandlerResult {
    let mut fields = request.json()?;
    let reason = fields.text("reason")?;
    fields.finish()?;
    let id = request.params.required("id")?;
    request
        .app
        .store
        .set_source_enabled(id, Some(&reason))
        .await?;
    json(&find_source(&request).await?)
}

pub(crate) async fn poll_source(request: CheckedRequest) -> HandlerResult {
    let source = find_source(&request).await?;
    if request.params.is_set("dry_run") {
        return match request.app.poller.preview_source(&source).await? {
            Ok(items) => json(&json!({ "result": "dry_run", "items": items })),
            Err(why) => Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, why)),
        };
    }
    let poller = Arc::clone(&request.app.poller);
    let started = match poller.start_poll(&source).await? {
        StartedPoll::Started(started) => started,
        StartedPoll::TooSoon { last } => return Err(polled_too_soon(last)),
        StartedPoll::NoFeed => return Err(no_feed()),
    };
    let task_id = started.task.task_id;
    // In a task of its own: a client that disconnects must not cancel a poll.
    let poll = tokio::spawn(async move { poller.finish_poll(started).await });
    if !request.params.waits() {
        return json_with_status(StatusCode::ACCEPTED, &json!({ "task_id": task_id }));
    }
    match poll.await.map_err(Problem::internal)?? {
        PolledSource::Polled(poll) => {
            json(&json!({ "result": "polled", "task_id": task_id, "poll": poll }))
        }
        PolledSource::TooSoon { last } => Err(polled_too_soon(last)),
        PolledSource::Busy => Err(Problem {
            retry_after: Some(10),
            ..Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the feed or its host is busy; retry in 10 s",
            )
        }),
        PolledSource::NoFeed => Err(no_feed()),
    }
}

fn polled_too_soon(last: Moment) -> Problem {
    let why = format!("the source was polled at {last}; it can be polled once per minute");
    Problem::too_many(60, &why)
}

fn no_feed() -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "the source has no feed yet; the poller is discovering one",
    )
}

/// Polls in a task of its own: a client that disconnects must not cancel a poll.
pub(crate) async fn poll_now(app: &Arc<App>, source: Source) -> Result<PolledSource, Problem> {
    let poller = Arc::clone(&app.poller);
    let poll = tokio::spawn(async move { poller.poll_source(&source).await });
    Ok(poll.await.map_err(Problem::internal)??)
}

pub(crate) async fn fetch_log(request: CheckedRequest) -> HandlerResult {
    let source = find_source(&request).await?;
    let limit = request.params.limit()?;
    let mut items = Vec::new();
    for Feed { feed_id, url, .. } in request.app.store.feeds_of_source(source.source_id).await? {
        let log = request.app.store.fetch_log(feed_id, limit).await?;
        items.push(json!({ "feed_id": feed_id, "url": url, "log": log }));
    }
    json(&List { items, next: None })
}

fn list_format(request: &CheckedRequest) -> Result<ListFormat, Problem> {
    Ok(
        match request.params.required::<String>("format")?.as_str() {
            "opml" => ListFormat::Opml,
            "csv" => ListFormat::Csv,
            _ => ListFormat::JsonLines,
        },
    )
}

pub(crate) async fn import(request: CheckedRequest) -> HandlerResult {
    let format = list_format(&request)?;
    let body = request.body.clone();
    // Parsing a long list must not block other requests.
    let rows = tokio::task::spawn_blocking(move || read_list(format, &body)).await;
    let rows = rows
        .map_err(Problem::internal)?
        .map_err(|why| Problem::field("body", why))?;
    let report = import_list(
        &request.app.store,
        rows,
        request.params.is_set("dry_run"),
        |_| {},
    )
    .await?;
    let bad: Vec<_> = report
        .bad
        .iter()
        .map(|(line, why)| json!({ "line": line, "error": why }))
        .collect();
    json(&json!({ "added": report.added, "known": report.known, "bad": bad }))
}

pub(crate) async fn export(request: CheckedRequest) -> HandlerResult {
    let format = list_format(&request)?;
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
        let sources = request.app.store.sources_after(after, 1000).await?;
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

pub(crate) async fn discover(request: CheckedRequest) -> HandlerResult {
    let mut fields = request.json()?;
    let url = fields.url("url")?;
    fields.finish()?;
    let items = discover_feeds(&request.app, &url).await?;
    json(&List { items, next: None })
}

pub(crate) async fn discover_feeds(app: &App, url: &FetchUrl) -> Result<Vec<Ranked>, Problem> {
    let robots = robots(app);
    let found = tidings_engine::discover(
        &app.client,
        &robots,
        url,
        DISCOVERY_DELAY,
        Timestamp::now(),
        |_| {},
    );
    found.await.map_err(|failure| fetch_problem(&failure))
}

fn robots(app: &App) -> RobotsGate {
    let cache = Arc::new(StoreRobotsCache::new(app.store.clone()));
    RobotsGate::new(app.client.clone(), Some(cache))
}

/// Why a fetch failed. Addresses that were refused are only in the log.
fn fetch_problem(failure: &Failure) -> Problem {
    let code = failure.code();
    let reason = match code {
        "no_such_name" => "the host name does not exist",
        "dns" => "the DNS lookup failed",
        "connect" => "the connection failed",
        "tls" => "the TLS handshake failed",
        "disconnected" => "the host closed the connection",
        "timeout" => "the request timed out",
        "too_slow" => "the response was too slow",
        "too_many_redirects" | "redirect_loop" | "bad_redirect" => "the redirects are invalid",
        "too_large" => "the response is too large",
        "egress" => "the address is not allowed by the egress rules",
        "robots_blocked" => "robots.txt disallows it",
        "robots_unavailable" => "robots.txt is unavailable",
        "host_busy" => "the host is busy; retry later",
        _ => "the response is invalid",
    };
    Problem {
        cause: Some(failure.to_string()),
        field: Some("url".to_owned()),
        ..Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("cannot fetch the URL: {reason} ({code})"),
        )
    }
}

pub(crate) async fn test_selectors(request: CheckedRequest) -> HandlerResult {
    let mut fields = request.json()?;
    let url = fields.url("url")?;
    let selectors = Json::Object(fields.object("selectors")?);
    fields.finish()?;
    json(&extract_with(&request.app, &url, &selectors).await?)
}

/// Fetches a page and extracts it with these selectors.
pub(crate) async fn extract_with(
    app: &App,
    url: &FetchUrl,
    selectors: &Json,
) -> Result<Json, Problem> {
    let settings: SelectorSettings = serde_json::from_value(selectors.clone())
        .map_err(|error| Problem::field("selectors", format!("selectors: {error}")))?;
    let mut parsed = Selectors::default();
    for (name, text) in settings.article.named() {
        let field = format!("selectors.article.{name}");
        let selector = Selector::parse(&text)
            .map_err(|error| Problem::field(&field, format!("{field}: {error}")))?;
        *match name {
            "title" => &mut parsed.title,
            "body" => &mut parsed.body,
            "author" => &mut parsed.author,
            "published" => &mut parsed.published,
            "image" => &mut parsed.image,
            "important" => &mut parsed.important,
            _ => &mut parsed.remove,
        } = Some(selector);
    }
    let robots = robots(app);
    let fetch = async {
        robots.permit(url).await?;
        let request = Request::get(url.clone(), Purpose::Page);
        app.client.fetch(request, Redirects::Check(&robots)).await
    };
    let response = fetch.await.map_err(|failure| fetch_problem(&failure))?;
    let status = response.status;
    let address = response.url.as_str().to_owned();
    let article = tokio::task::spawn_blocking(move || {
        let text = response.text().text;
        let page = Page {
            html: text.as_bytes(),
            url: response.url.as_str(),
            charset: Some("utf-8"),
            selectors: Some(&parsed),
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
        "important": article.important,
        "excerpt": article.excerpt,
        "text": article.text,
    }))
}

pub(crate) async fn schema(_: CheckedRequest) -> HandlerResult {
    json(&crate::openapi::source_schema())
}
