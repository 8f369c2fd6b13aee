//! The near-duplicates of a document: the other documents of its cluster, as the
//! API, the dashboard and the CLI show them. Reads only.

use serde::Serialize;
use tidings_store::{FrontierId, Moment, Store, StoreError, StoredDocument};

use crate::stored_document::stored_document;

const MAX_SHOWN: u32 = 20;

/// Another document with nearly the same text.
#[derive(Debug, Clone, Serialize)]
pub struct NearDuplicateStory {
    pub frontier_id: FrontierId,
    pub url: String,
    pub source_name: String,
    pub title: String,
    pub fetched_at: Moment,
}

/// The near-duplicates of a document, the earliest first; at most twenty.
pub async fn near_duplicates(
    store: &Store,
    document: &StoredDocument,
) -> Result<Vec<NearDuplicateStory>, StoreError> {
    let cluster = store.cluster(document.cluster, None, MAX_SHOWN + 1).await?;
    let others = cluster
        .iter()
        .filter(|other| other.frontier_id != document.frontier_id);
    let mut stories: Vec<NearDuplicateStory> = others.filter_map(story).collect();
    stories.sort_by_key(|story| story.fetched_at);
    Ok(stories)
}

/// `None` for a body that does not parse; `tidings doc` reports that error.
fn story(stored: &StoredDocument) -> Option<NearDuplicateStory> {
    let document = stored_document(stored).ok()?;
    Some(NearDuplicateStory {
        frontier_id: stored.frontier_id,
        url: document.address().to_owned(),
        source_name: document.source_name,
        title: document.title,
        fetched_at: stored.fetched_at,
    })
}
