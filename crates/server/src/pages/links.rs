//! Links: to other sites, to pages of this server, and to the next page of a list.

use maud::{Markup, html};

use crate::params::Params;

/// A link to another site; anything but http and https is only text.
pub(super) fn external_link(url: &str) -> Markup {
    let lower = url.get(..8).unwrap_or(url).to_ascii_lowercase();
    let is_safe = lower.starts_with("http://") || lower.starts_with("https://");
    html! {
        @if is_safe { a href=(url) rel="noopener noreferrer nofollow" target="_blank" { (url) } }
        @else { (url) }
    }
}

/// A text as one segment of a path, percent-encoded.
pub(super) fn segment(text: &str) -> String {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| match is_safe(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

/// The same page with other parameters; `None` removes one.
pub(super) fn with_params(params: &Params, path: &str, changes: &[(&str, Option<&str>)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let is_changed = |name: &str| changes.iter().any(|(changed, _)| *changed == name);
    for (name, value) in params.iter() {
        if !is_changed(name) && !matches!(name, "done" | "n" | "id") {
            query.append_pair(name, value);
        }
    }
    for (name, value) in changes {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    format!("{path}?{}", query.finish())
}

pub(super) fn next_page(params: &Params, path: &str, next: Option<&str>) -> Markup {
    html! {
        @if params.text("after").is_some() || next.is_some() {
            p.more.row {
                @if params.text("after").is_some() { a.button href=(with_params(params, path, &[("after", None)])) { "First page" } }
                @if let Some(next) = next { a.button href=(with_params(params, path, &[("after", Some(next))])) rel="next" { "Next page" } }
            }
        }
    }
}
