//! Tokens: created, listed without their secrets, revoked.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use tidings_store::Role;

use crate::access::new_secret;
use crate::app::App;
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::{Changed, HandlerResult, List, json, json_with_status};

pub(crate) async fn list(request: CheckedRequest) -> HandlerResult {
    let items = request.app.store.tokens().await?;
    json(&List { items, next: None })
}

pub(crate) async fn add(request: CheckedRequest) -> HandlerResult {
    let mut fields = request.json()?;
    let name = fields.text("name")?;
    let role: Role = fields
        .parsed("role")?
        .ok_or_else(|| Problem::field("role", "role is missing: viewer, operator or admin"))?;
    let days = fields.number("days", 1..=MAX_DAYS)?;
    fields.finish()?;
    let (id, secret) = create_token(&request.app, &name, role, days).await?;
    json_with_status(
        StatusCode::CREATED,
        &json!({ "token_id": id, "name": name, "role": role, "token": secret }),
    )
}

/// The maximum lifetime of a token that expires.
pub(crate) const MAX_DAYS: i64 = 3650;

/// Creates a token; its id and its secret, which is stored only as a hash.
pub(crate) async fn create_token(
    app: &App,
    name: &str,
    role: Role,
    days: Option<i64>,
) -> Result<(i64, String), Problem> {
    if name.chars().count() > 100 {
        return Err(Problem::field("name", "name is longer than 100 characters"));
    }
    let secret = new_secret().map_err(Problem::internal)?;
    let ttl = days.map(|days| Duration::from_secs(days.unsigned_abs() * 24 * 3600));
    let id = app.store.add_token(name, role, &secret, ttl).await?;
    app.access.tokens_changed().await;
    Ok((id, secret))
}

pub(crate) async fn revoke(request: CheckedRequest) -> HandlerResult {
    revoke_token(&request.app, request.params.required("id")?).await?;
    json(&Changed { changed: 1 })
}

/// Refuses to revoke the last admin token.
pub(crate) async fn revoke_token(app: &App, id: i64) -> Result<(), Problem> {
    let (tokens, now) = (app.store.tokens().await?, app.store.now().await?);
    let admins = tokens
        .iter()
        .filter(|token| token.role == Role::Admin && token.is_valid(now));
    // A token that expires would only delay the lockout.
    let (permanent, expiring): (Vec<_>, Vec<_>) =
        admins.partition(|token| token.expires_at.is_none());
    let remaining = if permanent.is_empty() {
        expiring
    } else {
        permanent
    };
    if let [last] = remaining.as_slice()
        && last.token_id == id
    {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "this is the last admin token, or the last that does not expire; create another one first",
        ));
    }
    app.store.revoke_token(id).await?;
    app.access.tokens_changed().await;
    Ok(())
}
