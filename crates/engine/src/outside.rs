//! One polite request to a host that is not for a URL of the frontier: a turn
//! at its gate, robots.txt first, the answer, and the gate told what was learned.

use std::time::Duration;

use jiff::Timestamp;
use tidings_net::{Class, Client, Failure, Redirects, Request, Response, RobotsGate, retry_after};
use tidings_store::{HostChange, HostTurn, Slot, Store};
use tidings_url::ProxyHosts;
use tokio::time::sleep;

/// The longest that a host may put off all of us.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// What may be asked of the outside, and by which manners.
#[derive(Debug)]
pub struct Outside {
    pub store: Store,
    pub client: Client,
    pub robots: RobotsGate,
    pub proxies: ProxyHosts,
    /// How long to wait for a turn before giving up for now.
    pub patience: Duration,
    /// How long a turn is held when its holder dies.
    pub lease: Duration,
}

/// A request that was made, or not.
#[derive(Debug)]
pub(crate) enum Asked {
    Answered(Box<Response>),
    Failed(Failure),
    /// The host has other requests; come again after this.
    NotNow(Duration),
}

impl Outside {
    pub fn new(client: Client, store: Store) -> Self {
        let proxies = ProxyHosts::default();
        Self {
            robots: RobotsGate::new(client.clone(), Some(store.clone()), proxies.clone()),
            store,
            client,
            proxies,
            patience: Duration::from_secs(15),
            lease: Duration::from_secs(60),
        }
    }

    /// Asks, politely. An error is our own store's.
    pub(crate) async fn ask(
        &self,
        request: Request,
        ignores_robots: bool,
    ) -> tidings_store::Result<Asked> {
        let host = request.url.host_key(&self.proxies);
        let slot = match self
            .store
            .wait_for_slot(&host, self.lease, self.patience)
            .await?
        {
            HostTurn::Now(slot) => slot,
            HostTurn::Later(wait) => return Ok(Asked::NotNow(wait)),
        };
        let answer = self.ask_with(&slot, request, ignores_robots).await;
        self.store
            .return_slot(&slot, &learned(&slot, &answer))
            .await?;
        Ok(match answer {
            Ok(response) => Asked::Answered(Box::new(response)),
            Err(failure) => Asked::Failed(failure),
        })
    }

    async fn ask_with(
        &self,
        slot: &Slot,
        request: Request,
        ignores_robots: bool,
    ) -> Result<Response, Failure> {
        if ignores_robots {
            return self.client.fetch(request, Redirects::Follow).await;
        }
        let permission = self.robots.permit(&request.url).await?;
        if permission.was_asked {
            // robots.txt was a request too.
            sleep(slot.delay).await;
        }
        self.client
            .fetch(request, Redirects::Ask(&self.robots))
            .await
    }
}

/// What an answer teaches about its host.
fn learned(slot: &Slot, answer: &Result<Response, Failure>) -> HostChange {
    let Ok(response) = answer else {
        let is_network = |failure: &Failure| failure.class() == Class::Network;
        return HostChange {
            is_error: answer.as_ref().err().is_some_and(is_network),
            ..HostChange::default()
        };
    };
    if !matches!(response.status, 429 | 503) {
        return HostChange::default();
    }
    let asked = response
        .header("retry-after")
        .and_then(|header| retry_after(header, Timestamp::now()));
    HostChange {
        delay: Some((slot.delay * 2).min(LONGEST_DELAY)),
        block_for: asked,
        is_error: true,
        ..HostChange::default()
    }
}
