//! The `<meta http-equiv=refresh>` of a page, which is a redirect when it does
//! not wait. Pure; looks at a bounded number of bytes.

use tidings_text::meta;
use tidings_url::FetchUrl;

/// A refresh that waits longer is for people to read the page.
const MAX_REFRESH_SECONDS: f64 = 10.0;

/// The target of an immediate refresh of the page.
pub(crate) fn refresh_target(html: &[u8], page: &FetchUrl) -> Option<FetchUrl> {
    let refresh = meta::tags(html).find(|meta| meta.http_equiv.as_deref() == Some("refresh"))?;
    let content = refresh.content?;
    let (wait, rest) = content.split_once([';', ','])?;
    let seconds: f64 = wait.trim().parse().ok()?;
    if !(0.0..=MAX_REFRESH_SECONDS).contains(&seconds) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
