//! Sources as people add and change them: the row in the registry and the feed
//! that the poller works on, kept in step.

use thiserror::Error;
use tidings_store::{Feed, NewSource, Source, Store, StoreError};
use tidings_url::FetchUrl;

use crate::settings::{SettingsError, SourceSettings};

/// The kind of a feed that is yet to be found: its address is the site's.
pub(crate) const SITE: &str = "site";

/// Why a source was not taken.
#[derive(Debug, Error)]
pub enum RegistryError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A source as a person describes it.
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
        // What can't be read back must not be kept.
        SourceSettings::parse(&self.name, &config)?;
        Ok(NewSource {
            name: self.name.clone(),
            url: self.url.as_str().to_owned(),
            kind: self.settings.kind.clone(),
            priority: self.priority.clamp(1, 10),
            config,
        })
    }
}

/// Adds a source with its feed and its sitemap, which are due at once.
pub async fn add_source(
    store: &Store,
    draft: &SourceDraft,
) -> Result<(Source, Option<Feed>), RegistryError> {
    let source = store.add_source(&draft.row()?).await?;
    if let Some(adapter) = draft.settings.adapter() {
        let (kind, url) = (adapter.kind(), draft.url.as_str());
        let feed = store.add_feed(source.source_id, kind, url).await?;
        return Ok((source, Some(feed)));
    }
    let feed = match &draft.settings.feed_url {
        Some(url) => Some(
            store
                .add_feed(source.source_id, "feed", url.as_str())
                .await?,
        ),
        None => None,
    };
    if let Some(url) = &draft.settings.sitemap_url {
        store
            .add_feed(source.source_id, "sitemap", url.as_str())
            .await?;
    } else if feed.is_none() {
        // The poller looks for its feed.
        store
            .add_feed(source.source_id, SITE, draft.url.as_str())
            .await?;
    }
    Ok((source, feed))
}

/// Changes a source. Its feed follows at the next poll, which is now when the
/// address is another.
pub async fn change_source(
    store: &Store,
    source: &Source,
    draft: &SourceDraft,
) -> Result<(), RegistryError> {
    store.update_source(source.source_id, &draft.row()?).await?;
    let feeds = store.feeds_of_source(source.source_id).await?;
    if let Some(adapter) = draft.settings.adapter() {
        let (kind, url) = (adapter.kind(), draft.url.as_str());
        match feeds.iter().find(|feed| feed.kind == kind) {
            Some(feed) => store.wake_feed(feed.feed_id, store.now().await?).await?,
            None => drop(store.add_feed(source.source_id, kind, url).await?),
        }
        return Ok(());
    }
    let Some(url) = &draft.settings.feed_url else {
        return Ok(());
    };
    let now = store.now().await?;
    match feeds.iter().find(|feed| feed.kind == "feed") {
        Some(feed) if feed.url != url.as_str() => store.wake_feed(feed.feed_id, now).await?,
        Some(_) => {}
        None => drop(
            store
                .add_feed(source.source_id, "feed", url.as_str())
                .await?,
        ),
    }
    Ok(())
}
