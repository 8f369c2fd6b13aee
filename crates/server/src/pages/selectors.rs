//! The selectors of a source: their fields in forms, and a tester that extracts one
//! page with them. Testing stores nothing.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::{Map, Value as Json, json};
use tidings_store::Source;
use tidings_url::FetchUrl;

use super::forms::csrf_field;
use super::layout::page;
use crate::api::sources::{extract_with, find_source};
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

const NAMES: [&str; 7] = [
    "title",
    "body",
    "author",
    "published",
    "image",
    "important",
    "exclude",
];

/// A field for each selector, with its current value.
pub(super) fn fields(selectors: &Json) -> Markup {
    html! {
        div.fields { @for name in NAMES {
            label { (name) input name={ "selector_" (name) } value=(plain(&selectors["article"][name])) autocapitalize="off" spellcheck="false"; }
        } }
    }
}

/// The selectors of a form as the API takes them; `None` when all are empty.
pub(super) fn from_form(form: &BTreeMap<String, String>) -> Option<Json> {
    let given = NAMES.iter().filter_map(|name| {
        let value = form.get(&format!("selector_{name}"))?.trim();
        let json = match *name {
            "exclude" => json!([value]),
            _ => Json::from(value),
        };
        (!value.is_empty()).then(|| ((*name).to_owned(), json))
    });
    let article: Map<String, Json> = given.collect();
    (!article.is_empty()).then(|| json!({ "article": article }))
}

/// The tester; `tested` is the page that was just extracted.
pub(super) fn tester(
    request: &CheckedRequest,
    source: &Source,
    selectors: &Json,
    tested: Option<&str>,
) -> Markup {
    let path = format!("/sources/{}", source.source_id);
    html! {
        section.card {
            h2 { "Test selectors" }
            form method="post" action={ (path) "/test" } {
                (csrf_field(request))
                div.filters {
                    input type="search" name="page" value=(tested.unwrap_or_default()) placeholder="An article of this source" required aria-label="Article";
                    button.main { "Fetch and show" }
                    @if tested.is_some() {
                        @for (name, value) in [("url", source.url.clone()), ("name", source.name.clone()), ("priority", source.priority.to_string())] {
                            input type="hidden" name=(name) value=(value);
                        }
                        button formaction=(path) { "Save these selectors" }
                    }
                }
                details open[tested.is_some()] { summary { "Selectors (CSS)" } (fields(selectors)) }
                p.soft { "Empty fields are extracted automatically. The page is not stored." }
            }
        }
    }
}

pub(crate) async fn test(request: CheckedRequest) -> HandlerResult {
    let source = find_source(&request).await?;
    let form = request.form();
    let text = form.get("page").map_or("", |text| text.trim());
    let url = FetchUrl::parse(text).map_err(|error| Problem::field("page", error.to_string()))?;
    let selectors = from_form(&form).unwrap_or_else(|| json!({}));
    let result = extract_with(&request.app, &url, &selectors).await?;
    let text = result["text"].as_str().unwrap_or_default();
    let content = html! {
        p.crumbs { a href="/sources" { "Sources" } " / " a href={ "/sources/" (source.source_id) } { (source.name) } " / selectors" }
        h1 { (result["title"].as_str().unwrap_or("(no title)")) }
        (tester(&request, &source, &selectors, Some(url.as_str())))
        div.reading {
            section.card.article {
                @if text.is_empty() { p.empty { "No text extracted from this page." } }
                @for part in text.split("\n\n") { p { (part) } }
            }
            section.card { dl { @for name in ["url", "status", "authors", "published", "language", "image", "important"] { dt { (name) } dd { (shown(&result[name])) } } } }
        }
    };
    page(&request, "/sources", "Selectors", &content)
}

fn shown(value: &Json) -> String {
    match plain(value) {
        empty if empty.is_empty() => "–".to_owned(),
        text => text,
    }
}

fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Json::Null => String::new(),
        other => other.to_string(),
    }
}
