//! Gzip, recognised by its first bytes and inflated up to a bound. A damaged
//! stream gives what could be read before the damage.

use std::borrow::Cow;
use std::io::Read as _;

use flate2::read::MultiGzDecoder;

/// What became of possibly compressed bytes.
pub(crate) struct Inflated<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Why the bytes are not all there, if so.
    pub(crate) damage: Option<String>,
}

/// Inflates gzip; anything else passes through unchanged.
pub(crate) fn inflate(bytes: &[u8], limit: usize) -> Inflated<'_> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Inflated {
            bytes: Cow::Borrowed(bytes),
            damage: None,
        };
    }
    let mut inflated = Vec::new();
    // One byte more than allowed distinguishes a bomb from an exact fit.
    let mut bounded = MultiGzDecoder::new(bytes).take(limit as u64 + 1);
    let mut damage = None;
    if let Err(error) = bounded.read_to_end(&mut inflated) {
        damage = Some(error.to_string());
    }
    if inflated.len() > limit {
        inflated.truncate(limit);
        damage = Some(format!("cut at {limit} bytes"));
    }
    Inflated {
        bytes: Cow::Owned(inflated),
        damage,
    }
}
