//! The listener: one loopback port for all sites, which `Host` distinguishes. Counts
//! and logs every request. Ends when the [`SimServer`] is dropped.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;
use tracing::debug;

use crate::clock::SimClock;
use crate::index_page;
use crate::ledger::Ledger;
use crate::log::{RequestLog, RequestRecord};
use crate::respond::respond;
use crate::shared::Shared;
use crate::site::Site;
use crate::wire::{Connection, Request, Response};
use crate::world::World;
use crate::world_config::WorldConfig;

/// A running simulated web.
#[derive(Debug)]
pub struct SimServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl SimServer {
    /// Starts to serve. Port 0 takes any free port.
    pub async fn start(
        config: WorldConfig,
        clock: SimClock,
        bind: impl ToSocketAddrs,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(bind).await?;
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            return Err(io::Error::other(
                "the simulated web serves loopback addresses only",
            ));
        }
        let shared = Arc::new(Shared::new(World::new(config, address.port()), clock));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            shared,
            address,
            accepting,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn world(&self) -> &World {
        &self.shared.world
    }

    pub fn clock(&self) -> &SimClock {
        &self.shared.clock
    }

    pub fn log(&self) -> &RequestLog {
        &self.shared.log
    }

    /// What has been published up to now.
    pub fn ledger(&self) -> Ledger<'_> {
        Ledger::new(&self.shared.world, self.shared.clock.now())
    }
}

impl Drop for SimServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with this task, and all connections with it.
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
            Err(error) => {
                // Usually too many open files: the clients must close some first.
                debug!(%error, "accept failed");
                sleep(Duration::from_millis(50)).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Responses are small: without Nagle's delay; failing to set it only costs time.
    let _ = stream.set_nodelay(true);
    let mut connection = Connection::new(stream);
    loop {
        match connection.read_request().await {
            Ok(Some(request)) => match serve_request(&mut connection, &request, &shared).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return debug!(%error, path = request.path, "client went away"),
            },
            Ok(None) => return,
            Err(error) => return debug!(%error, "unreadable request"),
        }
    }
}

async fn serve_request(
    connection: &mut Connection,
    request: &Request,
    shared: &Shared,
) -> io::Result<bool> {
    let start = shared.log.now();
    let Some(site) = shared.world.site_named(&request.host) else {
        return connection
            .send(request, &index_page::respond(shared, request))
            .await;
    };
    let nth = shared.count(&site, &request.path);
    let response = respond(&site, request, nth, shared.clock.now());
    if !response.delay.is_zero() {
        sleep(response.delay).await;
    }
    // A healthy response ends, for its client, with its last byte: it is logged
    // before that, or a client that sends its next request immediately would
    // look like a politeness violation.
    if response.fault.is_none() {
        shared
            .log
            .push(record(&site, request, &response, start, shared.log.now()));
        return connection.send(request, &response).await;
    }
    let sent = connection.send(request, &response).await;
    shared
        .log
        .push(record(&site, request, &response, start, shared.log.now()));
    sent
}

fn record(
    site: &Site,
    request: &Request,
    response: &Response,
    start: Duration,
    end: Duration,
) -> RequestRecord {
    RequestRecord {
        host: site.host.clone(),
        method: request.method.clone(),
        path: request.path.clone(),
        status: response.status,
        start,
        end,
        bytes: response.body.len() as u64,
        fault: response.fault.clone(),
    }
}
