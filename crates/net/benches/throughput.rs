//! Pages per second through the HTTP client, from the simulated web in a process of its
//! own, with the CPU time of both sides. Run: `cargo bench -p tidings-net`, or with
//! `-- quick` to see the form of it.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tidings_net::{Client, Egress, NetOptions, Purpose, Redirects, Request};
use tidings_sim::{SimClock, SimServer, World, WorldConfig};
use tidings_url::FetchUrl;

const SITES: u32 = 256;
const RUN: Duration = Duration::from_secs(8);
const QUICK_RUN: Duration = Duration::from_secs(1);

fn config(page_bytes: usize) -> WorldConfig {
    WorldConfig {
        sites: SITES,
        articles_per_site: 50,
        start: jiff::Timestamp::UNIX_EPOCH,
        plain_fates: true,
        page_bytes,
        ..WorldConfig::new(7)
    }
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "serve") {
        let page_bytes = arguments[at + 1].parse().unwrap();
        runtime.block_on(serve(page_bytes));
        return;
    }
    let run = match arguments.iter().any(|argument| argument == "quick") {
        true => QUICK_RUN,
        false => RUN,
    };
    println!("page size  connections  pages/s  MB/s   our CPU  server's CPU   (µs per page)");
    for page_bytes in [0, 40_000] {
        for connections in [16, 64, 256] {
            runtime.block_on(measure(page_bytes, connections, run));
        }
    }
}

/// The other side: serves until it is killed.
async fn serve(page_bytes: usize) {
    let clock = SimClock::manual(jiff::Timestamp::UNIX_EPOCH);
    let sim = SimServer::start(config(page_bytes), clock, "127.0.0.1:0")
        .await
        .unwrap();
    println!("{}", sim.address().port());
    std::io::stdout().flush().unwrap();
    std::future::pending::<()>().await;
}

async fn measure(page_bytes: usize, connections: usize, run: Duration) {
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["serve", &page_bytes.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut port)
        .unwrap();
    let port: u16 = port.trim().parse().unwrap();
    let world = World::new(config(page_bytes), port);
    let urls: Arc<Vec<FetchUrl>> = Arc::new(
        (0..20)
            .flat_map(|nth| {
                let article = move |site: tidings_sim::Site| {
                    let latest = site.latest(jiff::Timestamp::UNIX_EPOCH, 20);
                    let article = latest.into_iter().nth(nth)?;
                    Some(format!(
                        "{}{}",
                        site.home().trim_end_matches('/'),
                        article.path
                    ))
                };
                world.sites().filter_map(article).collect::<Vec<_>>()
            })
            .map(|url| url.parse().unwrap())
            .collect(),
    );
    let client = Client::new(NetOptions {
        egress: Egress {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
            ports: vec![port..=port],
        },
        ..NetOptions::default()
    })
    .unwrap();
    let (next, bytes) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let cpu_before = (cpu("self"), cpu(&server.id().to_string()));
    let start = Instant::now();
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let (client, urls, next, bytes) = (
            client.clone(),
            Arc::clone(&urls),
            Arc::clone(&next),
            Arc::clone(&bytes),
        );
        workers.spawn(async move {
            while start.elapsed() < run {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let request = Request::get(urls[at % urls.len()].clone(), Purpose::Page);
                let page = client.fetch(request, Redirects::Report).await.unwrap();
                assert_eq!(page.status, 200, "{}", page.url);
                bytes.fetch_add(page.body.len(), Ordering::Relaxed);
            }
        });
    }
    while let Some(done) = workers.join_next().await {
        done.unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    let pages = next.load(Ordering::Relaxed) as f64;
    let (ours, theirs) = (
        cpu("self") - cpu_before.0,
        cpu(&server.id().to_string()) - cpu_before.1,
    );
    server.kill().unwrap();
    server.wait().unwrap();
    let size = bytes.load(Ordering::Relaxed) as f64 / pages;
    println!(
        "{:6.1} KB  {connections:11}  {:7.0}  {:5.1}  {:4.2} core  {:4.2} core      {:5.0} / {:.0}",
        size / 1000.0,
        pages / seconds,
        size * pages / seconds / 1e6,
        ours / seconds,
        theirs / seconds,
        ours / pages * 1e6,
        theirs / pages * 1e6,
    );
}

/// Seconds of CPU time that a process has used.
fn cpu(pid: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    // USER_HZ is 100 on every Linux that we know.
    ticks as f64 / 100.0
}
