//! URLs that are late and why, leases whose workers are gone, and what was
//! given up. Pure.

use std::time::Duration;

use tidings_store::{Leases, Moment, Overdue, OverdueHosts, PermanentFailures};

use super::Finding;
use crate::words::{count, duration, number};

#[derive(Debug, Clone, Default)]
pub(super) struct FrontierFacts {
    pub(super) urls: u64,
    pub(super) dead: u64,
    pub(super) late: Vec<OverdueHosts>,
    pub(super) leases: Leases,
    /// The most frequent reasons first.
    pub(super) permanent_failures: Vec<PermanentFailures>,
    /// URLs that wait at the host that is late because it is asked slowly.
    pub(super) queue_of_slowest: u64,
    /// Nothing is fetched, because some sink has too much waiting.
    pub(super) is_outbox_full: bool,
    pub(super) at_once: usize,
}

/// Somebody who works comes by more often than this.
const NOBODY: Duration = Duration::from_secs(120);
/// So late is late, even at a host that is asked slowly.
const SLOW: Duration = Duration::from_secs(600);
/// More than one in so many URLs that are dead are many.
const MANY_DEAD: u64 = 5;
const MAX_RETRIES: &str = "max_retries";
const QUARANTINED: &str = "quarantined";
/// Only another name of a page: nothing was given up.
const REDIRECT: &str = "redirect";

pub(super) fn judge(facts: &FrontierFacts) -> Vec<Finding> {
    let mut found = Vec::new();
    let late = |late| facts.late.iter().find(|hosts| hosts.late == late);
    found.extend(late(Overdue::Ready).and_then(|hosts| unattended(hosts, facts)));
    found.extend(late(Overdue::Gated).and_then(|hosts| slow(hosts, facts)));
    found.extend(late(Overdue::Blocked).map(blocked));
    found.extend(abandoned(&facts.leases));
    found.extend(quarantined(&facts.permanent_failures));
    found.extend(permanent_failures(facts));
    if found.is_empty() {
        let urls = count(facts.urls, "URL");
        found.push(Finding::fine(
            "frontier",
            format!("{urls}, none of them late"),
        ));
    }
    found
}

/// Hosts that could be asked, and nobody does.
fn unattended(hosts: &OverdueHosts, facts: &FrontierFacts) -> Option<Finding> {
    if hosts.ready_for < NOBODY {
        return None;
    }
    let what = format!(
        "{} could be asked and {} not, the first ({}) for {}",
        count(hosts.hosts, "host"),
        if hosts.hosts == 1 { "is" } else { "are" },
        hosts.host,
        duration(hosts.ready_for)
    );
    if facts.is_outbox_full {
        let why = "pages are not fetched while a sink has more documents waiting than outbox.bound";
        return Some(Finding::trouble("fetching", what, why, "tidings sink ls"));
    }
    Some(match facts.leases.live {
        0 => Finding::trouble(
            "fetching",
            what,
            "no page is being fetched: no process with the role fetch is running on this store",
            "tidings run",
        ),
        live => Finding::trouble(
            "fetching",
            what,
            format!(
                "{} at a time are not enough for what is found; a process fetches at most {}",
                number(live),
                facts.at_once
            ),
            format!(
                "tidings run --set fetch.at_once={}, or another machine: tidings work --roles fetch",
                facts.at_once * 2
            ),
        ),
    })
}

/// Hosts that are asked one by one, with a pause.
fn slow(hosts: &OverdueHosts, facts: &FrontierFacts) -> Option<Finding> {
    if hosts.overdue < SLOW {
        return None;
    }
    let seconds = hosts.delay.as_secs_f64();
    let left = hosts
        .delay
        .saturating_mul(u32::try_from(facts.queue_of_slowest).unwrap_or(u32::MAX));
    Some(Finding::notable(
        "politeness",
        format!(
            "a URL of {} has been due for {}: the host is asked once every {seconds} s, and {} wait there",
            hosts.host,
            duration(hosts.overdue),
            count(facts.queue_of_slowest, "URL")
        ),
        format!(
            "politeness is what takes the time, about {} for this host; other hosts don't wait for it",
            duration(left)
        ),
        format!("tidings frontier ls --host {} --sort due", hosts.host),
    ))
}

fn blocked(hosts: &OverdueHosts) -> Finding {
    let until = match hosts.blocked_until {
        Some(Moment::NEVER) => "until someone says otherwise".to_owned(),
        Some(until) => format!("until {until}"),
        None => "for a moment".to_owned(),
    };
    let reason = hosts
        .block_reason
        .as_deref()
        .unwrap_or("it asked us to wait");
    Finding::notable(
        "politeness",
        format!(
            "{} with due URLs {} left alone, {} the longest: {reason}, {until}",
            count(hosts.hosts, "host"),
            if hosts.hosts == 1 { "is" } else { "are" },
            hosts.host
        ),
        "nothing is asked of a host that wants a pause or that a person has stopped",
        format!("tidings frontier ls --host {} --sort due", hosts.host),
    )
}

/// Leases whose workers are gone.
fn abandoned(leases: &Leases) -> Option<Finding> {
    (leases.ended > 0).then(|| {
        Finding::notable(
            "leases",
            format!(
                "{} ended without a word, the first {} ago",
                count(leases.ended, "lease"),
                duration(leases.longest_ended)
            ),
            "a process that fetched was killed; its URLs are fetched again by the next one",
            "tidings frontier ls --status fetching",
        )
    })
}

/// Pages that killed their reader.
fn quarantined(permanent_failures: &[PermanentFailures]) -> Option<Finding> {
    let found = permanent_failures
        .iter()
        .find(|of| of.reason == QUARANTINED)?;
    Some(Finding::trouble(
        "quarantine",
        format!(
            "{} put aside, such as {}",
            count(found.urls, "URL"),
            found.example
        ),
        "processes died while they read these pages; that is a defect of ours, please report them",
        format!("tidings frontier ls --status dead --reason {QUARANTINED}"),
    ))
}

fn permanent_failures(facts: &FrontierFacts) -> Option<Finding> {
    let is_redirect = |of: &&PermanentFailures| of.reason == REDIRECT;
    let redirects: u64 = facts
        .permanent_failures
        .iter()
        .filter(is_redirect)
        .map(|of| of.urls)
        .sum();
    let dead = facts.dead.saturating_sub(redirects);
    let is_other = |of: &&PermanentFailures| of.reason != REDIRECT && of.reason != QUARANTINED;
    let others = || facts.permanent_failures.iter().filter(is_other);
    let has_retries = others().any(|of| of.reason == MAX_RETRIES);
    let is_much = dead * MANY_DEAD > facts.urls;
    if !has_retries && !is_much {
        return None;
    }
    let reasons: Vec<_> = others()
        .take(4)
        .map(|of| format!("{} {}", number(of.urls), of.reason))
        .collect();
    let what = format!(
        "{} of {} given up: {}",
        number(dead),
        count(facts.urls, "URL"),
        reasons.join(", ")
    );
    Some(match has_retries {
        true => Finding::notable(
            "given up",
            what,
            "what failed again and again over hours may work now",
            format!("tidings frontier retry --reason {MAX_RETRIES} --dry-run"),
        ),
        false => Finding::notable(
            "given up",
            what,
            "so many are rarely right: sources may list pages that are none, or robots.txt forbid them",
            "tidings frontier ls --status dead --sort newest",
        ),
    })
}

#[cfg(test)]
mod tests {
    use tidings_store::HostId;

    use super::*;
    use crate::doctor::Severity::{self, AdapterErrorKind, Fine, WorthKnowing};

    const MINUTE: Duration = Duration::from_secs(60);

    fn late(late: Overdue, overdue: Duration, ready_for: Duration) -> OverdueHosts {
        OverdueHosts {
            late,
            hosts: 3,
            overdue,
            ready_for,
            id: HostId(1),
            host: "a.example".to_owned(),
            delay: Duration::from_secs(2),
            block_reason: (late == Overdue::Blocked).then(|| "robots.txt can't be had".to_owned()),
            blocked_until: (late == Overdue::Blocked).then_some(Moment::NEVER),
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
    fn every_reason_to_wait_has_its_finding() {
        let well = FrontierFacts {
            urls: 1000,
            dead: 20,
            permanent_failures: vec![permanent_failures("not_found", 20)],
            queue_of_slowest: 4000,
            at_once: 256,
            ..FrontierFacts::default()
        };
        let with = |hosts: OverdueHosts| FrontierFacts {
            late: vec![hosts],
            ..well.clone()
        };
        let leases = |live, ended| Leases {
            live,
            ended,
            longest_ended: MINUTE,
        };
        let unattended = with(late(Overdue::Ready, 9 * MINUTE, 9 * MINUTE));
        type Row<'a> = (&'a str, FrontierFacts, Severity, &'a str, &'a str);
        let rows: [Row<'_>; 12] = [
            (
                "all is well",
                well.clone(),
                Fine,
                "1,000 URLs, none of them late",
                "",
            ),
            (
                "due a moment ago",
                with(late(Overdue::Ready, MINUTE, MINUTE)),
                Fine,
                "none of them late",
                "",
            ),
            (
                "nobody fetches",
                unattended.clone(),
                AdapterErrorKind,
                "3 hosts could be asked and are not, the first (a.example) for 9 min",
                "tidings run",
            ),
            (
                "too few fetch",
                FrontierFacts {
                    leases: leases(256, 0),
                    ..unattended.clone()
                },
                AdapterErrorKind,
                "3 hosts could be asked",
                "tidings run --set fetch.at_once=512, or another machine: tidings work --roles fetch",
            ),
            (
                "a sink holds it up",
                FrontierFacts {
                    is_outbox_full: true,
                    ..unattended.clone()
                },
                AdapterErrorKind,
                "3 hosts could be asked",
                "tidings sink ls",
            ),
            (
                "a host takes its time",
                with(late(Overdue::Gated, 11 * MINUTE, Duration::ZERO)),
                WorthKnowing,
                "has been due for 11 min: the host is asked once every 2 s, and 4,000 URLs wait there",
                "tidings frontier ls --host a.example --sort due",
            ),
            (
                "a host is asked just now",
                with(late(Overdue::Gated, MINUTE, Duration::ZERO)),
                Fine,
                "none of them late",
                "",
            ),
            (
                "a host is blocked",
                with(late(Overdue::Blocked, MINUTE, Duration::ZERO)),
                WorthKnowing,
                "left alone, a.example the longest: robots.txt can't be had, until someone says otherwise",
                "tidings frontier ls --host a.example --sort due",
            ),
            (
                "a worker died",
                FrontierFacts {
                    leases: leases(1, 5),
                    ..well.clone()
                },
                WorthKnowing,
                "5 leases ended without a word, the first 60 s ago",
                "tidings frontier ls --status fetching",
            ),
            (
                "pages are poison",
                FrontierFacts {
                    permanent_failures: vec![
                        permanent_failures("not_found", 19),
                        permanent_failures(QUARANTINED, 1),
                    ],
                    ..well.clone()
                },
                AdapterErrorKind,
                "1 URL put aside, such as https://a.example/x",
                "tidings frontier ls --status dead --reason quarantined",
            ),
            (
                "much is only another name",
                FrontierFacts {
                    dead: 300,
                    permanent_failures: vec![
                        permanent_failures(REDIRECT, 290),
                        permanent_failures("gone", 10),
                    ],
                    ..well.clone()
                },
                Fine,
                "none of them late",
                "",
            ),
            (
                "much is dead",
                FrontierFacts {
                    dead: 300,
                    permanent_failures: vec![
                        permanent_failures("robots_blocked", 290),
                        permanent_failures("gone", 10),
                    ],
                    ..well.clone()
                },
                WorthKnowing,
                "300 of 1,000 URLs given up: 290 robots_blocked, 10 gone",
                "tidings frontier ls --status dead --sort newest",
            ),
        ];
        for (name, facts, severity, what, next) in rows {
            let found = judge(&facts);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert_eq!(found[0].severity, severity, "{name}");
            assert!(found[0].what.contains(what), "{name}: {}", found[0].what);
            assert_eq!(found[0].next.as_deref().unwrap_or_default(), next, "{name}");
        }
    }

    #[test]
    fn what_failed_for_hours_can_be_tried_again() {
        let facts = FrontierFacts {
            urls: 1000,
            dead: 3,
            permanent_failures: vec![permanent_failures(MAX_RETRIES, 3)],
            ..FrontierFacts::default()
        };
        let found = judge(&facts);
        assert_eq!(found[0].severity, WorthKnowing);
        assert_eq!(
            found[0].next.as_deref(),
            Some("tidings frontier retry --reason max_retries --dry-run")
        );
    }
}
