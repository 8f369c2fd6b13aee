//! Tokens: who has one, making one (its secret is shown once), revoking.

use maud::{Markup, html};
use tidings_store::{Moment, Role, Token};

use super::{button, page, see_done, token, words};
use crate::api::tokens::{MOST_DAYS, made, revoked};
use crate::call::{Answer, Call};
use crate::problem::Problem;

pub(crate) async fn show(call: Call) -> Answer {
    let content = content(&call, None).await?;
    page(&call, "/tokens", "Tokens", &content)
}

async fn content(call: &Call, secret: Option<&str>) -> Result<Markup, Problem> {
    let tokens = call.app.store.tokens().await?;
    let now = call.app.store.now().await?;
    Ok(html! {
        h1 { "Tokens" }
        @if let Some(secret) = secret {
            div.notice.good role="status" { "The new token. Copy it now, it is not shown again:" pre { (secret) } }
        }
        section.card { table.list {
            tr { th { "Name" } th { "Role" } th { "Made" } th { "Last used" } th { "Ends" } th {} }
            @for one in &tokens { (line(call, one, now)) }
        } }
        section.card {
            h2 { "Make a token" }
            form.row method="post" action="/tokens" {
                (token(call))
                input name="name" required maxlength="100" placeholder="What it is for" aria-label="Name";
                select name="role" aria-label="Role" { option { "viewer" } option { "operator" } option { "admin" } }
                select name="days" aria-label="How long it lasts" {
                    option value="" { "until revoked" } option value="1" { "for a day" } option value="30" { "for 30 days" }
                    option value="90" { "for 90 days" } option value="365" { "for a year" }
                }
                button.main { "Make it" }
            }
            p.soft { "A viewer sees everything but tokens, an operator changes things, an admin makes tokens. What each of them changed is in " a href="/audit" { "the log of changes" } "." }
        }
    })
}

fn line(call: &Call, one: &Token, now: Moment) -> Markup {
    html! { tr {
        td { (one.name) }
        td { span.badge { (one.role) } }
        td.t data-l="made" { (words::when(one.created_at, now)) }
        td.t data-l="last used" { (words::maybe_when(one.last_used_at, now)) }
        td.t data-l="ends" { (words::maybe_when(one.expires_at, now)) }
        td {
            @match one.revoked_at {
                Some(at) => { span.badge.bad { "revoked" } " " small { (words::when(at, now)) } }
                None if !one.is_valid(now) => span.badge.bad { "expired" },
                None => (button(call, &format!("/tokens/{}/revoke", one.token_id), "Revoke", "danger", Some("Revoke this token? Whoever uses it is locked out within a second."))),
            }
        }
    } }
}

pub(crate) async fn add(call: Call) -> Answer {
    let mut form = call.form();
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
                .filter(|days| (1..=MOST_DAYS).contains(days));
            let why = format!("days is not a whole number from 1 to {MOST_DAYS}");
            Some(days.ok_or_else(|| Problem::field("days", why))?)
        }
    };
    let (_, secret) = made(&call.app, name, role, days).await?;
    let content = content(&call, Some(&secret)).await?;
    page(&call, "/tokens", "Tokens", &content)
}

pub(crate) async fn revoke(call: Call) -> Answer {
    revoked(&call.app, call.needed("id")?).await?;
    see_done("/tokens", "revoked", None)
}
