//! Up to where the log of events is final. Ids are drawn when an event is written
//! and seen when its transaction commits, so an event may appear before one with a
//! lower id; a reader that went on would never see that one. Ids without a gap are
//! final. A gap is final once all transactions that were open when it was seen have
//! ended.

/// The transactions that were open when a page of events was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenTransactions {
    /// The lowest id of one that was open.
    pub(crate) oldest: i64,
    /// All that start later have at least this id.
    pub(crate) next: i64,
}

/// What readers of one store know about its log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EventHorizon {
    /// Nothing can be added up to this event.
    final_id: i64,
    /// An event that is final, too, when all transactions below an id have ended.
    pending: Option<(i64, i64)>,
}

impl EventHorizon {
    pub(crate) fn final_id(&self) -> i64 {
        self.final_id
    }

    /// The number of events at the start of a page that are final. What is known
    /// must have been known before the page was read.
    pub(crate) fn final_events(
        &mut self,
        after: i64,
        page: &[i64],
        open: OpenTransactions,
    ) -> usize {
        if let Some((id, next)) = self.pending
            && open.oldest >= next
        {
            self.final_id = self.final_id.max(id);
            self.pending = None;
        }
        let last = page.last().copied().unwrap_or(0);
        if open.oldest >= open.next {
            self.final_id = self.final_id.max(last);
        }
        if last > self.final_id && self.pending.is_none() {
            self.pending = Some((last, open.next));
        }
        let mut expected = after.saturating_add(1);
        let is_final = |id: &&i64| {
            let is_final = **id <= self.final_id || **id == expected;
            expected = id.saturating_add(1);
            is_final
        };
        page.iter().take_while(is_final).count()
    }

    /// Adds what another reader has learned.
    pub(crate) fn merge(&mut self, other: Self) {
        self.final_id = self.final_id.max(other.final_id);
        self.pending = [self.pending, other.pending]
            .into_iter()
            .flatten()
            .filter(|(id, _)| *id > self.final_id)
            .min();
    }
}

#[cfg(test)]
mod tests {
    use super::{EventHorizon, OpenTransactions};

    fn open(oldest: i64, next: i64) -> OpenTransactions {
        OpenTransactions { oldest, next }
    }

    #[test]
    fn a_gap_is_final_when_all_that_were_open_have_ended() {
        let mut horizon = EventHorizon::default();
        // Transaction 7 may still add event 3.
        assert_eq!(horizon.final_events(0, &[1, 2, 4], open(7, 9)), 2);
        assert_eq!(horizon.final_events(2, &[4, 5], open(8, 10)), 0);
        // All below 9 have ended: event 4 is final, and 5 follows it.
        assert_eq!(horizon.final_events(2, &[4, 5, 7], open(9, 12)), 2);
        // The gap before 7 was seen when 12 was next.
        assert_eq!(horizon.final_events(5, &[7], open(11, 14)), 0);
        assert_eq!(horizon.final_events(5, &[7], open(12, 14)), 1);
    }

    #[test]
    fn without_open_transactions_everything_is_final() {
        let mut horizon = EventHorizon::default();
        assert_eq!(horizon.final_events(0, &[3, 9], open(5, 5)), 2);
        assert_eq!(horizon.final_id(), 9);
        assert_eq!(horizon.final_events(9, &[], open(5, 6)), 0);
        assert_eq!(horizon.final_events(0, &[3, 9], open(5, 6)), 2);
    }

    #[test]
    fn readers_share_what_they_know() {
        let (mut one, mut two) = (EventHorizon::default(), EventHorizon::default());
        one.final_events(0, &[2], open(4, 5));
        two.final_events(0, &[2, 4], open(5, 6));
        one.merge(two);
        // The earlier of two gaps is known first.
        assert_eq!(one.final_events(0, &[2, 4], open(5, 7)), 1);
        assert_eq!(one.final_events(0, &[2, 4], open(7, 7)), 2);
    }
}
