//! The state of one poll in flight: the request it sends, what its response
//! contains, and what that changes in the feed. Distinguishes not modified, same
//! body, parsed and failed. No I/O.

use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tidings_adapters::Pull;
use tidings_feed::sitemap::{self as sitemaps, Sitemap};
use tidings_feed::{DefectKind, Defects, Feed as ParsedFeed, Hints as ParseHints, UpdatePeriod};
use tidings_net::{Limits, Media, Purpose, Request, Response};
use tidings_polling::Policy;
use tidings_spider::Found;
use tidings_store::{Feed, FeedClaim, Moment, Source};
use tidings_text::hex;
use tidings_url::FetchUrl;
use tracing::info;

use super::feed_state::FeedState;
use super::poll_error::{LIMITED, PollError, SKIPPED};
use crate::sources::{LISTING, SourceSettings};

/// Bytes that a feed costs for each byte of it: its items, and their submissions.
const READING_COST: u64 = 2;
/// Defects by which items are missing.
const LOSSES: [DefectKind; 3] = [
    DefectKind::TooMany,
    DefectKind::Truncated,
    DefectKind::DamagedGzip,
];

/// What a poll read.
pub(super) enum FeedRead {
    NotModified,
    /// Nothing was read, but the URL of the feed was found.
    Found,
    SameBody,
    Feed(Box<ParsedFeed>),
    Sitemap(Box<Sitemap>),
    Pulled(Box<Pull>),
    /// An HTML page of a listing, not parsed yet.
    Page,
    Listing(Box<Found>),
    Failed(PollError),
}

/// A poll in flight.
pub(super) struct FeedPoll<'a> {
    pub(super) claim: &'a FeedClaim,
    pub(super) source: Source,
    pub(super) settings: SourceSettings,
    pub(super) state: FeedState,
    /// The row as it will be stored.
    pub(super) feed: Feed,
    pub(super) now: Moment,
    pub(super) started: std::time::Instant,
    pub(super) bytes: u64,
    /// Time until the next poll, if the policy does not decide it.
    pub(super) next_poll_in: Option<Duration>,
    /// A remark on a poll that succeeded: class and message.
    pub(super) remark: Option<(&'static str, String)>,
    /// Items are left for another day, so this response must come again.
    pub(super) is_cut: bool,
    /// A sitemap below an index without recent entries.
    pub(super) is_stale: bool,
}

impl<'a> FeedPoll<'a> {
    pub(super) fn new(
        claim: &'a FeedClaim,
        source: Source,
        settings: SourceSettings,
        now: Moment,
    ) -> Self {
        Self {
            claim,
            state: FeedState::parse(&claim.feed.policy),
            feed: claim.feed.clone(),
            source,
            settings,
            now,
            started: std::time::Instant::now(),
            bytes: 0,
            next_poll_in: None,
            remark: None,
            is_cut: false,
            is_stale: false,
        }
    }

    /// The URL in the settings is authoritative; a new one resets the state.
    pub(super) fn follow_settings(&mut self) {
        let wanted = match self.feed.kind.as_str() {
            _ if self.state.depth > 0 => None,
            LISTING => Some(self.source.url.as_str()),
            "sitemap" => self.settings.sitemap_url.as_ref().map(FetchUrl::as_str),
            _ => self.settings.feed_url.as_ref().map(FetchUrl::as_str),
        };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != self.feed.url) {
            self.feed.url = wanted.to_owned();
            self.expect_everything();
            self.state = FeedState::default();
        }
    }

    /// Forgets the last response, so that the next one is read whatever it is.
    pub(super) fn expect_everything(&mut self) {
        self.feed.etag = None;
        self.feed.last_modified = None;
        self.feed.body_hash = None;
        self.feed.items_checksum = None;
    }

    /// Whether this is a sitemap that an index listed.
    pub(super) fn is_child_sitemap(&self) -> bool {
        self.is_sitemap() && self.state.depth > 0
    }

    /// The URL of the feed. It was parsed before the request.
    pub(super) fn url(&self) -> FetchUrl {
        FetchUrl::parse(&self.feed.url).expect("a URL that was fetched parses")
    }

    pub(super) fn is_listing(&self) -> bool {
        self.feed.kind == LISTING
    }

    /// Whether a page came instead of a feed.
    pub(super) fn is_page(&self, response: &Response) -> bool {
        self.feed.kind == "feed" && response.is_success() && response.media == Media::Html
    }

    fn is_sitemap(&self) -> bool {
        self.feed.kind == "sitemap"
    }

    /// Feeds have the policy of their source, sitemaps an interval; a sitemap whose
    /// index is dated is polled when the index says so, and once per week.
    pub(super) fn policy(&self) -> Policy {
        let hours = |hours: u64| Policy::Fixed {
            every: Duration::from_secs(hours * 3600),
        };
        match self.is_sitemap() {
            false if self.is_listing() => Policy::Listing {
                turnover: self.state.shown.turnover(),
            },
            // A service is polled as often as its quota allows, or at its interval.
            false if self.settings.adapter().is_some() => self.settings.interval(),
            false => self.settings.policy(),
            true if self.state.is_dated => hours(24 * 7),
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
        if self.state.is_full_fetch_due(self.now) {
            self.state.full_at = Some(self.now.0);
        } else {
            request.etag.clone_from(&self.feed.etag);
            request.last_modified.clone_from(&self.feed.last_modified);
        }
        request
    }

    /// Bytes of memory that parsing the response may need beside it.
    pub(super) fn reading_cost(&self, response: &Response, limits: &Limits) -> u64 {
        let is_gzip = response.body.starts_with(&[0x1f, 0x8b]);
        let bytes = match is_gzip {
            true if self.is_sitemap() => limits.sitemap_bytes,
            true => limits.feed_bytes,
            false => response.body.len() as u64,
        };
        bytes * READING_COST
    }

    pub(super) fn read(&mut self, response: &Response) -> FeedRead {
        self.bytes = response.wire_bytes;
        if response.status == 304 {
            return FeedRead::NotModified;
        }
        if !response.is_success() {
            return FeedRead::Failed(PollError::of_status(response));
        }
        let header = |name: &str| response.header(name).map(str::to_owned);
        self.feed.etag = header("etag");
        self.feed.last_modified = header("last-modified");
        self.state.hints.max_age = max_age(response.header("cache-control"));
        let body_hash = hex::encode(Sha256::digest(&response.body));
        if self.feed.body_hash.as_ref() == Some(&body_hash) {
            return FeedRead::SameBody;
        }
        if self.is_listing() {
            self.feed.body_hash = Some(body_hash);
            return FeedRead::Page;
        }
        let hints = ParseHints {
            content_type: response.header("content-type"),
            url: Some(response.url.as_url()),
            now: Some(timestamp(self.now)),
            ..ParseHints::default()
        };
        let read = match self.is_sitemap() {
            true => sitemaps::parse(&response.body, &hints).map(|map| {
                self.remark_losses(&map.defects, response);
                FeedRead::Sitemap(Box::new(map))
            }),
            false => tidings_feed::parse(&response.body, &hints).map(|feed| {
                self.record_hints(&feed, response);
                self.remark_losses(&feed.defects, response);
                FeedRead::Feed(Box::new(feed))
            }),
        };
        match read {
            Ok(read) => {
                self.feed.body_hash = Some(body_hash);
                self.follow_move(response);
                read
            }
            Err(error) => FeedRead::Failed(PollError::hard("content", error.to_string())),
        }
    }

    /// Remarks that items are missing, and why.
    fn remark_losses(&mut self, defects: &Defects, response: &Response) {
        if response.is_cut {
            let bytes = response.body.len();
            let message = format!("larger than {bytes} bytes: what follows is not read");
            return self.add_remark(LIMITED, message);
        }
        let is_loss = |kind: DefectKind| LOSSES.contains(&kind);
        if let Some(defect) = defects.iter().find(|defect| is_loss(defect.kind)) {
            let message = format!("{} at line {}: {}", defect.kind, defect.line, defect.detail);
            let class = match defect.kind {
                DefectKind::TooMany => LIMITED,
                _ => "content",
            };
            self.add_remark(class, message);
        }
    }

    /// Follows a permanent redirect when it is seen twice.
    fn follow_move(&mut self, response: &Response) {
        let is_permanent =
            !response.hops.is_empty() && response.hops.iter().all(tidings_net::Hop::is_permanent);
        let target = is_permanent.then(|| response.url.as_str().to_owned());
        if target.is_some() && target == self.state.moving_to {
            info!(
                from = self.feed.url,
                to = response.url.as_str(),
                "feed moved"
            );
            match self.is_sitemap() {
                true if self.state.depth > 0 => {}
                true => self.settings.sitemap_url = Some(response.url.clone()),
                false => self.settings.feed_url = Some(response.url.clone()),
            }
            self.feed.url = response.url.as_str().to_owned();
            self.state.moving_to = None;
        } else {
            self.state.moving_to = target;
        }
    }

    /// Records the polling hints of the publisher.
    fn record_hints(&mut self, feed: &ParsedFeed, response: &Response) {
        let hints = &mut self.state.hints;
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

    /// Adds a remark, shown like an error though the poll succeeded.
    pub(super) fn add_remark(&mut self, class: &'static str, message: String) {
        match &mut self.remark {
            None => self.remark = Some((class, message)),
            // That a limit was reached is reported beside what else was remarked.
            Some((known, text)) if class == LIMITED => {
                *known = LIMITED;
                *text = format!("{text}; {message}");
            }
            Some((_, text)) if class == SKIPPED => *text = format!("{text}; {message}"),
            Some(_) => {}
        }
    }
}

pub(super) fn timestamp(moment: Moment) -> Timestamp {
    Timestamp::from_millisecond(moment.0).unwrap_or_default()
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
