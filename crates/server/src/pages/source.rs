//! One source: discovery, adding, changing, polling, pausing.

use maud::{Markup, html};
use serde_json::Map;
use tidings_engine::{
    PollOutcome, PolledSource, SeenItem, SourceSettings, add_source, change_source,
};
use tidings_feed::discovery::{CandidateKind, Ranked};
use tidings_store::{Feed, Moment, Role, Source};
use tidings_url::FetchUrl;

use super::forms::{button, csrf_field, has_role};
use super::layout::{page, redirect_with_notice};
use super::links::external_link;
use super::source_form::{form, from_form};
use super::source_health::{self, Health, Polls};
use super::{chart, format, selectors, sources};
use crate::api::sources::{discover_feeds, draft, find_source, poll_now};
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

pub(crate) async fn new(request: CheckedRequest) -> HandlerResult {
    let content = html! {
        p.crumbs { a href="/sources" { "Sources" } " / new" }
        h1 { "Add a source" }
        section.card {
            h2 { "Discover feeds" }
            form.filters method="post" action="/sources/discover" {
                (csrf_field(&request))
                input type="search" name="url" placeholder="https://example.com/" required aria-label="Site";
                button.main { "Discover" }
            }
            p.soft { "Discovery sends one request at a time and respects robots.txt; it can take a minute." }
        }
        details { summary { "Or enter the settings" } (form(&request, "/sources", &Map::new(), "Add")) }
    };
    page(&request, "/sources", "New source", &content)
}

pub(crate) async fn discover(request: CheckedRequest) -> HandlerResult {
    let text = request.form().remove("url").unwrap_or_default();
    let url = FetchUrl::parse(&text).map_err(|error| Problem::field("url", error.to_string()))?;
    let found = discover_feeds(&request.app, &url).await?;
    let best = |kind| {
        found
            .iter()
            .find(|ranked| ranked.candidate.kind == kind)
            .map(|ranked| ranked.candidate.url.as_str())
    };
    let mut fields = Map::new();
    fields.insert("url".to_owned(), url.as_str().into());
    if let Some(feed) = best(CandidateKind::Feed) {
        fields.insert("feed_url".to_owned(), feed.into());
    }
    if let Some(sitemap) = best(CandidateKind::Sitemap) {
        fields.insert("sitemap_url".to_owned(), sitemap.into());
    }
    let content = html! {
        p.crumbs { a href="/sources" { "Sources" } " / " a href="/sources/new" { "new" } }
        h1 { (url.as_str()) }
        section.card {
            h2 { "Candidates" }
            @if found.is_empty() { p.empty { "No feed or sitemap found. Add the source anyway: the poller continues the discovery." } }
            @else { table.list {
                tr { th { "URL" } th { "Kind" } th.n { "Items" } th.n { "Items per day" } th { "Newest" } }
                @for ranked in &found { (candidate(ranked)) }
            } }
        }
        (form(&request, "/sources", &fields, "Add this source"))
    };
    page(&request, "/sources", "Discovery", &content)
}

fn candidate(ranked: &Ranked) -> Markup {
    html! { tr {
        td.u { (external_link(&ranked.candidate.url)) }
        td { span.badge { @if ranked.candidate.kind == CandidateKind::Feed { "feed" } @else { "sitemap" } } }
        td.n data-l="items" { (ranked.items) }
        td.n data-l="items per day" { (ranked.items_per_day.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.1}"))) }
        td.t data-l="newest" { (ranked.newest.map_or_else(String::new, |newest| newest.strftime("%Y-%m-%d %H:%M").to_string())) }
    } }
}

pub(crate) async fn add(request: CheckedRequest) -> HandlerResult {
    let draft = draft(from_form(&request, Map::new()))?;
    let (source, _) = add_source(&request.app.store, &draft).await?;
    redirect_with_notice(&format!("/sources/{}", source.source_id), "added", None)
}

pub(crate) async fn change(request: CheckedRequest) -> HandlerResult {
    let source = find_source(&request).await?;
    let base = SourceSettings::of(&source).unwrap_or_default().to_json();
    let base = base.as_object().cloned().unwrap_or_default();
    let draft = draft(from_form(&request, base))?;
    change_source(&request.app.store, &source, &draft).await?;
    redirect_with_notice(&format!("/sources/{}", source.source_id), "changed", None)
}

pub(crate) async fn show(request: CheckedRequest) -> HandlerResult {
    let source = find_source(&request).await?;
    let store = &request.app.store;
    let feeds = store.feeds_of_source(source.source_id).await?;
    let now = store.now().await?;
    let polls = Polls::of(store, &feeds, source_health::PAGE_POLLS).await?;
    let days = polls.by_day(now);
    let from = format!("{} days ago", days.len().saturating_sub(1));
    let settings = SourceSettings::of(&source).unwrap_or_default();
    let path = format!("/sources/{}", source.source_id);
    let mut values = SourceSettings::of(&source)
        .map(|settings| settings.to_json())
        .unwrap_or_else(|_| source.config.clone());
    values["url"] = source.url.as_str().into();
    values["name"] = source.name.as_str().into();
    values["priority"] = source.priority.into();
    let selectors = values["selectors"].clone();
    let values = values.as_object().cloned().unwrap_or_default();
    let content = html! {
        p.crumbs { a href="/sources" { "Sources" } " / " (source.name) }
        div.row.between {
            h1 { (source.name) }
            (actions(&request, &source, &path))
        }
        p.lead { (external_link(&source.url)) }
        div #live {
            p.row.facts {
                (Health::of(&source, &feeds, &polls.rows).show())
                span.badge { (sources::mode(&settings, &feeds)) }
                @if let Some(preset) = settings.preset { span.badge { "preset " (preset.as_str()) } }
                a href={ "/frontier?source_id=" (source.source_id) } { "URLs" }
                span.soft { "added " (format::when(source.created_at, now)) " · id " (source.source_id) }
            }
            div.two {
                section.card { h2 { "Feeds" } (feed_table(&feeds, now)) }
                section.card { h2 { "New items per day" } (chart::columns(&days, "new items per day", &from)) }
            }
        }
        @if has_role(&request, Role::Operator) {
            h2 { "Settings" }
            (form(&request, &path, &values, "Save"))
            (selectors::tester(&request, &source, &selectors, None))
        }
    };
    page(&request, "/sources", &source.name, &content)
}

fn actions(request: &CheckedRequest, source: &Source, path: &str) -> Markup {
    html! {
        div.row {
            @if has_role(request, Role::Operator) {
                form.row method="post" action={ (path) "/poll" } {
                    (csrf_field(request)) button.small.main { "Poll now" } button.small name="dry_run" value="1" { "Dry run" }
                }
                @if source.enabled { (button(request, &format!("{path}/disable"), "Pause", "", None)) }
                @else { (button(request, &format!("{path}/enable"), "Resume", "", None)) }
                (button(request, &format!("{path}/delete"), "Delete", "danger", Some("Delete this source and its feeds? Its documents stay.")))
            }
        }
    }
}

fn feed_table(feeds: &[Feed], now: Moment) -> Markup {
    html! {
        @if feeds.is_empty() { p.empty { "No feeds yet." } }
        @else { table.list {
            tr { th { "Feed" } th { "Last poll" } th { "Next poll" } th.n { "Errors" } }
            @for feed in feeds { tr {
                td.u { a href={ "/feeds/" (feed.feed_id) } { (feed.url) }
                    small.cut { (feed.kind) @if let Some(error) = &feed.last_error { " · " (error) } } }
                td.t data-l="last poll" { (format::maybe_when(feed.last_polled_at, now)) }
                td.t data-l="next poll" { (format::when(feed.next_poll_at, now)) }
                td.n data-l="errors" { (feed.consecutive_errors) }
            } }
        } }
    }
}

pub(crate) async fn poll(request: CheckedRequest) -> HandlerResult {
    let source = find_source(&request).await?;
    let path = format!("/sources/{}", source.source_id);
    if request.form().contains_key("dry_run") {
        let items = request.app.poller.preview_source(&source).await?;
        let content = html! {
            p.crumbs { a href="/sources" { "Sources" } " / " a href=(path) { (source.name) } " / dry run" }
            h1 { "Feed preview" }
            section.card { @match &items {
                Err(why) => p.notice.bad { (why) },
                Ok(items) => (preview(items)),
            } }
        };
        return page(&request, "/sources", "Dry run", &content);
    }
    match poll_now(&request.app, source).await? {
        PolledSource::Polled(poll) => match poll.error {
            Some(why) if poll.outcome == PollOutcome::Failed => {
                Err(Problem::new(http::StatusCode::UNPROCESSABLE_ENTITY, why))
            }
            _ => redirect_with_notice(&path, "polled", Some(poll.items_new as u64)),
        },
        PolledSource::TooSoon { .. } => Err(Problem::too_many(
            60,
            "The source was polled less than 60 s ago; retry in 60 s.",
        )),
        PolledSource::Busy => Err(Problem::new(
            http::StatusCode::SERVICE_UNAVAILABLE,
            "The feed or its host is busy; retry in a moment.",
        )),
        PolledSource::NoFeed => Err(Problem::new(
            http::StatusCode::CONFLICT,
            "The source has no feed yet; the poller is discovering one.",
        )),
    }
}

fn preview(items: &[SeenItem]) -> Markup {
    html! {
        p.soft { (items.len()) " items, " (items.iter().filter(|item| item.is_new).count()) " of them new. Nothing was written." }
        table.list { @for item in items { tr {
            td.u { (item.title.as_deref().unwrap_or("(no title)")) small.cut { (item.url) } }
            td { @match (item.skipped, item.is_new) {
                (Some(why), _) => span.badge.warn { "skipped: " (why) },
                (None, true) => span.badge.good { "new" },
                (None, false) => span.badge { "known" },
            } }
            td.t { (item.published.map_or_else(String::new, |at| at.strftime("%Y-%m-%d %H:%M").to_string())) }
        } } }
    }
}

pub(crate) async fn resume(request: CheckedRequest) -> HandlerResult {
    let id: i64 = request.params.required("id")?;
    request.app.store.set_source_enabled(id, None).await?;
    redirect_with_notice(&format!("/sources/{id}"), "enabled", None)
}

pub(crate) async fn pause(request: CheckedRequest) -> HandlerResult {
    let id: i64 = request.params.required("id")?;
    let name = request
        .principal
        .as_ref()
        .map_or("unknown", |principal| principal.name.as_str());
    let reason = format!("paused by {name}");
    request
        .app
        .store
        .set_source_enabled(id, Some(&reason))
        .await?;
    redirect_with_notice(&format!("/sources/{id}"), "disabled", None)
}

pub(crate) async fn delete(request: CheckedRequest) -> HandlerResult {
    request
        .app
        .store
        .remove_source(request.params.required("id")?)
        .await?;
    redirect_with_notice("/sources", "deleted", None)
}
