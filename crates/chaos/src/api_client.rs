//! A client of the API of a server under test: posts, and returns status and body.

use std::time::Duration;

use anyhow::Context as _;
use tidings_net::Client;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::loopback;

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct ApiClient {
    client: Client,
    host: String,
    port: u16,
    token: String,
}

impl ApiClient {
    /// For a server at an address like `http://127.0.0.1:8500/`.
    pub(crate) fn new(address: &str, token: &str) -> anyhow::Result<Self> {
        let address = url::Url::parse(address)?;
        Ok(Self {
            client: loopback::client()?,
            host: address.host_str().context("a host")?.to_owned(),
            port: address.port().context("a port")?,
            token: token.to_owned(),
        })
    }

    /// Posts JSON lines; an error without a response in time.
    pub(crate) async fn post(
        &self,
        path: &str,
        key: &str,
        body: &str,
    ) -> anyhow::Result<(u16, String)> {
        let exchange = self.exchange(path, key, body);
        tokio::time::timeout(RESPONSE_TIMEOUT, exchange).await?
    }

    async fn exchange(&self, path: &str, key: &str, body: &str) -> anyhow::Result<(u16, String)> {
        let mut connection = self.client.connect(&self.host, self.port).await?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}:{}\r\nauthorization: Bearer {}\r\nidempotency-key: {key}\r\nconnection: close\r\ncontent-type: application/x-ndjson\r\ncontent-length: {}\r\n\r\n",
            self.host,
            self.port,
            self.token,
            body.len()
        );
        connection.write_all(head.as_bytes()).await?;
        connection.write_all(body.as_bytes()).await?;
        let mut response = Vec::new();
        connection.read_to_end(&mut response).await?;
        let response = String::from_utf8_lossy(&response).into_owned();
        let status = response
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Ok((status.context("no response")?, response))
    }
}

/// `count` URLs as JSON lines, numbered from `from`.
pub(crate) fn lines(from: usize, count: usize) -> String {
    let line = |n: usize| {
        format!(
            "{{\"url\":\"https://bulk{}.example/story-{n}\"}}\n",
            n % 500
        )
    };
    (from..from + count).map(line).collect()
}
