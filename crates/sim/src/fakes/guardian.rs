//! A fake of the Guardian's API: pages of at most 200 from a date on, oldest
//! first, the key as a parameter, errors inside `response`, what is left of the
//! day in a header.

use std::io;

use serde_json::json;

use super::api::{ApiState, FakeApi, Parameters, time};
use super::http::{Call, Reply};

impl FakeApi {
    pub async fn guardian() -> io::Result<Self> {
        Self::start(respond).await
    }
}

fn respond(state: &mut ApiState, call: &Call, parameters: &Parameters) -> Reply {
    let error = |status: u16, message: &str| {
        let response = json!({ "status": "error", "message": message });
        Reply::json(status, &json!({ "response": response }))
    };
    let given = parameters.get("api-key").unwrap_or_default();
    if state.key.as_deref().is_some_and(|key| key != given) {
        return error(401, &format!("Unauthorized: {given}"));
    }
    if call.path != "/search" {
        return error(404, "The requested resource could not be found.");
    }
    let size = parameters.number("page-size", 10);
    if size > 200 {
        return error(400, "page-size must be an integer between 0 and 200");
    }
    let from = parameters
        .get("from-date")
        .and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let from = from.map_or(i64::MIN, |from| from.as_second());
    let mut listed: Vec<_> = state
        .stories
        .iter()
        .filter(|story| story.at >= from)
        .collect();
    listed.sort_by_key(|story| (story.at, story.id));
    if parameters.get("order-by") != Some("oldest") {
        listed.reverse();
    }
    let page = parameters.number("page", 1).max(1);
    let pages = listed.len().div_ceil(size.max(1));
    if page > pages.max(1) {
        return error(
            400,
            "requested page is beyond the number of available pages",
        );
    }
    let has_body = parameters
        .get("show-fields")
        .is_some_and(|fields| fields.contains("body"));
    let results: Vec<_> = listed
        .iter()
        .skip((page - 1) * size)
        .take(size)
        .map(|story| {
            let body = has_body.then(|| format!("<p>{}</p>", story.text));
            json!({
                "id": format!("world/{}", story.id), "type": "article", "sectionName": "World",
                "webTitle": story.title, "webUrl": story.url, "webPublicationDate": time(story.at),
                "fields": { "trailText": "In short", "byline": story.author, "body": body },
                "tags": [{ "webTitle": "Harbours" }],
            })
        })
        .collect();
    let reply = Reply::json(
        200,
        &json!({ "response": {
            "status": "ok", "userTier": "developer", "total": listed.len(), "pageSize": size,
            "currentPage": page, "pages": pages, "orderBy": "oldest", "results": results,
        }}),
    );
    match state.left {
        Some(left) => reply.with("X-RateLimit-Remaining-day", left.to_string()),
        None => reply,
    }
}
