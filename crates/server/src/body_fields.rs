//! The fields of a body, read one by one. An error names the field that is invalid;
//! unknown fields are errors.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde_json::{Map, Value as Json};
use tidings_url::FetchUrl;

use crate::problem::Problem;

pub(crate) fn parse_form(body: &[u8]) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(body).into_owned().collect()
}

/// The fields of a JSON object that were not read yet.
#[derive(Debug)]
pub(crate) struct BodyFields {
    unread: Map<String, Json>,
    /// The path of the object that holds them, with a trailing dot.
    prefix: &'static str,
}

impl BodyFields {
    pub(crate) fn new(unread: Map<String, Json>, prefix: &'static str) -> Self {
        Self { unread, prefix }
    }

    fn invalid(&self, name: &str, why: &str) -> Problem {
        let name = format!("{}{name}", self.prefix);
        Problem::field(&name, format!("{name} {why}"))
    }

    pub(crate) fn optional_text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        match self.unread.remove(name) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) if text.contains('\0') => {
                Err(self.invalid(name, "contains a NUL byte"))
            }
            Some(Json::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid(name, "is not a string")),
        }
    }

    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<String>, Problem> {
        let text = |value: Json| match value {
            Json::String(text) if !text.contains('\0') => Some(text),
            _ => None,
        };
        let texts = match self.unread.remove(name) {
            None | Some(Json::Null) => Some(Vec::new()),
            Some(Json::Array(values)) => values.into_iter().map(text).collect(),
            Some(_) => None,
        };
        texts.ok_or_else(|| self.invalid(name, "is not a list of strings"))
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<String, Problem> {
        match self.optional_text(name)? {
            Some(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            _ => Err(self.invalid(name, "is missing")),
        }
    }

    pub(crate) fn url(&mut self, name: &str) -> Result<FetchUrl, Problem> {
        let text = self.text(name)?;
        FetchUrl::parse(&text)
            .map_err(|error| self.invalid(name, &format!("is invalid: {}", error.rule)))
    }

    pub(crate) fn number(
        &mut self,
        name: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<i64>, Problem> {
        match self.unread.remove(name) {
            None | Some(Json::Null) => Ok(None),
            Some(value) => {
                let number = value.as_i64().filter(|number| range.contains(number));
                let (min, max) = (range.start(), range.end());
                let why = format!("is not a whole number from {min} to {max}");
                number.map(Some).ok_or_else(|| self.invalid(name, &why))
            }
        }
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, Problem> {
        match self.unread.remove(name) {
            None | Some(Json::Null) => Ok(false),
            Some(Json::Bool(value)) => Ok(value),
            Some(_) => Err(self.invalid(name, "is neither true nor false")),
        }
    }

    pub(crate) fn parsed<T: FromStr<Err: ToString>>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, Problem> {
        let text = self.optional_text(name)?;
        let parse = |text: String| {
            text.parse().map_err(|error: T::Err| {
                self.invalid(name, &format!("is invalid: {}", error.to_string()))
            })
        };
        text.map(parse).transpose()
    }

    pub(crate) fn object(&mut self, name: &'static str) -> Result<Map<String, Json>, Problem> {
        match self.unread.remove(name) {
            None | Some(Json::Null) => Ok(Map::new()),
            Some(Json::Object(fields)) => Ok(fields),
            Some(_) => Err(self.invalid(name, "is not an object")),
        }
    }

    pub(crate) fn into_unread(self) -> Map<String, Json> {
        self.unread
    }

    /// Fails when a field is unread: it is unknown.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        match self.unread.keys().next() {
            None => Ok(()),
            Some(name) => Err(self.invalid(name, "is unknown")),
        }
    }
}
