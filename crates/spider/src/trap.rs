//! Crawler traps, recognised by their addresses: a calendar that goes on for ever,
//! a path that repeats itself, a session in every link, filters that multiply,
//! paths that only get longer. Each has a name that operators can read.

use std::fmt;

use jiff::civil::Date;
use serde::Serialize;
use tidings_url::FetchUrl;

use crate::path::Parts;
use crate::words;

/// A kind of crawler trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trap {
    /// Days and months that run away into the past or the future.
    Calendar,
    /// The same segment again and again.
    RepeatingPath,
    /// The same page at another address for each visitor.
    SessionId,
    /// The same list in another order, colour or size.
    Facets,
    /// Every page leads to a longer path.
    EndlessPath,
}

impl Trap {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Calendar => "calendar",
            Self::RepeatingPath => "repeating_path",
            Self::SessionId => "session_id",
            Self::Facets => "facets",
            Self::EndlessPath => "endless_path",
        }
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Segments and bytes of a path that an editor could have meant.
const MAX_SEGMENTS: usize = 10;
const MAX_PATH_BYTES: usize = 400;
/// Maximum age of a list by date, in days; nothing has a date after tomorrow.
const MAX_LIST_AGE_DAYS: i32 = 62;

/// Traps that catch articles as well as lists.
pub(crate) fn of_any(url: &FetchUrl, parts: &Parts) -> Option<Trap> {
    if repeats(&parts.segments) {
        return Some(Trap::RepeatingPath);
    }
    if parts.segments.len() > MAX_SEGMENTS || url.as_url().path().len() > MAX_PATH_BYTES {
        return Some(Trap::EndlessPath);
    }
    parts
        .segments
        .iter()
        .any(|segment| holds_session(segment))
        .then_some(Trap::SessionId)
}

/// Traps for those who look for lists.
pub(crate) fn of_list(parts: &Parts, today: Date) -> Option<Trap> {
    let has = |test: fn(&str) -> bool| parts.segments.iter().any(|part| test(part));
    let has_param = |test: fn(&str) -> bool| parts.query.iter().any(|(name, _)| test(name));
    if let Some(found) = parts.date() {
        let days = today
            .since(found.date)
            .map_or(i32::MAX, |span| span.get_days());
        let is_near = (-1..=MAX_LIST_AGE_DAYS).contains(&days);
        if !is_near || has(words::is_calendar_word) {
            return Some(Trap::Calendar);
        }
    }
    if has_param(words::is_date_param) {
        return Some(Trap::Calendar);
    }
    let several = parts.query.len() >= 2;
    (several || has_param(words::is_facet)).then_some(Trap::Facets)
}

/// Whether `longer` is `shorter` and something behind it.
pub(crate) fn extends(longer: &FetchUrl, shorter: &FetchUrl) -> bool {
    let (longer, shorter) = (longer.as_url().path(), shorter.as_url().path());
    let shorter = shorter.trim_end_matches('/');
    let rest = longer.strip_prefix(shorter);
    !shorter.is_empty() && rest.is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
}

/// One segment thrice, or one word twice in a row.
fn repeats(segments: &[String]) -> bool {
    let is_word = |text: &String| text.bytes().any(|byte| !byte.is_ascii_digit());
    let count = |text: &String| segments.iter().filter(|other| *other == text).count();
    let twice = segments
        .windows(2)
        .any(|pair| pair[0] == pair[1] && is_word(&pair[0]));
    twice
        || segments
            .iter()
            .any(|text| is_word(text) && count(text) >= 3)
}

/// `;jsessionid=…` of Java, `(S(…))` of ASP.
fn holds_session(segment: &str) -> bool {
    let behind = segment.split(';').skip(1);
    let mut pairs = behind.filter_map(|pair| pair.split_once('='));
    pairs.any(|(name, value)| words::is_session(name, value))
        || (segment.starts_with("(s(") && segment.ends_with("))"))
}
