//! One polite request that is not for a URL of the frontier (a feed, a sitemap,
//! an API): acquire the host, fetch while the permit is held, release the host
//! with the delay that its response calls for.

use std::pin::pin;
use std::time::Duration;

use jiff::Timestamp;
use tidings_net::{Failure, Request, Response};
use tidings_store::{AcquiredHost, HostPermit};
use tokio::time::{interval_at, sleep_until};
use tracing::{debug, warn};

use super::fetch_context::FetchContext;
use super::host_throttle::Politeness;
use super::polite_fetch::PoliteFetch;

/// Retry delay of a request for which this process lacked memory or a descriptor.
const OWN_SHORTAGE_RETRY_DELAY: Duration = Duration::from_secs(30);

/// How a polite request ended.
#[derive(Debug)]
pub(crate) enum FetchResult {
    Response(Box<Response>),
    Failed(Failure),
    /// The host has no permit free, or this process no memory; retry after this.
    HostBusy(Duration),
}

/// How long after its start or extension a lease is safe to act under: a request
/// that is cancelled may still be handled by the host that received it, and the
/// next holder must not overlap with it.
pub(crate) fn safe_lease_window(lease: Duration) -> Duration {
    lease * 9 / 10
}

impl FetchContext {
    /// Fetches under a host permit of its own. An error is the store's.
    pub(crate) async fn fetch(
        &self,
        request: Request,
        politeness: Politeness,
    ) -> tidings_store::Result<FetchResult> {
        let host = request.url.host_key(&self.proxies);
        let acquired = self
            .store
            .wait_for_host(&host, self.lease, self.permit_timeout);
        let permit = match acquired.await? {
            AcquiredHost::Now(permit) => permit,
            AcquiredHost::Later(wait) => return Ok(FetchResult::HostBusy(wait)),
        };
        let fetch = PoliteFetch::new(self, politeness, &request.url, permit.delay);
        // Boxed: the types of futures that hold it would be too deep for the compiler.
        let request = Box::pin(fetch.fetch(request));
        let result = self.while_held(&permit, request).await;
        // Another process may hold the permit by now: nothing more is sent.
        let result = result.unwrap_or_else(|| {
            Err(Failure::HostBusy {
                host: host.as_str().to_owned(),
                wait: self.lease,
            })
        });
        let change = fetch.finish(&result, Timestamp::now()).await?;
        self.store.release_host(&permit, &change).await?;
        Ok(match result {
            Ok(response) => FetchResult::Response(Box::new(response)),
            Err(Failure::HostBusy { wait, .. }) => FetchResult::HostBusy(wait),
            Err(shortage @ (Failure::NoMemory { .. } | Failure::NoDescriptor { .. })) => {
                warn!(host = host.as_str(), %shortage, "request deferred");
                FetchResult::HostBusy(OWN_SHORTAGE_RETRY_DELAY)
            }
            Err(failure) => FetchResult::Failed(failure),
        })
    }

    /// Runs a request while the permit is held: the permit is extended, and when
    /// that fails (store unavailable, process suspended) the request is cancelled.
    async fn while_held<T>(
        &self,
        permit: &HostPermit,
        request: impl Future<Output = T>,
    ) -> Option<T> {
        let mut request = pin!(request);
        let mut until = permit.requested_at + safe_lease_window(self.lease);
        let mut extend = interval_at(permit.requested_at + self.lease / 3, self.lease / 3);
        loop {
            tokio::select! {
                // First: a process that resumes late must not send anything more.
                biased;
                () = sleep_until(until) => return None,
                result = &mut request => return Some(result),
                now = extend.tick() => match self.store.extend_host_permit(permit, self.lease).await {
                    Ok(true) => until = now + safe_lease_window(self.lease),
                    Ok(false) => return None,
                    Err(error) => debug!(%error, "cannot extend host permit"),
                },
            }
        }
    }
}
