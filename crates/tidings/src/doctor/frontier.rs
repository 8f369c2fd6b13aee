//! Overdue URLs and why, expired leases, quarantined pages and permanent
//! failures. Pure.

use std::time::Duration;

use tidings_store::{Leases, Moment, Overdue, OverdueHosts, PermanentFailures};

use super::Finding;
use crate::format::{count, duration, number};

#[derive(Debug, Clone, Default)]
pub(super) struct FrontierFacts {
    pub(super) urls: u64,
    pub(super) dead: u64,
    pub(super) overdue: Vec<OverdueHosts>,
    pub(super) leases: Leases,
    /// The most frequent reasons first.
    pub(super) permanent_failures: Vec<PermanentFailures>,
    /// URLs queued for the overdue host that its delay slows down most.
    pub(super) slowest_host_queue: u64,
    /// Fetching is stopped, because a sink has more than `outbox.max_pending`.
    pub(super) is_outbox_full: bool,
    pub(super) concurrency: usize,
}

/// A running fetcher claims more often than this.
const UNCLAIMED_AFTER: Duration = Duration::from_secs(120);
/// A URL that is overdue for longer is reported even if politeness delays it.
const SLOW_AFTER: Duration = Duration::from_secs(600);
/// Permanent failures are reported above one in this many URLs.
const FAILED_SHARE: u64 = 5;
const MAX_RETRIES: &str = "max_retries";
const QUARANTINED: &str = "quarantined";
/// A redirect is not a failure, nor is a page that its canonical page stands for.
const REDIRECT: &str = "redirect";
const CANONICAL: &str = "canonical";

pub(super) fn diagnose(facts: &FrontierFacts) -> Vec<Finding> {
    let mut found = Vec::new();
    let overdue = |why| facts.overdue.iter().find(|hosts| hosts.late == why);
    found.extend(overdue(Overdue::Ready).and_then(|hosts| unclaimed(hosts, facts)));
    found.extend(overdue(Overdue::Gated).and_then(|hosts| slow(hosts, facts)));
    found.extend(overdue(Overdue::Blocked).map(blocked));
    found.extend(expired_leases(&facts.leases));
    found.extend(quarantined(&facts.permanent_failures));
    found.extend(permanent_failures(facts));
    if found.is_empty() {
        let urls = count(facts.urls, "URL");
        found.push(Finding::ok("frontier", format!("{urls}, none overdue")));
    }
    found
}

/// Hosts that may be fetched from, and no worker claims their URLs.
fn unclaimed(hosts: &OverdueHosts, facts: &FrontierFacts) -> Option<Finding> {
    if hosts.ready_for < UNCLAIMED_AFTER {
        return None;
    }
    let what = format!(
        "{} ready and not claimed, the oldest ({}) for {}",
        count(hosts.hosts, "host"),
        hosts.host,
        duration(hosts.ready_for)
    );
    if facts.is_outbox_full {
        let why = "fetching stops while a sink has more documents pending than outbox.max_pending";
        return Some(Finding::error("fetching", what, why, "tidings sink ls"));
    }
    Some(match facts.leases.live {
        0 => Finding::error(
            "fetching",
            what,
            "no page is being fetched: no process with the role fetch is running on this store",
            "tidings run",
        ),
        live => Finding::error(
            "fetching",
            what,
            format!(
                "{} pages in flight are not enough for the URLs that are discovered; fetch.concurrency is {}",
                number(live),
                facts.concurrency
            ),
            format!(
                "tidings run --set fetch.concurrency={}, or another machine: tidings work --roles fetch",
                facts.concurrency * 2
            ),
        ),
    })
}

/// Hosts whose delay is longer than their queue allows.
fn slow(hosts: &OverdueHosts, facts: &FrontierFacts) -> Option<Finding> {
    if hosts.overdue < SLOW_AFTER {
        return None;
    }
    let seconds = hosts.delay.as_secs_f64();
    let left = hosts
        .delay
        .saturating_mul(u32::try_from(facts.slowest_host_queue).unwrap_or(u32::MAX));
    Some(Finding::warning(
        "politeness",
        format!(
            "a URL of {} has been due for {}: the host allows one request per {seconds} s, and {} are queued",
            hosts.host,
            duration(hosts.overdue),
            count(facts.slowest_host_queue, "URL")
        ),
        format!(
            "the delay of the host sets the pace, about {} for its queue; other hosts are not affected",
            duration(left)
        ),
        format!("tidings frontier ls --host {} --sort due", hosts.host),
    ))
}

fn blocked(hosts: &OverdueHosts) -> Finding {
    let until = match hosts.blocked_until {
        Some(Moment::NEVER) => "until it is unblocked".to_owned(),
        Some(until) => format!("until {until}"),
        None => "for a moment".to_owned(),
    };
    let reason = hosts
        .block_reason
        .as_deref()
        .unwrap_or("the host asked for a delay");
    Finding::warning(
        "politeness",
        format!(
            "{} with due URLs {} blocked, {} the longest: {reason}, {until}",
            count(hosts.hosts, "host"),
            if hosts.hosts == 1 { "is" } else { "are" },
            hosts.host
        ),
        "no request is sent to a host that asked for a delay or that an operator has blocked",
        format!("tidings frontier ls --host {} --sort due", hosts.host),
    )
}

/// Leases that expired: their workers are gone.
fn expired_leases(leases: &Leases) -> Option<Finding> {
    (leases.ended > 0).then(|| {
        Finding::warning(
            "leases",
            format!(
                "{} expired, the oldest {} ago",
                count(leases.ended, "lease"),
                duration(leases.longest_ended)
            ),
            "a fetcher was killed; another one claims its URLs",
            "tidings frontier ls --status fetching",
        )
    })
}

/// Pages that crashed the extractor.
fn quarantined(permanent_failures: &[PermanentFailures]) -> Option<Finding> {
    let found = permanent_failures
        .iter()
        .find(|of| of.reason == QUARANTINED)?;
    Some(Finding::error(
        "quarantine",
        format!(
            "{} quarantined, such as {}",
            count(found.urls, "URL"),
            found.example
        ),
        "processes crashed while they extracted these pages; that is a defect of Tidings, please report them",
        format!("tidings frontier ls --status dead --reason {QUARANTINED}"),
    ))
}

fn is_alias(reason: &str) -> bool {
    reason == REDIRECT || reason == CANONICAL
}

fn permanent_failures(facts: &FrontierFacts) -> Option<Finding> {
    let is_redirect = |of: &&PermanentFailures| is_alias(&of.reason);
    let redirects: u64 = facts
        .permanent_failures
        .iter()
        .filter(is_redirect)
        .map(|of| of.urls)
        .sum();
    let dead = facts.dead.saturating_sub(redirects);
    let is_other = |of: &&PermanentFailures| !is_alias(&of.reason) && of.reason != QUARANTINED;
    let others = || facts.permanent_failures.iter().filter(is_other);
    let has_retries = others().any(|of| of.reason == MAX_RETRIES);
    let is_much = dead * FAILED_SHARE > facts.urls;
    if !has_retries && !is_much {
        return None;
    }
    let reasons: Vec<_> = others()
        .take(4)
        .map(|of| format!("{} {}", number(of.urls), of.reason))
        .collect();
    let what = format!(
        "{} of {} failed permanently: {}",
        number(dead),
        count(facts.urls, "URL"),
        reasons.join(", ")
    );
    Some(match has_retries {
        true => Finding::warning(
            "failures",
            what,
            "URLs that used up their retries may work now",
            format!("tidings frontier retry --reason {MAX_RETRIES} --dry-run"),
        ),
        false => Finding::warning(
            "failures",
            what,
            "the share is unusually high: sources may list URLs that are no pages, or robots.txt may disallow them",
            "tidings frontier ls --status dead --sort newest",
        ),
    })
}

#[cfg(test)]
mod tests {
    use tidings_store::HostId;

    use super::*;
    use crate::doctor::Severity;

    const MINUTE: Duration = Duration::from_secs(60);

    fn overdue_hosts(why: Overdue, overdue: Duration, ready_for: Duration) -> OverdueHosts {
        OverdueHosts {
            late: why,
            hosts: 3,
            overdue,
            ready_for,
            id: HostId(1),
            host: "a.example".to_owned(),
            delay: Duration::from_secs(2),
            block_reason: (why == Overdue::Blocked).then(|| "robots.txt is unavailable".to_owned()),
            blocked_until: (why == Overdue::Blocked).then_some(Moment::NEVER),
        }
    }

    fn permanent_failures(reason: &str, urls: u64) -> PermanentFailures {
        PermanentFailures {
            reason: reason.to_owned(),
            urls,
            example: "https://a.example/x".to_owned(),
        }
    }

    #[test]
    fn every_reason_for_a_delay_has_its_finding() {
        let healthy = FrontierFacts {
            urls: 1000,
            dead: 20,
            permanent_failures: vec![permanent_failures("not_found", 20)],
            slowest_host_queue: 4000,
            concurrency: 256,
            ..FrontierFacts::default()
        };
        let with = |hosts: OverdueHosts| FrontierFacts {
            overdue: vec![hosts],
            ..healthy.clone()
        };
        let leases = |live, ended| Leases {
            live,
            ended,
            longest_ended: MINUTE,
        };
        let unclaimed = with(overdue_hosts(Overdue::Ready, 9 * MINUTE, 9 * MINUTE));
        type Row<'a> = (&'a str, FrontierFacts, Severity, &'a str, &'a str);
        let rows: [Row<'_>; 12] = [
            (
                "healthy",
                healthy.clone(),
                Severity::Ok,
                "1,000 URLs, none overdue",
                "",
            ),
            (
                "due a moment ago",
                with(overdue_hosts(Overdue::Ready, MINUTE, MINUTE)),
                Severity::Ok,
                "none overdue",
                "",
            ),
            (
                "no fetcher",
                unclaimed.clone(),
                Severity::Error,
                "3 hosts ready and not claimed, the oldest (a.example) for 9 min",
                "tidings run",
            ),
            (
                "fetching too slow",
                FrontierFacts {
                    leases: leases(256, 0),
                    ..unclaimed.clone()
                },
                Severity::Error,
                "3 hosts ready",
                "tidings run --set fetch.concurrency=512, or another machine: tidings work --roles fetch",
            ),
            (
                "outbox full",
                FrontierFacts {
                    is_outbox_full: true,
                    ..unclaimed.clone()
                },
                Severity::Error,
                "3 hosts ready",
                "tidings sink ls",
            ),
            (
                "a slow host",
                with(overdue_hosts(Overdue::Gated, 11 * MINUTE, Duration::ZERO)),
                Severity::Warning,
                "has been due for 11 min: the host allows one request per 2 s, and 4,000 URLs are queued",
                "tidings frontier ls --host a.example --sort due",
            ),
            (
                "a host within its delay",
                with(overdue_hosts(Overdue::Gated, MINUTE, Duration::ZERO)),
                Severity::Ok,
                "none overdue",
                "",
            ),
            (
                "a host is blocked",
                with(overdue_hosts(Overdue::Blocked, MINUTE, Duration::ZERO)),
                Severity::Warning,
                "blocked, a.example the longest: robots.txt is unavailable, until it is unblocked",
                "tidings frontier ls --host a.example --sort due",
            ),
            (
                "a worker was killed",
                FrontierFacts {
                    leases: leases(1, 5),
                    ..healthy.clone()
                },
                Severity::Warning,
                "5 leases expired, the oldest 60 s ago",
                "tidings frontier ls --status fetching",
            ),
            (
                "pages in quarantine",
                FrontierFacts {
                    permanent_failures: vec![
                        permanent_failures("not_found", 19),
                        permanent_failures(QUARANTINED, 1),
                    ],
                    ..healthy.clone()
                },
                Severity::Error,
                "1 URL quarantined, such as https://a.example/x",
                "tidings frontier ls --status dead --reason quarantined",
            ),
            (
                "many redirects",
                FrontierFacts {
                    dead: 300,
                    permanent_failures: vec![
                        permanent_failures(REDIRECT, 200),
                        permanent_failures(CANONICAL, 90),
                        permanent_failures("gone", 10),
                    ],
                    ..healthy.clone()
                },
                Severity::Ok,
                "none overdue",
                "",
            ),
            (
                "many permanent failures",
                FrontierFacts {
                    dead: 300,
                    permanent_failures: vec![
                        permanent_failures("robots_blocked", 290),
                        permanent_failures("gone", 10),
                    ],
                    ..healthy.clone()
                },
                Severity::Warning,
                "300 of 1,000 URLs failed permanently: 290 robots_blocked, 10 gone",
                "tidings frontier ls --status dead --sort newest",
            ),
        ];
        for (name, facts, severity, what, next) in rows {
            let found = diagnose(&facts);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert_eq!(found[0].severity, severity, "{name}");
            assert!(found[0].what.contains(what), "{name}: {}", found[0].what);
            assert_eq!(found[0].next.as_deref().unwrap_or_default(), next, "{name}");
        }
    }

    #[test]
    fn urls_that_used_up_their_retries_can_be_retried() {
        let facts = FrontierFacts {
            urls: 1000,
            dead: 3,
            permanent_failures: vec![permanent_failures(MAX_RETRIES, 3)],
            ..FrontierFacts::default()
        };
        let found = diagnose(&facts);
        assert_eq!(found[0].severity, Severity::Warning);
        assert_eq!(
            found[0].next.as_deref(),
            Some("tidings frontier retry --reason max_retries --dry-run")
        );
    }
}
