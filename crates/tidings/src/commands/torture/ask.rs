//! One request to a server of a scenario, and its status and body.

use std::time::Duration;

use anyhow::Context as _;
use tidings_net::Client;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::loopback;

pub(super) struct AdapterHttp {
    client: Client,
    host: String,
    port: u16,
    token: String,
}

impl AdapterHttp {
    /// Of a server at an address like `http://127.0.0.1:8500/`.
    pub(super) fn new(address: &str, token: &str) -> anyhow::Result<Self> {
        let address = url::Url::parse(address)?;
        Ok(Self {
            client: loopback::client()?,
            host: address.host_str().context("a host")?.to_owned(),
            port: address.port().context("a port")?,
            token: token.to_owned(),
        })
    }

    /// Posts JSON lines; an error when nobody answers in time.
    pub(super) async fn post(
        &self,
        path: &str,
        key: &str,
        body: &str,
    ) -> anyhow::Result<(u16, String)> {
        let asking = self.exchange(path, key, body);
        tokio::time::timeout(Duration::from_secs(60), asking).await?
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
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).await?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Ok((status.context("no answer")?, answer))
    }
}

/// So many URLs as JSON lines, from a number on.
pub(super) fn lines(from: usize, count: usize) -> String {
    let line = |n: usize| {
        format!(
            "{{\"url\":\"https://bulk{}.example/story-{n}\"}}\n",
            n % 500
        )
    };
    (from..from + count).map(line).collect()
}
