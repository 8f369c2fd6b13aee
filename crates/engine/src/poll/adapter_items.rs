//! Items of a service as submissions: identity, priority, and the hints that travel
//! with each URL to its document. Pure.

use serde_json::{Value as Json, json};
use tidings_adapters::{AdapterItem, Pull, Text};
use tidings_store::{Origin, Source, Submission};
use tidings_url::FetchUrl;
use tidings_url::legacy::url_and_title_id;

use super::items::{INVALID_LINK, Listed, Listing, checksum, guid_hash};
use crate::sources::{SourceSettings, priority, target};

/// The longest text of an item that is stored, in characters.
const MAX_TEXT: usize = 8 * 1024 * 1024;

/// The items that have a URL, each once. A service knows its ids: their guids count
/// only if the source says so.
pub(super) fn listed(pull: &Pull, listing: &Listing<'_>) -> Listed {
    let Listing {
        source, settings, ..
    } = listing;
    let rules = settings.rules();
    let with_guids = settings.guid_is_identity == Some(true);
    let mut seen = std::collections::BTreeSet::new();
    let mut listed = Listed::default();
    for (at, item) in pull.items.iter().enumerate() {
        let Ok(url) = FetchUrl::parse(&item.url) else {
            listed.skipped.push((at, INVALID_LINK));
            continue;
        };
        let target = target(url, &rules, listing.proxies);
        if !seen.insert(target.key.to_string()) {
            continue;
        }
        listed.submissions.push(Submission {
            source_id: source.source_id,
            priority: priority(source.priority, Origin::Api, 0),
            parent_url: Some(source.url.clone()),
            item: Some(hints(item, source, settings).to_string()),
            title: listing.title(Some(&item.title)),
            guid: with_guids.then(|| guid_hash(&item.guid)),
            ..Submission::new(target, Origin::Api)
        });
        listed.item_of.push(at);
    }
    listed.checksum = checksum(seen.iter().map(String::as_str));
    listed
}

/// The hints that travel with the URL, with the keys of feed items.
fn hints(item: &AdapterItem, source: &Source, settings: &SourceSettings) -> Json {
    let content = match &item.text {
        Some(Text::Html(html)) => Some(html.chars().take(MAX_TEXT).collect::<String>()),
        _ => None,
    };
    let plain = match &item.text {
        Some(Text::Plain(text)) => Some(text.chars().take(MAX_TEXT).collect::<String>()),
        _ => None,
    };
    let mut hints = json!({
        "title": item.title,
        "summary": item.summary,
        "content": content,
        "plain_text": plain.filter(|_| settings.as_documents),
        "is_document": (settings.as_documents && item.text.is_some()).then_some(true),
        "content_type": item.content_type,
        "license": item.license,
        "feed_md5": url_and_title_id(&item.url, &item.title),
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
    if let Json::Object(fields) = &mut hints {
        fields.retain(|_, value| !value.is_null() && *value != json!([]));
    }
    hints
}
