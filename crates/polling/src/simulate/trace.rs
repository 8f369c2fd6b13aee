//! Recorded feeds: one line of JSON for each item, with the feed's id and the
//! time of publication. `{"feed": "bbc", "published": "2026-01-05T09:00:00Z"}`

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::simulate::world::{Feed, World};

/// A trace that can't be played.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    #[error("line {line}: {problem}; a line is expected to be like {EXAMPLE}")]
    Line { line: usize, problem: String },
    #[error("the trace is empty; a line is expected to be like {EXAMPLE}")]
    Empty,
}

const EXAMPLE: &str = r#"{"feed": "bbc", "published": "2026-01-05T09:00:00Z"}"#;

/// Names by which traces call the feed and the time; the first that is there
/// counts, so records with more in them can be used as they are.
const FEED: [&str; 5] = ["feed", "feed_id", "source", "source_id", "id"];
const PUBLISHED: [&str; 9] = [
    "published",
    "published_at",
    "publication_time",
    "pub_date",
    "timestamp",
    "time",
    "date",
    "at",
    "t",
];

/// Reads a trace; feeds that don't say how many items they list get `window`.
pub fn read_trace(text: &str, window: usize) -> Result<World, TraceError> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut feeds: Vec<(usize, Vec<i64>)> = Vec::new();
    for (index, text) in text.lines().enumerate() {
        if text.trim().is_empty() {
            continue;
        }
        let failed = |problem: String| TraceError::Line {
            line: index + 1,
            problem,
        };
        let line: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| failed(error.to_string()))?;
        let named = |names: &[&str]| {
            let value = names.iter().find_map(|name| line.get(*name));
            value.ok_or_else(|| failed(format!("there is no \"{}\"", names[0])))
        };
        let feed = named(&FEED)?.to_string();
        let published = named(&PUBLISHED)?;
        let at = moment(published).ok_or_else(|| failed(format!("{published} is no time")))?;
        let next = feeds.len();
        let number = *numbers.entry(feed).or_insert(next);
        if number == next {
            feeds.push((window, Vec::new()));
        }
        let (window, published) = &mut feeds[number];
        let listed = line.get("window").and_then(Value::as_u64);
        *window = listed.map_or(*window, |items| items.min(100_000) as usize);
        published.push(at);
    }
    let times = || {
        feeds
            .iter()
            .flat_map(|(_, published)| published.iter().copied())
    };
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        return Err(TraceError::Empty);
    };
    let feeds = feeds.into_iter().enumerate();
    let feeds = feeds.map(|(number, (window, published))| {
        // Far fewer feeds than an i64 can count.
        Feed::new(i64::try_from(number).unwrap_or(i64::MAX), window, published)
    });
    Ok(World::new("trace", feeds.collect(), first, last + 1))
}

/// RFC 3339, or seconds or milliseconds since 1970, as milliseconds.
fn moment(value: &Value) -> Option<i64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.trim().parse::<Timestamp>() {
            Ok(timestamp) => return Some(timestamp.as_millisecond()),
            Err(_) => text.trim().parse().ok(),
        },
        _ => None,
    }?;
    // Seconds reach this in the year 5138, milliseconds did in 1973.
    let millis = if number.abs() < 1e11 {
        number * 1000.0
    } else {
        number
    };
    let timestamp = Timestamp::from_millisecond(millis.round() as i64).ok()?;
    Some(timestamp.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spellings_of_a_trace_are_understood() {
        let text = r#"
            {"feed": "a", "published": "2026-01-05T09:00:00Z"}
            {"feed_id": 7, "published_at": 1767603601}
            {"id": "a", "t": 1767603602000, "window": 12}
            {"feed": "a", "id": "item-1", "date": "2026-01-05", "time": 1767603602}
            {"feed": "a", "published": "2026-01-05T10:00:03+01:00", "title": "ignored"}
            {"feed": 7, "timestamp": "1767603604.5"}
        "#;
        let world = read_trace(text, 30).unwrap();
        assert_eq!(
            (world.start, world.end),
            (1_767_603_600_000, 1_767_603_604_501)
        );
        let feeds: Vec<_> = world
            .feeds
            .iter()
            .map(|f| (f.window, f.published.len()))
            .collect();
        assert_eq!(feeds, [(12, 4), (30, 2)]);
    }

    #[test]
    fn a_bad_line_is_named() {
        let rows = [
            ("", "the trace is empty"),
            ("\n{\"feed\": 1}", "line 2: there is no \"published\""),
            (
                "{\"feed\": 1, \"published\": \"soon\"}",
                "line 1: \"soon\" is no time",
            ),
            (
                "{\"feed\": 1, \"published\": null}",
                "line 1: null is no time",
            ),
            ("feed,published", "line 1: "),
        ];
        for (text, message) in rows {
            let error = read_trace(text, 30).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
            assert!(error.contains("expected to be like"), "{error}");
        }
    }
}
