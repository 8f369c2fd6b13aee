//! The `<meta>` tags at the start of a page, found without a parser: enough for
//! the charset and for a refresh, which are needed before anything is parsed.
//! Pure; looks at a bounded number of bytes.

use tidings_url::FetchUrl;

/// HTML asks for the charset within 1,024 bytes; real pages are later than that.
const LOOKED_AT: usize = 8 * 1024;

/// A refresh that waits longer is for people to read the page.
const LONGEST_WAIT: f64 = 10.0;

/// One `<meta>` tag, attributes in lower case.
#[derive(Debug, Default, PartialEq)]
struct Meta {
    charset: Option<String>,
    http_equiv: Option<String>,
    content: Option<String>,
}

/// The charset that a page declares for itself.
pub(crate) fn declared_charset(html: &[u8]) -> Option<String> {
    metas(html).find_map(|meta| {
        let is_type = meta.http_equiv.as_deref() == Some("content-type");
        let from_type = || charset_of(meta.content.as_deref().filter(|_| is_type)?);
        meta.charset.clone().or_else(from_type)
    })
}

/// The `charset` parameter of a content type.
pub(crate) fn charset_of(content_type: &str) -> Option<String> {
    let lower = content_type.to_ascii_lowercase();
    let (_, after) = lower.split_once("charset")?;
    let value = after.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.starts_with(['"', '\'']);
    let value = value.trim_start_matches(['"', '\'']);
    let ends = |c: char| matches!(c, '"' | '\'' | ';') || (c.is_whitespace() && !quote);
    let label = value.split(ends).next().unwrap_or_default().trim();
    (!label.is_empty()).then(|| label.to_owned())
}

/// Where a page sends its reader at once.
pub(crate) fn refresh_target(html: &[u8], page: &FetchUrl) -> Option<FetchUrl> {
    let refresh = metas(html).find(|meta| meta.http_equiv.as_deref() == Some("refresh"))?;
    let content = refresh.content?;
    let (wait, rest) = content.split_once([';', ','])?;
    let seconds: f64 = wait.trim().parse().ok()?;
    if !(0.0..=LONGEST_WAIT).contains(&seconds) {
        return None;
    }
    let rest = rest.trim();
    let is_named = rest
        .get(..3)
        .is_some_and(|key| key.eq_ignore_ascii_case("url"));
    let named = if is_named {
        rest[3..].trim_start().strip_prefix('=')
    } else {
        None
    };
    let target = named.unwrap_or(rest).trim().trim_matches(['"', '\'']);
    let target = target.replace("&amp;", "&");
    (!target.is_empty()).then(|| page.join(&target).ok())?
}

/// The `<meta>` tags up to `<body>`, comments and scripts passed over.
fn metas(html: &[u8]) -> impl Iterator<Item = Meta> + '_ {
    let mut rest = &html[..html.len().min(LOOKED_AT)];
    std::iter::from_fn(move || {
        loop {
            rest = &rest[rest.iter().position(|byte| *byte == b'<')?..];
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

fn skip(rest: &[u8], passed: impl Fn(u8) -> bool) -> &[u8] {
    let at = rest.iter().position(|byte| !passed(*byte));
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
            assert_eq!(
                declared_charset(html.as_bytes()).as_deref(),
                charset,
                "{html}"
            );
        }
    }

    #[test]
    fn content_types_name_charsets() {
        let rows = [
            ("text/html; charset=utf-8", Some("utf-8")),
            ("text/html;charset=\"ISO-8859-1\"", Some("iso-8859-1")),
            ("text/html; Charset = 'x' ; boundary=1", Some("x")),
            ("text/html; charset=", None),
            ("text/html", None),
        ];
        for (header, charset) in rows {
            assert_eq!(charset_of(header).as_deref(), charset, "{header}");
        }
    }

    #[test]
    fn refreshes_are_redirects_when_they_do_not_wait() {
        let page = FetchUrl::parse("https://a.example/x/y").unwrap();
        let rows = [
            (
                "<meta http-equiv=refresh content='0; url=/new'>",
                Some("https://a.example/new"),
            ),
            (
                "<META HTTP-EQUIV=\"Refresh\" CONTENT=\"0;URL='https://b.example/?a=1&amp;b=2'\">",
                Some("https://b.example/?a=1&b=2"),
            ),
            (
                "<meta http-equiv=refresh content='3,z'>",
                Some("https://a.example/x/z"),
            ),
            ("<meta http-equiv=refresh content='600; url=/new'>", None),
            ("<meta http-equiv=refresh content='300'>", None),
            (
                "<meta http-equiv=refresh content='0; url=javascript:alert(1)'>",
                None,
            ),
            (
                "<noscript><meta http-equiv=refresh content='0; url=/nojs'></noscript>",
                None,
            ),
            ("<meta http-equiv=refresh content='NaN; url=/new'>", None),
        ];
        for (html, target) in rows {
            let found = refresh_target(html.as_bytes(), &page);
            assert_eq!(found.as_ref().map(FetchUrl::as_str), target, "{html}");
        }
    }
}
