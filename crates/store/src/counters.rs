//! How a batch changes the URL counters, summed up so that stats need no counting.
//! Pure; each engine persists it in its own way.

use std::collections::BTreeMap;

use crate::frontier::Status;

/// Changes of the counters by source, origin and status.
#[derive(Debug, Default)]
pub(crate) struct CounterDeltas(BTreeMap<(i64, i16, i16), i64>);

impl CounterDeltas {
    pub(crate) fn add(&mut self, source_id: i64, origin: i16, status: Status, n: i64) {
        *self
            .0
            .entry((source_id, origin, status.code()))
            .or_insert(0) += n;
    }

    /// Source, origin, status and delta, where the delta is not zero.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (i64, i16, i16, i64)> + '_ {
        let change = |(key, n): (&(i64, i16, i16), &i64)| (key.0, key.1, key.2, *n);
        self.0.iter().map(change).filter(|(.., n)| *n != 0)
    }
}

/// A status as stored in `urls`; an unknown one is safe to fetch again.
pub(crate) fn stored_status(code: i16) -> Status {
    Status::from_code(i64::from(code)).unwrap_or(Status::Pending)
}
