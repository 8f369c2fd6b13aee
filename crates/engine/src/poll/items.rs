//! Items of a feed as submissions: identity, priority, and the hints that travel
//! with each URL to its document. Pure.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use tidings_feed::{ContentQuality, Feed, Item};
use tidings_store::{GuidHash, Origin, Source, Submission, TitleHash};
use tidings_text::hex;
use tidings_url::legacy::url_and_title_id;
use tidings_url::{FetchUrl, ProxyHosts};

use crate::sources::{ITEM_PARAM, SourceSettings, priority, target};

/// The longest text of an item that is stored, in characters.
const MAX_TEXT: usize = 64 * 1024;
/// The same of an item that is a document.
const MAX_DOCUMENT_TEXT: usize = 2 * 1024 * 1024;

/// Why items are not submitted.
const NO_LINK: &str = "no link";
const NO_TEXT: &str = "neither title nor text";
pub(super) const INVALID_LINK: &str = "invalid link";

/// The items that can be submitted, each once, and the checksum of the set.
#[derive(Default)]
pub(super) struct Listed {
    pub(super) submissions: Vec<Submission>,
    /// For each submission, the position of its item.
    pub(super) item_of: Vec<usize>,
    pub(super) checksum: String,
    /// Items that cannot be submitted, by position, and why.
    pub(super) skipped: Vec<(usize, &'static str)>,
}

/// How the items of a list become submissions.
pub(super) struct Listing<'a> {
    pub(super) source: &'a Source,
    pub(super) settings: &'a SourceSettings,
    pub(super) proxies: &'a ProxyHosts,
    pub(super) now: jiff::Timestamp,
}

impl Listing<'_> {
    /// What the title of an item is compared by, if the source wants that.
    pub(super) fn title(&self, title: Option<&str>) -> Option<TitleHash> {
        let title = title.filter(|title| self.settings.title_week && !title.is_empty())?;
        Some(title_hash(title, self.now))
    }
}

/// The items of a feed. `with_guids`: a guid identifies its item.
pub(super) fn listed(
    feed: &Feed,
    feed_url: &FetchUrl,
    listing: &Listing<'_>,
    with_guids: bool,
) -> Listed {
    let Listing {
        source, settings, ..
    } = listing;
    let rules = settings.rules();
    let mut seen = std::collections::BTreeSet::new();
    let mut listed = Listed::default();
    for (at, item) in feed.items.iter().enumerate() {
        let url = match url_of(item, feed_url, settings, with_guids) {
            Ok(url) => url,
            Err(reason) => {
                listed.skipped.push((at, reason));
                continue;
            }
        };
        let hints = hints(feed, feed_url, item, &url, settings);
        let target = target(url, &rules, listing.proxies);
        if !seen.insert(target.key.to_string()) {
            continue;
        }
        listed.submissions.push(Submission {
            source_id: source.source_id,
            priority: priority(source.priority, Origin::Feed, 0),
            parent_url: Some(feed_url.as_str().to_owned()),
            item: Some(hints.to_string()),
            title: listing.title(item.title.as_deref()),
            guid: item
                .guid
                .as_deref()
                .filter(|guid| with_guids && settings.identifies(guid))
                .map(guid_hash),
            ..Submission::new(target, Origin::Feed)
        });
        listed.item_of.push(at);
    }
    listed.checksum = checksum(seen.iter().map(String::as_str));
    listed
}

/// The URL of an item, or why it cannot be submitted. An item without a link that is
/// a document has the URL of the feed, with its own identity.
fn url_of(
    item: &Item,
    feed_url: &FetchUrl,
    settings: &SourceSettings,
    with_guids: bool,
) -> Result<FetchUrl, &'static str> {
    let has_text = item.title.is_some() || item.content_quality != ContentQuality::TitleOnly;
    if settings.as_documents && !has_text {
        return Err(NO_TEXT);
    }
    let link = item.link.as_deref().map(|link| feed_url.join(link));
    let reason = match link {
        Some(Ok(url)) => return Ok(url),
        Some(Err(_)) => INVALID_LINK,
        None => NO_LINK,
    };
    if !settings.as_documents {
        return Err(reason);
    }
    let separator = if feed_url.as_url().query().is_some() {
        '&'
    } else {
        '?'
    };
    let guid = item.guid.as_deref();
    let guid = guid.filter(|guid| with_guids && settings.identifies(guid));
    let identity = hex::encode(guid.map_or_else(|| content_identity(item), guid_hash));
    let url = format!("{feed_url}{separator}{ITEM_PARAM}={identity}");
    FetchUrl::parse(&url).map_err(|_| reason)
}

/// The identity of an item that has neither a link nor a guid of its own: its title
/// and date, else its text.
fn content_identity(item: &Item) -> [u8; 16] {
    let text = || {
        let text = item.content.as_ref().or(item.summary.as_ref());
        text.map(tidings_feed::Markup::text)
    };
    let date = item.date().map(|date| date.to_string());
    let what = item.title.clone().or_else(text);
    let parts = [item.guid.clone(), date, what];
    half_hash(&parts.map(Option::unwrap_or_default).join("\n"))
}

/// Whether two items of a feed have the same guid and different links.
pub(super) fn repeats_guids(feed: &Feed) -> bool {
    let mut links: HashMap<&str, Option<&str>> = HashMap::new();
    feed.items.iter().any(|item| {
        let link = item.link.as_deref();
        let guid = item.guid.as_deref();
        guid.is_some_and(|guid| *links.entry(guid).or_insert(link) != link)
    })
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
fn hints(
    feed: &Feed,
    feed_url: &FetchUrl,
    item: &Item,
    url: &FetchUrl,
    settings: &SourceSettings,
) -> Json {
    let is_document = settings.as_documents;
    let max = if is_document {
        MAX_DOCUMENT_TEXT
    } else {
        MAX_TEXT
    };
    let cut = |text: String| -> Option<String> {
        let text: String = text.chars().take(max).collect();
        (!text.is_empty()).then_some(text)
    };
    let summary = item.summary.as_ref().map(tidings_feed::Markup::text);
    let mut content = item.content.as_ref();
    let mut plain_text = None;
    if is_document {
        let is_full = item.content_quality == ContentQuality::Full;
        content = content.filter(|content| is_full && content.is_html());
        let plain = item.content.as_ref().filter(|_| is_full);
        let plain = plain.map(|content| content.source().to_owned());
        let short = || summary.clone().filter(|text| !text.is_empty());
        plain_text = match content {
            Some(_) => None,
            None => plain.or_else(short).or_else(|| item.title.clone()),
        };
    }
    let link = item.link.as_deref().unwrap_or(url.as_str());
    let title = item.title.as_deref().unwrap_or_default();
    let mut hints = json!({
        "title": item.title,
        "summary": summary.and_then(cut),
        "content": content.map(|content| content.source().to_owned()).and_then(cut),
        "plain_text": plain_text.and_then(cut),
        "is_document": is_document.then_some(true),
        "content_quality": item.content_quality,
        "feed_md5": url_and_title_id(link, title),
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

pub(super) fn guid_hash(guid: &str) -> GuidHash {
    half_hash(guid)
}

fn half_hash(text: &str) -> [u8; 16] {
    let hash = Sha256::digest(text.as_bytes());
    let mut half = [0; 16];
    half.copy_from_slice(&hash[..16]);
    half
}

/// The hash of a title within the calendar week (ISO 8601, UTC) of `now`.
fn title_hash(title: &str, now: jiff::Timestamp) -> [u8; 16] {
    let week = now.to_zoned(TimeZone::UTC).date().iso_week_date();
    let words: Vec<String> = title
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let text = format!("{} {} {}", week.year(), week.week(), words.join(" "));
    half_hash(&text)
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

    fn parsed(items: &str) -> Feed {
        let xml = format!("<rss version='2.0'><channel><title>A</title>{items}</channel></rss>");
        tidings_feed::parse(xml.as_bytes(), &tidings_feed::Hints::default()).unwrap()
    }

    fn listed_of(items: &str, settings: &SourceSettings) -> Listed {
        let source = Source {
            source_id: 1,
            name: "a".to_owned(),
            url: "https://a.example/".to_owned(),
            kind: "feed".to_owned(),
            priority: 5,
            enabled: true,
            reason: None,
            config: Json::Null,
            created_at: tidings_store::Moment(0),
            updated_at: tidings_store::Moment(0),
        };
        let feed = parsed(items);
        let listing = Listing {
            source: &source,
            settings,
            proxies: &ProxyHosts::default(),
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        let url = "https://a.example/feed?x=1".parse().unwrap();
        listed(&feed, &url, &listing, !repeats_guids(&feed))
    }

    fn hints_of(listed: &Listed) -> Vec<Json> {
        let items = listed.submissions.iter().map(|submission| &submission.item);
        items
            .map(|item| serde_json::from_str(item.as_deref().unwrap()).unwrap())
            .collect()
    }

    const TEXTS: &str = "<item><title>T1</title><link>https://a.example/1</link><description>D</description>\
            <content:encoded xmlns:content='http://purl.org/rss/1.0/modules/content/'>&lt;p&gt;Whole&lt;/p&gt;</content:encoded></item>\
        <item><title>T2</title><link>https://a.example/2</link><description>Short</description></item>\
        <item><title>T3</title><link>https://a.example/3</link></item>";

    #[test]
    fn the_text_of_a_document_is_content_then_summary_then_title() {
        let settings = SourceSettings {
            as_documents: true,
            ..SourceSettings::default()
        };
        let hints = hints_of(&listed_of(TEXTS, &settings));
        let shown: Vec<_> = hints
            .iter()
            .map(|hints| {
                let text = hints.get("content").or(hints.get("plain_text"));
                (text.unwrap().as_str(), hints["content_quality"].as_str())
            })
            .collect();
        assert_eq!(
            shown,
            [
                (Some("<p>Whole</p>"), Some("full")),
                (Some("Short"), Some("stub")),
                (Some("T3"), Some("title_only")),
            ]
        );
        assert!(hints.iter().all(|hints| hints["is_document"] == true));
        // Expected from `printf %s https://a.example/3T3 | md5sum`.
        assert_eq!(hints[2]["feed_md5"], "58784ba9ec184ad04ef5126250b374d8");
        let pages = hints_of(&listed_of(TEXTS, &SourceSettings::default()));
        assert!(pages.iter().all(|hints| hints.get("is_document").is_none()));
        assert!(pages.iter().all(|hints| hints.get("plain_text").is_none()));
    }

    const UNLINKED: &str = "<item><guid isPermaLink='false'>tag:a.example,2026:1</guid><title>One</title></item>\
        <item><guid isPermaLink='false'>tag:a.example,2026:2</guid><title>One</title></item>\
        <item><title>Two</title></item><item><link>https://a.example/3</link></item>";

    #[test]
    fn items_without_a_link_are_kept_as_documents_or_counted() {
        let listed = listed_of(UNLINKED, &SourceSettings::default());
        assert_eq!(
            listed.skipped,
            [(0, NO_LINK), (1, NO_LINK), (2, NO_LINK)],
            "a page is fetched for the last"
        );
        let settings = SourceSettings {
            as_documents: true,
            strip_params: vec!["*".to_owned()],
            ..SourceSettings::default()
        };
        let listed = listed_of(UNLINKED, &settings);
        assert_eq!(listed.skipped, [(3, NO_TEXT)]);
        let urls: Vec<_> = listed
            .submissions
            .iter()
            .map(|submission| submission.target.url.as_str())
            .collect();
        assert_eq!(urls.len(), 3, "each has its own identity");
        for url in urls {
            assert!(
                url.starts_with("https://a.example/feed?x=1&tidings-item="),
                "{url}"
            );
        }
        // The identity is the guid's, whatever else changes.
        let edited = UNLINKED.replace("<title>One</title>", "<title>Changed</title>");
        let edited = listed_of(&edited, &settings);
        assert_eq!(edited.submissions[0].target, listed.submissions[0].target);
    }

    #[test]
    fn guids_that_repeat_identify_nothing() {
        let item = |link: &str, guid: &str| {
            format!(
                "<item><title>{link}</title><link>https://a.example/{link}</link><guid isPermaLink='false'>{guid}</guid></item>"
            )
        };
        let auto = SourceSettings::default();
        let explicit = SourceSettings {
            guid_is_identity: Some(true),
            ..SourceSettings::default()
        };
        let off = SourceSettings {
            guid_is_identity: Some(false),
            ..SourceSettings::default()
        };
        let guids = |items: &[String], settings: &SourceSettings| -> Vec<bool> {
            let listed = listed_of(&items.concat(), settings);
            let guids = listed.submissions.iter().map(|item| item.guid.is_some());
            guids.collect()
        };
        let good = [item("1", "g1"), item("2", "g2")];
        assert_eq!(guids(&good, &auto), [true, true]);
        assert_eq!(guids(&good, &off), [false, false]);
        let repeated = [item("1", "g1"), item("2", "g1")];
        assert_eq!(guids(&repeated, &auto), [false, false]);
        // Small numbers may be positions in the feed.
        let numbers = [item("1", "1"), item("2", "4711")];
        assert_eq!(guids(&numbers, &auto), [false, true]);
        assert_eq!(guids(&numbers, &explicit), [true, true]);
    }
}
