//! One source: adding it by pasting an address, changing it, firing it.

use maud::{Markup, html};
use serde_json::{Map, Value as Json};
use tidings_engine::{PolledSource, SeenItem, SourceSettings, add_source, change_source};
use tidings_feed::discovery::{CandidateKind, Ranked};
use tidings_store::{Feed, Moment, Role, Source};
use tidings_url::FetchUrl;

use super::health::{self, Health, Polls};
use super::{button, chart, may, outside, page, see_done, selectors, token, words};
use crate::api::sources::{candidates, draft, fired, found};
use crate::call::{Answer, Call, Fields};
use crate::problem::Problem;

pub(crate) async fn new(call: Call) -> Answer {
    let content = html! {
        p.crumbs { a href="/sources" { "Sources" } " / new" }
        h1 { "Add a source" }
        section.card {
            h2 { "Paste any address of the site" }
            form.filters method="post" action="/sources/discover" {
                (token(&call))
                input type="search" name="url" placeholder="https://example.com/" required aria-label="Address";
                button.main { "Find its feeds" }
            }
            p.soft { "The site is asked politely, one request at a time; this can take a minute." }
        }
        details { summary { "Or fill in the form yourself" } (form(&call, "/sources", &Map::new(), "Add")) }
    };
    page(&call, "/sources", "New source", &content)
}

pub(crate) async fn discover(call: Call) -> Answer {
    let text = call.form().remove("url").unwrap_or_default();
    let url = FetchUrl::parse(&text).map_err(|error| Problem::field("url", error.to_string()))?;
    let found = candidates(&call.app, &url).await?;
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
            h2 { "Found" }
            @if found.is_empty() { p.empty { "No feed and no sitemap was found. It can be added all the same: the poller keeps looking." } }
            @else { table.list {
                tr { th { "Address" } th { "Kind" } th.n { "Items" } th.n { "A day" } th { "Newest" } }
                @for ranked in &found { (candidate(ranked)) }
            } }
        }
        (form(&call, "/sources", &fields, "Add this source"))
    };
    page(&call, "/sources", "Discovery", &content)
}

fn candidate(ranked: &Ranked) -> Markup {
    html! { tr {
        td.u { (outside(&ranked.candidate.url)) }
        td { span.badge { @if ranked.candidate.kind == CandidateKind::Feed { "feed" } @else { "sitemap" } } }
        td.n data-l="items" { (ranked.items) }
        td.n data-l="a day" { (ranked.items_per_day.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.1}"))) }
        td.t data-l="newest" { (ranked.newest.map_or_else(String::new, |newest| newest.strftime("%Y-%m-%d %H:%M").to_string())) }
    } }
}

/// The form of a source, filled in with what is known.
fn form(call: &Call, action: &str, values: &Map<String, Json>, label: &str) -> Markup {
    let text = |name: &str| match values.get(name) {
        Some(Json::String(text)) => text.clone(),
        Some(Json::Array(items)) => items
            .iter()
            .filter_map(Json::as_str)
            .collect::<Vec<_>>()
            .join(", "),
        Some(Json::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    let field = |name: &str, label: &str, hint: &str| html! { label { (label) input name=(name) value=(text(name)) placeholder=(hint); } };
    let choice = |name: &str, label: &str, words: &[&str]| {
        html! { label { (label) select name=(name) {
            option value="" { "default" }
            @for word in words { option value=(word) selected[text(name) == *word] { (word) } }
        } } }
    };
    let defaults = SourceSettings::default();
    let patterns = match values.get("article_url_patterns") {
        Some(Json::Array(patterns)) => lines(patterns),
        _ => String::new(),
    };
    html! {
        form.card method="post" action=(action) {
            (token(call))
            div.fields {
                label { "Address of the site" input name="url" value=(text("url")) required placeholder="https://example.com/"; }
                (field("name", "Name", "the host"))
                (field("feed_url", "Feed", "found by itself"))
                (field("sitemap_url", "Sitemap", "none"))
                (choice("ingestion_mode", "How articles are found", &["feed", "spider", "both"]))
                (choice("poll_policy", "When it is polled", &["adaptive", "fixed", "doubling"]))
                (field("feed_poll_interval_minutes", "Minutes between polls, if fixed", "15"))
                (field("priority", "Priority, 1 to 10", "5"))
                (field("rate_limit", "Requests a second, at most", "as robots.txt says"))
                (choice("license", "Licence", &["rss", "public-domain", "restricted", "api"]))
                (field("tags", "Tags, behind commas", "news, local"))
            }
            details open[matches!(text("ingestion_mode").as_str(), "spider" | "both")] {
                summary { "Reading its pages (spider), where a feed is missing or not enough" }
                div.fields {
                    (field("max_depth", "Clicks from the home page, 0 to 10", &defaults.max_depth.to_string()))
                    (field("pages_per_day", "Visits a day to pages that list articles", &defaults.pages_per_day.to_string()))
                    (field("external_per_day", "Articles of other sites a day, at most", &defaults.external_per_day.to_string()))
                }
                p { label { "What addresses of articles look like, where it is not seen by itself: regular expressions, one a line"
                    textarea name="article_url_patterns" rows="2" placeholder="/20[0-9]{2}/[0-9]{2}/" { (patterns) } } }
            }
            details open[values.get("selectors").is_some_and(|all| all["article"].is_object())] {
                summary { "Selectors (CSS), where the article is not found by itself" }
                (selectors::fields(values.get("selectors").unwrap_or(&Json::Null)))
            }
            p { button.main { (label) } }
        }
    }
}

fn lines(texts: &[Json]) -> String {
    let texts: Vec<_> = texts.iter().filter_map(Json::as_str).collect();
    texts.join("\n")
}

/// What a form says, as the API would be told. `kept` are settings that the form
/// has no field for.
fn described(call: &Call, mut kept: Map<String, Json>) -> Result<Fields, Problem> {
    let form = call.form();
    for (name, value) in &form {
        let value = value.trim();
        let json = match name.as_str() {
            "csrf" | "page" => continue,
            name if name.starts_with("selector_") => continue,
            "tags" => value
                .split(',')
                .map(str::trim)
                .filter(|tag| !tag.is_empty())
                .map(Json::from)
                .collect(),
            "article_url_patterns" => value
                .lines()
                .map(str::trim)
                .filter(|pattern| !pattern.is_empty())
                .map(Json::from)
                .collect(),
            "feed_poll_interval_minutes"
            | "priority"
            | "max_depth"
            | "pages_per_day"
            | "external_per_day" => value.parse::<i64>().map_or(Json::from(value), Json::from),
            "rate_limit" => value.parse::<f64>().map_or(Json::from(value), Json::from),
            _ => Json::from(value),
        };
        match value.is_empty() {
            true => kept.remove(name),
            false => kept.insert(name.clone(), json),
        };
    }
    match selectors::of_form(&form) {
        None => kept.remove("selectors"),
        Some(selectors) => kept.insert("selectors".to_owned(), selectors),
    };
    Ok(Fields::new(kept, ""))
}

pub(crate) async fn add(call: Call) -> Answer {
    let draft = draft(described(&call, Map::new())?)?;
    let (source, _) = add_source(&call.app.store, &draft).await?;
    see_done(&format!("/sources/{}", source.source_id), "added", None)
}

pub(crate) async fn change(call: Call) -> Answer {
    let source = found(&call).await?;
    let kept = SourceSettings::of(&source).unwrap_or_default().to_json();
    let kept = kept.as_object().cloned().unwrap_or_default();
    let draft = draft(described(&call, kept)?)?;
    change_source(&call.app.store, &source, &draft).await?;
    see_done(&format!("/sources/{}", source.source_id), "changed", None)
}

pub(crate) async fn show(call: Call) -> Answer {
    let source = found(&call).await?;
    let store = &call.app.store;
    let feeds = store.feeds_of_source(source.source_id).await?;
    let now = store.now().await?;
    let polls = Polls::of(store, &feeds, health::FOR_A_PAGE).await?;
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
            (actions(&call, &source, &path))
        }
        p.lead { (outside(&source.url)) }
        div #live {
            p.row.facts {
                (Health::of(&source, &feeds, &polls.rows).show())
                span.badge { (super::sources::mode(&settings, &feeds)) }
                a href={ "/frontier?source_id=" (source.source_id) } { "its URLs" }
                span.soft { "added " (words::when(source.created_at, now)) " · id " (source.source_id) }
            }
            div.two {
                section.card { h2 { "Feeds" } (feed_table(&feeds, now)) }
                section.card { h2 { "New items by day" } (chart::columns(&days, "new items of each day", &from)) }
            }
        }
        @if may(&call, Role::Operator) {
            h2 { "Settings" }
            (form(&call, &path, &values, "Save"))
            (selectors::tester(&call, &source, &selectors, None))
        }
    };
    page(&call, "/sources", &source.name, &content)
}

fn actions(call: &Call, source: &Source, path: &str) -> Markup {
    html! {
        div.row {
            @if may(call, Role::Operator) {
                form.row method="post" action={ (path) "/fire" } {
                    (token(call)) button.small.main { "Poll now" } button.small name="dry_run" value="1" { "Dry run" }
                }
                @if source.enabled { (button(call, &format!("{path}/disable"), "Stop", "", None)) }
                @else { (button(call, &format!("{path}/enable"), "Go on", "", None)) }
                (button(call, &format!("{path}/delete"), "Delete", "danger", Some("Remove this source and its feeds? Its documents stay.")))
            }
        }
    }
}

fn feed_table(feeds: &[Feed], now: Moment) -> Markup {
    html! {
        @if feeds.is_empty() { p.empty { "None yet." } }
        @else { table.list {
            tr { th { "Feed" } th { "Polled" } th { "Next" } th.n { "Errors" } }
            @for feed in feeds { tr {
                td.u { a href={ "/feeds/" (feed.feed_id) } { (feed.url) }
                    small.cut { (feed.kind) @if let Some(error) = &feed.last_error { " · " (error) } } }
                td.t data-l="polled" { (words::maybe_when(feed.last_polled_at, now)) }
                td.t data-l="next" { (words::when(feed.next_poll_at, now)) }
                td.n data-l="errors" { (feed.consecutive_errors) }
            } }
        } }
    }
}

pub(crate) async fn poll_source(call: Call) -> Answer {
    let source = found(&call).await?;
    let path = format!("/sources/{}", source.source_id);
    if call.form().contains_key("dry_run") {
        let items = call.app.poller.preview_source(&source).await?;
        let content = html! {
            p.crumbs { a href="/sources" { "Sources" } " / " a href=(path) { (source.name) } " / dry run" }
            h1 { "What the feed lists now" }
            section.card { @match &items {
                Err(why) => p.notice.bad { (why) },
                Ok(items) => (seen(items)),
            } }
        };
        return page(&call, "/sources", "Dry run", &content);
    }
    match fired(&call.app, source).await? {
        PolledSource::Polled(poll) => match poll.error {
            None => see_done(&path, "fired", Some(poll.items_new as u64)),
            Some(why) => Err(Problem::new(http::StatusCode::UNPROCESSABLE_ENTITY, why)),
        },
        PolledSource::TooSoon { .. } => Err(Problem::too_many(
            60,
            "It was fired a moment ago; once a minute is enough.",
        )),
        PolledSource::Busy => Err(Problem::new(
            http::StatusCode::SERVICE_UNAVAILABLE,
            "The feed or its host is busy; try again in a moment.",
        )),
        PolledSource::NoFeed => Err(Problem::new(
            http::StatusCode::CONFLICT,
            "The source has no feed yet; the poller looks for one.",
        )),
    }
}

fn seen(items: &[SeenItem]) -> Markup {
    html! {
        p.soft { (items.len()) " items, " (items.iter().filter(|item| item.is_new).count()) " of them new. Nothing was written." }
        table.list { @for item in items { tr {
            td.u { (item.title.as_deref().unwrap_or("without a title")) small.cut { (item.url) } }
            td { @if item.is_new { span.badge.good { "new" } } @else { span.badge { "known" } } }
            td.t { (item.published.map_or_else(String::new, |at| at.strftime("%Y-%m-%d %H:%M").to_string())) }
        } } }
    }
}

pub(crate) async fn enable(call: Call) -> Answer {
    let id: i64 = call.needed("id")?;
    call.app.store.set_source_enabled(id, None).await?;
    see_done(&format!("/sources/{id}"), "enabled", None)
}

pub(crate) async fn disable(call: Call) -> Answer {
    let id: i64 = call.needed("id")?;
    let who = call
        .who
        .as_ref()
        .map_or("a person", |who| who.name.as_str());
    let reason = format!("stopped by {who}");
    call.app.store.set_source_enabled(id, Some(&reason)).await?;
    see_done(&format!("/sources/{id}"), "disabled", None)
}

pub(crate) async fn delete(call: Call) -> Answer {
    call.app.store.remove_source(call.needed("id")?).await?;
    see_done("/sources", "deleted", None)
}
