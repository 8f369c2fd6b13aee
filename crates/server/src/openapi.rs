//! The OpenAPI 3.1 document, built from routes and their schemas. It describes
//! nothing but the routes that it is given.

use serde_json::{Map, Value as Json, json};

use crate::params::ParamKind;
use crate::route::{RequestBody, Route};

mod schemas;

pub(crate) use schemas::source_schema;
use schemas::{reference, schemas};

pub(crate) fn openapi(routes: &[Route]) -> Json {
    let mut paths = Map::new();
    for route in routes {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tidings",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Content ingestion: frontier, sources, feeds, hosts, documents, sinks. Every list has `next`: pass it as `after` (search: `offset`).",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "created with `tidings token create`" },
            },
            "schemas": schemas(),
        },
    })
}

fn operation(route: &Route) -> Json {
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "tags": [tag(route.path)],
        "parameters": route.params.iter().map(|param| {
            let is_in_path = route.has_in_path(param.name);
            json!({
                "name": param.name,
                "in": if is_in_path { "path" } else { "query" },
                "required": is_in_path || param.is_required,
                "description": param.description,
                "schema": param_schema(param.kind),
            })
        }).collect::<Vec<_>>(),
        "responses": responses(route),
    });
    match route.role {
        Some(role) => operation["description"] = format!("Requires the role {role}.").into(),
        None => operation["security"] = json!([]),
    }
    let body = match route.body {
        RequestBody::Empty | RequestBody::Form => None,
        RequestBody::Json(name) => {
            Some(json!({ "application/json": { "schema": reference(name) } }))
        }
        RequestBody::UrlList => Some(json!({
            "application/json": { "schema": { "type": "array", "minItems": 1, "maxItems": 100_000, "items": { "anyOf": [{ "type": "string" }, reference("Submission")] } } },
            "application/x-ndjson": { "schema": { "type": "string" } },
            "text/csv": { "schema": { "type": "string" } },
        })),
        RequestBody::SourceList => Some(json!({
            "text/x-opml": { "schema": { "type": "string" } },
            "text/csv": { "schema": { "type": "string" } },
            "application/x-ndjson": { "schema": { "type": "string" } },
        })),
    };
    if let Some(content) = body {
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    if route.body == RequestBody::UrlList
        && let Some(parameters) = operation["parameters"].as_array_mut()
    {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false, "schema": { "type": "string", "minLength": 1, "maxLength": 200 },
            "description": "a repeated request with the same key and body gets the first response",
        }));
    }
    operation
}

fn responses(route: &Route) -> Json {
    let content = match route.response {
        // The parameter `format` selects the media type.
        "text/x-opml" => json!({
            "text/x-opml": { "schema": { "type": "string" } },
            "text/csv": { "schema": { "type": "string" } },
            "application/x-ndjson": { "schema": { "type": "string" } },
        }),
        media if route.has_media_type() => json!({ media: { "schema": { "type": "string" } } }),
        name => json!({ "application/json": { "schema": reference(name) } }),
    };
    let status = match (route.path, route.method.as_str()) {
        ("/api/v1/sources" | "/api/v1/tokens", "POST") => "201",
        _ => "200",
    };
    let problem = json!({ "description": "a problem (RFC 9457)", "content": { "application/problem+json": { "schema": reference("Problem") } } });
    let mut responses = json!({ status: { "description": route.summary, "content": content } });
    if route.params.iter().any(|param| param.name == "wait") {
        let started = json!({ "application/json": { "schema": reference("Started") } });
        responses["202"] = json!({ "description": "started as a task", "content": started });
    }
    responses["default"] = problem;
    responses
}

fn operation_id(route: &Route) -> String {
    let words = route
        .path
        .trim_start_matches("/api/v1")
        .split(['/', '-', '.']);
    let words = words.map(|word| word.trim_matches(['{', '}']));
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    format!(
        "{}_{}",
        route.method.as_str().to_ascii_lowercase(),
        words.join("_")
    )
}

fn tag(path: &str) -> &str {
    let rest = match path.strip_prefix("/api/v1/") {
        None if path.starts_with("/collect") => "collect",
        rest => rest.unwrap_or("health"),
    };
    rest.split(['/', '.']).next().unwrap_or(rest)
}

fn param_schema(kind: ParamKind) -> Json {
    match kind {
        ParamKind::Text => json!({ "type": "string", "maxLength": 4096 }),
        ParamKind::FrontierId => json!({ "type": "string", "pattern": "^[0-9a-fA-F]{48}$" }),
        ParamKind::Number { min, max } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        ParamKind::OneOf(words) => json!({ "type": "string", "enum": words }),
        ParamKind::Flag => json!({ "type": "boolean" }),
        ParamKind::Time => json!({ "type": "string", "format": "date-time" }),
    }
}
