//! Pages without end, as careless software makes them. Which path belongs to a
//! trap, and what the page there links to; everything follows from the path.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::rng::fingerprint;

/// A trap that a site may have beside its articles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SiteTrap {
    /// Every month links to the one before, the one after, and its days.
    Calendar,
    /// Every link carries a session that is new with each page.
    SessionIds,
    /// Every list can be narrowed in five ways, and then in five more.
    Facets,
    /// Every page links to longer paths.
    EndlessPath,
    /// A relative link to the page itself.
    RepeatingPath,
}

impl SiteTrap {
    pub const ALL: [Self; 5] = [
        Self::Calendar,
        Self::SessionIds,
        Self::Facets,
        Self::EndlessPath,
        Self::RepeatingPath,
    ];

    /// The way in, which stands in the menu.
    pub(crate) fn entry(self, now: Timestamp) -> Option<String> {
        match self {
            Self::Calendar => {
                let today = now.to_zoned(TimeZone::UTC).date();
                Some(month_path(today))
            }
            Self::SessionIds => None,
            Self::Facets => Some("/catalogue".to_owned()),
            Self::EndlessPath => Some("/archive/a".to_owned()),
            Self::RepeatingPath => Some("/pages/".to_owned()),
        }
    }

    /// What a page in the trap links to; nothing for other paths.
    pub(crate) fn links_at(self, path: &str) -> Option<Vec<String>> {
        match self {
            Self::Calendar => calendar(path.strip_prefix("/whatson/")?),
            Self::SessionIds => None,
            Self::Facets => facets(path.strip_prefix("/catalogue")?),
            Self::EndlessPath => {
                let here = path.trim_end_matches('/');
                let depth = here.strip_prefix("/archive/")?.split('/').count();
                let letter = char::from(b'a' + (depth % 26) as u8);
                let names = ["north", "south", "east"].map(|name| format!("{here}/{name}{letter}"));
                Some(names.to_vec())
            }
            Self::RepeatingPath => {
                let is_inside = path.starts_with("/pages/");
                is_inside.then(|| vec!["pages/".to_owned(), "more/".to_owned()])
            }
        }
    }
}

fn month_path(date: Date) -> String {
    format!("/whatson/{:04}/{:02}", date.year(), date.month())
}

fn calendar(rest: &str) -> Option<Vec<String>> {
    let mut parts = rest.split('/');
    let (year, month) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let first = Date::new(year, month, 1).ok()?;
    let before = first.yesterday().map(month_path);
    let after = first.last_of_month().tomorrow().map(month_path);
    let days = (1..=first.days_in_month()).map(|day| format!("{}/{day:02}", month_path(first)));
    Some(before.into_iter().chain(after).chain(days).collect())
}

fn facets(rest: &str) -> Option<Vec<String>> {
    let query = match rest {
        "" => "",
        _ => rest.strip_prefix('?')?,
    };
    let mut links = Vec::new();
    for name in ["group", "color", "size", "brand", "sort"] {
        if !query.contains(name) {
            for value in 0..12 {
                let separator = if query.is_empty() { "" } else { "&" };
                links.push(format!("/catalogue?{query}{separator}{name}={value}"));
            }
        }
    }
    Some(links)
}

/// The page with a session in every link of its own site.
pub(crate) fn with_sessions(html: &[u8], path: &str, now: Timestamp) -> Vec<u8> {
    let text = String::from_utf8_lossy(html);
    let seed = format!("{path} {now}");
    let first = fingerprint(seed.as_bytes());
    let session = format!(
        "sid={first:016x}{:08x}a1",
        fingerprint(&first.to_le_bytes()) as u32
    );
    let mut out = String::with_capacity(html.len() * 2);
    let mut rest = text.as_ref();
    while let Some(at) = rest.find("href=\"/") {
        let from = at + "href=\"".len();
        let end = rest[from..].find('"').map_or(rest.len(), |end| from + end);
        let separator = if rest[from..end].contains('?') {
            "&amp;"
        } else {
            "?"
        };
        // Writing to a string does not fail.
        let _ = write!(out, "{}{separator}{session}", &rest[..end]);
        rest = &rest[end..];
    }
    out.push_str(rest);
    out.into_bytes()
}

/// A path without the session.
pub(crate) fn without_session(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let pairs = query.split('&').filter(|pair| !pair.starts_with("sid="));
    let pairs: Vec<&str> = pairs.collect();
    match pairs.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", pairs.join("&")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever follows the first new link of each page never comes to an end.
    #[test]
    fn traps_have_no_end() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        for trap in [SiteTrap::Calendar, SiteTrap::Facets, SiteTrap::EndlessPath] {
            let mut seen = std::collections::HashSet::new();
            let mut path = trap.entry(now).unwrap();
            for _ in 0..100 {
                let links = trap.links_at(&path).unwrap();
                seen.insert(path);
                match links.into_iter().find(|link| !seen.contains(link)) {
                    Some(link) => path = link,
                    None => break,
                }
            }
            let ends = trap == SiteTrap::Facets;
            assert!(seen.len() == 100 || ends, "{trap:?}: {}", seen.len());
        }
    }

    #[test]
    fn a_session_comes_and_goes() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let html =
            b"<a href=\"/a\">a</a> <a href=\"/b?id=7\">b</a> <a href=\"http://c.example/\">c</a>";
        let text = String::from_utf8(with_sessions(html, "/", now)).unwrap();
        assert_eq!(text.matches("sid=").count(), 2, "{text}");
        assert!(text.contains("/b?id=7&amp;sid="), "{text}");
        assert_eq!(without_session("/b?id=7&sid=x"), "/b?id=7");
        assert_eq!(without_session("/a?sid=x"), "/a");
    }
}
