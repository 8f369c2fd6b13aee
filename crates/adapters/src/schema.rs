//! The JSON Schema of a config, and the check against it, so that what is shown
//! and what is enforced can't differ. Only the keywords that our schemas use are
//! supported. Pure.

use serde_json::{Map, Value as Json, json};
use thiserror::Error;

/// What is wrong with a config.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("config.{field}: {why}")]
pub struct ConfigError {
    pub field: String,
    pub why: String,
}

/// What only the configuration file may set: whoever may add a source must not
/// choose which variable is sent, nor where to.
pub(crate) const CONFIGURATION_ONLY: [&str; 2] = ["base_url", "key_env"];

/// A schema of an object with these fields.
pub(crate) fn object<const N: usize>(fields: [(&str, Json); N], required: &[&str]) -> Json {
    let properties: Map<String, Json> = fields
        .into_iter()
        .map(|(name, field)| (name.to_owned(), field))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

pub(crate) fn text(description: &str) -> Json {
    json!({ "type": "string", "description": description })
}

pub(crate) fn flag(description: &str) -> Json {
    json!({ "type": "boolean", "description": description })
}

pub(crate) fn number(description: &str, min: u64, max: u64, default: u64) -> Json {
    json!({ "type": "integer", "description": description, "minimum": min, "maximum": max, "default": default })
}

pub(crate) fn one_of(description: &str, values: &[&str]) -> Json {
    json!({ "type": "string", "description": description, "enum": values, "default": values.first() })
}

/// How far the first pull looks back.
pub(crate) fn back_days(default: u64) -> Json {
    number("Days to look back on the first pull", 1, 3650, default)
}

pub(crate) fn overlap_minutes(default: u64) -> Json {
    number(
        "Minutes of overlap with the last pull, for items that are listed late",
        0,
        7 * 24 * 60,
        default,
    )
}

pub(crate) fn max_pages(default: u64) -> Json {
    number("Max requests per pull", 1, 1000, default)
}

/// Checks a config; the error names the first invalid field.
pub(crate) fn check(schema: &Json, config: &Json) -> Result<(), ConfigError> {
    let wrong = |field: &str, why: String| {
        Err(ConfigError {
            field: field.to_owned(),
            why,
        })
    };
    let none = Map::new();
    let fields = match config {
        Json::Object(fields) => fields,
        Json::Null => &none,
        _ => return wrong("", "is not an object".to_owned()),
    };
    let properties = &schema["properties"];
    for (name, value) in fields {
        if CONFIGURATION_ONLY.contains(&name.as_str()) {
            let why = "is not a setting of sources; set it in the configuration file, in the table [adapters.KIND]";
            return wrong(name, why.to_owned());
        }
        let Some(property) = properties.get(name) else {
            let known: Vec<&String> = properties
                .as_object()
                .into_iter()
                .flat_map(Map::keys)
                .collect();
            return wrong(name, format!("is unknown; known fields are {known:?}"));
        };
        if let Err(why) = check_value(property, value) {
            return wrong(name, why);
        }
    }
    let required = schema["required"].as_array().into_iter().flatten();
    for name in required.filter_map(Json::as_str) {
        if !fields.contains_key(name) {
            return wrong(name, "is missing".to_owned());
        }
    }
    Ok(())
}

fn check_value(property: &Json, value: &Json) -> Result<(), String> {
    match property["type"].as_str() {
        Some("string") => {
            let Some(text) = value.as_str() else {
                return Err(format!("is {value}; must be a string"));
            };
            if let Some(values) = property["enum"].as_array()
                && !values.contains(value)
            {
                let values = Json::from(values.clone());
                return Err(format!("is {value}; must be one of {values}"));
            }
            match property["maxLength"].as_u64() {
                Some(max) if text.chars().count() as u64 > max => {
                    Err(format!("is longer than {max} characters"))
                }
                _ => Ok(()),
            }
        }
        Some("boolean") if !value.is_boolean() => Err(format!("is {value}; must be true or false")),
        Some("integer") => {
            let (min, max) = (property["minimum"].as_u64(), property["maximum"].as_u64());
            let (min, max) = (min.unwrap_or(0), max.unwrap_or(u64::MAX));
            match value.as_u64() {
                Some(number) if (min..=max).contains(&number) => Ok(()),
                _ => Err(format!("is {value}; must be from {min} to {max}")),
            }
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_that_is_wrong_is_named() {
        let mut query = text("Search query");
        query["maxLength"] = json!(5);
        let schema = object(
            [
                ("q", query),
                ("days", number("", 1, 30, 2)),
                ("sort", one_of("", &["new", "top"])),
                ("all", flag("")),
            ],
            &["q"],
        );
        let rows = [
            (
                json!({ "q": "x", "days": 30, "sort": "top", "all": true }),
                None,
            ),
            (json!({}), Some("config.q: is missing")),
            (Json::Null, Some("config.q: is missing")),
            (json!({ "query": 1 }), Some("config.query: is unknown")),
            (
                json!({ "q": "x", "base_url": "https://a.example" }),
                Some("config.base_url: is not a setting of sources"),
            ),
            (
                json!({ "q": "x", "key_env": "HOME" }),
                Some("config.key_env: is not a setting of sources"),
            ),
            (json!({ "q": 1 }), Some("config.q: is 1; must be a string")),
            (json!({ "q": "sixsix" }), Some("config.q: is longer than 5")),
            (
                json!({ "q": "x", "days": 0 }),
                Some("config.days: is 0; must be from 1 to 30"),
            ),
            (
                json!({ "q": "x", "sort": "old" }),
                Some("config.sort: is \"old\""),
            ),
            (
                json!({ "q": "x", "all": "yes" }),
                Some("config.all: is \"yes\""),
            ),
            (json!([]), Some("config.: is not an object")),
        ];
        for (config, message) in rows {
            let found = check(&schema, &config).err().map(|error| error.to_string());
            match message {
                None => assert_eq!(found, None, "{config}"),
                Some(message) => assert!(
                    found
                        .as_ref()
                        .is_some_and(|found| found.starts_with(message)),
                    "{config}: {found:?}"
                ),
            }
        }
    }
}
