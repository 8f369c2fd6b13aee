//! The target of a redirect. Pure.

use http::HeaderMap;
use http::header::LOCATION;
use tidings_url::FetchUrl;

use crate::failure::Failure;
use crate::limits::Limits;

/// The target of a redirect; `None` when the response is none.
pub(crate) fn target(
    from: &FetchUrl,
    status: u16,
    headers: &HeaderMap,
    limits: &Limits,
) -> Result<Option<FetchUrl>, Failure> {
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let bad = |why: String| Failure::BadRedirect { why };
    let Some(location) = headers.get(LOCATION) else {
        return Err(bad(format!("{status} without a Location")));
    };
    let bytes = location.as_bytes();
    if bytes.len() > limits.location_bytes {
        return Err(bad(format!(
            "a Location of {} bytes, and {} are allowed",
            bytes.len(),
            limits.location_bytes
        )));
    }
    // Servers send raw UTF-8 here; what is not even that can't be an address.
    let text =
        std::str::from_utf8(bytes).map_err(|_| bad("a Location that is not text".to_owned()))?;
    from.join(text)
        .map(Some)
        .map_err(|error| bad(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_resolved_or_refused() {
        let from = FetchUrl::parse("https://a.example/x/y?z=1").unwrap();
        let long = format!("/{}", "a".repeat(9000));
        type Target<'a> = Result<Option<&'a str>, &'a str>;
        let rows: &[(u16, Option<&str>, Target<'_>)] = &[
            (200, Some("/elsewhere"), Ok(None)),
            (304, None, Ok(None)),
            (301, Some("/new"), Ok(Some("https://a.example/new"))),
            (
                302,
                Some("new?q=1#part"),
                Ok(Some("https://a.example/x/new?q=1")),
            ),
            (303, Some("//b.example/"), Ok(Some("https://b.example/"))),
            (
                307,
                Some("\\\\b.example\\x"),
                Ok(Some("https://b.example/x")),
            ),
            (308, Some("http://b.example"), Ok(Some("http://b.example/"))),
            (
                302,
                Some("http://me:pw@b.example/"),
                Ok(Some("http://b.example/")),
            ),
            (
                302,
                Some("?page=2"),
                Ok(Some("https://a.example/x/y?page=2")),
            ),
            (
                302,
                Some("/größe"),
                Ok(Some("https://a.example/gr%C3%B6%C3%9Fe")),
            ),
            (301, None, Err("without a Location")),
            (301, Some("file:///etc/passwd"), Err("file")),
            (301, Some("gopher://a.example/"), Err("gopher")),
            (301, Some("data:text/html,x"), Err("data")),
            (301, Some("javascript:alert(1)"), Err("javascript")),
            (301, Some("http://"), Err("")),
            (301, Some(&long), Err("9001 bytes")),
        ];
        for (status, location, expected) in rows {
            let mut headers = HeaderMap::new();
            if let Some(location) = location {
                let value = http::HeaderValue::from_bytes(location.as_bytes()).unwrap();
                headers.insert(LOCATION, value);
            }
            let found = target(&from, *status, &headers, &Limits::default());
            match (found, expected) {
                (Ok(found), Ok(target)) => {
                    assert_eq!(
                        found.as_ref().map(FetchUrl::as_str),
                        *target,
                        "{location:?}"
                    );
                }
                (Err(failure), Err(part)) => {
                    assert_eq!(failure.code(), "bad_redirect");
                    assert!(failure.to_string().contains(part), "{failure}");
                }
                (found, _) => panic!("{location:?}: {found:?}"),
            }
        }
    }
}
