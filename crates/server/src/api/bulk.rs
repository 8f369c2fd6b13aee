//! Many URLs at once: submitting with a verdict on each, and changing all that
//! match a filter. Bounded in number and bytes; a repeated key gives the first
//! answer again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::{Value as Json, json};
use tidings_store::{Filter, FrontierId, Order, Origin, Replay, Store, Submission, Verdict};
use tidings_url::{FetchUrl, Rules};

use super::frontier::{filter_of, is_everything, rules, target};
use crate::call::{Answer, Call, Fields, json};
use crate::problem::Problem;

const MOST: usize = 100_000;

/// One item as it was sent.
#[derive(Debug)]
struct Item {
    url: String,
    source_id: i64,
    priority: u8,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    total: usize,
    new: usize,
    raised: usize,
    known: usize,
    invalid: usize,
    /// In the order in which they were sent.
    verdicts: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    url: String,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(crate) async fn submit(call: Call) -> Answer {
    let store = &call.app.store;
    let key = call.headers.get("idempotency-key");
    let key = match key.map(|key| key.to_str().unwrap_or_default()) {
        None => None,
        Some(key) if (1..=200).contains(&key.len()) => {
            // Two tokens may choose the same key without meeting.
            let owner = call.who.as_ref().map_or(0, |who| who.token_id);
            Some(format!("bulk:{owner}:{key}"))
        }
        Some(_) => {
            return Err(Problem::field(
                "idempotency-key",
                "the idempotency-key is not 1 to 200 ASCII characters",
            ));
        }
    };
    // Read before the key is kept: a body that can't be read is no first time.
    let items = read(&call)?;
    if let Some(key) = &key
        && let Replay::Done(answer) = store.begin_idempotent(key, &call.body).await?
    {
        return Ok(answered(answer, true));
    }
    let report = judged(store, items).await?;
    let answer = serde_json::to_string(&report).map_err(Problem::internal)?;
    if let Some(key) = &key {
        store.finish_idempotent(key, &answer).await?;
    }
    Ok(answered(answer, false))
}

fn answered(answer: String, is_replayed: bool) -> Response {
    let mut response = Response::new(Body::from(answer));
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

async fn judged(store: &Store, items: Vec<Item>) -> Result<Report, Problem> {
    let mut rules_of: HashMap<i64, Result<Rules, String>> = HashMap::new();
    let mut report = Report {
        total: items.len(),
        ..Report::default()
    };
    let mut good = Vec::with_capacity(items.len());
    let mut places = Vec::with_capacity(items.len());
    for (place, item) in items.into_iter().enumerate() {
        if let Entry::Vacant(unknown) = rules_of.entry(item.source_id) {
            unknown.insert(match rules(store, item.source_id).await {
                Ok(rules) => Ok(rules),
                Err(problem) if problem.field.is_some() => Err(problem.detail),
                Err(problem) => return Err(problem),
            });
        }
        let parsed = match &rules_of[&item.source_id] {
            Err(why) => Err(why.clone()),
            Ok(rules) => FetchUrl::parse(&item.url)
                .map(|url| target(url, rules))
                .map_err(|error| error.rule.to_string()),
        };
        let (verdict, error) = match parsed {
            Err(why) => {
                report.invalid += 1;
                ("invalid", Some(why))
            }
            Ok(target) => {
                places.push(place);
                good.push(Submission {
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
    let verdicts = store.submit(&good).await?;
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

/// The items of a body, by its media type.
fn read(call: &Call) -> Result<Vec<Item>, Problem> {
    let items = match call.content_type().as_str() {
        "application/json" => read_array(&call.body),
        "application/x-ndjson" | "application/jsonl" | "application/ndjson" => {
            read_lines(&call.body)
        }
        "text/csv" => read_csv(&call.body),
        _ => Err(Problem {
            field: Some("content-type".to_owned()),
            ..Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "application/json, application/x-ndjson or text/csv is expected",
            )
        }),
    }?;
    match items.len() {
        0 => Err(Problem::field("body", "there is no URL in it")),
        _ => Ok(items),
    }
}

fn too_many() -> Problem {
    Problem {
        field: Some("body".to_owned()),
        ..Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("more than {MOST} URLs; send them in parts"),
        )
    }
}

fn read_array(body: &[u8]) -> Result<Vec<Item>, Problem> {
    let values: Vec<Json> = serde_json::from_slice(body).map_err(|error| {
        Problem::field("body", format!("this is no JSON array of URLs: {error}"))
    })?;
    if values.len() > MOST {
        return Err(too_many());
    }
    let numbered = values.into_iter().enumerate();
    numbered.map(|(n, value)| item(value, n + 1)).collect()
}

fn read_lines(body: &[u8]) -> Result<Vec<Item>, Problem> {
    let mut items = Vec::new();
    for (n, line) in body.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        if items.len() == MOST {
            return Err(too_many());
        }
        let value = serde_json::from_slice(line)
            .map_err(|error| Problem::field("body", format!("line {}: {error}", n + 1)))?;
        items.push(item(value, n + 1)?);
    }
    Ok(items)
}

/// A URL, or an object with one.
fn item(value: Json, number: usize) -> Result<Item, Problem> {
    let fields = match value {
        Json::String(url) => {
            return Ok(Item {
                url,
                source_id: 0,
                priority: 5,
            });
        }
        Json::Object(fields) => fields,
        _ => {
            return Err(Problem::field(
                "body",
                format!("item {number} is neither a URL nor an object"),
            ));
        }
    };
    let mut fields = Fields::new(fields, "");
    let mut read = || {
        Ok(Item {
            url: fields.text("url")?,
            source_id: fields
                .number("source_id", 0..=crate::routes::MOST_ID)?
                .unwrap_or(0),
            priority: fields.number("priority", 1..=10)?.unwrap_or(5) as u8,
        })
    };
    let result = read();
    let in_place = |problem: Problem| Problem {
        detail: format!("item {number}: {}", problem.detail),
        ..problem
    };
    let item = result.map_err(in_place)?;
    fields.end().map_err(in_place)?;
    Ok(item)
}

fn read_csv(body: &[u8]) -> Result<Vec<Item>, Problem> {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body));
    let wrong = |why: String| Problem::field("body", why);
    let headers = reader
        .headers()
        .map_err(|error| wrong(error.to_string()))?
        .clone();
    let column = |name: &str| {
        headers
            .iter()
            .position(|header| header.eq_ignore_ascii_case(name))
    };
    let Some(url) = column("url") else {
        return Err(wrong("the first line must name the column url".to_owned()));
    };
    let (source, priority) = (column("source_id"), column("priority"));
    let mut items = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| wrong(error.to_string()))?;
        if items.len() == MOST {
            return Err(too_many());
        }
        let line = record.position().map_or(0, csv::Position::line);
        let number = |at: Option<usize>, name: &str, default: i64, most: i64| match at
            .and_then(|at| record.get(at))
            .filter(|text| !text.is_empty())
        {
            None => Ok(default),
            Some(text) => text
                .parse()
                .ok()
                .filter(|number| (default.min(1)..=most).contains(number))
                .ok_or_else(|| {
                    Problem::field(name, format!("line {line}: {name} {text:?} can't be used"))
                }),
        };
        items.push(Item {
            url: record.get(url).unwrap_or_default().to_owned(),
            source_id: number(source, "source_id", 0, crate::routes::MOST_ID)?,
            priority: number(priority, "priority", 5, 10)? as u8,
        });
    }
    Ok(items)
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

pub(crate) async fn change(call: Call) -> Answer {
    let mut fields = call.json()?;
    let action: Action = fields
        .parsed("action")?
        .ok_or_else(|| Problem::field("action", "action is missing: retry or delete"))?;
    let filter = filter_of(Fields::new(fields.object("filter")?, "filter."))?;
    let is_preview = fields.flag("preview")?;
    let takes_all = fields.flag("all")?;
    fields.end()?;
    if is_everything(&filter) && !takes_all {
        return Err(Problem::field(
            "filter",
            "filter is empty; say \"all\": true if every URL is meant",
        ));
    }
    let store = &call.app.store;
    let matched = store.count(&filter).await?;
    let changed = match is_preview {
        true => 0,
        false => change_all(store, action, &filter).await?,
    };
    json(&json!({ "matched": matched, "changed": changed, "preview": is_preview }))
}

/// Changes all that match, a page at a time, in the order of their ids: what is
/// changed on the way is met once.
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
