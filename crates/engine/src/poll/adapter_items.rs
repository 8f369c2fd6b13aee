//! Items of a service as submissions: identity, priority, and the hints that travel
//! with each URL to its document. Pure.

use serde_json::{Value as Json, json};
use tidings_adapters::{AdapterItem, Pull, Text};
use tidings_store::{Origin, Source, Submission};
use tidings_url::{FetchUrl, ProxyHosts};

use super::items::{Listed, checksum};
use crate::sources::{SourceSettings, priority, target};

/// The longest text of an item that is stored, in characters.
const MAX_TEXT: usize = 8 * 1024 * 1024;

/// The items that have a URL, each once.
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
            item: Some(hints(item, source, settings).to_string()),
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
