//! Hosts: politeness limits, blocks and robots.txt.

use std::time::Duration;

use serde_json::json;
use tidings_store::{Host, HostId, Moment};

use super::frontier::host_id;
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::{HandlerResult, List, json};

pub(crate) async fn list(request: CheckedRequest) -> HandlerResult {
    let limit = request.params.limit()?;
    // A host key is its own cursor: the id follows from it.
    let after = request.params.text("after").map(host_id);
    let hosts = request.app.store.hosts_after(after, limit + 1).await?;
    json(&List::page(hosts, limit, |host: &Host| host.host.clone()))
}

async fn find_host(request: &CheckedRequest) -> Result<(HostId, Host), Problem> {
    let name: String = request.params.required("host")?;
    let id = host_id(&name);
    let host = request.app.store.host(id).await?;
    let host = host.ok_or_else(|| Problem::not_found("host"))?;
    Ok((id, host))
}

pub(crate) async fn get(request: CheckedRequest) -> HandlerResult {
    let (id, host) = find_host(&request).await?;
    let robots = request.app.store.robots(id).await?;
    let robots = robots.map(|robots| {
        json!({ "status": robots.status, "body": robots.body, "fetched_at": robots.fetched_at, "expires_at": robots.expires_at })
    });
    let stats = request.app.store.host_stats(id).await?;
    json(&json!({ "host": host, "robots": robots, "urls": stats }))
}

pub(crate) async fn change(request: CheckedRequest) -> HandlerResult {
    let mut fields = request.json()?;
    let delay = fields.number("delay_ms", 0..=3_600_000)?;
    let max_in_flight = fields.number("max_in_flight", 1..=1000)?;
    fields.finish()?;
    let (id, host) = find_host(&request).await?;
    let delay = Duration::from_millis(delay.unwrap_or(host.delay_ms).unsigned_abs());
    let max_in_flight = u16::try_from(max_in_flight.unwrap_or(host.max_in_flight)).unwrap_or(1);
    request
        .app
        .store
        .set_host_limits(id, delay, max_in_flight)
        .await?;
    json(&find_host(&request).await?.1)
}

pub(crate) async fn block(request: CheckedRequest) -> HandlerResult {
    let mut fields = request.json()?;
    let reason = fields.text("reason")?;
    let seconds = fields.number("seconds", 1..=10 * 365 * 86_400)?;
    fields.finish()?;
    let (id, _) = find_host(&request).await?;
    let until = match seconds {
        None => Moment::NEVER,
        Some(seconds) => {
            let now = request.app.store.now().await?;
            now.plus(Duration::from_secs(seconds.unsigned_abs()))
        }
    };
    request.app.store.block_host(id, until, &reason).await?;
    json(&find_host(&request).await?.1)
}

pub(crate) async fn unblock(request: CheckedRequest) -> HandlerResult {
    let (id, _) = find_host(&request).await?;
    request.app.store.unblock_host(id).await?;
    json(&find_host(&request).await?.1)
}
