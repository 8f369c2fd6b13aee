//! A machine with several addresses: each host is reached from its own, and from
//! another when that one is unusable.

use std::collections::{BTreeMap, BTreeSet};

use tidings_net::{Client, NetOptions};
use tidings_sim::{DnsAnswer, DnsServer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::{get, options};

/// Responds with the address of its client.
async fn echo_client_address() -> u16 {
    let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, peer)) = listener.accept().await {
            let body = peer.ip().to_string();
            let length = body.len();
            let response = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
            );
            let mut head = [0; 2048];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    port
}

#[tokio::test]
async fn a_host_is_always_reached_from_the_same_address() {
    let dns = DnsServer::start(|_, _| DnsAnswer::Addresses(vec!["127.0.0.2".parse().unwrap()]))
        .await
        .unwrap();
    let port = echo_client_address().await;
    // The last one is not ours.
    let addresses = ["127.0.0.11", "127.0.0.12", "127.0.0.13", "192.0.2.1"];
    let client = Client::new(NetOptions {
        dns: vec![dns.address()],
        addresses: addresses.map(|ip| ip.parse().unwrap()).to_vec(),
        ..options()
    })
    .unwrap();
    let mut source_addresses: BTreeMap<u8, BTreeSet<String>> = BTreeMap::new();
    for round in 0..3 {
        for host in 0..20 {
            let url = format!("http://h{host}.example:{port}/{round}");
            let response = get(&client, &url).await.unwrap();
            let address = response.text().text.to_string();
            source_addresses.entry(host).or_default().insert(address);
        }
    }
    assert!(source_addresses.values().all(|from| from.len() == 1));
    let used: BTreeSet<&String> = source_addresses.values().flatten().collect();
    let ours: BTreeSet<String> = addresses[..3].iter().map(|ip| (*ip).to_owned()).collect();
    assert_eq!(used, ours.iter().collect());
}
