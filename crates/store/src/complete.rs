//! Prepares completions for the engines: how the end of a claim changes the rows,
//! decided once for both. Pure: an outcome in, flat instructions out.

use serde_json::{Value as Json, json};

use crate::frontier::{Completion, HostChange, LeaseToken, Outcome, Status};
use crate::moment::millis;
use crate::new_document::{PreparedDocument, prepare_document};
use crate::storable::storable;
use crate::submission::Prepared;

/// The changes to the rows of one claimed URL.
#[derive(Debug, Clone)]
pub(crate) struct PreparedCompletion {
    pub(crate) lease_token: LeaseToken,
    /// The status from now on; `None` keeps what it was before the claim.
    pub(crate) status: Option<Status>,
    pub(crate) reason: Option<String>,
    pub(crate) error: Option<String>,
    /// Stays in the queue, due after this many milliseconds.
    pub(crate) due_in: Option<i64>,
    pub(crate) retries: Retries,
    /// Whether a request was made and a response received.
    pub(crate) was_fetched: bool,
    /// New validators and hash; `None` keeps the old ones.
    pub(crate) fetched: Option<Fetched>,
    pub(crate) document: Option<PreparedDocument>,
    /// The final URL of a redirect: known as fetched from now on.
    pub(crate) moved_to: Option<(Prepared, Fetched)>,
    pub(crate) event: &'static str,
    pub(crate) detail: String,
    pub(crate) host: PreparedHostChange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retries {
    Reset,
    Keep,
    Count,
}

/// Validators and hash of a successful response.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fetched {
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
    pub(crate) content_hash: Option<Vec<u8>>,
}

/// [`HostChange`] in the units of the schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PreparedHostChange {
    pub(crate) delay_ms: Option<i32>,
    pub(crate) block_ms: i64,
    pub(crate) cooldown_ms: i64,
    /// 1 counts, 0 resets, -1 leaves the count of errors.
    pub(crate) errors: i8,
}

const MAX_DELAY_MS: u128 = 3_600_000;

pub(crate) fn prepare_host_change(change: &HostChange, outcome: &Outcome) -> PreparedHostChange {
    let untouched = matches!(outcome, Outcome::Released | Outcome::Deferred { .. });
    PreparedHostChange {
        delay_ms: change
            .delay
            .map(|delay| delay.as_millis().min(MAX_DELAY_MS) as i32),
        block_ms: change.block_for.map_or(0, millis),
        cooldown_ms: millis(change.cooldown),
        errors: if change.is_error {
            1
        } else {
            -i8::from(untouched)
        },
    }
}

pub(crate) fn prepare_completion(completion: &Completion) -> PreparedCompletion {
    let host = prepare_host_change(&completion.host, &completion.outcome);
    let base = PreparedCompletion {
        lease_token: completion.lease_token,
        status: Some(Status::Fetched),
        reason: None,
        error: None,
        due_in: None,
        retries: Retries::Reset,
        was_fetched: true,
        fetched: None,
        document: None,
        moved_to: None,
        event: "fetched",
        detail: String::new(),
        host,
    };
    let attempt = completion.lease_token.attempt;
    let detail = |mut json: Json| {
        json["attempt"] = json!(attempt);
        json.to_string()
    };
    match &completion.outcome {
        Outcome::Fetched {
            etag,
            last_modified,
            content_hash,
            document,
            again_in,
        } => PreparedCompletion {
            due_in: again_in.map(millis),
            fetched: Some(fetched(etag, last_modified, content_hash)),
            document: document.as_deref().map(prepare_document),
            detail: detail(json!({})),
            ..base
        },
        Outcome::NotModified { again_in } => PreparedCompletion {
            due_in: again_in.map(millis),
            event: "not_modified",
            detail: detail(json!({})),
            ..base
        },
        Outcome::Redirected {
            to,
            etag,
            last_modified,
            content_hash,
            document,
        } => PreparedCompletion {
            status: Some(Status::Dead),
            reason: Some("redirect".to_owned()),
            document: document.as_deref().map(prepare_document),
            detail: detail(json!({ "to": to.target.url.as_str() })),
            moved_to: Some((Prepared::of(to), fetched(etag, last_modified, content_hash))),
            event: "redirected",
            ..base
        },
        Outcome::Failed { error, retry_in } => PreparedCompletion {
            status: Some(Status::Failed),
            error: Some(storable(error)),
            due_in: Some(millis(*retry_in)),
            retries: Retries::Count,
            event: "failed",
            detail: detail(json!({ "error": error, "retry_in_ms": millis(*retry_in) })),
            ..base
        },
        Outcome::Deferred { reason, retry_in } => PreparedCompletion {
            // `Failed` would count a retry; this one only waits.
            status: Some(Status::Pending),
            reason: Some(storable(reason)),
            due_in: Some(millis(*retry_in)),
            retries: Retries::Keep,
            was_fetched: false,
            event: "deferred",
            detail: detail(json!({ "reason": reason, "retry_in_ms": millis(*retry_in) })),
            ..base
        },
        Outcome::Dead { reason, error } => PreparedCompletion {
            status: Some(Status::Dead),
            reason: Some(storable(reason)),
            error: error.as_deref().map(storable),
            retries: Retries::Keep,
            event: "dead",
            detail: detail(json!({ "reason": reason, "error": error })),
            ..base
        },
        Outcome::Released => PreparedCompletion {
            status: None,
            due_in: Some(0),
            retries: Retries::Keep,
            was_fetched: false,
            event: "released",
            detail: detail(json!({})),
            ..base
        },
    }
}

fn fetched(
    etag: &Option<String>,
    last_modified: &Option<String>,
    content_hash: &Option<Vec<u8>>,
) -> Fetched {
    Fetched {
        etag: etag.as_deref().map(storable),
        last_modified: last_modified.as_deref().map(storable),
        content_hash: content_hash.clone(),
    }
}

impl PreparedHostChange {
    /// Merges several completions of one host: the longest waits, the last delay.
    pub(crate) fn merge(changes: &[Self]) -> Self {
        let longest = |of: fn(&Self) -> i64| changes.iter().map(of).max().unwrap_or(0);
        Self {
            delay_ms: changes.iter().rev().find_map(|change| change.delay_ms),
            block_ms: longest(|change| change.block_ms),
            cooldown_ms: longest(|change| change.cooldown_ms),
            errors: changes
                .iter()
                .map(|change| change.errors)
                .max()
                .unwrap_or(-1),
        }
    }

    pub(crate) fn blocked_until(&self, now: i64) -> i64 {
        if self.block_ms > 0 {
            now.saturating_add(self.block_ms)
        } else {
            0
        }
    }
}
