//! From a request to a response: which document, which status, which fault.
//! Decides everything and sends nothing; [`crate::wire`] puts it on the wire.

use std::time::Duration;

use jiff::Timestamp;

use crate::article::Fate;
use crate::fault::{Fault, Target};
use crate::render::{self, Document};
use crate::rng::{Rng, fingerprint};
use crate::site::Site;
use crate::trap::{self, SiteTrap};
use crate::wire::{Request, Response};

/// What a path of a site is, before any fault.
struct Resource {
    kind: Target,
    found: Found,
}

enum Found {
    Document(Document),
    MovedTo(String),
    Nothing,
}

/// The response of a site to a request. `nth` counts the requests of this address.
pub(crate) fn respond(site: &Site, request: &Request, nth: u64, now: Timestamp) -> Response {
    if !matches!(request.method.as_str(), "GET" | "HEAD") {
        return Response::empty(405).with("Allow", "GET, HEAD");
    }
    let has_sessions = site.trap == Some(SiteTrap::SessionIds);
    let resource = match has_sessions {
        true => resource(site, &trap::without_session(&request.path), now),
        false => resource(site, &request.path, now),
    };
    let rule = site
        .faults
        .iter()
        .find(|rule| rule.holds(&resource.kind, &request.path, nth, now));
    let fault = rule.map(|rule| rule.fault.clone());
    let mut response = match (&fault, resource.found) {
        (Some(Fault::Status { code, retry_after }), _) => {
            let response = Response::empty(*code);
            match retry_after {
                Some(time) => response.with("Retry-After", time.clone()),
                None => response,
            }
        }
        (Some(Fault::SoftNotFound), _) => Response::of(200, render::not_found_page(site, now)),
        (Some(Fault::RedirectLoop), _) => {
            Response::empty(302).with("Location", request.path.clone())
        }
        (Some(Fault::HugeLocation), _) => {
            Response::empty(302).with("Location", format!("/{}", "a".repeat(100_000)))
        }
        (_, Found::MovedTo(path)) => Response::empty(301).with("Location", site.absolute(&path)),
        (_, Found::Document(mut document)) => {
            if has_sessions && document.content_type.starts_with("text/html") {
                document.body = trap::with_sessions(&document.body, &request.path, now);
            }
            conditional(site, request, document)
        }
        (_, Found::Nothing) => Response::of(404, render::not_found_page(site, now)),
    };
    if site.compresses && request.accepts_gzip && !response.body.is_empty() {
        response.body = render::gzip(&response.body);
        response = response
            .with("Content-Encoding", "gzip")
            .with("Vary", "Accept-Encoding");
    }
    response.delay = delay(site, &request.path, nth);
    response.fault = fault;
    response
}

fn resource(site: &Site, path: &str, now: Timestamp) -> Resource {
    let is = |kind, document: Option<Document>| Resource {
        kind,
        found: document.map_or(Found::Nothing, Found::Document),
    };
    if path == "/robots.txt" {
        return is(Target::Robots, render::robots(site));
    }
    if let Some(spec) = site.feeds.iter().find(|feed| feed.path == path) {
        return is(Target::Feeds, Some(render::feed(site, spec, now)));
    }
    if let Some(sitemap) = render::sitemap(site, path, now) {
        return is(Target::Sitemaps, Some(sitemap));
    }
    if site.is_for_readers
        && let Some(page) =
            render::reader_page(site, path, now).or_else(|| render::trap_page(site, path, now))
    {
        return is(Target::Anything, Some(page));
    }
    if !site.is_for_readers
        && let Some(page) = listing_number(path)
    {
        return is(Target::Anything, render::listing_page(site, page, now));
    }
    let path = &without_tracking(path);
    let Some(article) = site.article_at(path, now) else {
        return is(Target::Anything, None);
    };
    let found = match article.fate {
        Fate::Missing => Found::Nothing,
        Fate::Moved if article.path != *path => Found::MovedTo(article.path),
        _ => Found::Document(render::article_page(site, &article, now)),
    };
    Resource {
        kind: Target::Articles,
        found,
    }
}

/// Like most real sites, ours don't care how a reader came.
fn without_tracking(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let pairs: Vec<_> = query
        .split('&')
        .filter(|pair| !pair.starts_with("utm_"))
        .collect();
    match pairs.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", pairs.join("&")),
    }
}

fn listing_number(path: &str) -> Option<u64> {
    if path == "/" || path.starts_with("/section/") {
        return Some(1);
    }
    path.strip_prefix("/page/")?
        .parse()
        .ok()
        .filter(|page| *page > 0)
}

/// 200, or 304 when the client already has this very document.
fn conditional(site: &Site, request: &Request, document: Document) -> Response {
    if !site.has_validators {
        return Response::of(200, document);
    }
    let etag = format!("\"{:016x}\"", fingerprint(&document.body));
    let modified = document.modified.map(render::http_date);
    let unchanged = match (&request.if_none_match, &request.if_modified_since) {
        (Some(tags), _) => tags
            .split(',')
            .any(|tag| tag.trim().trim_start_matches("W/") == etag),
        (None, Some(since)) => modified.as_ref() == Some(since),
        (None, None) => false,
    };
    let response = if unchanged {
        Response::empty(304)
    } else {
        Response::of(200, document)
    };
    let response = response.with("ETag", etag);
    match modified {
        Some(date) => response.with("Last-Modified", date),
        None => response,
    }
}

fn delay(site: &Site, path: &str, nth: u64) -> Duration {
    let (least, spread) = site.latency_ms;
    let mut rng = Rng::of(site.seed ^ nth, "latency", fingerprint(path.as_bytes()));
    Duration::from_millis(least + rng.between(0, spread))
}
