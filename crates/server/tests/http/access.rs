//! Authentication: hosts, tokens, sessions, CSRF, failed attempts, the first start.

use serde_json::json;
use tidings_net::{Client, NetOptions};
use tidings_server::{Server, ServerOptions, described_routes};
use tidings_store::{Role, Store, StoreOptions};

use crate::fixture::{ADMIN, OPERATOR, Served, VIEWER};
use crate::roles::filled;

/// Logs in; returns the cookie and the CSRF token.
pub(crate) async fn log_in(served: &Served, secret: &str) -> (String, String) {
    let response = served
        .request("POST", "/login")
        .form(&[("token", secret), ("next", "/")])
        .send()
        .await;
    assert_eq!(response.status, 303, "{}", response.text);
    let cookie = response.header("set-cookie");
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let page = served
        .request("GET", "/")
        .header("cookie", &cookie)
        .send()
        .await;
    let csrf = page.text.split("name=\"csrf\" value=\"").nth(1).unwrap();
    let csrf = csrf.split('"').next().unwrap().to_owned();
    assert!(csrf.len() > 40);
    (cookie, csrf)
}

#[tokio::test]
async fn only_configured_host_names_are_served() {
    let served =
        Served::start_with(|options| options.public_hosts = vec!["news.example".to_owned()]).await;
    let port = served.address.port();
    let rows = [
        (format!("127.0.0.1:{port}"), 200),
        (format!("localhost:{port}"), 200),
        (format!("LOCALHOST:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        ("news.example".to_owned(), 200),
        (format!("evil.example:{port}"), 421),
        ("10.0.0.1".to_owned(), 421),
        ("localhost.evil.example".to_owned(), 421),
        (String::new(), 421),
    ];
    for (host, status) in rows {
        let response = served
            .request("GET", "/healthz")
            .header("host", &host)
            .send()
            .await;
        assert_eq!(response.status, status, "{host:?}");
    }
}

#[tokio::test]
async fn a_browser_changes_nothing_without_the_csrf_token() {
    let served = Served::start().await;
    let (cookie, csrf) = log_in(&served, ADMIN).await;
    for route in described_routes()
        .iter()
        .filter(|route| route.method != "GET" && route.path != "/login")
    {
        let name = format!("{} {}", route.method, route.path);
        let request = || {
            served
                .request(route.method, &filled(route.path))
                .header("cookie", &cookie)
        };
        assert_eq!(request().send().await.status, 403, "{name} without it");
        let wrong = request().header("x-csrf-token", "wrong").send().await;
        assert_eq!(wrong.status, 403, "{name} with a wrong one");
        let foreign = request()
            .header("x-csrf-token", &csrf)
            .header("sec-fetch-site", "cross-site");
        assert_eq!(foreign.send().await.status, 403, "{name} from another site");
        let foreign = request()
            .header("x-csrf-token", &csrf)
            .header("origin", "https://evil.example");
        assert_eq!(foreign.send().await.status, 403, "{name} of another origin");
        if route.path != "/logout" {
            let ours = request()
                .header("x-csrf-token", &csrf)
                .header("sec-fetch-site", "same-origin");
            assert_ne!(ours.send().await.status, 403, "{name} from here");
        }
    }
    let page = served
        .request("GET", "/")
        .header("cookie", &cookie)
        .send()
        .await;
    assert_eq!(page.status, 200, "nothing of that ended the session");
    let out = served
        .request("POST", "/logout")
        .header("cookie", &cookie)
        .form(&[("csrf", &csrf)])
        .send()
        .await;
    assert_eq!(out.header("location"), "/login");
    let page = served
        .request("GET", "/")
        .header("cookie", &cookie)
        .send()
        .await;
    assert_eq!(page.status, 303, "the session has ended");
}

#[tokio::test]
async fn cross_site_logins_are_denied() {
    let served = Served::start().await;
    let response = served
        .request("POST", "/login")
        .header("origin", "https://evil.example")
        .form(&[("token", ADMIN)])
        .send()
        .await;
    assert_eq!(response.status, 403);
    assert_eq!(response.header("set-cookie"), "");
}

#[tokio::test]
async fn a_login_redirects_only_to_this_server() {
    let served = Served::start().await;
    for (next, to) in [
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ("/sinks", "/sinks"),
    ] {
        let response = served
            .request("POST", "/login")
            .form(&[("token", ADMIN), ("next", next)])
            .send()
            .await;
        assert_eq!(response.header("location"), to, "{next}");
    }
}

/// Logs in with a wrong token, behind a proxy that forwards for this client.
async fn guess(served: &Served, token: &str, forwarded_for: &str) -> u16 {
    let request = served
        .request("POST", "/login")
        .header("x-forwarded-for", forwarded_for)
        .form(&[("token", token)]);
    request.send().await.status
}

#[tokio::test]
async fn failed_attempts_are_limited_and_valid_tokens_never_pay_for_them() {
    let served = Served::start().await;
    for n in 0..10 {
        // Nobody is trusted to name another client.
        let client = format!("198.51.100.{n}");
        assert_eq!(guess(&served, &format!("guess {n}"), &client).await, 401);
    }
    let refused = served
        .request("GET", "/api/v1/frontier")
        .token("another guess")
        .send()
        .await;
    assert_eq!(refused.status, 429, "tokens and logins share one limit");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=61).contains(&wait), "{wait}");
    for path in ["/api/v1/frontier", "/metrics"] {
        assert_eq!(served.get(path).await.status, 200, "{path}");
    }
    for _ in 0..12 {
        let (cookie, _) = log_in(&served, OPERATOR).await;
        let page = served.request("GET", "/").header("cookie", &cookie);
        assert_eq!(page.send().await.status, 200);
    }
    assert_eq!(guess(&served, "one more guess", "").await, 429);
}

#[tokio::test]
async fn clients_behind_a_trusted_proxy_are_limited_one_by_one() {
    let served = Served::start_with(|options| {
        options.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    for n in 0..10 {
        let chain = format!("203.0.113.{n}, 198.51.100.7");
        assert_eq!(guess(&served, &format!("guess {n}"), &chain).await, 401);
    }
    assert_eq!(guess(&served, "guess 10", "198.51.100.7").await, 429);
    assert_eq!(guess(&served, "guess 11", "203.0.113.1").await, 401);
    // An IPv6 network is one client.
    for n in 0..10 {
        let address = format!("2001:db8::{n}");
        assert_eq!(guess(&served, &format!("network {n}"), &address).await, 401);
    }
    assert_eq!(guess(&served, "network 10", "2001:db8::ffff").await, 429);
    assert_eq!(guess(&served, "network 11", "2001:db8:0:1::").await, 401);
    // Many clients that try variants of one token.
    let variant = |n| format!("tdg_3fJq8ZpL and {n}");
    for n in 0..10 {
        let address = format!("192.0.2.{n}");
        assert_eq!(guess(&served, &variant(n), &address).await, 401);
    }
    assert_eq!(guess(&served, &variant(10), "192.0.2.10").await, 429);
}

#[tokio::test]
async fn the_cookie_is_secure_behind_tls() {
    for (trusted, is_secure) in [("127.0.0.0/8", true), ("10.0.0.0/8", false)] {
        let served = Served::start_with(|options| {
            options.trusted_proxies = vec![trusted.parse().unwrap()];
        })
        .await;
        let request = served
            .request("POST", "/login")
            .header("x-forwarded-proto", "https");
        let response = request.form(&[("token", ADMIN)]).send().await;
        assert_eq!(response.status, 303);
        let cookie = response.header("set-cookie");
        assert_eq!(cookie.contains("; Secure"), is_secure, "{cookie}");
    }
}

#[tokio::test]
async fn a_revoked_token_ends_immediately_and_so_do_its_sessions() {
    let served = Served::start().await;
    let (cookie, _) = log_in(&served, OPERATOR).await;
    assert_eq!(
        served
            .request("GET", "/api/v1/frontier")
            .token(OPERATOR)
            .send()
            .await
            .status,
        200
    );
    let tokens = served.get("/api/v1/tokens").await.good();
    let token = tokens["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|token| token["name"] == "test operator")
        .unwrap();
    let path = format!("/api/v1/tokens/{}", token["token_id"]);
    served
        .request("DELETE", &path)
        .token(ADMIN)
        .send()
        .await
        .good();
    assert_eq!(
        served
            .request("GET", "/api/v1/frontier")
            .token(OPERATOR)
            .send()
            .await
            .status,
        401
    );
    let page = served
        .request("GET", "/")
        .header("cookie", &cookie)
        .send()
        .await;
    assert_eq!(page.status, 303);
    let admin = tokens["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|token| token["name"] == "test admin")
        .unwrap();
    let path = format!("/api/v1/tokens/{}", admin["token_id"]);
    assert_eq!(
        served
            .request("DELETE", &path)
            .token(ADMIN)
            .send()
            .await
            .status,
        409,
        "the last admin stays"
    );
}

#[tokio::test]
async fn a_new_token_works_and_its_secret_is_nowhere_else() {
    let served = Served::start().await;
    let made = served
        .post("/api/v1/tokens", &json!({ "name": "ci", "role": "viewer" }))
        .await;
    assert_eq!(made.status, 201);
    let secret = made.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(
        served
            .request("GET", "/api/v1/sources")
            .token(&secret)
            .send()
            .await
            .status,
        200
    );
    for path in [
        "/api/v1/tokens",
        "/tokens",
        "/settings",
        "/metrics",
        "/api/v1/events?after=x",
    ] {
        for known in [&secret, VIEWER, OPERATOR, ADMIN] {
            let response = served.get(path).await;
            assert!(!response.text.contains(known), "{path}");
        }
    }
}

#[tokio::test]
async fn a_token_expires_and_its_sessions_with_it() {
    let served = Served::start().await;
    let lasts = Some(std::time::Duration::from_secs(8));
    let secret = "tdg_not-for-long";
    served
        .store
        .add_token("guest", Role::Viewer, secret, lasts)
        .await
        .unwrap();
    let (cookie, _) = log_in(&served, secret).await;
    let with_token = async || {
        let request = served.request("GET", "/api/v1/sources").token(secret);
        request.send().await.status
    };
    let with_session = async || {
        let request = served.request("GET", "/sources").header("cookie", &cookie);
        request.send().await.status
    };
    assert_eq!((with_token().await, with_session().await), (200, 200));
    let begun = std::time::Instant::now();
    while (with_token().await, with_session().await) != (401, 303) {
        assert!(begun.elapsed().as_secs() < 60, "it never expires");
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }

    let made = json!({ "name": "guest", "role": "viewer", "days": 30 });
    served.post("/api/v1/tokens", &made).await.good();
    let tokens = served.get("/api/v1/tokens").await.good();
    let made = tokens["items"].as_array().unwrap().last().unwrap().clone();
    assert!(made["expires_at"].as_str().unwrap() > made["created_at"].as_str().unwrap());
    let wrong = json!({ "name": "guest", "role": "viewer", "days": 0 });
    let response = served.post("/api/v1/tokens", &wrong).await;
    assert_eq!(
        (response.status, &response.json()["field"]),
        (400, &json!("days"))
    );
}

#[tokio::test]
async fn changes_are_audited_with_their_author_and_denials_too() {
    let served = Served::start().await;
    let path = "/api/v1/frontier/bulk";
    let body = json!({ "action": "retry", "all": true });
    for (token, status) in [(OPERATOR, 200), (VIEWER, 403)] {
        let request = served.request("POST", path).token(token).json(&body);
        assert_eq!(request.send().await.status, status);
    }
    // Unauthenticated requests are only logged: they must not fill the store.
    let request = served.request("POST", path).token("tdg_wrong").json(&body);
    assert_eq!(request.send().await.status, 401);
    let log = served.get("/api/v1/audit").await.good();
    let seen: Vec<_> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["who"].clone(),
                one["path"].clone(),
                one["status"].clone(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (json!("test viewer"), json!(path), json!(403)),
            (json!("test operator"), json!(path), json!(200)),
        ]
    );
    let page = served.get("/audit").await;
    assert!(page.text.contains("test operator") && page.text.contains("denied"));
}

#[tokio::test]
async fn the_first_start_creates_one_token_and_the_second_none() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let store = Store::open(&address, &StoreOptions::default())
        .await
        .unwrap();
    let options = || ServerOptions::new("127.0.0.1:0".parse().unwrap());
    let client = || Client::new(NetOptions::default()).unwrap();
    let first = Server::bind(options(), store.clone(), client())
        .await
        .unwrap();
    let secret = first.first_token().unwrap().to_owned();
    assert!(secret.starts_with("tdg_") && secret.len() > 40);
    let second = Server::bind(options(), store.clone(), client())
        .await
        .unwrap();
    assert_eq!(second.first_token(), None);
    let bytes = std::fs::read(folder.path().join("tidings.db")).unwrap();
    assert!(
        !bytes
            .windows(secret.len())
            .any(|part| part == secret.as_bytes()),
        "it is stored as a hash"
    );
    assert_eq!(
        store.use_token(&secret).await.unwrap().unwrap().role,
        tidings_store::Role::Admin
    );
}
