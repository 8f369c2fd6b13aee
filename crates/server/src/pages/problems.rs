//! Problems on the overview: sinks, feeds, hosts and the frontier that need an
//! operator, each with its reason and an action.

use std::time::Duration;

use maud::{Markup, html};
use tidings_store::{Feed, Host, Moment, OutboxState};

use super::format;
use super::forms::button;
use super::links::segment;
use crate::problem::Problem;
use crate::request::CheckedRequest;

/// Feeds and hosts that are scanned for problems; there is no index of them.
const MAX_SCANNED: u32 = 2000;
/// Consecutive errors after which a feed is a problem.
const ERROR_THRESHOLD: i64 = 3;
/// Lag after which the frontier or a sink is a problem.
const LAG_THRESHOLD: Duration = Duration::from_secs(600);
/// Shorter cooldowns of a host are not a problem.
const COOLDOWN_THRESHOLD: Duration = Duration::from_secs(3600);

/// All problems, each with its reason and an action.
pub(super) async fn find(
    request: &CheckedRequest,
    sinks: &[OutboxState],
    overdue: Option<Duration>,
    now: Moment,
) -> Result<Vec<Markup>, Problem> {
    let store = &request.app.store;
    let mut found = Vec::new();
    for sink in sinks {
        found.extend(sink_problem(request, sink, now));
    }
    if let Some(overdue) = overdue.filter(|overdue| *overdue > LAG_THRESHOLD) {
        found.push(problem(
            "warn",
            &html! { b { "Fetch lag " (format::duration(overdue)) } ": more URLs are due than are fetched." },
            &html! { a.button.small href="/frontier?status=pending&order=due" { "Show" } },
        ));
    }
    let feeds = store.feeds_after(i64::MIN, MAX_SCANNED + 1).await?;
    found.extend(feeds.iter().filter_map(|feed| feed_problem(request, feed)));
    let hosts = store.hosts_after(None, MAX_SCANNED + 1).await?;
    found.extend(
        hosts
            .iter()
            .filter_map(|host| host_problem(request, host, now)),
    );
    if feeds.len() > MAX_SCANNED as usize || hosts.len() > MAX_SCANNED as usize {
        found.push(
            html! { p.soft { "Only the first " (MAX_SCANNED) " feeds and hosts were checked." } },
        );
    }
    Ok(found)
}

fn problem(class: &str, what: &Markup, action: &Markup) -> Markup {
    html! { div.problem { span class={ "badge " (class) } { (if class == "bad" { "error" } else { "warning" }) } div { (what) } (action) } }
}

fn sink_problem(request: &CheckedRequest, sink: &OutboxState, now: Moment) -> Option<Markup> {
    let path = format!("/sinks/{}", segment(&sink.sink));
    if sink.dead > 0 {
        return Some(problem(
            "bad",
            &html! { "The sink " a href=(path) { (sink.sink) } " has " (format::number(sink.dead)) " dead letters." },
            &button(request, &format!("{path}/retry"), "Retry", "", None),
        ));
    }
    if sink.is_unserved(now) {
        return Some(problem(
            "bad",
            &html! { "The sink " a href=(path) { (sink.sink) } " is served by no process" @if let Some(node) = &sink.node { "; it belongs to " (node) } "." },
            &html! { a.button.small href=(path) { "Show" } },
        ));
    }
    let lag = sink.oldest.map(|oldest| now.since(oldest));
    let lag = lag.filter(|lag| *lag > LAG_THRESHOLD && sink.enabled)?;
    Some(problem(
        "warn",
        &html! { "The sink " a href=(path) { (sink.sink) } " has a lag of " (format::duration(lag)) " and " (format::number(sink.waiting)) " pending deliveries." },
        &html! { a.button.small href=(path) { "Show" } },
    ))
}

fn feed_problem(request: &CheckedRequest, feed: &Feed) -> Option<Markup> {
    let path = format!("/feeds/{}", feed.feed_id);
    let why = feed.last_error.as_deref().unwrap_or("unknown error");
    if let Some(reason) = &feed.paused_reason {
        return Some(problem(
            "bad",
            &html! { "The " (feed.kind) " " a href=(path) { (feed.url) } " is paused: " (reason) ". " span.soft { (why) } },
            &button(request, &format!("{path}/resume"), "Poll now", "", None),
        ));
    }
    (feed.consecutive_errors >= ERROR_THRESHOLD).then(|| {
        problem(
            "warn",
            &html! { "The " (feed.kind) " " a href=(path) { (feed.url) } " has " (feed.consecutive_errors) " consecutive errors: " span.soft { (why) } },
            &button(request, &format!("{path}/resume"), "Poll now", "", None),
        )
    })
}

fn host_problem(request: &CheckedRequest, host: &Host, now: Moment) -> Option<Markup> {
    let until = host.blocked_until.filter(|until| *until > now)?;
    // A short automatic cooldown ends without an operator.
    if host.block_reason.is_none() && until.since(now) < COOLDOWN_THRESHOLD {
        return None;
    }
    let path = format!("/hosts/{}", segment(&host.host));
    Some(problem(
        "warn",
        &html! { "The host " a href=(path) { (host.host) } " is blocked " (format::until(until, now)) ": " (host.block_reason.as_deref().unwrap_or("automatic cooldown")) },
        &button(request, &format!("{path}/unblock"), "Unblock", "", None),
    ))
}
