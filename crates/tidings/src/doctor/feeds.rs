//! Sources and their feeds: which fail, which are overdue, which have fallen
//! silent, and whether any process polls. Pure.

use std::time::Duration;

use super::Finding;
use crate::format::{count, duration};

#[derive(Debug, Clone, Default)]
pub(super) struct FeedFacts {
    /// Sources that are enabled.
    pub(super) sources: u64,
    pub(super) feeds: u64,
    /// By the same rules as on the dashboard.
    pub(super) failing: Vec<FailingSource>,
    pub(super) paused: Vec<FailingSource>,
    pub(super) without_feed: Vec<String>,
    /// Feeds that are overdue.
    pub(super) overdue: u64,
    pub(super) longest_overdue: Duration,
    /// Time since any feed was polled.
    pub(super) last_poll: Option<Duration>,
    /// Sources whose polls succeed without new items, and for how long.
    pub(super) silent: Vec<(String, Duration)>,
    /// Sources that have reached a limit, and which.
    pub(super) limited: Vec<FailingSource>,
    /// Sources with settings that only the configuration file may have.
    pub(super) with_ignored: Vec<String>,
    /// Tasks that failed within the last hour.
    pub(super) failed_tasks: Vec<String>,
    pub(super) poll_concurrency: usize,
}

#[derive(Debug, Clone)]
pub(super) struct FailingSource {
    pub(super) name: String,
    pub(super) why: String,
}

/// A feed that is due for longer is overdue.
pub(super) const OVERDUE_AFTER: Duration = Duration::from_secs(300);
/// A source without a new item for longer is silent.
pub(super) const SILENT_AFTER: Duration = Duration::from_secs(30 * 86_400);

pub(super) fn diagnose(facts: &FeedFacts) -> Vec<Finding> {
    if facts.sources == 0 {
        return vec![Finding::warning(
            "sources",
            "no source is enabled",
            "no URLs are discovered without sources",
            "tidings add https://example.com/",
        )];
    }
    let mut found = Vec::new();
    found.extend(overdue(facts));
    found.extend(paused(facts));
    found.extend(failing(facts));
    found.extend(without_feed(facts));
    found.extend(silent(facts));
    found.extend(limited(facts));
    found.extend(with_ignored(facts));
    found.extend(failed_tasks(facts));
    if found.is_empty() {
        let (sources, feeds) = (count(facts.sources, "source"), count(facts.feeds, "feed"));
        found.push(Finding::ok(
            "sources",
            format!("{sources} with {feeds}, all polled on time"),
        ));
    }
    found
}

fn overdue(facts: &FeedFacts) -> Option<Finding> {
    if facts.overdue == 0 {
        return None;
    }
    let what = format!(
        "{} overdue, the oldest for {}",
        count(facts.overdue, "feed"),
        duration(facts.longest_overdue)
    );
    Some(match facts.last_poll {
        Some(ago) if ago < OVERDUE_AFTER => Finding::warning(
            "polling",
            what,
            format!(
                "feeds are polled, but slower than they become due; poll.concurrency is {}",
                facts.poll_concurrency
            ),
            format!("tidings run --set poll.concurrency={}", facts.poll_concurrency * 2),
        ),
        ago => Finding::error(
            "polling",
            what,
            match ago {
                Some(ago) => format!(
                    "the last poll of any feed was {} ago: no process with the role poll is running on this store",
                    duration(ago)
                ),
                None => "no feed was ever polled: no process with the role poll is running on this store".to_owned(),
            },
            "tidings run",
        ),
    })
}

/// Sources that are named one by one.
const MAX_NAMED: usize = 5;

fn limited(facts: &FeedFacts) -> Option<Finding> {
    let first = facts.limited.first()?;
    let number = facts.limited.len();
    let (sources, verb) = (
        count(number as u64, "source"),
        if number == 1 { "lists" } else { "list" },
    );
    let named = facts.limited.iter().take(MAX_NAMED);
    let named: Vec<String> = named
        .map(|source| format!("{}: {}", source.name, source.why))
        .collect();
    Some(Finding::warning(
        "sources",
        format!(
            "{sources} {verb} more than is taken, such as {}",
            named.join("; ")
        ),
        "what is left out is not fetched, so that no source can crowd out the others",
        format!("tidings source show {}", quoted(&first.name)),
    ))
}

fn with_ignored(facts: &FeedFacts) -> Option<Finding> {
    let first = facts.with_ignored.first()?;
    Some(Finding::warning(
        "sources",
        format!(
            "base_url or key_env of {} ignored, such as {first}",
            are(facts.with_ignored.len(), "source")
        ),
        "where a key is sent, and which one, is read from the configuration file only",
        format!("tidings source edit {}", quoted(first)),
    ))
}

fn paused(facts: &FeedFacts) -> Option<Finding> {
    let first = facts.paused.first()?;
    Some(Finding::error(
        "sources",
        format!(
            "{} not polled any more, such as {}: {}",
            are(facts.paused.len(), "source"),
            first.name,
            first.why
        ),
        "a paused source stays paused until it is resumed, changed or removed",
        format!("tidings source show {}", quoted(&first.name)),
    ))
}

fn failing(facts: &FeedFacts) -> Option<Finding> {
    let first = facts.failing.first()?;
    let what = format!(
        "{} failing, such as {}: {}",
        are(facts.failing.len(), "source"),
        first.name,
        first.why
    );
    let is_most = facts.failing.len() as u64 * 2 > facts.sources && facts.failing.len() > 1;
    Some(match is_most {
        true => Finding::error(
            "sources",
            what,
            "when more than half fail, the cause is usually the network or the DNS of this machine",
            "tidings check",
        ),
        false => Finding::warning(
            "sources",
            what,
            "a feed that fails is polled more and more rarely",
            format!("tidings source show {}", quoted(&first.name)),
        ),
    })
}

fn without_feed(facts: &FeedFacts) -> Option<Finding> {
    let first = facts.without_feed.first()?;
    Some(Finding::error(
        "sources",
        format!(
            "{} without a feed, sitemap or page to poll, such as {first}",
            are(facts.without_feed.len(), "source")
        ),
        "no URLs can be discovered from them",
        format!("tidings source show {}", quoted(first)),
    ))
}

fn silent(facts: &FeedFacts) -> Option<Finding> {
    let (name, ago) = facts.silent.iter().max_by_key(|(_, ago)| *ago)?;
    Some(Finding::warning(
        "sources",
        format!(
            "{} silent, {name} for {}",
            are(facts.silent.len(), "source"),
            duration(*ago)
        ),
        "polls succeed without new items; the site may have moved its feed",
        format!("tidings source poll {} --dry-run", quoted(name)),
    ))
}

fn failed_tasks(facts: &FeedFacts) -> Option<Finding> {
    let first = facts.failed_tasks.first()?;
    Some(Finding::warning(
        "tasks",
        format!(
            "{} failed within the last hour, the last one {first}",
            count(facts.failed_tasks.len() as u64, "task")
        ),
        "whoever started it may not have seen the error",
        "tidings source tasks",
    ))
}

fn are(number: usize, one: &str) -> String {
    let verb = if number == 1 { "is" } else { "are" };
    format!("{} {verb}", count(number as u64, one))
}

/// A name quoted for a shell.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-:/".contains(c);
    match name.chars().all(is_plain) && !name.is_empty() {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    fn failing_sources(names: &[&str]) -> Vec<FailingSource> {
        let one = |name: &&str| FailingSource {
            name: (*name).to_owned(),
            why: "http_transient × 4".to_owned(),
        };
        names.iter().map(one).collect()
    }

    #[test]
    fn every_problem_of_sources_has_its_finding() {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        let healthy = FeedFacts {
            sources: 4,
            feeds: 5,
            last_poll: Some(minutes(1)),
            poll_concurrency: 10,
            ..FeedFacts::default()
        };
        let overdue = FeedFacts {
            overdue: 3,
            longest_overdue: minutes(40),
            ..healthy.clone()
        };
        type Row<'a> = (&'a str, FeedFacts, Severity, &'a str, &'a str);
        let rows: [Row<'_>; 13] = [
            (
                "healthy",
                healthy.clone(),
                Severity::Ok,
                "4 sources with 5 feeds, all polled on time",
                "",
            ),
            (
                "no sources",
                FeedFacts::default(),
                Severity::Warning,
                "no source is enabled",
                "tidings add https://example.com/",
            ),
            (
                "no poller",
                FeedFacts {
                    last_poll: Some(minutes(45)),
                    ..overdue.clone()
                },
                Severity::Error,
                "3 feeds overdue, the oldest for 40 min",
                "tidings run",
            ),
            (
                "never a poller",
                FeedFacts {
                    last_poll: None,
                    ..overdue.clone()
                },
                Severity::Error,
                "3 feeds overdue",
                "tidings run",
            ),
            (
                "polling too slow",
                overdue,
                Severity::Warning,
                "3 feeds overdue",
                "tidings run --set poll.concurrency=20",
            ),
            (
                "one fails",
                FeedFacts {
                    failing: failing_sources(&["The 'Daily' Paper"]),
                    ..healthy.clone()
                },
                Severity::Warning,
                "1 source is failing, such as The 'Daily' Paper: http_transient × 4",
                r"tidings source show 'The '\''Daily'\'' Paper'",
            ),
            (
                "most fail",
                FeedFacts {
                    failing: failing_sources(&["a", "b", "c"]),
                    ..healthy.clone()
                },
                Severity::Error,
                "3 sources are failing, such as a",
                "tidings check",
            ),
            (
                "one is paused",
                FeedFacts {
                    paused: failing_sources(&["a"]),
                    ..healthy.clone()
                },
                Severity::Error,
                "1 source is not polled any more, such as a",
                "tidings source show a",
            ),
            (
                "one has nothing to poll",
                FeedFacts {
                    without_feed: vec!["a".to_owned()],
                    ..healthy.clone()
                },
                Severity::Error,
                "1 source is without a feed, sitemap or page to poll, such as a",
                "tidings source show a",
            ),
            (
                "two are silent",
                FeedFacts {
                    silent: vec![
                        ("a".to_owned(), SILENT_AFTER),
                        ("b".to_owned(), SILENT_AFTER * 2),
                    ],
                    ..healthy.clone()
                },
                Severity::Warning,
                "2 sources are silent, b for 60 days",
                "tidings source poll b --dry-run",
            ),
            (
                "one lists too much",
                FeedFacts {
                    limited: vec![FailingSource {
                        name: "a b".to_owned(),
                        why: "a reason".to_owned(),
                    }],
                    ..healthy.clone()
                },
                Severity::Warning,
                "1 source lists more than is taken, such as a b: a reason",
                "tidings source show 'a b'",
            ),
            (
                "settings of an older version",
                FeedFacts {
                    with_ignored: vec!["a".to_owned()],
                    ..healthy.clone()
                },
                Severity::Warning,
                "base_url or key_env of 1 source is ignored, such as a",
                "tidings source edit a",
            ),
            (
                "a task failed",
                FeedFacts {
                    failed_tasks: vec!["poll a: status 500".to_owned()],
                    ..healthy.clone()
                },
                Severity::Warning,
                "1 task failed within the last hour, the last one poll a: status 500",
                "tidings source tasks",
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
}
