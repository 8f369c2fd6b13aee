//! Connections: slow headers, too many of them, streams that outlast the timeouts, TLS.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _};
use tidings_net::{Client, NetOptions};
use tidings_server::{Server, ServerOptions, TlsFiles};
use tidings_store::{Store, StoreOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::fixture::{ADMIN, Served, VIEWER};
use crate::streams::until_streams;

/// A connection that has sent half a header.
async fn half_open(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let half = b"GET /healthz HTTP/1.1\r\nhost: loc";
    stream.write_all(half).await.unwrap();
    stream
}

/// Reads until the server ends the connection.
async fn until_closed(mut stream: TcpStream) {
    let mut rest = Vec::new();
    let reading = stream.read_to_end(&mut rest);
    // A reset is an end, too.
    let _ = tokio::time::timeout(Duration::from_secs(60), reading)
        .await
        .expect("the server never ends the connection");
}

#[tokio::test]
async fn half_a_header_times_out_and_a_live_stream_does_not() {
    let served = Served::start_with(|options| {
        options.header_timeout = Duration::from_millis(200);
    })
    .await;
    let stream = served.request("GET", "/api/v1/documents/stream");
    let reading = stream
        .token(VIEWER)
        .read_until(|text| text.contains("Late news"));
    let waiting = async {
        // One after the other: the timeout passes three times while the stream is open.
        for _ in 0..3 {
            until_closed(half_open(served.address).await).await;
        }
        let mut idle = TcpStream::connect(served.address).await.unwrap();
        let request = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", served.address);
        idle.write_all(request.as_bytes()).await.unwrap();
        until_closed(idle).await;
        served.fetched("https://a.example/1", "Late news").await;
    };
    let (live, ()) = tokio::join!(reading, waiting);
    assert!(live.text.contains("Late news"), "{}", live.text);
}

#[tokio::test]
async fn a_thousand_half_open_connections_keep_nobody_out() {
    let served = Served::start_with(|options| {
        options.max_connections = 64;
        options.header_timeout = Duration::from_secs(3600);
    })
    .await;
    // Requests with a token are never closed for others.
    let stream = served.request("GET", "/api/v1/documents/stream");
    let reading = stream
        .token(VIEWER)
        .read_until(|text| text.contains("Late news"));
    let attacking = async {
        until_streams(&served, "1").await;
        let mut open = VecDeque::new();
        for n in 1..=1000 {
            open.push_back(half_open(served.address).await);
            if n % 100 == 0 {
                let health = served.request("GET", "/healthz").send().await;
                assert_eq!(health.status, 200, "after {n}");
                // The oldest have given way.
                for stream in open.drain(..open.len() - 64) {
                    until_closed(stream).await;
                }
            }
        }
        let is_open = |stream: &TcpStream| {
            let read = stream.try_read(&mut [0]);
            read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
        };
        assert!(open.iter().any(is_open), "the youngest stay");
        assert_eq!(served.get("/api/v1/sources").await.status, 200);
        served.fetched("https://a.example/1", "Late news").await;
    };
    let (live, ()) = tokio::join!(reading, attacking);
    assert!(live.text.contains("Late news"), "{}", live.text);
}

#[tokio::test]
async fn streams_leave_connections_for_other_requests() {
    let served = Served::start_with(|options| options.max_connections = 8).await;
    let mut streams = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let stream = served.request("GET", "/api/v1/events").token(VIEWER);
        streams.spawn(stream.read_until(|text| text.contains("HTTP/1.1 503")));
    }
    for _ in 0..2 {
        let refused = streams.join_next().await.unwrap().unwrap();
        assert_eq!(refused.status, 503);
        assert_eq!(refused.header("retry-after"), "30");
    }
    let health = served.request("GET", "/healthz").send().await;
    assert_eq!(health.status, 200);
}

/// A certificate for localhost and its key, as files in a folder.
fn tls_files(folder: &tempfile::TempDir, name: &str) -> TlsFiles {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let file = |extension: &str| folder.path().join(format!("{name}.{extension}"));
    let files = TlsFiles {
        cert: file("pem"),
        key: file("key"),
    };
    std::fs::write(&files.cert, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    files
}

#[tokio::test]
async fn it_serves_tls_of_its_own_with_secure_cookies() {
    let folder = tempfile::tempdir().unwrap();
    let files = tls_files(&folder, "server");
    let served = Served::start_with(|options| options.tls = Some(files.clone())).await;
    let mut roots = rustls::RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(&files.cert).unwrap();
    roots.add(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(served.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = connector.connect(name, stream).await.unwrap();
    let body = format!("token={ADMIN}");
    let request = format!(
        "POST /login HTTP/1.1\r\nhost: localhost\r\norigin: https://localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 303"), "{response}");
    assert!(response.contains("; Secure\r\n"), "{response}");

    let plain = served.request("GET", "/healthz").send().await;
    assert_eq!(plain.status, 0, "nothing is served in the clear");
}

#[tokio::test]
async fn unusable_tls_files_are_named_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (tls_files(&folder, "one"), tls_files(&folder, "other"));
    assert!(PrivateKeyDer::from_pem_file(&one.key).is_ok());
    let missing = folder.path().join("missing.pem");
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let store = Store::open(&address, &StoreOptions::default())
        .await
        .unwrap();
    for (cert, key, named) in [
        (&missing, &one.key, "server.tls_cert"),
        (&one.key, &one.key, "server.tls_cert"),
        (&one.cert, &missing, "server.tls_key"),
        (&one.cert, &one.cert, "server.tls_key"),
        (&one.cert, &other.key, "is not the key of"),
    ] {
        let (cert, key) = (cert.clone(), key.clone());
        let options = ServerOptions {
            tls: Some(TlsFiles { cert, key }),
            ..ServerOptions::new("127.0.0.1:0".parse().unwrap())
        };
        let client = Client::new(NetOptions::default()).unwrap();
        let failed = Server::bind(options, store.clone(), client).await;
        let error = failed.unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}
