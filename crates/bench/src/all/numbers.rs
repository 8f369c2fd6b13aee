//! How numbers and ratios are written in the report. Pure.

/// Three digits that count, thousands apart: 0.012, 1.25, 37.4, 1,279.
pub(super) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 || size == 0.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = match text.split_once('.') {
        Some((whole, rest)) => (whole, format!(".{rest}")),
        None => (text.as_str(), String::new()),
    };
    format!("{}{rest}", thousands(whole))
}

pub(super) fn whole(value: u64) -> String {
    thousands(&value.to_string())
}

/// A ratio: 6.2×; against nothing there is none.
pub(super) fn times(ratio: f64) -> String {
    match ratio.is_finite() {
        true => format!("{}×", number(ratio)),
        false => "–".to_owned(),
    }
}

fn thousands(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        let left = digits.len() - place;
        let stands_after_a_digit = text.ends_with(|last: char| last.is_ascii_digit());
        if stands_after_a_digit && left.is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_count() {
        for (value, text) in [
            (0.0, "0.00"),
            (0.0123, "0.012"),
            (0.5, "0.50"),
            (9.876, "9.88"),
            (37.44, "37.4"),
            (999.4, "999"),
            (1_279.3, "1,279"),
            (-1_279.3, "-1,279"),
            (1_000_000.0, "1,000,000"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(whole(100_000), "100,000");
        assert_eq!(times(6.25), "6.25×");
    }
}
