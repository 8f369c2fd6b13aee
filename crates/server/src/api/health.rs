//! Liveness and readiness, for load balancers and service managers.

use serde_json::json;

use crate::request::CheckedRequest;
use crate::response::{HandlerResult, json};

pub(crate) async fn alive(_: CheckedRequest) -> HandlerResult {
    json(&json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}

pub(crate) async fn ready(request: CheckedRequest) -> HandlerResult {
    request.app.store.now().await?;
    json(&json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}
