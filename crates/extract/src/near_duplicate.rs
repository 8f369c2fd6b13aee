//! Near-duplicates: one hash for each three-word shingle of a text, of which the
//! `Sketch` keeps the smallest. Words are folded to lower case; where a script has
//! no spaces, characters stand for words. Compares nothing and keeps no texts.

use tidings_document::Sketch;

/// Words of a shingle.
const SHINGLE_WORDS: usize = 3;
/// Shorter texts are not compared.
const MIN_WORDS: usize = 13;

/// The sketch of a text; none if it is too short to compare.
pub fn sketch(text: &str) -> Option<Sketch> {
    let words = word_hashes(text);
    if words.len() < MIN_WORDS {
        return None;
    }
    Some(Sketch::of(words.windows(SHINGLE_WORDS).map(shingle_hash)))
}

/// Combines the hashes of the words, each rotated by its position, and mixes them.
fn shingle_hash(words: &[u64]) -> u64 {
    let rotated = (0..)
        .zip(words)
        .map(|(position, word)| word.rotate_left(21 * position));
    mix(rotated.fold(0, |hash, word| hash ^ word))
}

/// Words in lower case as hashes; in scripts without spaces every character is one.
pub(crate) fn word_hashes(text: &str) -> Vec<u64> {
    let mut hashes = Vec::with_capacity(text.len() / 5);
    let mut hash = FNV;
    let mut open = false;
    for c in text.chars() {
        let dense = crate::text::is_dense(c);
        if open && (dense || !c.is_alphanumeric()) {
            hashes.push(hash);
            hash = FNV;
            open = false;
        }
        if dense {
            hashes.push(fnv(FNV, c));
        } else if c.is_alphanumeric() {
            open = true;
            if c.is_ascii() {
                hash = fnv(hash, c.to_ascii_lowercase());
            } else {
                hash = c.to_lowercase().fold(hash, fnv);
            }
        }
    }
    if open {
        hashes.push(hash);
    }
    hashes
}

const FNV: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(hash: u64, c: char) -> u64 {
    (hash ^ u64::from(u32::from(c))).wrapping_mul(0x0100_0000_01b3)
}

/// The finaliser of MurmurHash3.
pub(crate) fn mix(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}
