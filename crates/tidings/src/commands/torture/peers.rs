//! The other side of the wire: sites that lie, answers made to hurt, names that
//! lead nowhere or inside, pages without end.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tidings_engine::{SourceDraft, SourceSettings, add_source};
use tidings_net::{Client, Egress, Failure, Limits, NetOptions, Purpose, Redirects, Request};
use tidings_sim::{
    Act, DnsAnswer, DnsServer, Expected, Fault, FaultRule, LOOPBACK_SPELLINGS, RawServer, SiteTrap,
    Target, When, WorldConfig,
};
use tidings_store::{Filter, Order, Status};
use tidings_url::FetchUrl;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use super::books::Books;
use super::ground::{Ground, INDEX, until, web};
use super::{Measured, Setting};
use crate::commands::bench::process::{forget_peak, peak_mib};

const MOST_MEMORY_MB: u64 = 256;

/// Each site but the last few has one way to misbehave, always.
pub(super) async fn hostile_sites(setting: Setting) -> anyhow::Result<Measured> {
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
    let ground = Ground::new(setting, world).await?;
    let short = ["net.headers_seconds=2", "net.total_seconds=4"];
    let limits: &[&str] = setting.size(&short, &[]);
    let process = ground.start("poll,fetch,deliver", limits)?;
    let ledger = ground.sim.ledger();
    let healthy = ledger
        .entries()
        .filter(|entry| entry.site >= bad && entry.expected == Expected::Document);
    let healthy: std::collections::BTreeSet<_> =
        healthy.map(|entry| entry.key.to_string()).collect();
    // Some sites may have published nothing yet.
    let published = ledger.entries().filter(|entry| entry.site < bad);
    let published: std::collections::BTreeSet<_> = published.map(|entry| entry.site).collect();
    until(setting.late(), "a try of every hostile site", async || {
        let tried = tried_hosts(&ground).await?;
        Ok(tried >= published.len() && ground.index.documents(INDEX).len() >= healthy.len())
    })
    .await?;
    let memory = process.peak_mb();
    drop(process);
    let held: std::collections::BTreeSet<_> = ground.index.documents(INDEX).into_keys().collect();
    let impolite = Books::of(&ground).impolite;
    let first = impolite.first().cloned().unwrap_or_default();
    Ok(Measured::new(
        held == healthy && memory < MOST_MEMORY_MB && impolite.is_empty(),
        format!(
            "{bad} hostile sites, {} documents of them; {} of {} of the healthy ones; {memory} MB; {} impolite {first}",
            held.difference(&healthy).count(),
            held.intersection(&healthy).count(),
            healthy.len(),
            impolite.len()
        ),
    ))
}

/// Hosts with a URL that was tried and did not become a document.
async fn tried_hosts(ground: &Ground) -> tidings_store::Result<usize> {
    let mut hosts = std::collections::BTreeSet::new();
    for status in [Status::Failed, Status::Dead, Status::Pending] {
        let filter = Filter {
            status: Some(status),
            ..Filter::default()
        };
        let page = ground.store.list(&filter, Order::Id, None, 10_000).await?;
        let tried = page
            .rows
            .iter()
            .filter(|row| row.reason.is_some() || row.last_error.is_some());
        hosts.extend(tried.map(|row| row.id.host));
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
            // Where the peers of these scenarios live; 127.0.0.1 stays forbidden.
            allow: vec![PEER.into()],
            ports: vec![1..=u16::MAX],
        },
        ..NetOptions::default()
    })
    .context("the network can't be used")
}

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

async fn get(client: &Client, url: &str) -> anyhow::Result<Result<u16, Failure>> {
    let request = Request::get(FetchUrl::parse(url)?, Purpose::Page);
    let fetch = client.fetch(request, Redirects::Follow);
    let answer = tokio::time::timeout(Duration::from_secs(30), fetch).await;
    let answer = answer.with_context(|| format!("{url} did not end"))?;
    Ok(answer.map(|answer| answer.status))
}

/// Every answer of the list at once.
pub(super) async fn hostile_responses(_: Setting) -> anyhow::Result<Measured> {
    let answers = Arc::new(tidings_sim::hostile_responses());
    let script = Arc::clone(&answers);
    let server = RawServer::start(SocketAddr::new(PEER, 0), move |head| {
        let path = head.split(' ').nth(1).unwrap_or_default();
        let at = path.trim_start_matches('/').parse().unwrap_or(usize::MAX);
        script
            .get(at)
            .map_or_else(Vec::new, |answer| answer.acts.clone())
    })
    .await?;
    let client = client(None)?;
    forget_peak();
    let before = peak_mib();
    let begun = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    for at in 0..answers.len() {
        let (client, url) = (client.clone(), format!("http://{}/{at}", server.address()));
        running.spawn(async move { (at, get(&client, &url).await) });
    }
    let mut wrong = Vec::new();
    while let Some(ended) = running.join_next().await {
        let (at, answer) = ended?;
        let code = answer?.map_or_else(|failure| failure.code(), |_| "taken");
        if code != answers[at].ends {
            wrong.push(format!("{}: {code}", answers[at].name));
        }
    }
    let cost = peak_mib() - before;
    Ok(Measured::new(
        wrong.is_empty() && cost < MOST_MEMORY_MB as f64,
        format!(
            "{} answers, all ended after {:.1} s, {cost:.0} MiB for both sides; wrong: {wrong:?}",
            answers.len(),
            begun.elapsed().as_secs_f64()
        ),
    ))
}

pub(super) async fn names_and_handshakes(_: Setting) -> anyhow::Result<Measured> {
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
            // Whoever does not listen has heard enough.
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
        format!("{} names and handshakes; wrong: {wrong:?}", rows.len()),
    ))
}

/// Every spelling of this machine, every redirect to it, and names that turn.
pub(super) async fn ways_inside(_: Setting) -> anyhow::Result<Measured> {
    let (v4, v6, server) = canaries().await?;
    let port = v4.address().port();
    let (bad, bad_v6) = (
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    );
    let dns = DnsServer::start(move |name, nth| match name {
        // Good when it is asked for first, the canary ever after.
        "rebinding.example" if nth == 1 => DnsAnswer::Addresses(vec![PEER]),
        "rebinding.example" | "inside.example" => DnsAnswer::Addresses(vec![bad]),
        "mixed.example" => DnsAnswer::Addresses(vec![PEER, bad]),
        "mixed-v6.example" => DnsAnswer::Addresses(vec![PEER, bad_v6]),
        "alias.example" => DnsAnswer::Alias("inside.example".to_owned()),
        _ => DnsAnswer::NoSuchName,
    })
    .await?;
    let by_itself = client(None)?;
    let asking = client(Some(&dns))?;
    let first = get(&asking, &format!("http://rebinding.example:{port}/good")).await?;
    let spelled = LOOPBACK_SPELLINGS
        .iter()
        .map(|host| (&by_itself, format!("http://{host}:{port}/")));
    let ways = ["301", "302", "303", "307", "308", "refresh"];
    let redirected = ways
        .iter()
        .map(|way| (&by_itself, format!("http://{PEER}:{port}/{way}")));
    let named = ["rebinding", "inside", "mixed", "mixed-v6", "alias"];
    let named = named
        .iter()
        .map(|name| (&asking, format!("http://{name}.example:{port}/")));
    let metadata = [
        "169.254.169.254",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "192.0.0.192",
    ];
    let metadata = metadata
        .iter()
        .map(|host| (&by_itself, format!("http://{host}/latest/meta-data/")));
    let mut tried = 0;
    let mut open = Vec::new();
    for (client, url) in spelled.chain(redirected).chain(named).chain(metadata) {
        tried += 1;
        if !matches!(get(client, &url).await?, Err(Failure::Egress(_))) {
            open.push(url);
        }
    }
    let visits = v4.connections() + v6.connections();
    drop(server);
    Ok(Measured::new(
        open.is_empty() && visits == 0 && first == Ok(200),
        format!("{tried} ways, {visits} visits to the canaries; open: {open:?}"),
    ))
}

/// Canaries on both loopback addresses, and a server that leads to them, all on
/// one port, so that only the address differs.
async fn canaries() -> anyhow::Result<(RawServer, RawServer, RawServer)> {
    for _ in 0..100 {
        let say = |_: &str| Act::answer("200 OK", b"!");
        let v4 = RawServer::start("127.0.0.1:0".parse()?, say).await?;
        let port = v4.address().port();
        let v6 = RawServer::start(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port), say).await;
        let leads = move |head: &str| {
            let way = head
                .split(' ')
                .nth(1)
                .unwrap_or_default()
                .trim_start_matches('/');
            let inside = format!("http://127.0.0.1:{port}/");
            match way {
                "good" => Act::answer("200 OK\r\nConnection: close", b"good"),
                "refresh" => {
                    let page = format!("<meta http-equiv=refresh content='0; url={inside}'>");
                    Act::answer("200 OK\r\nContent-Type: text/html", page.as_bytes())
                }
                way => Act::answer(&format!("{way} There\r\nLocation: {inside}"), b""),
            }
        };
        let server = RawServer::start(SocketAddr::new(PEER, port), leads).await;
        // Another program may have the port on one of them; then all move.
        if let (Ok(v6), Ok(server)) = (v6, server) {
            return Ok((v4, v6, server));
        }
    }
    anyhow::bail!("no port is free on 127.0.0.1, 127.0.0.2 and ::1")
}

/// Sites without feeds, each with another trap, visited for a while.
pub(super) async fn traps(setting: Setting) -> anyhow::Result<Measured> {
    let traps = SiteTrap::ALL;
    let world = WorldConfig {
        without_feeds: true,
        plain_fates: true,
        traps: (0_u32..).zip(traps).collect(),
        ..web(traps.len() as u32, setting.size(10, 40))
    };
    let ground = Ground::new(setting, world).await?;
    for site in ground.sim.world().sites() {
        let draft = SourceDraft {
            name: site.host.clone(),
            url: site.url("/"),
            priority: 5,
            settings: SourceSettings::default(),
        };
        add_source(&ground.store, &draft).await?;
    }
    let process = ground.start("poll,fetch,deliver", &[])?;
    ground.requests(1, setting.soon()).await?;
    // Until nothing was asked for in a while, or for long enough.
    let begun = Instant::now();
    let mut seen = 0;
    while begun.elapsed() < setting.size(Duration::from_secs(15), Duration::from_secs(120)) {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let total = ground.sim.log().total();
        if total == seen {
            break;
        }
        seen = total;
    }
    drop(process);
    let books = Books::of(&ground);
    let articles = books.expected as u64;
    let sites = traps.len() as u64;
    // An article costs little more than one request; a site some for its lists.
    let most = articles * 2 + sites * 60;
    Ok(Measured::new(
        books.requests <= most && books.doubled == 0 && books.impolite.is_empty(),
        format!("{sites} traps, at most {most} requests; {books}"),
    )
    .in_time(books.lost == 0))
}
