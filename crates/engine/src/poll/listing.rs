//! Visits of listings: pages of a site that list its stories, read by the spider.
//! Articles go to the frontier, lists that were not known become listings of the
//! source, and a trap is named where it was met. The home page is the first.

use std::time::Duration;

use tidings_net::{Media, Response};
use tidings_spider::{Found, Listing, Site, TrapSighting, gather};
use tidings_store::{Feed, Moment, Origin, Result, Submission};
use tidings_url::{FetchUrl, UrlKey};

use super::items::{Listed, checksum};
use super::one::{Polling, Read, time};
use super::take::Taken;
use super::trouble::AdapterErrorKind;
use super::{PollReport, Poller};
use crate::memory::{External, Memory};
use crate::outside::FetchResult;
use crate::registry::LISTING;
use crate::settings::{priority, target};

/// Lists of one source.
const MOST_LISTINGS: usize = 50;
/// Pages that have nothing to bring are looked at once in so long.
const RARELY: Duration = Duration::from_secs(30 * 86_400);
/// How much less an article of another site matters.
const EXTERNAL: u8 = 2;

const DAY_MS: i64 = 86_400_000;

impl Poller {
    /// Visits a listing, if its source may have another visit today.
    pub(super) async fn visit(
        &self,
        mut polling: Polling<'_>,
        url: FetchUrl,
    ) -> Result<Option<PollReport>> {
        let store = &self.outside.store;
        let midnight = Moment(polling.now.0 - polling.now.0.rem_euclid(DAY_MS));
        let source_id = polling.source.source_id;
        let visits = store.polls_since(source_id, LISTING, midnight).await?;
        let most = u64::from(polling.settings.pages_per_day);
        if visits >= most {
            let tomorrow = Moment(midnight.0 + DAY_MS).since(polling.now);
            store.defer_feed(polling.claim, tomorrow).await?;
            return Ok(None);
        }
        if polling.is_to_be_searched()
            && let Some(read) = self.find_feed_of_site(&mut polling, &url).await
        {
            return polling.end(self, read).await.map(Some);
        }
        let request = polling.request(url);
        let asked = self.outside.ask(request, polling.settings.manners());
        let read = match asked.await? {
            FetchResult::NotNow(wait) => {
                store.defer_feed(polling.claim, wait).await?;
                return Ok(None);
            }
            FetchResult::Failed(failure) => Read::Failed(AdapterErrorKind::of_failure(&failure)),
            FetchResult::Answered(response) => match polling.read(&response) {
                Read::Page => self.read_listing(&mut polling, &response).await?,
                read => read,
            },
        };
        if matches!(read, Read::NotModified | Read::SameBody) {
            polling.remark_again();
        }
        if polling.memory.depth > 0
            && matches!(&read, Read::Failed(trouble) if trouble.is_lasting())
        {
            polling.come_again = Some(RARELY);
        }
        if visits + 1 == most {
            let what = format!("the {most} visits of this day are spent; it goes on tomorrow");
            polling.remark("budget", what);
        }
        polling.end(self, read).await.map(Some)
    }

    /// What a page that came lists.
    pub(super) async fn read_listing(
        &self,
        polling: &mut Polling<'_>,
        response: &Response,
    ) -> Result<Read> {
        let wrong = |why: String| Ok(Read::Failed(AdapterErrorKind::hard("content", why)));
        let Ok(home) = FetchUrl::parse(&polling.source.url) else {
            return wrong(format!("{:?} is not an address", polling.source.url));
        };
        if !response.url.is_same_site(&home) {
            return wrong(format!("it leads to another site: {}", response.url));
        }
        if response.media != Media::Html {
            return wrong("it is no page".to_owned());
        }
        let known = self.listings_of(polling).await?;
        let addresses = known
            .iter()
            .filter_map(|feed| FetchUrl::parse(&feed.url).ok());
        let site = Site {
            rules: polling.settings.rules(),
            patterns: polling.settings.patterns(),
            max_depth: polling.settings.max_depth,
            max_listings: MOST_LISTINGS,
            listings: addresses.collect(),
            allows_external: polling.settings.external_per_day > 0 && polling.memory.depth == 0,
            ..Site::new(&home, time(polling.now))
        };
        let parent = polling.memory.parent.as_deref();
        let parent = parent.and_then(|parent| FetchUrl::parse(parent).ok());
        let text = response.text();
        let page = Listing {
            html: text.text.as_bytes(),
            charset: Some("utf-8"),
            url: &response.url,
            depth: polling.memory.depth as u16,
            parent: parent.as_ref(),
        };
        let found = gather(&page, &site);
        if found.articles.is_empty() && polling.memory.depth == 0 {
            return Ok(Read::Failed(polling.nothing_listed(&found)));
        }
        Ok(Read::Listing(Box::new(found)))
    }

    async fn listings_of(&self, polling: &Polling<'_>) -> Result<Vec<Feed>> {
        let store = &self.outside.store;
        let feeds = store.feeds_of_source(polling.source.source_id).await?;
        let listings = feeds.into_iter().filter(|feed| feed.kind == LISTING);
        Ok(listings.collect())
    }
}

impl Polling<'_> {
    pub(super) fn is_listing(&self) -> bool {
        self.feed.kind == LISTING
    }

    /// What was said of the same page still holds.
    fn remark_again(&mut self) {
        let last = self.claim.feed.last_error.clone();
        if let (Some("trap"), Some(what)) = (self.claim.feed.error_class.as_deref(), last) {
            self.remark("trap", what);
        }
    }

    fn nothing_listed(&mut self, found: &Found) -> AdapterErrorKind {
        let traps = match found.traps.is_empty() {
            true => String::new(),
            false => format!("; {}", told(&found.traps)),
        };
        let place = &self.feed.url;
        let nothing = format!("{place} links to no articles that we can tell{traps}");
        let message = match self.settings.ingestion_mode {
            Some(_) => nothing,
            None => {
                format!("{nothing}, and has no feed and no sitemap; it is searched again in a week")
            }
        };
        self.come_again_in_a_week();
        AdapterErrorKind::hard("content", message)
    }

    /// Submits what a listing lists, and makes the lists known that it leads to.
    pub(super) async fn take_listing(&mut self, poller: &Poller, found: &Found) -> Result<Taken> {
        for name in &found.session_params {
            let params = &mut self.settings.strip_params;
            if !params.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                params.push(name.clone());
            }
        }
        let listed = self.listed(poller, found).await?;
        let part = |submission: &Submission| part_of(&submission.target.key);
        let shown = listed.submissions.iter().map(part).collect();
        self.memory.shown = self.memory.shown.next(shown, self.now);
        let titles: Vec<_> = found
            .articles
            .iter()
            .map(|article| Some(&*article.text))
            .collect();
        let dates = vec![None; found.articles.len()];
        let taken = self.take(poller, listed, dates, &titles).await?;
        self.add_listings(poller, found).await?;
        let is_first = self.claim.feed.last_polled_at.is_none();
        let is_full_of_news = taken.seen > 0 && taken.new.len() >= taken.seen;
        if is_full_of_news && !is_first {
            self.wake_older(poller).await?;
        }
        let is_barren = found.articles.is_empty();
        if self.memory.is_older || is_barren {
            self.come_again = Some(RARELY);
        }
        if !found.traps.is_empty() {
            self.remark("trap", told(&found.traps));
        } else if is_barren {
            self.remark("content", "it lists no articles".to_owned());
        }
        Ok(taken)
    }

    pub(super) async fn listed(&mut self, poller: &Poller, found: &Found) -> Result<Listed> {
        let rules = self.settings.rules();
        let depth = self.memory.depth as u16 + 1;
        let ours = priority(self.source.priority, Origin::Spider, depth);
        let mut seen = std::collections::BTreeSet::new();
        let (mut submissions, mut item_of) = (Vec::new(), Vec::new());
        for (at, article) in found.articles.iter().enumerate() {
            let target = target(article.url.clone(), &rules, &poller.outside.proxies);
            if !seen.insert(target.key.to_string()) {
                continue;
            }
            let submission = Submission {
                source_id: self.source.source_id,
                priority: match article.is_external {
                    true => ours.saturating_sub(EXTERNAL).max(1),
                    false => ours,
                },
                depth,
                parent_url: Some(self.feed.url.clone()),
                ..Submission::new(target, Origin::Spider)
            };
            if article.is_external && !self.may_leave(poller, &submission).await? {
                continue;
            }
            submissions.push(submission);
            item_of.push(at);
        }
        Ok(Listed {
            submissions,
            item_of,
            checksum: checksum(seen.iter().map(String::as_str)),
        })
    }

    /// Whether an article of another site may be taken today.
    async fn may_leave(&mut self, poller: &Poller, article: &Submission) -> Result<bool> {
        if poller
            .outside
            .store
            .url(article.target.id())
            .await?
            .is_some()
        {
            return Ok(false);
        }
        let day = self.now.0.div_euclid(DAY_MS);
        let external = &mut self.memory.external;
        if external.day != day {
            *external = External { day, taken: 0 };
        }
        let may = external.taken < self.settings.external_per_day;
        external.taken += u32::from(may);
        Ok(may)
    }

    async fn add_listings(&self, poller: &Poller, found: &Found) -> Result<()> {
        for listing in &found.listings {
            let memory = Memory {
                depth: self.memory.depth + 1,
                parent: Some(self.feed.url.clone()),
                is_older: listing.is_older,
                ..Memory::default()
            };
            let (id, url) = (self.source.source_id, listing.url.as_str());
            let store = &poller.outside.store;
            store
                .add_child_feed(id, LISTING, url, &memory.to_json())
                .await?;
        }
        Ok(())
    }

    /// A page full of news has pushed some to the pages behind it.
    async fn wake_older(&self, poller: &Poller) -> Result<()> {
        for feed in poller.listings_of(self).await? {
            let memory = Memory::parse(&feed.policy);
            if memory.is_older && memory.parent.as_ref() == Some(&self.feed.url) {
                poller
                    .outside
                    .store
                    .resume_feed(feed.feed_id, self.now)
                    .await?;
            }
        }
        Ok(())
    }
}

/// Enough of a key to tell the articles of a page apart.
fn part_of(key: &UrlKey) -> u32 {
    let [a, b, c, d, ..] = *key.as_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// The traps of a page, in words.
fn told(traps: &[TrapSighting]) -> String {
    let one = |met: &TrapSighting| {
        let (trap, links, example) = (met.trap, met.links, &met.example);
        format!("{trap} ({links} links, such as {example})")
    };
    let all: Vec<String> = traps.iter().map(one).collect();
    format!("not followed into traps: {}", all.join(", "))
}
