//! The charset parameter of a `Content-Type`, in a header or a `<meta>` tag.

/// The `charset` parameter of a content type, as it is written.
pub fn from_content_type(content_type: &str) -> Option<&str> {
    const NAME: &str = "charset";
    let at = content_type
        .as_bytes()
        .windows(NAME.len())
        .position(|window| window.eq_ignore_ascii_case(NAME.as_bytes()))?;
    let value = content_type[at + NAME.len()..].trim_start();
    let value = value.strip_prefix('=')?.trim_start();
    let is_quoted = value.starts_with(['"', '\'']);
    let value = value.trim_start_matches(['"', '\'']);
    let ends = |c: char| matches!(c, '"' | '\'' | ';') || (c.is_whitespace() && !is_quoted);
    let label = value.split(ends).next().unwrap_or_default().trim();
    (!label.is_empty()).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_name_charsets() {
        let rows = [
            ("text/html; charset=utf-8", Some("utf-8")),
            ("text/html;charset=\"ISO-8859-1\"", Some("ISO-8859-1")),
            ("text/html; Charset = 'x' ; boundary=1", Some("x")),
            ("text/html; CHARSET=UTF-8 trailing", Some("UTF-8")),
            ("text/html; charset=", None),
            ("text/html", None),
            ("tëxt/html; charset=big5", Some("big5")),
        ];
        for (header, charset) in rows {
            assert_eq!(from_content_type(header), charset, "{header}");
        }
    }
}
