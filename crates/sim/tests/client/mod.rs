//! The plainest HTTP client: it shows what is on the wire, also when that is
//! broken. Tests of the simulated web use it; nothing else should.

use std::io::Read as _;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What came back before the connection ended.
#[derive(Debug, Default)]
pub(crate) struct Response {
    /// 0 without a response.
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) was_reset: bool,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// The body as text, gunzipped when it is a gzip file.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if self.body.starts_with(&[0x1f, 0x8b]) {
            flate2::read::GzDecoder::new(&self.body[..])
                .read_to_string(&mut text)
                .unwrap();
        } else {
            text = String::from_utf8_lossy(&self.body).into_owned();
        }
        text
    }
}

pub(crate) async fn get(address: SocketAddr, host: &str, path: &str) -> Response {
    get_with(address, host, path, &[]).await
}

pub(crate) async fn get_with(
    address: SocketAddr,
    host: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Response {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let was_reset = stream.read_to_end(&mut bytes).await.is_err();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(end) = end else {
        return Response {
            was_reset,
            ..Response::default()
        };
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or(0);
    Response {
        status,
        head,
        body: bytes[end + 4..].to_vec(),
        was_reset,
    }
}
