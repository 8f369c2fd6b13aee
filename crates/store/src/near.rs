//! Near-duplicates: documents that tell the same story in nearly the same words
//! form a cluster, named after the first of them. Pure: what a look-up means, worked
//! out once for both engines. Never sees a text, only its sketch.

use std::cmp::Reverse;
use std::collections::HashMap;

use tidings_document::{MIN_SIMILARITY, Sketch};

use crate::ids::FrontierId;

/// So many documents are kept under one key. Of a story that is told more often
/// the first are enough to be found; what everybody says is no key at all.
pub(crate) const UNDER_ONE_KEY: usize = 32;

/// So many documents are compared: a bound on what a look-up costs.
const COMPARED: usize = 16;

/// A document that is nearly the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearDuplicate {
    pub id: FrontierId,
    /// The cluster that it is in.
    pub cluster: FrontierId,
    /// The estimated share of common shingles, 0 to 1.
    pub similarity: f32,
}

/// A key as the databases keep it.
pub(crate) fn stored_key(key: u64) -> i64 {
    key.cast_signed()
}

/// The keys under which a document should be kept, given how many documents are
/// under each key that was sought.
pub(crate) fn keys_with_room<'a>(
    sketch: &'a Sketch,
    under: impl Iterator<Item = usize> + 'a,
) -> impl Iterator<Item = i64> + 'a {
    // What is sought begins with the keys.
    let keys = sketch.keys().iter().zip(under);
    let with_room = keys.filter(|(_, under)| *under < UNDER_ONE_KEY);
    with_room.map(|(key, _)| stored_key(*key))
}

/// Which documents to compare with, given those under each key: whoever shares
/// most keys, and a key weighs the less the more documents it has.
pub(crate) fn likeliest<'a>(under: impl Iterator<Item = &'a [FrontierId]>) -> Vec<FrontierId> {
    let mut weights: HashMap<FrontierId, usize> = HashMap::new();
    for ids in under {
        for id in ids {
            *weights.entry(*id).or_default() += UNDER_ONE_KEY * UNDER_ONE_KEY / ids.len();
        }
    }
    let mut ids: Vec<(Reverse<usize>, FrontierId)> = weights
        .into_iter()
        .map(|(id, weight)| (Reverse(weight), id))
        .collect();
    ids.sort_unstable();
    ids.truncate(COMPARED);
    ids.into_iter().map(|(_, id)| id).collect()
}

/// The one that is most alike, and how much, if any is alike enough.
pub(crate) fn most_alike<'a>(
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

/// The cluster of a new or changed document as it is kept: none for the first,
/// even if the others say so.
pub(crate) fn joined(id: FrontierId, alike: Option<NearDuplicate>) -> Option<FrontierId> {
    alike
        .map(|alike| alike.cluster)
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
        let common: Vec<FrontierId> = (0..UNDER_ONE_KEY as u8).map(id).collect();
        let lists: [&[FrontierId]; 4] = [&common, &common, &[id(100)], &[id(31), id(101)]];
        let found = likeliest(lists.into_iter());
        assert_eq!(found[..3], [id(100), id(31), id(101)]);
        assert_eq!(found.len(), COMPARED);
        assert_eq!(likeliest(std::iter::empty()), []);
    }

    #[test]
    fn the_most_alike_wins_and_strangers_never_do() {
        let sketch = Sketch::of(0..60);
        let stranger = (id(1), &Sketch::of(1_000..1_060));
        let cousin = (id(2), &Sketch::of(30..90));
        let twin = (id(3), &Sketch::of(0..58));
        let same = (id(2), twin.1);
        let found = |among: &[(FrontierId, &Sketch)]| {
            most_alike(&sketch, among.iter().copied()).map(|(id, _)| id)
        };
        assert_eq!(found(&[stranger]), None);
        assert_eq!(found(&[cousin, stranger]), Some(id(2)));
        assert_eq!(found(&[twin, cousin]), Some(id(3)));
        assert_eq!(found(&[twin, same]), Some(id(2)), "in one order");
        assert_eq!(found(&[same, twin]), Some(id(2)), "or the other");
    }

    #[test]
    fn full_keys_take_no_more() {
        let sketch = Sketch::of(0..60);
        let room = |under: &[usize]| -> Vec<i64> {
            keys_with_room(&sketch, under.iter().copied()).collect()
        };
        assert_eq!(room(&[0; 12]), [0, 1, 2, 3, 4, 5], "only the keys");
        assert_eq!(room(&[0, 32, 31, 40, 1, 32]), [0, 2, 4]);
    }
}
