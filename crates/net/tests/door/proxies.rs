//! Asking through proxies: which one, what it is told, and what happens when it
//! or the server behind it is away.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidings_net::{Class, Client, Failure, Limits, NetOptions, Proxy};
use tidings_sim::{Act, DnsAnswer, DnsServer};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::{get, limits, options, raw};

/// What a proxy was asked for: addresses, and what else it was told.
type FetchResult = Arc<Mutex<Vec<String>>>;

const LOGIN: &str = "me:s3cret";

async fn carry(mut from: TcpStream, mut to: TcpStream) {
    let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
}

/// A SOCKS5 server that knows one user; its address.
async fn socks5(asked: &FetchResult) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::clone(asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_socks5(stream, Arc::clone(&asked)));
        }
    });
    address.to_string()
}

async fn serve_socks5(mut stream: TcpStream, asked: FetchResult) -> std::io::Result<()> {
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
    asked.lock().unwrap().push(format!("socks5 {to}"));
    match TcpStream::connect(to).await {
        Ok(server) => {
            stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
            carry(stream, server).await;
            Ok(())
        }
        // The same, with a bound address that is a name.
        Err(_) => stream.write_all(b"\x05\x05\x00\x03\x01x\x00\x00").await,
    }
}

/// An HTTP proxy that answers with this unless it is a 200; its address.
async fn connecting(asked: &FetchResult, answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::clone(asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let asked = Arc::clone(&asked);
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
                let told = format!("http {to} login {login}");
                asked.lock().unwrap().push(told);
                let mut stream = stream.into_inner();
                if answer.starts_with("HTTP/1.1 200") {
                    let server = TcpStream::connect(&to).await.unwrap();
                    let _ = stream.write_all(answer.as_bytes()).await;
                    carry(stream, server).await;
                } else {
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    address.to_string()
}

fn through(proxies: &[String]) -> NetOptions {
    NetOptions {
        limits: Limits {
            // Twice what a proxy that says nothing is given, and more.
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
async fn a_host_is_asked_through_its_proxy_which_is_told_an_address() {
    let dns = DnsServer::start(|_, _| DnsAnswer::Addresses(vec!["127.0.0.2".parse().unwrap()]))
        .await
        .unwrap();
    let server = raw(|_| Act::answer("200 OK", b"here")).await;
    let port = server.address().port();
    let asked: [FetchResult; 2] = Default::default();
    let proxies = [
        format!("socks5://{LOGIN}@{}", socks5(&asked[0]).await),
        format!(
            "http://{LOGIN}@{}",
            connecting(&asked[1], "HTTP/1.1 200 Yes\r\nVia: us\r\n\r\n").await
        ),
    ];
    let client = Client::new(NetOptions {
        dns: vec![dns.address()],
        ..through(&proxies)
    })
    .unwrap();
    let mut by_host = Vec::new();
    for round in 0..2 {
        for host in 0..40 {
            let before = asked.each_ref().map(|asked| asked.lock().unwrap().len());
            let url = format!("http://h{host}.example:{port}/{round}");
            let answer = get(&client, &url).await.unwrap();
            assert_eq!(answer.text().text, "here");
            let after = asked.each_ref().map(|asked| asked.lock().unwrap().len());
            by_host.push((host, before != after, after[0] > before[0]));
        }
    }
    let (first, second) = by_host.split_at(40);
    assert!(first.iter().all(|(_, is_asked, _)| *is_asked));
    for ((_, _, then), (_, is_asked, now)) in first.iter().zip(second) {
        // A connection may have been kept; a new one takes the same way.
        assert!(!is_asked || then == now);
    }
    let ways: BTreeSet<bool> = first.iter().map(|(_, _, is_socks5)| *is_socks5).collect();
    assert_eq!(ways.len(), 2, "both are used");
    let told: BTreeSet<String> = asked
        .iter()
        .flat_map(|asked| asked.lock().unwrap().clone())
        .collect();
    let address = format!("127.0.0.2:{port}");
    let expected = [
        format!("http {address} login true"),
        format!("socks5 {address}"),
    ];
    assert_eq!(told, expected.into());
}

#[tokio::test]
async fn what_may_not_be_asked_is_not_asked_of_a_proxy() {
    let asked = FetchResult::default();
    let proxy = format!("socks5://{LOGIN}@{}", socks5(&asked).await);
    let client = Client::new(through(&[proxy])).unwrap();
    for url in ["http://10.0.0.1/", "http://169.254.169.254/latest/"] {
        let failure = get(&client, url).await.unwrap_err();
        assert!(matches!(failure, Failure::Egress(_)), "{failure}");
    }
    assert!(asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_proxy_that_is_broken_rests_and_another_takes_its_hosts() {
    let server = raw(|_| Act::answer("200 OK\r\nConnection: close", b"here")).await;
    let url = format!("http://{}/", server.address());
    let (good, refusing) = (FetchResult::default(), FetchResult::default());
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let answer = "HTTP/1.1 407 Who are you\r\n\r\n";
    let proxies = [
        format!("socks5://{LOGIN}@{}", socks5(&good).await),
        format!("http://{}", connecting(&refusing, answer).await),
        // Takes the connection and says nothing; and nobody there at all.
        format!("socks5://{}", mute.local_addr().unwrap()),
        "http://127.0.0.1:9".to_owned(),
    ];
    let client = Client::new(through(&proxies)).unwrap();
    for _ in 0..5 {
        assert_eq!(get(&client, &url).await.unwrap().text().text, "here");
    }
    assert_eq!(good.lock().unwrap().len(), 5);
    assert!(refusing.lock().unwrap().len() <= 1, "it rests");

    // When none is left it is our own matter, and costs no URL a try.
    let client = Client::new(through(&proxies[3..])).unwrap();
    for _ in 0..2 {
        let failure = get(&client, &url).await.unwrap_err();
        assert_eq!(failure.class(), Class::Internal, "{failure}");
    }
}

#[tokio::test]
async fn a_server_that_is_away_is_not_the_fault_of_the_proxy() {
    let answer = "HTTP/1.1 502 No way\r\n\r\n";
    let nobody = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let away = nobody.local_addr().unwrap();
    drop(nobody);
    let server = raw(|_| Act::answer("200 OK\r\nConnection: close", b"here")).await;
    let asked = FetchResult::default();
    let proxy = format!("socks5://{LOGIN}@{}", socks5(&asked).await);
    let client = Client::new(through(&[proxy])).unwrap();
    let failure = get(&client, &format!("http://{away}/")).await.unwrap_err();
    assert!(failure.to_string().contains("refused"), "{failure}");
    let url = format!("http://{}/", server.address());
    assert_eq!(get(&client, &url).await.unwrap().text().text, "here");

    let proxy = format!("http://{}", connecting(&asked, answer).await);
    let client = Client::new(through(&[proxy])).unwrap();
    for _ in 0..2 {
        let failure = get(&client, &url).await.unwrap_err();
        assert!(failure.to_string().contains("502"), "{failure}");
    }
}
