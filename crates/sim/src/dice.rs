//! Repeatable chance: every choice is a pure function of a seed and the name of
//! what is being chosen, so any site or article can be made without the others.

/// A small generator (SplitMix64). Good enough for scenery, never for secrets.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Dice for one thing: the same `seed`, `what` and `number` roll the same.
    pub(crate) fn of(seed: u64, what: &str, number: u64) -> Self {
        let mut dice = Self(seed ^ fingerprint(what.as_bytes()));
        let mixed = dice.next() ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
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

    /// True in `percent` of a hundred cases.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
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
    use super::Dice;

    #[test]
    fn the_same_name_rolls_the_same() {
        let roll = |seed, what, number| Dice::of(seed, what, number).next();
        assert_eq!(roll(7, "site", 3), roll(7, "site", 3));
        assert_ne!(roll(7, "site", 3), roll(8, "site", 3));
        assert_ne!(roll(7, "site", 3), roll(7, "site", 4));
        assert_ne!(roll(7, "site", 3), roll(7, "text", 3));
    }

    #[test]
    fn rolls_stay_in_their_bounds_and_reach_them() {
        let mut dice = Dice::of(1, "bounds", 0);
        let rolls: Vec<_> = (0..1000).map(|_| dice.between(3, 5)).collect();
        assert_eq!(rolls.iter().min(), Some(&3));
        assert_eq!(rolls.iter().max(), Some(&5));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&dice.fraction())));
    }
}
