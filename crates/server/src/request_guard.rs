//! The request guard: host check, authentication, role, origin and CSRF checks,
//! limits on body and time, parameters of the route, security headers, audit log.
//! Handlers run after it and never check permissions.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{MatchedPath, RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use tidings_store::NewAuditEntry;
use tracing::{debug, info, warn};

use crate::access::{Principal, constant_time_eq};
use crate::app::App;
use crate::body_fields::parse_form;
use crate::connections::Connection;
use crate::pages;
use crate::params::Params;
use crate::problem::Problem;
use crate::request::{BODY_TIMEOUT, CheckedRequest};
use crate::response::HandlerResult;
use crate::route::{Method, RequestBody, Route, Surface};
use crate::sender::Sender;

const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// On every response, errors included.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CSP),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // Not `no-referrer`: browsers then send `Origin: null` with forms of this server, too.
    (header::REFERRER_POLICY, "same-origin"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// After this a change gets its response even if the store did not record it.
const AUDIT_TIMEOUT: Duration = Duration::from_secs(5);
/// The label of requests that match no route.
const UNKNOWN_ROUTE: &str = "other";

/// The id of a request, in its response and in the log.
#[derive(Debug, Clone)]
struct RequestId(String);

/// Runs around every request, also around those that match no route.
pub(crate) async fn guard(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let mut bytes = [0; 8];
    // Without randomness ids repeat, which harms only readers of the log.
    let _ = getrandom::fill(&mut bytes);
    let id = format!("{:016x}", u64::from_be_bytes(bytes));
    request.extensions_mut().insert(RequestId(id.clone()));
    let matched = request.extensions().get::<MatchedPath>();
    let route = matched.cloned();
    let method = request.method().clone();
    let mut response = match is_own_host(&app, request.headers()) {
        true => next.run(request).await,
        false => Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "this host name is not served here; add it to server.public_hosts",
        )
        .to_json(&id),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert("x-request-id", value);
    }
    let status = response.status().as_u16();
    let route = route.as_ref().map_or(UNKNOWN_ROUTE, MatchedPath::as_str);
    let duration = started.elapsed();
    app.request_metrics.record(route, status, duration);
    debug!(%method, route, status, ?duration, request_id = id, "request finished");
    response
}

/// Only names of this server: any site can resolve its own name to this address
/// (DNS rebinding).
fn is_own_host(app: &App, headers: &HeaderMap) -> bool {
    let Some(host) = headers
        .get(header::HOST)
        .and_then(|value| value.to_str().ok())
    else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_matches(['[', ']']);
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    if let Ok(address) = name.parse::<IpAddr>() {
        // An address cannot be rebound, but it must be one that the server listens on.
        return address.is_loopback()
            || address == app.address.ip()
            || app.address.ip().is_unspecified();
    }
    let names = &app.options.public_hosts;
    names.iter().any(|own| own.eq_ignore_ascii_case(name))
}

pub(crate) async fn not_found(request: Request) -> Response {
    problem_response(&request, &Problem::new(StatusCode::NOT_FOUND, "not found"))
}

pub(crate) async fn method_not_allowed(request: Request) -> Response {
    problem_response(
        &request,
        &Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method not allowed at this path",
        ),
    )
}

fn problem_response(request: &Request, problem: &Problem) -> Response {
    let id = request_id(request);
    let accept = request.headers().get(header::ACCEPT);
    let wants_page = accept
        .and_then(|value| value.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"));
    match wants_page && !request.uri().path().starts_with("/api/") {
        true => pages::problem_page(problem, None, &id),
        false => problem.to_json(&id),
    }
}

fn request_id(request: &Request) -> String {
    let id = request.extensions().get::<RequestId>();
    id.map_or_else(String::new, |id| id.0.clone())
}

/// Handles one request to a route.
pub(crate) async fn handle(
    app: Arc<App>,
    route: &'static Route,
    connection: Arc<Connection>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
) -> Response {
    let id = request_id(&request);
    let headers = request.headers();
    let (peer, trusted) = (connection.peer.ip(), &app.options.trusted_proxies);
    let sender = Sender::new(peer, connection.is_tls, headers, trusted);
    let principal = app.access.identify(headers, sender).await;
    if let Ok(Some(_)) = &principal {
        connection.protect();
    }
    let shown = principal.as_ref().ok().cloned().flatten();
    let result = match principal {
        // A public page works also with an invalid token.
        Err(problem) if route.role.is_some() => {
            if route.method != Method::Get {
                let path = request.uri().path();
                audit(&app, route, sender, None, path, problem.status, &id).await;
            }
            Err(problem)
        }
        principal if route.method == Method::Get => {
            let principal = principal.unwrap_or_default();
            check_and_run(&app, route, sender, principal, params, request).await
        }
        principal => {
            // A client that disconnects neither cancels its change nor escapes the audit.
            let change = run_audited(
                app,
                route,
                sender,
                principal.unwrap_or_default(),
                params,
                request,
            );
            let changed = tokio::spawn(change).await;
            changed.unwrap_or_else(|error| Err(Problem::internal(error)))
        }
    };
    match result {
        Ok(response) => response,
        Err(problem) => {
            let cause = problem.cause.as_deref().unwrap_or(&problem.detail);
            if problem.status.is_server_error() {
                let status = problem.status.as_u16();
                warn!(%cause, route = route.path, status, request_id = id, "request failed");
            }
            match route.surface {
                Surface::Page => pages::problem_page(&problem, shown.as_ref(), &id),
                Surface::Api => problem.to_json(&id),
            }
        }
    }
}

/// Runs a request that changes something, and records it in the audit log.
async fn run_audited(
    app: Arc<App>,
    route: &'static Route,
    sender: Sender,
    principal: Option<Principal>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
) -> HandlerResult {
    let (id, path) = (request_id(&request), request.uri().path().to_owned());
    let result = check_and_run(&app, route, sender, principal.clone(), params, request).await;
    let status = match &result {
        // What it got is the page to log in.
        Ok(_) if route.role.is_some() && principal.is_none() => StatusCode::UNAUTHORIZED,
        Ok(response) => response.status(),
        Err(problem) => problem.status,
    };
    audit(&app, route, sender, principal.as_ref(), &path, status, &id).await;
    result
}

/// Records a change or an attempt: always in the log, and in the store when the
/// client has a valid token. Single URLs have their own history in the store.
async fn audit(
    app: &App,
    route: &Route,
    sender: Sender,
    principal: Option<&Principal>,
    path: &str,
    status: StatusCode,
    id: &str,
) {
    let (path, status) = (printable(path), status.as_u16());
    let name = printable(principal.map_or("", |principal| principal.name.as_str()));
    let method = route.method.as_str();
    let outcome = if status < 400 { "allowed" } else { "denied" };
    let from = sender.address;
    info!(target: "audit", who = name, %from, method, path, status, request_id = id, outcome, "audit");
    let Some(principal) = principal.filter(|_| route.path != "/api/v1/frontier/submit") else {
        return;
    };
    let audit = NewAuditEntry {
        who: &name,
        role: principal.role,
        action: route.summary,
        method,
        path: &path,
        status,
        request_id: id,
    };
    let recorded =
        match tokio::time::timeout(AUDIT_TIMEOUT, app.store.add_audit_entry(&audit)).await {
            Ok(recorded) => recorded.map_err(|error| error.to_string()),
            Err(_) => Err("timed out".to_owned()),
        };
    if let Err(error) = recorded {
        warn!(
            error,
            request_id = id,
            "cannot store audit entry; it is only in this log"
        );
    }
}

/// Untrusted text must not write lines of its own into the log.
fn printable(text: &str) -> String {
    let shown = text.chars().take(200);
    shown
        .map(|c| {
            if c.is_control() || ('\u{202a}'..='\u{2069}').contains(&c) {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

async fn check_and_run(
    app: &Arc<App>,
    route: &'static Route,
    sender: Sender,
    principal: Option<Principal>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
) -> HandlerResult {
    if let Some(required) = route.role {
        match &principal {
            None if route.surface == Surface::Page => {
                return pages::redirect_to_login(request.uri());
            }
            None => {
                return Err(Problem::new(
                    StatusCode::UNAUTHORIZED,
                    "a token is required: Authorization: Bearer tdg_…",
                ));
            }
            Some(principal) if principal.role < required => {
                return Err(Problem::forbidden(format!(
                    "role {required} is required; {} has role {}",
                    principal.name, principal.role
                )));
            }
            Some(_) => {}
        }
    }
    let (parts, body) = request.into_parts();
    let is_change = route.method != Method::Get;
    if is_change && parts.headers.get(header::AUTHORIZATION).is_none() {
        check_origin(&parts.headers)?;
    }
    let (body, unread) = match route.body {
        // Its handler reads it as a stream.
        RequestBody::UrlList => (Bytes::new(), body),
        kind => (read_body(body, kind.max_bytes()).await?, Body::empty()),
    };
    if is_change
        && let Some(csrf) = principal
            .as_ref()
            .and_then(|principal| principal.csrf.as_deref())
    {
        check_csrf(csrf, &parts.headers, &body, route.body)?;
    }
    if let (Some(operation), Some(principal)) = (route.expensive, &principal) {
        let started = app
            .expensive
            .start(principal.token_id, operation, Instant::now());
        started?;
    }
    let params = check_params(route, params, parts.uri.query().unwrap_or(""))?;
    let request = CheckedRequest {
        app: Arc::clone(app),
        principal,
        sender,
        params,
        headers: parts.headers,
        body,
        unread: Mutex::new(unread),
    };
    let timeout = Duration::from_secs(route.timeout_seconds);
    match tokio::time::timeout(timeout, (route.handler)(request)).await {
        Ok(result) => result,
        Err(_) => Err(Problem {
            retry_after: Some(5),
            cause: Some(format!("request timed out after {timeout:?}")),
            ..Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("request timed out after {} s", route.timeout_seconds),
            )
        }),
    }
}

/// A change that a browser sends must come from a page of this server.
fn check_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let refused =
        || Problem::forbidden("cross-site request: send changes from a page of this server");
    let site = HeaderName::from_static("sec-fetch-site");
    if text(&site).is_some_and(|site| site != "same-origin" && site != "none") {
        return Err(refused());
    }
    let Some(origin) = text(&header::ORIGIN) else {
        return Ok(());
    };
    let host = text(&header::HOST).unwrap_or_default();
    let is_ours = origin
        .split_once("://")
        .is_some_and(|(_, at)| at.eq_ignore_ascii_case(host));
    match is_ours {
        true => Ok(()),
        false => Err(refused()),
    }
}

/// The CSRF token of the session must be repeated in a header or in the form.
fn check_csrf(
    csrf: &str,
    headers: &HeaderMap,
    body: &[u8],
    kind: RequestBody,
) -> Result<(), Problem> {
    let header = headers
        .get("x-csrf-token")
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let given = header.or_else(|| match kind {
        RequestBody::Form => parse_form(body).remove("csrf"),
        _ => None,
    });
    match given.is_some_and(|given| constant_time_eq(&given, csrf)) {
        true => Ok(()),
        false => Err(Problem {
            field: Some("csrf".to_owned()),
            ..Problem::forbidden("the CSRF token is missing or expired; reload the page")
        }),
    }
}

async fn read_body(body: Body, max: usize) -> Result<Bytes, Problem> {
    let read = tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, max)).await;
    match read {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(Problem::long_body(max)),
        Err(_) => Err(Problem::slow_body(BODY_TIMEOUT)),
    }
}

/// Checks the parameters against the route; unknown ones are errors.
fn check_params(
    route: &Route,
    path: Result<RawPathParams, RawPathParamsRejection>,
    query: &str,
) -> Result<Params, Problem> {
    let path = path.map_err(|_| Problem::field("path", "the path is not UTF-8"))?;
    let mut given: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let param = route.params.iter().find(|param| param.name == name);
        let Some(param) = param.filter(|_| !route.has_in_path(&name)) else {
            let known: Vec<_> = route.params.iter().map(|param| param.name).collect();
            let why = format!("{name} is unknown; known parameters: {}", known.join(", "));
            return Err(Problem::field(name, why));
        };
        // An empty field of a form counts as absent.
        if !value.is_empty() {
            param.kind.check(param.name, &value)?;
            given.insert(name.into_owned(), value.into_owned());
        }
    }
    for (name, value) in &path {
        if let Some(param) = route.params.iter().find(|param| param.name == name) {
            param.kind.check(name, value)?;
        }
        given.insert(name.to_owned(), value.to_owned());
    }
    for param in route.params.iter().filter(|param| param.is_required) {
        if !given.contains_key(param.name) {
            return Err(Problem::field(
                param.name,
                format!("{} is missing", param.name),
            ));
        }
    }
    Ok(Params::new(given))
}
