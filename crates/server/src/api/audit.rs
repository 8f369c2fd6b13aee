//! The log of changes, for admins.

use crate::call::{Answer, Call, List, json};

pub(crate) async fn list(call: Call) -> Answer {
    let limit = call.limit()?;
    let items = call
        .app
        .store
        .audit_entries(call.parsed("after")?, limit + 1)
        .await?;
    json(&List::cut(items, limit, |one| one.audit_id.to_string()))
}
