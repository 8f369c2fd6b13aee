//! The way of one request, redirects included: robots.txt of each address, a
//! turn at the gate of each host that it leads to, and the host's gap between
//! any two requests. Whoever starts a way holds the turn at the first host, and
//! must leave the way, so that no turn stays taken.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use tidings_net::{Failure, RedirectCheck, Redirects, Request, Response};
use tidings_store::{AcquiredHost, HostChange, HostPermit, StoreError};
use tidings_url::{FetchUrl, HostKey};
use tokio::time::sleep;

use crate::manners;
use crate::outside::FetchContext;

/// How long a question may be on its way to a host.
const LONGEST_JOURNEY: Duration = Duration::from_millis(500);

/// The store counts whole milliseconds, at the beginning and at the end.
const ROUNDED: Duration = Duration::from_millis(2);

/// What a source says of how it is asked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Politeness {
    /// For feeds only, and only where a person said so.
    pub(crate) ignores_robots: bool,
    /// The gap that the source wants; robots.txt may want another.
    pub(crate) gap: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct PoliteFetch<'a> {
    outside: &'a FetchContext,
    manners: Politeness,
    home: HostKey,
    steps: Mutex<Steps>,
}

#[derive(Debug)]
struct Steps {
    /// The host that is asked now.
    host: HostKey,
    /// Its gap as the store has it, and as it should be without trouble.
    delay: Duration,
    floor: Duration,
    /// The turn at that host when it is not the first one.
    turn: Option<HostPermit>,
    home_delay: Duration,
    home_asked_at: Instant,
}

impl<'a> PoliteFetch<'a> {
    /// A way that starts at a host whose turn the caller holds.
    pub(crate) fn new(
        outside: &'a FetchContext,
        manners: Politeness,
        start: &FetchUrl,
        delay: Duration,
    ) -> Self {
        let home = start.host_key(&outside.proxies);
        let steps = Steps {
            host: home.clone(),
            delay,
            floor: delay,
            turn: None,
            home_delay: delay,
            home_asked_at: Instant::now(),
        };
        Self {
            outside,
            manners,
            home,
            steps: Mutex::new(steps),
        }
    }

    /// Asks, and follows.
    pub(crate) async fn ask(&self, mut request: Request) -> Result<Response, Failure> {
        self.pass_robots(&request.url, false).await?;
        request.gap = self.steps().home_delay;
        let fetch = self.outside.client.fetch(request, Redirects::Check(self));
        let answer = fetch.await;
        let mut steps = self.steps();
        let response = match answer {
            Ok(response) => response,
            Err(failure) => {
                // It may have been asked until the very end.
                if steps.host == self.home {
                    steps.home_asked_at = Instant::now();
                }
                return Err(failure);
            }
        };
        if steps.host == self.home {
            // Until the connection stood, nothing was asked of the host, and when
            // the question arrived there we can't know: at the latest it had when
            // the answer came.
            let timings = &response.timings;
            let journey = timings.first_byte.min(LONGEST_JOURNEY);
            steps.home_asked_at += timings.dns + timings.connect + timings.tls + journey;
        }
        drop(steps);
        Ok(response)
    }

    /// Ends the way: gives back what is held elsewhere, and says what was learned
    /// of the first host.
    pub(crate) async fn leave(
        self,
        answer: &Result<Response, Failure>,
        now: Timestamp,
    ) -> Result<HostChange, StoreError> {
        let Self {
            outside,
            home,
            steps,
            ..
        } = self;
        let steps = steps.into_inner().unwrap_or_else(PoisonError::into_inner);
        let learned = manners::learned(steps.delay, steps.floor, answer, now);
        // The gap counts from when the host was last asked, not from when the
        // turn was given: robots.txt and redirects come in between.
        let waited = steps.home_asked_at.elapsed();
        let gap = match steps.home_delay.saturating_sub(waited) {
            Duration::ZERO => Duration::ZERO,
            gap => gap + ROUNDED,
        };
        if steps.host == home {
            let rest = learned.rest.max(gap);
            return Ok(HostChange { rest, ..learned });
        }
        if let Some(turn) = &steps.turn {
            outside.store.release_host(turn, &learned).await?;
        }
        Ok(HostChange {
            rest: gap,
            ..HostChange::default()
        })
    }

    /// Robots.txt of an address on the present host. `was_just_asked`: the host
    /// has had a request on this way already.
    async fn pass_robots(&self, url: &FetchUrl, was_just_asked: bool) -> Result<(), Failure> {
        let permission = match self.manners.ignores_robots {
            true => None,
            false => Some(self.outside.robots.permit(url).await?),
        };
        let floor = permission
            .as_ref()
            .and_then(|permission| permission.crawl_delay)
            .or(self.manners.gap)
            .unwrap_or_else(|| self.outside.store.host_delay());
        let delay = {
            let mut steps = self.steps();
            steps.floor = floor;
            steps.delay
        };
        if was_just_asked || permission.is_some_and(|permission| permission.was_fetched) {
            sleep(delay.max(floor)).await;
        }
        let mut steps = self.steps();
        if steps.host == self.home {
            steps.home_asked_at = Instant::now();
            steps.home_delay = delay.max(floor);
        }
        Ok(())
    }

    /// Takes a turn at the host of the next address, and gives back the one
    /// before; true when it is the host that was asked last.
    async fn step_to(&self, host: HostKey) -> Result<bool, Failure> {
        let (before, is_same) = {
            let mut steps = self.steps();
            let is_same = steps.host == host;
            (if is_same { None } else { steps.turn.take() }, is_same)
        };
        if is_same {
            return Ok(true);
        }
        let store = &self.outside.store;
        if let Some(turn) = before {
            store
                .release_host(&turn, &HostChange::default())
                .await
                .map_err(ours)?;
        }
        if host == self.home {
            let mut steps = self.steps();
            steps.delay = steps.home_delay;
            steps.host = host;
            return Ok(true);
        }
        let turn = store.wait_for_host(&host, self.outside.lease, self.outside.patience);
        match turn.await.map_err(ours)? {
            AcquiredHost::Now(slot) => {
                let mut steps = self.steps();
                steps.delay = slot.delay;
                steps.turn = Some(slot);
                steps.host = host;
                Ok(false)
            }
            AcquiredHost::Later(wait) => Err(Failure::HostBusy {
                host: host.as_str().to_owned(),
                wait,
            }),
        }
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        // Plain values, changed whole: a panic elsewhere leaves them usable.
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl RedirectCheck for PoliteFetch<'_> {
    async fn check_redirect(&self, _from: &FetchUrl, to: &FetchUrl) -> Result<(), Failure> {
        let was_just_asked = self.step_to(to.host_key(&self.outside.proxies)).await?;
        self.pass_robots(to, was_just_asked).await
    }
}

fn ours(error: StoreError) -> Failure {
    Failure::Store {
        why: error.to_string(),
    }
}
