//! Which part of a long list has changed since it was last read: its keys in 256 buckets by
//! their first byte, each with a sum. A list with one new entry has one changed bucket, so
//! 50,000 entries are compared without asking the store for any. Pure.

use serde::{Deserialize, Serialize};
use tidings_url::UrlKey;

const BUCKETS: usize = 256;

/// The sums of a list; none for a list that was never read, or is short.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Buckets(Vec<u32>);

impl Buckets {
    pub(crate) fn of<'a>(keys: impl Iterator<Item = &'a UrlKey>) -> Self {
        let mut sums = vec![0_u32; BUCKETS];
        for key in keys {
            let (bucket, value) = place(key);
            // A key is a hash, so it adds a random number; the order does not matter.
            sums[bucket] = sums[bucket].wrapping_add(value | 1);
        }
        Self(sums)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the part of the list that holds this key is not what it was `before`.
    pub(crate) fn has_changed(&self, before: &Self, key: &UrlKey) -> bool {
        let (bucket, _) = place(key);
        before.is_empty() || self.0.get(bucket) != before.0.get(bucket)
    }
}

/// The bucket of a key, and what it adds to it.
fn place(key: &UrlKey) -> (usize, u32) {
    let bytes = key.as_bytes();
    let value = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
    (usize::from(bytes[0]), value)
}

#[cfg(test)]
mod tests {
    use tidings_url::{FetchUrl, Rules};

    use super::*;

    fn keys(range: std::ops::Range<u32>) -> Vec<UrlKey> {
        let url = |n| FetchUrl::parse(&format!("https://a.example/{n}")).unwrap();
        let key = |n| url(n).canonical(&Rules::default()).key();
        range.map(key).collect()
    }

    #[test]
    fn one_new_entry_is_one_bucket() {
        let (old, new) = (keys(0..50_000), keys(0..50_001));
        let before = Buckets::of(old.iter());
        let reversed = Buckets::of(old.iter().rev());
        assert_eq!(before, reversed);
        let after = Buckets::of(new.iter());
        let changed = |key: &&UrlKey| after.has_changed(&before, key);
        let count = new.iter().filter(changed).count();
        assert!((1..400).contains(&count), "{count}");
        assert!(changed(&new.last().unwrap()));
        // Of a list that was never read, everything is new.
        assert!(
            new.iter()
                .all(|key| after.has_changed(&Buckets::default(), key))
        );
        let stored = serde_json::to_string(&after).unwrap();
        assert_eq!(serde_json::from_str::<Buckets>(&stored).unwrap(), after);
        assert!(stored.len() < 4000, "{}", stored.len());
    }
}
