//! Near-duplicates: a MinHash signature of 120 values over three-word shingles,
//! cut into 40 bands of three. Two texts that share a third of their shingles
//! share a band, so a look-up is 40 exact keys however many documents there are; the
//! signature then tells how alike they are. Keeps no documents itself, but for
//! `NearDuplicates`, the small index in memory.

use std::collections::HashMap;

/// Values of a signature.
const VALUES: usize = BANDS * ROWS;
/// Bands of a signature: what is looked up.
pub const BANDS: usize = 40;
const ROWS: usize = 3;
/// Words of a shingle.
const SHINGLE: usize = 3;
/// From which estimated share of common shingles two texts are the same story.
/// A fifth of the words changed leaves a third of the shingles in common;
/// different stories have a few in a hundred.
pub const ALIKE: f32 = 0.27;
/// Fewer shingles than this say nothing.
const FEWEST: usize = 10;

/// The signature of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature([u32; VALUES]);

impl Signature {
    /// The signature of a text; none if it is too short to compare.
    pub fn of(text: &str) -> Option<Self> {
        let words = word_hashes(text);
        if words.len() < SHINGLE + FEWEST {
            return None;
        }
        let mut values = [u32::MAX; VALUES];
        for window in words.windows(SHINGLE) {
            let shingle = window
                .iter()
                .fold(0x9e37_79b9_7f4a_7c15_u64, |hash, word| mix(hash ^ word));
            // Two hashes give as many as are needed (Kirsch and Mitzenmacher 2006).
            let (a, b) = (shingle >> 32, (shingle & 0xffff_ffff) | 1);
            for (index, value) in (0_u64..).zip(&mut values) {
                let hash = mix32(a.wrapping_add(b.wrapping_mul(index)));
                *value = (*value).min(hash);
            }
        }
        Some(Self(values))
    }

    /// The keys under which the document is found: one for each band.
    pub fn bands(&self) -> [u64; BANDS] {
        let mut keys = [0; BANDS];
        for (band, (key, rows)) in (1_u64..).zip(keys.iter_mut().zip(self.0.chunks_exact(ROWS))) {
            *key = rows
                .iter()
                .fold(mix(band), |hash, value| mix(hash ^ u64::from(*value)));
        }
        keys
    }

    /// The estimated share of common shingles, 0 to 1.
    pub fn similarity(&self, other: &Self) -> f32 {
        let same = self.0.iter().zip(&other.0).filter(|(a, b)| a == b).count();
        same as f32 / VALUES as f32
    }

    /// 480 bytes, to be stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    }

    /// What `to_bytes` gave; none if the length is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (chunks, rest) = bytes.as_chunks::<4>();
        if chunks.len() != VALUES || !rest.is_empty() {
            return None;
        }
        let mut values = [0; VALUES];
        for (value, chunk) in values.iter_mut().zip(chunks) {
            *value = u32::from_le_bytes(*chunk);
        }
        Some(Self(values))
    }
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

fn mix32(hash: u64) -> u32 {
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// An index of signatures in memory: for tests, for measuring, and for a
/// process that keeps a window of recent documents.
#[derive(Debug, Default)]
pub struct NearDuplicates {
    signatures: Vec<Signature>,
    bands: HashMap<u64, Vec<u32>>,
}

impl NearDuplicates {
    /// Adds a document; its number counts from 0.
    pub fn insert(&mut self, signature: Signature) -> usize {
        let number = self.signatures.len();
        for key in signature.bands() {
            self.bands
                .entry(key)
                .or_default()
                .push(u32::try_from(number).unwrap_or(u32::MAX));
        }
        self.signatures.push(signature);
        number
    }

    /// The document most like this one, if one is alike enough.
    pub fn find(&self, signature: &Signature) -> Option<(usize, f32)> {
        let mut candidates: Vec<u32> = signature
            .bands()
            .iter()
            .filter_map(|key| self.bands.get(key))
            .flatten()
            .copied()
            .collect();
        candidates.sort_unstable();
        candidates.dedup();
        candidates
            .into_iter()
            .map(|number| {
                (
                    number as usize,
                    signature.similarity(&self.signatures[number as usize]),
                )
            })
            .filter(|(_, similarity)| *similarity >= ALIKE)
            .max_by(|(_, a), (_, b)| a.total_cmp(b))
    }
}
