//! Polls of services that have an adapter: the pull, what its end means for the
//! source, and its items as submissions. An adapter reaches its service through
//! the same gate as everything else; its keys never get into the store.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value as Json, json};
use tidings_adapters::{
    AdapterError, AdapterErrorKind as Why, AdapterHttp, AdapterItem, HttpUnavailable, Pull,
    PullContext, SourceAdapter, Text, next_pull_in,
};
use tidings_net::{Failure, Request, Response};
use tidings_polling::ErrorClass;
use tidings_store::{Origin, Result, Source, Submission};
use tidings_url::{FetchUrl, ProxyHosts};

use super::items::{Listed, checksum};
use super::one::{Polling, Read, time};
use super::trouble::AdapterErrorKind;
use super::{PollReport, Poller};
use crate::outside::{FetchContext, FetchResult};
use crate::settings::{SourceSettings, priority, target};
use crate::way::Politeness;

/// Items of one poll; what is beyond comes with the next.
const MOST_ITEMS: usize = 5000;
/// Of one request.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// A pull that ended at a cap goes on after this, if the quota allows it.
const GO_ON_AFTER: Duration = Duration::from_secs(60);
/// A text that comes with an item is kept up to this.
const MOST_TEXT: usize = 8 * 1024 * 1024;

/// A key of this name from the environment, or from the file that `NAME_FILE`
/// names.
pub fn environment(name: &str) -> Option<String> {
    let file = || std::fs::read_to_string(std::env::var(format!("{name}_FILE")).ok()?).ok();
    std::env::var(name).ok().or_else(file)
}

#[async_trait]
impl AdapterHttp for FetchContext {
    async fn fetch(&self, request: Request, gap: Duration) -> Result<Response, HttpUnavailable> {
        let manners = Politeness {
            // An API is offered to programs, under terms of its own.
            ignores_robots: true,
            gap: Some(gap),
        };
        match Self::ask(self, request, manners).await {
            Ok(FetchResult::Answered(response)) => Ok(*response),
            Ok(FetchResult::Failed(failure)) => Err(HttpUnavailable::Failed(failure)),
            Ok(FetchResult::NotNow(wait)) => Err(HttpUnavailable::Busy(wait)),
            Err(error) => Err(HttpUnavailable::Failed(Failure::Store {
                why: error.to_string(),
            })),
        }
    }
}

/// What one pull may take.
pub(super) struct Bounds<'a> {
    pub(super) max_items: usize,
    pub(super) time_limit: Duration,
    pub(super) retry_waits: &'a [Duration],
}

impl Poller {
    /// Asks a service what is new. `None` when its gate had no time for us.
    pub(super) async fn pull(
        &self,
        mut polling: Polling<'_>,
        adapter: &'static dyn SourceAdapter,
    ) -> Result<Option<PollReport>> {
        let bounds = Bounds {
            max_items: MOST_ITEMS,
            time_limit: TIME_LIMIT,
            retry_waits: &[],
        };
        let read = match self.pull_once(&polling, adapter, &bounds).await {
            Ok(pull) => polling.pulled(pull),
            Err(error) => {
                if let Why::Busy { after } = error.kind {
                    let store = &self.outside.store;
                    store.defer_feed(polling.claim, after).await?;
                    return Ok(None);
                }
                Read::Failed(trouble(error))
            }
        };
        polling.end(self, read).await.map(Some)
    }

    pub(super) async fn pull_once(
        &self,
        polling: &Polling<'_>,
        adapter: &'static dyn SourceAdapter,
        bounds: &Bounds<'_>,
    ) -> std::result::Result<Pull, AdapterError> {
        let context = PullContext {
            http: &self.outside,
            secrets: &self.options.secrets,
            now: time(polling.now),
            max_items: bounds.max_items,
            wants_text: polling.settings.as_documents,
            time_limit: bounds.time_limit,
            retry_waits: bounds.retry_waits,
        };
        let cursor = polling.memory.cursor.as_deref();
        adapter
            .pull(&polling.settings.config, cursor, &context)
            .await
    }
}

impl Polling<'_> {
    /// A pull that ended well, and when to come again.
    pub(super) fn pulled(&mut self, pull: Pull) -> Read {
        self.bytes = pull.bytes;
        let minutes = u64::from(self.settings.feed_poll_interval_minutes);
        let every = match pull.has_more {
            true => GO_ON_AFTER,
            false => Duration::from_secs(minutes * 60),
        };
        self.come_again = match pull.quota {
            Some(quota) => Some(next_pull_in(quota, pull.requests, every)),
            None => pull.has_more.then_some(every),
        };
        Read::Pulled(Box::new(pull))
    }
}

pub(super) fn trouble(error: AdapterError) -> AdapterErrorKind {
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
    AdapterErrorKind {
        class,
        retry_after,
        ..AdapterErrorKind::hard(error.kind.as_str(), error.message)
    }
}

/// The items that have an address, each once.
pub(super) fn listed(
    pull: &Pull,
    source: &Source,
    settings: &SourceSettings,
    proxies: &ProxyHosts,
) -> Listed {
    let rules = settings.rules();
    let mut seen = std::collections::BTreeSet::new();
    let (mut submissions, mut item_of) = (Vec::new(), Vec::new());
    for (at, item) in pull.items.iter().enumerate() {
        let Ok(url) = FetchUrl::parse(&item.url) else {
            continue;
        };
        let target = target(url, &rules, proxies);
        if !seen.insert(target.key.to_string()) {
            continue;
        }
        submissions.push(Submission {
            source_id: source.source_id,
            priority: priority(source.priority, Origin::Api, 0),
            parent_url: Some(source.url.clone()),
            item: Some(said(item, source, settings).to_string()),
            ..Submission::new(target, Origin::Api)
        });
        item_of.push(at);
    }
    Listed {
        submissions,
        item_of,
        checksum: checksum(seen.iter().map(String::as_str)),
    }
}

/// What travels with the URL to its document, in the words of feed items.
fn said(item: &AdapterItem, source: &Source, settings: &SourceSettings) -> Json {
    let content = match &item.text {
        Some(Text::Html(html)) => Some(html.chars().take(MOST_TEXT).collect::<String>()),
        _ => None,
    };
    let plain = match &item.text {
        Some(Text::Plain(text)) => Some(text.chars().take(MOST_TEXT).collect::<String>()),
        _ => None,
    };
    let mut said = json!({
        "title": item.title,
        "summary": item.summary,
        "content": content,
        "plain_text": plain.filter(|_| settings.as_documents),
        "is_document": (settings.as_documents && item.text.is_some()).then_some(true),
        "content_type": item.content_type,
        "license": item.license,
        "guid": item.guid,
        "authors": item.authors,
        "categories": item.tags,
        "published": item.published,
        "updated": item.updated,
        "image": item.image,
        "language": item.language,
        "comments": item.comments,
        "feed_title": source.name,
        "feed_url": source.url,
    });
    if let Json::Object(fields) = &mut said {
        fields.retain(|_, value| !value.is_null() && *value != json!([]));
    }
    said
}
