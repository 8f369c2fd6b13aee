//! Sync of the registry with a file of sources: missing sources are added,
//! different ones are changed, equal ones stay. Everything is validated before
//! anything is written.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value as Json};
use thiserror::Error;
use tidings_store::{Source, Store};
use tidings_url::FetchUrl;

use super::registry::{RegistryError, SourceDraft, add_source, change_source};
use super::settings::SourceSettings;

/// The invalid entries of the file, each with its reason.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{}", .0.join("\n"))]
pub struct SourceFileError(Vec<String>);

/// What was (or would be) changed, by name.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Applied {
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    pub unchanged: usize,
}

/// Parses the `[[source]]` entries of a file, converted to JSON.
pub fn read_sources(file: &Json) -> Result<Vec<SourceDraft>, SourceFileError> {
    let mut errors = Vec::new();
    let fields = file.as_object().cloned().unwrap_or_default();
    for key in fields.keys().filter(|key| *key != "source") {
        errors.push(format!(
            "{key} is unknown; sources are entries of [[source]]"
        ));
    }
    let entries = match fields.get("source") {
        Some(Json::Array(entries)) => entries.as_slice(),
        Some(_) => {
            errors.push("source is not a list; write [[source]]".to_owned());
            &[]
        }
        None => &[],
    };
    let mut drafts = Vec::new();
    let mut names = BTreeSet::new();
    for (number, entry) in entries.iter().enumerate() {
        let place = format!("source {}", number + 1);
        match entry.as_object().map(|entry| draft(entry, &place)) {
            Some(Ok(draft)) if !names.insert(draft.name.clone()) => {
                errors.push(format!("{place}: the name {:?} is used twice", draft.name));
            }
            Some(Ok(draft)) => drafts.push(draft),
            Some(Err(why)) => errors.push(why),
            None => errors.push(format!("{place} is not a table")),
        }
    }
    match errors.is_empty() {
        true => Ok(drafts),
        false => Err(SourceFileError(errors)),
    }
}

fn draft(entry: &Map<String, Json>, place: &str) -> Result<SourceDraft, String> {
    let mut settings = entry.clone();
    let text = |value: Option<Json>, key: &str| match value {
        Some(Json::String(text)) if !text.trim().is_empty() => Ok(text),
        Some(_) => Err(format!("{place}: {key} is not a string")),
        None => Err(format!("{place}: {key} is missing")),
    };
    let url = text(settings.remove("url"), "url")?;
    let url = FetchUrl::parse(&url).map_err(|error| format!("{place}: url {url:?}: {error}"))?;
    let name = match settings.remove("name") {
        None => url.host().to_owned(),
        name => text(name, "name")?,
    };
    let priority = match settings.remove("priority") {
        None => 5,
        Some(value) => match value.as_u64() {
            Some(number @ 1..=10) => number as u8,
            _ => {
                return Err(format!(
                    "{place} ({name}): priority is {value}; valid: from 1 to 10"
                ));
            }
        },
    };
    let settings = SourceSettings::parse(&name, &Json::Object(settings))
        .map_err(|error| format!("{place} ({name}): {}", error.why()))?;
    Ok(SourceDraft {
        name,
        url,
        priority,
        settings,
    })
}

/// Syncs the registry with the file. Sources that the file does not name are
/// removed only with `prune`.
pub async fn apply(
    store: &Store,
    drafts: &[SourceDraft],
    prune: bool,
    dry_run: bool,
) -> Result<Applied, RegistryError> {
    let mut applied = Applied::default();
    for draft in drafts {
        match store.source_named(&draft.name).await? {
            None => {
                applied.added.push(draft.name.clone());
                if !dry_run {
                    add_source(store, draft).await?;
                }
            }
            Some(source) if is_same(&source, draft)? => applied.unchanged += 1,
            Some(source) => {
                applied.changed.push(draft.name.clone());
                if !dry_run {
                    change_source(store, &source, &with_found_urls(&source, draft)).await?;
                }
            }
        }
    }
    if prune {
        let named: BTreeSet<_> = drafts.iter().map(|draft| draft.name.as_str()).collect();
        remove_others(store, &named, dry_run, &mut applied).await?;
    }
    Ok(applied)
}

/// Feed and sitemap URLs that a poller found stay where the file sets none.
fn with_found_urls(source: &Source, draft: &SourceDraft) -> SourceDraft {
    let mut draft = draft.clone();
    if let Ok(stored) = SourceSettings::of(source) {
        let settings = &mut draft.settings;
        settings.feed_url = settings.feed_url.take().or(stored.feed_url);
        settings.sitemap_url = settings.sitemap_url.take().or(stored.sitemap_url);
    }
    draft
}

fn is_same(source: &Source, draft: &SourceDraft) -> Result<bool, RegistryError> {
    let wanted = with_found_urls(source, draft).row()?;
    // Compared as parsed, so that missing settings equal their defaults.
    let stored = SourceSettings::of(source).map(|stored| stored.to_json());
    Ok(stored.is_ok_and(|stored| stored == wanted.config)
        && source.url == wanted.url
        && source.priority == wanted.priority)
}

async fn remove_others(
    store: &Store,
    named: &BTreeSet<&str>,
    dry_run: bool,
    applied: &mut Applied,
) -> Result<(), RegistryError> {
    let mut after = i64::MIN;
    loop {
        let sources = store.sources_after(after, 1000).await?;
        let Some(last) = sources.last() else {
            return Ok(());
        };
        after = last.source_id;
        for source in &sources {
            if named.contains(source.name.as_str()) {
                continue;
            }
            applied.removed.push(source.name.clone());
            if !dry_run {
                store.remove_source(source.source_id).await?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_invalid_entry_is_named_with_its_reason() {
        let file = json!({ "sources": 1, "source": [
            { "url": "https://a.example/" },
            { "name": "b" },
            { "url": "ftp://c.example/" },
            { "url": "https://d.example/", "priority": 11 },
            { "url": "https://e.example/", "feed_ulr": "x" },
            { "name": "a.example", "url": "https://f.example/" },
            7,
        ]});
        let error = read_sources(&file).unwrap_err().to_string();
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(lines.len(), 7, "{error}");
        for (line, part) in lines.iter().zip([
            "sources is unknown",
            "source 2: url is missing",
            "source 3: url \"ftp://c.example/\"",
            "source 4 (d.example): priority is 11",
            "source 5 (e.example): unknown field `feed_ulr`",
            "source 6: the name \"a.example\" is used twice",
            "source 7 is not a table",
        ]) {
            assert!(line.starts_with(part), "{line} / {part}");
        }
    }

    #[test]
    fn an_entry_has_all_settings_of_a_source() {
        let file = json!({ "source": [{
            "url": "https://a.example/", "name": "a", "priority": 8, "tags": ["x"], "rate_limit": 0.5,
            "feed_url": "https://a.example/feed", "recrawl": { "min_hours": 1, "max_hours": 48 },
        }]});
        let drafts = read_sources(&file).unwrap();
        assert_eq!((drafts[0].name.as_str(), drafts[0].priority), ("a", 8));
        assert_eq!(drafts[0].settings.tags, ["x"]);
    }
}
