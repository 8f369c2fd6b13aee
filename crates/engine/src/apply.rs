//! Sources as a file describes them: what is missing is added, what differs is
//! changed, the rest is left alone. Everything is checked before anything is
//! written.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value as Json};
use thiserror::Error;
use tidings_store::{Source, Store};
use tidings_url::FetchUrl;

use crate::registry::{RegistryError, SourceDraft, add_source, change_source};
use crate::settings::SourceSettings;

/// What is wrong with the file: each entry with its reason.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{}", .0.join("\n"))]
pub struct SourceFileError(Vec<String>);

/// What was (or would be) done, by name.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Applied {
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    pub unchanged: usize,
}

/// Reads the `[[source]]` entries of a file, given as JSON.
pub fn read_sources(file: &Json) -> Result<Vec<SourceDraft>, SourceFileError> {
    let mut wrong = Vec::new();
    let fields = file.as_object().cloned().unwrap_or_default();
    for key in fields.keys().filter(|key| *key != "source") {
        wrong.push(format!(
            "{key} is unknown; sources are entries of [[source]]"
        ));
    }
    let entries = match fields.get("source") {
        Some(Json::Array(entries)) => entries.as_slice(),
        Some(_) => {
            wrong.push("source is not a list; write [[source]]".to_owned());
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
                wrong.push(format!("{place}: the name {:?} is there twice", draft.name));
            }
            Some(Ok(draft)) => drafts.push(draft),
            Some(Err(why)) => wrong.push(why),
            None => wrong.push(format!("{place} is not a table")),
        }
    }
    match wrong.is_empty() {
        true => Ok(drafts),
        false => Err(SourceFileError(wrong)),
    }
}

fn draft(entry: &Map<String, Json>, place: &str) -> Result<SourceDraft, String> {
    let mut settings = entry.clone();
    let text = |value: Option<Json>, key: &str| match value {
        Some(Json::String(text)) if !text.trim().is_empty() => Ok(text),
        Some(_) => Err(format!("{place}: {key} is not a text")),
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
                    "{place} ({name}): priority is {value}, and may be from 1 to 10"
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

/// Makes the registry say what the file says. Sources that the file does not
/// name are removed only if that is asked for.
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
                    change_source(store, &source, &keeping_found(&source, draft)).await?;
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

/// What a poller found out is kept where the file says nothing of it.
fn keeping_found(source: &Source, draft: &SourceDraft) -> SourceDraft {
    let mut draft = draft.clone();
    if let Ok(kept) = SourceSettings::of(source) {
        let settings = &mut draft.settings;
        settings.feed_url = settings.feed_url.take().or(kept.feed_url);
        settings.sitemap_url = settings.sitemap_url.take().or(kept.sitemap_url);
    }
    draft
}

fn is_same(source: &Source, draft: &SourceDraft) -> Result<bool, RegistryError> {
    let wanted = keeping_found(source, draft).row()?;
    // As it would be read: settings that are not written have their defaults.
    let kept = SourceSettings::of(source).map(|kept| kept.to_json());
    Ok(kept.is_ok_and(|kept| kept == wanted.config)
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
    fn every_wrong_entry_is_named_with_its_reason() {
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
            "source 6: the name \"a.example\" is there twice",
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
