//! Every route, in two tables: the API and the dashboard. The router, the checks of
//! the request guard, the OpenAPI document and the role matrix of the tests are
//! built from them; only the server imports them.

mod common;
mod dashboard;
mod rest;

use tidings_store::Role;

use crate::params::ParamKind;
use crate::route::{RequestBody, Route, Surface};

pub(crate) fn all() -> impl Iterator<Item = &'static Route> {
    rest::ROUTES.iter().chain(dashboard::ROUTES)
}

pub(crate) fn api() -> &'static [Route] {
    rest::ROUTES
}

/// The public part of a route, for tests that walk all of them.
#[derive(Debug, Clone)]
pub struct RouteDescription {
    pub method: &'static str,
    pub path: &'static str,
    /// As the OpenAPI document and the audit log show it.
    pub summary: &'static str,
    pub role: Option<Role>,
    pub is_page: bool,
    pub takes_form: bool,
    pub is_stream: bool,
    /// Parameters that are checked, each with an invalid value.
    pub invalid: Vec<(&'static str, &'static str)>,
}

/// Every route there is.
pub fn described_routes() -> Vec<RouteDescription> {
    let describe = |route: &'static Route| RouteDescription {
        method: route.method.as_str(),
        path: route.path,
        summary: route.summary,
        role: route.role,
        is_page: route.surface == Surface::Page,
        takes_form: route.body == RequestBody::Form,
        is_stream: route.response == "text/event-stream",
        invalid: route
            .params
            .iter()
            .filter(|param| !matches!(param.kind, ParamKind::Text))
            .map(|param| (param.name, "%21wrong"))
            .collect(),
    };
    all().map(describe).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::openapi::openapi;

    #[test]
    fn every_route_is_described_and_every_schema_exists() {
        let document = openapi(api());
        let known = &document["components"]["schemas"];
        let mut ids = std::collections::BTreeSet::new();
        for route in api() {
            let method = route.method.as_str().to_ascii_lowercase();
            let operation = &document["paths"][route.path][method.as_str()];
            assert!(
                ids.insert(operation["operationId"].to_string()),
                "{}",
                route.path
            );
            if !route.has_media_type() {
                assert!(known.get(route.response).is_some(), "{}", route.response);
            }
            if let RequestBody::Json(name) = route.body {
                assert!(known.get(name).is_some(), "{name}");
            }
            for part in route
                .path
                .split('/')
                .filter_map(|part| part.strip_prefix('{'))
            {
                let name = part.trim_end_matches('}');
                assert!(
                    route.params.iter().any(|param| param.name == name),
                    "{}",
                    route.path
                );
            }
        }
        let text = document.to_string();
        for part in text.split("#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(known.get(name).is_some(), "{name}");
        }
    }
}
