//! A fake Hacker News, both of its APIs: search by date with at most 1,000 hits
//! for a query, and the lists of ids with items that may be null or dead.

use std::io;

use serde_json::{Value, json};

use super::api::{ApiState, FakeApi, Parameters, Story};
use super::http::{Call, Reply};

impl FakeApi {
    pub async fn hackernews() -> io::Result<Self> {
        Self::start(respond).await
    }
}

fn respond(state: &mut ApiState, call: &Call, parameters: &Parameters) -> Reply {
    match call.path.as_str() {
        "/api/v1/search_by_date" => search(state, parameters),
        path => match path.strip_prefix("/v0/item/") {
            Some(name) => item(state, name),
            None if path.starts_with("/v0/") && path.ends_with("stories.json") => {
                let ids: Vec<u64> = state.stories.iter().rev().map(|story| story.id).collect();
                Reply::json(200, &json!(ids[..ids.len().min(500)]))
            }
            None => Reply::text(404, "not found"),
        },
    }
}

fn link(story: &Story) -> Value {
    match story.url.as_str() {
        "" => Value::Null,
        url => json!(url),
    }
}

fn search(state: &ApiState, parameters: &Parameters) -> Reply {
    let filters = parameters.get("numericFilters").unwrap_or_default();
    let is_listed = |story: &Story| {
        filters.split(',').all(|filter| {
            let bound = |sign: &str| -> Option<i64> {
                filter
                    .strip_prefix("created_at_i")?
                    .strip_prefix(sign)?
                    .parse()
                    .ok()
            };
            match (bound(">="), bound("<=")) {
                (Some(least), _) => story.at >= least,
                (_, Some(most)) => story.at <= most,
                _ => filter.is_empty(),
            }
        })
    };
    let mut listed: Vec<_> = state
        .stories
        .iter()
        .filter(|story| is_listed(story))
        .collect();
    listed.sort_by_key(|story| std::cmp::Reverse((story.at, story.id)));
    let size = parameters.number("hitsPerPage", 20).min(1000);
    let hits: Vec<_> = listed
        .iter()
        .take(size)
        .map(|story| {
            json!({
                "objectID": story.id.to_string(), "title": story.title, "url": link(story),
                "author": story.author, "points": 10, "num_comments": 0,
                "created_at_i": story.at, "story_text": (story.url.is_empty()).then_some(&story.text),
            })
        })
        .collect();
    Reply::json(200, &json!({ "hits": hits, "nbHits": listed.len() }))
}

fn item(state: &ApiState, name: &str) -> Reply {
    let id = name.trim_end_matches(".json").parse().unwrap_or(0);
    let found = state.stories.iter().find(|story| story.id == id);
    // Unknown items are null, and items may be null for a moment after they are listed.
    let Some(story) = found.filter(|story| story.subject != "null") else {
        return Reply::json(200, &Value::Null);
    };
    let mut post = json!({
        "id": story.id, "type": "story", "by": story.author, "time": story.at,
        "title": story.title, "score": 10, "descendants": 0,
    });
    match story.url.as_str() {
        "" => post["text"] = json!(story.text),
        url => post["url"] = json!(url),
    }
    if story.subject == "dead" {
        post["dead"] = json!(true);
    }
    Reply::json(200, &post)
}
