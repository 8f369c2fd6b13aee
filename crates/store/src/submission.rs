//! Submissions prepared for the engines: ids computed, values clamped, NUL removed,
//! duplicates merged, sorted by id. Pure.

use std::collections::{HashMap, HashSet};

use tidings_url::NORMALIZER_VERSION;

use crate::frontier::{GuidHash, PRIORITIES, Submission, TitleHash};
use crate::ids::{FrontierId, split};
use crate::storable::storable;

/// Rows of one statement: enough to amortise it, few enough to hold locks briefly.
pub(crate) const BATCH: usize = 1000;

/// A guid that is still listed is recorded again after this time, so that it does
/// not expire.
pub(crate) const GUID_REFRESH_MS: i64 = 24 * 3_600_000;

/// The event of a page when a URL becomes an alias of it.
pub(crate) const ALIAS_EVENT: &str = "alias";

pub(crate) fn alias_detail(row: &Prepared) -> String {
    serde_json::json!({ "url": row.url, "by": "guid" }).to_string()
}

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
    /// Submitted only if it is new to the source.
    pub(crate) title: Option<TitleHash>,
    /// An alias if the source has listed it with another URL.
    pub(crate) guid: Option<GuidHash>,
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
            title: submission.title,
            guid: submission.guid,
        }
    }
}

/// Batches for the engine, and for each submission the position of its verdict.
pub(crate) struct Plan {
    pub(crate) batches: Vec<Vec<Prepared>>,
    /// In the order of submission.
    pub(crate) positions: Vec<Position>,
}

/// Where the verdict of a submission comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Position {
    /// Batch and row.
    Row(usize, usize),
    /// The second of two equal URLs.
    Repeated,
    /// Another URL with the title of an earlier one.
    TitleSeen,
}

impl Plan {
    pub(crate) fn of(submissions: &[Submission]) -> Self {
        let mut seen_titles: HashSet<(i64, TitleHash)> = HashSet::new();
        let mut first: HashMap<FrontierId, usize> = HashMap::with_capacity(submissions.len());
        let mut rows: Vec<Prepared> = Vec::with_capacity(submissions.len());
        let mut row_of = Vec::with_capacity(submissions.len());
        for submission in submissions {
            let row = Prepared::of(submission);
            if let Some(at) = first.get(&row.id) {
                rows[*at].priority = rows[*at].priority.max(row.priority);
                row_of.push(Err(Position::Repeated));
            } else if row
                .title
                .is_some_and(|title| !seen_titles.insert((row.source_id, title)))
            {
                row_of.push(Err(Position::TitleSeen));
            } else {
                first.insert(row.id, rows.len());
                row_of.push(Ok(rows.len()));
                rows.push(row);
            }
        }
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_unstable_by_key(|at| rows[*at].id);
        let mut position_of = vec![Position::Repeated; rows.len()];
        for (rank, at) in order.iter().enumerate() {
            position_of[*at] = Position::Row(rank / BATCH, rank % BATCH);
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
            .map(|at| at.map_or_else(|other| other, |at| position_of[at]))
            .collect();
        Self { batches, positions }
    }
}
