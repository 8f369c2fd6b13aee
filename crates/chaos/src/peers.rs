//! Hostile peers: sites that lie, malformed responses, names that fail or resolve
//! to private addresses, crawler traps.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tidings_engine::{SourceDraft, SourceSettings, add_source};
use tidings_net::{Client, Egress, Failure, Limits, NetOptions, Purpose, Redirects, Request};
use tidings_sim::{
    Act, DnsAnswer, DnsServer, Expected, Fault, FaultRule, LOOPBACK_SPELLINGS, RawServer, SiteTrap,
    Target, When, WorldConfig, peak_mib, reset_peak,
};
use tidings_store::{Filter, Order, Status};
use tidings_url::FetchUrl;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::environment::{Environment, INDEX, wait_until, web};
use crate::ledger::LedgerSummary;
use crate::scenario::Measured;
use crate::setting::Setting;

const MAX_MEMORY_MB: u64 = 256;

/// Each site but the last few has one fault, always.
pub(crate) async fn hostile_sites(setting: Setting) -> anyhow::Result<Measured> {
    let status = |code| Fault::Status {
        code,
        retry_after: Some("99999999".to_owned()),
    };
    let faults = [
        Fault::Hang,
        Fault::SlowHead,
        Fault::SlowBody,
        Fault::Endless,
        Fault::Truncated,
        Fault::LyingLength,
        Fault::Reset,
        Fault::Closed,
        Fault::RedirectLoop,
        Fault::HugeLocation,
        Fault::HugeHead,
        Fault::SoftNotFound,
        status(429),
        status(500),
    ];
    let (bad, good) = (faults.len() as u32, 6);
    let mut world = WorldConfig {
        plain_fates: true,
        ..web(bad + good, setting.size(8, 20))
    };
    for (site, fault) in faults.into_iter().enumerate() {
        let rule = FaultRule::new(Target::Articles, When::Always, fault);
        world.scripts.insert(site as u32, vec![rule]);
    }
    let env = Environment::new(setting, world).await?;
    let short = ["net.headers_seconds=2", "net.total_seconds=4"];
    let limits: &[&str] = setting.size(&short, &[]);
    let process = env.start("poll,fetch,deliver", limits)?;
    let ledger = env.sim.ledger();
    let healthy = ledger
        .entries()
        .filter(|entry| entry.site >= bad && entry.expected == Expected::Document);
    let healthy: std::collections::BTreeSet<_> =
        healthy.map(|entry| entry.key.to_string()).collect();
    // Some sites may have published nothing yet.
    let published = ledger.entries().filter(|entry| entry.site < bad);
    let published: std::collections::BTreeSet<_> = published.map(|entry| entry.site).collect();
    wait_until(
        setting.work_timeout(),
        "an attempt at every hostile site",
        async || {
            let attempted = attempted_hosts(&env).await?;
            Ok(attempted >= published.len() && env.index.documents(INDEX).len() >= healthy.len())
        },
    )
    .await?;
    let memory = process.peak_mb();
    drop(process);
    let indexed: std::collections::BTreeSet<_> = env.index.documents(INDEX).into_keys().collect();
    let violations = LedgerSummary::of(&env).politeness_violations;
    let first = violations.first().cloned().unwrap_or_default();
    Ok(Measured::new(
        indexed == healthy && memory < MAX_MEMORY_MB,
        format!(
            "{bad} hostile sites, {} documents of them; {} of {} documents of healthy sites; {memory} MB; {} politeness violations {first}",
            indexed.difference(&healthy).count(),
            indexed.intersection(&healthy).count(),
            healthy.len(),
            violations.len()
        ),
    )
    .violated(!violations.is_empty()))
}

/// Hosts with a URL that was attempted and did not become a document.
async fn attempted_hosts(env: &Environment) -> tidings_store::Result<usize> {
    let mut hosts = std::collections::BTreeSet::new();
    for status in [Status::Failed, Status::Dead, Status::Pending] {
        let filter = Filter {
            status: Some(status),
            ..Filter::default()
        };
        let page = env.store.list(&filter, Order::Id, None, 10_000).await?;
        let attempted = page
            .rows
            .iter()
            .filter(|row| row.reason.is_some() || row.last_error.is_some());
        hosts.extend(attempted.map(|row| row.id.host));
    }
    Ok(hosts.len())
}

fn client(dns: Option<&DnsServer>) -> anyhow::Result<Client> {
    Client::new(NetOptions {
        dns: dns.map(DnsServer::address).into_iter().collect(),
        limits: Limits {
            connect: Duration::from_secs(3),
            headers: Duration::from_secs(3),
            total: Duration::from_secs(8),
            rate_window: Duration::from_secs(1),
            ..Limits::default()
        },
        egress: Egress {
            // The address of the peers of these scenarios; 127.0.0.1 stays forbidden.
            allow: vec![PEER.into()],
            ports: vec![1..=u16::MAX],
        },
        ..NetOptions::default()
    })
    .context("cannot set up the HTTP client")
}

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

async fn get(client: &Client, url: &str) -> anyhow::Result<Result<u16, Failure>> {
    let request = Request::get(FetchUrl::parse(url)?, Purpose::Page);
    let fetch = client.fetch(request, Redirects::Follow);
    let response = tokio::time::timeout(Duration::from_secs(30), fetch).await;
    let response = response.with_context(|| format!("the fetch of {url} timed out"))?;
    Ok(response.map(|response| response.status))
}

/// Every hostile response of the list, concurrently.
pub(crate) async fn hostile_responses(_: Setting) -> anyhow::Result<Measured> {
    let responses = Arc::new(tidings_sim::hostile_responses());
    let script = Arc::clone(&responses);
    let server = RawServer::start(SocketAddr::new(PEER, 0), move |head| {
        let path = head.split(' ').nth(1).unwrap_or_default();
        let at = path.trim_start_matches('/').parse().unwrap_or(usize::MAX);
        script
            .get(at)
            .map_or_else(Vec::new, |response| response.acts.clone())
    })
    .await?;
    let client = client(None)?;
    reset_peak();
    let before = peak_mib();
    let begun = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    for at in 0..responses.len() {
        let (client, url) = (client.clone(), format!("http://{}/{at}", server.address()));
        running.spawn(async move { (at, get(&client, &url).await) });
    }
    let mut wrong = Vec::new();
    while let Some(ended) = running.join_next().await {
        let (at, result) = ended?;
        let code = result?.map_or_else(|failure| failure.code(), |_| "accepted");
        if code != responses[at].ends {
            wrong.push(format!("{}: {code}", responses[at].name));
        }
    }
    let cost = peak_mib() - before;
    Ok(Measured::new(
        wrong.is_empty() && cost < MAX_MEMORY_MB as f64,
        format!(
            "{} responses, all done after {:.1} s, {cost:.0} MiB for both sides; unexpected: {wrong:?}",
            responses.len(),
            begun.elapsed().as_secs_f64()
        ),
    ))
}

pub(crate) async fn dns_and_tls_failures(_: Setting) -> anyhow::Result<Measured> {
    let dns = DnsServer::start(|name, _| match name {
        "good.example" => DnsAnswer::Addresses(vec![PEER]),
        "many.example" => DnsAnswer::Addresses(vec![PEER; 500]),
        "circle.example" => DnsAnswer::Alias("circle.example".to_owned()),
        "broken.example" => DnsAnswer::ServerFailure,
        "empty.example" => DnsAnswer::Addresses(Vec::new()),
        "late.example" => DnsAnswer::Overdue(Duration::from_secs(30), vec![PEER]),
        _ => DnsAnswer::NoSuchName,
    })
    .await?;
    let plain = RawServer::start(SocketAddr::new(PEER, 0), |_| {
        Act::answer("200 OK", b"hello")
    })
    .await?;
    let silent = RawServer::start(SocketAddr::new(PEER, 0), |_| {
        vec![Act::Wait(Duration::from_secs(60))]
    })
    .await?;
    // Speaks first, and no TLS.
    let noisy = TcpListener::bind(SocketAddr::new(PEER, 0)).await?;
    let noise = noisy.local_addr()?.port();
    let speaking = tokio::spawn(async move {
        while let Ok((mut stream, _)) = noisy.accept().await {
            // The client may have closed the connection already.
            let _ = stream.write_all(b"HTTP/1.1 400 No\r\n\r\n").await;
        }
    });
    let port = plain.address().port();
    let http = |name: &str| format!("http://{name}.example:{port}/");
    let https = |port: u16| format!("https://good.example:{port}/");
    let rows = [
        (http("good"), "200"),
        (http("many"), "200"),
        (http("missing"), "no_such_name"),
        (http("empty"), "no_such_name"),
        (http("broken"), "dns"),
        (http("late"), "dns"),
        (http("circle"), "no_such_name"),
        (https(silent.address().port()), "timeout"),
        (https(noise), "tls"),
    ];
    let client = client(Some(&dns))?;
    let mut wrong = Vec::new();
    for (url, expected) in &rows {
        let found = match get(&client, url).await? {
            Ok(status) => status.to_string(),
            Err(failure) => failure.code().to_owned(),
        };
        if found != *expected {
            wrong.push(format!("{url}: {found}"));
        }
    }
    speaking.abort();
    Ok(Measured::new(
        wrong.is_empty(),
        format!("{} names and handshakes; unexpected: {wrong:?}", rows.len()),
    ))
}

/// Every spelling of loopback, every redirect to it, metadata addresses, and DNS
/// rebinding.
pub(crate) async fn ssrf_attempts(_: Setting) -> anyhow::Result<Measured> {
    let (v4, v6, server) = canaries().await?;
    let port = v4.address().port();
    let (bad, bad_v6) = (
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    );
    let dns = DnsServer::start(move |name, nth| match name {
        // A permitted address at first, the canary ever after.
        "rebinding.example" if nth == 1 => DnsAnswer::Addresses(vec![PEER]),
        "rebinding.example" | "inside.example" => DnsAnswer::Addresses(vec![bad]),
        "mixed.example" => DnsAnswer::Addresses(vec![PEER, bad]),
        "mixed-v6.example" => DnsAnswer::Addresses(vec![PEER, bad_v6]),
        "alias.example" => DnsAnswer::Alias("inside.example".to_owned()),
        _ => DnsAnswer::NoSuchName,
    })
    .await?;
    let without_dns = client(None)?;
    let with_dns = client(Some(&dns))?;
    let first = get(&with_dns, &format!("http://rebinding.example:{port}/good")).await?;
    let spelled = LOOPBACK_SPELLINGS
        .iter()
        .map(|host| (&without_dns, format!("http://{host}:{port}/")));
    let redirects = ["301", "302", "303", "307", "308", "refresh"];
    let redirected = redirects
        .iter()
        .map(|redirect| (&without_dns, format!("http://{PEER}:{port}/{redirect}")));
    let named = ["rebinding", "inside", "mixed", "mixed-v6", "alias"];
    let named = named
        .iter()
        .map(|name| (&with_dns, format!("http://{name}.example:{port}/")));
    let metadata = [
        "169.254.169.254",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "192.0.0.192",
    ];
    let metadata = metadata
        .iter()
        .map(|host| (&without_dns, format!("http://{host}/latest/meta-data/")));
    let mut attempts = 0;
    let mut permitted = Vec::new();
    for (client, url) in spelled.chain(redirected).chain(named).chain(metadata) {
        attempts += 1;
        if !matches!(get(client, &url).await?, Err(Failure::Egress(_))) {
            permitted.push(url);
        }
    }
    let connections = v4.connections() + v6.connections();
    drop(server);
    Ok(Measured::new(
        permitted.is_empty() && first == Ok(200),
        format!(
            "{attempts} attempts, {connections} connections to the canaries; permitted: {permitted:?}"
        ),
    )
    .violated(connections > 0))
}

/// Canaries on both loopback addresses, and a server that redirects to them, all
/// on one port, so that only the address differs.
async fn canaries() -> anyhow::Result<(RawServer, RawServer, RawServer)> {
    for _ in 0..100 {
        let respond = |_: &str| Act::answer("200 OK", b"!");
        let v4 = RawServer::start("127.0.0.1:0".parse()?, respond).await?;
        let port = v4.address().port();
        let v6 = RawServer::start(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port), respond).await;
        let redirects = move |head: &str| {
            let redirect = head
                .split(' ')
                .nth(1)
                .unwrap_or_default()
                .trim_start_matches('/');
            let inside = format!("http://127.0.0.1:{port}/");
            match redirect {
                "good" => Act::answer("200 OK\r\nConnection: close", b"good"),
                "refresh" => {
                    let page = format!("<meta http-equiv=refresh content='0; url={inside}'>");
                    Act::answer("200 OK\r\nContent-Type: text/html", page.as_bytes())
                }
                status => Act::answer(&format!("{status} There\r\nLocation: {inside}"), b""),
            }
        };
        let server = RawServer::start(SocketAddr::new(PEER, port), redirects).await;
        // Another program may have the port on one of them; then all move.
        if let (Ok(v6), Ok(server)) = (v6, server) {
            return Ok((v4, v6, server));
        }
    }
    anyhow::bail!("no port is free on 127.0.0.1, 127.0.0.2 and ::1")
}

/// Sites without feeds, each with another crawler trap, crawled for a while.
pub(crate) async fn crawler_traps(setting: Setting) -> anyhow::Result<Measured> {
    let traps = SiteTrap::ALL;
    let world = WorldConfig {
        without_feeds: true,
        plain_fates: true,
        traps: (0_u32..).zip(traps).collect(),
        ..web(traps.len() as u32, setting.size(10, 40))
    };
    let env = Environment::new(setting, world).await?;
    for site in env.sim.world().sites() {
        let draft = SourceDraft {
            name: site.host.clone(),
            url: site.url("/"),
            priority: 5,
            settings: SourceSettings::default(),
        };
        add_source(&env.store, &draft).await?;
    }
    let process = env.start("poll,fetch,deliver", &[])?;
    env.wait_for_requests(1, setting.step_timeout()).await?;
    // Until no more requests are made, or for long enough.
    let begun = Instant::now();
    let mut seen = 0;
    while begun.elapsed() < setting.size(Duration::from_secs(15), Duration::from_secs(120)) {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let total = env.sim.log().total();
        if total == seen {
            break;
        }
        seen = total;
    }
    drop(process);
    let summary = LedgerSummary::of(&env);
    let articles = summary.expected as u64;
    let sites = traps.len() as u64;
    // An article costs little more than one request, a site some for its sections.
    let max = articles * 2 + sites * 60;
    Ok(Measured::new(
        summary.requests <= max,
        format!("{sites} traps, at most {max} requests; {summary}"),
    )
    .violated(summary.duplicated > 0 || !summary.politeness_violations.is_empty())
    // What is not found yet may only need more time.
    .in_time(summary.lost == 0))
}
