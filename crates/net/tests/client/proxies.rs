//! Requests through proxies: which one, what it learns, and the result when it or
//! the target is down.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidings_net::{Class, Client, Failure, Limits, NetOptions, Proxy};
use tidings_sim::{Act, DnsAnswer, DnsServer};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::{get, limits, options, raw};

/// What a proxy was requested to connect to, one line per CONNECT.
type ConnectLog = Arc<Mutex<Vec<String>>>;

const LOGIN: &str = "me:s3cret";

async fn relay(mut from: TcpStream, mut to: TcpStream) {
    let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
}

/// A SOCKS5 server that knows one user; its address.
async fn socks5(log: &ConnectLog) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let log = Arc::clone(log);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_socks5(stream, Arc::clone(&log)));
        }
    });
    address.to_string()
}

async fn serve_socks5(mut stream: TcpStream, log: ConnectLog) -> std::io::Result<()> {
    let mut head = [0; 2];
    stream.read_exact(&mut head).await?;
    let mut methods = vec![0; usize::from(head[1])];
    stream.read_exact(&mut methods).await?;
    if !methods.contains(&2) {
        return stream.write_all(&[5, 0xff]).await;
    }
    stream.write_all(&[5, 2]).await?;
    let mut login = Vec::new();
    stream.read_u8().await?;
    for _ in 0..2 {
        let mut part = vec![0; usize::from(stream.read_u8().await?)];
        stream.read_exact(&mut part).await?;
        login.push(String::from_utf8_lossy(&part).into_owned());
    }
    let is_known = login.join(":") == LOGIN;
    stream.write_all(&[1, u8::from(!is_known)]).await?;
    let mut connect = [0; 10];
    stream.read_exact(&mut connect).await?;
    assert_eq!(connect[..4], [5, 1, 0, 1], "an IPv4 address, never a name");
    let port = u16::from_be_bytes([connect[8], connect[9]]);
    let to = std::net::SocketAddr::from(([connect[4], connect[5], connect[6], connect[7]], port));
    log.lock().unwrap().push(format!("socks5 {to}"));
    match TcpStream::connect(to).await {
        Ok(server) => {
            stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
            relay(stream, server).await;
            Ok(())
        }
        // The same, with a bound address that is a name.
        Err(_) => stream.write_all(b"\x05\x05\x00\x03\x01x\x00\x00").await,
    }
}

/// An HTTP proxy that sends this response, and connects if it is a 200; its address.
async fn http_proxy(log: &ConnectLog, response: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let log = Arc::clone(log);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                let to = head.split(' ').nth(1).unwrap().to_owned();
                let login = head.contains("Proxy-Authorization: Basic bWU6czNjcmV0\r\n");
                let line = format!("http {to} login {login}");
                log.lock().unwrap().push(line);
                let mut stream = stream.into_inner();
                if response.starts_with("HTTP/1.1 200") {
                    let server = TcpStream::connect(&to).await.unwrap();
                    let _ = stream.write_all(response.as_bytes()).await;
                    relay(stream, server).await;
                } else {
                    let _ = stream.write_all(response.as_bytes()).await;
                }
            });
        }
    });
    address.to_string()
}

fn options_with(proxies: &[String]) -> NetOptions {
    NetOptions {
        limits: Limits {
            // More than twice the timeout of a proxy that does not respond.
            connect: Duration::from_secs(11),
            headers: Duration::from_secs(14),
            total: Duration::from_secs(18),
            ..limits()
        },
        proxies: proxies
            .iter()
            .map(|text| Proxy::parse(text).unwrap())
            .collect(),
        ..options()
    }
}

#[tokio::test]
async fn a_host_is_reached_through_its_proxy_which_gets_an_address() {
    let dns = DnsServer::start(|_, _| DnsAnswer::Addresses(vec!["127.0.0.2".parse().unwrap()]))
        .await
        .unwrap();
    let server = raw(|_| Act::answer("200 OK", b"here")).await;
    let port = server.address().port();
    let log: [ConnectLog; 2] = Default::default();
    let proxies = [
        format!("socks5://{LOGIN}@{}", socks5(&log[0]).await),
        format!(
            "http://{LOGIN}@{}",
            http_proxy(&log[1], "HTTP/1.1 200 Yes\r\nVia: us\r\n\r\n").await
        ),
    ];
    let client = Client::new(NetOptions {
        dns: vec![dns.address()],
        ..options_with(&proxies)
    })
    .unwrap();
    let mut by_host = Vec::new();
    for round in 0..2 {
        for host in 0..40 {
            let before = log.each_ref().map(|log| log.lock().unwrap().len());
            let url = format!("http://h{host}.example:{port}/{round}");
            let response = get(&client, &url).await.unwrap();
            assert_eq!(response.text().text, "here");
            let after = log.each_ref().map(|log| log.lock().unwrap().len());
            by_host.push((host, before != after, after[0] > before[0]));
        }
    }
    let (first, second) = by_host.split_at(40);
    assert!(first.iter().all(|(_, is_requested, _)| *is_requested));
    for ((_, _, then), (_, is_requested, now)) in first.iter().zip(second) {
        // A connection may be pooled; a new one goes through the same proxy.
        assert!(!is_requested || then == now);
    }
    let kinds: BTreeSet<bool> = first.iter().map(|(_, _, is_socks5)| *is_socks5).collect();
    assert_eq!(kinds.len(), 2, "both are used");
    let lines: BTreeSet<String> = log
        .iter()
        .flat_map(|log| log.lock().unwrap().clone())
        .collect();
    let address = format!("127.0.0.2:{port}");
    let expected = [
        format!("http {address} login true"),
        format!("socks5 {address}"),
    ];
    assert_eq!(lines, expected.into());
}

#[tokio::test]
async fn a_denied_address_is_not_requested_from_a_proxy() {
    let log = ConnectLog::default();
    let proxy = format!("socks5://{LOGIN}@{}", socks5(&log).await);
    let client = Client::new(options_with(&[proxy])).unwrap();
    for url in ["http://10.0.0.1/", "http://169.254.169.254/latest/"] {
        let failure = get(&client, url).await.unwrap_err();
        assert!(matches!(failure, Failure::Egress(_)), "{failure}");
    }
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_broken_proxy_cools_down_and_another_serves_its_hosts() {
    let server = raw(|_| Act::answer("200 OK\r\nConnection: close", b"here")).await;
    let url = format!("http://{}/", server.address());
    let (good, refusing) = (ConnectLog::default(), ConnectLog::default());
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let response = "HTTP/1.1 407 Who are you\r\n\r\n";
    let proxies = [
        format!("socks5://{LOGIN}@{}", socks5(&good).await),
        format!("http://{}", http_proxy(&refusing, response).await),
        // Accepts the connection and sends nothing; and nothing listening at all.
        format!("socks5://{}", mute.local_addr().unwrap()),
        "http://127.0.0.1:9".to_owned(),
    ];
    let client = Client::new(options_with(&proxies)).unwrap();
    for _ in 0..5 {
        assert_eq!(get(&client, &url).await.unwrap().text().text, "here");
    }
    assert_eq!(good.lock().unwrap().len(), 5);
    assert!(refusing.lock().unwrap().len() <= 1, "it is in cooldown");

    // When none is left the failure is internal, and costs no URL an attempt.
    let client = Client::new(options_with(&proxies[3..])).unwrap();
    for _ in 0..2 {
        let failure = get(&client, &url).await.unwrap_err();
        assert_eq!(failure.class(), Class::Internal, "{failure}");
    }
}

#[tokio::test]
async fn a_target_that_is_down_is_not_a_failure_of_the_proxy() {
    let response = "HTTP/1.1 502 No way\r\n\r\n";
    let closed = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let target = closed.local_addr().unwrap();
    drop(closed);
    let server = raw(|_| Act::answer("200 OK\r\nConnection: close", b"here")).await;
    let log = ConnectLog::default();
    let proxy = format!("socks5://{LOGIN}@{}", socks5(&log).await);
    let client = Client::new(options_with(&[proxy])).unwrap();
    let failure = get(&client, &format!("http://{target}/"))
        .await
        .unwrap_err();
    assert!(failure.to_string().contains("refused"), "{failure}");
    let url = format!("http://{}/", server.address());
    assert_eq!(get(&client, &url).await.unwrap().text().text, "here");

    let proxy = format!("http://{}", http_proxy(&log, response).await);
    let client = Client::new(options_with(&[proxy])).unwrap();
    for _ in 0..2 {
        let failure = get(&client, &url).await.unwrap_err();
        assert!(failure.to_string().contains("502"), "{failure}");
    }
}
