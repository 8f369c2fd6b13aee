//! A name server for tests: answers, lies and silence as a script says, over UDP
//! and TCP. Knows just enough of RFC 1035 for that.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;

/// How a name server answers for a name.
#[derive(Debug, Clone)]
pub enum DnsAnswer {
    /// These addresses, with a time to live of zero.
    Addresses(Vec<IpAddr>),
    /// Another name.
    Alias(String),
    NoSuchName,
    ServerFailure,
    /// Nothing for this long; then the addresses.
    Overdue(Duration, Vec<IpAddr>),
}

type Script = dyn Fn(&str, usize) -> DnsAnswer + Send + Sync;

/// A running name server on a loopback address; it ends when it is dropped.
#[derive(Debug)]
pub struct DnsServer {
    address: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

struct Shared {
    script: Box<Script>,
    /// How often each name and type was queried.
    queries: Mutex<HashMap<(String, u16), usize>>,
}

const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;
const TYPE_AAAA: u16 = 28;

/// What fits into a datagram without extensions.
const DATAGRAM: usize = 512;

impl DnsServer {
    /// The script gets the name in lower case and how often it (with its type) was
    /// queried, from 1.
    pub async fn start(
        script: impl Fn(&str, usize) -> DnsAnswer + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let (udp, tcp) = bind_both().await?;
        let address = udp.local_addr()?;
        let shared = Arc::new(Shared {
            script: Box::new(script),
            queries: Mutex::default(),
        });
        let tasks = [
            tokio::spawn(serve_udp(Arc::new(udp), Arc::clone(&shared))),
            tokio::spawn(serve_tcp(tcp, shared)),
        ];
        Ok(Self { address, tasks })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// One port for UDP and TCP. A port that is free for one may be taken for the
/// other, so a few are tried.
async fn bind_both() -> io::Result<(UdpSocket, TcpListener)> {
    let mut taken = io::Error::other("no port is free for both UDP and TCP");
    for _ in 0..20 {
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        match TcpListener::bind(udp.local_addr()?).await {
            Ok(tcp) => return Ok((udp, tcp)),
            Err(error) => taken = error,
        }
    }
    Err(taken)
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn serve_udp(socket: Arc<UdpSocket>, shared: Arc<Shared>) {
    let mut buffer = [0; 1500];
    while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
        let question = buffer[..length].to_vec();
        let (socket, shared) = (Arc::clone(&socket), Arc::clone(&shared));
        tokio::spawn(async move {
            if let Some(mut answer) = shared.answer(&question).await {
                if answer.len() > DATAGRAM {
                    truncate(&mut answer);
                }
                let _ = socket.send_to(&answer, client).await;
            }
        });
    }
}

/// Only the question, marked as truncated: the client retries over TCP.
fn truncate(answer: &mut Vec<u8>) {
    let end = parse(answer).map_or(12, |(_, _, end)| end);
    answer.truncate(end);
    answer[2] |= 0x02;
    answer[6..8].fill(0);
}

async fn serve_tcp(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // A client that goes away in the middle is no error here.
            let _ = serve_stream(stream, &shared).await;
        });
    }
}

async fn serve_stream(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    loop {
        let length = stream.read_u16().await?;
        let mut question = vec![0; usize::from(length)];
        stream.read_exact(&mut question).await?;
        if let Some(answer) = shared.answer(&question).await {
            stream.write_u16(answer.len() as u16).await?;
            stream.write_all(&answer).await?;
        }
    }
}

impl Shared {
    async fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let (name, kind, end) = parse(question)?;
        let nth = {
            let mut queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
            let count = queries.entry((name.clone(), kind)).or_insert(0);
            *count += 1;
            *count
        };
        let mut code = 0;
        let mut records: Vec<(u16, Vec<u8>)> = Vec::new();
        match (self.script)(&name, nth) {
            DnsAnswer::Addresses(addresses) => records = of_kind(kind, &addresses),
            DnsAnswer::Overdue(wait, addresses) => {
                tokio::time::sleep(wait).await;
                records = of_kind(kind, &addresses);
            }
            DnsAnswer::Alias(other) => records = vec![(TYPE_CNAME, labels(&other))],
            DnsAnswer::NoSuchName => code = 3,
            DnsAnswer::ServerFailure => code = 2,
        }
        let mut answer = question[..2].to_vec();
        answer.extend_from_slice(&[0x81, 0x80 | code, 0, 1]);
        answer.extend_from_slice(&(records.len() as u16).to_be_bytes());
        answer.extend_from_slice(&[0, 0, 0, 0]);
        answer.extend_from_slice(&question[12..end]);
        for (kind, data) in records {
            // The name of the question, by its place in the message.
            answer.extend_from_slice(&[0xc0, 0x0c]);
            answer.extend_from_slice(&kind.to_be_bytes());
            answer.extend_from_slice(&[0, 1, 0, 0, 0, 0]);
            answer.extend_from_slice(&(data.len() as u16).to_be_bytes());
            answer.extend_from_slice(&data);
        }
        Some(answer)
    }
}

fn of_kind(kind: u16, addresses: &[IpAddr]) -> Vec<(u16, Vec<u8>)> {
    let record = |address: &IpAddr| match address {
        IpAddr::V4(ip) if kind == TYPE_A => Some((TYPE_A, ip.octets().to_vec())),
        IpAddr::V6(ip) if kind == TYPE_AAAA => Some((TYPE_AAAA, ip.octets().to_vec())),
        _ => None,
    };
    addresses.iter().filter_map(record).collect()
}

fn labels(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(label.len() as u8);
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

/// The name and type of the question, and where it ends.
fn parse(question: &[u8]) -> Option<(String, u16, usize)> {
    let mut at = 12;
    let mut name = Vec::new();
    loop {
        let length = usize::from(*question.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        name.push(String::from_utf8_lossy(question.get(at..at + length)?).to_lowercase());
        at += length;
    }
    let kind = question.get(at..at + 2)?;
    let kind = u16::from_be_bytes([kind[0], kind[1]]);
    Some((name.join("."), kind, at + 4))
}
