//! The one door: host check, identity, role, CSRF, bounds on body and time, the
//! parameters of the table, security headers, the audit log. Handlers behind it
//! never ask who may do what.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
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

use crate::access::{Who, same};
use crate::app::App;
use crate::call::{Answer, Call, form_of};
use crate::pages;
use crate::problem::Problem;
use crate::routes::{Route, Surface, Takes, Verb};

const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// On every answer, errors included.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CSP),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // Not `no-referrer`: browsers then send `Origin: null` with our own forms, too.
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

/// A change is answered after so long, whether it could be noted or not.
const AUDIT_PATIENCE: Duration = Duration::from_secs(5);

/// The number of a request, as its answer and the log have it.
#[derive(Debug, Clone)]
struct RequestId(String);

/// Around everything, also around what is not there.
pub(crate) async fn guard(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let mut bytes = [0; 8];
    // Without randomness ids are alike, which harms only who reads the log.
    let _ = getrandom::fill(&mut bytes);
    let id = format!("{:016x}", u64::from_be_bytes(bytes));
    request.extensions_mut().insert(RequestId(id.clone()));
    let matched = request.extensions().get::<MatchedPath>();
    let route = crate::routes::path_named(matched.map_or("", MatchedPath::as_str));
    let method = request.method().clone();
    let mut response = match is_own_host(&app, request.headers()) {
        true => next.run(request).await,
        false => Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "this server has another name; add yours to server.public_hosts",
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
    app.answered.note(route, status, started);
    debug!(%method, route, status, request_id = id, "answered");
    response
}

/// Only names that are ours: a page elsewhere can point its own name at us.
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
        // An address can't be rebound; but only one that is ours is meant for us.
        return address.is_loopback()
            || address == app.address.ip()
            || app.address.ip().is_unspecified();
    }
    let names = &app.options.public_hosts;
    names.iter().any(|own| own.eq_ignore_ascii_case(name))
}

pub(crate) async fn nothing_here(request: Request) -> Response {
    plain(
        &request,
        &Problem::new(StatusCode::NOT_FOUND, "there is nothing at this address"),
    )
}

pub(crate) async fn not_that_way(request: Request) -> Response {
    plain(
        &request,
        &Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "this address does not take that method",
        ),
    )
}

fn plain(request: &Request, problem: &Problem) -> Response {
    let id = request_id(request);
    let accept = request.headers().get(header::ACCEPT);
    let wants_page = accept
        .and_then(|value| value.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"));
    match wants_page && !request.uri().path().starts_with("/api/") {
        true => pages::problem(problem, None, &id),
        false => problem.to_json(&id),
    }
}

fn request_id(request: &Request) -> String {
    let id = request.extensions().get::<RequestId>();
    id.map_or_else(String::new, |id| id.0.clone())
}

/// One request to a route of the table.
pub(crate) async fn serve(
    app: Arc<App>,
    route: &'static Route,
    peer: SocketAddr,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
) -> Response {
    let id = request_id(&request);
    let who = app.access.identify(request.headers(), peer.ip()).await;
    let shown = who.as_ref().ok().cloned().flatten();
    let answer = match who {
        // A page of login must not fail for a token that is wrong elsewhere.
        Err(problem) if route.role.is_some() => {
            if route.method != Verb::Get {
                let path = request.uri().path();
                audit(&app, route, None, path, problem.status, &id).await;
            }
            Err(problem)
        }
        who if route.method == Verb::Get => {
            let who = who.unwrap_or_default();
            pass(&app, route, peer.ip(), who, params, request).await
        }
        who => {
            // Whoever hangs up takes nothing back, and is noted all the same.
            let change = change(
                app,
                route,
                peer.ip(),
                who.unwrap_or_default(),
                params,
                request,
            );
            let changed = tokio::spawn(change).await;
            changed.unwrap_or_else(|error| Err(Problem::internal(error)))
        }
    };
    match answer {
        Ok(response) => response,
        Err(problem) => {
            let cause = problem.cause.as_deref().unwrap_or(&problem.detail);
            if problem.status.is_server_error() {
                let status = problem.status.as_u16();
                warn!(%cause, route = route.path, status, request_id = id, "a request failed");
            }
            match route.surface {
                Surface::Page => pages::problem(&problem, shown.as_ref(), &id),
                Surface::Api => problem.to_json(&id),
            }
        }
    }
}

/// One that changes something, and what is noted of it.
async fn change(
    app: Arc<App>,
    route: &'static Route,
    peer: IpAddr,
    who: Option<Who>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
) -> Answer {
    let (id, path) = (request_id(&request), request.uri().path().to_owned());
    let answer = pass(&app, route, peer, who.clone(), params, request).await;
    let status = match &answer {
        Ok(response) => response.status(),
        Err(problem) => problem.status,
    };
    audit(&app, route, who.as_ref(), &path, status, &id).await;
    answer
}

/// Notes a change, or the attempt: of everybody in the log, and in the store of
/// those who have a token. Single URLs have their own history there.
async fn audit(
    app: &App,
    route: &Route,
    who: Option<&Who>,
    path: &str,
    status: StatusCode,
    id: &str,
) {
    let (path, status) = (printable(path), status.as_u16());
    let name = printable(who.map_or("", |who| who.name.as_str()));
    let method = route.method.as_str();
    let outcome = if status < 400 { "changed" } else { "refused" };
    info!(target: "audit", who = name, method, path, status, request_id = id, "{outcome}");
    let Some(who) = who.filter(|_| route.path != "/api/v1/frontier/submit") else {
        return;
    };
    let audit = NewAuditEntry {
        who: &name,
        role: who.role,
        action: route.summary,
        method,
        path: &path,
        status,
        request_id: id,
    };
    let noted = match tokio::time::timeout(AUDIT_PATIENCE, app.store.add_audit_entry(&audit)).await
    {
        Ok(noted) => noted.map_err(|error| error.to_string()),
        Err(_) => Err("the store does not answer".to_owned()),
    };
    if let Err(error) = noted {
        warn!(
            error,
            request_id = id,
            "a change is only in this log, not in the store"
        );
    }
}

/// A stranger's text must not write lines of its own into the log.
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

async fn pass(
    app: &Arc<App>,
    route: &'static Route,
    peer: IpAddr,
    who: Option<Who>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
) -> Answer {
    if let Some(needed) = route.role {
        match &who {
            None if route.surface == Surface::Page => return pages::to_login(request.uri()),
            None => {
                return Err(Problem::new(
                    StatusCode::UNAUTHORIZED,
                    "a token is needed: Authorization: Bearer tdg_…",
                ));
            }
            Some(who) if who.role < needed => {
                return Err(Problem::forbidden(format!(
                    "this needs the role {needed}, and {} is {}",
                    who.name, who.role
                )));
            }
            Some(_) => {}
        }
    }
    let (parts, body) = request.into_parts();
    let is_change = route.method != Verb::Get;
    if is_change && parts.headers.get(header::AUTHORIZATION).is_none() {
        from_here(&parts.headers)?;
    }
    let body = read(body, route.takes.most_bytes()).await?;
    if is_change && let Some(csrf) = who.as_ref().and_then(|who| who.csrf.as_deref()) {
        repeats(csrf, &parts.headers, &body, route.takes)?;
    }
    let params = checked(route, params, parts.uri.query().unwrap_or(""))?;
    let call = Call {
        app: Arc::clone(app),
        who,
        peer,
        params,
        headers: parts.headers,
        body,
    };
    let answer = (route.handler)(call);
    match tokio::time::timeout(Duration::from_secs(route.seconds), answer).await {
        Ok(answer) => answer,
        Err(_) => Err(Problem {
            retry_after: Some(5),
            cause: Some(format!("it took longer than {} s", route.seconds)),
            ..Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "this took too long and was given up",
            )
        }),
    }
}

/// A change that a browser sends must come from a page of ours.
fn from_here(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let refused = || Problem::forbidden("this came from a page of another site");
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

/// The page that sent it knows the secret of the session.
fn repeats(csrf: &str, headers: &HeaderMap, body: &[u8], takes: Takes) -> Result<(), Problem> {
    let header = headers
        .get("x-csrf-token")
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let given = header.or_else(|| match takes {
        Takes::Form => form_of(body).remove("csrf"),
        _ => None,
    });
    match given.is_some_and(|given| same(&given, csrf)) {
        true => Ok(()),
        false => Err(Problem {
            field: Some("csrf".to_owned()),
            ..Problem::forbidden("the form is too old or not ours; load the page again")
        }),
    }
}

async fn read(body: Body, most: usize) -> Result<Bytes, Problem> {
    // Slow senders are as unwelcome as large ones.
    let read = tokio::time::timeout(Duration::from_secs(60), to_bytes(body, most)).await;
    match read {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(Problem {
            field: Some("body".to_owned()),
            ..Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body is broken or longer than {most} bytes"),
            )
        }),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time",
        )),
    }
}

/// Parameters as the table describes them; others are mistakes.
fn checked(
    route: &Route,
    path: Result<RawPathParams, RawPathParamsRejection>,
    query: &str,
) -> Result<BTreeMap<String, String>, Problem> {
    let path = path.map_err(|_| Problem::field("path", "the address is not UTF-8"))?;
    let mut given: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let is_in_path = route.path.contains(&format!("{{{name}}}"));
        let param = route.params.iter().find(|param| param.name == name);
        let Some(param) = param.filter(|_| !is_in_path) else {
            let known: Vec<_> = route.params.iter().map(|param| param.name).collect();
            let why = format!("{name} is unknown; there are: {}", known.join(", "));
            return Err(Problem::field(name, why));
        };
        // An empty field of a form is one that was left out.
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
    for param in route.params.iter().filter(|param| param.is_needed) {
        if !given.contains_key(param.name) {
            return Err(Problem::field(
                param.name,
                format!("{} is missing", param.name),
            ));
        }
    }
    Ok(given)
}
