//! What a batch moves between statuses, added up so that stats need no counting.
//! Pure; each engine writes it down in its own way.

use std::collections::BTreeMap;

use crate::frontier::Status;

/// Changes of the numbers by source, origin and status.
#[derive(Debug, Default)]
pub(crate) struct Moves(BTreeMap<(i64, i16, i16), i64>);

impl Moves {
    pub(crate) fn add(&mut self, source_id: i64, origin: i16, status: Status, n: i64) {
        *self
            .0
            .entry((source_id, origin, status.code()))
            .or_insert(0) += n;
    }

    /// Source, origin, status and by how much, where it is not nothing.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (i64, i16, i16, i64)> + '_ {
        let change = |(key, n): (&(i64, i16, i16), &i64)| (key.0, key.1, key.2, *n);
        self.0.iter().map(change).filter(|(.., n)| *n != 0)
    }
}

/// A status as it is kept in `urls`; one that is unknown is safe to fetch again.
pub(crate) fn stored_status(code: i16) -> Status {
    Status::from_code(i64::from(code)).unwrap_or(Status::Pending)
}
