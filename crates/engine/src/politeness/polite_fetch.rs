//! One fetch with its redirects: robots.txt of each address, a host permit for
//! each host that a redirect leads to, and the host's delay between any two
//! requests. The caller holds the permit of the first host, and must call
//! [`PoliteFetch::finish`] so that no permit stays held.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use tidings_net::{Failure, Permission, RedirectCheck, Redirects, Request, Response};
use tidings_store::{AcquiredHost, HostChange, HostPermit, StoreError};
use tidings_url::{FetchUrl, HostKey};
use tokio::time::sleep;

use super::fetch_context::FetchContext;
use super::host_throttle::{Politeness, adapt_delay};

/// The longest that a request is assumed to travel to its host.
const MAX_TRANSIT: Duration = Duration::from_millis(500);

/// The store counts whole milliseconds, at the start and at the end.
const ROUNDING: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(crate) struct PoliteFetch<'a> {
    context: &'a FetchContext,
    politeness: Politeness,
    first_host: HostKey,
    progress: Mutex<Progress>,
}

#[derive(Debug)]
struct Progress {
    /// The host of the current request.
    host: HostKey,
    /// Its delay as the store has it, and as it would be without errors.
    delay: Duration,
    floor: Duration,
    /// The permit of that host when it is not the first one.
    permit: Option<HostPermit>,
    first_host_delay: Duration,
    first_host_requested_at: Instant,
}

impl<'a> PoliteFetch<'a> {
    /// A fetch that starts at a host whose permit the caller holds.
    pub(crate) fn new(
        context: &'a FetchContext,
        politeness: Politeness,
        start: &FetchUrl,
        delay: Duration,
    ) -> Self {
        let first_host = start.host_key(&context.proxies);
        let progress = Progress {
            host: first_host.clone(),
            delay,
            floor: delay,
            permit: None,
            first_host_delay: delay,
            first_host_requested_at: Instant::now(),
        };
        Self {
            context,
            politeness,
            first_host,
            progress: Mutex::new(progress),
        }
    }

    /// Fetches, following redirects.
    pub(crate) fn fetch(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Response, Failure>> + Send {
        self.fetch_after(request, false)
    }

    /// The same right after another request to its host: after the host's delay.
    pub(crate) fn fetch_next(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Response, Failure>> + Send {
        self.fetch_after(request, true)
    }

    async fn fetch_after(
        &self,
        mut request: Request,
        was_just_requested: bool,
    ) -> Result<Response, Failure> {
        self.check_robots(&request.url, was_just_requested).await?;
        request.gap = self.progress().first_host_delay;
        let fetch = self.context.client.fetch(request, Redirects::Check(self));
        let result = fetch.await;
        let mut progress = self.progress();
        let response = match result {
            Ok(response) => response,
            Err(failure) => {
                // The host may have been receiving the request until the failure.
                if progress.host == self.first_host {
                    progress.first_host_requested_at = Instant::now();
                }
                return Err(failure);
            }
        };
        if progress.host == self.first_host {
            // Before the connection was established the host received nothing, and
            // when the request arrived is unknown: at the latest when the first byte
            // of the response came.
            let timings = &response.timings;
            let transit = timings.first_byte.min(MAX_TRANSIT);
            progress.first_host_requested_at +=
                timings.dns + timings.connect + timings.tls + transit;
        }
        drop(progress);
        Ok(response)
    }

    /// Releases the permit of a host that a redirect led to, and returns the
    /// change for the first host, whose permit the caller releases.
    pub(crate) async fn finish(
        self,
        result: &Result<Response, Failure>,
        now: Timestamp,
    ) -> Result<HostChange, StoreError> {
        let Self {
            context,
            first_host,
            progress,
            ..
        } = self;
        let progress = progress
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let change = adapt_delay(progress.delay, progress.floor, result, now);
        // The delay counts from the last request to the host, not from when the
        // permit was acquired: robots.txt and redirects come in between.
        let elapsed = progress.first_host_requested_at.elapsed();
        let gap = match progress.first_host_delay.saturating_sub(elapsed) {
            Duration::ZERO => Duration::ZERO,
            gap => gap + ROUNDING,
        };
        if progress.host == first_host {
            let cooldown = change.cooldown.max(gap);
            return Ok(HostChange { cooldown, ..change });
        }
        if let Some(permit) = &progress.permit {
            context.store.release_host(permit, &change).await?;
        }
        Ok(HostChange {
            cooldown: gap,
            ..HostChange::default()
        })
    }

    /// Checks robots.txt of an address on the current host. `was_just_requested`:
    /// this fetch has sent the host a request already.
    async fn check_robots(&self, url: &FetchUrl, was_just_requested: bool) -> Result<(), Failure> {
        let permission = match self.politeness.ignores_robots {
            true => None,
            false => Some(self.robots_permission(url).await?),
        };
        let floor = permission
            .as_ref()
            .and_then(|permission| permission.crawl_delay)
            .or(self.politeness.gap)
            .unwrap_or_else(|| self.context.store.host_delay());
        let delay = {
            let mut progress = self.progress();
            progress.floor = floor;
            progress.delay
        };
        if was_just_requested || permission.is_some_and(|permission| permission.was_fetched) {
            sleep(delay.max(floor)).await;
        }
        let mut progress = self.progress();
        if progress.host == self.first_host {
            progress.first_host_requested_at = Instant::now();
            progress.first_host_delay = delay.max(floor);
        }
        Ok(())
    }

    /// What robots.txt says. Where it redirects to another host, that host's permit is
    /// held while it is requested.
    async fn robots_permission(&self, url: &FetchUrl) -> Result<Permission, Failure> {
        let hops = RobotsHops {
            fetch: self,
            permit: tokio::sync::Mutex::default(),
        };
        let robots = &self.context.robots;
        let permission = robots.permit_with(url, Redirects::Check(&hops)).await;
        hops.release().await?;
        permission
    }

    /// Acquires the host of the next address and releases the one before; true
    /// when this fetch has sent that host a request already.
    async fn acquire_host(&self, host: HostKey) -> Result<bool, Failure> {
        let (before, is_same) = {
            let mut progress = self.progress();
            let is_same = progress.host == host;
            let before = if is_same {
                None
            } else {
                progress.permit.take()
            };
            (before, is_same)
        };
        if is_same {
            return Ok(true);
        }
        let store = &self.context.store;
        if let Some(permit) = before {
            store
                .release_host(&permit, &HostChange::default())
                .await
                .map_err(store_failure)?;
        }
        if host == self.first_host {
            let mut progress = self.progress();
            progress.delay = progress.first_host_delay;
            progress.host = host;
            return Ok(true);
        }
        let (lease, timeout) = (self.context.lease, self.context.permit_timeout);
        let acquired = store.wait_for_host(&host, lease, timeout);
        match acquired.await.map_err(store_failure)? {
            AcquiredHost::Now(permit) => {
                let mut progress = self.progress();
                progress.delay = permit.delay;
                progress.permit = Some(permit);
                progress.host = host;
                Ok(false)
            }
            AcquiredHost::Later(wait) => Err(Failure::HostBusy {
                host: host.as_str().to_owned(),
                wait,
            }),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        // Plain values, replaced whole: a panic elsewhere leaves them usable.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl RedirectCheck for PoliteFetch<'_> {
    async fn check_redirect(&self, _from: &FetchUrl, to: &FetchUrl) -> Result<(), Failure> {
        let host = to.host_key(&self.context.proxies);
        let was_just_requested = self.acquire_host(host).await?;
        self.check_robots(to, was_just_requested).await
    }
}

/// The redirects of robots.txt: each to a host that this fetch does not hold needs a
/// permit, like any request.
#[derive(Debug)]
struct RobotsHops<'f, 'a> {
    fetch: &'f PoliteFetch<'a>,
    permit: tokio::sync::Mutex<Option<HostPermit>>,
}

impl RobotsHops<'_, '_> {
    async fn release(&self) -> Result<(), Failure> {
        let store = &self.fetch.context.store;
        match self.permit.lock().await.take() {
            None => Ok(()),
            Some(permit) => store
                .release_host(&permit, &HostChange::default())
                .await
                .map_err(store_failure),
        }
    }
}

#[async_trait]
impl RedirectCheck for RobotsHops<'_, '_> {
    async fn check_redirect(&self, _from: &FetchUrl, to: &FetchUrl) -> Result<(), Failure> {
        self.release().await?;
        let context = self.fetch.context;
        let host = to.host_key(&context.proxies);
        let (is_held, delay) = {
            let progress = self.fetch.progress();
            let is_held = host == progress.host || host == self.fetch.first_host;
            (is_held, progress.delay)
        };
        if is_held {
            sleep(delay).await;
            return Ok(());
        }
        let acquired = context
            .store
            .wait_for_host(&host, context.lease, context.permit_timeout);
        match acquired.await.map_err(store_failure)? {
            AcquiredHost::Now(permit) => {
                *self.permit.lock().await = Some(permit);
                Ok(())
            }
            AcquiredHost::Later(wait) => Err(Failure::HostBusy {
                host: host.as_str().to_owned(),
                wait,
            }),
        }
    }
}

fn store_failure(error: StoreError) -> Failure {
    Failure::Store {
        why: error.to_string(),
    }
}
