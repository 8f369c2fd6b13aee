//! The API reference: the OpenAPI document as a page. It knows nothing about routes
//! but what the document says.

use maud::{Markup, html};
use serde_json::{Map, Value as Json};

use super::layout::page;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

const METHODS: [&str; 4] = ["get", "post", "put", "delete"];
/// Up to this many operations are shown expanded.
const MAX_EXPANDED: usize = 4;

/// One operation with its method and path.
struct Operation<'a> {
    method: &'static str,
    path: &'a str,
    what: &'a Json,
}

impl Operation<'_> {
    fn tag(&self) -> &str {
        self.what["tags"][0].as_str().unwrap_or_default()
    }

    fn id(&self) -> &str {
        self.what["operationId"].as_str().unwrap_or_default()
    }

    /// Whether all words occur in the description of the operation.
    fn has(&self, words: &[String]) -> bool {
        let text = format!("{} {} {}", self.method, self.path, self.what).to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()))
    }
}

pub(crate) async fn show(request: CheckedRequest) -> HandlerResult {
    let document = &request.app.openapi;
    let empty = Map::new();
    let paths = document["paths"].as_object().unwrap_or(&empty);
    let words: Vec<String> = request
        .params
        .text("q")
        .unwrap_or_default()
        .split_whitespace()
        .map(str::to_lowercase)
        .collect();
    let found: Vec<Operation<'_>> = paths
        .iter()
        .flat_map(|(path, methods)| {
            METHODS.iter().filter_map(move |method| {
                let what = methods.get(*method)?;
                Some(Operation { method, path, what })
            })
        })
        .filter(|operation| operation.has(&words))
        .collect();
    let mut tags: Vec<&str> = found.iter().map(Operation::tag).collect();
    tags.dedup();
    let is_open = found.len() <= MAX_EXPANDED;
    let schemas = &document["components"]["schemas"];
    let content = html! {
        div.row.between {
            h1 { "API" }
            a.button href="/api/v1/openapi.json" { "OpenAPI document" }
        }
        p.lead { (document["info"]["description"].as_str().unwrap_or_default().replace('`', "")) }
        form.filters method="get" action="/api" role="search" {
            input type="search" name="q" value=(request.params.text("q").unwrap_or_default()) placeholder="Search operations ( / )" aria-label="Search";
            button { "Search" }
            @if !words.is_empty() { a.button href="/api" { "Clear" } }
        }
        @if words.is_empty() {
            section.card {
                h2 { "Example request" }
                pre.flat { "curl -H \"Authorization: Bearer $TOKEN\" http://" (request.app.address) "/api/v1/sources" }
                p.soft {
                    "Lists have " code { "next" } ": pass it as " code { "after" } ". Errors are "
                    code { "application/problem+json" } " and name the invalid field."
                }
                nav.chips aria-label="Subjects" { @for tag in &tags { a.badge href={ "#" (tag) } { (tag) } } }
            }
        }
        @if found.is_empty() { section.card { p.empty { "No operation matches." } } }
        @for tag in &tags {
            section.card #(tag) {
                h2 { (tag) }
                @for operation in found.iter().filter(|operation| operation.tag() == *tag) {
                    (entry(operation, schemas, is_open))
                }
            }
        }
        @if words.is_empty() { section.card { details { summary { "All schemas" } (all_schemas(schemas)) } } }
    };
    page(&request, "/api", "API", &content)
}

fn entry(operation: &Operation<'_>, schemas: &Json, is_open: bool) -> Markup {
    let what = operation.what;
    let parameters = what["parameters"].as_array().map_or(&[][..], Vec::as_slice);
    html! {
        details.operation #(operation.id()) open[is_open] {
            summary {
                span class={ "badge verb " (operation.method) } { (operation.method.to_uppercase()) }
                code { (operation.path) }
                span { (what["summary"].as_str().unwrap_or_default()) }
            }
            div {
                p.soft { (what["description"].as_str().unwrap_or("Public.")) }
                @if !parameters.is_empty() {
                    h3 { "Parameters" }
                    dl { @for parameter in parameters { (field(
                        parameter["name"].as_str().unwrap_or_default(),
                        &parameter["schema"],
                        parameter["required"] == true,
                        parameter["description"].as_str().unwrap_or_default(),
                    )) } }
                }
                @if let Some(content) = what["requestBody"]["content"].as_object() {
                    h3 { "Body" }
                    @for (media, body) in content { (body_schema(media, &body["schema"], schemas)) }
                }
                @if let Some(responses) = what["responses"].as_object() {
                    @for (status, response) in responses.iter().filter(|(status, _)| *status != "default") {
                        h3 { "Response " (status) }
                        @for (media, body) in response["content"].as_object().into_iter().flatten() { (body_schema(media, &body["schema"], schemas)) }
                    }
                }
            }
        }
    }
}

/// A body: its media type, and its fields if it is an object.
fn body_schema(media: &str, schema: &Json, schemas: &Json) -> Markup {
    let named = name_of(schema);
    let fields = named.map_or(schema, |name| &schemas[name]);
    html! {
        p.soft { code { (media) } @if named.is_some() { " " (kind(schema)) } @else if schema["type"] != "object" { ", " (kind(schema)) } }
        (fields_of(fields))
    }
}

fn fields_of(schema: &Json) -> Markup {
    let is_required = |name: &str| {
        let required = schema["required"].as_array();
        required.is_some_and(|required| required.iter().any(|one| one == name))
    };
    html! {
        @if let Some(fields) = schema["properties"].as_object() {
            dl { @for (name, of) in fields { (field(name, of, is_required(name), of["description"].as_str().unwrap_or_default())) } }
        }
        @for part in schema["allOf"].as_array().into_iter().flatten() {
            @if name_of(part).is_some() { p.soft { "All of " (kind(part)) ", and:" } }
            (fields_of(part))
        }
    }
}

fn field(name: &str, schema: &Json, is_required: bool, description: &str) -> Markup {
    html! {
        dt { code { (name) } @if is_required { span.needed title="required" { "*" } } }
        dd { (kind(schema)) @if !description.is_empty() { span.soft { " · " (description.replace('`', "")) } } }
    }
}

fn name_of(schema: &Json) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// A type in one line.
fn kind(schema: &Json) -> Markup {
    if let Some(name) = name_of(schema) {
        return html! { a href={ "/api#schema-" (name) } { (name) } };
    }
    if let Some(choices) = schema["enum"].as_array() {
        let choices: Vec<&str> = choices.iter().filter_map(Json::as_str).collect();
        return html! { (choices.join(" | ")) };
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        return html! { @for (n, choice) in choices.iter().enumerate() { @if n > 0 { " or " } (kind(choice)) } };
    }
    if schema["items"].is_object() {
        return html! { "list of " (kind(&schema["items"])) };
    }
    let words = match &schema["type"] {
        Json::String(one) => one.clone(),
        Json::Array(some) => some
            .iter()
            .filter_map(Json::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "anything".to_owned(),
    };
    let words = match schema["format"].as_str() {
        Some(_) => words.replace("string", "time"),
        None => words.replace("string", "text"),
    };
    let bounds = match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
        (Some(min), Some(max)) if max < 1 << 40 => format!(" {min} to {max}"),
        (Some(min), None) => format!(" from {min}"),
        _ => String::new(),
    };
    html! { (words) (bounds) @if !schema["default"].is_null() { ", default " (schema["default"].to_string().replace('"', "")) } }
}

fn all_schemas(schemas: &Json) -> Markup {
    html! {
        @for (name, schema) in schemas.as_object().into_iter().flatten() {
            details.operation #{ "schema-" (name) } { summary { code { (name) } } div { (fields_of(schema)) @if schema["properties"].is_null() && schema["allOf"].is_null() { p.soft { (kind(schema)) } } } }
        }
    }
}
