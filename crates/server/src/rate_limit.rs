//! How often something happened, by key, within a minute that begins with the first
//! time. Bounded: of too many keys the oldest go. Has no clock of its own.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(60);
const MAX_KEYS: usize = 10_000;

#[derive(Debug)]
pub(crate) struct RateLimit<K> {
    counts: HashMap<K, (Instant, u32)>,
    /// The same keys, oldest first.
    keys: VecDeque<(Instant, K)>,
}

impl<K> Default for RateLimit<K> {
    fn default() -> Self {
        Self {
            counts: HashMap::new(),
            keys: VecDeque::new(),
        }
    }
}

impl<K: Hash + Eq + Clone> RateLimit<K> {
    /// Seconds until the window ends, when it has this many already.
    pub(crate) fn retry_after(&self, key: &K, max: u32, now: Instant) -> Option<u64> {
        let (since, count) = self.counts.get(key)?;
        let left = WINDOW.saturating_sub(now.saturating_duration_since(*since));
        (*count >= max && !left.is_zero()).then(|| left.as_secs() + 1)
    }

    pub(crate) fn count(&mut self, key: K, now: Instant) {
        while let Some((since, oldest)) = self.keys.front() {
            let has_ended = now.saturating_duration_since(*since) >= WINDOW;
            let is_full = self.keys.len() >= MAX_KEYS && !self.counts.contains_key(&key);
            if !has_ended && !is_full {
                break;
            }
            self.counts.remove(oldest);
            self.keys.pop_front();
        }
        if let Some((_, count)) = self.counts.get_mut(&key) {
            *count += 1;
            return;
        }
        self.keys.push_back((now, key.clone()));
        self.counts.insert(key, (now, 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_waits_for_the_end_of_its_window() {
        let (mut limit, start) = (RateLimit::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for n in 0..3 {
            assert_eq!(limit.retry_after(&"a", 3, at(n)), None);
            limit.count("a", at(n));
        }
        assert_eq!(limit.retry_after(&"a", 3, at(20)), Some(41));
        assert_eq!(limit.retry_after(&"b", 3, at(20)), None, "another key");
        assert_eq!(limit.retry_after(&"a", 3, at(60)), None);
        limit.count("a", at(60));
        assert_eq!(limit.retry_after(&"a", 2, at(60)), None, "it starts over");
    }

    #[test]
    fn of_too_many_keys_the_oldest_go() {
        let (mut limit, now) = (RateLimit::default(), Instant::now());
        for key in 0..MAX_KEYS * 2 {
            limit.count(key, now);
        }
        assert_eq!((limit.counts.len(), limit.keys.len()), (MAX_KEYS, MAX_KEYS));
        assert_eq!(limit.retry_after(&0, 1, now), None);
        assert!(limit.retry_after(&MAX_KEYS, 1, now).is_some());
        limit.count(MAX_KEYS, now);
        assert_eq!(limit.counts.len(), MAX_KEYS, "a known key evicts nobody");
        limit.count(0, now + WINDOW);
        assert_eq!((limit.counts.len(), limit.keys.len()), (1, 1));
    }
}
