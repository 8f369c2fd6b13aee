//! Sources and their feeds: which fail, which are late, which have fallen
//! silent, and whether anybody polls at all. Pure.

use std::time::Duration;

use super::Finding;
use crate::words::{count, duration};

#[derive(Debug, Clone, Default)]
pub(super) struct FeedFacts {
    /// Sources that are enabled.
    pub(super) sources: u64,
    pub(super) feeds: u64,
    /// Sources that are in trouble: their name and why, by the dashboard's words.
    pub(super) failing: Vec<Troubled>,
    pub(super) paused: Vec<Troubled>,
    pub(super) without_feed: Vec<String>,
    /// Feeds that should have been polled long ago.
    pub(super) late: u64,
    pub(super) longest_late: Duration,
    /// Since any feed was polled.
    pub(super) last_poll: Option<Duration>,
    /// Sources that answer and bring nothing any more, and for how long.
    pub(super) silent: Vec<(String, Duration)>,
    /// What was asked for within the last hour and failed.
    pub(super) failed_tasks: Vec<String>,
    pub(super) polls_at_once: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Troubled {
    pub(super) name: String,
    pub(super) why: String,
}

/// A feed is late when it is due for so long.
pub(super) const LATE: Duration = Duration::from_secs(300);
/// A source that has brought nothing for so long is silent.
pub(super) const SILENT: Duration = Duration::from_secs(30 * 86_400);

pub(super) fn judge(facts: &FeedFacts) -> Vec<Finding> {
    if facts.sources == 0 {
        return vec![Finding::notable(
            "sources",
            "there are none that are enabled",
            "nothing new is found without sources",
            "tidings add https://example.com/",
        )];
    }
    let mut found = Vec::new();
    found.extend(unattended(facts));
    found.extend(paused(facts));
    found.extend(failing(facts));
    found.extend(without_feed(facts));
    found.extend(silent(facts));
    found.extend(failed_tasks(facts));
    if found.is_empty() {
        let (sources, feeds) = (count(facts.sources, "source"), count(facts.feeds, "feed"));
        found.push(Finding::fine(
            "sources",
            format!("{sources} with {feeds}, all polled in time"),
        ));
    }
    found
}

fn unattended(facts: &FeedFacts) -> Option<Finding> {
    if facts.late == 0 {
        return None;
    }
    let what = format!(
        "{} should have been polled, the first {} ago",
        count(facts.late, "feed"),
        duration(facts.longest_late)
    );
    Some(match facts.last_poll {
        Some(ago) if ago < LATE => Finding::notable(
            "polling",
            what,
            format!(
                "feeds are polled, but not as fast as they are due; a process polls {} at once",
                facts.polls_at_once
            ),
            format!("tidings run --set poll.at_once={}", facts.polls_at_once * 2),
        ),
        ago => Finding::trouble(
            "polling",
            what,
            match ago {
                Some(ago) => format!(
                    "the last poll of any feed ended {} ago: no process with the role poll is running on this store",
                    duration(ago)
                ),
                None => "no feed was ever polled: no process with the role poll is running on this store".to_owned(),
            },
            "tidings run",
        ),
    })
}

fn paused(facts: &FeedFacts) -> Option<Finding> {
    let first = facts.paused.first()?;
    Some(Finding::trouble(
        "sources",
        format!(
            "{} not polled any more, such as {}: {}",
            are(facts.paused.len(), "source"),
            first.name,
            first.why
        ),
        "they stay so until somebody changes or removes them",
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
        true => Finding::trouble(
            "sources",
            what,
            "more than half at once is rarely theirs: look at this machine's network and name servers",
            "tidings check",
        ),
        false => Finding::notable(
            "sources",
            what,
            "a feed that fails is polled more and more rarely",
            format!("tidings source show {}", quoted(&first.name)),
        ),
    })
}

fn without_feed(facts: &FeedFacts) -> Option<Finding> {
    let first = facts.without_feed.first()?;
    Some(Finding::trouble(
        "sources",
        format!(
            "{} without anything to poll, such as {first}",
            are(facts.without_feed.len(), "source")
        ),
        "nothing can come from them",
        format!("tidings source show {}", quoted(first)),
    ))
}

fn silent(facts: &FeedFacts) -> Option<Finding> {
    let (name, ago) = facts.silent.iter().max_by_key(|(_, ago)| *ago)?;
    Some(Finding::notable(
        "sources",
        format!(
            "{} silent, {name} for {}",
            are(facts.silent.len(), "source"),
            duration(*ago)
        ),
        "they answer and list nothing new; the site may have moved its feed",
        format!("tidings source fire {} --dry-run", quoted(name)),
    ))
}

fn failed_tasks(facts: &FeedFacts) -> Option<Finding> {
    let first = facts.failed_tasks.first()?;
    Some(Finding::notable(
        "tasks",
        format!(
            "{} failed within the last hour, the last one {first}",
            count(facts.failed_tasks.len() as u64, "task")
        ),
        "somebody asked for it and may not have seen how it ended",
        "tidings source tasks",
    ))
}

fn are(number: usize, one: &str) -> String {
    let verb = if number == 1 { "is" } else { "are" };
    format!("{} {verb}", count(number as u64, one))
}

/// A name as a shell takes it.
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
    use crate::doctor::Severity::{self, AdapterErrorKind, Fine, WorthKnowing};

    fn troubled(names: &[&str]) -> Vec<Troubled> {
        let one = |name: &&str| Troubled {
            name: (*name).to_owned(),
            why: "http_transient × 4".to_owned(),
        };
        names.iter().map(one).collect()
    }

    #[test]
    fn every_trouble_of_sources_has_its_finding() {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        let well = FeedFacts {
            sources: 4,
            feeds: 5,
            last_poll: Some(minutes(1)),
            polls_at_once: 10,
            ..FeedFacts::default()
        };
        let late = FeedFacts {
            late: 3,
            longest_late: minutes(40),
            ..well.clone()
        };
        type Row<'a> = (&'a str, FeedFacts, Severity, &'a str, &'a str);
        let rows: [Row<'_>; 11] = [
            (
                "all is well",
                well.clone(),
                Fine,
                "4 sources with 5 feeds, all polled in time",
                "",
            ),
            (
                "there are none",
                FeedFacts::default(),
                WorthKnowing,
                "there are none",
                "tidings add https://example.com/",
            ),
            (
                "nobody polls",
                FeedFacts {
                    last_poll: Some(minutes(45)),
                    ..late.clone()
                },
                AdapterErrorKind,
                "3 feeds should have been polled, the first 40 min ago",
                "tidings run",
            ),
            (
                "nobody ever did",
                FeedFacts {
                    last_poll: None,
                    ..late.clone()
                },
                AdapterErrorKind,
                "3 feeds should",
                "tidings run",
            ),
            (
                "too few do",
                late,
                WorthKnowing,
                "3 feeds should",
                "tidings run --set poll.at_once=20",
            ),
            (
                "one fails",
                FeedFacts {
                    failing: troubled(&["The 'Daily' Paper"]),
                    ..well.clone()
                },
                WorthKnowing,
                "1 source is failing, such as The 'Daily' Paper: http_transient × 4",
                r"tidings source show 'The '\''Daily'\'' Paper'",
            ),
            (
                "most fail",
                FeedFacts {
                    failing: troubled(&["a", "b", "c"]),
                    ..well.clone()
                },
                AdapterErrorKind,
                "3 sources are failing, such as a",
                "tidings check",
            ),
            (
                "one is paused",
                FeedFacts {
                    paused: troubled(&["a"]),
                    ..well.clone()
                },
                AdapterErrorKind,
                "1 source is not polled any more, such as a",
                "tidings source show a",
            ),
            (
                "one has nothing to poll",
                FeedFacts {
                    without_feed: vec!["a".to_owned()],
                    ..well.clone()
                },
                AdapterErrorKind,
                "1 source is without anything to poll, such as a",
                "tidings source show a",
            ),
            (
                "two are silent",
                FeedFacts {
                    silent: vec![("a".to_owned(), SILENT), ("b".to_owned(), SILENT * 2)],
                    ..well.clone()
                },
                WorthKnowing,
                "2 sources are silent, b for 60 days",
                "tidings source fire b --dry-run",
            ),
            (
                "a task failed",
                FeedFacts {
                    failed_tasks: vec!["fire a: status 500".to_owned()],
                    ..well.clone()
                },
                WorthKnowing,
                "1 task failed within the last hour, the last one fire a: status 500",
                "tidings source tasks",
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
}
