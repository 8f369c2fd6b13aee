//! A TCP relay that can fail: accepts connections on a loopback port and forwards
//! them to a server's Unix socket, or holds every byte back, or closes what is
//! open. Never parses what it forwards.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, ToSocketAddrs, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// How a relay behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayMode {
    Whole,
    /// Connections are accepted, and no byte passes in any direction.
    Silent,
    /// Open connections are closed, and new ones too.
    Broken,
}

/// A running relay; it ends when it is dropped.
#[derive(Debug)]
pub struct TcpRelay {
    address: SocketAddr,
    mode: watch::Sender<RelayMode>,
    accepting: JoinHandle<()>,
}

impl TcpRelay {
    /// Forwards connections at `bind` to the socket at `to`.
    pub async fn start(bind: impl ToSocketAddrs, to: &Path) -> io::Result<Self> {
        let listener = TcpListener::bind(bind).await?;
        let address = listener.local_addr()?;
        let (mode, modes) = watch::channel(RelayMode::Whole);
        let accepting = tokio::spawn(accept(listener, Arc::from(to), modes));
        Ok(Self {
            address,
            mode,
            accepting,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn set(&self, mode: RelayMode) {
        self.mode.send_replace(mode);
    }
}

impl Drop for TcpRelay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, to: Arc<Path>, modes: watch::Receiver<RelayMode>) {
    let mut connections = JoinSet::new();
    loop {
        if let Ok((from, _)) = listener.accept().await {
            let (to, modes) = (PathBuf::from(&*to), modes.clone());
            connections.spawn(async move {
                // Both ends notice by themselves that it is over.
                let _ = forward(from, &to, modes).await;
            });
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn forward(
    from: tokio::net::TcpStream,
    to: &Path,
    mut modes: watch::Receiver<RelayMode>,
) -> io::Result<()> {
    wait_for_whole(&mut modes).await?;
    let _ = from.set_nodelay(true);
    let (from_read, from_write) = from.into_split();
    let (to_read, to_write) = UnixStream::connect(to).await?.into_split();
    let broken = async {
        let mut modes = modes.clone();
        // A relay that is gone breaks nothing: this task goes with it.
        let _ = modes.wait_for(|mode| *mode == RelayMode::Broken).await;
    };
    tokio::select! {
        ended = copy(from_read, to_write, modes.clone()) => ended,
        ended = copy(to_read, from_write, modes.clone()) => ended,
        () = broken => Ok(()),
    }
}

async fn wait_for_whole(modes: &mut watch::Receiver<RelayMode>) -> io::Result<()> {
    let mode = *modes
        .wait_for(|mode| *mode != RelayMode::Silent)
        .await
        .map_err(io::Error::other)?;
    match mode {
        RelayMode::Broken => Err(io::ErrorKind::BrokenPipe.into()),
        _ => Ok(()),
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut modes: watch::Receiver<RelayMode>,
) -> io::Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut bytes).await?;
        if read == 0 {
            return Ok(());
        }
        wait_for_whole(&mut modes).await?;
        to.write_all(&bytes[..read]).await?;
    }
}
