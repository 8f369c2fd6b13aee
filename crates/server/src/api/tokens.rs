//! Tokens: made, listed without their secrets, revoked.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use tidings_store::Role;

use super::Changed;
use crate::access::new_secret;
use crate::app::App;
use crate::call::{Answer, Call, List, json, json_with};
use crate::problem::Problem;

pub(crate) async fn list(call: Call) -> Answer {
    let items = call.app.store.tokens().await?;
    json(&List { items, next: None })
}

pub(crate) async fn add(call: Call) -> Answer {
    let mut fields = call.json()?;
    let name = fields.text("name")?;
    let role: Role = fields
        .parsed("role")?
        .ok_or_else(|| Problem::field("role", "role is missing: viewer, operator or admin"))?;
    let days = fields.number("days", 1..=MOST_DAYS)?;
    fields.end()?;
    let (id, secret) = made(&call.app, &name, role, days).await?;
    json_with(
        StatusCode::CREATED,
        &json!({ "token_id": id, "name": name, "role": role, "token": secret }),
    )
}

/// The longest that a token with an end may last.
pub(crate) const MOST_DAYS: i64 = 3650;

/// A new token: its id, and its secret, which is nowhere else.
pub(crate) async fn made(
    app: &App,
    name: &str,
    role: Role,
    days: Option<i64>,
) -> Result<(i64, String), Problem> {
    if name.chars().count() > 100 {
        return Err(Problem::field("name", "name is longer than 100 characters"));
    }
    let secret = new_secret().map_err(Problem::internal)?;
    let lasts = days.map(|days| Duration::from_secs(days.unsigned_abs() * 24 * 3600));
    let id = app.store.add_token(name, role, &secret, lasts).await?;
    app.access.tokens_changed().await;
    Ok((id, secret))
}

pub(crate) async fn revoke(call: Call) -> Answer {
    revoked(&call.app, call.needed("id")?).await?;
    json(&Changed { changed: 1 })
}

/// The last admin can't lock everybody out.
pub(crate) async fn revoked(app: &App, id: i64) -> Result<(), Problem> {
    let (tokens, now) = (app.store.tokens().await?, app.store.now().await?);
    let admins = tokens
        .iter()
        .filter(|token| token.role == Role::Admin && token.is_valid(now));
    // One that ends by itself would lock everybody out a little later.
    let (lasting, ending): (Vec<_>, Vec<_>) = admins.partition(|token| token.expires_at.is_none());
    let keepers = if lasting.is_empty() { ending } else { lasting };
    if let [last] = keepers.as_slice()
        && last.token_id == id
    {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "this is the last admin token, or the last that does not expire; make another one first",
        ));
    }
    app.store.revoke_token(id).await?;
    app.access.tokens_changed().await;
    Ok(())
}
