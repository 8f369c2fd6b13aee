//! Numbers, times and sizes as people read them. Pure.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_as_people_read_them() {
        let numbers = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (-1_234_567, "-1,234,567"),
        ];
        for (figure, text) in numbers {
            assert_eq!(number(figure), text);
        }
    }
}
