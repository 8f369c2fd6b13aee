//! Pages that name another page of their site as the one to keep (`rel=canonical`).
//! A page is believed only with evidence: the page that it names exists, names
//! itself or none, and has the same story. Without evidence a page stays its own.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tidings_net::{Failure, Purpose, Request, Response};
use tidings_store::{HostChange, HostId, Outcome, Result, Status, Target};
use tracing::debug;

use super::Worker;
use super::job::{Cancelled, Job};
use super::outcome::{self, Attempts};
use super::page_version::PageVersion;
use super::read_page::{PageOutcome, PageRead};
use super::source_cache::CachedSource;
use crate::politeness::{FetchResult, PoliteFetch};
use crate::sources::target;
use crate::stored_document::stored_document;

/// After this many named pages without evidence the pages of a host are not believed
/// for a while: each costs a request.
const MAX_UNPROVEN: u8 = 3;
const UNPROVEN_TTL: Duration = Duration::from_secs(24 * 3600);
const MAX_HOSTS: usize = 100_000;

/// Why a URL is not fetched again: it is an alias of the page that it named.
const CANONICAL: &str = "canonical";

/// How many named pages of each host were without evidence.
#[derive(Debug, Default)]
pub(super) struct CanonicalChecks(Mutex<HashMap<HostId, (u8, Instant)>>);

impl CanonicalChecks {
    fn is_worth(&self, host: HostId) -> bool {
        match self.unproven().get(&host) {
            Some((count, last)) => *count < MAX_UNPROVEN || last.elapsed() > UNPROVEN_TTL,
            None => true,
        }
    }

    fn record(&self, host: HostId, is_proven: bool) {
        let mut unproven = self.unproven();
        if is_proven {
            unproven.remove(&host);
            return;
        }
        if unproven.len() >= MAX_HOSTS {
            unproven.clear();
        }
        let (count, last) = unproven.entry(host).or_insert((0, Instant::now()));
        *count = count.saturating_add(1);
        *last = Instant::now();
    }

    fn unproven(&self) -> MutexGuard<'_, HashMap<HostId, (u8, Instant)>> {
        // Numbers only: a panic elsewhere leaves them usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Worker {
    /// The outcome of a page that names another one: an alias of that page where
    /// there is evidence, else what it was.
    pub(super) async fn follow_canonical(
        self: &Arc<Self>,
        job: &Job,
        source: &Arc<CachedSource>,
        page: PageOutcome,
        attempts: Attempts,
        cancelled: Pin<&mut impl Cancelled>,
        host: &mut HostChange,
    ) -> Outcome {
        let (Some(version), Some(named)) = (&page.version, &page.names) else {
            return page.outcome;
        };
        match self.stored_alias(job, source, version, named).await {
            Err(error) => return outcome::internal(error),
            Ok(Stored::Alias(outcome)) => return outcome,
            Ok(Stored::Other) => return page.outcome,
            Ok(Stored::Unknown) => {}
        }
        let named_host = named.id().host;
        if !self.canonical_checks.is_worth(named_host) {
            return page.outcome;
        }
        let response = tokio::select! {
            biased;
            () = cancelled => return Outcome::Released,
            response = self.fetch_named(job, source, named, host) => response,
        };
        let is_there = |response: &Response| {
            let rules = source.settings.rules();
            let reached = target(response.url.clone(), &rules, &self.context.proxies);
            response.status == 200 && reached.id() == named.id()
        };
        let merged = match response.filter(is_there) {
            None => None,
            Some(response) => {
                self.read_named(job, source, version, named, response, attempts)
                    .await
            }
        };
        self.canonical_checks.record(named_host, merged.is_some());
        debug!(url = %job.claim.url, canonical = %named.url, is_proven = merged.is_some(), "canonical page checked");
        merged.unwrap_or(page.outcome)
    }

    /// Compares with the document of the named page, if the store has one.
    async fn stored_alias(
        &self,
        job: &Job,
        source: &CachedSource,
        version: &PageVersion,
        named: &Target,
    ) -> Result<Stored> {
        let (store, id) = (&self.context.store, named.id());
        let Some(stored) = store.document(id).await? else {
            // What failed permanently or redirects is nobody's canonical page.
            let row = store.url(id).await?;
            return Ok(match row {
                Some(row) if row.status == Status::Dead => Stored::Other,
                _ => Stored::Unknown,
            });
        };
        let Ok(document) = stored_document(&stored) else {
            return Ok(Stored::Other);
        };
        let known = PageVersion::of_document(document);
        let rules = source.settings.rules();
        let is_proven =
            known.names_itself(id, &rules, &self.context.proxies) && version.is_same_story(&known);
        if !is_proven {
            return Ok(Stored::Other);
        }
        // Before the claim is completed: a crash in between repeats both.
        store
            .add_alias(job.claim.lease_token.id, id, CANONICAL)
            .await?;
        Ok(Stored::Alias(outcome::dead(
            CANONICAL,
            Some(format!("the canonical page is {}", named.url)),
        )))
    }

    /// Fetches the named page, politely; `None` without a response.
    async fn fetch_named(
        &self,
        job: &Job,
        source: &CachedSource,
        named: &Target,
        host: &mut HostChange,
    ) -> Option<Response> {
        let mut request = Request::get(named.url.clone(), Purpose::Page);
        request.user_agent.clone_from(&source.settings.user_agent);
        let politeness = source.settings.politeness();
        if named.id().host != job.claim.lease_token.id.host {
            return match self.context.fetch(request, politeness).await {
                Ok(FetchResult::Response(response)) => Some(*response),
                Ok(_) | Err(_) => None,
            };
        }
        // The claim holds the permit of its host.
        let delay = host.delay.unwrap_or(job.claim.host_delay);
        let fetch = PoliteFetch::new(&self.context, politeness, &named.url, delay);
        let result: std::result::Result<Response, Failure> = fetch.fetch_next(request).await;
        // A permit that cannot be released now expires.
        *host = fetch
            .finish(&result, Timestamp::now())
            .await
            .unwrap_or_default();
        result.ok()
    }

    /// Reads the named page; the outcome of the claim if there is evidence.
    async fn read_named(
        self: &Arc<Self>,
        job: &Job,
        source: &Arc<CachedSource>,
        version: &PageVersion,
        named: &Target,
        response: Response,
        attempts: Attempts,
    ) -> Option<Outcome> {
        let recrawl_in = None;
        if outcome::of_response(&response, recrawl_in, &attempts, job.now).is_some() {
            return None;
        }
        let page = PageRead {
            job: job.clone(),
            source: Arc::clone(source),
            proxies: self.context.proxies.clone(),
            response,
            attempts,
        };
        let read = self.read(page).await;
        let rules = source.settings.rules();
        let is_proven = read.version.is_some_and(|known| {
            known.names_itself(named.id(), &rules, &self.context.proxies)
                && version.is_same_story(&known)
        });
        let is_redirect = matches!(read.outcome, Outcome::Redirected { .. });
        (is_proven && is_redirect).then_some(read.outcome)
    }
}

/// What the store knows of a named page.
enum Stored {
    /// It has the same story: the outcome of the claim.
    Alias(Outcome),
    /// It is another page, or none.
    Other,
    /// It was not read yet.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_whose_pages_prove_nothing_are_not_asked_for_more() {
        let checks = CanonicalChecks::default();
        let host = HostId(1);
        for _ in 0..MAX_UNPROVEN {
            assert!(checks.is_worth(host));
            checks.record(host, false);
        }
        assert!(!checks.is_worth(host));
        assert!(checks.is_worth(HostId(2)));
        checks.record(host, true);
        assert!(checks.is_worth(host));
    }
}
