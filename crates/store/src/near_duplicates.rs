//! Near-duplicates: documents with nearly the same text form a cluster, named after
//! the first of them. Pure: the rules of a look-up, shared by both engines. Never
//! sees a text, only its sketch.

use std::cmp::Reverse;
use std::collections::HashMap;

use tidings_document::{MIN_SIMILARITY, Sketch};

use crate::ids::FrontierId;

/// Documents indexed under one key. Of a story with more copies the first are
/// enough to be found; a phrase common to all is no useful key.
pub(crate) const MAX_DOCUMENTS_PER_KEY: usize = 32;

/// Documents compared in one look-up: a bound on its cost.
const MAX_CANDIDATES: usize = 16;

/// A document with nearly the same text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearDuplicate {
    pub id: FrontierId,
    /// The cluster that it is in.
    pub cluster: FrontierId,
    /// The estimated share of common shingles, 0 to 1.
    pub similarity: f32,
}

/// A key as the databases store it.
pub(crate) fn stored_key(key: u64) -> i64 {
    key.cast_signed()
}

/// The keys under which a document should be indexed, given the number of
/// documents under each key that was looked up.
pub(crate) fn keys_with_room<'a>(
    sketch: &'a Sketch,
    under: impl Iterator<Item = usize> + 'a,
) -> impl Iterator<Item = i64> + 'a {
    // The keys come first among those that are looked up.
    let keys = sketch.keys().iter().zip(under);
    let with_room = keys.filter(|(_, under)| *under < MAX_DOCUMENTS_PER_KEY);
    with_room.map(|(key, _)| stored_key(*key))
}

/// Which documents to compare with, given those under each key: the ones that share
/// most keys, where a key weighs the less the more documents it has.
pub(crate) fn likeliest<'a>(under: impl Iterator<Item = &'a [FrontierId]>) -> Vec<FrontierId> {
    let mut weights: HashMap<FrontierId, usize> = HashMap::new();
    for ids in under {
        for id in ids {
            *weights.entry(*id).or_default() +=
                MAX_DOCUMENTS_PER_KEY * MAX_DOCUMENTS_PER_KEY / ids.len();
        }
    }
    let mut ids: Vec<(Reverse<usize>, FrontierId)> = weights
        .into_iter()
        .map(|(id, weight)| (Reverse(weight), id))
        .collect();
    ids.sort_unstable();
    ids.truncate(MAX_CANDIDATES);
    ids.into_iter().map(|(_, id)| id).collect()
}

/// The most similar candidate and its similarity, if any is a near-duplicate.
pub(crate) fn most_similar<'a>(
    sketch: &Sketch,
    candidates: impl Iterator<Item = (FrontierId, &'a Sketch)>,
) -> Option<(FrontierId, f32)> {
    candidates
        .map(|(id, other)| (id, sketch.similarity(other)))
        .filter(|(_, similarity)| *similarity >= MIN_SIMILARITY)
        .max_by(|(id, similarity), (other, than)| {
            similarity.total_cmp(than).then_with(|| other.cmp(id))
        })
}

/// The cluster of a new or changed document as it is stored: none for the first,
/// even when its near-duplicates name it.
pub(crate) fn joined(id: FrontierId, duplicate: Option<NearDuplicate>) -> Option<FrontierId> {
    duplicate
        .map(|duplicate| duplicate.cluster)
        .filter(|first| *first != id)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ids::{HostId, UrlId};

    fn id(n: u8) -> FrontierId {
        FrontierId {
            host: HostId(i64::from(n)),
            url: UrlId([n; 16]),
        }
    }

    #[test]
    fn rare_keys_weigh_more_than_common_ones() {
        let common: Vec<FrontierId> = (0..MAX_DOCUMENTS_PER_KEY as u8).map(id).collect();
        let lists: [&[FrontierId]; 4] = [&common, &common, &[id(100)], &[id(31), id(101)]];
        let found = likeliest(lists.into_iter());
        assert_eq!(found[..3], [id(100), id(31), id(101)]);
        assert_eq!(found.len(), MAX_CANDIDATES);
        assert_eq!(likeliest(std::iter::empty()), []);
    }

    #[test]
    fn the_most_similar_wins_and_unrelated_texts_never_do() {
        let sketch = Sketch::of(0..60);
        let unrelated = (id(1), &Sketch::of(1_000..1_060));
        let similar = (id(2), &Sketch::of(30..90));
        let edited = (id(3), &Sketch::of(0..58));
        let same = (id(2), edited.1);
        let found = |among: &[(FrontierId, &Sketch)]| {
            most_similar(&sketch, among.iter().copied()).map(|(id, _)| id)
        };
        assert_eq!(found(&[unrelated]), None);
        assert_eq!(found(&[similar, unrelated]), Some(id(2)));
        assert_eq!(found(&[edited, similar]), Some(id(3)));
        assert_eq!(found(&[edited, same]), Some(id(2)), "in one order");
        assert_eq!(found(&[same, edited]), Some(id(2)), "or the other");
    }

    #[test]
    fn full_keys_accept_no_more() {
        let sketch = Sketch::of(0..60);
        let room = |under: &[usize]| -> Vec<i64> {
            keys_with_room(&sketch, under.iter().copied()).collect()
        };
        assert_eq!(room(&[0; 12]), [0, 1, 2, 3, 4, 5], "only the keys");
        assert_eq!(room(&[0, 32, 31, 40, 1, 32]), [0, 2, 4]);
    }
}
