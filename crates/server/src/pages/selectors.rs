//! The selectors of a source: their fields in forms, and a place to try them on
//! a page until they are right. Trying keeps nothing.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::{Map, Value as Json, json};
use tidings_store::Source;
use tidings_url::FetchUrl;

use super::{page, token};
use crate::api::sources::{found, tested};
use crate::call::{Answer, Call};
use crate::problem::Problem;

const NAMES: [&str; 6] = ["title", "body", "author", "published", "image", "exclude"];

/// A field for each selector, filled in with what is known.
pub(super) fn fields(selectors: &Json) -> Markup {
    html! {
        div.fields { @for name in NAMES {
            label { (name) input name={ "selector_" (name) } value=(plain(&selectors["article"][name])) autocapitalize="off" spellcheck="false"; }
        } }
    }
}

/// What those fields say, as the API would be told; none when all are empty.
pub(super) fn of_form(form: &BTreeMap<String, String>) -> Option<Json> {
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

/// The form to try them; `tried` is the page that they were tried on.
pub(super) fn tester(
    call: &Call,
    source: &Source,
    selectors: &Json,
    tried: Option<&str>,
) -> Markup {
    let path = format!("/sources/{}", source.source_id);
    html! {
        section.card {
            h2 { "Try the selectors" }
            form method="post" action={ (path) "/test" } {
                (token(call))
                div.filters {
                    input type="search" name="page" value=(tried.unwrap_or_default()) placeholder="An article of this source" required aria-label="Article";
                    button.main { "Fetch and show" }
                    @if tried.is_some() {
                        @for (name, value) in [("url", source.url.clone()), ("name", source.name.clone()), ("priority", source.priority.to_string())] {
                            input type="hidden" name=(name) value=(value);
                        }
                        button formaction=(path) { "Save these selectors" }
                    }
                }
                details open[tried.is_some()] { summary { "Selectors (CSS)" } (fields(selectors)) }
                p.soft { "What is left empty is found as on any page. Nothing of the page is kept." }
            }
        }
    }
}

pub(crate) async fn test(call: Call) -> Answer {
    let source = found(&call).await?;
    let form = call.form();
    let text = form.get("page").map_or("", |text| text.trim());
    let url = FetchUrl::parse(text).map_err(|error| Problem::field("page", error.to_string()))?;
    let selectors = of_form(&form).unwrap_or_else(|| json!({}));
    let result = tested(&call.app, &url, &selectors).await?;
    let text = result["text"].as_str().unwrap_or_default();
    let content = html! {
        p.crumbs { a href="/sources" { "Sources" } " / " a href={ "/sources/" (source.source_id) } { (source.name) } " / selectors" }
        h1 { (result["title"].as_str().unwrap_or("without a title")) }
        (tester(&call, &source, &selectors, Some(url.as_str())))
        div.reading {
            section.card.article {
                @if text.is_empty() { p.empty { "No text was found on this page." } }
                @for part in text.split("\n\n") { p { (part) } }
            }
            section.card { dl { @for name in ["url", "status", "authors", "published", "language", "image"] { dt { (name) } dd { (shown(&result[name])) } } } }
        }
    };
    page(&call, "/sources", "Selectors", &content)
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
