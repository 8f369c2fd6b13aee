//! A running server with rows in its store, and a client that sends exactly the given
//! bytes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tidings_document::Document;
use tidings_net::{Client, Egress, NetOptions};
use tidings_server::{Server, ServerOptions};
use tidings_store::{
    ClaimRequest, Completion, DeliveryVerdict, FrontierId, NewDocument, Origin, Outcome, Role,
    Store, StoreOptions, Submission, Target,
};
use tidings_url::{FetchUrl, ProxyHosts, Rules};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) const VIEWER: &str = "tdg_viewer-secret-of-the-tests";
pub(crate) const OPERATOR: &str = "tdg_operator-secret-of-the-tests";
pub(crate) const ADMIN: &str = "tdg_admin-secret-of-the-tests";

pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) store: Store,
    _folder: tempfile::TempDir,
}

impl Served {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut ServerOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
        Self::start_in(folder, &address, change).await
    }

    /// On a PostgreSQL database of its own; also returns its address.
    pub(crate) async fn start_on_postgres() -> (Self, String) {
        let address = tidings_sim::postgres_database().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let served = Self::start_in(folder, &address, |_| {}).await;
        (served, address)
    }

    async fn start_in(
        folder: tempfile::TempDir,
        address: &str,
        change: impl FnOnce(&mut ServerOptions),
    ) -> Self {
        let mut store_options = StoreOptions::default();
        store_options.host_delay = Duration::from_millis(5);
        let store = Store::open(address, &store_options).await.unwrap();
        for (name, role, secret) in [
            ("test viewer", Role::Viewer, VIEWER),
            ("test operator", Role::Operator, OPERATOR),
            ("test admin", Role::Admin, ADMIN),
        ] {
            store.add_token(name, role, secret, None).await.unwrap();
        }
        let mut options = ServerOptions::new("127.0.0.1:0".parse().unwrap());
        options.stream_poll_interval = Duration::from_millis(20);
        options.search_folder = Some(folder.path().join("search"));
        change(&mut options);
        let client = Client::new(NetOptions {
            egress: Egress {
                allow: vec!["127.0.0.0/8".parse().unwrap()],
                ports: vec![1..=65535],
            },
            ..NetOptions::default()
        })
        .unwrap();
        let server = Server::bind(options, store.clone(), client).await.unwrap();
        assert_eq!(server.first_token(), None);
        let address = server.address();
        tokio::spawn(server.run(std::future::pending()));
        Self {
            address,
            store,
            _folder: folder,
        }
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> TestRequest {
        TestRequest {
            address: self.address,
            method: method.to_owned(),
            path: path.to_owned(),
            headers: vec![("host".to_owned(), self.address.to_string())],
            body: Vec::new(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.request("GET", path).token(ADMIN).send().await
    }

    pub(crate) async fn post(&self, path: &str, body: &Json) -> TestResponse {
        self.request("POST", path)
            .token(ADMIN)
            .json(body)
            .send()
            .await
    }

    pub(crate) async fn submitted(&self, url: &str) -> FrontierId {
        let target = target(url);
        let id = target.id();
        let submission = Submission::new(target, Origin::Manual);
        self.store.submit(&[submission]).await.unwrap();
        id
    }

    /// Claims everything that is due and completes it with this outcome.
    pub(crate) async fn complete_all(&self, outcome: impl Fn(&str) -> Outcome) {
        loop {
            let mut request = ClaimRequest::new(1, 10);
            request.per_host = 10;
            let claimed = self.store.claim(&request).await.unwrap();
            if claimed.claims.is_empty() {
                match claimed.next_ready {
                    Some(wait) if wait < Duration::from_secs(1) => tokio::time::sleep(wait).await,
                    _ => return,
                }
                continue;
            }
            let completions: Vec<_> = claimed
                .claims
                .iter()
                .map(|claim| Completion::new(claim.lease_token, outcome(claim.url.as_str())))
                .collect();
            self.store.complete(&completions).await.unwrap();
        }
    }

    /// A URL that was fetched, with its document.
    pub(crate) async fn fetched(&self, url: &str, title: &str) -> FrontierId {
        let id = self.submitted(url).await;
        self.complete_all(|url| fetched(url, title)).await;
        id
    }

    /// A sink with one dead letter.
    pub(crate) async fn with_dead_letter(&self, sink: &str, reason: &str) {
        self.store.register_sink(sink, false).await.unwrap();
        let host: String = sink.chars().filter(char::is_ascii_alphanumeric).collect();
        self.fetched(&format!("https://dead-{host}.example/letter"), "Letter")
            .await;
        let deliveries = self
            .store
            .claim_deliveries(sink, 10, u64::MAX, Duration::from_secs(60))
            .await
            .unwrap();
        let verdicts: Vec<_> = deliveries
            .into_iter()
            .map(|delivery| {
                let reason = reason.to_owned();
                (delivery, DeliveryVerdict::Dead { reason })
            })
            .collect();
        self.store
            .complete_deliveries(sink, &verdicts)
            .await
            .unwrap();
    }
}

pub(crate) fn target(url: &str) -> Target {
    let url = FetchUrl::parse(url).unwrap();
    Target {
        key: url.canonical(&Rules::default()).key(),
        host: url.host_key(&ProxyHosts::default()),
        url,
    }
}

pub(crate) fn fetched(url: &str, title: &str) -> Outcome {
    let target = target(url);
    let document = Document {
        url: url.to_owned(),
        title: title.to_owned(),
        body_text: format!("The text of {title}.\n\nMore of it."),
        authors: vec![title.to_owned()],
        tags: vec![title.to_owned()],
        source_name: title.to_owned(),
        ..Document::default()
    };
    Outcome::Fetched {
        etag: None,
        last_modified: None,
        content_hash: None,
        document: Some(Box::new(NewDocument {
            key: target.key,
            source_id: 0,
            title: title.to_owned(),
            content_hash: None,
            sketch: tidings_extract::sketch(&document.body_text),
            body: serde_json::to_string(&document).unwrap(),
        })),
        again_in: None,
    }
}

/// A request that is built step by step.
pub(crate) struct TestRequest {
    address: SocketAddr,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl TestRequest {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn token(self, secret: &str) -> Self {
        self.header("authorization", &format!("Bearer {secret}"))
    }

    pub(crate) fn json(mut self, body: &Json) -> Self {
        self.body = body.to_string().into_bytes();
        self.header("content-type", "application/json")
    }

    pub(crate) fn body(mut self, kind: &str, body: &str) -> Self {
        self.body = body.as_bytes().to_vec();
        self.header("content-type", kind)
    }

    pub(crate) fn form(self, fields: &[(&str, &str)]) -> Self {
        let body = url_encoded(fields);
        self.body("application/x-www-form-urlencoded", &body)
    }

    async fn connect(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut head = format!(
            "{} {} HTTP/1.1\r\nconnection: close\r\n",
            self.method, self.path
        );
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("content-length: {}\r\n\r\n", self.body.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        // A server that rejects a long body may close before it has read it.
        let _ = stream.write_all(&self.body).await;
        stream
    }

    pub(crate) async fn send(self) -> TestResponse {
        let mut stream = self.connect().await;
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut bytes));
        let _ = read.await.expect("a response within a minute");
        TestResponse::parse(&bytes)
    }

    /// Reads until `enough` says so, for responses that do not end.
    pub(crate) async fn read_until(self, enough: impl Fn(&str) -> bool) -> TestResponse {
        let mut stream = self.connect().await;
        let mut bytes = Vec::new();
        let reading = async {
            let mut part = [0; 4096];
            loop {
                let n = stream.read(&mut part).await.unwrap();
                bytes.extend_from_slice(&part[..n]);
                if n == 0 || enough(&String::from_utf8_lossy(&bytes)) {
                    return;
                }
            }
        };
        let read = tokio::time::timeout(Duration::from_secs(20), reading).await;
        read.unwrap_or_else(|_| panic!("not enough: {}", String::from_utf8_lossy(&bytes)));
        TestResponse::parse(&bytes)
    }
}

pub(crate) fn url_encoded(fields: &[(&str, &str)]) -> String {
    let encode = |text: &str| -> String {
        text.bytes()
            .map(|byte| match byte.is_ascii_alphanumeric() {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02X}"),
            })
            .collect()
    };
    let pairs: Vec<_> = fields
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    pairs.join("&")
}

/// A received response.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
}

impl TestResponse {
    fn parse(bytes: &[u8]) -> Self {
        let all = String::from_utf8_lossy(bytes);
        let (head, text) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
        let mut lines = head.lines();
        let status = lines.next().unwrap_or_default().split(' ').nth(1);
        let headers = lines.filter_map(|line| line.split_once(": "));
        Self {
            status: status.and_then(|status| status.parse().ok()).unwrap_or(0),
            headers: headers
                .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
                .collect(),
            text: text.to_owned(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.text).unwrap_or_else(|_| json!({ "not json": self.text }))
    }

    /// The JSON of a response that must be successful.
    pub(crate) fn good(&self) -> Json {
        assert!(
            (200..300).contains(&self.status),
            "{} {}",
            self.status,
            self.text
        );
        self.json()
    }

    /// Asserts a problem that names this field.
    pub(crate) fn assert_problem(&self, status: u16, field: &str) {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        assert_eq!(problem["field"], field, "{problem}");
        assert_eq!(problem["request_id"], self.header("x-request-id"));
    }
}
