//! Whose turn it is: most claims ask the most urgent first, some the least, so
//! that nothing waits for ever. Pure.

/// Every so many claims, and every so many hosts of a claim, the order is
/// turned round.
const EVERY: u64 = 8;

/// The number of a claim of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn(pub(crate) u64);

impl Turn {
    /// Whether this claim asks hosts with low priorities first.
    pub(crate) fn claim_ages(self) -> bool {
        self.0 % EVERY == EVERY - 1
    }

    /// Whether the `nth` host of this claim gives its least urgent URL.
    pub(crate) fn host_ages(self, nth: usize) -> bool {
        (self.0 + nth as u64) % EVERY == EVERY - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_has_a_turn() {
        assert_eq!((0..80).filter(|n| Turn(*n).claim_ages()).count(), 10);
        for nth in 0..20 {
            assert_eq!((0..80).filter(|n| Turn(*n).host_ages(nth)).count(), 10);
        }
    }
}
