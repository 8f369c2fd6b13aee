//! Whether a document fits an index mapping, as Elasticsearch would judge it:
//! unknown fields of a strict mapping and values of a wrong type are errors.
//! Knows the types that our mapping uses. Pure.

use jiff::Timestamp;
use jiff::civil;
use serde_json::{Map, Value, json};

/// The error of the first field that doesn't fit.
pub(crate) fn misfit(mappings: &Value, source: &Value) -> Option<Value> {
    let Some(fields) = source.as_object() else {
        return Some(error("document_parsing_exception", "not an object"));
    };
    let is_strict = mappings["dynamic"] == "strict";
    object(&mappings["properties"], fields, "", is_strict)
}

fn object(
    properties: &Value,
    fields: &Map<String, Value>,
    path: &str,
    is_strict: bool,
) -> Option<Value> {
    for (name, value) in fields {
        let full = format!("{path}{name}");
        match &properties[name] {
            Value::Null if is_strict => {
                let reason = format!(
                    "mapping set to strict, dynamic introduction of [{name}] within [{}] is not allowed",
                    if path.is_empty() {
                        "_doc"
                    } else {
                        path.trim_end_matches('.')
                    }
                );
                return Some(error("strict_dynamic_mapping_exception", &reason));
            }
            Value::Null => {}
            mapping => {
                if let Some(error) = value_misfit(mapping, value, &full, is_strict) {
                    return Some(error);
                }
            }
        }
    }
    None
}

fn value_misfit(mapping: &Value, value: &Value, path: &str, is_strict: bool) -> Option<Value> {
    if let Value::Array(values) = value {
        return values
            .iter()
            .find_map(|value| value_misfit(mapping, value, path, is_strict));
    }
    let kind = mapping["type"].as_str().unwrap_or("object");
    let fits = match (kind, value) {
        (_, Value::Null) => true,
        ("object", Value::Object(fields)) => {
            if mapping["enabled"] == false {
                return None;
            }
            return object(
                &mapping["properties"],
                fields,
                &format!("{path}."),
                is_strict,
            );
        }
        // Numbers and booleans are accepted as text.
        ("text" | "keyword", value) => !value.is_object(),
        ("integer", Value::Number(number)) => {
            number.as_i64().is_some_and(|n| i32::try_from(n).is_ok())
        }
        ("integer", Value::String(text)) => text.parse::<i32>().is_ok(),
        ("date", Value::Number(number)) => number.is_i64(),
        ("date", Value::String(text)) => is_date(text),
        _ => false,
    };
    if fits {
        return None;
    }
    let reason = format!("failed to parse field [{path}] of type [{kind}]");
    Some(error("document_parsing_exception", &reason))
}

/// `strict_date_optional_time||epoch_millis`, as far as documents use it.
fn is_date(text: &str) -> bool {
    let is_strict = text.len() >= 10 && text.as_bytes()[..4].iter().all(u8::is_ascii_digit);
    let is_moment = || text.contains('T') && text.parse::<Timestamp>().is_ok();
    let is_local = || text.contains('T') && text.parse::<civil::DateTime>().is_ok();
    let is_day = || text.len() == 10 && text.parse::<civil::Date>().is_ok();
    text.parse::<i64>().is_ok() || is_strict && (is_day() || is_moment() || is_local())
}

fn error(kind: &str, reason: &str) -> Value {
    json!({ "type": kind, "reason": reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_judged_as_the_server_judges_them() {
        let mappings = json!({ "dynamic": "strict", "properties": {
            "k": { "type": "keyword" }, "n": { "type": "integer" }, "d": { "type": "date" },
            "o": { "type": "object", "properties": { "k": { "type": "text" } } },
            "raw": { "type": "object", "enabled": false },
        }});
        let fits = [
            json!({}),
            json!({ "k": "x", "n": 1, "d": "2026-11-15" }),
            json!({ "k": ["x", "y"], "n": "12", "d": "2026-11-15T09:00:00.000Z" }),
            json!({ "d": "2026-11-15T09:00:00+02:00", "o": { "k": 1 }, "raw": { "any": { "thing": [] } } }),
            json!({ "d": 1700000000000_i64, "k": null }),
        ];
        for source in fits {
            assert_eq!(misfit(&mappings, &source), None, "{source}");
        }
        let not = [
            json!({ "x": 1 }),
            json!({ "o": { "x": 1 } }),
            json!({ "k": {} }),
            json!({ "n": "many" }),
            json!({ "n": 3_000_000_000_i64 }),
            json!({ "d": "yesterday" }),
            json!({ "d": "15 Nov 2026" }),
            json!({ "o": "text" }),
            json!([]),
        ];
        for source in not {
            assert!(misfit(&mappings, &source).is_some(), "{source}");
        }
    }
}
