//! The two forms that nearly all feeds use, read by position. Anything that
//! deviates is left to the scanner.

use jiff::Timestamp;
use jiff::civil::Date;

use super::{Clock, moment, names, zones};

/// `2026-11-10T12:00:00Z`, with a space for the T, any fraction, any offset;
/// or the date alone.
pub(super) fn rfc3339(bytes: &[u8]) -> Option<Timestamp> {
    if let [_, _, _, _, b'-', _, _, b'-', _, _] = bytes {
        let year = i16::try_from(number(&bytes[..4])?).ok()?;
        let date = Date::new(year, two(&bytes[5..7])?, two(&bytes[8..])?).ok()?;
        return moment(date, Clock::default(), 0);
    }
    if bytes.len() < 20 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    if !matches!(bytes[10], b'T' | b't' | b' ') {
        return None;
    }
    let year = i16::try_from(number(&bytes[..4])?).ok()?;
    let date = Date::new(year, two(&bytes[5..7])?, two(&bytes[8..10])?).ok()?;
    let (mut clock, rest) = clock(&bytes[11..])?;
    let rest = match rest.split_first() {
        Some((b'.', digits)) => {
            let length = digits
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            clock.nanosecond = nanoseconds(&digits[..length])?;
            &digits[length..]
        }
        _ => rest,
    };
    let offset = match rest {
        b"Z" | b"z" => 0,
        rest => numeric_offset(rest)?,
    };
    moment(date, clock, offset)
}

/// `Tue, 10 Nov 2026 12:00:00 GMT`, the weekday optional.
pub(super) fn rfc822(bytes: &[u8]) -> Option<Timestamp> {
    let bytes = match bytes {
        [_, _, _, b',', b' ', rest @ ..] => rest,
        _ => bytes,
    };
    let day_digits = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if !(1..=2).contains(&day_digits) {
        return None;
    }
    let day = i8::try_from(number(&bytes[..day_digits])?).ok()?;
    let rest = bytes.get(day_digits..)?;
    if rest.len() < 18 || rest[0] != b' ' || rest[4] != b' ' || rest[9] != b' ' {
        return None;
    }
    let month = names::english_month(&rest[1..4])?;
    let year = i16::try_from(number(&rest[5..9])?).ok()?;
    let date = Date::new(year, month, day).ok()?;
    let (clock, rest) = clock(&rest[10..])?;
    let zone = rest.strip_prefix(b" ")?;
    let offset = match zone {
        b"GMT" | b"UTC" | b"UT" | b"Z" => 0,
        [b'+' | b'-', ..] => numeric_offset(zone)?,
        word => zones::fixed(std::str::from_utf8(word).ok()?)?,
    };
    moment(date, clock, offset)
}

/// `hh:mm:ss` and what follows it.
fn clock(bytes: &[u8]) -> Option<(Clock, &[u8])> {
    let [_, _, b':', _, _, b':', _, _, rest @ ..] = bytes else {
        return None;
    };
    let clock = Clock {
        hour: two(&bytes[..2])?,
        minute: two(&bytes[3..5])?,
        second: two(&bytes[6..8])?,
        nanosecond: 0,
    };
    Some((clock, rest))
}

/// `+hh:mm` or `+hhmm`, in seconds.
fn numeric_offset(bytes: &[u8]) -> Option<i32> {
    let (sign, hours, minutes) = match bytes {
        [sign, a, b, b':', c, d] | [sign, a, b, c, d] => (sign, [*a, *b], [*c, *d]),
        _ => return None,
    };
    let (hours, minutes) = (number(&hours)?, number(&minutes)?);
    if hours > 14 || minutes > 59 {
        return None;
    }
    let seconds = i32::try_from(hours * 3600 + minutes * 60).ok()?;
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

/// The digits behind the decimal point of a second.
pub(super) fn nanoseconds(digits: &[u8]) -> Option<i32> {
    let mut value = 0;
    for place in 0..9 {
        let digit = digits.get(place).copied().unwrap_or(b'0');
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i32::from(digit - b'0');
    }
    Some(value)
}

fn two(bytes: &[u8]) -> Option<i8> {
    i8::try_from(number(bytes)?).ok()
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.iter().try_fold(0, |value: u32, byte| {
        byte.is_ascii_digit()
            .then(|| value * 10 + u32::from(byte - b'0'))
    })
}
