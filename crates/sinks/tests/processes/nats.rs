//! NATS JetStream, on a real server: messages are stored once, whatever is lost,
//! killed or deleted. A TCP relay between the two injects faults.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use base64::Engine as _;
use serde_json::{Value, json};
use tidings_document::Document;
use tidings_net::read_authorities;
use tidings_sim::NatsServer;
use tidings_sinks::{Sink, Verdict};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::fixture::{
    client_trusting, context, deliver, document, documents, error_of, is_dead, is_retry, now, sink,
    try_sink, until_done,
};

/// None where no server is installed; in CI there must be one.
fn server(options: &[&str]) -> Option<NatsServer> {
    match NatsServer::start(options) {
        Err(error) if error.kind() == ErrorKind::NotFound && std::env::var_os("CI").is_none() => {
            let note = format!("skipped: {error}\n");
            std::io::stderr().write_all(note.as_bytes()).unwrap();
            None
        }
        started => Some(started.unwrap()),
    }
}

fn config(port: u16) -> String {
    format!("kind = \"nats\"\nurl = \"nats://127.0.0.1:{port}\"\ntimeout_seconds = 5\n")
}

/// Forwards bytes; replies can be dropped, and the target can change.
struct TcpRelay {
    port: u16,
    target: Arc<AtomicU16>,
    drops_replies: Arc<AtomicBool>,
}

impl TcpRelay {
    async fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let relay = Self {
            port: listener.local_addr().unwrap().port(),
            target: Arc::new(AtomicU16::new(target)),
            drops_replies: Arc::default(),
        };
        let (target, drops) = (Arc::clone(&relay.target), Arc::clone(&relay.drops_replies));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let to = SocketAddr::from(([127, 0, 0, 1], target.load(Ordering::SeqCst)));
                let Ok(server) = tokio::net::TcpStream::connect(to).await else {
                    continue;
                };
                let drops = Arc::clone(&drops);
                tokio::spawn(async move {
                    let (mut from_client, mut to_client) = client.into_split();
                    let (mut from_server, mut to_server) = server.into_split();
                    let up = tokio::spawn(async move {
                        let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
                    });
                    let mut buffer = [0; 4096];
                    while let Ok(n @ 1..) = from_server.read(&mut buffer).await {
                        use tokio::io::AsyncWriteExt as _;
                        if drops.load(Ordering::SeqCst) {
                            // It was stored; the acknowledgement is lost.
                            break;
                        }
                        if to_client.write_all(&buffer[..n]).await.is_err() {
                            break;
                        }
                    }
                    up.abort();
                });
            }
        });
        relay
    }
}

/// Sends a request to the server's API directly.
fn api_request(port: u16, subject: &str, body: &Value) -> Value {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let body = body.to_string();
    let lines = format!(
        "CONNECT {{\"verbose\":false,\"headers\":true}}\r\nSUB back 1\r\nPUB {subject} back {}\r\n{body}\r\n",
        body.len()
    );
    stream.write_all(lines.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.starts_with("MSG ") {
            let bytes = line
                .split_ascii_whitespace()
                .last()
                .unwrap()
                .parse()
                .unwrap();
            let mut payload = vec![0; bytes];
            reader.read_exact(&mut payload).unwrap();
            return serde_json::from_slice(&payload).unwrap();
        }
    }
}

fn count(port: u16) -> u64 {
    let state = api_request(port, "$JS.API.STREAM.INFO.TIDINGS", &json!({}));
    state["state"]["messages"].as_u64().unwrap()
}

/// Subject and document of a message.
fn message(port: u16, seq: u64) -> (String, Document) {
    let found = api_request(
        port,
        "$JS.API.STREAM.MSG.GET.TIDINGS",
        &json!({ "seq": seq }),
    );
    let decode = |name: &str| {
        let text = found["message"][name].as_str().unwrap();
        base64::engine::general_purpose::STANDARD
            .decode(text)
            .unwrap()
    };
    let document: Document = serde_json::from_slice(&decode("data")).unwrap();
    let headers = String::from_utf8(decode("hdrs")).unwrap();
    let id = format!("Nats-Msg-Id: {}.{}", document.id, document.revision);
    assert!(headers.contains(&id), "{headers}");
    let subject = found["message"]["subject"].as_str().unwrap();
    (subject.to_owned(), document)
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_become_messages_once() {
    let Some(server) = server(&[]) else { return };
    let sink = sink(&config(server.port()));
    let mut batch = documents(0..150);
    batch[1].source_name = "BBC *News*".into();
    assert!(sink.check(now()).await.is_ok());
    for _ in 0..3 {
        let verdicts = deliver(&*sink, &batch).await;
        assert_eq!(verdicts, vec![Verdict::Accepted; 150]);
    }
    deliver(&*sink, &[document(0, 2)]).await;
    assert_eq!(count(server.port()), 151);
    let (subject, first) = message(server.port(), 1);
    assert_eq!(
        (subject.as_str(), &first),
        ("tidings.documents.news_example", &batch[0])
    );
    assert_eq!(message(server.port(), 2).0, "tidings.documents.bbc_news");
    assert_eq!(message(server.port(), 151).1.revision, 2);
    let report = sink.check(now()).await.to_string();
    assert!(report.contains("TIDINGS holds 151 messages"), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_acknowledgements_and_killed_servers_lose_nothing() {
    let Some(mut server) = server(&[]) else {
        return;
    };
    let relay = TcpRelay::start(server.port()).await;
    let sink = sink(&config(relay.port));
    deliver(&*sink, &documents(0..10)).await;
    // Stored, and the acknowledgement is lost.
    relay.drops_replies.store(true, Ordering::SeqCst);
    let verdicts = deliver(&*sink, &documents(10..20)).await;
    assert!(verdicts.iter().all(is_retry), "{verdicts:?}");
    relay.drops_replies.store(false, Ordering::SeqCst);
    assert_eq!(until_done(&*sink, documents(10..20)).await, (vec![], 1));
    assert_eq!(count(server.port()), 20);
    // Killed, and restarted with its data.
    server.kill();
    assert!(
        deliver(&*sink, &documents(20..30))
            .await
            .iter()
            .all(is_retry)
    );
    assert!(!sink.check(now()).await.is_ok());
    server.restart().unwrap();
    relay.target.store(server.port(), Ordering::SeqCst);
    assert_eq!(until_done(&*sink, documents(0..30)).await, (vec![], 1));
    // The stream is deleted while the sink is connected.
    assert_eq!(count(server.port()), 30);
    api_request(server.port(), "$JS.API.STREAM.DELETE.TIDINGS", &json!({}));
    assert_eq!(until_done(&*sink, documents(0..30)).await.0, []);
    assert_eq!(count(server.port()), 30);
    let ids: BTreeSet<_> = (1..=30)
        .map(|seq| message(server.port(), seq).1.id)
        .collect();
    assert_eq!(ids.len(), 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_too_large_document_fails_permanently_alone() {
    let Some(server) = server(&[]) else { return };
    let sink = sink(&config(server.port()));
    let mut batch = documents(0..3);
    batch[1].body_text = "x".repeat(2_000_000);
    let verdicts = deliver(&*sink, &batch).await;
    assert!(is_dead(&verdicts[1]) && error_of(&verdicts[1]).contains("max_payload"));
    assert_eq!([&verdicts[0], &verdicts[2]], [&Verdict::Accepted; 2]);
    assert_eq!(count(server.port()), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_the_stream_rejects_are_not_accepted() {
    let Some(server) = server(&[]) else { return };
    let stream = |limits: Value| {
        let mut config =
            json!({ "name": "TIDINGS", "subjects": ["tidings.documents.>"], "discard": "new" });
        config
            .as_object_mut()
            .unwrap()
            .extend(limits.as_object().unwrap().clone());
        api_request(server.port(), "$JS.API.STREAM.DELETE.TIDINGS", &json!({}));
        let created = api_request(server.port(), "$JS.API.STREAM.CREATE.TIDINGS", &config);
        assert!(created["error"].is_null(), "{created}");
    };
    let sink = sink(&config(server.port()));
    // It is full: an operator may make room.
    stream(json!({ "max_msgs": 3 }));
    let verdicts = deliver(&*sink, &documents(0..5)).await;
    assert_eq!(verdicts[..3], vec![Verdict::Accepted; 3]);
    assert!(verdicts[3..].iter().all(is_retry), "{verdicts:?}");
    assert_eq!(count(server.port()), 3);
    // A message that it never accepts.
    stream(json!({ "max_msg_size": 3000 }));
    let mut batch = documents(0..3);
    batch[1].body_text = "x".repeat(5000);
    let verdicts = deliver(&*sink, &batch).await;
    assert!(is_dead(&verdicts[1]), "{verdicts:?}");
    assert_eq!([&verdicts[0], &verdicts[2]], [&Verdict::Accepted; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_and_tokens_are_used_and_never_shown() {
    let rows = [
        (
            vec!["--user", "tidings", "--pass", "pass-phrase"],
            "user = \"tidings\"\npassword_env = \"PASSWORD\"",
            "pass-phrase",
        ),
        (
            vec!["--auth", "a-very-secret-key"],
            "token_env = \"KEY\"",
            "a-very-secret-key",
        ),
    ];
    for (options, settings, secret) in rows {
        let Some(server) = server(&options) else {
            return;
        };
        let right = sink(&format!("{}{settings}", config(server.port())));
        assert_eq!(
            deliver(&*right, &documents(0..1)).await,
            [Verdict::Accepted]
        );
        assert!(!format!("{right:?}").contains(secret));
        let anonymous: Box<dyn Sink> = sink(&config(server.port()));
        let verdict = &deliver(&*anonymous, &documents(0..1)).await[0];
        assert!(
            is_retry(verdict) && error_of(verdict).contains("Authorization"),
            "{verdict:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_another_protocol_and_closed_ports_are_reported() {
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = other.local_addr().unwrap().port();
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        while let Ok((mut stream, _)) = other.accept().await {
            let _ = stream.write_all(b"220 mail.example ESMTP\r\n").await;
        }
    });
    let verdict = &deliver(&*sink(&config(port)), &documents(0..1)).await[0];
    assert!(
        error_of(verdict).contains("not a NATS server"),
        "{verdict:?}"
    );
    let nobody = &deliver(&*sink(&config(1)), &documents(0..1)).await[0];
    assert!(
        is_retry(nobody) && error_of(nobody).contains("no connection"),
        "{nobody:?}"
    );
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<_> = body
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    let body = lines.join("\n");
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_connects_only_to_trusted_servers() {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (cert_path, key_path) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    std::fs::write(&cert_path, pem("CERTIFICATE", certificate.der())).unwrap();
    std::fs::write(&key_path, pem("PRIVATE KEY", &key.serialize_der())).unwrap();
    let options = [
        "--tls",
        "--tlscert",
        cert_path.to_str().unwrap(),
        "--tlskey",
        key_path.to_str().unwrap(),
    ];
    let Some(server) = server(&options) else {
        return;
    };
    let toml = config(server.port()).replace("nats://", "tls://");
    let untrusted = &deliver(&*sink(&toml), &documents(0..1)).await[0];
    assert!(
        error_of(untrusted).contains("no secure connection"),
        "{untrusted:?}"
    );
    let mut trusting = context(folder.path());
    trusting.client = client_trusting(read_authorities(&cert_path).unwrap());
    let sink = try_sink(&toml, &trusting).unwrap();
    assert_eq!(
        deliver(&*sink, &documents(0..3)).await,
        vec![Verdict::Accepted; 3]
    );
    assert!(
        sink.check(now())
            .await
            .to_string()
            .contains("holds 3 messages")
    );
}
