//! The audit log, for admins.

use crate::request::CheckedRequest;
use crate::response::{HandlerResult, List, json};

pub(crate) async fn list(request: CheckedRequest) -> HandlerResult {
    let limit = request.params.limit()?;
    let items = request
        .app
        .store
        .audit_entries(request.params.parsed("after")?, limit + 1)
        .await?;
    json(&List::page(items, limit, |entry| {
        entry.audit_id.to_string()
    }))
}
