//! Connections through a proxy, SOCKS5 or HTTP CONNECT. A proxy gets an address
//! that the egress guard has checked, never a name, so it can't be led elsewhere.
//! Errors before the login is accepted are the proxy's, later ones the target's.
//!
//! Written by hand: tokio-socks, fast-socks5, async-http-proxy and hyper-util's
//! proxies were read and left out, because they lose bytes that arrive early, can't
//! tell a failing proxy from a failing target, or put user names into errors.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use base64::Engine as _;
use tidings_text::hex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

/// How long a proxy may take to accept a connection and a login.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest response to a CONNECT.
const MAX_HEAD_BYTES: usize = 8 * 1024;

/// A proxy, as `socks5://user:password@host:port` or `http://…` names it.
#[derive(Clone)]
pub struct Proxy {
    kind: Kind,
    host: String,
    port: u16,
    login: Option<Login>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Socks5,
    Http,
}

#[derive(Clone)]
struct Login {
    user: String,
    password: String,
}

/// Why there is no connection through the proxy.
#[derive(Debug)]
pub(crate) enum ProxyError {
    /// The proxy is unreachable, or refuses the login.
    Proxy(io::Error),
    /// The proxy has not responded yet, and the time limit was short.
    OutOfTime,
    /// The proxy can't reach the target.
    Target(io::Error),
}

impl Proxy {
    /// Reads an address; the error never repeats it, as it may hold a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = "socks5://user:password@host:port or http://host:port is expected";
        let url = Url::parse(text.trim()).map_err(|_| form.to_owned())?;
        let (kind, default_port) = match url.scheme() {
            "socks5" | "socks5h" => (Kind::Socks5, 1080),
            "http" => (Kind::Http, 80),
            _ => return Err(form.to_owned()),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(form)?;
        let parts = [url.username(), url.password().unwrap_or_default()].map(unescaped);
        let login = match parts {
            [Some(user), Some(password)] if user.is_empty() && password.is_empty() => None,
            [Some(user), Some(password)] if user.len() < 256 && password.len() < 256 => {
                Some(Login { user, password })
            }
            _ => return Err("user and password can't be sent".to_owned()),
        };
        Ok(Self {
            kind,
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port().unwrap_or(default_port),
            login,
        })
    }

    /// Whether it is reachable and accepts the login, as far as it says so before a
    /// CONNECT.
    pub async fn probe(&self) -> io::Result<()> {
        let opened = timeout(OPEN_TIMEOUT, self.open()).await;
        opened.unwrap_or_else(|_| Err(no_response())).map(drop)
    }

    /// Distinguishes it from others, its user included; not to be shown.
    pub(crate) fn identity(&self) -> String {
        let user = self.login.as_ref().map_or("", |login| login.user.as_str());
        format!("{self} {user}")
    }

    /// A connection to an address. A proxy that does not respond leaves half of the
    /// time limit to another.
    pub(crate) async fn connect(
        &self,
        to: SocketAddr,
        limit: Duration,
    ) -> Result<TcpStream, ProxyError> {
        let open_timeout = OPEN_TIMEOUT.min(limit / 2);
        let stream = match timeout(open_timeout, self.open()).await {
            Ok(opened) => opened.map_err(ProxyError::Proxy)?,
            Err(_) if open_timeout == OPEN_TIMEOUT => return Err(ProxyError::Proxy(no_response())),
            Err(_) => return Err(ProxyError::OutOfTime),
        };
        self.tunnel(stream, to).await
    }

    /// A connection to the proxy, logged in.
    async fn open(&self) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        if self.kind == Kind::Socks5 {
            self.log_in(&mut stream).await?;
        }
        Ok(stream)
    }

    /// Connects an open connection to its target.
    async fn tunnel(&self, mut stream: TcpStream, to: SocketAddr) -> Result<TcpStream, ProxyError> {
        match self.kind {
            Kind::Socks5 => socks5_connect(&mut stream, to)
                .await
                .map_err(ProxyError::Target)?,
            Kind::Http => self.http_connect(&mut stream, to).await?,
        }
        Ok(stream)
    }

    /// RFC 1928, and RFC 1929 for the login.
    async fn log_in(&self, stream: &mut TcpStream) -> io::Result<()> {
        let methods: &[u8] = match self.login {
            Some(_) => &[5, 2, 0, 2],
            None => &[5, 1, 0],
        };
        stream.write_all(methods).await?;
        let mut chosen = [0; 2];
        stream.read_exact(&mut chosen).await?;
        match (chosen, &self.login) {
            ([5, 0], _) => Ok(()),
            ([5, 2], Some(login)) => {
                let mut message = vec![1];
                for part in [&login.user, &login.password] {
                    // Both are shorter than 256 bytes.
                    message.push(part.len() as u8);
                    message.extend(part.as_bytes());
                }
                stream.write_all(&message).await?;
                let mut reply = [0; 2];
                stream.read_exact(&mut reply).await?;
                match reply[1] {
                    0 => Ok(()),
                    _ => Err(io::Error::other("the proxy refuses this user and password")),
                }
            }
            ([5, _], _) => Err(io::Error::other("the proxy requires another login method")),
            _ => Err(io::Error::other("the proxy does not speak SOCKS5")),
        }
    }

    async fn http_connect(&self, stream: &mut TcpStream, to: SocketAddr) -> Result<(), ProxyError> {
        let mut request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n");
        if let Some(Login { user, password }) = &self.login {
            let pair =
                base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
            request.push_str(&format!("Proxy-Authorization: Basic {pair}\r\n"));
        }
        request.push_str("\r\n");
        let written = stream.write_all(request.as_bytes()).await;
        written.map_err(ProxyError::Target)?;
        let head = read_head(stream).await.map_err(ProxyError::Target)?;
        let status = head
            .strip_prefix("HTTP/1.")
            .and_then(|rest| rest.split(' ').nth(1));
        let refused = |status: &str| io::Error::other(format!("the proxy responds with {status}"));
        match status {
            Some(status) if status.starts_with('2') => Ok(()),
            Some("407") => Err(ProxyError::Proxy(io::Error::other(
                "the proxy refuses this user and password",
            ))),
            Some(status) => Err(ProxyError::Target(refused(status))),
            None => Err(ProxyError::Proxy(io::Error::other(
                "the proxy does not speak HTTP",
            ))),
        }
    }
}

fn no_response() -> io::Error {
    io::Error::other("the proxy does not respond")
}

async fn socks5_connect(stream: &mut TcpStream, to: SocketAddr) -> io::Result<()> {
    let mut request = vec![5, 1, 0];
    match to.ip() {
        IpAddr::V4(ip) => {
            request.push(1);
            request.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            request.push(4);
            request.extend(ip.octets());
        }
    }
    request.extend(to.port().to_be_bytes());
    stream.write_all(&request).await?;
    let why = match socks5_reply(stream).await? {
        0 => return Ok(()),
        2 => "the proxy may not connect to it",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "too many hops away",
        _ => "the proxy can't connect to it",
    };
    Err(io::Error::other(why))
}

/// The code of a reply; the address that follows is read and discarded.
async fn socks5_reply(stream: &mut TcpStream) -> io::Result<u8> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let rest = match (head[1], head[3]) {
        (0, 1) => 4,
        (0, 4) => 16,
        (0, 3) => usize::from(stream.read_u8().await?),
        (0, _) => return Err(io::Error::other("the proxy does not speak SOCKS5")),
        // Of a refusal the rest does not matter.
        (code, _) => return Ok(code),
    };
    let mut bound = vec![0; rest + 2];
    stream.read_exact(&mut bound).await?;
    Ok(head[1])
}

/// Byte for byte: what follows the head is the server's.
async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MAX_HEAD_BYTES {
            return Err(io::Error::other("the response of the proxy is too long"));
        }
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// `%41` is `A`; none when that is no text.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                bytes.push(hex::byte(*high, *low)?);
                rest = after;
            }
            _ => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).ok()
}

/// As it may be shown: without user and password.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.kind {
            Kind::Socks5 => "socks5",
            Kind::Http => "http",
        };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy {self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown_without_their_secret() {
        let rows = [
            ("socks5://10.0.0.1", "socks5://10.0.0.1:1080", None),
            (" http://p.example:3128/\n", "http://p.example:3128", None),
            (
                "socks5h://me:s%40crct@p.example:9",
                "socks5://p.example:9",
                Some("s@crct"),
            ),
            (
                "http://[2001:db8::1]:8080",
                "http://[2001:db8::1]:8080",
                None,
            ),
        ];
        for (text, shown, password) in rows {
            let proxy = Proxy::parse(text).unwrap();
            assert_eq!(proxy.to_string(), shown);
            assert_eq!(proxy.login.map(|login| login.password).as_deref(), password);
        }
        let long = format!("socks5://{}@p.example", "x".repeat(300));
        for wrong in ["", "p.example:3128", "ftp://p.example", "http://", &long] {
            assert!(Proxy::parse(wrong).is_err(), "{wrong}");
        }
    }
}
