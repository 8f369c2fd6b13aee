//! Adding and changing sources: the row in the registry and the feeds that the
//! poller polls for it, kept in step.

use thiserror::Error;
use tidings_store::{Feed, NewSource, Source, Store, StoreError};
use tidings_url::FetchUrl;

use super::settings::{IngestionMode, LISTING, SITE, SettingsError, SourceSettings};

/// Why a source was not saved.
#[derive(Debug, Error)]
pub enum RegistryError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A source as a user describes it.
#[derive(Debug, Clone)]
pub struct SourceDraft {
    pub name: String,
    pub url: FetchUrl,
    pub priority: u8,
    pub settings: SourceSettings,
}

impl SourceDraft {
    pub(crate) fn row(&self) -> Result<NewSource, SettingsError> {
        let config = self.settings.to_json();
        self.check_text()?;
        // Settings that cannot be read back must not be stored.
        SourceSettings::parse(&self.name, &config)?;
        Ok(NewSource {
            name: self.name.clone(),
            url: self.url.as_str().to_owned(),
            kind: self.settings.kind.clone(),
            priority: self.priority.clamp(1, 10),
            config,
        })
    }

    /// Text that is shown on terminals or sent in headers.
    pub(crate) fn check_text(&self) -> Result<(), SettingsError> {
        let refused = |why| Err(SettingsError::new(&self.name, why));
        if self.name.chars().any(char::is_control) {
            return refused("name has a control character, such as a line break");
        }
        let agent = self.settings.user_agent.as_deref().unwrap_or_default();
        if !agent.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return refused("user_agent has a character other than printable ASCII");
        }
        Ok(())
    }
}

/// The feeds that are polled for a source from the start: kinds and URLs. A site
/// without a known feed and without an ingestion mode is searched for one first.
pub(crate) fn roots(settings: &SourceSettings, url: &FetchUrl) -> Vec<(&'static str, String)> {
    let home = url.as_str().to_owned();
    if let Some(adapter) = settings.adapter() {
        return vec![(adapter.kind(), home)];
    }
    let mode = settings.ingestion_mode;
    let mut roots = Vec::new();
    if mode != Some(IngestionMode::Spider) {
        let known = [
            ("feed", &settings.feed_url),
            ("sitemap", &settings.sitemap_url),
        ];
        for (kind, url) in known {
            roots.extend(url.iter().map(|url| (kind, url.as_str().to_owned())));
        }
        if roots.is_empty() {
            roots.push((SITE, home.clone()));
        }
    }
    if matches!(mode, Some(IngestionMode::Spider | IngestionMode::Both)) {
        roots.push((LISTING, home));
    }
    roots
}

/// Adds a source with its feeds, which are due immediately; returns the first
/// feed, if one is known.
pub async fn add_source(
    store: &Store,
    draft: &SourceDraft,
) -> Result<(Source, Option<Feed>), RegistryError> {
    let source = store.add_source(&draft.row()?).await?;
    let mut first = None;
    for (kind, url) in roots(&draft.settings, &draft.url) {
        let feed = store.add_feed(source.source_id, kind, &url).await?;
        if !matches!(kind, SITE | LISTING | "sitemap") {
            first = first.or(Some(feed));
        }
    }
    Ok((source, first))
}

/// Changes a source. Its feeds follow at the next poll, which is due now when the
/// feed URL has changed; feeds of another ingestion mode are removed then.
pub async fn change_source(
    store: &Store,
    source: &Source,
    draft: &SourceDraft,
) -> Result<(), RegistryError> {
    store.update_source(source.source_id, &draft.row()?).await?;
    let feeds = store.feeds_of_source(source.source_id).await?;
    let now = store.now().await?;
    let is_service = draft.settings.adapter().is_some();
    for (kind, url) in roots(&draft.settings, &draft.url) {
        let known = feeds.iter().find(|feed| feed.kind == kind);
        match known {
            // A source without a feed is followed by its listings already.
            None if kind == SITE && !feeds.is_empty() => {}
            None => drop(store.add_feed(source.source_id, kind, &url).await?),
            // A source has many listings and sitemaps; the first one is followed.
            Some(feed) if is_service || (kind == "feed" && feed.url != url) => {
                store.resume_feed(feed.feed_id, now).await?;
            }
            Some(_) => {}
        }
    }
    Ok(())
}
