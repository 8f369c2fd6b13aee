//! The frontier: totals, filters, a list page by page, submitting URLs, and bulk
//! changes after a preview.

use maud::{Markup, html};
use serde_json::{Map, Value as Json};
use tidings_store::{Filter, Order, Origin, Role, Status, Submission, UrlRow};
use tidings_url::{FetchUrl, Rules};

use super::forms::{csrf_field, has_role};
use super::layout::{page, redirect_with_notice};
use super::links::{next_page, with_params};
use super::{format, status};
use crate::api::bulk::{Action, change_all};
use crate::api::frontier::{LIST_TIMEOUT, filter, filter_from_body, is_everything, target};
use crate::body_fields::BodyFields;
use crate::params::{ORIGINS, Params, SORT_ORDERS, STATUSES};
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

const ROWS: u32 = 50;
/// Up to this many URLs are sorted by recency by default.
const MAX_SORTED: i64 = 20_000;
const FILTERS: [&str; 6] = ["q", "status", "origin", "source_id", "host", "reason"];

pub(crate) async fn show(mut request: CheckedRequest) -> HandlerResult {
    let store = request.app.store.clone();
    let stats = store.stats().await?;
    if request.params.text("after").is_none() {
        // The following pages continue in the order of the first.
        let is_small = stats.by_status.values().sum::<i64>() <= MAX_SORTED;
        let order = if is_small { "recent" } else { "newest" };
        request.params.set_default("order", order);
    }
    let filter = filter(&request)?;
    let order: Order = request.params.parsed("order")?.unwrap_or_default();
    let rows = store
        .list_within(
            &filter,
            order,
            request.params.parsed("after")?,
            ROWS,
            LIST_TIMEOUT,
        )
        .await?;
    let now = store.now().await?;
    let next = rows.next.map(|cursor| cursor.to_string());
    let content = html! {
        h1 { "Frontier" }
        div #live {
            div.grid {
                @for status in Status::ALL {
                    @let is_chosen = filter.status == Some(*status);
                    @let to = (!is_chosen).then_some(status.as_str());
                    a.stat.chosen[is_chosen] href=(with_params(&request.params, "/frontier", &[("status", to), ("after", None)])) {
                        span { (status::total_label(*status)) } b { (format::number(stats.by_status.get(status.as_str()).copied().unwrap_or(0))) }
                    }
                }
            }
            section.card {
                (filters(&request.params))
                @if rows.rows.is_empty() {
                    p.empty { @if next.is_some() { "No match so far: the next page continues the search." } @else { "No URL matches." } }
                }
                @else { table.list {
                    tr { th { "URL" } th { "Status" } th { "Origin" } th.n { "Priority" } th { "Next fetch" } th { "Last fetch" } th.n { "Attempts" } }
                    @for row in &rows.rows { (line(row, now)) }
                } }
                (next_page(&request.params, "/frontier", next.as_deref()))
            }
        }
        @if has_role(&request, Role::Operator) { div.two { (bulk_form(&request, &filter)) (submit_form(&request)) } }
    };
    page(&request, "/frontier", "Frontier", &content)
}

fn line(row: &UrlRow, now: tidings_store::Moment) -> Markup {
    let why = row.last_error.as_ref().or(row.reason.as_ref());
    html! { tr {
        td { a.cut href={ "/frontier/" (row.id) } title=(row.url) { (row.url) }
            @if let Some(why) = why.filter(|_| row.status != Status::Fetched) { small.cut title=(why) { (why) } } }
        td { (status::badge(row.status, row.reason.as_deref())) @if let Some(reason) = &row.reason { " " small { (reason) } } }
        td.t { (row.origin) }
        td.n data-l="priority" { (row.priority) }
        td.t data-l="next fetch" { (format::maybe_when(row.next_fetch_at, now)) }
        td.t data-l="last fetch" { (format::maybe_when(row.last_fetched_at, now)) }
        td.n data-l="attempts" { (row.attempts) }
    } }
}

fn filters(params: &Params) -> Markup {
    let value = |name: &str| params.text(name).unwrap_or_default().to_owned();
    let choice = |name: &'static str, label: &str, words: &[&'static str]| {
        html! {
            select name=(name) aria-label=(label) {
                option value="" { (label) }
                @for word in words { option value=(word) selected[value(name) == *word] { (option_label(name, word)) } }
            }
        }
    };
    html! {
        form.filters method="get" action="/frontier" role="search" {
            input type="search" name="q" value=(value("q")) placeholder="Part of the URL ( / )" aria-label="Part of the URL";
            (choice("status", "any status", STATUSES))
            (choice("origin", "any origin", ORIGINS))
            input name="host" value=(value("host")) placeholder="host" aria-label="Host" size="14";
            input name="source_id" value=(value("source_id")) placeholder="source id" aria-label="Source id" size="10" inputmode="numeric";
            input name="reason" value=(value("reason")) placeholder="reason" aria-label="Reason" size="12";
            (choice("order", "order", SORT_ORDERS))
            button { "Filter" }
            @if FILTERS.iter().any(|name| params.text(name).is_some()) { a.button href="/frontier" { "Clear" } }
        }
    }
}

/// The label of an option: a status as totals show it, else the word itself.
fn option_label(name: &str, word: &'static str) -> &'static str {
    match word.parse() {
        Ok(status) if name == "status" => status::total_label(status),
        _ => word,
    }
}

fn bulk_form(request: &CheckedRequest, filter: &Filter) -> Markup {
    html! {
        section.card {
            h2 { "Bulk change" }
            @if is_everything(filter) { p.soft { "Set a filter above to retry or delete all matching URLs." } }
            @else {
                p.soft { "A preview shows how many URLs match before anything changes." }
                form.row method="post" action="/frontier/bulk" {
                    (csrf_field(request))
                    @for name in FILTERS { @if let Some(value) = request.params.text(name) { input type="hidden" name=(name) value=(value); } }
                    button name="action" value="retry" { "Retry …" }
                    button.danger name="action" value="delete" { "Delete …" }
                }
            }
        }
    }
}

fn submit_form(request: &CheckedRequest) -> Markup {
    html! {
        section.card {
            h2 { "Submit URLs" }
            form method="post" action="/frontier/submit" {
                (csrf_field(request))
                textarea name="urls" aria-label="URLs, one per line" placeholder="https://example.com/story" required {}
                p { button { "Submit" } }
            }
        }
    }
}

pub(crate) async fn submit(request: CheckedRequest) -> HandlerResult {
    let urls = request.form().remove("urls").unwrap_or_default();
    let mut submissions = Vec::new();
    for (n, text) in urls.lines().map(str::trim).enumerate() {
        if text.is_empty() {
            continue;
        }
        let url = FetchUrl::parse(text)
            .map_err(|error| Problem::field("urls", format!("line {}: {error}", n + 1)))?;
        let target = target(url, &Rules::default(), request.app.store.proxy_hosts());
        submissions.push(Submission::new(target, Origin::Manual));
    }
    if submissions.is_empty() {
        return Err(Problem::field("urls", "urls has no URL"));
    }
    request.app.store.submit(&submissions).await?;
    redirect_with_notice("/frontier", "submitted", Some(submissions.len() as u64))
}

/// Shows a preview first; makes the change when it is confirmed.
pub(crate) async fn bulk(request: CheckedRequest) -> HandlerResult {
    let mut form = request.form();
    let action = form.remove("action").unwrap_or_default();
    let wanted: Action = action
        .parse()
        .map_err(|why: String| Problem::field("action", why))?;
    let is_confirmed = form.remove("confirmed").is_some();
    let mut fields = Map::new();
    for name in FILTERS {
        if let Some(value) = form.get(name).filter(|value| !value.is_empty()) {
            let json = match name {
                "source_id" => value
                    .parse::<i64>()
                    .map_or(Json::from(value.as_str()), Json::from),
                _ => Json::from(value.as_str()),
            };
            fields.insert(name.to_owned(), json);
        }
    }
    let shown: Vec<(String, String)> = fields
        .iter()
        .map(|(name, value)| {
            (
                name.clone(),
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned),
            )
        })
        .collect();
    let filter = filter_from_body(BodyFields::new(fields, ""))?;
    if is_everything(&filter) {
        return Err(Problem::field(
            "filter",
            "filter is empty; set a filter first",
        ));
    }
    if is_confirmed {
        let changed = change_all(&request.app.store, wanted, &filter).await?;
        let notice = if wanted == Action::Retry {
            "retried"
        } else {
            "deleted"
        };
        return redirect_with_notice("/frontier", notice, Some(changed));
    }
    let count = request.app.store.count(&filter).await?;
    let some = request.app.store.list(&filter, Order::Id, None, 10).await?;
    let content = html! {
        h1 { @if wanted == Action::Retry { "Retry" } @else { "Delete" } " " (format::number(count as i64)) " URLs?" }
        section.card {
            dl { @for (name, value) in &shown { dt { (name) } dd { (value) } } }
            p.soft { "Sample:" }
            ul { @for row in &some.rows { li { code { (row.url) } } } }
            form.row method="post" action="/frontier/bulk" {
                (csrf_field(&request))
                @for (name, value) in &shown { input type="hidden" name=(name) value=(value); }
                input type="hidden" name="action" value=(action);
                button.main name="confirmed" value="1" disabled[count == 0] { "Yes, " (action) " " (format::number(count as i64)) }
                a.button href="/frontier" { "Cancel" }
            }
        }
    };
    page(&request, "/frontier", "Preview", &content)
}
