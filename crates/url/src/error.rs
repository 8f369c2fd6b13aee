//! Why a URL is refused. Every error names the URL and the rule that it breaks;
//! a password in the URL is never repeated.

use thiserror::Error;

/// A refused URL, and the rule that refused it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("URL {url:?} is refused: {rule}")]
pub struct UrlError {
    /// The URL as it may be shown: shortened, and without userinfo.
    pub url: String,
    /// The rule that it breaks.
    pub rule: UrlRule,
}

/// The rules that an acceptable URL keeps.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlRule {
    #[error("it is empty")]
    Empty,
    #[error("it has {bytes} bytes, at most {limit} are accepted")]
    TooLong { bytes: usize, limit: usize },
    #[error("it has a control character at byte {at}")]
    ControlCharacter { at: usize },
    #[error("only http and https are accepted, not {scheme:?}")]
    Scheme { scheme: String },
    #[error("it has no host")]
    NoHost,
    #[error("its host {host:?} has an empty label or is longer than 253 characters")]
    BadHost { host: String },
    #[error("{0}")]
    Malformed(#[from] url::ParseError),
}

impl UrlRule {
    pub(crate) fn refuse(self, url: &str) -> UrlError {
        UrlError {
            url: showable(url),
            rule: self,
        }
    }
}

/// The first 120 characters, with `user:password@` hidden.
fn showable(url: &str) -> String {
    const LIMIT: usize = 120;
    let authority_start = url.find("//").map_or(0, |at| at + 2);
    let authority_end = url[authority_start..]
        .find(['/', '\\', '?', '#'])
        .map_or(url.len(), |at| authority_start + at);
    let visible = match url[authority_start..authority_end].rfind('@') {
        Some(at) => format!(
            "{}…{}",
            &url[..authority_start],
            &url[authority_start + at..]
        ),
        None => url.to_owned(),
    };
    match visible.char_indices().nth(LIMIT) {
        Some((cut, _)) => format!("{}…", &visible[..cut]),
        None => visible,
    }
}

#[cfg(test)]
mod tests {
    use super::showable;

    #[test]
    fn a_password_is_never_repeated() {
        let rows = [
            ("ftp://me:secret@host/x", "ftp://…@host/x"),
            ("ftp://host/a@b", "ftp://host/a@b"),
            ("me:secret@host", "…@host"),
            ("plain", "plain"),
        ];
        for (url, shown) in rows {
            assert_eq!(showable(url), shown);
        }
    }

    #[test]
    fn a_long_url_is_cut_at_a_character() {
        assert_eq!(showable(&"ü".repeat(500)).chars().count(), 121);
    }
}
