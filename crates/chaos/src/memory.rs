//! What the running program holds in memory, with shipped limits, while it reads
//! what is legal and huge: its peak is measured, and work goes on.

use std::time::Duration;

use tidings_engine::{SourceDraft, SourceSettings, add_source};
use tidings_sim::{Act, RawServer, WorldConfig};
use tidings_store::{ClaimRequest, Completion, NewDocument, Outcome, Role, Status};
use tidings_url::FetchUrl;

use crate::api_client::ApiClient;
use crate::child::submission;
use crate::environment::{Environment, Process, wait_until, web};
use crate::ledger::LedgerSummary;
use crate::scenario::Measured;
use crate::setting::Setting;

/// The guarantee with 64 pages in flight, and with 256, in MB.
const MAX_MB: u64 = 256;
const MAX_MB_OF_256: u64 = 512;
/// A port for each of many hosts.
const ANY_PORT: &str = "egress.ports=1-65535";
const SECRET: &str = "tdg_chaos-memory-000000000000000000000000000";
const BLOCK: usize = 16 * 1024;

/// Judges the peak of a process.
fn within(process: &Process, max_mb: u64, measured: Measured) -> Measured {
    let peak = process.peak_mb();
    measured.and(peak > 0 && peak <= max_mb, format!("peak {peak} MB"))
}

/// A host of its own for each, as loopback has many addresses.
async fn hosts(
    count: u32,
    script: impl Fn(&str) -> Vec<Act> + Clone + Send + Sync + 'static,
) -> anyhow::Result<Vec<RawServer>> {
    let mut servers = Vec::new();
    for n in 0..count {
        let address = format!("127.0.{}.{}:0", 1 + n / 200, 1 + n % 200);
        servers.push(RawServer::start(address.parse()?, script.clone()).await?);
    }
    Ok(servers)
}

fn head(kind: &str, bytes: usize) -> Act {
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {bytes}\r\n\r\n");
    Act::Send(head.into_bytes())
}

/// A page just below its limit, in parts with pauses between them.
fn slow_page(request: &str) -> Vec<Act> {
    if !request.starts_with("GET /story") {
        return Act::answer("404 Not Found", b"");
    }
    let paragraph = "<p>The council voted on Monday to tear down the old bridge, and to build a new one in its place.</p>\n";
    let block = paragraph.repeat(BLOCK / paragraph.len());
    let (parts, blocks) = (10, 63);
    let mut acts = vec![head("text/html", parts * blocks * block.len())];
    for _ in 0..parts {
        acts.push(Act::Repeat(block.clone().into_bytes(), blocks));
        acts.push(Act::Wait(Duration::from_millis(500)));
    }
    acts
}

pub(crate) async fn slow_pages(setting: Setting) -> anyhow::Result<Measured> {
    read_slow_pages(setting, 64, MAX_MB).await
}

/// As many as are in flight by default.
pub(crate) async fn more_slow_pages(setting: Setting) -> anyhow::Result<Measured> {
    read_slow_pages(setting, 256, MAX_MB_OF_256).await
}

/// Pages of nearly 10 MB at once, all slow, while others are small.
async fn read_slow_pages(setting: Setting, count: u32, max_mb: u64) -> anyhow::Result<Measured> {
    let world = WorldConfig {
        plain_fates: true,
        ..web(3, 20)
    };
    let env = Environment::new(setting, world).await?;
    let servers = hosts(count, slow_page).await?;
    for server in &servers {
        let url = format!("http://{}/story", server.address());
        env.store.submit(&[submission(&url)?]).await?;
    }
    let concurrency = format!("fetch.concurrency={count}");
    let process = env.start("poll,fetch,deliver", &[&concurrency, ANY_PORT])?;
    let huge = setting.size(4, i64::from(count));
    let documents = env.sim.ledger().entries().count() as i64 + huge;
    wait_until(
        setting.work_timeout(),
        "the small pages and some of the huge",
        async || {
            let is_fetched = env.count(Status::Fetched).await? >= documents;
            Ok(is_fetched && LedgerSummary::of(&env).lost == 0)
        },
    )
    .await?;
    let lost = env.count(Status::Dead).await?;
    let summary = LedgerSummary::of(&env);
    let measured = Measured::new(lost == 0, format!("{documents} documents, {lost} lost"));
    // The huge pages are in the index, too, and not in the ledger.
    let (lost, violations) = (summary.lost, summary.politeness_violations.len());
    let text = format!("{lost} articles lost, {violations} politeness violations");
    Ok(within(&process, max_mb, measured).and((lost, violations) == (0, 0), text))
}

/// Ten feeds of nearly 20 MB that are items without anything.
pub(crate) async fn empty_items(setting: Setting) -> anyhow::Result<Measured> {
    let env = Environment::new(setting, web(3, 20)).await?;
    let servers = hosts(10, |request| {
        if !request.starts_with("GET /feed") {
            return Act::answer("404 Not Found", b"");
        }
        let start = "<rss version='2.0'><channel><title>Empty</title>";
        let block = "<item/>".repeat(BLOCK / 7);
        let blocks = 1275;
        vec![
            head("application/rss+xml", start.len() + blocks * block.len()),
            Act::Send(start.as_bytes().to_vec()),
            Act::Repeat(block.into_bytes(), blocks),
        ]
    })
    .await?;
    for server in &servers {
        let url = format!("http://{}/feed", server.address());
        let draft = SourceDraft {
            name: url.clone(),
            url: FetchUrl::parse(&url)?,
            priority: 5,
            settings: SourceSettings {
                feed_url: Some(FetchUrl::parse(&url)?),
                ..SourceSettings::default()
            },
        };
        add_source(&env.store, &draft).await?;
    }
    let process = env.start("poll,fetch,deliver", &[ANY_PORT])?;
    env.wait_until_delivered(setting.work_timeout()).await?;
    let feeds = env.store.feeds_after(i64::MIN, 100_000).await?;
    let failed = feeds.iter().filter(|feed| feed.consecutive_errors > 0);
    let failed = failed.count();
    let measured = Measured::new(failed == 0, format!("{failed} polls failed"));
    Ok(within(&process, MAX_MB, measured).with_ledger(&LedgerSummary::of(&env)))
}

/// Documents of 1.7 MB, as older versions have stored them, that wait for a sink.
pub(crate) async fn waiting_documents(setting: Setting) -> anyhow::Result<Measured> {
    let env = Environment::new(setting, web(1, 0)).await?;
    env.index.forget_sources();
    let count: usize = setting.size(60, 2000);
    let text = "The harbour sleeps. ".repeat(85_000);
    for n in 0..count {
        let submission = submission(&format!("https://h{n}.example/story"))?;
        let key = submission.target.key;
        env.store.submit(&[submission]).await?;
        let claims = env.store.claim(&ClaimRequest::new(1, 1)).await?.claims;
        let claim = claims.first().ok_or_else(|| anyhow::anyhow!("no claim"))?;
        let body =
            serde_json::json!({ "id": key.to_string(), "title": n.to_string(), "body_text": text });
        let outcome = Outcome::Fetched {
            etag: None,
            last_modified: None,
            content_hash: Some(n.to_le_bytes().to_vec()),
            document: Some(Box::new(NewDocument {
                key,
                source_id: 0,
                title: n.to_string(),
                content_hash: Some(n.to_le_bytes().to_vec()),
                sketch: None,
                body: body.to_string(),
            })),
            again_in: None,
        };
        let completion = Completion::new(claim.lease_token, outcome);
        env.store.complete(&[completion]).await?;
    }
    let process = env.start("deliver", &[])?;
    wait_until(setting.work_timeout(), "all deliveries", async || {
        env.is_delivered().await
    })
    .await?;
    let delivered = env
        .store
        .outbox()
        .await?
        .iter()
        .map(|sink| sink.delivered)
        .sum::<i64>();
    let measured = Measured::new(
        delivered == count as i64,
        format!("{delivered} of {count} documents of 1.7 MB delivered"),
    );
    Ok(within(&process, MAX_MB, measured))
}

/// Four bulk submits of 32 MB at once, of values that are no URLs.
pub(crate) async fn bulk_bodies(setting: Setting) -> anyhow::Result<Measured> {
    let env = Environment::new(setting, web(1, 0)).await?;
    env.store
        .add_token("chaos", Role::Admin, SECRET, None)
        .await?;
    let process = env.start("serve", &[])?;
    let api = ApiClient::new(&process.announced("dashboard").await?, SECRET)?;
    let mebibytes = setting.size(8, 31);
    let body = format!("[{}0]", "0,".repeat((mebibytes << 20) / 2));
    let path = "/api/v1/frontier/submit/bulk";
    let all = tokio::join!(
        api.post(path, "one", &body),
        api.post(path, "two", &body),
        api.post(path, "three", &body),
        api.post(path, "four", &body),
    );
    // Refused or not, and perhaps the connection closed before the end of the body.
    let responses: Vec<u16> = [all.0, all.1, all.2, all.3]
        .into_iter()
        .map(|response| response.map_or(0, |(status, _)| status))
        .collect();
    let after = api.post(path, "last", "{\"url\":\"https://a.example/1\"}\n");
    let after = after.await?.0;
    let measured = Measured::new(
        after == 200,
        format!("responses {responses:?}, then {after}"),
    );
    Ok(within(&process, MAX_MB, measured))
}
