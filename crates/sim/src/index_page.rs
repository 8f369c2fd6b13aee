//! The index page of the simulated web: what the bare address serves. A list of
//! the sites for browsers, and the ledger and the request log for programs.

use std::fmt::Write as _;
use std::net::IpAddr;

use serde::Serialize;

use crate::ledger::Ledger;
use crate::render::escape;
use crate::shared::Shared;
use crate::site::Site;
use crate::wire::{Request, Response};

/// Sites on one page of the list.
const PER_PAGE: u32 = 200;

pub(crate) fn respond(shared: &Shared, request: &Request) -> Response {
    let path = request.path.split('?').next().unwrap_or_default();
    match path {
        _ if !is_bare(&request.host) => no_such_site(),
        "/" => html(index(shared, page_in(&request.path))),
        "/ledger.jsonl" => {
            let ledger = Ledger::new(&shared.world, shared.clock.now());
            json_lines(ledger.entries())
        }
        "/requests.jsonl" => json_lines(shared.log.snapshot().into_iter()),
        _ => no_such_site(),
    }
}

/// Whether a `Host` names this machine and not one of the sites.
fn is_bare(authority: &str) -> bool {
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host);
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

fn no_such_site() -> Response {
    let text =
        "No simulated site has this name or path. The sites are listed at the bare address.\n";
    Response {
        body: text.into(),
        ..Response::empty(404).with("Content-Type", "text/plain")
    }
}

fn html(page: String) -> Response {
    Response {
        body: page.into(),
        ..Response::empty(200).with("Content-Type", "text/html; charset=utf-8")
    }
}

fn json_lines<T: Serialize>(rows: impl Iterator<Item = T>) -> Response {
    let mut body = Vec::new();
    for row in rows {
        // Plain structs into a vector: neither side can fail.
        let _ = serde_json::to_writer(&mut body, &row);
        body.push(b'\n');
    }
    Response {
        body,
        ..Response::empty(200).with("Content-Type", "application/jsonl")
    }
}

fn page_in(path: &str) -> u32 {
    let number = path
        .split_once("?page=")
        .and_then(|(_, number)| number.parse().ok());
    number.unwrap_or(1).max(1)
}

fn index(shared: &Shared, page: u32) -> String {
    let now = shared.clock.now();
    let first = (page - 1).saturating_mul(PER_PAGE);
    let last = first.saturating_add(PER_PAGE).min(shared.world.len());
    let ledger = Ledger::new(&shared.world, now);
    // Counting a million sites for a headline would make the page slow.
    let published =
        (shared.world.len() <= 20_000).then(|| format!("{} articles · ", ledger.published()));
    let mut out = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>Simulated web</title><style>{STYLE}</style>\n<h1>Simulated web</h1>\n<p>Seed {} · {} sites · {}{} requests served · it is {}</p>\n<p><a href=\"/ledger.jsonl\">ledger</a> what was published · <a href=\"/requests.jsonl\">requests</a> what was requested</p>\n<table><thead><tr><th>site<th>language<th>per day<th>published<th>feeds<th>sitemap<th>robots<th>template<th>faults</thead>\n",
        shared.world.config().seed,
        shared.world.len(),
        published.unwrap_or_default(),
        shared.log.total(),
        now.strftime("%Y-%m-%d %H:%M:%S UTC"),
    );
    for site in (first..last).map(|index| shared.world.site(index)) {
        row(&mut out, &site, site.published_by(now));
    }
    out.push_str("</table>\n");
    if last < shared.world.len() {
        let _ = writeln!(out, "<p><a href=\"/?page={}\">More sites</a></p>", page + 1);
    }
    out
}

fn row(out: &mut String, site: &Site, published: u64) {
    let mut feeds = String::new();
    for feed in &site.feeds {
        let defect = feed
            .defect
            .map(|defect| format!(" <i>{defect:?}</i>"))
            .unwrap_or_default();
        let _ = write!(
            feeds,
            "<a href=\"{}\">{:?}</a>{defect} ",
            site.absolute(&feed.path),
            feed.format
        );
    }
    let mut faults = String::new();
    for rule in &site.faults {
        let _ = write!(
            faults,
            "{:?} {:?}: {:?} ",
            rule.when, rule.target, rule.fault
        );
    }
    let _ = writeln!(
        out,
        "<tr><td><a href=\"{}\">{}</a><td>{}<td>{}<td>{published}<td>{feeds}<td>{:?}<td>{:?}<td>{:?}<td>{}",
        site.home(),
        escape(&site.host),
        site.language.code(),
        site.schedule.per_day,
        site.sitemap,
        site.robots,
        site.template,
        escape(&faults),
    );
}

const STYLE: &str = "body{font:14px/1.5 system-ui,sans-serif;margin:2rem;color:#1d2733;background:#fbfbf9}\
h1{font-weight:600;margin-bottom:0}table{border-collapse:collapse;width:100%}\
th{text-align:left;font-weight:600;color:#667}td,th{padding:.25rem .7rem .25rem 0;border-bottom:1px solid #e4e4de}\
td:first-child{white-space:nowrap}a{color:#0b5fae;text-decoration:none}i{color:#b3541e}\
@media(prefers-color-scheme:dark){body{background:#14181d;color:#d5dbe3}td,th{border-color:#2a313a}a{color:#7db8f0}}";
