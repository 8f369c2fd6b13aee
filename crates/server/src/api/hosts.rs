//! Hosts: how they may be asked, and whether they are left alone.

use std::time::Duration;

use serde_json::json;
use tidings_store::{Host, HostId, Moment};

use super::frontier::host_id;
use crate::call::{Answer, Call, List, json};
use crate::problem::Problem;

pub(crate) async fn list(call: Call) -> Answer {
    let limit = call.limit()?;
    // A host key is its own cursor: the id follows from it.
    let after = call.text("after").map(host_id);
    let hosts = call.app.store.hosts_after(after, limit + 1).await?;
    json(&List::cut(hosts, limit, |host: &Host| host.host.clone()))
}

async fn found(call: &Call) -> Result<(HostId, Host), Problem> {
    let name: String = call.needed("host")?;
    let id = host_id(&name);
    let host = call.app.store.host(id).await?;
    let host = host.ok_or_else(|| Problem::not_found("host of this name"))?;
    Ok((id, host))
}

pub(crate) async fn one(call: Call) -> Answer {
    let (id, host) = found(&call).await?;
    let robots = call.app.store.robots(id).await?;
    let robots = robots.map(|robots| {
        json!({ "status": robots.status, "body": robots.body, "fetched_at": robots.fetched_at, "expires_at": robots.expires_at })
    });
    let stats = call.app.store.host_stats(id).await?;
    json(&json!({ "host": host, "robots": robots, "urls": stats }))
}

pub(crate) async fn change(call: Call) -> Answer {
    let mut fields = call.json()?;
    let delay = fields.number("delay_ms", 0..=3_600_000)?;
    let at_once = fields.number("max_in_flight", 1..=1000)?;
    fields.end()?;
    let (id, host) = found(&call).await?;
    let delay = Duration::from_millis(delay.unwrap_or(host.delay_ms).unsigned_abs());
    let at_once = u16::try_from(at_once.unwrap_or(host.max_in_flight)).unwrap_or(1);
    call.app.store.set_host_limits(id, delay, at_once).await?;
    json(&found(&call).await?.1)
}

pub(crate) async fn block(call: Call) -> Answer {
    let mut fields = call.json()?;
    let reason = fields.text("reason")?;
    let seconds = fields.number("seconds", 1..=10 * 365 * 86_400)?;
    fields.end()?;
    let (id, _) = found(&call).await?;
    let until = match seconds {
        None => Moment::NEVER,
        Some(seconds) => {
            let now = call.app.store.now().await?;
            now.plus(Duration::from_secs(seconds.unsigned_abs()))
        }
    };
    call.app.store.block_host(id, until, &reason).await?;
    json(&found(&call).await?.1)
}

pub(crate) async fn unblock(call: Call) -> Answer {
    let (id, _) = found(&call).await?;
    call.app.store.unblock_host(id).await?;
    json(&found(&call).await?.1)
}
