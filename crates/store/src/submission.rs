//! Submissions prepared for the engines: ids computed, values clamped, NUL removed,
//! duplicates merged, sorted by id. Pure.

use std::collections::HashMap;

use tidings_url::NORMALIZER_VERSION;

use crate::frontier::{PRIORITIES, Submission};
use crate::ids::{FrontierId, split};
use crate::storable::storable;

/// Rows of one statement: enough to amortise it, few enough to hold locks briefly.
pub(crate) const BATCH: usize = 1000;

/// One row to submit.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) id: FrontierId,
    pub(crate) key_tail: [u8; 16],
    pub(crate) url: String,
    pub(crate) host_key: String,
    pub(crate) source_id: i64,
    pub(crate) origin: i16,
    pub(crate) priority: i16,
    pub(crate) depth: i16,
    pub(crate) parent_url: Option<String>,
    pub(crate) item: Option<String>,
    pub(crate) not_before: i64,
    pub(crate) norm_v: i16,
}

impl Prepared {
    pub(crate) fn of(submission: &Submission) -> Self {
        let target = &submission.target;
        Self {
            id: target.id(),
            key_tail: split(&target.key).1,
            url: target.url.as_str().to_owned(),
            host_key: target.host.as_str().to_owned(),
            source_id: submission.source_id,
            origin: submission.origin.code(),
            priority: i16::from(
                submission
                    .priority
                    .clamp(*PRIORITIES.start(), *PRIORITIES.end()),
            ),
            depth: i16::try_from(submission.depth).unwrap_or(i16::MAX),
            parent_url: submission.parent_url.as_deref().map(storable),
            item: submission.item.as_deref().map(storable),
            not_before: submission.not_before.map_or(0, |moment| moment.0),
            norm_v: NORMALIZER_VERSION as i16,
        }
    }
}

/// Batches for the engine, and for each submission the position of its verdict.
pub(crate) struct Plan {
    pub(crate) batches: Vec<Vec<Prepared>>,
    /// Batch and position of each submission, in the order of submission. The
    /// second of two equal URLs has the position of the first, and is `known`.
    pub(crate) positions: Vec<(usize, usize, bool)>,
}

impl Plan {
    pub(crate) fn of(submissions: &[Submission]) -> Self {
        let mut first: HashMap<FrontierId, usize> = HashMap::with_capacity(submissions.len());
        let mut rows: Vec<Prepared> = Vec::with_capacity(submissions.len());
        let mut row_of = Vec::with_capacity(submissions.len());
        for submission in submissions {
            let row = Prepared::of(submission);
            match first.get(&row.id) {
                Some(at) => {
                    rows[*at].priority = rows[*at].priority.max(row.priority);
                    row_of.push((*at, true));
                }
                None => {
                    first.insert(row.id, rows.len());
                    row_of.push((rows.len(), false));
                    rows.push(row);
                }
            }
        }
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_unstable_by_key(|at| rows[*at].id);
        let mut position_of = vec![(0, 0); rows.len()];
        for (rank, at) in order.iter().enumerate() {
            position_of[*at] = (rank / BATCH, rank % BATCH);
        }
        rows.sort_unstable_by_key(|row| row.id);
        let mut batches: Vec<Vec<Prepared>> = Vec::new();
        for row in rows {
            match batches.last_mut() {
                Some(batch) if batch.len() < BATCH => batch.push(row),
                _ => batches.push(vec![row]),
            }
        }
        let positions = row_of
            .into_iter()
            .map(|(at, repeated)| (position_of[at].0, position_of[at].1, repeated))
            .collect();
        Self { batches, positions }
    }
}
