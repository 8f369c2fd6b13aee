//! The laws of URL identity, over generated URLs: what never changes the key,
//! and what always does.

use proptest::prelude::*;
use proptest::sample::select;
use tidings_url::{FetchUrl, Rules, UrlKey};

/// A URL in parts, so that one part can be changed and the rest kept.
#[derive(Debug, Clone)]
struct Parts {
    host: String,
    port: Option<u16>,
    path: String,
    query: Vec<(String, String)>,
}

impl Parts {
    fn url(&self) -> String {
        self.spelled("https", &self.host, "")
    }

    fn spelled(&self, scheme: &str, host: &str, tail: &str) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        let pair = |(name, value): &(String, String)| format!("{name}={value}");
        let query: Vec<_> = self.query.iter().map(pair).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        format!(
            "{scheme}://{host}{port}{}{mark}{}{tail}",
            self.path,
            query.join("&")
        )
    }
}

fn key(url: &str) -> UrlKey {
    let url = FetchUrl::parse(url).unwrap_or_else(|error| panic!("{error}"));
    url.canonical(&Rules::default()).key()
}

fn parts() -> impl Strategy<Value = Parts> {
    let host = "[a-z][a-z0-9]{0,8}(\\.[a-z][a-z0-9-]{0,6}[a-z0-9]){1,2}";
    let port = proptest::option::weighted(0.2, 1024..u16::MAX);
    // Ends in a letter: a trailing slash or dot is a rule of its own.
    let path = "(/[A-Za-z0-9._~%!$'()*+,;:@ü|-]{0,8}){0,3}/[a-z]{1,6}";
    let name = select(vec![
        "id", "p", "page", "q", "story", "ID", "a.b", "x%20y", "ü",
    ]);
    let value = "[A-Za-z0-9._~+%/?:@ü-]{0,6}";
    let query = prop::collection::btree_map(name.prop_map(str::to_owned), value, 0..4);
    (host, port, path, query).prop_map(|(host, port, path, query)| Parts {
        host,
        port,
        path,
        query: query.into_iter().collect(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn identity_keeps_its_laws(parts in parts(), tracking in select(vec!["utm_source", "UTM_x", "fbclid", "Ref", "_ga"]), other in "[a-z]{1,6}") {
        let Ok(parsed) = FetchUrl::parse(&parts.url()) else {
            // A host whose last label is a number reads as an address (WHATWG).
            return Ok(());
        };
        let canonical = parsed.canonical(&Rules::default());
        let same = canonical.key();

        // Doing it twice changes nothing, and the result is itself acceptable.
        let again = FetchUrl::parse(canonical.as_str()).unwrap();
        prop_assert_eq!(again.canonical(&Rules::default()), canonical);

        // Spelling does not change the key.
        prop_assert_eq!(key(&parts.spelled("http", &parts.host, "")), same);
        prop_assert_eq!(key(&parts.spelled("HTTPS", &parts.host.to_uppercase(), "")), same);
        prop_assert_eq!(key(&parts.spelled("https", &format!("{}.", parts.host), "")), same);
        prop_assert_eq!(key(&parts.spelled("https", &parts.host, "#part")), same);
        let joint = if parts.query.is_empty() { '?' } else { '&' };
        let tracked = format!("{joint}{tracking}=abc");
        prop_assert_eq!(key(&parts.spelled("https", &parts.host, &tracked)), same);
        let mut turned = parts.clone();
        turned.query.reverse();
        prop_assert_eq!(key(&turned.url()), same);
        let mut slashed = parts.clone();
        slashed.path.push('/');
        prop_assert_eq!(key(&slashed.url()), same);

        // Another page has another key.
        let mut deeper = parts.clone();
        deeper.path = format!("{}/{other}", parts.path);
        prop_assert_ne!(key(&deeper.url()), same);
        let mut ported = parts.clone();
        ported.port = Some(if parts.port == Some(8080) { 8081 } else { 8080 });
        prop_assert_ne!(key(&ported.url()), same);
        let mut with_param = parts.clone();
        with_param.query.push((format!("new-{other}"), other.clone()));
        prop_assert_ne!(key(&with_param.url()), same);
        if let Some(last) = parts.query.len().checked_sub(1) {
            let mut with_value = parts.clone();
            with_value.query[last].1.push_str(&other);
            prop_assert_ne!(key(&with_value.url()), same);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_an_url_or_an_error(text in "\\PC{0,40}", tail in "[ -~]{0,60}") {
        for input in [text.clone(), format!("https://{text}"), format!("https://e.example/{tail}")] {
            if let Ok(url) = FetchUrl::parse(&input) {
                let once = url.canonical(&Rules::default());
                let twice = FetchUrl::parse(once.as_str()).unwrap().canonical(&Rules::default());
                prop_assert_eq!(once, twice);
            }
        }
    }
}
