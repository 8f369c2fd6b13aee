//! Who else tells a story: the other documents of a cluster, as they are shown to
//! people and programs. Reads only.

use serde::Serialize;
use tidings_store::{FrontierId, Moment, Store, StoreError, StoredDocument};

use crate::work::stored_document;

/// How many are shown.
const SHOWN: u32 = 20;

/// Another document that tells the same story in nearly the same words.
#[derive(Debug, Clone, Serialize)]
pub struct NearDuplicateStory {
    pub frontier_id: FrontierId,
    pub url: String,
    pub source_name: String,
    pub title: String,
    pub fetched_at: Moment,
}

/// The others that tell the story of a document, the earliest first; of more
/// than twenty only some.
pub async fn near_duplicates(
    store: &Store,
    document: &StoredDocument,
) -> Result<Vec<NearDuplicateStory>, StoreError> {
    let all = store.cluster(document.cluster, None, SHOWN + 1).await?;
    let others = all
        .iter()
        .filter(|other| other.frontier_id != document.frontier_id);
    let mut tellings: Vec<NearDuplicateStory> = others.filter_map(telling).collect();
    tellings.sort_by_key(|telling| telling.fetched_at);
    Ok(tellings)
}

/// `None` for a document that can't be read, which `tidings doc` will say of it.
fn telling(stored: &StoredDocument) -> Option<NearDuplicateStory> {
    let document = stored_document(stored).ok()?;
    Some(NearDuplicateStory {
        frontier_id: stored.frontier_id,
        url: document.address().to_owned(),
        source_name: document.source_name,
        title: document.title,
        fetched_at: stored.fetched_at,
    })
}
