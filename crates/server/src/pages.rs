//! The dashboard: pages made here, as values, by functions that escape whatever
//! they are given. No script in them, no style in them, no link to elsewhere but
//! to http and https.

pub(crate) mod about;
pub(crate) mod audit;
mod chart;
pub(crate) mod documents;
pub(crate) mod feeds;
pub(crate) mod frontier;
pub(crate) mod health;
pub(crate) mod hosts;
pub(crate) mod login;
pub(crate) mod overview;
pub(crate) mod reference;
pub(crate) mod selectors;
pub(crate) mod sinks;
pub(crate) mod source;
pub(crate) mod sources;
pub(crate) mod timeline;
pub(crate) mod tokens;
mod words;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, Uri, header};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use tidings_store::Role;

use crate::access::Who;
use crate::call::{Answer, Call};
use crate::problem::Problem;

/// What a page may say was done; the words are [`done`]'s.
pub(crate) const DONE: &[&str] = &[
    "submitted",
    "retried",
    "deleted",
    "added",
    "changed",
    "fired",
    "woken",
    "enabled",
    "disabled",
    "blocked",
    "unblocked",
    "replayed",
    "revoked",
    "imported",
];

const PLACES: &[(&str, &str)] = &[
    ("/", "Overview"),
    ("/frontier", "Frontier"),
    ("/sources", "Sources"),
    ("/feeds", "Feeds"),
    ("/hosts", "Hosts"),
    ("/documents", "Documents"),
    ("/sinks", "Sinks"),
    ("/api", "API"),
];
const ADMIN_PLACES: &[(&str, &str)] = &[
    ("/tokens", "Tokens"),
    ("/audit", "Changes"),
    ("/settings", "Settings"),
];

/// A whole page.
fn page(call: &Call, current: &str, title: &str, content: &Markup) -> Answer {
    let said = call.text("done").map(|done| {
        html! { p.notice.good role="status" { (done_words(done, call.text("n"))) } }
    });
    let content = html! { @if let Some(said) = said { (said) } (content) };
    Ok(respond(&whole(call.who.as_ref(), current, title, &content)))
}

fn whole(who: Option<&Who>, current: &str, title: &str, content: &Markup) -> Markup {
    let is_admin = who.is_some_and(|who| who.role == Role::Admin);
    let more = if is_admin { ADMIN_PLACES } else { &[] };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Tidings" }
                link rel="icon" href="/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/style.css";
                script src="/app.js" defer {}
            }
            body {
                a.skip href="#main" { "To the content" }
                @if let Some(who) = who {
                    header.top {
                        div {
                            a.brand href="/" { img src="/icon.svg" alt=""; "Tidings" }
                            nav aria-label="Main" {
                                @for (path, name) in PLACES.iter().chain(more) {
                                    a href=(path) aria-current=[(*path == current).then_some("page")] { (name) }
                                }
                            }
                            div.me {
                                span #pulse title="live when green" {}
                                span.name { (who.name) " · " (who.role) }
                                form method="post" action="/logout" { (csrf(who)) button.small { "Log out" } }
                            }
                        }
                    }
                }
                main #main { (content) }
            }
        }
    }
}

fn respond(markup: &Markup) -> Response {
    let mut response = Response::new(Body::from(markup.0.clone()));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    response
}

/// A problem as a person sees it.
pub(crate) fn problem(problem: &Problem, who: Option<&Who>, request_id: &str) -> Response {
    let content = html! {
        h1 { (problem.title()) }
        p.notice.bad role="alert" {
            (problem.detail)
            @if let Some(field) = &problem.field { " (" code { (field) } ")" }
        }
        p.soft { "Request " code { (request_id) } " · " a href="/" { "Overview" } }
    };
    let mut response = respond(&whole(who, "", problem.title(), &content));
    problem.mark(&mut response);
    response
}

/// To the login, and back here afterwards.
pub(crate) fn to_login(uri: &Uri) -> Answer {
    let back = uri.path_and_query().map_or("/", |path| path.as_str());
    let next: String = url::form_urlencoded::byte_serialize(back.as_bytes()).collect();
    see(&format!("/login?next={next}"))
}

/// To another page of ours.
fn see(path: &str) -> Answer {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let location = HeaderValue::from_str(path).map_err(Problem::internal)?;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

fn see_done(path: &str, done: &str, n: Option<u64>) -> Answer {
    let n = n.map(|n| format!("&n={n}")).unwrap_or_default();
    see(&format!("{path}?done={done}{n}"))
}

fn done_words(done: &str, n: Option<&str>) -> String {
    let urls = |what: &str| match n {
        Some("1") => format!("One URL {what}."),
        Some(n) => format!("{n} URLs {what}."),
        None => format!("Done: {what}."),
    };
    match done {
        "submitted" => urls("submitted"),
        "retried" => match n {
            Some(n) => format!("{n} will be tried again."),
            None => "It will be tried again now.".to_owned(),
        },
        "deleted" => match n {
            Some(_) => urls("taken out of the frontier"),
            None => "It was removed.".to_owned(),
        },
        "added" => "The source was added; its feed is polled at once.".to_owned(),
        "changed" => "The changes are saved.".to_owned(),
        "fired" => format!("The feed was polled: {} new.", n.unwrap_or("0")),
        "woken" => "The feed is due now.".to_owned(),
        "enabled" => "The source goes on.".to_owned(),
        "disabled" => "The source is stopped.".to_owned(),
        "blocked" => "The host is left alone.".to_owned(),
        "unblocked" => "The host may be asked again.".to_owned(),
        "replayed" => format!("{} documents will be sent again.", n.unwrap_or("0")),
        "revoked" => "The token is revoked.".to_owned(),
        "imported" => format!("{} sources were added.", n.unwrap_or("0")),
        _ => "Done.".to_owned(),
    }
}

fn csrf(who: &Who) -> Markup {
    html! { input type="hidden" name="csrf" value=(who.csrf.as_deref().unwrap_or_default()); }
}

/// The hidden field of a form on a page of this call.
fn token(call: &Call) -> Markup {
    call.who.as_ref().map_or(PreEscaped(String::new()), csrf)
}

fn may(call: &Call, role: Role) -> bool {
    call.who.as_ref().is_some_and(|who| who.role >= role)
}

/// A button that changes something, for those who may.
fn button(call: &Call, action: &str, label: &str, class: &str, question: Option<&str>) -> Markup {
    html! {
        @if may(call, Role::Operator) {
            form.inline method="post" action=(action) data-confirm=[question] {
                (token(call)) button class={ "small " (class) } { (label) }
            }
        }
    }
}

/// A link to the outside; anything but http and https is only text.
fn outside(url: &str) -> Markup {
    let lower = url.get(..8).unwrap_or(url).to_ascii_lowercase();
    let is_safe = lower.starts_with("http://") || lower.starts_with("https://");
    html! {
        @if is_safe { a href=(url) rel="noopener noreferrer nofollow" target="_blank" { (url) } }
        @else { (url) }
    }
}

/// A part of a path, whatever is in it.
fn segment(text: &str) -> String {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| match safe(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

/// The same page with other parameters; `None` leaves one out.
fn with_params(call: &Call, path: &str, changes: &[(&str, Option<&str>)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let is_changed = |name: &str| changes.iter().any(|(changed, _)| *changed == name);
    for (name, value) in &call.params {
        if !is_changed(name) && !matches!(name.as_str(), "done" | "n" | "id") {
            query.append_pair(name, value);
        }
    }
    for (name, value) in changes {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    format!("{path}?{}", query.finish())
}

fn next_page(call: &Call, path: &str, next: Option<&str>) -> Markup {
    html! {
        @if call.text("after").is_some() || next.is_some() {
            p.more.row {
                @if call.text("after").is_some() { a.button href=(with_params(call, path, &[("after", None)])) { "First page" } }
                @if let Some(next) = next { a.button href=(with_params(call, path, &[("after", Some(next))])) rel="next" { "Next page" } }
            }
        }
    }
}
