//! Every route, as every role: made of the table of routes, so that none is
//! forgotten.

use tidings_server::described_routes;
use tidings_store::Role;

use crate::fixture::{ADMIN, OPERATOR, Served, VIEWER};

/// A path with something in each place; what is asked for need not exist.
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
async fn each_role_may_what_the_table_says_and_no_more() {
    holds_for(&Served::start().await).await;
}

#[tokio::test]
async fn each_role_may_the_same_on_postgresql() {
    holds_for(&Served::start_on_postgres().await.0).await;
}

async fn holds_for(served: &Served) {
    let routes = described_routes();
    assert!(routes.len() > 90, "{}", routes.len());
    for route in &routes {
        let path = filled(route.path);
        let name = format!("{} {}", route.method, route.path);
        let head_only = |head: &str| head.contains("\r\n\r\n");
        let nobody = served.ask(route.method, &path).read_until(head_only).await;
        match (route.role, route.is_page) {
            (None, _) => assert!(
                ![401, 403].contains(&nobody.status) || route.path == "/login",
                "{name}: {}",
                nobody.status
            ),
            (Some(_), true) => {
                assert_eq!(nobody.status, 303, "{name}");
                assert!(
                    nobody.header("location").starts_with("/login?next="),
                    "{name}"
                );
            }
            (Some(_), false) => {
                assert_eq!(nobody.status, 401, "{name}");
                assert_eq!(nobody.header("www-authenticate"), "Bearer");
            }
        }
        let Some(needed) = route.role else { continue };
        for (role, secret) in [
            (Role::Viewer, VIEWER),
            (Role::Operator, OPERATOR),
            (Role::Admin, ADMIN),
        ] {
            let ask = served.ask(route.method, &path).token(secret);
            let said = ask.read_until(head_only).await;
            if role < needed {
                assert_eq!(said.status, 403, "{name} as {role}");
            } else {
                assert!(
                    ![401, 403, 405].contains(&said.status),
                    "{name} as {role}: {}",
                    said.status
                );
                assert!(
                    said.status < 500,
                    "{name} as {role}: {} {}",
                    said.status,
                    said.text
                );
            }
        }
    }
}

#[tokio::test]
async fn every_answer_has_the_headers_that_keep_it_safe() {
    let served = Served::start().await;
    let mut asks: Vec<(String, String)> = described_routes()
        .iter()
        .map(|route| (route.method.to_owned(), filled(route.path)))
        .collect();
    asks.extend([
        ("GET".to_owned(), "/nowhere".to_owned()),
        ("GET".to_owned(), "/api/v1/nowhere".to_owned()),
        ("PATCH".to_owned(), "/api/v1/frontier".to_owned()),
        ("GET".to_owned(), "/frontier/%ff".to_owned()),
        ("GET".to_owned(), "/api/v1/frontier?limit=wrong".to_owned()),
    ]);
    for (method, path) in asks {
        for secret in [None, Some(ADMIN)] {
            let ask = served.ask(&method, &path);
            let ask = match secret {
                Some(secret) => ask.token(secret),
                None => ask,
            };
            let said = ask.read_until(|head| head.contains("\r\n\r\n")).await;
            let csp = said.header("content-security-policy");
            assert!(
                csp.contains("default-src 'none'") && csp.contains("frame-ancestors 'none'"),
                "{method} {path}"
            );
            assert!(!csp.contains("unsafe"), "{csp}");
            assert_eq!(
                said.header("x-content-type-options"),
                "nosniff",
                "{method} {path}"
            );
            assert_eq!(
                said.header("referrer-policy"),
                "same-origin",
                "{method} {path}"
            );
            assert_eq!(said.header("x-request-id").len(), 16, "{method} {path}");
            assert!(
                said.header("cache-control").contains("no-"),
                "{method} {path}"
            );
        }
    }
}
