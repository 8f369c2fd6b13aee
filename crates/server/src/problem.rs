//! Errors as clients see them: problem details (RFC 9457) in the API, a page in the
//! dashboard. Internals (paths, SQL, addresses) go to the log and never to clients.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use tidings_engine::RegistryError;
use tidings_store::StoreError;

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) detail: String,
    /// The invalid part of the request.
    pub(crate) field: Option<String>,
    /// Seconds until a retry may succeed.
    pub(crate) retry_after: Option<u64>,
    /// For the log only.
    pub(crate) cause: Option<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            field: None,
            retry_after: None,
            cause: None,
        }
    }

    /// A part of the request is invalid.
    pub(crate) fn field(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            field: Some(name.into()),
            ..Self::new(StatusCode::BAD_REQUEST, why)
        }
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("{what} not found"))
    }

    pub(crate) fn forbidden(why: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, why)
    }

    pub(crate) fn too_many(seconds: u64, why: &str) -> Self {
        Self {
            retry_after: Some(seconds),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, why)
        }
    }

    pub(crate) fn long_body(max_bytes: usize) -> Self {
        Self {
            field: Some("body".to_owned()),
            ..Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body is incomplete or longer than {max_bytes} bytes"),
            )
        }
    }

    pub(crate) fn slow_body(timeout: Duration) -> Self {
        let seconds = timeout.as_secs();
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("the body did not arrive within {seconds} s"),
        )
    }

    pub(crate) fn internal(cause: impl ToString) -> Self {
        Self {
            cause: Some(cause.to_string()),
            ..Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal error; the log has the cause under this request_id",
            )
        }
    }

    pub(crate) fn title(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or("Problem")
    }

    pub(crate) fn to_json(&self, request_id: &str) -> Response {
        let mut body = json!({
            "type": "about:blank",
            "title": self.title(),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "request_id": request_id,
        });
        if let Some(field) = &self.field {
            body["field"] = field.as_str().into();
        }
        let mut response = Response::new(Body::from(body.to_string()));
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        self.apply_to(&mut response);
        response
    }

    /// Status and headers, whatever the body is.
    pub(crate) fn apply_to(&self, response: &mut Response) {
        *response.status_mut() = self.status;
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { what } => Self::not_found(&what),
            StoreError::TooManyToSort { .. } => Self::field("order", error.to_string()),
            StoreError::Conflict(why) => Self::new(StatusCode::CONFLICT, why),
            StoreError::Unavailable { .. } => Self {
                retry_after: Some(2),
                cause: Some(error.to_string()),
                ..Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "store unavailable; retry in 2 s",
                )
            },
            error => Self::internal(error),
        }
    }
}

impl From<RegistryError> for Problem {
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::Store(error) => error.into(),
            RegistryError::Settings(error) => {
                let why = error.to_string();
                Self::field(field_in(&why), why)
            }
        }
    }
}

/// The setting that a message names: in backticks, or the first word that looks like
/// a setting.
pub(crate) fn field_in(message: &str) -> String {
    if let Some((_, rest)) = message.split_once("field `")
        && let Some((name, _)) = rest.split_once('`')
    {
        return name.to_owned();
    }
    let about = message.split_once("\": ").map_or(message, |(_, rest)| rest);
    let first = about.split([' ', ':']).next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_' || c == '.';
    let is_setting = first.chars().all(is_name) && first.contains(['_', '.']);
    match is_setting || first == "name" {
        true => first.to_owned(),
        false => "settings".to_owned(),
    }
}
