//! One claimed URL, from the question to the end of the claim: ask politely,
//! judge the answer, have the page read.

use std::sync::Arc;

use jiff::Timestamp;
use tidings_net::{Failure, Purpose, Request};
use tidings_store::{Claim, Completion, Outcome};

use super::Worker;
use super::given::Given;
use super::read::{Reading, again_in};
use super::sources::KnownSource;
use super::tally::note_time;
use super::verdict::{self, Tries};
use crate::chance::random;
use crate::way::PoliteFetch;

/// A claim and the time when it was handed out.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) claim: Claim,
    pub(super) now: Timestamp,
}

impl Worker {
    /// Does the whole job. What goes wrong with us is never held against the URL.
    pub(super) async fn fetch(
        self: &Arc<Self>,
        job: &Job,
        cancelled: impl Future<Output = ()>,
    ) -> Completion {
        let claim = &job.claim;
        let ticket = claim.ticket;
        let store = &self.outside.store;
        let source = match self.sources.get(store, claim.source_id).await {
            Ok(source) => source,
            Err(error) => return Completion::new(ticket, verdict::ours(error)),
        };
        if let Some(given) = Given::of(job) {
            let outcome = self.read_given(given, source).await;
            return Completion::new(ticket, outcome);
        }
        let manners = source.settings.manners();
        let way = PoliteFetch::new(&self.outside, manners, &claim.url, claim.host_delay);
        let start = std::time::Instant::now();
        let answer = tokio::select! {
            // First: whoever wakes up late must not ask any more.
            biased;
            () = cancelled => None,
            answer = way.ask(question(claim, &source)) => Some(answer),
        };
        note_time(&self.clocks.asking, start);
        let Some(answer) = answer else {
            let nothing = Err(Failure::Store {
                why: "asked to end".to_owned(),
            });
            // What can't be given back now ends by itself.
            let host = way.leave(&nothing, job.now).await.unwrap_or_default();
            return Completion {
                ticket,
                outcome: Outcome::Released,
                host,
            };
        };
        let host = way.leave(&answer, job.now).await;
        let tries = Tries {
            used: claim.retry_count,
            random: random(),
        };
        let outcome = match answer {
            Err(failure) => verdict::of_failure(&failure, tries),
            Ok(response) => {
                let again_in = again_in(job, &source.settings, false);
                match verdict::of_answer(&response, again_in, tries, job.now) {
                    Some(outcome) => outcome,
                    None => {
                        let reading = Reading {
                            job: job.clone(),
                            source,
                            proxies: self.outside.proxies.clone(),
                            response,
                            tries,
                        };
                        self.read(reading).await
                    }
                }
            }
        };
        Completion {
            ticket,
            outcome,
            // A store that is away hears of it with the completion, or never.
            host: host.unwrap_or_default(),
        }
    }

    /// Makes a document of a text that came with its URL.
    async fn read_given(&self, given: Given, source: Arc<KnownSource>) -> Outcome {
        let Ok(core) = Arc::clone(&self.cores).acquire_owned().await else {
            return verdict::ours("there is no core to read with");
        };
        let (extractor, proxies) = (self.options.extractor, self.outside.proxies.clone());
        let read = tokio::task::spawn_blocking(move || {
            let _core = core;
            given.read(extractor, &source, &proxies)
        });
        read.await.unwrap_or_else(verdict::broken)
    }

    /// Reads a page; the CPU work waits for a core of its own.
    async fn read(self: &Arc<Self>, reading: Reading) -> Outcome {
        let Ok(core) = Arc::clone(&self.cores).acquire_owned().await else {
            return verdict::ours("there is no core to read with");
        };
        let (extractor, pages) = (self.options.extractor, self.options.pages.clone());
        let worker = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || {
            let _core = core;
            let recorder = worker.recorder.get();
            let _note = recorder.map(|recorder| recorder.note(reading.job.claim.ticket));
            let start = std::time::Instant::now();
            let outcome = reading.run(extractor, pages.as_ref(), &worker.sites);
            note_time(&worker.clocks.reading, start);
            outcome
        });
        read.await.unwrap_or_else(verdict::broken)
    }
}

fn question(claim: &Claim, source: &KnownSource) -> Request {
    let mut request = Request::get(claim.url.clone(), Purpose::Page);
    request.user_agent.clone_from(&source.settings.user_agent);
    // Only what was read before may be unchanged.
    if claim.last_fetched_at.is_some() && claim.content_hash.is_some() {
        request.etag.clone_from(&claim.etag);
        request.last_modified.clone_from(&claim.last_modified);
    }
    request
}
