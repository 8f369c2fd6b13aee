//! The MinHash sketch of a text: the smallest hashes of its shingles. Two texts
//! that share many shingles share many of these, so it estimates their similarity;
//! and they likely share one of the very smallest, so those are the keys under
//! which a text is found. Knows neither words nor how they are hashed, and stores
//! no texts.

use std::cmp::Ordering;
use std::fmt;

/// Hashes of a sketch.
const SKETCH_SIZE: usize = 64;
/// Hashes under which a text is indexed: each costs a row.
pub const KEYS: usize = 6;
/// Hashes under which near-duplicates are looked up: more, for what is among the
/// smallest of one text is only near them in another that adds some of its own.
pub const LOOKUP_KEYS: usize = 12;
/// Minimum estimated share of common shingles of near-duplicates.
/// A fifth of the words changed leaves four shingles in ten; different stories
/// share a few in a hundred.
pub const MIN_SIMILARITY: f32 = 0.25;

/// The smallest hashes of a text, in order, none twice.
#[derive(Clone, PartialEq, Eq)]
pub struct Sketch(Vec<u64>);

impl fmt::Debug for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sketch({} values)", self.0.len())
    }
}

impl Sketch {
    /// The sketch of a text whose shingles have these hashes.
    pub fn of(hashes: impl IntoIterator<Item = u64>) -> Self {
        let mut smallest = Vec::with_capacity(4 * SKETCH_SIZE);
        let mut bound = u64::MAX;
        for hash in hashes {
            if hash >= bound {
                continue;
            }
            smallest.push(hash);
            if smallest.len() == 4 * SKETCH_SIZE {
                keep_smallest(&mut smallest);
                bound = match smallest.get(SKETCH_SIZE - 1) {
                    Some(largest) => *largest,
                    None => u64::MAX,
                };
            }
        }
        keep_smallest(&mut smallest);
        Self(smallest)
    }

    /// Under which the text is indexed.
    pub fn keys(&self) -> &[u64] {
        &self.0[..self.0.len().min(KEYS)]
    }

    /// Under which near-duplicates are looked up: the keys, and some more.
    pub fn lookup_keys(&self) -> &[u64] {
        &self.0[..self.0.len().min(LOOKUP_KEYS)]
    }

    /// The estimated share of common shingles, 0 to 1: that of the smallest
    /// hashes of both texts together that are in both. Exact for short texts,
    /// whose sketches are all there is.
    pub fn similarity(&self, other: &Self) -> f32 {
        let (mut mine, mut theirs) = (self.0.as_slice(), other.0.as_slice());
        let (mut seen, mut common) = (0_u16, 0_u16);
        while usize::from(seen) < SKETCH_SIZE {
            let order = match (mine.first(), theirs.first()) {
                (Some(a), Some(b)) => a.cmp(b),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            if order.is_le() {
                mine = &mine[1..];
            }
            if order.is_ge() {
                theirs = &theirs[1..];
            }
            seen += 1;
            common += u16::from(order.is_eq());
        }
        f32::from(common) / f32::from(seen.max(1))
    }

    /// At most 512 bytes, to be stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0
            .iter()
            .flat_map(|value| value.to_be_bytes())
            .collect()
    }

    /// Reads the output of `to_bytes`; none for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (chunks, rest) = bytes.as_chunks::<8>();
        let values: Vec<u64> = chunks
            .iter()
            .map(|chunk| u64::from_be_bytes(*chunk))
            .collect();
        let is_sketch =
            rest.is_empty() && values.len() <= SKETCH_SIZE && values.is_sorted_by(|a, b| a < b);
        is_sketch.then_some(Self(values))
    }
}

fn keep_smallest(hashes: &mut Vec<u64>) {
    hashes.sort_unstable();
    hashes.dedup();
    hashes.truncate(SKETCH_SIZE);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Hashes of numbers, spread over all of 64 bits.
    fn spread(numbers: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
        numbers.map(|number| {
            (number + 1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .swap_bytes()
        })
    }

    #[test]
    fn it_is_the_smallest_values_whatever_their_order_and_number() {
        for length in [0, 1, 63, 64, 65, 255, 256, 257, 5_000] {
            let mut sorted: Vec<u64> = spread(0..length).collect();
            let backwards = spread((0..length).rev());
            // Everything twice says nothing new.
            let twice = backwards.chain(spread(0..length));
            sorted.sort_unstable();
            sorted.truncate(SKETCH_SIZE);
            assert_eq!(Sketch::of(twice).0, sorted, "{length}");
        }
    }

    #[test]
    fn similarity_is_the_share_of_what_is_common() {
        let rows = [
            ("the same", 0..300, 0..300, 1.0, 0.0),
            ("nothing in common", 0..300, 300..600, 0.0, 0.0),
            ("half of either", 0..2_000, 1_000..3_000, 0.33, 0.12),
            ("one within the other", 0..500, 0..1_000, 0.5, 0.13),
            ("short ones exactly", 0..20, 10..30, 1.0 / 3.0, 0.001),
            ("a short one and a long one", 0..20, 0..2_000, 0.01, 0.03),
            ("nothing and something", 0..0, 0..20, 0.0, 0.0),
            ("nothing at all", 0..0, 0..0, 0.0, 0.0),
        ];
        for (name, a, b, share, within) in rows {
            let (a, b) = (Sketch::of(spread(a)), Sketch::of(spread(b)));
            let found = a.similarity(&b);
            assert!((found - share).abs() <= within, "{name}: {found}");
            assert_eq!(found, b.similarity(&a), "{name}, the other way round");
        }
    }

    #[test]
    fn it_survives_storage_and_nothing_else_passes_for_one() {
        for length in [0, 5, 64, 300] {
            let sketch = Sketch::of(spread(0..length));
            let bytes = sketch.to_bytes();
            assert!(bytes.len() <= 512);
            assert_eq!(Sketch::from_bytes(&bytes), Some(sketch));
        }
        let falling = [2_u64, 1].map(u64::to_be_bytes).concat();
        for wrong in [&[0; 7][..], &[0; 16][..], &[0; 8 * 65][..], &falling] {
            assert_eq!(Sketch::from_bytes(wrong), None);
        }
    }

    #[test]
    fn keys_are_the_first_of_what_is_sought() {
        let sketch = Sketch::of(spread(0..300));
        assert_eq!(
            (sketch.keys().len(), sketch.lookup_keys().len()),
            (KEYS, LOOKUP_KEYS)
        );
        assert!(sketch.lookup_keys().starts_with(sketch.keys()));
        assert_eq!(Sketch::of(spread(0..3)).keys().len(), 3);
    }
}
