//! A fake NewsAPI v2: newest first, pages of at most 100, plans that show only
//! the first results (426), errors as JSON with a code.

use std::io;

use serde_json::json;

use super::api::{ApiState, FakeApi, Parameters, time};
use super::http::{Call, Reply};

impl FakeApi {
    pub async fn newsapi() -> io::Result<Self> {
        Self::start(respond).await
    }
}

fn error(status: u16, code: &str, message: &str) -> Reply {
    Reply::json(
        status,
        &json!({ "status": "error", "code": code, "message": message }),
    )
}

fn respond(state: &mut ApiState, call: &Call, parameters: &Parameters) -> Reply {
    let given = call.header("x-api-key").unwrap_or_default();
    if given.is_empty() {
        return error(401, "apiKeyMissing", "Your API key is missing.");
    }
    if state.key.as_deref().is_some_and(|key| key != given) {
        // Servers do repeat what they were sent.
        let message = format!("Your API key {given} is invalid or incorrect.");
        return error(401, "apiKeyInvalid", &message);
    }
    let is_everything = match call.path.as_str() {
        "/v2/everything" => true,
        "/v2/top-headlines" => false,
        _ => return error(404, "endpointUnknown", "There is no such endpoint."),
    };
    let names = ["q", "sources", "domains", "country", "category"];
    if names.iter().all(|name| parameters.get(name).is_none()) {
        return error(400, "parametersMissing", "Required parameters are missing.");
    }
    let size = parameters.number("pageSize", 100);
    if size > 100 {
        return error(400, "parameterInvalid", "pageSize is 100 at most.");
    }
    let moment = |name: &str| -> Option<i64> {
        let text = parameters.get(name)?;
        text.parse::<jiff::Timestamp>()
            .ok()
            .map(|time| time.as_second())
    };
    let (from, to) = (moment("from"), moment("to"));
    let is_listed = |at: i64| {
        !is_everything || (from.is_none_or(|from| at >= from) && to.is_none_or(|to| at <= to))
    };
    let mut listed: Vec<_> = state
        .stories
        .iter()
        .filter(|story| is_listed(story.at))
        .collect();
    listed.sort_by_key(|story| std::cmp::Reverse((story.at, story.id)));
    let start = (parameters.number("page", 1).max(1) - 1) * size;
    if state.cap.is_some_and(|cap| start + size > cap) {
        let message = "You have requested too many results.";
        return error(426, "maximumResultsReached", message);
    }
    let articles: Vec<_> = listed
        .iter()
        .skip(start)
        .take(size)
        .map(|story| {
            json!({
                "source": { "id": null, "name": "Paper" },
                "author": story.author, "title": story.title, "url": story.url,
                "description": format!("About {}", story.title), "urlToImage": null,
                "publishedAt": time(story.at),
                "content": format!("{}… [+900 chars]", story.text),
            })
        })
        .collect();
    Reply::json(
        200,
        &json!({ "status": "ok", "totalResults": listed.len(), "articles": articles }),
    )
}
