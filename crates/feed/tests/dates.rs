//! Dates as feeds write them: every row of the table is right, what can't be a
//! date is refused, and day and month are never swapped in silence.

#![allow(clippy::unwrap_used)]

use jiff::Timestamp;
use proptest::prelude::*;
use tidings_feed::date;

/// Text, tab, the moment in UTC, or `-` for what must be refused. Written for
/// this table after the habits of publishing systems; `\n` is a line break.
const TABLE: &str = include_str!("data/dates.tsv");

#[test]
fn every_form_is_read_right() {
    let mut wrong = Vec::new();
    let mut rows = 0;
    for line in TABLE.lines() {
        let (text, expected) = line.split_once('\t').unwrap();
        let text = text.replace("\\n", "\n");
        let expected: Option<Timestamp> = (expected != "-").then(|| expected.parse().unwrap());
        rows += 1;
        let read = date::parse(&text);
        if read != expected {
            wrong.push(format!("{text:?}: {read:?}, expected {expected:?}"));
        }
    }
    assert!(rows >= 250, "{rows} rows");
    assert!(
        wrong.is_empty(),
        "{} of {rows}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn only_dates_that_can_be_are_plausible() {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let now = at("2026-11-10T12:00:00Z");
    for (date, is_plausible) in [
        ("0001-01-01T00:00:00Z", false),
        ("1970-01-01T00:00:00Z", false),
        ("1989-12-31T23:59:59Z", false),
        ("1990-01-01T00:00:00Z", true),
        ("2026-11-10T12:00:00Z", true),
        ("2026-11-11T11:59:59Z", true),
        ("2026-11-11T12:00:01Z", false),
    ] {
        assert_eq!(date::is_plausible(at(date), now), is_plausible, "{date}");
    }
}

proptest! {
    /// Any moment, written in the two standards and in asctime, comes back.
    #[test]
    fn standards_survive_the_round_trip(second in -62_135_596_800_i64..253_402_300_799) {
        let moment = Timestamp::from_second(second).unwrap();
        for layout in ["%Y-%m-%dT%H:%M:%SZ", "%a, %d %b %Y %H:%M:%S GMT", "%d %B %Y %H:%M:%S +0000"] {
            let text = moment.strftime(layout).to_string();
            prop_assert_eq!(date::parse(&text), Some(moment), "{}", text);
        }
    }

    /// Numbers that could be read in two ways are read in none.
    #[test]
    fn day_and_month_are_never_swapped(a in 1_i8..=12, b in 1_i8..=12, year in 1995_i16..2030) {
        prop_assume!(a != b);
        for separator in ["/", "-"] {
            let text = format!("{a:02}{separator}{b:02}{separator}{year}");
            prop_assert_eq!(date::parse(&text), None, "{}", text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        let _ = date::parse(&text);
    }

    #[test]
    fn anything_like_a_date_is_read_or_refused(text in "[0-9A-Za-z:+/., -]{0,40}") {
        let _ = date::parse(&text);
    }
}
