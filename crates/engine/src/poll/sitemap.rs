//! Sitemaps as the poller sees them: which entries are recent enough to submit.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tidings_feed::sitemap::{Entry, Sitemap};
use tidings_store::{Origin, Submission};
use tidings_url::FetchUrl;

use super::items::{INVALID_LINK, Listed, Listing, checksum};
use crate::sources::{SourceSettings, Undated, priority, target};

/// A sitemap below an index whose entries are all older is retired.
const STALE_AFTER: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The entries to submit, and the checksum of them all.
pub(super) fn listed(sitemap: &Sitemap, own_url: &FetchUrl, listing: &Listing<'_>) -> Listed {
    let Listing {
        source, settings, ..
    } = listing;
    let rules = settings.rules();
    let mut seen = std::collections::BTreeSet::new();
    let mut listed = Listed::default();
    for (at, entry) in sitemap.entries.iter().enumerate() {
        let Ok(url) = own_url.join(&entry.url) else {
            listed.skipped.push((at, INVALID_LINK));
            continue;
        };
        let target = target(url, &rules, listing.proxies);
        let is_first = seen.insert(target.key.to_string());
        if !is_first || !is_wanted(date(entry, sitemap), settings, listing.now) {
            continue;
        }
        listed.submissions.push(Submission {
            source_id: source.source_id,
            priority: priority(source.priority, Origin::Sitemap, 0),
            parent_url: Some(own_url.as_str().to_owned()),
            item: hints(entry),
            ..Submission::new(target, Origin::Sitemap)
        });
        listed.item_of.push(at);
    }
    listed.checksum = checksum(seen.iter().map(String::as_str));
    listed
}

/// When an entry was published or changed, if that date is trusted.
pub(super) fn date(entry: &Entry, sitemap: &Sitemap) -> Option<Timestamp> {
    let news = entry.news.as_ref().and_then(|news| news.published);
    news.or(entry.lastmod.filter(|_| sitemap.lastmod_is_trusted))
}

fn is_wanted(date: Option<Timestamp>, settings: &SourceSettings, now: Timestamp) -> bool {
    match date {
        None => settings.sitemap_undated == Undated::Take,
        Some(date) => {
            let hours = i64::from(settings.sitemap_within_hours);
            now.duration_since(date) <= SignedDuration::from_hours(hours)
        }
    }
}

/// Whether a sitemap has nothing recent: all its entries are dated and old, or it has
/// none. A news sitemap may be empty between two stories.
pub(super) fn is_stale(
    sitemap: &Sitemap,
    url: &str,
    settings: &SourceSettings,
    now: Timestamp,
) -> bool {
    let hours = i64::from(settings.sitemap_within_hours);
    let limit = STALE_AFTER.max(SignedDuration::from_hours(hours));
    let is_old =
        |entry: &Entry| date(entry, sitemap).is_some_and(|date| now.duration_since(date) > limit);
    sitemap.entries.iter().all(is_old) && !(sitemap.entries.is_empty() && is_news(url))
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

/// News sitemaps are recognized by their path, as publishers are advised to name
/// them.
pub(super) fn is_news(url: &str) -> bool {
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
            sitemap_undated: Undated::Skip,
            ..settings
        };
        assert!(!is_wanted(None, &strict, now));
    }
}
