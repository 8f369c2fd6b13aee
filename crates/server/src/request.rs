//! A request after the guard: who sent it, its checked parameters, its body.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde_json::Value as Json;

use crate::access::Principal;
use crate::app::App;
use crate::body_fields::{BodyFields, parse_form};
use crate::params::Params;
use crate::problem::Problem;
use crate::sender::Sender;

/// From the header to the end of the body.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct CheckedRequest {
    pub(crate) app: Arc<App>,
    /// `None` on public routes.
    pub(crate) principal: Option<Principal>,
    pub(crate) sender: Sender,
    pub(crate) params: Params,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// A body that its handler reads; `body` is empty then.
    pub(crate) unread: Mutex<Body>,
}

impl CheckedRequest {
    /// The body that its handler reads.
    pub(crate) fn take_body(&self) -> Body {
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut unread)
    }

    /// The fields of a JSON body.
    pub(crate) fn json(&self) -> Result<BodyFields, Problem> {
        let media_type = self.content_type();
        if !media_type.is_empty() && media_type != "application/json" {
            return Err(Problem {
                field: Some("content-type".to_owned()),
                ..Problem::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    format!("content-type {media_type} is not supported; send application/json"),
                )
            });
        }
        let body: &[u8] = if self.body.is_empty() {
            b"{}"
        } else {
            &self.body
        };
        match serde_json::from_slice(body) {
            Ok(Json::Object(fields)) => Ok(BodyFields::new(fields, "")),
            Ok(_) => Err(Problem::field("body", "the body is not a JSON object")),
            Err(error) => Err(Problem::field(
                "body",
                format!("the body is not valid JSON: {error}"),
            )),
        }
    }

    pub(crate) fn content_type(&self) -> String {
        let value = self.headers.get(header::CONTENT_TYPE);
        let text = value.and_then(|value| value.to_str().ok()).unwrap_or("");
        let media_type = text.split(';').next().unwrap_or_default();
        media_type.trim().to_ascii_lowercase()
    }

    /// The fields of a form body; of fields with the same name the last one wins.
    pub(crate) fn form(&self) -> BTreeMap<String, String> {
        parse_form(&self.body)
    }
}
