//! A cable that can be cut: takes connections on a loopback port (or a socket in
//! a folder) and carries them to a server's socket in a folder, or holds every
//! byte back, or breaks what is open. Never reads what it carries.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, ToSocketAddrs, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// How a cable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayMode {
    Whole,
    /// Connections are taken, and not one byte passes in any direction.
    Silent,
    /// What is open breaks, and nothing new is carried.
    Broken,
}

/// A running relay; it ends when it is dropped.
#[derive(Debug)]
pub struct TcpRelay {
    address: SocketAddr,
    mood: watch::Sender<RelayMode>,
    accepting: JoinHandle<()>,
}

impl TcpRelay {
    /// Carries whatever comes to `bind` to the socket at `to`.
    pub async fn start(bind: impl ToSocketAddrs, to: &Path) -> io::Result<Self> {
        let listener = TcpListener::bind(bind).await?;
        let address = listener.local_addr()?;
        let (mood, moods) = watch::channel(RelayMode::Whole);
        let accepting = tokio::spawn(accept(listener, Arc::from(to), moods));
        Ok(Self {
            address,
            mood,
            accepting,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn set(&self, mood: RelayMode) {
        self.mood.send_replace(mood);
    }
}

impl Drop for TcpRelay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, to: Arc<Path>, moods: watch::Receiver<RelayMode>) {
    let mut carried = JoinSet::new();
    loop {
        if let Ok((from, _)) = listener.accept().await {
            let (to, moods) = (PathBuf::from(&*to), moods.clone());
            carried.spawn(async move {
                // Both ends notice by themselves that it is over.
                let _ = carry(from, &to, moods).await;
            });
        }
        while carried.try_join_next().is_some() {}
    }
}

async fn carry(
    from: tokio::net::TcpStream,
    to: &Path,
    mut moods: watch::Receiver<RelayMode>,
) -> io::Result<()> {
    whole(&mut moods).await?;
    let _ = from.set_nodelay(true);
    let (from_read, from_write) = from.into_split();
    let (to_read, to_write) = UnixStream::connect(to).await?.into_split();
    let broken = async {
        let mut moods = moods.clone();
        // A relay that is gone breaks nothing: this task goes with it.
        let _ = moods.wait_for(|mood| *mood == RelayMode::Broken).await;
    };
    tokio::select! {
        ended = pass(from_read, to_write, moods.clone()) => ended,
        ended = pass(to_read, from_write, moods.clone()) => ended,
        () = broken => Ok(()),
    }
}

async fn whole(moods: &mut watch::Receiver<RelayMode>) -> io::Result<()> {
    let mood = *moods
        .wait_for(|mood| *mood != RelayMode::Silent)
        .await
        .map_err(io::Error::other)?;
    match mood {
        RelayMode::Broken => Err(io::ErrorKind::BrokenPipe.into()),
        _ => Ok(()),
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut moods: watch::Receiver<RelayMode>,
) -> io::Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut bytes).await?;
        if read == 0 {
            return Ok(());
        }
        whole(&mut moods).await?;
        to.write_all(&bytes[..read]).await?;
    }
}
