//! Dates that follow no standard: the text is cut into numbers and words, and
//! each gets a role by its shape and its neighbours. Refuses rather than
//! guesses.

use jiff::Timestamp;
use jiff::civil::{Date, Weekday};

use super::{Clock, fast, full_year, moment, names, weekday_of, zones};

/// A piece of the text.
#[derive(Debug, Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    kind: Kind,
    /// White space stands before it.
    is_apart: bool,
    is_used: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Word,
    Mark,
}

impl Piece<'_> {
    fn is(&self, text: &str) -> bool {
        !self.is_used && self.text.eq_ignore_ascii_case(text)
    }

    fn number(&self) -> Option<i64> {
        (self.kind == Kind::Number && !self.is_used)
            .then(|| self.text.parse().ok())
            .flatten()
    }
}

pub(super) fn parse(text: &str) -> Option<Timestamp> {
    let mut scan = Scan {
        pieces: pieces(text),
    };
    if let Some(moment) = scan.all_digits() {
        return moment;
    }
    let (mut clock, after_clock) = scan.clock()?;
    let offset = scan.offset(after_clock);
    let zone = scan.zone_name(after_clock);
    clock.hour = scan.half_of_day(clock.hour)?;
    let weekday = scan.weekday();
    let hints = Hints {
        weekday,
        is_american: scan.is_american(zone),
    };
    let date = scan.date(&hints)?;
    if !scan.rest_is_harmless() {
        return None;
    }
    let offset = match (offset, zone) {
        (Some(Err(())), _) => return None,
        (Some(Ok(offset)), _) => offset,
        (None, Some(zone)) => zones::fixed(zone)
            .or_else(|| zones::on_day(zone, date))
            .unwrap_or(0),
        // Portals that write in Korean mean Korean time.
        (None, None) if text.chars().any(is_hangul) => 9 * 3600,
        (None, None) => 0,
    };
    moment(date, clock, offset)
}

struct Hints {
    weekday: Option<Weekday>,
    is_american: bool,
}

struct Scan<'a> {
    pieces: Vec<Piece<'a>>,
}

impl<'a> Scan<'a> {
    /// Epoch seconds, `20261110`, `20261110T120000Z`, `2026` and the like.
    /// `Some(None)` for a number that is no date.
    fn all_digits(&self) -> Option<Option<Timestamp>> {
        let first = self.pieces.first()?;
        let is_alone = self.pieces.len() == 1;
        let digits = first.text;
        if first.kind != Kind::Number {
            return None;
        }
        match digits.len() {
            9 | 10 if is_alone => {
                let seconds = digits.parse().ok()?;
                Some(Timestamp::from_second(seconds).ok())
            }
            13 if is_alone => {
                let milliseconds = digits.parse().ok()?;
                Some(Timestamp::from_millisecond(milliseconds).ok())
            }
            8 if is_alone => Some(self.compact(digits, "000000")),
            12 | 14 => Some(self.compact(&digits[..8], &format!("{:0<6}", &digits[8..]))),
            8 if self.pieces.len() >= 3
                && self.pieces[1].is("T")
                && matches!(self.pieces[2].text.len(), 4 | 6) =>
            {
                let clock = format!("{:0<6}", self.pieces[2].text);
                Some(self.compact(digits, &clock))
            }
            4 if is_alone => Some(self.compact(&format!("{digits}0101"), "000000")),
            _ if is_alone => Some(None),
            _ => None,
        }
    }

    fn compact(&self, date: &str, clock: &str) -> Option<Timestamp> {
        let two = |text: &str, at: usize| text.get(at..at + 2)?.parse::<i8>().ok();
        let year = date.get(..4)?.parse().ok()?;
        let date = Date::new(year, two(date, 4)?, two(date, 6)?).ok()?;
        let clock = Clock {
            hour: two(clock, 0)?,
            minute: two(clock, 2)?,
            second: two(clock, 4)?,
            nanosecond: 0,
        };
        let mut rest = Scan {
            pieces: self.pieces.clone(),
        };
        let offset = match rest.offset(1) {
            Some(offset) => offset.ok()?,
            None => 0,
        };
        moment(date, clock, offset)
    }

    /// `hh:mm`, `hh:mm:ss`, `hh:mm:ss.fff`, `15h04`; midnight if there is none.
    /// Gives the index of the piece behind it as well. `None` for nonsense.
    fn clock(&mut self) -> Option<(Clock, usize)> {
        let separates = |piece: &Piece<'_>| piece.is(":") || piece.is("h");
        let start = self.pieces.windows(3).position(|three| {
            three[0].kind == Kind::Number
                && three[0].text.len() <= 2
                && separates(&three[1])
                && three[2].kind == Kind::Number
                && three[2].text.len() <= 2
        });
        let Some(start) = start else {
            return Some((Clock::default(), self.hour_alone()));
        };
        let small = |piece: &Piece<'_>| piece.number().and_then(|n| i8::try_from(n).ok());
        let mut clock = Clock {
            hour: small(&self.pieces[start])?,
            minute: small(&self.pieces[start + 2])?,
            ..Clock::default()
        };
        let mut end = start + 3;
        if self.is_pair(end, &[":"]) {
            clock.second = small(&self.pieces[end + 1])?;
            end += 2;
            if self.is_pair(end, &[".", ",", ":"]) && !self.pieces[end + 1].is_apart {
                clock.nanosecond = fast::nanoseconds(self.pieces[end + 1].text.as_bytes())?;
                end += 2;
            }
        }
        self.use_up(start, end);
        // The T of ISO 8601, glued to the day or the hour.
        if start > 0 && self.pieces[start - 1].is("T") {
            self.pieces[start - 1].is_used = true;
        }
        Some((clock, end))
    }

    /// Where a zone may stand when there is no clock.
    fn hour_alone(&self) -> usize {
        self.pieces.len().min(3)
    }

    fn is_pair(&self, at: usize, marks: &[&str]) -> bool {
        self.pieces.len() > at + 1
            && marks.iter().any(|mark| self.pieces[at].is(mark))
            && self.pieces[at + 1].kind == Kind::Number
    }

    fn use_up(&mut self, from: usize, to: usize) {
        for piece in &mut self.pieces[from..to] {
            piece.is_used = true;
        }
    }

    /// `+01:00`, `-0500`, `+2`, `GMT+1`, in seconds; an error if it is absurd.
    fn offset(&mut self, after: usize) -> Option<Result<i32, ()>> {
        let at = (after..self.pieces.len()).find(|at| {
            let sign = &self.pieces[*at];
            (sign.is("+") || sign.is("-") || sign.is("−"))
                && self.pieces.get(at + 1).is_some_and(|next| {
                    next.kind == Kind::Number && !next.is_apart && next.text.len() <= 4
                })
        })?;
        // Without a clock, a minus is more likely to join a date.
        let joins_date = !self.pieces[at].is_apart && !self.pieces[..at].iter().any(|p| p.is_used);
        if joins_date && self.pieces[at].is("-") {
            return None;
        }
        let digits = self.pieces[at + 1].text;
        let mut end = at + 2;
        let number = |text: &str| text.parse::<i32>().unwrap_or(i32::MAX);
        let (hours, minutes) = match digits.len() {
            1 | 2 if self.is_pair(end, &[":"]) => {
                end += 2;
                (number(digits), number(self.pieces[end - 1].text))
            }
            1 | 2 => (number(digits), 0),
            length => (number(&digits[..length - 2]), number(&digits[length - 2..])),
        };
        let is_negative = !self.pieces[at].is("+");
        // POSIX counts the other way round: Etc/GMT+5 is New York.
        let is_posix = at >= 2 && self.pieces[at - 1].text.eq_ignore_ascii_case("etc/gmt");
        self.use_up(at, end);
        if hours > 23 || minutes > 59 {
            return Some(Err(()));
        }
        let seconds = hours * 3600 + minutes * 60;
        Some(Ok(if is_negative != is_posix {
            -seconds
        } else {
            seconds
        }))
    }

    /// The word behind the clock that names a zone.
    fn zone_name(&mut self, after: usize) -> Option<&'a str> {
        let mut found = None;
        for piece in self.pieces.iter_mut().skip(after) {
            if piece.is_used || piece.kind != Kind::Word || is_half_of_day(piece.text) {
                continue;
            }
            let is_known = zones::fixed(piece.text).is_some()
                || zones::on_day(piece.text, Date::constant(2000, 1, 1)).is_some();
            let is_month = names::month(piece.text).is_some();
            // An unknown abbreviation is read as UTC, and never as a month.
            let looks_like_zone = !is_month
                && (piece.text.contains('/')
                    || (2..=5).contains(&piece.text.len())
                        && piece.text.bytes().all(|byte| byte.is_ascii_uppercase())
                        && names::weekday(piece.text).is_none());
            if is_known || looks_like_zone {
                piece.is_used = true;
                found = found.or(Some(piece.text));
            }
        }
        found
    }

    fn half_of_day(&mut self, hour: i8) -> Option<i8> {
        for piece in &mut self.pieces {
            if piece.is_used || !is_half_of_day(piece.text) {
                continue;
            }
            piece.is_used = true;
            let is_afternoon = piece.text.starts_with(['p', 'P']) || piece.text == "오후";
            return Some(match (is_afternoon, hour) {
                (true, 1..=11) => hour + 12,
                (false, 12) => 0,
                _ => hour,
            });
        }
        Some(hour)
    }

    fn weekday(&mut self) -> Option<Weekday> {
        let is_day =
            |piece: &&mut Piece<'_>| piece.kind == Kind::Word && names::month(piece.text).is_none();
        let mut words = self.pieces.iter_mut().filter(is_day);
        words.find_map(|piece| {
            let weekday = names::weekday(piece.text)?;
            piece.is_used = true;
            Some(weekday)
        })
    }

    /// Whether month comes before day where all else is equal.
    fn is_american(&self, zone: Option<&str>) -> bool {
        let half = self.pieces.iter().any(|piece| is_half_of_day(piece.text));
        let zone = zone.is_some_and(|zone| {
            matches!(
                zone.to_ascii_uppercase().as_str(),
                "EST" | "EDT" | "CST" | "CDT" | "MST" | "MDT" | "PST" | "PDT" | "ET" | "PT"
            )
        });
        half || zone
    }

    fn date(&mut self, hints: &Hints) -> Option<Date> {
        let month = self.pieces.iter_mut().find_map(|piece| {
            let is_word = piece.kind == Kind::Word && !piece.is_used;
            let month = is_word.then(|| names::month(piece.text)).flatten()?;
            piece.is_used = true;
            Some(month)
        });
        let mut numbers = Vec::new();
        let mut separator = "";
        for piece in &mut self.pieces {
            if let Some(number) = piece.number() {
                numbers.push((number, piece.text.len()));
                piece.is_used = true;
            } else if piece.kind == Kind::Mark && numbers.len() == 1 && separator.is_empty() {
                separator = piece.text;
            }
        }
        match month {
            Some(month) => with_month_name(month, &numbers),
            None => numeric(&numbers, separator, hints),
        }
    }

    /// Whether what is left says nothing about the date.
    fn rest_is_harmless(&self) -> bool {
        let first_used = self.pieces.iter().position(|piece| piece.is_used);
        self.pieces.iter().enumerate().all(|(at, piece)| {
            piece.is_used
                || piece.kind == Kind::Mark
                // Weekdays in any language, "Posted on" and the like.
                || first_used.is_some_and(|first| at < first)
                || !piece.text.is_ascii()
                || is_filler(piece.text)
        })
    }
}

fn with_month_name(month: i8, numbers: &[(i64, usize)]) -> Option<Date> {
    let day_and_year = match numbers {
        [(year, 4)] => (1, *year),
        [(year, 4), (day, 1 | 2)] | [(day, 1 | 2), (year, 4)] => (*day, *year),
        [(day, 1 | 2), (year, 2)] => (*day, i64::from(full_year(i16::try_from(*year).ok()?))),
        _ => return None,
    };
    date(day_and_year.1, i64::from(month), day_and_year.0)
}

fn numeric(numbers: &[(i64, usize)], separator: &str, hints: &Hints) -> Option<Date> {
    match *numbers {
        [(year, 4), (month, 1 | 2), (day, 1 | 2)] => date(year, month, day),
        [(year, 4), (month, 1 | 2)] => date(year, month, 1),
        [(year, 4), (day, 3)] => {
            let first = date(year, 1, 1)?;
            let day = i16::try_from(day).ok().filter(|day| *day >= 1)?;
            first.with().day_of_year(day).build().ok()
        }
        [(a, 1 | 2), (b, 1 | 2), (year, 4)] => day_and_month(a, b, year, separator, hints),
        [(year, 2), (month, 2), (day, 2)] if separator == "-" => {
            let year = i64::from(full_year(i16::try_from(year).ok()?));
            date(year, month, day)
        }
        [(a, 1 | 2), (b, 1 | 2), (year, 2)] if separator != "-" => {
            let year = i64::from(full_year(i16::try_from(year).ok()?));
            day_and_month(a, b, year, separator, hints)
        }
        _ => None,
    }
}

/// Two numbers that may both be the day. Decided by what is possible, then by
/// the weekday, the separator and American time; refused if none of them decides.
fn day_and_month(a: i64, b: i64, year: i64, separator: &str, hints: &Hints) -> Option<Date> {
    let day_first = date(year, b, a);
    let month_first = date(year, a, b);
    let (Some(day_first), Some(month_first)) = (day_first, month_first) else {
        return day_first.or(month_first);
    };
    if day_first == month_first {
        return Some(day_first);
    }
    if let Some(weekday) = hints.weekday {
        let fits = |date| weekday_of(date) == weekday;
        match (fits(day_first), fits(month_first)) {
            (true, false) => return Some(day_first),
            (false, true) => return Some(month_first),
            _ => {}
        }
    }
    match separator {
        // Nobody writes the month first with dots.
        "." => Some(day_first),
        "/" if hints.is_american => Some(month_first),
        _ => None,
    }
}

fn date(year: i64, month: i64, day: i64) -> Option<Date> {
    let year = i16::try_from(year).ok()?;
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

fn is_half_of_day(word: &str) -> bool {
    ["am", "pm", "a.m.", "p.m.", "a.m", "p.m"]
        .iter()
        .any(|half| word.eq_ignore_ascii_case(half))
        || matches!(word, "오전" | "오후")
}

fn is_filler(word: &str) -> bool {
    let word = word.trim_end_matches('.').to_ascii_lowercase();
    matches!(
        word.as_str(),
        "st" | "nd"
            | "rd"
            | "th"
            | "de"
            | "del"
            | "of"
            | "at"
            | "um"
            | "uhr"
            | "kl"
            | "the"
            | "on"
            | "le"
            | "er"
            | "den"
            | "hrs"
            | "h"
            | "t"
            | "hours"
            | "o'clock"
            | "time"
            | "standard"
            | "daylight"
            | "a"
            | "alle"
            | "ore"
            | "om"
            | "klo"
            | "z"
    ) || names::weekday(&word).is_some()
}

fn is_hangul(c: char) -> bool {
    ('\u{ac00}'..='\u{d7a3}').contains(&c)
}

/// Cuts the text. What stands in parentheses repeats what stands before.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::with_capacity(16);
    let mut rest = text;
    let mut is_apart = false;
    while let Some(c) = rest.chars().next() {
        if c.is_whitespace() {
            is_apart = true;
            rest = &rest[c.len_utf8()..];
            continue;
        }
        if c == '('
            && let Some(end) = rest.find(')')
        {
            rest = &rest[end + 1..];
            continue;
        }
        let (kind, length) = if c.is_ascii_digit() {
            (Kind::Number, run(rest, |c| c.is_ascii_digit()))
        } else if c.is_alphabetic() {
            let part = |c: char| c.is_alphabetic() || matches!(c, '/' | '_' | '.' | '\'');
            // "T" joins date and time, and is not the start of a word.
            let length = run(rest, part);
            let word = rest[..length].trim_end_matches(['/', '_']);
            (Kind::Word, word.len())
        } else {
            (Kind::Mark, c.len_utf8())
        };
        pieces.push(Piece {
            text: &rest[..length],
            kind,
            is_apart,
            is_used: false,
        });
        is_apart = false;
        rest = &rest[length..];
    }
    pieces
}

fn run(text: &str, part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !part(c)).unwrap_or(text.len())
}
