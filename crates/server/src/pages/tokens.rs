//! Tokens: list, create (the secret is shown once), revoke.

use maud::{Markup, html};
use tidings_store::{Moment, Role, Token};

use super::format;
use super::forms::{button, csrf_field};
use super::layout::{page, redirect_with_notice};
use crate::api::tokens::{MAX_DAYS, create_token, revoke_token};
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

pub(crate) async fn show(request: CheckedRequest) -> HandlerResult {
    let content = content(&request, None).await?;
    page(&request, "/tokens", "Tokens", &content)
}

async fn content(request: &CheckedRequest, secret: Option<&str>) -> Result<Markup, Problem> {
    let tokens = request.app.store.tokens().await?;
    let now = request.app.store.now().await?;
    Ok(html! {
        h1 { "Tokens" }
        @if let Some(secret) = secret {
            div.notice.good role="status" { "New token. Copy it now; it is not shown again:" pre { (secret) } }
        }
        section.card { table.list {
            tr { th { "Name" } th { "Role" } th { "Created" } th { "Last used" } th { "Expires" } th {} }
            @for token in &tokens { (line(request, token, now)) }
        } }
        section.card {
            h2 { "Create a token" }
            form.row method="post" action="/tokens" {
                (csrf_field(request))
                input name="name" required maxlength="100" placeholder="Purpose" aria-label="Name";
                select name="role" aria-label="Role" { option { "viewer" } option { "operator" } option { "admin" } }
                select name="days" aria-label="Expires" {
                    option value="" { "never" } option value="1" { "in 1 day" } option value="30" { "in 30 days" }
                    option value="90" { "in 90 days" } option value="365" { "in 1 year" }
                }
                button.main { "Create" }
            }
            p.soft { "A viewer reads everything but tokens, an operator makes changes, an admin manages tokens. Their changes are in the " a href="/audit" { "audit log" } "." }
        }
    })
}

fn line(request: &CheckedRequest, token: &Token, now: Moment) -> Markup {
    html! { tr {
        td { (token.name) }
        td { span.badge { (token.role) } }
        td.t data-l="created" { (format::when(token.created_at, now)) }
        td.t data-l="last used" { (format::maybe_when(token.last_used_at, now)) }
        td.t data-l="expires" { @match token.expires_at { Some(at) => (format::when(at, now)), None => "never" } }
        td {
            @match token.revoked_at {
                Some(at) => { span.badge.bad { "revoked" } " " small { (format::when(at, now)) } }
                None if !token.is_valid(now) => span.badge.bad { "expired" },
                None => (button(request, &format!("/tokens/{}/revoke", token.token_id), "Revoke", "danger", Some("Revoke this token? It stops working within a second."))),
            }
        }
    } }
}

pub(crate) async fn add(request: CheckedRequest) -> HandlerResult {
    let mut form = request.form();
    let name = form.remove("name").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() {
        return Err(Problem::field("name", "name is missing"));
    }
    let role: Role = form
        .remove("role")
        .unwrap_or_default()
        .parse()
        .map_err(|why: String| Problem::field("role", why))?;
    let days = match form.remove("days").as_deref() {
        None | Some("") => None,
        Some(text) => {
            let days = text
                .parse()
                .ok()
                .filter(|days| (1..=MAX_DAYS).contains(days));
            let why = format!("days is not a whole number from 1 to {MAX_DAYS}");
            Some(days.ok_or_else(|| Problem::field("days", why))?)
        }
    };
    let (_, secret) = create_token(&request.app, name, role, days).await?;
    let content = content(&request, Some(&secret)).await?;
    page(&request, "/tokens", "Tokens", &content)
}

pub(crate) async fn revoke(request: CheckedRequest) -> HandlerResult {
    revoke_token(&request.app, request.params.required("id")?).await?;
    redirect_with_notice("/tokens", "revoked", None)
}
