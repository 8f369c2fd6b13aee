//! The `<meta>` tags at the start of a page, found without a parser: enough for
//! the charset and for a refresh, which are needed before anything is parsed.
//! Looks at a bounded number of bytes.

use crate::content_type::from_content_type;

/// HTML wants the charset within 1,024 bytes; real pages are later than that.
const MAX_SCAN: usize = 8 * 1024;

/// One `<meta>` tag.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    /// In lower case.
    pub charset: Option<String>,
    /// In lower case.
    pub http_equiv: Option<String>,
    pub content: Option<String>,
}

impl Meta {
    /// The charset that the tag declares: its own attribute, or the parameter of
    /// the content type that it stands in for.
    pub fn declared_charset(&self) -> Option<&str> {
        let is_type = self.http_equiv.as_deref() == Some("content-type");
        let content_type = self.content.as_deref().filter(|_| is_type);
        let from_type = || from_content_type(content_type?);
        self.charset.as_deref().or_else(from_type)
    }
}

/// The `<meta>` tags up to `<body>`; comments and scripts are skipped.
pub fn tags(html: &[u8]) -> impl Iterator<Item = Meta> + '_ {
    let mut rest = &html[..html.len().min(MAX_SCAN)];
    std::iter::from_fn(move || {
        loop {
            rest = &rest[memchr::memchr(b'<', rest)?..];
            if rest.starts_with(b"<!--") {
                rest = after(rest, b"-->")?;
            } else if is_tag(rest, "script") {
                rest = after(rest, b"</script")?;
            } else if is_tag(rest, "noscript") {
                // A refresh for readers without scripts is not for us: we have
                // read the page.
                rest = after(rest, b"</noscript")?;
            } else if is_tag(rest, "body") {
                return None;
            } else if is_tag(rest, "meta") {
                let (meta, after) = meta(&rest["<meta".len()..]);
                rest = after;
                return Some(meta);
            } else {
                rest = &rest[1..];
            }
        }
    })
}

fn is_tag(rest: &[u8], name: &str) -> bool {
    let tag = rest.get(1..=name.len());
    let ends = rest.get(name.len() + 1);
    tag.is_some_and(|tag| tag.eq_ignore_ascii_case(name.as_bytes()))
        && ends.is_some_and(|byte| matches!(byte, b'>' | b'/') || byte.is_ascii_whitespace())
}

fn after<'a>(rest: &'a [u8], end: &[u8]) -> Option<&'a [u8]> {
    let at = rest
        .windows(end.len())
        .position(|window| window.eq_ignore_ascii_case(end))?;
    Some(&rest[at + end.len()..])
}

/// The attributes of a tag, and what follows it.
fn meta(mut rest: &[u8]) -> (Meta, &[u8]) {
    let mut meta = Meta::default();
    loop {
        rest = skip(rest, |byte| byte.is_ascii_whitespace() || byte == b'/');
        let name_bytes = rest
            .iter()
            .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'=' | b'>' | b'/'))
            .unwrap_or(rest.len());
        if name_bytes == 0 && !rest.starts_with(b"=") {
            return (meta, rest.get(1..).unwrap_or_default());
        }
        let name = rest[..name_bytes].to_ascii_lowercase();
        rest = skip(&rest[name_bytes..], |byte| byte.is_ascii_whitespace());
        let mut value = String::new();
        if rest.starts_with(b"=") {
            rest = skip(&rest[1..], |byte| byte.is_ascii_whitespace());
            let (text, after) = attribute_value(rest);
            value = String::from_utf8_lossy(text).into_owned();
            rest = after;
        }
        match name.as_slice() {
            b"charset" => meta.charset = Some(value.trim().to_ascii_lowercase()),
            b"http-equiv" => meta.http_equiv = Some(value.trim().to_ascii_lowercase()),
            b"content" => meta.content = Some(value),
            _ => {}
        }
    }
}

fn attribute_value(rest: &[u8]) -> (&[u8], &[u8]) {
    let (quote, start) = match rest.first() {
        Some(quote @ (b'"' | b'\'')) => (Some(*quote), 1),
        _ => (None, 0),
    };
    let body = &rest[start..];
    let end = body.iter().position(|byte| match quote {
        Some(quote) => *byte == quote,
        None => byte.is_ascii_whitespace() || *byte == b'>',
    });
    let end = end.unwrap_or(body.len());
    let after = (end + usize::from(quote.is_some())).min(body.len());
    (&body[..end], &body[after..])
}

fn skip(rest: &[u8], is_skipped: impl Fn(u8) -> bool) -> &[u8] {
    let at = rest.iter().position(|byte| !is_skipped(*byte));
    &rest[at.unwrap_or(rest.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charsets_are_found_where_pages_put_them() {
        let rows = [
            ("<meta charset=utf-8>", Some("utf-8")),
            ("<META CHARSET='Shift_JIS' />", Some("shift_jis")),
            (
                "<meta http-equiv=Content-Type content=\"text/html; charset=windows-1251\">",
                Some("windows-1251"),
            ),
            (
                "<meta content='text/html;charset=gb2312' http-equiv='content-type'>",
                Some("gb2312"),
            ),
            (
                "<meta name=x content='charset=wrong'><meta charset=big5>",
                Some("big5"),
            ),
            (
                "<!-- <meta charset=wrong> --><meta charset=koi8-r>",
                Some("koi8-r"),
            ),
            (
                "<script>'<meta charset=wrong>'</script><meta charset=utf-8>",
                Some("utf-8"),
            ),
            ("<meta charset>", Some("")),
            ("<body><meta charset=late>", None),
            ("<meta", None),
            ("<meta charset", Some("")),
            ("no tags", None),
        ];
        for (html, charset) in rows {
            let found =
                tags(html.as_bytes()).find_map(|meta| meta.declared_charset().map(str::to_owned));
            assert_eq!(found.as_deref(), charset, "{html}");
        }
    }
}
