//! The head of a host's queue: the priority and due time by which the host is
//! claimed. Pure rules, shared by both engines.

/// A position in a host's queue. Priority 0 means that the queue is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueHead {
    pub(crate) priority: i16,
    pub(crate) due: i64,
}

impl QueueHead {
    pub(crate) const EMPTY: Self = Self {
        priority: 0,
        due: i64::MAX,
    };

    /// The better of two: the higher priority if both are due, else the earlier.
    pub(crate) fn better(self, other: Self, now: i64) -> Self {
        let rank = |head: Self| {
            let is_due = head.due <= now;
            let urgency = if is_due { head.priority } else { 0 };
            (
                head.priority > 0,
                is_due,
                urgency,
                std::cmp::Reverse(head.due),
            )
        };
        if rank(other) > rank(self) {
            other
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::QueueHead;

    #[test]
    fn due_and_urgent_heads_come_first() {
        let head = |priority, due| QueueHead { priority, due };
        let rows = [
            (
                "anything beats nothing",
                QueueHead::EMPTY,
                head(1, 900),
                head(1, 900),
            ),
            ("due beats urgent", head(9, 200), head(3, 50), head(3, 50)),
            (
                "urgent beats early when both are due",
                head(3, 10),
                head(9, 90),
                head(9, 90),
            ),
            (
                "early beats urgent when neither is due",
                head(9, 300),
                head(3, 200),
                head(3, 200),
            ),
            (
                "the earlier of two equals",
                head(5, 90),
                head(5, 80),
                head(5, 80),
            ),
        ];
        for (name, a, b, best) in rows {
            assert_eq!(a.better(b, 100), best, "{name}");
            assert_eq!(b.better(a, 100), best, "{name}, swapped");
        }
    }
}
