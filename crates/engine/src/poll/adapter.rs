//! Polls of services that have an adapter: the pull, and the error class of a pull
//! that fails. An adapter's requests need host permits like all others; its keys
//! are never stored.

use std::time::Duration;

use async_trait::async_trait;
use tidings_adapters::{
    AdapterError, AdapterErrorKind as Why, AdapterHttp, HttpUnavailable, Pull, PullContext,
    ServiceOptions, SourceAdapter, next_pull_in,
};
use tidings_net::{Failure, Request, Response};
use tidings_polling::ErrorClass;
use tidings_store::Result;

use super::feed_poll::{FeedPoll, FeedRead, timestamp};
use super::poll_error::PollError;
use super::{PollReport, Poller};
use crate::politeness::{FetchContext, FetchResult, Politeness};

/// Items per poll; the rest comes with the next.
const MAX_ITEMS: usize = 5000;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// A pull that ended at a cap is continued after this, if the quota allows it.
const CONTINUE_AFTER: Duration = Duration::from_secs(60);

/// A secret from the environment variable of this name, or from the file that
/// `NAME_FILE` names.
pub fn environment(name: &str) -> Option<String> {
    let file = || std::fs::read_to_string(std::env::var(format!("{name}_FILE")).ok()?).ok();
    std::env::var(name).ok().or_else(file)
}

#[async_trait]
impl AdapterHttp for FetchContext {
    async fn fetch(&self, request: Request, gap: Duration) -> Result<Response, HttpUnavailable> {
        let politeness = Politeness {
            // An API is meant for programs, under its own terms.
            ignores_robots: true,
            gap: Some(gap),
        };
        match Self::fetch(self, request, politeness).await {
            Ok(FetchResult::Response(response)) => Ok(*response),
            Ok(FetchResult::Failed(failure)) => Err(HttpUnavailable::Failed(failure)),
            Ok(FetchResult::HostBusy(wait)) => Err(HttpUnavailable::Busy(wait)),
            Err(error) => Err(HttpUnavailable::Failed(Failure::Store {
                why: error.to_string(),
            })),
        }
    }
}

/// Limits of one pull.
pub(super) struct PullLimits<'a> {
    pub(super) max_items: usize,
    pub(super) time_limit: Duration,
    pub(super) retry_waits: &'a [Duration],
}

impl Poller {
    /// Polls a service. `None` when its host was busy and the poll is deferred.
    pub(super) async fn poll_service(
        &self,
        mut poll: FeedPoll<'_>,
        adapter: &'static dyn SourceAdapter,
    ) -> Result<Option<PollReport>> {
        let limits = PullLimits {
            max_items: MAX_ITEMS,
            time_limit: REQUEST_TIMEOUT,
            retry_waits: &[],
        };
        let read = match self.pull(&poll, adapter, &limits).await {
            Ok(pull) => poll.pulled(pull),
            Err(error) => {
                if let Why::Busy { after } = error.kind {
                    let store = &self.context.store;
                    store.defer_feed(poll.claim, after).await?;
                    return Ok(None);
                }
                FeedRead::Failed(pull_error(error))
            }
        };
        self.complete_poll(poll, read).await
    }

    pub(super) async fn pull(
        &self,
        poll: &FeedPoll<'_>,
        adapter: &'static dyn SourceAdapter,
        limits: &PullLimits<'_>,
    ) -> std::result::Result<Pull, AdapterError> {
        let service = self.service_options(adapter);
        let context = PullContext {
            http: &self.context,
            secrets: &self.options.secrets,
            service: &service,
            now: timestamp(poll.now),
            max_items: limits.max_items,
            wants_text: poll.settings.as_documents,
            time_limit: limits.time_limit,
            retry_waits: limits.retry_waits,
        };
        let cursor = poll.state.cursor.as_deref();
        adapter.pull(&poll.settings.config, cursor, &context).await
    }

    /// What is configured for the service of an adapter.
    pub(super) fn service_options(&self, adapter: &dyn SourceAdapter) -> ServiceOptions {
        let configured = self.options.services.get(adapter.kind());
        configured.cloned().unwrap_or_default()
    }
}

impl FeedPoll<'_> {
    /// Takes a pull that succeeded, and schedules the next by the quota.
    pub(super) fn pulled(&mut self, pull: Pull) -> FeedRead {
        self.bytes = pull.bytes;
        let minutes = u64::from(self.settings.feed_poll_interval_minutes);
        let interval = match pull.has_more {
            true => CONTINUE_AFTER,
            false => Duration::from_secs(minutes * 60),
        };
        self.next_poll_in = match pull.quota {
            Some(quota) => Some(next_pull_in(quota, pull.requests, interval)),
            None => pull.has_more.then_some(interval),
        };
        FeedRead::Pulled(Box::new(pull))
    }
}

/// The poll error of a pull that failed.
pub(super) fn pull_error(error: AdapterError) -> PollError {
    let class = match error.kind {
        Why::Network | Why::Busy { .. } => ErrorClass::Temporary,
        Why::RateLimited { .. } => ErrorClass::TooManyRequests,
        Why::Malformed => ErrorClass::Soft,
        Why::Auth | Why::Config => ErrorClass::Hard,
    };
    let retry_after = match error.kind {
        Why::RateLimited { after } => after,
        _ => None,
    };
    PollError {
        class,
        retry_after,
        ..PollError::hard(error.kind.as_str(), error.message)
    }
}
