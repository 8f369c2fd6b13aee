//! The HTTP client as its callers use it, against peers that are broken or hostile:
//! real sockets on loopback, real DNS, real TLS.

#![allow(clippy::unwrap_used)]

mod addresses;
mod body_memory;
mod egress;
mod hostile;
mod in_flight;
mod names;
mod own_limits;
mod proxies;
mod redirects;
mod robots_gate;
mod robots_rules;
mod tls;
mod trust;

use std::net::SocketAddr;
use std::time::Duration;

use tidings_net::{
    Client, Egress, Failure, Limits, NetOptions, Purpose, Redirects, Request, Response,
};
use tidings_sim::{Act, RawServer};
use tidings_url::FetchUrl;

/// The peers of these tests live here; 127.0.0.1 and all else stays forbidden.
const PEER: &str = "127.0.0.2:0";
const OTHER_PEER: &str = "127.0.0.3:0";

/// Limits that are short enough to run into, and long enough for a busy machine.
fn limits() -> Limits {
    Limits {
        connect: Duration::from_secs(3),
        headers: Duration::from_secs(3),
        total: Duration::from_secs(5),
        rate_window: Duration::from_secs(1),
        page_bytes: 256 * 1024,
        ..Limits::default()
    }
}

fn options() -> NetOptions {
    NetOptions {
        limits: limits(),
        egress: Egress {
            allow: vec![
                "127.0.0.2/32".parse().unwrap(),
                "127.0.0.3/32".parse().unwrap(),
            ],
            ports: vec![1..=65535],
        },
        ..NetOptions::default()
    }
}

fn client() -> Client {
    Client::new(options()).unwrap()
}

fn url(text: &str) -> FetchUrl {
    FetchUrl::parse(text).unwrap()
}

fn page(text: &str) -> Request {
    Request::get(url(text), Purpose::Page)
}

async fn raw(script: impl Fn(&str) -> Vec<Act> + Send + Sync + 'static) -> RawServer {
    RawServer::start(PEER.parse().unwrap(), script)
        .await
        .unwrap()
}

fn home(address: SocketAddr) -> String {
    format!("http://{address}/")
}

/// The path of a request, from its head.
fn path(head: &str) -> &str {
    head.split(' ').nth(1).unwrap_or_default()
}

async fn get(client: &Client, address: &str) -> Result<Response, Failure> {
    // Nothing here may hang: every limit is shorter than this.
    let fetch = client.fetch(page(address), Redirects::Follow);
    tokio::time::timeout(Duration::from_secs(20), fetch)
        .await
        .expect("a fetch ends within its limits")
}
