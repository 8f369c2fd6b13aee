//! Addresses inside documents: cleaned, resolved against the nearest base, and
//! otherwise left as they were published. Requests nothing, canonicalises
//! nothing.

use std::borrow::Cow;

use url::Url;

/// An address without the white space that editors put around and into it.
pub(crate) fn clean(raw: &str) -> Cow<'_, str> {
    let trimmed = raw.trim_matches(|c: char| c.is_whitespace() || c.is_control());
    if trimmed.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        let kept = trimmed.chars().filter(|c| !c.is_control());
        Cow::Owned(kept.collect())
    } else {
        Cow::Borrowed(trimmed)
    }
}

/// Whether an address has a scheme of its own.
pub(crate) fn is_absolute(link: &str) -> bool {
    let Some(colon) = memchr::memchr(b':', link.as_bytes()) else {
        return false;
    };
    let scheme = &link.as_bytes()[..colon];
    scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
}

/// Whether an address can be requested.
pub(crate) fn is_http(link: &str) -> bool {
    let starts = |prefix: &str| {
        link.get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    starts("http://") || starts("https://")
}

/// Whether following an address could lead to an article.
pub(crate) fn may_be_page(link: &str) -> bool {
    !link.is_empty() && (is_http(link) || !is_absolute(link))
}

/// Resolves an address; one that is absolute, or that has nothing to be
/// resolved against, stays as it is.
pub(crate) fn resolve(base: Option<&Url>, raw: &str) -> String {
    let link = clean(raw);
    if link.is_empty() || is_absolute(&link) {
        return link.into_owned();
    }
    match base.and_then(|base| base.join(&link).ok()) {
        Some(url) => url.into(),
        None => link.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_absolute, may_be_page, resolve};
    use url::Url;

    #[test]
    fn only_relative_addresses_change() {
        let base = Url::parse("https://example.com/blog/feed.xml").unwrap();
        for (raw, resolved) in [
            (" http://example.org ", "http://example.org"),
            ("http://example.org/a\n  b", "http://example.org/a  b"),
            ("/a", "https://example.com/a"),
            ("a", "https://example.com/blog/a"),
            ("?p=1", "https://example.com/blog/feed.xml?p=1"),
            ("//cdn.example/a", "https://cdn.example/a"),
            ("tag:example.com,2026:1", "tag:example.com,2026:1"),
            ("", ""),
        ] {
            assert_eq!(resolve(Some(&base), raw), resolved, "{raw}");
        }
        assert_eq!(resolve(None, "/a"), "/a");
        assert!(!is_absolute("/a:b") && !is_absolute("1:2") && is_absolute("x-y:z"));
        assert!(may_be_page("a/b") && !may_be_page("mailto:x") && !may_be_page(""));
    }
}
