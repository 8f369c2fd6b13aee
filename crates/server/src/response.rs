//! Responses of handlers: JSON bodies, and lists that are read page by page.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use crate::problem::Problem;

pub(crate) type HandlerResult = Result<Response, Problem>;

/// A JSON response.
pub(crate) fn json(value: &impl Serialize) -> HandlerResult {
    json_with_status(StatusCode::OK, value)
}

pub(crate) fn json_with_status(status: StatusCode, value: &impl Serialize) -> HandlerResult {
    let body = serde_json::to_vec(value).map_err(Problem::internal)?;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    Ok(response)
}

/// A page of a list; `next` is the cursor of the following page.
#[derive(Debug, Serialize)]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    pub(crate) next: Option<String>,
}

impl<T> List<T> {
    /// From up to `limit + 1` items: the extra one only proves that there are more.
    pub(crate) fn page(mut items: Vec<T>, limit: u32, cursor: impl Fn(&T) -> String) -> Self {
        let has_more = items.len() > limit as usize;
        items.truncate(limit as usize);
        let next = items.last().filter(|_| has_more).map(cursor);
        Self { items, next }
    }
}

/// How many rows a request changed.
#[derive(Debug, Serialize)]
pub(crate) struct Changed {
    pub(crate) changed: u64,
}
