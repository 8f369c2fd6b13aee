//! Liveness and readiness, for load balancers and service managers.

use http::StatusCode;
use serde_json::json;

use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::{HandlerResult, json};

pub(crate) async fn alive(_: CheckedRequest) -> HandlerResult {
    json(&json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}

pub(crate) async fn ready(request: CheckedRequest) -> HandlerResult {
    request.app.store.now().await?;
    if let Some(damage) = request.app.integrity.damage() {
        return Err(Problem {
            cause: Some(damage),
            ..Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "a file of this node is damaged; see its log, or run: tidings check",
            )
        });
    }
    json(&json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}
