//! Idle connections, pooled for a short time for the next request
//! to the same server. Bounded over all servers: ten thousand hosts must not
//! hold ten thousand sockets.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use tidings_url::FetchUrl;

const MAX_IDLE: usize = 256;
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// An HTTP/1.1 connection is free a moment after its last byte.
const READY_TIMEOUT: Duration = Duration::from_millis(50);

pub(crate) enum Sender {
    H1(hyper::client::conn::http1::SendRequest<Full<Bytes>>),
    H2(hyper::client::conn::http2::SendRequest<Full<Bytes>>),
}

/// An open connection with a single user.
pub(crate) struct Connection {
    sender: Sender,
    pub(crate) peer: SocketAddr,
    /// It has carried a response before, so the server may have closed it.
    pub(crate) is_reused: bool,
}

impl Connection {
    pub(crate) fn new(sender: Sender, peer: SocketAddr) -> Self {
        Self {
            sender,
            peer,
            is_reused: false,
        }
    }

    pub(crate) fn is_h2(&self) -> bool {
        matches!(self.sender, Sender::H2(_))
    }

    pub(crate) async fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
    ) -> hyper::Result<http::Response<Incoming>> {
        match &mut self.sender {
            Sender::H1(sender) => sender.send_request(request).await,
            Sender::H2(sender) => sender.send_request(request).await,
        }
    }

    fn is_open(&self) -> bool {
        match &self.sender {
            Sender::H1(sender) => !sender.is_closed(),
            Sender::H2(sender) => !sender.is_closed(),
        }
    }

    /// Waits until it can carry another request; false when it never will.
    async fn ready(&mut self) -> bool {
        match &mut self.sender {
            Sender::H1(sender) => sender.ready().await.is_ok(),
            Sender::H2(sender) => sender.ready().await.is_ok(),
        }
    }
}

struct Idle {
    origin: String,
    connection: Connection,
    since: Instant,
}

/// The oldest first. So few that looking through them all is cheapest.
#[derive(Default)]
pub(crate) struct Pool(Mutex<VecDeque<Idle>>);

fn origin(url: &FetchUrl) -> String {
    url.as_url()[..url::Position::BeforePath].to_owned()
}

impl Pool {
    /// A connection to the server of this URL that seems to be open.
    pub(crate) fn acquire(&self, url: &FetchUrl) -> Option<Connection> {
        let origin = origin(url);
        let mut idle = self.lock();
        drop_old(&mut idle);
        loop {
            let at = idle.iter().rposition(|idle| idle.origin == origin)?;
            let found = idle.remove(at)?.connection;
            if found.is_open() {
                return Some(found);
            }
        }
    }

    /// Returns a connection whose last response was read to its end.
    pub(crate) async fn release(&self, url: &FetchUrl, mut connection: Connection) {
        let ready = tokio::time::timeout(READY_TIMEOUT, connection.ready()).await;
        if !ready.unwrap_or(false) {
            return;
        }
        connection.is_reused = true;
        let mut idle = self.lock();
        drop_old(&mut idle);
        if idle.len() == MAX_IDLE {
            idle.pop_front();
        }
        idle.push_back(Idle {
            origin: origin(url),
            connection,
            since: Instant::now(),
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Idle>> {
        // Connections are added and removed whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn drop_old(idle: &mut VecDeque<Idle>) {
    while idle
        .front()
        .is_some_and(|idle| idle.since.elapsed() > IDLE_TIMEOUT)
    {
        idle.pop_front();
    }
}
