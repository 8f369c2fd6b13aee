//! The frame of every page: head, navigation, notice, content; and redirects
//! between pages.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, Uri, header};
use maud::{DOCTYPE, Markup, html};
use tidings_store::Role;

use super::forms::csrf_input;
use super::notice;
use crate::access::Principal;
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

const NAVIGATION: &[(&str, &str)] = &[
    ("/", "Overview"),
    ("/frontier", "Frontier"),
    ("/sources", "Sources"),
    ("/feeds", "Feeds"),
    ("/hosts", "Hosts"),
    ("/documents", "Documents"),
    ("/sinks", "Sinks"),
    ("/api", "API"),
];
const ADMIN_NAVIGATION: &[(&str, &str)] = &[
    ("/tokens", "Tokens"),
    ("/audit", "Audit log"),
    ("/settings", "Settings"),
];

/// A page for a user who is logged in.
pub(super) fn page(
    request: &CheckedRequest,
    current: &str,
    title: &str,
    content: &Markup,
) -> HandlerResult {
    let params = &request.params;
    let notice = params.text("done").map(|done| {
        html! { p.notice.good role="status" { (notice::text(done, params.text("n"))) } }
    });
    let content = html! { @if let Some(notice) = notice { (notice) } (content) };
    let principal = request.principal.as_ref();
    Ok(html_response(&document(
        principal, current, title, &content,
    )))
}

/// The whole HTML document; without a principal there is no navigation.
pub(super) fn document(
    principal: Option<&Principal>,
    current: &str,
    title: &str,
    content: &Markup,
) -> Markup {
    let is_admin = principal.is_some_and(|principal| principal.role == Role::Admin);
    let more = if is_admin { ADMIN_NAVIGATION } else { &[] };
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
                a.skip href="#main" { "Skip to content" }
                @if let Some(principal) = principal {
                    header.top {
                        div {
                            a.brand href="/" { img src="/icon.svg" alt=""; "Tidings" }
                            nav aria-label="Main" {
                                @for (path, name) in NAVIGATION.iter().chain(more) {
                                    a href=(path) aria-current=[(*path == current).then_some("page")] { (name) }
                                }
                            }
                            div.me {
                                span #pulse title="green: live updates" {}
                                span.name { (principal.name) " · " (principal.role) }
                                form method="post" action="/logout" { (csrf_input(principal)) button.small { "Log out" } }
                            }
                        }
                    }
                }
                main #main { (content) }
            }
        }
    }
}

pub(super) fn html_response(markup: &Markup) -> Response {
    let mut response = Response::new(Body::from(markup.0.clone()));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    response
}

/// A problem as a page.
pub(crate) fn problem_page(
    problem: &Problem,
    principal: Option<&Principal>,
    request_id: &str,
) -> Response {
    let content = html! {
        h1 { (problem.title()) }
        p.notice.bad role="alert" {
            (problem.detail)
            @if let Some(field) = &problem.field { " (" code { (field) } ")" }
        }
        p.soft { "Request " code { (request_id) } " · " a href="/" { "Overview" } }
    };
    let mut response = html_response(&document(principal, "", problem.title(), &content));
    problem.apply_to(&mut response);
    response
}

/// Redirects to the login, which leads back to this page.
pub(crate) fn redirect_to_login(uri: &Uri) -> HandlerResult {
    let back = uri.path_and_query().map_or("/", |path| path.as_str());
    let next: String = url::form_urlencoded::byte_serialize(back.as_bytes()).collect();
    redirect(&format!("/login?next={next}"))
}

/// Redirects to a page of this server.
pub(super) fn redirect(path: &str) -> HandlerResult {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let location = HeaderValue::from_str(path).map_err(Problem::internal)?;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

/// Redirects to a page that shows a notice of [`notice::NOTICES`].
pub(super) fn redirect_with_notice(path: &str, notice: &str, count: Option<u64>) -> HandlerResult {
    let count = count.map(|count| format!("&n={count}")).unwrap_or_default();
    redirect(&format!("{path}?done={notice}{count}"))
}
