//! A fake receiver of webhooks: stores what it receives, by id, and fails as
//! receivers do.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::http::{Call, HttpServer, Reply};

/// How one request fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookFault {
    Status(u16),
    /// 429, with this `Retry-After`.
    TooManyRequests(u32),
    /// To this address.
    Redirect(String),
    /// It is stored, and the connection ends before the reply.
    ReplyLost,
    /// Never.
    Silence,
    /// 200 and gigabytes.
    Endless,
}

/// One request that was stored.
#[derive(Debug, Clone)]
pub struct WebhookCall {
    pub event: String,
    pub id: String,
    pub timestamp: String,
    pub signature: String,
    pub body: Vec<u8>,
}

#[derive(Debug, Default)]
struct State {
    calls: Vec<WebhookCall>,
    faults: VecDeque<WebhookFault>,
    is_down: bool,
}

/// A running fake; it ends when it is dropped.
#[derive(Debug)]
pub struct FakeWebhook {
    server: HttpServer,
    state: Arc<Mutex<State>>,
}

impl FakeWebhook {
    pub async fn start() -> io::Result<Self> {
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        let server = HttpServer::start(move |call| lock(&shared).respond(&call)).await?;
        Ok(Self { server, state })
    }

    pub fn url(&self) -> String {
        format!("{}/hook", self.server.url())
    }

    /// The next requests fail like this, one each.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = WebhookFault>) {
        lock(&self.state).faults.extend(faults);
    }

    /// Every connection ends without a response.
    pub fn set_down(&self, is_down: bool) {
        lock(&self.state).is_down = is_down;
    }

    /// What was accepted, in sequence.
    pub fn calls(&self) -> Vec<WebhookCall> {
        lock(&self.state).calls.clone()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn respond(&mut self, call: &Call) -> Reply {
        if self.is_down {
            return Reply::Lost;
        }
        if (call.method.as_str(), call.path.as_str()) != ("POST", "/hook") {
            return Reply::text(404, "nothing here");
        }
        let fault = self.faults.pop_front();
        match &fault {
            Some(WebhookFault::Status(status)) => return Reply::text(*status, "as you wish"),
            Some(WebhookFault::TooManyRequests(seconds)) => {
                return Reply::text(429, "later").with("Retry-After", seconds.to_string());
            }
            Some(WebhookFault::Redirect(to)) => {
                return Reply::text(307, "elsewhere").with("Location", to.clone());
            }
            Some(WebhookFault::Silence) => return Reply::Silence,
            _ => {}
        }
        let header = |name| call.header(name).unwrap_or_default().to_owned();
        self.calls.push(WebhookCall {
            event: header("tidings-event"),
            id: header("tidings-id"),
            timestamp: header("tidings-timestamp"),
            signature: header("tidings-signature"),
            body: call.body.clone(),
        });
        match fault {
            Some(WebhookFault::ReplyLost) => Reply::Lost,
            Some(WebhookFault::Endless) => Reply::Endless,
            _ => Reply::text(200, "thanks"),
        }
    }
}
