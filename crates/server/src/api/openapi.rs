//! The OpenAPI document of this server.

use crate::request::CheckedRequest;
use crate::response::{HandlerResult, json};

pub(crate) async fn document(request: CheckedRequest) -> HandlerResult {
    json(&request.app.openapi)
}
