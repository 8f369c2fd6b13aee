//! The listener: binds, says what it bound to, serves until it is told to stop.
//! Never reachable without a token: the first start makes one, for whoever
//! started it to print.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{ConnectInfo, RawPathParams, Request, State};
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, on};
use thiserror::Error;
use tidings_net::Client;
use tidings_store::{Role, Store, StoreError};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::access::new_secret;
use crate::app::App;
use crate::routes::Verb;
use crate::{door, history, routes, tail};

/// How the server is reached, and what it may show.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    pub bind: SocketAddr,
    /// Names under which it is reached besides localhost and the bound address.
    pub public_hosts: Vec<String>,
    /// Where the embedded search keeps its index, if there is one.
    pub search_folder: Option<PathBuf>,
    /// What the page about this program lists; secrets are masked before.
    pub settings: Vec<Setting>,
    /// How long streams sleep between two looks; the longest delay of live data.
    pub look_every: Duration,
}

/// A setting as it may be shown.
#[derive(Debug, Clone)]
pub struct Setting {
    pub key: String,
    pub value: String,
    pub origin: String,
}

impl ServerOptions {
    pub fn new(bind: SocketAddr) -> Self {
        Self {
            bind,
            public_hosts: Vec::new(),
            search_folder: None,
            settings: Vec::new(),
            look_every: Duration::from_millis(500),
        }
    }
}

/// Why it can't serve.
#[derive(Debug, Error)]
pub enum ServerError {
    #[error(
        "{address} can't be listened on: {why}; set server.bind to a free address, or server.enabled = false"
    )]
    Bind {
        address: SocketAddr,
        why: std::io::Error,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is no randomness for a token: {0}")]
    NoRandomness(String),
    #[error("the server broke off: {0}")]
    Serve(std::io::Error),
}

/// A server that listens and is ready to run.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
    address: SocketAddr,
    first_token: Option<String>,
}

impl Server {
    /// Listens. Makes the first admin token if there is none that is valid.
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
            app: Arc::new(App::new(options, address, store, client)),
            listener,
            address,
            first_token,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The token that was made because there was none. Shown once, kept nowhere.
    pub fn first_token(&self) -> Option<&str> {
        self.first_token.as_deref()
    }

    /// Serves until `stop` is done. Streams end then; requests are finished.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ServerError> {
        let (end, ending) = watch::channel(false);
        let sampling = tokio::spawn(history::sample(Arc::clone(&self.app)));
        let following = tokio::spawn(tail::follow(Arc::clone(&self.app)));
        let app = Arc::clone(&self.app);
        let service = router(&self.app).into_make_service_with_connect_info::<SocketAddr>();
        let mut ended = ending.clone();
        let serving = axum::serve(self.listener, service).with_graceful_shutdown(async move {
            // A sender that is gone means the same.
            let _ = ended.wait_for(|end| *end).await;
        });
        let mut serving = std::pin::pin!(serving.into_future());
        let result = tokio::select! {
            result = &mut serving => result,
            () = stop => {
                app.stop_streams();
                let _ = end.send(true);
                // Idle keep-alive connections of browsers must not hold us up.
                tokio::time::timeout(Duration::from_secs(5), serving).await.unwrap_or(Ok(()))
            }
        };
        sampling.abort();
        following.abort();
        result.map_err(ServerError::Serve)
    }
}

/// Every route of the table behind the door, and nothing else.
fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for route in routes::all() {
        let filter = match route.method {
            Verb::Post => MethodFilter::POST,
            Verb::Put => MethodFilter::PUT,
            Verb::Delete => MethodFilter::DELETE,
            Verb::Get => MethodFilter::GET,
        };
        let handler =
            move |State(app): State<Arc<App>>,
                  ConnectInfo(peer): ConnectInfo<SocketAddr>,
                  params: Result<RawPathParams, RawPathParamsRejection>,
                  request: Request| { door::serve(app, route, peer, params, request) };
        router = router.route(route.path, on(filter, handler));
    }
    router
        .fallback(door::nothing_here)
        .method_not_allowed_fallback(door::not_that_way)
        .layer(from_fn_with_state(Arc::clone(app), door::guard))
        .with_state(Arc::clone(app))
}
