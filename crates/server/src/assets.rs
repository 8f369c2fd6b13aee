//! The stylesheet and the script, part of the program: nothing is loaded from
//! anywhere else, and there is no build step.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, header};

use crate::call::{Answer, Call};

pub(crate) async fn style(_: Call) -> Answer {
    file("text/css; charset=utf-8", include_str!("assets/style.css"))
}

pub(crate) async fn script(_: Call) -> Answer {
    file(
        "text/javascript; charset=utf-8",
        include_str!("assets/app.js"),
    )
}

pub(crate) async fn icon(_: Call) -> Answer {
    file("image/svg+xml", include_str!("assets/icon.svg"))
}

fn file(kind: &'static str, text: &'static str) -> Answer {
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}
