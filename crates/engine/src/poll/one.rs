//! One poll of one feed or sitemap, from the lease to the log line. Five ends are
//! told apart: nothing modified, the same bytes, the same items, a failure, a
//! success.

use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tidings_adapters::{Pull, adapter};
use tidings_feed::sitemap::{self as sitemaps, Sitemap};
use tidings_feed::{Feed as ParsedFeed, Hints as ParseHints, UpdatePeriod};
use tidings_net::{Purpose, Request, Response};
use tidings_polling::{Outcome, Policy, Poll, Sighting, next_poll};
use tidings_spider::Found;
use tidings_store::{Feed, FeedClaim, FetchLogRow, Moment, PollResult, Result, Source};
use tidings_text::hex;
use tidings_url::FetchUrl;
use tracing::{error, info};

use super::take::Taken;
use super::trouble::AdapterErrorKind;
use super::{PollOutcome, PollReport, Poller};
use crate::chance::random;
use crate::memory::Memory;
use crate::outside::FetchResult;
use crate::registry::{LISTING, SITE};
use crate::settings::SourceSettings;

/// So many failures in a row are said loudly, once.
const LOUD_AFTER: i64 = 10;

/// A source that does not say what it wants is asked again after this.
const UNREADABLE_WAIT: Duration = Duration::from_secs(3600);

/// What one request to a feed gave.
pub(super) enum Read {
    NotModified,
    /// Nothing was read, but now it is known where the feed is.
    Found,
    SameBody,
    Feed(Box<ParsedFeed>),
    Sitemap(Box<Sitemap>),
    Pulled(Box<Pull>),
    /// A page, whatever is on it.
    Page,
    Listing(Box<Found>),
    Failed(AdapterErrorKind),
}

/// A poll under way.
pub(super) struct Polling<'a> {
    pub(super) claim: &'a FeedClaim,
    pub(super) source: Source,
    pub(super) settings: SourceSettings,
    pub(super) memory: Memory,
    /// The row as it will be.
    pub(super) feed: Feed,
    pub(super) now: Moment,
    started: std::time::Instant,
    pub(super) bytes: u64,
    /// When to come again, if not when the policy says.
    pub(super) come_again: Option<Duration>,
    /// What people should know of a poll that went well: a class, and words.
    remark: Option<(&'static str, String)>,
}

impl Poller {
    /// Polls a feed that is leased. `None` when the host had no time for us.
    pub(super) async fn poll_feed(&self, claim: &FeedClaim) -> Result<Option<PollReport>> {
        let store = &self.outside.store;
        let Some(source) = store.source(claim.feed.source_id).await? else {
            // Its source was removed a moment ago, and the feed with it.
            return Ok(None);
        };
        let settings = match SourceSettings::of(&source) {
            Ok(settings) => settings,
            Err(error) => {
                error!(%error, "a source can't be polled");
                store.defer_feed(claim, UNREADABLE_WAIT).await?;
                return Ok(None);
            }
        };
        let now = store.now().await?;
        let mut polling = Polling::new(claim, source, settings, now);
        if let Some(adapter) = adapter(&claim.feed.kind) {
            return self.pull(polling, adapter).await;
        }
        if !polling.settings.wants(&claim.feed.kind) {
            // Its source is followed in another way now.
            store.remove_feed(claim.feed.feed_id).await?;
            return Ok(None);
        }
        polling.follow_settings();
        let Ok(url) = FetchUrl::parse(&polling.feed.url) else {
            let trouble = AdapterErrorKind::hard(
                "content",
                format!("{:?} is not an address", polling.feed.url),
            );
            return polling.end(self, Read::Failed(trouble)).await.map(Some);
        };
        if polling.feed.kind == SITE {
            return self.find_feed(polling, url).await.map(Some);
        }
        if polling.is_listing() {
            return self.visit(polling, url).await;
        }
        let request = polling.request(url);
        let asked = self
            .outside
            .ask(request, polling.settings.feed_manners())
            .await?;
        let read = match asked {
            FetchResult::NotNow(wait) => {
                store.defer_feed(claim, wait).await?;
                return Ok(None);
            }
            FetchResult::Failed(failure) => Read::Failed(AdapterErrorKind::of_failure(&failure)),
            FetchResult::Answered(response) => match polling.read(&response) {
                Read::Failed(trouble) if polling.is_page(&response) => {
                    let trouble = self.find_feed_of_page(&mut polling, trouble).await?;
                    Read::Failed(trouble)
                }
                read => read,
            },
        };
        polling.end(self, read).await.map(Some)
    }
}

impl<'a> Polling<'a> {
    pub(super) fn new(
        claim: &'a FeedClaim,
        source: Source,
        settings: SourceSettings,
        now: Moment,
    ) -> Self {
        Self {
            claim,
            memory: Memory::parse(&claim.feed.policy),
            feed: claim.feed.clone(),
            source,
            settings,
            now,
            started: std::time::Instant::now(),
            bytes: 0,
            come_again: None,
            remark: None,
        }
    }

    /// The address in the settings is the one that counts; a new one is a feed
    /// of which nothing is known.
    pub(super) fn follow_settings(&mut self) {
        let wanted = match self.feed.kind.as_str() {
            _ if self.memory.depth > 0 => None,
            LISTING => Some(self.source.url.as_str()),
            "sitemap" => self.settings.sitemap_url.as_ref().map(FetchUrl::as_str),
            _ => self.settings.feed_url.as_ref().map(FetchUrl::as_str),
        };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != self.feed.url) {
            self.feed.url = wanted.to_owned();
            self.feed.etag = None;
            self.feed.last_modified = None;
            self.feed.body_hash = None;
            self.feed.items_checksum = None;
            self.memory = Memory::default();
        }
    }

    /// Where it lives. It was parsed before anything was asked.
    pub(super) fn url(&self) -> FetchUrl {
        FetchUrl::parse(&self.feed.url).expect("an address that was fetched parses")
    }

    fn is_sitemap(&self) -> bool {
        self.feed.kind == "sitemap"
    }

    /// Feeds have a policy; a sitemap its hours; one whose index says when it
    /// changes is looked at then, and once a week all the same.
    fn policy(&self) -> Policy {
        let hours = |hours: u64| Policy::Fixed {
            every: Duration::from_secs(hours * 3600),
        };
        match self.is_sitemap() {
            false if self.is_listing() => Policy::Listing {
                turnover: self.memory.shown.turnover(),
            },
            // A service is asked as often as its quota allows, or at its interval.
            false if self.settings.adapter().is_some() => self.settings.interval(),
            false => self.settings.policy(),
            true if self.memory.is_dated => hours(24 * 7),
            true => hours(u64::from(self.settings.sitemap_interval_hours)),
        }
    }

    pub(super) fn request(&mut self, url: FetchUrl) -> Request {
        let purpose = match self.feed.kind.as_str() {
            LISTING => Purpose::Page,
            "sitemap" => Purpose::Sitemap,
            _ => Purpose::Feed,
        };
        let mut request = Request::get(url, purpose);
        request.user_agent.clone_from(&self.settings.user_agent);
        if self.memory.wants_everything(self.now) {
            self.memory.full_at = Some(self.now.0);
        } else {
            request.etag.clone_from(&self.feed.etag);
            request.last_modified.clone_from(&self.feed.last_modified);
        }
        request
    }

    pub(super) fn read(&mut self, response: &Response) -> Read {
        self.bytes = response.wire_bytes;
        if response.status == 304 {
            return Read::NotModified;
        }
        if !response.is_success() {
            return Read::Failed(AdapterErrorKind::of_status(response));
        }
        let header = |name: &str| response.header(name).map(str::to_owned);
        self.feed.etag = header("etag");
        self.feed.last_modified = header("last-modified");
        self.memory.hints.max_age = max_age(response.header("cache-control"));
        let body_hash = hex::encode(Sha256::digest(&response.body));
        if self.feed.body_hash.as_ref() == Some(&body_hash) {
            return Read::SameBody;
        }
        if self.is_listing() {
            self.feed.body_hash = Some(body_hash);
            return Read::Page;
        }
        let hints = ParseHints {
            content_type: response.header("content-type"),
            url: Some(response.url.as_url()),
            now: Some(time(self.now)),
            ..ParseHints::default()
        };
        let read = match self.is_sitemap() {
            true => sitemaps::parse(&response.body, &hints).map(|map| Read::Sitemap(Box::new(map))),
            false => tidings_feed::parse(&response.body, &hints).map(|feed| {
                self.note_wishes(&feed, response);
                Read::Feed(Box::new(feed))
            }),
        };
        match read {
            Ok(read) => {
                self.feed.body_hash = Some(body_hash);
                self.note_move(response);
                read
            }
            Err(error) => Read::Failed(AdapterErrorKind::hard("content", error.to_string())),
        }
    }

    /// A feed that has moved for good, seen twice, is from now on where it moved.
    fn note_move(&mut self, response: &Response) {
        let is_permanent =
            !response.hops.is_empty() && response.hops.iter().all(tidings_net::Hop::is_permanent);
        let target = is_permanent.then(|| response.url.as_str().to_owned());
        if target.is_some() && target == self.memory.moving_to {
            info!(
                from = self.feed.url,
                to = response.url.as_str(),
                "a feed has moved"
            );
            match self.is_sitemap() {
                true if self.memory.depth > 0 => {}
                true => self.settings.sitemap_url = Some(response.url.clone()),
                false => self.settings.feed_url = Some(response.url.clone()),
            }
            self.feed.url = response.url.as_str().to_owned();
            self.memory.moving_to = None;
        } else {
            self.memory.moving_to = target;
        }
    }

    fn note_wishes(&mut self, feed: &ParsedFeed, response: &Response) {
        let hints = &mut self.memory.hints;
        hints.ttl = feed
            .ttl_minutes
            .map(|minutes| Duration::from_secs(u64::from(minutes) * 60));
        hints.syndication = feed.update_period.map(|period| {
            let times = feed.update_frequency.unwrap_or(1).max(1);
            period_length(period) / times
        });
        hints.skip_hours.clone_from(&feed.skip_hours);
        hints.skip_days = feed
            .skip_days
            .iter()
            .filter_map(|day| day_number(day))
            .collect();
        let has_validators = self.feed.etag.is_some() || self.feed.last_modified.is_some();
        hints.is_costly = !has_validators && response.wire_bytes > 200_000;
    }

    /// Submits, decides when to come again, and writes it all down.
    pub(super) async fn end(mut self, poller: &Poller, read: Read) -> Result<PollReport> {
        let store = &poller.outside.store;
        let mut taken = Taken::default();
        let (outcome, trouble) = match read {
            Read::NotModified | Read::Page => (PollOutcome::NotModified, None),
            Read::Found => (PollOutcome::Found, None),
            Read::SameBody => (PollOutcome::SameBody, None),
            Read::Failed(trouble) => (PollOutcome::Failed, Some(trouble)),
            Read::Feed(feed) => {
                taken = self.take_feed(poller, &feed).await?;
                (taken.outcome(), None)
            }
            Read::Sitemap(sitemap) => {
                taken = self.take_sitemap(poller, &sitemap).await?;
                (taken.outcome(), None)
            }
            Read::Listing(found) => {
                taken = self.take_listing(poller, &found).await?;
                (taken.outcome(), None)
            }
            Read::Pulled(pull) => {
                taken = self.take_pull(poller, &pull).await?;
                (taken.outcome(), None)
            }
        };
        let (seen, new) = (taken.seen, taken.new.len());
        let polled = match &trouble {
            Some(trouble) => Outcome::Failed {
                class: trouble.class,
                retry_after: trouble.retry_after,
            },
            None if outcome == PollOutcome::Ok => Outcome::Read(Sighting {
                listed: &taken.dates,
                new: &taken.new,
            }),
            None => Outcome::Unchanged,
        };
        let price = poller.price.get(store, self.now).await?;
        let poll = Poll {
            feed_id: self.feed.feed_id,
            policy: self.policy(),
            outcome: polled,
            hints: &self.memory.hints,
            weight: weight(self.source.priority),
            price,
            now: time(self.now),
            random: random(),
        };
        let (state, due) = next_poll(&self.memory.polling, &poll);
        let next_poll_in = self
            .come_again
            .unwrap_or_else(|| Moment::from(due.at).since(self.now));
        self.feed.demand_nano = (state.demand(poll.weight).0 * 1e9) as i64;
        self.memory.polling = state;
        let trouble = trouble.or_else(|| self.remark.take().map(AdapterErrorKind::remark));
        self.note_end(trouble.as_ref(), new);
        self.keep_move(store).await?;
        self.feed.policy = self.memory.to_json();
        let log = FetchLogRow {
            started_at: self.now,
            elapsed_ms: self.started.elapsed().as_millis() as i64,
            outcome: outcome.as_str().to_owned(),
            items_seen: seen as i64,
            items_new: new as i64,
            error_class: trouble.as_ref().map(|trouble| trouble.name.to_owned()),
            error_message: trouble.as_ref().map(|trouble| trouble.message.clone()),
            bytes: self.bytes as i64,
        };
        let ended = PollReport {
            feed_id: self.feed.feed_id,
            url: self.feed.url.clone(),
            outcome,
            items_seen: seen,
            items_new: new,
            error: trouble.map(|trouble| trouble.message),
            next_poll_in,
        };
        let result = PollResult {
            feed: self.feed,
            next_poll_in,
            log,
        };
        store.complete_poll(self.claim, &result).await?;
        Ok(ended)
    }

    /// Says what people should know, though nothing went wrong.
    pub(super) fn remark(&mut self, class: &'static str, what: String) {
        self.remark.get_or_insert((class, what));
    }

    fn note_end(&mut self, trouble: Option<&AdapterErrorKind>, new: usize) {
        self.feed.error_class = trouble.map(|trouble| trouble.name.to_owned());
        self.feed.last_error = trouble.map(|trouble| trouble.message.clone());
        let Some(trouble) = trouble.filter(|trouble| !trouble.is_remark) else {
            self.feed.consecutive_errors = 0;
            if new > 0 {
                self.feed.last_new_at = Some(self.now);
            }
            return;
        };
        self.feed.consecutive_errors += 1;
        if trouble.is_gone {
            self.feed.paused_reason = Some(trouble.message.clone());
            info!(feed = self.feed.url, "a feed is gone; it is paused");
        }
        if self.feed.consecutive_errors == LOUD_AFTER {
            error!(
                feed = self.feed.url,
                error = trouble.message,
                "a feed has failed ten times in a row"
            );
        }
    }

    /// The settings follow a feed that has moved.
    async fn keep_move(&self, store: &tidings_store::Store) -> Result<()> {
        if self.settings.to_json()
            == SourceSettings::of(&self.source)
                .map(|kept| kept.to_json())
                .unwrap_or_default()
        {
            return Ok(());
        }
        let moved = tidings_store::NewSource {
            name: self.source.name.clone(),
            url: self.source.url.clone(),
            kind: self.source.kind.clone(),
            priority: self.source.priority,
            config: self.settings.to_json(),
        };
        store.update_source(self.source.source_id, &moved).await
    }
}

pub(super) fn time(moment: Moment) -> Timestamp {
    Timestamp::from_millisecond(moment.0).unwrap_or_default()
}

/// Sources that matter more are polled more; 5 is the middle.
fn weight(priority: u8) -> f64 {
    f64::from(priority.clamp(1, 10)) / 5.0
}

fn period_length(period: UpdatePeriod) -> Duration {
    let hours = match period {
        UpdatePeriod::Hourly => 1,
        UpdatePeriod::Daily => 24,
        UpdatePeriod::Weekly => 24 * 7,
        UpdatePeriod::Monthly => 24 * 30,
        UpdatePeriod::Yearly => 24 * 365,
    };
    Duration::from_secs(hours * 3600)
}

fn day_number(day: &str) -> Option<u8> {
    const DAYS: [&str; 7] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    let at = DAYS
        .iter()
        .position(|name| day.trim().eq_ignore_ascii_case(name))?;
    u8::try_from(at).ok()
}

/// `max-age` of a `Cache-Control` header.
fn max_age(header: Option<&str>) -> Option<Duration> {
    let seconds = header?
        .split(',')
        .find_map(|part| part.trim().strip_prefix("max-age="))?;
    seconds
        .trim_matches('"')
        .parse()
        .ok()
        .map(Duration::from_secs)
}
