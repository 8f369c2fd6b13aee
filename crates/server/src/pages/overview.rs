//! The overview: the flow with its rates, what needs a person, what waits, and
//! the books, which always add up.

use std::time::Duration;

use maud::{Markup, html};
use tidings_store::{Feed, Host, Moment, OutboxState};

use super::{button, chart, page, segment, words};
use crate::call::{Answer, Call};
use crate::history::{self, Sample};
use crate::problem::Problem;

/// Feeds and hosts that are looked at for problems; there is no index of trouble.
const LOOKED_AT: u32 = 2000;
const MOST_SHOWN: usize = 12;
/// Points of a chart.
const POINTS: usize = 120;
/// Errors in a row after which a feed is a matter for a person.
const TROUBLE: i64 = 3;
/// How late the first URL or delivery may be.
const LATE: Duration = Duration::from_secs(600);
/// A rest of a host that a person may want to know of.
const LONG_REST: Duration = Duration::from_secs(3600);

pub(crate) async fn show(call: Call) -> Answer {
    let store = &call.app.store;
    let now = history::take(&call.app).await?;
    let overdue = store.longest_overdue().await?;
    let sinks = store.outbox().await?;
    let stats = store.stats().await?;
    let of = |status: &str| stats.by_status.get(status).copied().unwrap_or(0);
    let problems = problems(&call, &sinks, overdue, now.at).await?;
    let has_sources = !store.sources_after(i64::MIN, 1).await?.is_empty();
    let documents_waiting: i64 = sinks.iter().map(|sink| sink.waiting).sum();
    let content = html! {
        div.row.between { h1 { "Overview" } a.button.main href="/sources/new" { "Add a source" } }
        div #live {
            @if !has_sources {
                p.notice { "There are no sources yet. " a href="/sources/new" { "Paste the address of a site" } " and its feeds are found." }
            }
            (flow(&call, &now, sinks.iter().filter(|sink| sink.enabled).count()))
            section.card.problems[!problems.is_empty()] {
                h2 { "Needs a person" }
                @if problems.is_empty() { p.well { "Nothing. All is well." } }
                @for problem in problems.iter().take(MOST_SHOWN) { (problem) }
                @if problems.len() > MOST_SHOWN { p.soft { "and " (problems.len() - MOST_SHOWN) " more: see " a href="/feeds" { "feeds" } " and " a href="/hosts" { "hosts" } } }
            }
            (charts(&call.app.history.all()))
            div.two {
                section.card {
                    h2 { "What waits" }
                    dl {
                        dt { "Oldest that is due" } dd { (overdue.map_or("none is late".to_owned(), |late| format!("{} late", words::duration(late)))) }
                        dt { "Waiting for a retry" } dd { a href="/frontier?status=failed" { (words::number(of("failed"))) } }
                        dt { "Being fetched" } dd { a href="/frontier?status=fetching" { (words::number(of("fetching"))) } }
                        dt { "Documents for sinks" } dd { a href="/sinks" { (words::number(documents_waiting)) } }
                        dt { "Hosts" } dd { a href="/hosts" { (words::number(stats.hosts)) } }
                    }
                }
                section.card { h2 { "The books" } (books(&now, &of)) }
            }
        }
    };
    page(&call, "/", "Overview", &content)
}

/// The way of every URL, with how many pass each step in a minute.
fn flow(call: &Call, now: &Sample, sinks: usize) -> Markup {
    let rate = |of: fn(&Sample) -> i64| call.app.history.per_minute(of);
    let step = |path: &str, name: &str, count: i64, hint: &Markup| {
        html! { a.step href=(path) { span { (name) } b { (words::number(count)) } small { (hint) } } }
    };
    let rated = |rate: Option<f64>| {
        html! { @if let Some(rate) = rate { (words::number(rate.round() as i64)) " a minute" } @else { "counting …" } }
    };
    let delivered = html! { (rated(rate(|s| s.delivered))) ", to " (sinks) @if sinks == 1 { " sink" } @else { " sinks" } };
    let waits = html! { @if now.waiting == 0 { "nothing waits" } @else { "wait for their turn" } };
    html! {
        div.flow {
            (step("/sources", "discovered", now.found, &rated(rate(|s| s.found))))
            (step("/frontier?status=pending", "queued", now.waiting, &waits))
            (step("/frontier?status=fetched", "fetched", now.fetched, &rated(rate(|s| s.fetched))))
            (step("/sinks", "delivered", now.delivered, &delivered))
        }
    }
}

fn charts(samples: &[Sample]) -> Markup {
    let from = match (samples.first(), samples.last()) {
        (Some(first), Some(last)) => format!("{} ago", words::duration(last.at.since(first.at))),
        _ => String::new(),
    };
    let levels = |of: fn(&Sample) -> i64| {
        let levels: Vec<f64> = samples.iter().map(|sample| of(sample) as f64).collect();
        chart::thinned(&levels, POINTS)
    };
    html! {
        div.three {
            (titled("Fetched a minute", &rates(samples, |s| s.fetched), &from, ""))
            (titled("Queue", &levels(|s| s.waiting), &from, ""))
            (titled("Failed and dead", &levels(|s| s.failed), &from, "bad"))
        }
    }
}

/// Every URL that was ever found is in exactly one place.
fn books(now: &Sample, of: &impl Fn(&str) -> i64) -> Markup {
    let places = ["pending", "fetching", "failed", "fetched", "dead"];
    let sum: i64 = places.iter().map(|status| of(status)).sum();
    html! {
        table.books {
            @for status in places {
                tr { td { a href={ "/frontier?status=" (status) } { (status) } } td.n { (words::number(of(status))) } }
            }
            tr { td { b { "found in all" } } td.n { b { (words::number(now.found)) } } }
        }
        @if sum == now.found { span.badge.good { "adds up" } }
        @else { span.badge.warn { "changing: " (words::number(sum)) " a moment later" } }
    }
}

/// A chart under its name, with where it stands now.
fn titled(name: &str, points: &[f64], from: &str, class: &str) -> Markup {
    let now = points.last().copied().unwrap_or(0.0);
    html! {
        section.card {
            h2.row.between { (name) span { (words::number(now.round() as i64)) } }
            (chart::line(points, name, from, class))
        }
    }
}

fn rates(samples: &[Sample], of: impl Fn(&Sample) -> i64) -> Vec<f64> {
    let rate = |pair: &[Sample]| {
        let minutes = (pair[1].at.0 - pair[0].at.0).max(1) as f64 / 60_000.0;
        (of(&pair[1]) - of(&pair[0])) as f64 / minutes
    };
    let rates: Vec<f64> = samples.windows(2).map(rate).collect();
    chart::thinned(&rates, POINTS)
}

/// What needs a person: each with its reason and a button.
async fn problems(
    call: &Call,
    sinks: &[OutboxState],
    overdue: Option<Duration>,
    now: Moment,
) -> Result<Vec<Markup>, Problem> {
    let store = &call.app.store;
    let mut found = Vec::new();
    for sink in sinks {
        found.extend(sink_problem(call, sink, now));
    }
    if let Some(overdue) = overdue.filter(|overdue| *overdue > LATE) {
        found.push(problem(
            "warn",
            &html! { b { "Fetching is behind" } " by " (words::duration(overdue)) ": more URLs are due than are fetched." },
            &html! { a.button.small href="/frontier?status=pending&order=due" { "Look" } },
        ));
    }
    let feeds = store.feeds_after(i64::MIN, LOOKED_AT + 1).await?;
    found.extend(feeds.iter().filter_map(|feed| feed_problem(call, feed)));
    let hosts = store.hosts_after(None, LOOKED_AT + 1).await?;
    found.extend(
        hosts
            .iter()
            .filter_map(|host| host_problem(call, host, now)),
    );
    if feeds.len() > LOOKED_AT as usize || hosts.len() > LOOKED_AT as usize {
        found.push(
            html! { p.soft { "Only the first " (LOOKED_AT) " feeds and hosts were looked at." } },
        );
    }
    Ok(found)
}

fn problem(class: &str, what: &Markup, action: &Markup) -> Markup {
    html! { div.problem { span class={ "badge " (class) } { (if class == "bad" { "error" } else { "warning" }) } div { (what) } (action) } }
}

fn sink_problem(call: &Call, sink: &OutboxState, now: Moment) -> Option<Markup> {
    let path = format!("/sinks/{}", segment(&sink.sink));
    if sink.dead > 0 {
        return Some(problem(
            "bad",
            &html! { "The sink " a href=(path) { (sink.sink) } " could not take " (words::number(sink.dead)) " documents." },
            &button(call, &format!("{path}/retry"), "Retry", "", None),
        ));
    }
    let lag = sink.oldest.map(|oldest| now.since(oldest));
    let lag = lag.filter(|lag| *lag > LATE && sink.enabled)?;
    Some(problem(
        "warn",
        &html! { "The sink " a href=(path) { (sink.sink) } " is behind by " (words::duration(lag)) ", with " (words::number(sink.waiting)) " documents waiting." },
        &html! { a.button.small href=(path) { "Look" } },
    ))
}

fn feed_problem(call: &Call, feed: &Feed) -> Option<Markup> {
    let path = format!("/feeds/{}", feed.feed_id);
    let why = feed.last_error.as_deref().unwrap_or("no reason is known");
    if let Some(reason) = &feed.paused_reason {
        return Some(problem(
            "bad",
            &html! { "The " (feed.kind) " " a href=(path) { (feed.url) } " is paused: " (reason) ". " span.soft { (why) } },
            &button(call, &format!("{path}/wake"), "Poll now", "", None),
        ));
    }
    (feed.consecutive_errors >= TROUBLE).then(|| {
        problem(
            "warn",
            &html! { "The " (feed.kind) " " a href=(path) { (feed.url) } " failed " (feed.consecutive_errors) " times in a row: " span.soft { (why) } },
            &button(call, &format!("{path}/wake"), "Poll now", "", None),
        )
    })
}

fn host_problem(call: &Call, host: &Host, now: Moment) -> Option<Markup> {
    let until = host.blocked_until.filter(|until| *until > now)?;
    // A host that is given a rest by itself comes back by itself.
    if host.block_reason.is_none() && until.since(now) < LONG_REST {
        return None;
    }
    let path = format!("/hosts/{}", segment(&host.host));
    Some(problem(
        "warn",
        &html! { "The host " a href=(path) { (host.host) } " is left alone "(words::lasts(until, now)) ": " (host.block_reason.as_deref().unwrap_or("it asked for that, or did not answer")) },
        &button(call, &format!("{path}/unblock"), "Unblock", "", None),
    ))
}
