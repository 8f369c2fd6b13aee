//! The story of one claimed URL: look up its source, fetch politely, classify the
//! response, read the page, complete the claim.

use std::pin::{Pin, pin};
use std::sync::Arc;

use tidings_net::{Failure, Response};
use tidings_store::{Completion, HostChange, Outcome};

use super::Worker;
use super::inline_document::InlineDocument;
use super::job::{Cancelled, Job};
use super::outcome::{self, Attempts};
use super::read_page::{PageOutcome, PageRead};
use super::source_cache::CachedSource;
use super::tally::add_elapsed;
use crate::politeness::PoliteFetch;
use crate::rng::random;

/// Bytes that reading a page costs for each byte of it: its text, its tree, the
/// document. Measured: up to 2 for pages of links, attributes or paragraphs.
const READING_COST: u64 = 3;

impl Worker {
    /// Does the whole job. Internal errors never count as attempts of the URL.
    pub(super) async fn fetch(
        self: &Arc<Self>,
        job: &Job,
        cancelled: impl Cancelled,
    ) -> Completion {
        let mut cancelled = pin!(cancelled);
        let lease_token = job.claim.lease_token;
        let store = &self.context.store;
        let source = match self.sources.get(store, job.claim.source_id).await {
            Ok(source) => source,
            Err(error) => return Completion::new(lease_token, outcome::internal(error)),
        };
        if let Some(document) = InlineDocument::of(job) {
            let outcome = self.read_inline(document, source).await;
            return Completion::new(lease_token, outcome);
        }
        let (result, mut host) = self.request(job, &source, cancelled.as_mut()).await;
        let outcome = match result {
            None => Outcome::Released,
            Some(result) => {
                self.outcome(job, source, result, cancelled, &mut host)
                    .await
            }
        };
        Completion {
            lease_token,
            outcome,
            host,
        }
    }

    /// Sends the request; `None` when it was cancelled. Also the change of its
    /// host.
    async fn request(
        &self,
        job: &Job,
        source: &CachedSource,
        cancelled: Pin<&mut impl Cancelled>,
    ) -> (Option<Result<Response, Failure>>, HostChange) {
        let claim = &job.claim;
        let politeness = source.settings.politeness();
        let fetch = PoliteFetch::new(&self.context, politeness, &claim.url, claim.host_delay);
        let start = std::time::Instant::now();
        let result = tokio::select! {
            // First: a process that resumes late must not send anything more.
            biased;
            () = cancelled => None,
            result = fetch.fetch(job.request(&source.settings)) => Some(result),
        };
        add_elapsed(&self.clocks.fetching, start);
        let cancelled = Err(Failure::Store {
            why: "cancelled".to_owned(),
        });
        let finished = fetch.finish(result.as_ref().unwrap_or(&cancelled), job.now);
        // A permit that cannot be released now expires.
        let host = finished.await.unwrap_or_default();
        (result, host)
    }

    /// The outcome of a response or a failure; a page is read first.
    async fn outcome(
        self: &Arc<Self>,
        job: &Job,
        source: Arc<CachedSource>,
        result: Result<Response, Failure>,
        cancelled: Pin<&mut impl Cancelled>,
        host: &mut HostChange,
    ) -> Outcome {
        let attempts = Attempts {
            policy: match source.settings.retries {
                Some(retries) => Arc::new(self.options.retries.with_retries(retries)),
                None => Arc::clone(&self.options.retries),
            },
            used: job.claim.retry_count,
            random: random(),
        };
        let response = match result {
            Ok(response) => response,
            Err(failure) => return outcome::of_failure(&failure, &attempts),
        };
        let recrawl_in = job.recrawl_in(&source.settings, false);
        if let Some(outcome) = outcome::of_response(&response, recrawl_in, &attempts, job.now) {
            return outcome;
        }
        let page = PageRead {
            job: job.clone(),
            source: Arc::clone(&source),
            proxies: self.context.proxies.clone(),
            response,
            attempts: attempts.clone(),
        };
        let page = self.read(page).await;
        self.follow_canonical(job, &source, page, attempts, cancelled, host)
            .await
    }

    /// Builds the document of a text that came with its URL.
    async fn read_inline(&self, document: InlineDocument, source: Arc<CachedSource>) -> Outcome {
        let (extractor, proxies) = (self.options.extractor, self.context.proxies.clone());
        let read = self
            .threads
            .run(move || document.read(extractor, &source, &proxies));
        read.await.unwrap_or_else(outcome::extraction_failed)
    }

    /// Reads a page on one of the extraction threads.
    pub(super) async fn read(self: &Arc<Self>, page: PageRead) -> PageOutcome {
        let cost = page.response.body.len() as u64 * READING_COST;
        let room = self.context.client.memory().room_to_read(cost).await;
        let (extractor, archive) = (self.options.extractor, self.options.page_archive.clone());
        let worker = Arc::clone(self);
        let read = self.threads.run(move || {
            let _room = room;
            let journal = worker.crash_journal.get();
            let _entry = journal.map(|journal| journal.enter(page.job.claim.lease_token));
            let start = std::time::Instant::now();
            let outcome = page.run(extractor, archive.as_ref(), &worker.sites);
            add_elapsed(&worker.clocks.reading, start);
            outcome
        });
        read.await
            .unwrap_or_else(|error| PageOutcome::from(outcome::extraction_failed(error)))
    }
}
