//! Sitemaps as the poller sees them: which entries are recent enough to submit,
//! and which sitemaps of an index are due.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tidings_feed::sitemap::{Entry, Sitemap};
use tidings_store::{Feed, Moment, Origin, Result, Source, Store, Submission};
use tidings_url::{FetchUrl, ProxyHosts};

use super::feed_state::FeedState;
use super::items::{Listed, checksum};
use crate::sources::{SourceSettings, priority, target};

/// Levels of nested indexes that are followed.
const MAX_DEPTH: usize = 3;

/// The entries to submit, and the checksum of them all.
pub(super) fn listed(
    sitemap: &Sitemap,
    own_url: &FetchUrl,
    source: &Source,
    settings: &SourceSettings,
    proxies: &ProxyHosts,
    now: Timestamp,
) -> Listed {
    let rules = settings.rules();
    let mut seen = std::collections::BTreeSet::new();
    let (mut submissions, mut item_of) = (Vec::new(), Vec::new());
    for (at, entry) in sitemap.entries.iter().enumerate() {
        let Ok(url) = own_url.join(&entry.url) else {
            continue;
        };
        let target = target(url, &rules, proxies);
        let is_first = seen.insert(target.key.to_string());
        if !is_first || !is_wanted(date(entry, sitemap), settings, now) {
            continue;
        }
        submissions.push(Submission {
            source_id: source.source_id,
            priority: priority(source.priority, Origin::Sitemap, 0),
            parent_url: Some(own_url.as_str().to_owned()),
            item: hints(entry),
            ..Submission::new(target, Origin::Sitemap)
        });
        item_of.push(at);
    }
    Listed {
        submissions,
        item_of,
        checksum: checksum(seen.iter().map(String::as_str)),
    }
}

/// When an entry was published or changed, if that date is trusted.
pub(super) fn date(entry: &Entry, sitemap: &Sitemap) -> Option<Timestamp> {
    let news = entry.news.as_ref().and_then(|news| news.published);
    news.or(entry.lastmod.filter(|_| sitemap.lastmod_is_trusted))
}

fn is_wanted(date: Option<Timestamp>, settings: &SourceSettings, now: Timestamp) -> bool {
    match date {
        None => settings.sitemap_takes_undated,
        Some(date) => {
            let hours = i64::from(settings.sitemap_within_hours);
            now.duration_since(date) <= SignedDuration::from_hours(hours)
        }
    }
}

/// The hints of a news sitemap, which travel with the URL.
fn hints(entry: &Entry) -> Option<String> {
    let news = entry.news.as_ref()?;
    let hints = json!({
        "title": news.title,
        "published": news.published,
        "language": news.language,
        "image": entry.images.first(),
    });
    Some(hints.to_string())
}

/// The sitemaps of an index, news sitemaps last.
pub(super) fn news_last(index: &Sitemap, own_url: &FetchUrl) -> Vec<FetchUrl> {
    let urls = index.entries.iter();
    let mut urls: Vec<FetchUrl> = urls.filter_map(|e| own_url.join(&e.url).ok()).collect();
    urls.sort_by_key(|url| is_news(url.as_str()));
    urls
}

/// Adds the sitemaps of an index, and makes those due that have changed since their
/// last poll. Returns the number that are due.
pub(super) async fn follow_index(
    store: &Store,
    index: &Sitemap,
    own_url: &FetchUrl,
    own: &Feed,
    depth: usize,
    interval_ms: i64,
    now: Moment,
) -> Result<usize> {
    if depth >= MAX_DEPTH {
        return Ok(0);
    }
    let known = store.feeds_of_source(own.source_id).await?;
    let known: HashMap<&str, &Feed> = known
        .iter()
        .filter(|feed| feed.kind == "sitemap")
        .map(|feed| (feed.url.as_str(), feed))
        .collect();
    let mut due = 0;
    // Feeds due at the same time are polled in this order: news first.
    let mut entries: Vec<_> = index.entries.iter().collect();
    entries.sort_by_key(|entry| !is_news(&entry.url));
    for entry in entries {
        let Ok(url) = own_url.join(&entry.url) else {
            continue;
        };
        let lastmod = entry.lastmod.filter(|_| index.lastmod_is_trusted);
        match known.get(url.as_str()) {
            // The index itself, or one above it.
            Some(feed) if FeedState::parse(&feed.policy).depth <= depth => {}
            Some(feed) => {
                if has_changed(feed.last_polled_at, lastmod, interval_ms, now) {
                    let later = i64::from(!is_news(&feed.url));
                    store
                        .resume_feed(feed.feed_id, Moment(now.0 + later))
                        .await?;
                    due += 1;
                }
            }
            None => {
                let state = FeedState {
                    depth: depth + 1,
                    is_dated: lastmod.is_some(),
                    ..FeedState::default()
                };
                store
                    .add_child_feed(own.source_id, "sitemap", url.as_str(), &state.to_json())
                    .await?;
                due += 1;
            }
        }
    }
    Ok(due)
}

fn has_changed(
    polled: Option<Moment>,
    lastmod: Option<Timestamp>,
    interval_ms: i64,
    now: Moment,
) -> bool {
    match (polled, lastmod) {
        (None, _) => true,
        // A day's date may mean any hour of that day.
        (Some(polled), Some(lastmod)) => {
            let slack = if lastmod.as_second() % 86_400 == 0 {
                86_400_000
            } else {
                0
            };
            lastmod.as_millisecond() + slack >= polled.0
        }
        (Some(polled), None) => now.0 - polled.0 >= interval_ms,
    }
}

/// News sitemaps are recognized by their path, as publishers are advised to name
/// them.
fn is_news(url: &str) -> bool {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let name = path.split_once('/').map_or("", |(_, name)| name);
    name.to_ascii_lowercase().contains("news")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_sitemaps_are_recognized_by_their_path() {
        let rows = [
            ("https://a.example/news-sitemap.xml", true),
            ("https://a.example/sitemaps/Google-News.xml.gz", true),
            ("https://news.example/sitemap-2020.xml", false),
            ("https://a.example/", false),
        ];
        for (url, expected) in rows {
            assert_eq!(is_news(url), expected, "{url}");
        }
    }

    #[test]
    fn only_changed_sitemaps_are_polled() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let moment = |text: &str| Moment::from(at(text));
        let now = moment("2026-11-15T12:00:00Z");
        let polled = Some(moment("2026-11-15T06:00:00Z"));
        let hour = 3_600_000;
        let rows = [
            ("never polled", None, Some(at("2020-01-01T00:00:00Z")), true),
            ("older", polled, Some(at("2026-11-15T05:59:59Z")), false),
            ("newer", polled, Some(at("2026-11-15T06:30:00Z")), true),
            (
                "the same day, without an hour",
                polled,
                Some(at("2026-11-15T00:00:00Z")),
                true,
            ),
            (
                "the day before, without an hour",
                polled,
                Some(at("2026-11-14T00:00:00Z")),
                false,
            ),
            ("undated, a while ago", polled, None, true),
        ];
        for (name, polled, lastmod, expected) in rows {
            assert_eq!(
                has_changed(polled, lastmod, 6 * hour, now),
                expected,
                "{name}"
            );
        }
        assert!(
            !has_changed(polled, None, 7 * hour, now),
            "undated, a moment ago"
        );
    }

    #[test]
    fn old_entries_are_ignored() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let settings = SourceSettings::default();
        let rows = [
            (Some("2026-11-15T11:00:00Z"), true),
            (Some("2026-11-13T12:00:00Z"), true),
            (Some("2026-11-13T11:59:59Z"), false),
            (Some("2026-11-16T00:00:00Z"), true),
            (None, true),
        ];
        for (date, expected) in rows {
            let date = date.map(|text| text.parse().unwrap());
            assert_eq!(is_wanted(date, &settings, now), expected, "{date:?}");
        }
        let strict = SourceSettings {
            sitemap_takes_undated: false,
            ..settings
        };
        assert!(!is_wanted(None, &strict, now));
    }
}
