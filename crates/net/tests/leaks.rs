//! Ten thousand hosts through the HTTP client leave neither sockets nor memory
//! behind. Alone in its process, so that nothing else is counted.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::sync::Arc;

use tidings_net::{Client, Egress, NetOptions, Purpose, Redirects, Request, RobotsGate};
use tidings_sim::{SimClock, SimServer, WorldConfig};

const HOSTS: u32 = 10_000;
const CONCURRENCY: usize = 64;

/// Memory that the process holds now, in bytes.
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn sockets() -> usize {
    let open = fs::read_dir("/proc/self/fd").unwrap();
    let is_socket = |entry: &fs::DirEntry| {
        fs::read_link(entry.path())
            .is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
    };
    open.filter(|entry| entry.as_ref().is_ok_and(is_socket))
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_hosts_leave_nothing_behind() {
    let config = WorldConfig {
        sites: HOSTS,
        articles_per_site: 1,
        ..WorldConfig::new(3)
    };
    let sim = SimServer::start(config, SimClock::real(), "127.0.0.1:0")
        .await
        .unwrap();
    let client = Client::new(NetOptions {
        egress: Egress {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
            ports: vec![sim.address().port()..=sim.address().port()],
        },
        ..NetOptions::default()
    })
    .unwrap();
    let gate = Arc::new(RobotsGate::new(client.clone(), None));
    let mut before = 0;
    let mut running = tokio::task::JoinSet::new();
    for index in 0..HOSTS {
        // The first thousand fill the caches that are meant to be full.
        if index == 1000 {
            while running.join_next().await.is_some() {}
            before = resident();
        }
        if running.len() == CONCURRENCY {
            running.join_next().await.unwrap().unwrap();
        }
        let (client, gate) = (client.clone(), Arc::clone(&gate));
        let home = sim.world().site(index).home().parse().unwrap();
        running.spawn(async move {
            // What robots.txt says is not the point here, that it was fetched is.
            let _ = gate.permit(&home).await;
            let page = client
                .fetch(Request::get(home, Purpose::Page), Redirects::Report)
                .await;
            assert_eq!(page.unwrap().status, 200);
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
    assert!(sim.log().total() >= 2 * u64::from(HOSTS));
    assert!(
        client.idle_connections() <= 256,
        "{} idle",
        client.idle_connections()
    );
    // Both ends of each connection are in this process.
    assert!(sockets() < 2 * 256 + 64, "{} sockets", sockets());
    let growth = resident().saturating_sub(before);
    assert!(
        growth < 32 << 20,
        "{} MB more after ten thousand hosts",
        growth >> 20
    );
}
