//! The stylesheet, the script and the icon, embedded in the binary: nothing is loaded
//! from elsewhere, and there is no build step.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, header};

use crate::request::CheckedRequest;
use crate::response::HandlerResult;

pub(crate) async fn style(_: CheckedRequest) -> HandlerResult {
    file("text/css; charset=utf-8", include_str!("assets/style.css"))
}

pub(crate) async fn script(_: CheckedRequest) -> HandlerResult {
    file(
        "text/javascript; charset=utf-8",
        include_str!("assets/app.js"),
    )
}

pub(crate) async fn icon(_: CheckedRequest) -> HandlerResult {
    file("image/svg+xml", include_str!("assets/icon.svg"))
}

fn file(kind: &'static str, text: &'static str) -> HandlerResult {
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}
