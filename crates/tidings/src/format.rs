//! Formats numbers, durations and sizes for output. Pure.

use std::time::Duration;

/// Digits in groups of three.
pub(crate) fn number(number: impl Into<i128>) -> String {
    let number = number.into();
    let digits = number.unsigned_abs().to_string();
    let groups: Vec<_> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(String::from_utf8_lossy)
        .collect();
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", groups.join(","))
}

pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} h", seconds / 3600),
        _ => format!("{} days", number(seconds / 86_400)),
    }
}

pub(crate) fn bytes(bytes: u64) -> String {
    let units = ["GB", "MB", "kB"].into_iter().zip([1e9, 1e6, 1e3]);
    let size = bytes as f64;
    match units.into_iter().find(|(_, unit)| size >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", size / unit),
        None => format!("{bytes} bytes"),
    }
}

/// `1 feed`, `2 feeds`.
pub(crate) fn count(number_of: u64, one: &str) -> String {
    let many = if number_of == 1 { "" } else { "s" };
    format!("{} {one}{many}", number(number_of))
}

/// Untrusted text on one line, without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_formatted_with_their_units() {
        let numbers = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (-1_234_567, "-1,234,567"),
        ];
        for (figure, text) in numbers {
            assert_eq!(number(figure), text);
        }
        for (seconds, text) in [
            (7, "7 s"),
            (150, "2 min"),
            (7200, "2 h"),
            (3 * 86_400, "3 days"),
        ] {
            assert_eq!(duration(Duration::from_secs(seconds)), text);
        }
        for (size, text) in [
            (12, "12 bytes"),
            (1500, "1.5 kB"),
            (2_340_000_000, "2.3 GB"),
        ] {
            assert_eq!(bytes(size), text);
        }
        assert_eq!(
            (count(1, "feed"), count(2, "feed")),
            ("1 feed".to_owned(), "2 feeds".to_owned())
        );
    }

    #[test]
    fn untrusted_text_does_not_control_the_terminal() {
        assert_eq!(one_line("a\nb \x1b[2Jc"), "a b \u{fffd}[2Jc");
    }
}
