//! The connections of the server: accepts them, bounds their number and the time until
//! a whole header has arrived, serves their requests, and ends them with the server.
//! At the bound the oldest one gives way that serves no request with a valid token, so
//! that nobody can keep others out by holding connections open.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

/// The most that a connection holds of what it has not handled yet.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// After a failed accept: file descriptors may be free again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// What all connections have in common.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionOptions {
    pub(crate) max: usize,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    /// From the start of a connection, or the end of a response, to the end of the
    /// next header: idle connections end by it too.
    pub(crate) header_timeout: Duration,
}

/// One connection, as its requests know it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) peer: SocketAddr,
    pub(crate) is_tls: bool,
    /// Since when it may be closed for others; `None`: not now.
    closable_since: Mutex<Option<Instant>>,
}

impl Connection {
    fn new(peer: SocketAddr, is_tls: bool) -> Self {
        Self {
            peer,
            is_tls,
            closable_since: Mutex::new(Some(Instant::now())),
        }
    }

    /// The request in progress has a valid token: others do not end it.
    pub(crate) fn protect(&self) {
        self.set_closable_since(None);
    }

    fn closable_since(&self) -> Option<Instant> {
        let since = self.closable_since.lock();
        *since.unwrap_or_else(PoisonError::into_inner)
    }

    fn set_closable_since(&self, value: Option<Instant>) {
        let since = self.closable_since.lock();
        *since.unwrap_or_else(PoisonError::into_inner) = value;
    }
}

/// The connections that are open, by their tasks.
#[derive(Debug, Default)]
struct OpenConnections(HashMap<Id, (AbortHandle, Arc<Connection>)>);

impl OpenConnections {
    /// Closes the one that may be closed for the longest time, if there is one.
    fn close_oldest(&mut self) -> bool {
        let closable = self.0.iter().filter_map(|(id, (_, connection))| {
            let since = connection.closable_since()?;
            Some((since, *id))
        });
        let Some((_, id)) = closable.min_by_key(|(since, _)| *since) else {
            return false;
        };
        if let Some((task, _)) = self.0.remove(&id) {
            task.abort();
        }
        true
    }

    fn ended(&mut self, task: Result<(Id, ()), JoinError>) {
        let id = match &task {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        self.0.remove(&id);
    }
}

/// Serves until `ending` is set, and then until every connection has ended.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    options: ConnectionOptions,
    ending: watch::Receiver<bool>,
) {
    let (mut open, mut tasks) = (OpenConnections::default(), JoinSet::new());
    let mut end = pin!(wait_for_end(ending.clone()));
    loop {
        let accepted = tokio::select! {
            () = &mut end => break,
            Some(task) = tasks.join_next_with_id() => {
                open.ended(task);
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if open.0.len() >= options.max && !open.close_oldest() {
            debug!(%peer, max = options.max, "connection refused: all others are in use");
            continue;
        }
        let connection = Arc::new(Connection::new(peer, options.tls.is_some()));
        let task = tasks.spawn(serve_connection(
            stream,
            Arc::clone(&connection),
            router.clone(),
            options.clone(),
            ending.clone(),
        ));
        open.0.insert(task.id(), (task, connection));
    }
    drop(listener);
    while tasks.join_next().await.is_some() {}
}

async fn serve_connection(
    stream: TcpStream,
    connection: Arc<Connection>,
    router: Router,
    options: ConnectionOptions,
    ending: watch::Receiver<bool>,
) {
    let Some(tls) = &options.tls else {
        return serve_http(stream, connection, router, &options, ending).await;
    };
    let handshake = TlsAcceptor::from(Arc::clone(tls)).accept(stream);
    match tokio::time::timeout(options.header_timeout, handshake).await {
        Ok(Ok(stream)) => serve_http(stream, connection, router, &options, ending).await,
        Ok(Err(error)) => debug!(peer = %connection.peer, %error, "TLS handshake failed"),
        Err(_) => debug!(peer = %connection.peer, "TLS handshake timed out"),
    }
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: Arc<Connection>,
    router: Router,
    options: &ConnectionOptions,
    ending: watch::Receiver<bool>,
) {
    let peer = connection.peer;
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let in_progress = InProgress(Arc::clone(&connection));
        request.extensions_mut().insert(Arc::clone(&connection));
        let response = router.call(request);
        async move {
            let response: Response = response.await?;
            Ok::<_, Infallible>(response.map(|body| ResponseBody {
                body,
                _in_progress: in_progress,
            }))
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = wait_for_end(ending) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        debug!(%peer, %error, "connection ended");
    }
}

async fn wait_for_end(mut ending: watch::Receiver<bool>) {
    // A dropped sender means the same.
    let _ = ending.wait_for(|end| *end).await;
}

/// A request from its header to the end of its response.
#[derive(Debug)]
struct InProgress(Arc<Connection>);

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.set_closable_since(Some(Instant::now()));
    }
}

/// The body of a response, whose end is the end of the request.
#[derive(Debug)]
struct ResponseBody {
    body: Body,
    _in_progress: InProgress,
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
