//! Items of a feed as submissions: identity, priority, and the hints that travel
//! with each URL to its document. Pure.

use jiff::tz::TimeZone;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use tidings_feed::{Feed, Item};
use tidings_store::{Origin, Source, Submission};
use tidings_text::hex;
use tidings_url::{FetchUrl, ProxyHosts};

use crate::sources::{SourceSettings, priority, target};

/// The longest text of an item that is stored, in characters.
const MAX_TEXT: usize = 64 * 1024;

/// The items that have a URL, each once, and the checksum of the set.
pub(super) struct Listed {
    pub(super) submissions: Vec<Submission>,
    /// For each submission, the position of its item.
    pub(super) item_of: Vec<usize>,
    pub(super) checksum: String,
}

pub(super) fn listed(
    feed: &Feed,
    feed_url: &FetchUrl,
    source: &Source,
    settings: &SourceSettings,
    proxies: &ProxyHosts,
) -> Listed {
    let rules = settings.rules();
    let mut seen = std::collections::BTreeSet::new();
    let (mut submissions, mut item_of) = (Vec::new(), Vec::new());
    for (at, item) in feed.items.iter().enumerate() {
        let link = item
            .link
            .as_deref()
            .and_then(|link| feed_url.join(link).ok());
        let Some(url) = link else {
            continue;
        };
        let target = target(url, &rules, proxies);
        if !seen.insert(target.key.to_string()) {
            continue;
        }
        submissions.push(Submission {
            source_id: source.source_id,
            priority: priority(source.priority, Origin::Feed, 0),
            parent_url: Some(feed_url.as_str().to_owned()),
            item: Some(hints(feed, feed_url, item).to_string()),
            ..Submission::new(target, Origin::Feed)
        });
        item_of.push(at);
    }
    Listed {
        submissions,
        item_of,
        checksum: checksum(seen.iter().map(String::as_str)),
    }
}

/// Of a sorted set, so that the order of a feed does not matter.
pub(super) fn checksum<'a>(keys: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for key in keys {
        hash.update(key.as_bytes());
        hash.update(b"\n");
    }
    hex::encode(hash.finalize())
}

/// The hints that travel with the URL to its document.
fn hints(feed: &Feed, feed_url: &FetchUrl, item: &Item) -> Json {
    let cut = |text: String| -> Option<String> {
        let text: String = text.chars().take(MAX_TEXT).collect();
        (!text.is_empty()).then_some(text)
    };
    let mut hints = json!({
        "title": item.title,
        "summary": item.summary.as_ref().map(tidings_feed::Markup::text).and_then(cut),
        "content": item.content.as_ref().map(|content| content.source().to_owned()).and_then(cut),
        "content_quality": item.content_quality,
        "guid": item.guid,
        "authors": item.authors,
        "categories": item.categories,
        "published": item.published,
        "updated": item.updated,
        "image": item.image,
        "language": item.language.as_ref().or(feed.language.as_ref()),
        "comments": item.comments,
        "feed_title": feed.title,
        "feed_url": feed_url.as_str(),
    });
    if let Json::Object(fields) = &mut hints {
        fields.retain(|_, value| !value.is_null() && *value != json!([]));
    }
    hints
}

/// The hash of a title within the calendar week (ISO 8601, UTC) of `now`.
pub(super) fn title_hash(title: &str, now: jiff::Timestamp) -> [u8; 16] {
    let week = now.to_zoned(TimeZone::UTC).date().iso_week_date();
    let words: Vec<String> = title
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let text = format!("{} {} {}", week.year(), week.week(), words.join(" "));
    let hash = Sha256::digest(text.as_bytes());
    let mut half = [0; 16];
    half.copy_from_slice(&hash[..16]);
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_the_same_within_their_week() {
        let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
        let monday = at("2026-11-09T00:00:00Z");
        let sunday = at("2026-11-15T23:59:59Z");
        let next = at("2026-11-16T00:00:00Z");
        let hash = title_hash("Harbour plan: council votes", monday);
        assert_eq!(title_hash("  harbour PLAN – council, votes!", sunday), hash);
        assert_ne!(title_hash("Harbour plan: council votes", next), hash);
        assert_ne!(title_hash("Harbour plan: council voted", monday), hash);
    }

    #[test]
    fn the_order_of_a_feed_does_not_change_its_checksum() {
        let sum = |keys: &[&str]| {
            let set: std::collections::BTreeSet<_> = keys.iter().copied().collect();
            checksum(set.into_iter())
        };
        assert_eq!(sum(&["a", "b"]), sum(&["b", "a"]));
        assert_ne!(sum(&["a", "b"]), sum(&["ab"]));
    }
}
