//! Bulk changes of the frontier: submitting URLs with a verdict on each, and retrying
//! or deleting all that match a filter. Bounded in number and bytes; a repeated
//! idempotency key returns the first response.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, header};
use serde::Serialize;
use serde_json::json;
use tidings_store::{
    Filter, FrontierId, MAX_STORED_RESPONSE, Order, Origin, Replay, Store, Submission, Verdict,
};
use tidings_url::{FetchUrl, Rules};

use super::bulk_body::{self, Item};
use super::frontier::{filter_from_body, is_everything, rules, target};
use crate::body_fields::BodyFields;
use crate::problem::Problem;
use crate::request::{BODY_TIMEOUT, CheckedRequest};
use crate::response::{HandlerResult, json};
use crate::route::RequestBody;

#[derive(Debug, Default, Serialize)]
struct Report {
    total: usize,
    new: usize,
    raised: usize,
    known: usize,
    invalid: usize,
    /// In the order of the request.
    verdicts: Vec<Line>,
    /// A replay whose first response was too long to be stored: only the totals.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    verdicts_omitted: bool,
}

#[derive(Debug, Serialize)]
struct Line {
    url: String,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Report {
    fn into_totals(self) -> Self {
        Self {
            verdicts: Vec::new(),
            verdicts_omitted: true,
            ..self
        }
    }
}

pub(crate) async fn submit(request: CheckedRequest) -> HandlerResult {
    let store = &request.app.store;
    let key = request.headers.get("idempotency-key");
    let key = match key.map(|key| key.to_str().unwrap_or_default()) {
        None => None,
        Some(key) if (1..=200).contains(&key.len()) => {
            // Keys of different tokens never collide.
            let owner = request
                .principal
                .as_ref()
                .map_or(0, |principal| principal.token_id);
            Some(format!("bulk:{owner}:{key}"))
        }
        Some(_) => {
            return Err(Problem::field(
                "idempotency-key",
                "the idempotency-key is not 1 to 200 ASCII characters",
            ));
        }
    };
    // Parsed before the key is stored: an invalid body does not use up its key.
    let body = bulk_body::read(
        request.take_body(),
        &request.content_type(),
        RequestBody::UrlList.max_bytes(),
        BODY_TIMEOUT,
    )
    .await?;
    // The hash stands for the body.
    if let Some(key) = &key
        && let Replay::Done(body) = store.begin_idempotent(key, &body.hash).await?
    {
        return Ok(report_response(body, true));
    }
    let report = submit_items(store, body.items).await?;
    let body = serde_json::to_string(&report).map_err(Problem::internal)?;
    if let Some(key) = &key {
        let totals = match body.len() > MAX_STORED_RESPONSE {
            true => Some(serde_json::to_string(&report.into_totals())),
            false => None,
        };
        let totals = totals.transpose().map_err(Problem::internal)?;
        let stored = totals.as_ref().unwrap_or(&body);
        store.finish_idempotent(key, stored).await?;
    }
    Ok(report_response(body, false))
}

fn report_response(body: String, is_replayed: bool) -> Response {
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    if is_replayed {
        headers.insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    response
}

async fn submit_items(store: &Store, items: Vec<Item>) -> Result<Report, Problem> {
    let mut rules_of: HashMap<i64, Result<Rules, String>> = HashMap::new();
    let mut report = Report {
        total: items.len(),
        ..Report::default()
    };
    let mut submissions = Vec::with_capacity(items.len());
    let mut places = Vec::with_capacity(items.len());
    for (place, item) in items.into_iter().enumerate() {
        if let Entry::Vacant(entry) = rules_of.entry(item.source_id) {
            entry.insert(match rules(store, item.source_id).await {
                Ok(rules) => Ok(rules),
                Err(problem) if problem.field.is_some() => Err(problem.detail),
                Err(problem) => return Err(problem),
            });
        }
        let parsed = match &rules_of[&item.source_id] {
            Err(why) => Err(why.clone()),
            Ok(rules) => FetchUrl::parse(&item.url)
                .map(|url| target(url, rules, store.proxy_hosts()))
                .map_err(|error| error.rule.to_string()),
        };
        let (verdict, error) = match parsed {
            Err(why) => {
                report.invalid += 1;
                ("invalid", Some(why))
            }
            Ok(target) => {
                places.push(place);
                submissions.push(Submission {
                    source_id: item.source_id,
                    priority: item.priority,
                    ..Submission::new(target, Origin::Api)
                });
                ("known", None)
            }
        };
        report.verdicts.push(Line {
            url: item.url,
            verdict,
            error,
        });
    }
    let verdicts = store.submit(&submissions).await?;
    for (place, verdict) in places.into_iter().zip(verdicts) {
        let (count, word) = match verdict {
            Verdict::New => (&mut report.new, "new"),
            Verdict::Raised => (&mut report.raised, "raised"),
            Verdict::Known => (&mut report.known, "known"),
        };
        *count += 1;
        report.verdicts[place].verdict = word;
    }
    Ok(report)
}

/// What a bulk action does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Retry,
    Delete,
}

impl std::str::FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "retry" => Ok(Self::Retry),
            "delete" => Ok(Self::Delete),
            _ => Err(format!("{text:?} is not one of retry, delete")),
        }
    }
}

pub(crate) async fn change(request: CheckedRequest) -> HandlerResult {
    let mut fields = request.json()?;
    let action: Action = fields
        .parsed("action")?
        .ok_or_else(|| Problem::field("action", "action is missing: retry or delete"))?;
    let filter = filter_from_body(BodyFields::new(fields.object("filter")?, "filter."))?;
    let is_preview = fields.flag("preview")?;
    let includes_all = fields.flag("all")?;
    fields.finish()?;
    if is_everything(&filter) && !includes_all {
        return Err(Problem::field(
            "filter",
            "filter is empty; set \"all\": true to change every URL",
        ));
    }
    let store = &request.app.store;
    let matched = store.count(&filter).await?;
    let changed = match is_preview {
        true => 0,
        false => change_all(store, action, &filter).await?,
    };
    json(&json!({ "matched": matched, "changed": changed, "preview": is_preview }))
}

/// Changes all matching URLs, page by page in id order, so that each is changed once.
pub(crate) async fn change_all(
    store: &Store,
    action: Action,
    filter: &Filter,
) -> Result<u64, Problem> {
    let (mut after, mut changed) = (None, 0);
    loop {
        let page = store.list(filter, Order::Id, after, 1000).await?;
        let ids: Vec<FrontierId> = page.rows.iter().map(|row| row.id).collect();
        changed += match action {
            Action::Retry => store.requeue(&ids).await?,
            Action::Delete => store.remove(&ids).await?,
        };
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(changed),
        }
    }
}
