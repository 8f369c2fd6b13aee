//! A repeatable random number generator: every choice is a pure function of a seed and the name of
//! what is being chosen, so any site or article can be computed without the others.

/// A small generator (SplitMix64). Good enough for scenery, never for secrets.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// A generator for one thing: the same `seed`, `what` and `number` give the same
    /// numbers.
    pub(crate) fn of(seed: u64, what: &str, number: u64) -> Self {
        let mut rng = Self(seed ^ fingerprint(what.as_bytes()));
        let mixed = rng.next() ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mixed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True with a probability of `percent` in a hundred.
    pub(crate) fn random_bool(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A fraction in `0.0..1.0`.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of a list that is not empty.
    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}

/// A stable 64-bit hash (FNV-1a): seeds and ETags must not change between runs.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn the_same_name_gives_the_same_numbers() {
        let first = |seed, what, number| Rng::of(seed, what, number).next();
        assert_eq!(first(7, "site", 3), first(7, "site", 3));
        assert_ne!(first(7, "site", 3), first(8, "site", 3));
        assert_ne!(first(7, "site", 3), first(7, "site", 4));
        assert_ne!(first(7, "site", 3), first(7, "text", 3));
    }

    #[test]
    fn numbers_stay_in_their_bounds_and_reach_them() {
        let mut rng = Rng::of(1, "bounds", 0);
        let numbers: Vec<_> = (0..1000).map(|_| rng.between(3, 5)).collect();
        assert_eq!(numbers.iter().min(), Some(&3));
        assert_eq!(numbers.iter().max(), Some(&5));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&rng.fraction())));
    }
}
