//! A fake Reddit: listings of at most 100 and 1,000 deep, paged by the name of a
//! post, tokens for keys, limits in headers, and a feed of the newest.

use std::io;

use serde_json::json;

use super::api::{ApiState, FakeApi, Parameters, Story, time};
use super::http::{Call, Reply};

const DEPTH: usize = 1000;

impl FakeApi {
    pub async fn reddit() -> io::Result<Self> {
        Self::start(respond).await
    }
}

fn respond(state: &mut ApiState, call: &Call, parameters: &Parameters) -> Reply {
    let given = call.header("authorization").unwrap_or_default();
    if call.path == "/api/v1/access_token" {
        return match state.key.as_deref() {
            // The right pair is `key:key`, as base64.
            Some(key) if given != format!("Basic {key}") => {
                Reply::json(401, &json!({ "message": "Unauthorized", "error": 401 }))
            }
            _ => Reply::json(200, &json!({ "access_token": "token-of-the-fake" })),
        };
    }
    let mut newest: Vec<_> = state.stories.iter().collect();
    newest.sort_by_key(|story| std::cmp::Reverse((story.at, story.id)));
    newest.truncate(DEPTH);
    if call.path.ends_with("/new/.rss") {
        return feed(&newest, parameters.number("limit", 25));
    }
    if !call.path.ends_with("/new.json") {
        return Reply::json(404, &json!({ "message": "Not Found", "error": 404 }));
    }
    if state.key.is_some() && given != "Bearer token-of-the-fake" {
        return Reply::text(403, "<html>whoa there</html>");
    }
    let start = match parameters.get("after") {
        None => 0,
        Some(after) => {
            let found = newest.iter().position(|story| name(story) == after);
            found.map_or(newest.len(), |at| at + 1)
        }
    };
    let limit = parameters.number("limit", 25).min(100);
    let page: Vec<_> = newest.iter().skip(start).take(limit).collect();
    let is_last = start + page.len() >= newest.len();
    let after = page.last().filter(|_| !is_last).map(|story| name(story));
    let children: Vec<_> = page
        .iter()
        .map(|story| {
            json!({ "kind": "t3", "data": {
                "id": story.id.to_string(), "name": name(story), "title": story.title, "url": story.url,
                "permalink": format!("/r/x/comments/{}/", story.id), "author": story.author,
                "selftext": if story.url.is_empty() { story.text.as_str() } else { "" },
                "is_self": story.url.is_empty(), "created_utc": story.at as f64,
                "over_18": story.subject == "over_18",
            }})
        })
        .collect();
    let listing = json!({ "kind": "Listing", "data": { "after": after, "children": children } });
    let reply = Reply::json(200, &listing);
    match state.left {
        Some(left) => reply
            .with("X-Ratelimit-Remaining", format!("{left}.0"))
            .with("X-Ratelimit-Reset", "300"),
        None => reply,
    }
}

fn name(story: &Story) -> String {
    format!("t3_{}", story.id)
}

fn feed(newest: &[&Story], limit: usize) -> Reply {
    let entries: String = newest
        .iter()
        .take(limit.min(100))
        .map(|story| {
            format!(
                "<entry><id>{}</id><title>{}</title><link href=\"https://www.reddit.com/r/x/comments/{}/\"/>\
                 <updated>{}</updated><author><name>/u/x</name></author></entry>",
                name(story), story.title, story.id, time(story.at)
            )
        })
        .collect();
    let body = format!(
        "<?xml version=\"1.0\"?><feed xmlns=\"http://www.w3.org/2005/Atom\"><title>x</title>{entries}</feed>"
    );
    Reply::Response {
        status: 200,
        headers: vec![("Content-Type", "application/atom+xml".to_owned())],
        body: body.into_bytes(),
    }
}
