//! One request that passed the door: who asks, the parameters as the table of
//! routes describes them, the body. Reading them names the field that is wrong.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::{Map, Value as Json};
use tidings_store::FrontierId;
use tidings_url::FetchUrl;

use crate::access::Who;
use crate::app::App;
use crate::problem::Problem;

pub(crate) type Answer = Result<Response, Problem>;

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    /// None on routes that are open to all.
    pub(crate) who: Option<Who>,
    pub(crate) peer: std::net::IpAddr,
    pub(crate) params: BTreeMap<String, String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Call {
    /// A parameter that is not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.params
            .get(name)
            .map(String::as_str)
            .filter(|text| !text.is_empty())
    }

    /// A parameter as its type; the door has checked what the table says of it.
    pub(crate) fn parsed<T: FromStr<Err: ToString>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, Problem> {
        let parse = |text: &str| {
            text.parse()
                .map_err(|error: T::Err| Problem::field(name, error.to_string()))
        };
        self.text(name).map(parse).transpose()
    }

    pub(crate) fn needed<T: FromStr<Err: ToString>>(&self, name: &str) -> Result<T, Problem> {
        self.parsed(name)?
            .ok_or_else(|| Problem::field(name, format!("{name} is missing")))
    }

    pub(crate) fn frontier_id(&self) -> Result<FrontierId, Problem> {
        self.needed("id")
    }

    pub(crate) fn limit(&self) -> Result<u32, Problem> {
        Ok(self.parsed("limit")?.unwrap_or(50))
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        matches!(self.text(name), Some("true" | "1" | "on"))
    }

    /// The fields of a JSON body.
    pub(crate) fn json(&self) -> Result<Fields, Problem> {
        let kind = self.content_type();
        if !kind.is_empty() && kind != "application/json" {
            return Err(Problem {
                field: Some("content-type".to_owned()),
                ..Problem::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "application/json is expected",
                )
            });
        }
        let body: &[u8] = if self.body.is_empty() {
            b"{}"
        } else {
            &self.body
        };
        match serde_json::from_slice(body) {
            Ok(Json::Object(fields)) => Ok(Fields::new(fields, "")),
            Ok(_) => Err(Problem::field("body", "a JSON object is expected")),
            Err(error) => Err(Problem::field("body", format!("this is no JSON: {error}"))),
        }
    }

    pub(crate) fn content_type(&self) -> String {
        let value = self.headers.get(header::CONTENT_TYPE);
        let text = value.and_then(|value| value.to_str().ok()).unwrap_or("");
        let kind = text.split(';').next().unwrap_or_default();
        kind.trim().to_ascii_lowercase()
    }

    /// The fields of a form; of those with the same name the last counts.
    pub(crate) fn form(&self) -> BTreeMap<String, String> {
        form_of(&self.body)
    }
}

pub(crate) fn form_of(body: &[u8]) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(body).into_owned().collect()
}

/// The fields of an object, taken one by one; what is left at the end is wrong.
#[derive(Debug)]
pub(crate) struct Fields {
    left: Map<String, Json>,
    /// The name of the object that holds them, with a dot.
    within: &'static str,
}

impl Fields {
    pub(crate) fn new(left: Map<String, Json>, within: &'static str) -> Self {
        Self { left, within }
    }

    fn wrong(&self, name: &str, why: &str) -> Problem {
        let name = format!("{}{name}", self.within);
        Problem::field(&name, format!("{name} {why}"))
    }

    pub(crate) fn optional_text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        match self.left.remove(name) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) if text.contains('\0') => {
                Err(self.wrong(name, "holds a zero byte"))
            }
            Some(Json::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "is not a text")),
        }
    }

    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<String>, Problem> {
        let text = |value: Json| match value {
            Json::String(text) if !text.contains('\0') => Some(text),
            _ => None,
        };
        let texts = match self.left.remove(name) {
            None | Some(Json::Null) => Some(Vec::new()),
            Some(Json::Array(values)) => values.into_iter().map(text).collect(),
            Some(_) => None,
        };
        texts.ok_or_else(|| self.wrong(name, "is not a list of texts"))
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<String, Problem> {
        match self.optional_text(name)? {
            Some(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            _ => Err(self.wrong(name, "is missing")),
        }
    }

    pub(crate) fn url(&mut self, name: &str) -> Result<FetchUrl, Problem> {
        let text = self.text(name)?;
        FetchUrl::parse(&text)
            .map_err(|error| self.wrong(name, &format!("can't be used: {}", error.rule)))
    }

    pub(crate) fn number(
        &mut self,
        name: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<i64>, Problem> {
        match self.left.remove(name) {
            None | Some(Json::Null) => Ok(None),
            Some(value) => {
                let number = value.as_i64().filter(|number| range.contains(number));
                let (least, most) = (range.start(), range.end());
                let why = format!("is not a whole number from {least} to {most}");
                number.map(Some).ok_or_else(|| self.wrong(name, &why))
            }
        }
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, Problem> {
        match self.left.remove(name) {
            None | Some(Json::Null) => Ok(false),
            Some(Json::Bool(value)) => Ok(value),
            Some(_) => Err(self.wrong(name, "is neither true nor false")),
        }
    }

    pub(crate) fn parsed<T: FromStr<Err: ToString>>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, Problem> {
        let text = self.optional_text(name)?;
        let parse = |text: String| {
            text.parse().map_err(|error: T::Err| {
                self.wrong(name, &format!("can't be used: {}", error.to_string()))
            })
        };
        text.map(parse).transpose()
    }

    pub(crate) fn object(&mut self, name: &'static str) -> Result<Map<String, Json>, Problem> {
        match self.left.remove(name) {
            None | Some(Json::Null) => Ok(Map::new()),
            Some(Json::Object(fields)) => Ok(fields),
            Some(_) => Err(self.wrong(name, "is not an object")),
        }
    }

    pub(crate) fn rest(self) -> Map<String, Json> {
        self.left
    }

    /// Nothing may be left.
    pub(crate) fn end(self) -> Result<(), Problem> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(name) => Err(self.wrong(name, "is unknown")),
        }
    }
}

/// A JSON answer.
pub(crate) fn json(value: &impl Serialize) -> Answer {
    json_with(StatusCode::OK, value)
}

pub(crate) fn json_with(status: StatusCode, value: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(value).map_err(Problem::internal)?;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    Ok(response)
}

/// A page of a list; every list says whether there is more.
#[derive(Debug, Serialize)]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    pub(crate) next: Option<String>,
}

impl<T: Serialize> List<T> {
    /// Of one more than was asked for: the extra one only proves that there is more.
    pub(crate) fn cut(mut items: Vec<T>, limit: u32, cursor: impl Fn(&T) -> String) -> Self {
        let has_more = items.len() > limit as usize;
        items.truncate(limit as usize);
        let next = items.last().filter(|_| has_more).map(cursor);
        Self { items, next }
    }
}
