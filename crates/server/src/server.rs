//! The listener: binds, reports its address, serves until it is stopped. Never
//! reachable without a token: the first start creates one, which the caller prints.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, on};
use axum::{Extension, Router};
use rustls::ServerConfig;
use thiserror::Error;
use tidings_net::Client;
use tidings_store::{Role, Store, StoreError};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::access::new_secret;
use crate::app::App;
use crate::connections::{Connection, ConnectionOptions};
use crate::openapi::openapi;
use crate::options::ServerOptions;
use crate::route::Method;
use crate::tls::{TlsError, TlsFiles};
use crate::{connections, event_tail, history, integrity, request_guard, routes};

/// How long open connections may take to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the server cannot start.
#[derive(Debug, Error)]
pub enum ServerError {
    #[error(
        "cannot listen on {address}: {why}; set server.bind to a free address, or server.enabled = false"
    )]
    Bind {
        address: SocketAddr,
        why: std::io::Error,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot create a token: no randomness: {0}")]
    NoRandomness(String),
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A server that is bound and ready to run.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    address: SocketAddr,
    first_token: Option<String>,
}

impl Server {
    /// Binds the address. Creates the first admin token when no token is valid.
    pub async fn bind(
        options: ServerOptions,
        store: Store,
        client: Client,
    ) -> Result<Self, ServerError> {
        let wanted = options.bind;
        let failed = |why| ServerError::Bind {
            address: wanted,
            why,
        };
        let tls = options.tls.as_ref().map(TlsFiles::load).transpose()?;
        let listener = TcpListener::bind(wanted).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (tokens, now) = (store.tokens().await?, store.now().await?);
        let is_first = !tokens.iter().any(|token| token.is_valid(now));
        let first_token = match is_first {
            false => None,
            true => {
                let secret = new_secret().map_err(ServerError::NoRandomness)?;
                store
                    .add_token("first start", Role::Admin, &secret, None)
                    .await?;
                Some(secret)
            }
        };
        Ok(Self {
            app: Arc::new(App::new(
                options,
                address,
                store,
                client,
                openapi(routes::api()),
            )),
            listener,
            tls,
            address,
            first_token,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the dashboard.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }

    /// The token that was created because there was none. Shown once, stored only as
    /// a hash.
    pub fn first_token(&self) -> Option<&str> {
        self.first_token.as_deref()
    }

    /// Serves until `stop` completes. Streams end then; other requests are finished.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (end, ending) = watch::channel(false);
        let app = Arc::clone(&self.app);
        let sampling = tokio::spawn(history::record_samples(
            Arc::clone(&app.history),
            app.store.clone(),
        ));
        let following = tokio::spawn(event_tail::follow(
            Arc::clone(&app.event_tail),
            Arc::clone(&app.streams),
            app.store.clone(),
            app.options.stream_poll_interval,
        ));
        let checking = tokio::spawn(integrity::watch(
            Arc::clone(&app.integrity),
            app.store.clone(),
            app.options.search_folder.clone(),
        ));
        let options = ConnectionOptions {
            max: app.options.max_connections,
            tls: self.tls,
            header_timeout: app.options.header_timeout,
        };
        let serving = connections::serve(self.listener, router(&app), options, ending);
        let stopping = async {
            stop.await;
            app.streams.stop_all();
            let _ = end.send(true);
            // Idle connections of browsers must not delay the shutdown.
            tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
        };
        tokio::select! {
            () = serving => {}
            () = stopping => {}
        }
        sampling.abort();
        following.abort();
        checking.abort();
    }
}

/// Every route of the tables behind the request guard, and nothing else.
fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for route in routes::all() {
        let filter = match route.method {
            Method::Post => MethodFilter::POST,
            Method::Put => MethodFilter::PUT,
            Method::Delete => MethodFilter::DELETE,
            Method::Get => MethodFilter::GET,
        };
        let handler = move |State(app): State<Arc<App>>,
                            Extension(connection): Extension<Arc<Connection>>,
                            params: Result<RawPathParams, RawPathParamsRejection>,
                            request: Request| {
            request_guard::handle(app, route, connection, params, request)
        };
        router = router.route(route.path, on(filter, handler));
    }
    router
        .fallback(request_guard::not_found)
        .method_not_allowed_fallback(request_guard::method_not_allowed)
        .layer(from_fn_with_state(Arc::clone(app), request_guard::guard))
        .with_state(Arc::clone(app))
}
