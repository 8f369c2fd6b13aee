//! How the feeds of a simulation date their items: as they should, or in the
//! ways that real feeds get wrong.

use jiff::Timestamp;

const DAY: i64 = 86_400_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dating {
    /// The moment of publication.
    #[default]
    Exact,
    /// The day only.
    Day,
    /// All the same, in the past.
    Equal,
    /// In the future.
    Future,
    /// No dates.
    None,
}

impl Dating {
    pub(crate) fn dates(self, published: &[i64]) -> Vec<Option<Timestamp>> {
        let first = published.first().copied().unwrap_or(0);
        let dated = |at: &i64| {
            let at = match self {
                Self::Exact => *at,
                Self::Day => at.div_euclid(DAY) * DAY,
                Self::Equal => first,
                Self::Future => at.saturating_add(3650 * DAY),
                Self::None => return None,
            };
            Timestamp::from_millisecond(at).ok()
        };
        published.iter().map(dated).collect()
    }
}
