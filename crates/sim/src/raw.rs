//! A server that sends exactly what its script says, byte for byte, then closes:
//! for peers that are worse than any fault of the simulated sites. Also a canary:
//! it counts connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

/// One thing to do on a connection.
#[derive(Debug, Clone)]
pub enum Act {
    Send(Vec<u8>),
    /// The same bytes N times.
    Repeat(Vec<u8>, usize),
    /// Byte for byte, with a pause before each.
    Drip(Vec<u8>, Duration),
    Wait(Duration),
    /// Reset instead of close.
    Reset,
}

impl Act {
    /// A response with these headers and this body.
    pub fn answer(head: &str, body: &[u8]) -> Vec<Self> {
        let head = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len());
        vec![Self::Send([head.as_bytes(), body].concat())]
    }
}

type Script = dyn Fn(&str) -> Vec<Act> + Send + Sync;

/// A running server; it ends when it is dropped.
#[derive(Debug)]
pub struct RawServer {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl RawServer {
    /// Serves on a loopback address. The script sees the head of each request
    /// (or what came of it) and says what to do; then the connection is closed.
    pub async fn start(
        bind: SocketAddr,
        script: impl Fn(&str) -> Vec<Act> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        if !bind.ip().is_loopback() {
            return Err(io::Error::other(
                "a raw server serves loopback addresses only",
            ));
        }
        let listener = TcpListener::bind(bind).await?;
        let address = listener.local_addr()?;
        let connections = Arc::new(AtomicUsize::new(0));
        let accepting = tokio::spawn(accept(listener, Arc::new(script), Arc::clone(&connections)));
        Ok(Self {
            address,
            connections,
            accepting,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections were made so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, script: Arc<Script>, connections: Arc<AtomicUsize>) {
    let mut running = JoinSet::new();
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            connections.fetch_add(1, Ordering::SeqCst);
            running.spawn(serve(stream, Arc::clone(&script)));
        }
        while running.try_join_next().is_some() {}
    }
}

async fn serve(mut stream: TcpStream, script: Arc<Script>) {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(n @ 1..) => head.extend_from_slice(&buffer[..n]),
            // Gone, or not speaking HTTP: the script sees what there is.
            _ => break,
        }
    }
    let acts = script(&String::from_utf8_lossy(&head));
    for act in &acts {
        // The client closed; that is what it is tested for.
        if perform(&mut stream, act).await.is_err() {
            return;
        }
    }
    let _ = stream.shutdown().await;
}

async fn perform(stream: &mut TcpStream, act: &Act) -> io::Result<()> {
    match act {
        Act::Send(bytes) => stream.write_all(bytes).await,
        Act::Repeat(bytes, times) => {
            for _ in 0..*times {
                stream.write_all(bytes).await?;
            }
            Ok(())
        }
        Act::Drip(bytes, pause) => {
            for byte in bytes {
                sleep(*pause).await;
                stream.write_all(&[*byte]).await?;
            }
            Ok(())
        }
        Act::Wait(time) => {
            sleep(*time).await;
            Ok(())
        }
        Act::Reset => stream.set_zero_linger(),
    }
}
