//! Every route as every role, generated from the tables of routes.

use tidings_server::described_routes;
use tidings_store::Role;

use crate::fixture::{ADMIN, OPERATOR, Served, VIEWER};

/// A path with a value for each parameter; the rows need not exist.
pub(crate) fn filled(path: &str) -> String {
    let is_frontier = path.contains("/frontier/{id}") || path.contains("/documents/{id}");
    let id = if is_frontier {
        "0".repeat(48)
    } else {
        "12".to_owned()
    };
    path.replace("{id}", &id)
        .replace("{host}", "nobody.example")
        .replace("{sink}", "nothing")
}

#[tokio::test]
async fn each_role_is_allowed_what_the_tables_say_and_no_more() {
    holds_for(&Served::start().await).await;
}

#[tokio::test]
async fn each_role_is_allowed_the_same_on_postgresql() {
    holds_for(&Served::start_on_postgres().await.0).await;
}

async fn holds_for(served: &Served) {
    let routes = described_routes();
    assert!(routes.len() > 90, "{}", routes.len());
    for route in &routes {
        let path = filled(route.path);
        let name = format!("{} {}", route.method, route.path);
        let head_only = |head: &str| head.contains("\r\n\r\n");
        let anonymous = served
            .request(route.method, &path)
            .read_until(head_only)
            .await;
        match (route.role, route.is_page) {
            (None, _) => assert!(
                ![401, 403].contains(&anonymous.status) || route.path == "/login",
                "{name}: {}",
                anonymous.status
            ),
            (Some(_), true) => {
                assert_eq!(anonymous.status, 303, "{name}");
                assert!(
                    anonymous.header("location").starts_with("/login?next="),
                    "{name}"
                );
            }
            (Some(_), false) => {
                assert_eq!(anonymous.status, 401, "{name}");
                assert_eq!(anonymous.header("www-authenticate"), "Bearer");
            }
        }
        let Some(needed) = route.role else { continue };
        for (role, secret) in [
            (Role::Viewer, VIEWER),
            (Role::Operator, OPERATOR),
            (Role::Admin, ADMIN),
        ] {
            let request = served.request(route.method, &path).token(secret);
            let response = request.read_until(head_only).await;
            if role < needed {
                assert_eq!(response.status, 403, "{name} as {role}");
            } else {
                assert!(
                    ![401, 403, 405].contains(&response.status),
                    "{name} as {role}: {}",
                    response.status
                );
                assert!(
                    response.status < 500,
                    "{name} as {role}: {} {}",
                    response.status,
                    response.text
                );
            }
        }
    }
}

#[tokio::test]
async fn every_response_has_the_security_headers() {
    let served = Served::start().await;
    let mut requests: Vec<(String, String)> = described_routes()
        .iter()
        .map(|route| (route.method.to_owned(), filled(route.path)))
        .collect();
    requests.extend([
        ("GET".to_owned(), "/nowhere".to_owned()),
        ("GET".to_owned(), "/api/v1/nowhere".to_owned()),
        ("PATCH".to_owned(), "/api/v1/frontier".to_owned()),
        ("GET".to_owned(), "/frontier/%ff".to_owned()),
        ("GET".to_owned(), "/api/v1/frontier?limit=wrong".to_owned()),
    ]);
    for (method, path) in requests {
        for secret in [None, Some(ADMIN)] {
            let request = served.request(&method, &path);
            let request = match secret {
                Some(secret) => request.token(secret),
                None => request,
            };
            let response = request.read_until(|head| head.contains("\r\n\r\n")).await;
            let csp = response.header("content-security-policy");
            assert!(
                csp.contains("default-src 'none'") && csp.contains("frame-ancestors 'none'"),
                "{method} {path}"
            );
            assert!(!csp.contains("unsafe"), "{csp}");
            assert_eq!(
                response.header("x-content-type-options"),
                "nosniff",
                "{method} {path}"
            );
            assert_eq!(
                response.header("referrer-policy"),
                "same-origin",
                "{method} {path}"
            );
            assert_eq!(response.header("x-request-id").len(), 16, "{method} {path}");
            assert!(
                response.header("cache-control").contains("no-"),
                "{method} {path}"
            );
        }
    }
}
