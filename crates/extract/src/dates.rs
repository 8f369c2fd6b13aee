//! Dates as pages write them, in many languages, to one value: a moment with
//! its offset, or a day. Reads what is there; never invents a time or a zone
//! (a time without a zone is UTC, as in the standard libraries of the web).

mod months;
mod parse;

use std::fmt;

use jiff::Timestamp;
use jiff::civil::{Date, date, time};
use jiff::tz::Offset;
use serde::{Serialize, Serializer};

pub(crate) use parse::{find_in_words, in_url};

/// The date of a publication or a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// A moment, and the offset that it was written in.
    Moment(Timestamp, Offset),
    /// Only the day is known.
    Day(Date),
}

impl When {
    /// The calendar day, where it was written.
    pub fn day(self) -> Date {
        match self {
            Self::Moment(moment, offset) => offset.to_datetime(moment).date(),
            Self::Day(day) => day,
        }
    }

    /// The moment; a day is taken as its midnight in UTC.
    pub fn timestamp(self) -> Timestamp {
        match self {
            Self::Moment(moment, _) => moment,
            Self::Day(day) => Offset::UTC
                .to_timestamp(day.to_datetime(time(0, 0, 0, 0)))
                .unwrap_or(Timestamp::UNIX_EPOCH),
        }
    }

    /// Parses a date in any machine format, and in most formats of written text.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        let head: String = text.chars().take(120).collect();
        parse::iso(&head)
            .or_else(|| parse::epoch(&head))
            .or_else(|| find_in_words(&head))
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moment(moment, Offset::UTC) => write!(f, "{moment}"),
            Self::Moment(moment, offset) => write!(f, "{}", moment.display_with_offset(*offset)),
            Self::Day(day) => write!(f, "{day}"),
        }
    }
}

impl Serialize for When {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Earlier dates are ignored.
pub(crate) const EARLIEST: Date = date(1990, 1, 1);

#[cfg(test)]
mod tests {
    use super::{When, in_url};

    #[test]
    fn dates_of_many_kinds_are_read() {
        for (text, expected) in [
            ("2024-08-25T10:00:00+02:00", "2024-08-25T10:00:00+02:00"),
            ("2024-08-25T10:00:00.000Z", "2024-08-25T10:00:00Z"),
            ("2024-08-25 10:00", "2024-08-25T10:00:00Z"),
            ("20240825", "2024-08-25"),
            ("2024/8/5", "2024-08-05"),
            ("1724580000", "2024-08-25T10:00:00Z"),
            ("Sun, 25 Aug 2024 10:00:00 GMT", "2024-08-25T10:00:00Z"),
            ("Published on August 25th, 2024 by Jane", "2024-08-25"),
            ("Aug. 25, 2024 3:05 PM EDT", "2024-08-25T15:05:00-04:00"),
            ("25. August 2024", "2024-08-25"),
            ("le 25 août 2024", "2024-08-25"),
            ("25 de agosto de 2024", "2024-08-25"),
            ("25 августа 2024", "2024-08-25"),
            ("2024年8月25日", "2024-08-25"),
            ("2024년 8월 25일", "2024-08-25"),
            ("25.08.2024, 09:30 Uhr", "2024-08-25T09:30:00Z"),
            ("08/25/2024", "2024-08-25"),
            ("25/08/2024", "2024-08-25"),
        ] {
            assert_eq!(
                When::parse(text).map(|when| when.to_string()).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        for text in [
            "",
            "yesterday",
            "2024",
            "Version 1.2.3",
            "31.02.2024",
            "0001-01-01T00:00:00",
            "99999999999999999999",
            "May the 4th",
        ] {
            assert_eq!(When::parse(text), None, "{text}");
        }
    }

    #[test]
    fn addresses_carry_dates() {
        for (url, day) in [
            ("https://a.example/2024/08/25/title", Some("2024-08-25")),
            (
                "https://a.example/news/2024-08-25-title.html",
                Some("2024-08-25"),
            ),
            ("https://a.example/20240825/title", Some("2024-08-25")),
            ("https://a.example/2024/aug/25/title", Some("2024-08-25")),
            ("https://a.example/2024/08/title", None),
            ("https://a.example/item/2024/99/99", None),
        ] {
            assert_eq!(
                in_url(url).map(|day| day.to_string()).as_deref(),
                day,
                "{url}"
            );
        }
    }
}
