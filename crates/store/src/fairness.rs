//! Fairness between priorities: most claims start with the highest priority, some
//! with the lowest, so that no URL starves. Pure.

/// One in this many claims, and one in this many hosts of a claim, starts with
/// the lowest priority.
const AGING_INTERVAL: u64 = 8;

/// The sequence number of a claim of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClaimSequence(pub(crate) u64);

impl ClaimSequence {
    /// Whether this claim starts with the hosts of the lowest priority.
    pub(crate) fn claim_is_aging(self) -> bool {
        self.0 % AGING_INTERVAL == AGING_INTERVAL - 1
    }

    /// Whether the URL of lowest priority is leased from the `nth` host of this
    /// claim.
    pub(crate) fn host_is_aging(self, nth: usize) -> bool {
        (self.0 + nth as u64) % AGING_INTERVAL == AGING_INTERVAL - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_claim_in_eight_serves_low_priorities() {
        let sequences = || (0..80).map(ClaimSequence);
        assert_eq!(sequences().filter(|n| n.claim_is_aging()).count(), 10);
        for nth in 0..20 {
            assert_eq!(sequences().filter(|n| n.host_is_aging(nth)).count(), 10);
        }
    }
}
