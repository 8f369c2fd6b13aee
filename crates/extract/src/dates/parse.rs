//! The formats: machine formats (ISO 8601, RFC 2822, seconds), written text (words,
//! numbers, East Asian), and dates in URL paths.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;

use super::When;
use super::months::month_of;

/// A year that a page on the web can have been published in.
fn believable(year: i16) -> bool {
    (1990..=2100).contains(&year)
}

fn day(year: i64, month: i64, day: i64) -> Option<Date> {
    let year = i16::try_from(year).ok().filter(|year| believable(*year))?;
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// Reads digits at the start: their value and the rest.
fn digits(text: &str, least: usize, most: usize) -> Option<(i64, &str)> {
    let count = text
        .bytes()
        .take(most)
        .take_while(u8::is_ascii_digit)
        .count();
    if count < least {
        return None;
    }
    Some((text[..count].parse().ok()?, &text[count..]))
}

/// `2024-08-25T10:00:00+02:00` and its abbreviations, also with `/`, `.` or nothing between.
pub(super) fn iso(text: &str) -> Option<When> {
    let (year, rest) = digits(text, 4, 4)?;
    let separator = rest.chars().next()?;
    let (month, on, rest) = if separator.is_ascii_digit() {
        let (month, rest) = digits(rest, 2, 2)?;
        let (on, rest) = digits(rest, 2, 2)?;
        (month, on, rest)
    } else if matches!(separator, '-' | '/' | '.') {
        let (month, rest) = digits(&rest[1..], 1, 2)?;
        let (on, rest) = digits(rest.strip_prefix(separator)?, 1, 2)?;
        (month, on, rest)
    } else {
        return None;
    };
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let day = day(year, month, on)?;
    Some(with_time(day, rest))
}

/// A day with the time that follows it, if one does.
fn with_time(day: Date, rest: &str) -> When {
    clock(rest).map_or(When::Day(day), |(at, offset)| {
        let moment = offset.to_timestamp(DateTime::from_parts(day, at));
        moment.map_or(When::Day(day), |moment| When::Moment(moment, offset))
    })
}

/// `T10:00:00.123+02:00`, ` 10:00 PM GMT`.
fn clock(rest: &str) -> Option<(jiff::civil::Time, Offset)> {
    let rest = rest.trim_start_matches(['T', 't', ' ', ',', '\u{a0}', '-', '–', '|', '•']);
    let rest = rest
        .strip_prefix("at ")
        .or(rest.strip_prefix("um "))
        .unwrap_or(rest);
    let (mut hour, rest) = digits(rest, 1, 2)?;
    let (minute, rest) = digits(
        rest.strip_prefix(':')
            .or(rest.strip_prefix('h'))
            .or(rest.strip_prefix('.'))?,
        2,
        2,
    )?;
    let (second, rest) = rest
        .strip_prefix(':')
        .and_then(|rest| digits(rest, 2, 2))
        .unwrap_or((0, rest));
    let rest = rest.strip_prefix(['.', ',']).map_or(rest, |fraction| {
        fraction.trim_start_matches(|c: char| c.is_ascii_digit())
    });
    let mut rest = rest.trim_start();
    let half: String = rest
        .chars()
        .take(4)
        .filter(|c| *c != '.')
        .collect::<String>()
        .to_ascii_lowercase();
    if half.starts_with("pm") && hour < 12 {
        hour += 12;
    } else if half.starts_with("am") && hour == 12 {
        hour = 0;
    }
    if half.starts_with("pm") || half.starts_with("am") {
        rest = rest
            .trim_start_matches(|c: char| {
                c.is_ascii_alphabetic() && !c.is_ascii_uppercase()
                    || matches!(c, 'A' | 'P' | 'M' | '.')
            })
            .trim_start();
    }
    let at = jiff::civil::Time::new(
        i8::try_from(hour).ok()?,
        i8::try_from(minute).ok()?,
        i8::try_from(second.min(59)).ok()?,
        0,
    )
    .ok()?;
    Some((at, zone(rest)))
}

fn zone(text: &str) -> Offset {
    let named = |hours: i8| Offset::from_hours(hours).unwrap_or(Offset::UTC);
    if let Some(rest) = text.strip_prefix(['+', '-'])
        && let Some((hours, rest)) = digits(rest, 1, 2)
    {
        let minutes =
            digits(rest.strip_prefix(':').unwrap_or(rest), 2, 2).map_or(0, |(minutes, _)| minutes);
        let seconds = i32::try_from(hours * 3600 + minutes * 60).unwrap_or(0);
        let signed = if text.starts_with('-') {
            -seconds
        } else {
            seconds
        };
        return Offset::from_seconds(signed).unwrap_or(Offset::UTC);
    }
    let name: String = text.chars().take_while(char::is_ascii_alphabetic).collect();
    match name.as_str() {
        "EST" => named(-5),
        "EDT" => named(-4),
        "ET" => named(-5),
        "CST" => named(-6),
        "CDT" => named(-5),
        "MST" => named(-7),
        "MDT" => named(-6),
        "PST" => named(-8),
        "PDT" => named(-7),
        "CET" | "MEZ" | "BST" => named(1),
        "CEST" | "MESZ" | "EET" => named(2),
        "EEST" | "MSK" => named(3),
        "IST" => Offset::from_seconds(19_800).unwrap_or(Offset::UTC),
        "JST" | "KST" => named(9),
        "AEST" => named(10),
        "AEDT" => named(11),
        _ => Offset::UTC,
    }
}

/// Seconds or milliseconds since 1970.
pub(super) fn epoch(text: &str) -> Option<When> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: i64 = text.parse().ok()?;
    let moment = match text.len() {
        10 => Timestamp::from_second(number),
        13 => Timestamp::from_millisecond(number),
        _ => return None,
    }
    .ok()?;
    Some(When::Moment(moment, Offset::UTC))
}

/// The first date in a line of text: with a month in words, or in numbers.
pub(crate) fn find_in_words(text: &str) -> Option<When> {
    let tokens = tokens(text);
    for (index, token) in tokens.iter().enumerate() {
        let found = in_east_asian(text, token)
            .or_else(|| by_month_name(&tokens, index))
            .or_else(|| numeric(text, &tokens, index));
        if let Some((day, end)) = found {
            return Some(with_time(day, text.get(end..).unwrap_or("")));
        }
    }
    None
}

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    from: usize,
    to: usize,
    number: Option<i64>,
}

/// Runs of digits and runs of letters.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut from = 0;
    let class = |c: char| {
        if c.is_ascii_digit() {
            1
        } else if c.is_alphabetic() {
            2
        } else {
            0
        }
    };
    let mut current = 0;
    for (at, c) in text
        .char_indices()
        .chain(std::iter::once((text.len(), ' ')))
    {
        let next = class(c);
        if next != current {
            if current != 0 && tokens.len() < 200 {
                let piece = &text[from..at];
                let number = (current == 1 && piece.len() <= 4)
                    .then(|| piece.parse().ok())
                    .flatten();
                tokens.push(Token {
                    text: piece,
                    from,
                    to: at,
                    number,
                });
            }
            from = at;
            current = next;
        }
    }
    tokens
}

/// `2024年8月25日`, `2024년 8월 25일`.
fn in_east_asian(text: &str, token: &Token<'_>) -> Option<(Date, usize)> {
    let year = token.number.filter(|_| token.text.len() == 4)?;
    let rest = text[token.to..].trim_start();
    let rest = rest.strip_prefix(['年', '년'])?.trim_start();
    let (month, rest) = digits(rest, 1, 2)?;
    let rest = rest.trim_start().strip_prefix(['月', '월'])?.trim_start();
    let (on, rest) = digits(rest, 1, 2)?;
    let rest = rest.trim_start().strip_prefix(['日', '일'])?;
    Some((day(year, month, on)?, text.len() - rest.len()))
}

/// `25 August 2024`, `25. August 2024`, `August 25th, 2024`, `25 de agosto de 2024`, `2024 August 25`.
fn by_month_name(tokens: &[Token<'_>], index: usize) -> Option<(Date, usize)> {
    let month = month_of(tokens[index].text)?;
    let is_filler = |token: &Token<'_>| {
        matches!(
            token.text.to_lowercase().as_str(),
            "de" | "del" | "of" | "st" | "nd" | "rd" | "th" | "er" | "го" | "г" | "den" | "the"
        )
    };
    let mut before = index;
    while before > 0 && is_filler(&tokens[before - 1]) {
        before -= 1;
    }
    let mut after: Vec<&Token<'_>> = tokens[index + 1..]
        .iter()
        .filter(|token| !is_filler(token))
        .take(2)
        .collect();
    after.truncate(2);
    let number_after = |i: usize| {
        after
            .get(i)
            .and_then(|token: &&Token<'_>| token.number.map(|n| (n, token.text.len(), token.to)))
    };
    let before = before
        .checked_sub(1)
        .and_then(|i| tokens[i].number.map(|n| (n, tokens[i].text.len())));
    if let (Some((on, width)), Some((year, 4, to))) = (before, number_after(0))
        && width <= 2
    {
        return Some((day(year, month, on)?, to));
    }
    if let (Some((on, 1..=2, _)), Some((year, 4, to))) = (number_after(0), number_after(1)) {
        return Some((day(year, month, on)?, to));
    }
    if let (Some((year, 4)), Some((on, 1..=2, to))) = (before, number_after(0)) {
        return Some((day(year, month, on)?, to));
    }
    None
}

/// `25.08.2024`, `08/25/2024`, `25-08-2024`. With slashes the day is the number
/// above twelve; if both could be, a month comes first, as on most of the web.
fn numeric(text: &str, tokens: &[Token<'_>], index: usize) -> Option<(Date, usize)> {
    let [a, b, c] = tokens.get(index..index + 3)? else {
        return None;
    };
    let between = text.get(a.to..b.from)?;
    let separator = between
        .chars()
        .next()
        .filter(|c| matches!(c, '.' | '/' | '-'))?;
    if between.trim_end().len() != 1
        || !text.get(b.to..c.from)?.starts_with(separator)
        || text.get(b.to..c.from)?.trim_end().len() != 1
    {
        return None;
    }
    let (first, second, third) = (a.number?, b.number?, c.number?);
    if a.text.len() == 4 {
        return Some((day(first, second, third)?, c.to));
    }
    if b.text.len() > 2 {
        return None;
    }
    let year = match c.text.len() {
        4 => third,
        2 => 2000 + third,
        _ => return None,
    };
    let day_first = separator == '.' || first > 12 || (separator == '-' && second <= 12);
    let (month, on) = if day_first {
        (second, first)
    } else {
        (first, second)
    };
    Some((day(year, month, on)?, c.to))
}

/// The day in the path of an address: `/2024/08/25/`, `/2024-08-25-title`.
pub(crate) fn in_url(url: &str) -> Option<Date> {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let tokens = tokens(path);
    tokens
        .windows(3)
        .find_map(|window| {
            let [a, b, c] = window else { return None };
            let between = path.get(a.to..b.from)?;
            let same = path.get(b.to..c.from)? == between;
            if a.text.len() != 4 || !same || !matches!(between, "/" | "-" | "_") || c.text.len() > 2
            {
                return None;
            }
            let month = b
                .number
                .filter(|_| b.text.len() <= 2)
                .or_else(|| month_of(b.text))?;
            day(a.number?, month, c.number?)
        })
        .or_else(|| {
            tokens
                .iter()
                .find(|token| token.text.len() == 8 && token.number.is_none())
                .and_then(|token| match iso(token.text)? {
                    When::Day(day) => Some(day),
                    When::Moment(..) => None,
                })
        })
}
