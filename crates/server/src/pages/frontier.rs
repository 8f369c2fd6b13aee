//! The frontier: numbers, filters, a table page by page, adding URLs, and
//! changing all that match, after a preview.

use maud::{Markup, html};
use serde_json::{Map, Value as Json};
use tidings_store::{Filter, Order, Origin, Role, Status, Submission, UrlRow};
use tidings_url::{FetchUrl, Rules};

use super::{may, next_page, page, see_done, token, with_params, words};
use crate::api::bulk::{Action, change_all};
use crate::api::frontier::{PATIENCE, filter, filter_of, is_everything, target};
use crate::call::{Answer, Call, Fields};
use crate::problem::Problem;
use crate::routes::{ORDERS, ORIGINS};

const ROWS: u32 = 50;
/// So many can be sorted for every look at them.
const FEW: i64 = 20_000;
const FILTERS: [&str; 6] = ["q", "status", "origin", "source_id", "host", "reason"];

pub(crate) async fn show(mut call: Call) -> Answer {
    let store = call.app.store.clone();
    let stats = store.stats().await?;
    if call.text("after").is_none() {
        // All pages that follow are in the order of the first.
        let order = call.params.entry("order".to_owned());
        let is_small = stats.by_status.values().sum::<i64>() <= FEW;
        order.or_insert_with(|| if is_small { "recent" } else { "newest" }.to_owned());
    }
    let filter = filter(&call)?;
    let order: Order = call.parsed("order")?.unwrap_or_default();
    let rows = store
        .list_within(&filter, order, call.parsed("after")?, ROWS, PATIENCE)
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
                    a.stat.chosen[is_chosen] href=(with_params(&call, "/frontier", &[("status", to), ("after", None)])) {
                        span { (status) } b { (words::number(stats.by_status.get(status.as_str()).copied().unwrap_or(0))) }
                    }
                }
            }
            section.card {
                (filters(&call))
                @if rows.rows.is_empty() {
                    p.empty { @if next.is_some() { "Nothing so far: the next page looks further." } @else { "No URL matches." } }
                }
                @else { table.list {
                    tr { th { "URL" } th { "Status" } th { "Found by" } th.n { "Priority" } th { "Next" } th { "Fetched" } th.n { "Tries" } }
                    @for row in &rows.rows { (line(row, now)) }
                } }
                (next_page(&call, "/frontier", next.as_deref()))
            }
        }
        @if may(&call, Role::Operator) { div.two { (bulk_form(&call, &filter)) (submit_form(&call)) } }
    };
    page(&call, "/frontier", "Frontier", &content)
}

fn line(row: &UrlRow, now: tidings_store::Moment) -> Markup {
    let why = row.last_error.as_ref().or(row.reason.as_ref());
    html! { tr {
        td { a.cut href={ "/frontier/" (row.id) } title=(row.url) { (row.url) }
            @if let Some(why) = why.filter(|_| row.status != Status::Fetched) { small.cut title=(why) { (why) } } }
        td { (words::status(row.status)) @if let Some(reason) = &row.reason { " " small { (reason) } } }
        td.t { (row.origin) }
        td.n data-l="priority" { (row.priority) }
        td.t data-l="next" { (words::maybe_when(row.next_fetch_at, now)) }
        td.t data-l="fetched" { (words::maybe_when(row.last_fetched_at, now)) }
        td.n data-l="tries" { (row.attempts) }
    } }
}

fn filters(call: &Call) -> Markup {
    let value = |name: &str| call.text(name).unwrap_or_default().to_owned();
    let choice = |name: &'static str, label: &str, words: &[&str]| {
        html! {
            select name=(name) aria-label=(label) {
                option value="" { (label) }
                @for word in words { option value=(word) selected[value(name) == *word] { (word) } }
            }
        }
    };
    html! {
        form.filters method="get" action="/frontier" role="search" {
            input type="search" name="q" value=(value("q")) placeholder="Part of the URL ( / )" aria-label="Part of the URL";
            (choice("status", "any status", crate::routes::STATUSES))
            (choice("origin", "any origin", ORIGINS))
            input name="host" value=(value("host")) placeholder="host" aria-label="Host" size="14";
            input name="source_id" value=(value("source_id")) placeholder="source id" aria-label="Source id" size="10" inputmode="numeric";
            input name="reason" value=(value("reason")) placeholder="reason" aria-label="Reason" size="12";
            (choice("order", "order", ORDERS))
            button { "Filter" }
            @if FILTERS.iter().any(|name| call.text(name).is_some()) { a.button href="/frontier" { "Clear" } }
        }
    }
}

fn bulk_form(call: &Call, filter: &Filter) -> Markup {
    html! {
        section.card {
            h2 { "All that match" }
            @if is_everything(filter) { p.soft { "Set a filter above to retry or delete what it matches." } }
            @else {
                p.soft { "You see how many it is before anything happens." }
                form.row method="post" action="/frontier/bulk" {
                    (token(call))
                    @for name in FILTERS { @if let Some(value) = call.text(name) { input type="hidden" name=(name) value=(value); } }
                    button name="action" value="retry" { "Retry …" }
                    button.danger name="action" value="delete" { "Delete …" }
                }
            }
        }
    }
}

fn submit_form(call: &Call) -> Markup {
    html! {
        section.card {
            h2 { "Add URLs" }
            form method="post" action="/frontier/submit" {
                (token(call))
                textarea name="urls" aria-label="URLs, one a line" placeholder="https://example.com/story" required {}
                p { button { "Submit" } }
            }
        }
    }
}

pub(crate) async fn submit(call: Call) -> Answer {
    let urls = call.form().remove("urls").unwrap_or_default();
    let mut submissions = Vec::new();
    for (n, text) in urls.lines().map(str::trim).enumerate() {
        if text.is_empty() {
            continue;
        }
        let url = FetchUrl::parse(text)
            .map_err(|error| Problem::field("urls", format!("line {}: {error}", n + 1)))?;
        let target = target(url, &Rules::default());
        submissions.push(Submission::new(target, Origin::Manual));
    }
    if submissions.is_empty() {
        return Err(Problem::field("urls", "there is no URL in it"));
    }
    call.app.store.submit(&submissions).await?;
    see_done("/frontier", "submitted", Some(submissions.len() as u64))
}

/// First a preview; then, when it is confirmed, the change.
pub(crate) async fn bulk(call: Call) -> Answer {
    let mut form = call.form();
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
    let filter = filter_of(Fields::new(fields, ""))?;
    if is_everything(&filter) {
        return Err(Problem::field("filter", "set a filter first"));
    }
    if is_confirmed {
        let changed = change_all(&call.app.store, wanted, &filter).await?;
        let done = if wanted == Action::Retry {
            "retried"
        } else {
            "deleted"
        };
        return see_done("/frontier", done, Some(changed));
    }
    let count = call.app.store.count(&filter).await?;
    let some = call.app.store.list(&filter, Order::Id, None, 10).await?;
    let content = html! {
        h1 { @if wanted == Action::Retry { "Retry" } @else { "Delete" } " " (words::number(count as i64)) " URLs?" }
        section.card {
            dl { @for (name, value) in &shown { dt { (name) } dd { (value) } } }
            p.soft { "For example:" }
            ul { @for row in &some.rows { li { code { (row.url) } } } }
            form.row method="post" action="/frontier/bulk" {
                (token(&call))
                @for (name, value) in &shown { input type="hidden" name=(name) value=(value); }
                input type="hidden" name="action" value=(action);
                button.main name="confirmed" value="1" disabled[count == 0] { "Yes, " (action) " " (words::number(count as i64)) }
                a.button href="/frontier" { "Cancel" }
            }
        }
    };
    page(&call, "/frontier", "Preview", &content)
}
