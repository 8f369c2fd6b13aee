//! The rules of URL identity as tables: one named row for each behaviour.

use tidings_url::{FetchUrl, ProxyHosts, Rules, UrlKey};

fn canonical(url: &str) -> String {
    let url = FetchUrl::parse(url).unwrap_or_else(|error| panic!("{error}"));
    url.canonical(&Rules::default()).into()
}

#[test]
fn the_reference_table_holds_to_the_letter() {
    let rows = [
        ("HTTP://Example.com/Path", "https://example.com/Path"),
        ("https://EXAMPLE.COM/path", "https://example.com/path"),
        ("https://example.com:443/path", "https://example.com/path"),
        ("http://example.com:80/path", "https://example.com/path"),
        (
            "https://example.com:8080/path",
            "https://example.com:8080/path",
        ),
        ("https://example.com/path/", "https://example.com/path"),
        ("https://example.com/", "https://example.com/"),
        (
            "https://example.com/path#section",
            "https://example.com/path",
        ),
        (
            "https://example.com/path?z=1&a=2",
            "https://example.com/path?a=2&z=1",
        ),
        (
            "https://example.com/path?utm_source=twitter&id=1",
            "https://example.com/path?id=1",
        ),
        (
            "https://example.com/path?fbclid=abc123&id=1",
            "https://example.com/path?id=1",
        ),
        ("https://example.com/a/b/../c", "https://example.com/a/c"),
        ("http://example.com/path", "https://example.com/path"),
        (
            "https://example.com/path?utm_source=x",
            "https://example.com/path",
        ),
    ];
    for (url, expected) in rows {
        assert_eq!(canonical(url), expected, "{url}");
    }
}

#[test]
fn each_rule_of_the_canonical_form() {
    let rows = [
        (
            "idna host",
            "https://Bücher.example/x",
            "https://xn--bcher-kva.example/x",
        ),
        (
            "trailing dot of the host",
            "https://example.com./x",
            "https://example.com/x",
        ),
        (
            "port 80 on https",
            "https://example.com:80/x",
            "https://example.com/x",
        ),
        (
            "port 443 on http",
            "http://example.com:443/x",
            "https://example.com/x",
        ),
        ("no path", "https://example.com", "https://example.com/"),
        (
            "no path but a query",
            "https://example.com?a=1",
            "https://example.com/?a=1",
        ),
        (
            "several trailing slashes",
            "https://example.com/a//",
            "https://example.com/a",
        ),
        (
            "only slashes",
            "https://example.com///",
            "https://example.com/",
        ),
        (
            "slashes inside are kept",
            "https://example.com/a//b",
            "https://example.com/a//b",
        ),
        (
            "slash before a query",
            "https://example.com/a/?b=1",
            "https://example.com/a?b=1",
        ),
        (
            "escaped dot segments",
            "https://example.com/a/%2e%2E/b",
            "https://example.com/b",
        ),
        (
            "escapes",
            "https://example.com/%7euser/%c3%bc",
            "https://example.com/~user/%C3%BC",
        ),
        (
            "raw non-ascii",
            "https://example.com/ü",
            "https://example.com/%C3%BC",
        ),
        (
            "empty query",
            "https://example.com/a?",
            "https://example.com/a",
        ),
        (
            "empty pairs",
            "https://example.com/a?&&b=1&",
            "https://example.com/a?b=1",
        ),
        (
            "equal names keep order",
            "https://example.com/?b=2&a=9&b=1",
            "https://example.com/?a=9&b=2&b=1",
        ),
        (
            "a name without a value",
            "https://example.com/?b&a",
            "https://example.com/?a&b",
        ),
        (
            "sorted by the decoded name",
            "https://example.com/?b=1&%61=2",
            "https://example.com/?a=2&b=1",
        ),
        (
            "an escaped tracking name",
            "https://example.com/?utm%5Fid=1",
            "https://example.com/",
        ),
        (
            "ref",
            "https://example.com/?REF=home&a=1",
            "https://example.com/?a=1",
        ),
        (
            "userinfo",
            "https://me:pw@example.com/a",
            "https://example.com/a",
        ),
        (
            "backslashes",
            "https://example.com\\a\\b",
            "https://example.com/a/b",
        ),
        (
            "whitespace around",
            " \n https://example.com/a\t ",
            "https://example.com/a",
        ),
        ("an address", "http://0x7f.1/a", "https://127.0.0.1/a"),
        (
            "an IPv6 address",
            "http://[::0:1]:8080/a",
            "https://[::1]:8080/a",
        ),
    ];
    for (name, url, expected) in rows {
        assert_eq!(canonical(url), expected, "{name}");
    }
}

#[test]
fn a_source_has_its_own_rules() {
    let strip = |names: &[&str]| Rules {
        strip_params: names.iter().map(|n| (*n).to_owned()).collect(),
        ..Rules::default()
    };
    let keep = |names: &[&str]| Rules {
        keep_params: names.iter().map(|n| (*n).to_owned()).collect(),
        ..Rules::default()
    };
    let slash = Rules {
        keep_trailing_slash: true,
        ..Rules::default()
    };
    let both = Rules {
        strip_params: vec!["s*".to_owned()],
        keep_params: vec!["story".to_owned()],
        ..Rules::default()
    };
    let rows = [
        ("strip a name", strip(&["sid"]), "?SID=1&a=2", "?a=2"),
        (
            "strip a prefix",
            strip(&["at_*"]),
            "?at_x=1&at_y=2&a=2",
            "?a=2",
        ),
        ("keep ref", keep(&["ref"]), "?ref=7&utm_id=1", "?ref=7"),
        ("keep wins over strip", both, "?sid=1&story=2", "?story=2"),
        ("keep the slash", slash, "/a/", "/a/"),
    ];
    for (name, rules, tail, expected) in rows {
        let url = FetchUrl::parse("https://example.com/")
            .unwrap()
            .join(tail)
            .unwrap();
        let canonical = url.canonical(&rules);
        let base = if tail.starts_with('/') {
            "https://example.com"
        } else {
            "https://example.com/"
        };
        assert_eq!(canonical.as_str(), format!("{base}{expected}"), "{name}");
    }
}

#[test]
fn the_fetch_url_is_not_rewritten() {
    let rows = [
        (
            "http stays http",
            "http://example.com/a/?utm_source=x",
            "http://example.com/a/?utm_source=x",
        ),
        (
            "order of the query stays",
            "https://example.com/?b=1&a=2",
            "https://example.com/?b=1&a=2",
        ),
        (
            "fragment goes",
            "https://example.com/a#b",
            "https://example.com/a",
        ),
        (
            "userinfo goes",
            "https://u:p@example.com/a",
            "https://example.com/a",
        ),
        (
            "an at sign in the path stays",
            "https://example.com/@me",
            "https://example.com/@me",
        ),
        (
            "escapes stay",
            "https://example.com/%7e%c3",
            "https://example.com/%7e%c3",
        ),
    ];
    for (name, url, expected) in rows {
        assert_eq!(FetchUrl::parse(url).unwrap().as_str(), expected, "{name}");
    }
}

#[test]
fn links_are_resolved_against_their_page() {
    let page = FetchUrl::parse("https://example.com/news/today?x=1").unwrap();
    let rows = [
        ("story", "https://example.com/news/story"),
        ("/story", "https://example.com/story"),
        ("//cdn.example/story", "https://cdn.example/story"),
        ("?page=2", "https://example.com/news/today?page=2"),
        ("#top", "https://example.com/news/today?x=1"),
        ("", "https://example.com/news/today?x=1"),
        ("http://other.example/", "http://other.example/"),
    ];
    for (link, expected) in rows {
        assert_eq!(page.join(link).unwrap().as_str(), expected, "{link:?}");
    }
    assert!(page.join("javascript:void(0)").is_err());
    assert!(page.join("mailto:a@example.com").is_err());
}

#[test]
fn what_is_refused_says_which_url_and_which_rule() {
    let long = format!("https://example.com/{}", "a".repeat(4096));
    let grows = format!("https://example.com/{}", "ü".repeat(1000));
    let long_host = format!("https://{}.example/", "a.".repeat(130));
    let rows = [
        ("", "it is empty"),
        ("   ", "it is empty"),
        (
            "ftp://example.com/a",
            "only http and https are accepted, not \"ftp\"",
        ),
        (
            "javascript:alert(1)",
            "only http and https are accepted, not \"javascript\"",
        ),
        (
            "file:///etc/passwd",
            "only http and https are accepted, not \"file\"",
        ),
        (
            "data:text/html,x",
            "only http and https are accepted, not \"data\"",
        ),
        (
            "https://example.com/a\u{0}b",
            "it has a control character at byte 21",
        ),
        (
            "https://exa\nmple.com/",
            "it has a control character at byte 11",
        ),
        (
            "https://example.com/a\u{85}",
            "it has a control character at byte 21",
        ),
        ("https://./", "it has no host"),
        ("https://", "empty host"),
        ("https://a..example/", "has an empty label"),
        ("https://.example/", "has an empty label"),
        ("https://example.com../", "has an empty label"),
        ("/relative", "relative URL without a base"),
        ("example.com/a", "relative URL without a base"),
        ("https://exa mple.com/", "invalid international domain name"),
        ("https://example.com:99999/", "invalid port number"),
        ("https://[::1/", "invalid IPv6 address"),
        (&long, "it has 4116 bytes, at most 4096 are accepted"),
        (&grows, "it has 6020 bytes, at most 4096 are accepted"),
        (&long_host, "longer than 253 characters"),
    ];
    for (url, rule) in rows {
        let error = FetchUrl::parse(url).expect_err(url).to_string();
        assert!(error.contains(rule), "{error} should contain {rule:?}");
        let start: String = url
            .trim()
            .chars()
            .take(12)
            .filter(|c| !c.is_control())
            .collect();
        assert!(
            error.contains(start.trim_end_matches(|c: char| !c.is_ascii())),
            "{error} should name {url:?}"
        );
    }
}

#[test]
fn the_key_is_64_lower_case_hex_characters() {
    let url = FetchUrl::parse("https://example.com/path").unwrap();
    let key = url.canonical(&Rules::default()).key();
    // printf %s https://example.com/path | sha256sum
    let hex = "5faa4bf4918ff56562141cc328545ec8f7b6dd27470cbdf4a7487593b3e83738";
    assert_eq!(key.to_string(), hex);
    assert_eq!(hex.parse::<UrlKey>().unwrap(), key);
    let upper = hex.to_uppercase();
    for wrong in [
        "",
        "abc",
        &hex[1..],
        upper.as_str(),
        &format!("{}g", &hex[1..]),
    ] {
        assert!(wrong.parse::<UrlKey>().is_err(), "{wrong}");
    }
}

#[test]
fn the_host_key_is_the_unit_of_politeness() {
    let proxies: ProxyHosts = ["rsshub.example", "Gate.example:1200"]
        .into_iter()
        .collect();
    let rows = [
        ("https://example.com/a", "example.com"),
        ("http://EXAMPLE.com./a", "example.com"),
        ("https://example.com:80/a", "example.com"),
        ("https://example.com:8080/path", "example.com:8080"),
        ("https://[::1]:8080/", "[::1]:8080"),
        ("https://rsshub.example/bbc/world", "rsshub.example/bbc"),
        ("https://rsshub.example/%62bc?x=1", "rsshub.example/bbc"),
        ("https://rsshub.example/", "rsshub.example"),
        ("https://rsshub.example:8080/bbc", "rsshub.example:8080"),
        ("https://gate.example:1200/nyt/x", "gate.example:1200/nyt"),
        ("https://gate.example/nyt/x", "gate.example"),
    ];
    for (url, expected) in rows {
        let key = FetchUrl::parse(url).unwrap().host_key(&proxies);
        assert_eq!(key.as_str(), expected, "{url}");
    }
    let url = FetchUrl::parse("https://example.com:8080/path").unwrap();
    assert_eq!(url.host(), "example.com");
}

#[test]
fn gateways_are_listed_in_one_spelling() {
    let proxies: ProxyHosts = [
        " RSSHub.example ",
        "rsshub.example:443",
        "rsshub.example:80",
        "bücher.example:1200",
        "[::1]:1200",
        "https://a.example/",
        "a.example/path",
        "me@a.example",
        "",
        "a b",
    ]
    .into_iter()
    .collect();
    let listed = "[::1]:1200, rsshub.example, xn--bcher-kva.example:1200";
    assert_eq!(proxies.to_string(), listed);
    assert_eq!(proxies, listed.split(", ").collect());
    assert_eq!(ProxyHosts::default().to_string(), "");
}

#[test]
fn the_registrable_domain_follows_the_public_suffix_list() {
    let rows = [
        ("https://www.example.com/", "example.com"),
        ("https://a.b.example.co.uk/", "example.co.uk"),
        ("https://example.co.uk./", "example.co.uk"),
        ("https://me.github.io/", "me.github.io"),
        ("https://github.io/", "github.io"),
        ("https://paper.localhost/", "paper.localhost"),
        ("https://localhost/", "localhost"),
        ("https://192.168.1.2/", "192.168.1.2"),
        ("https://[2001:db8::1]/", "[2001:db8::1]"),
    ];
    for (url, expected) in rows {
        assert_eq!(
            FetchUrl::parse(url).unwrap().registrable_domain(),
            expected,
            "{url}"
        );
    }
}

#[test]
fn a_canonical_link_is_judged_by_the_registrable_domain() {
    let rows = [
        ("https://www.example.com/a", "https://m.example.com/b", true),
        ("https://example.co.uk/a", "https://other.co.uk/a", false),
        ("https://me.github.io/a", "https://you.github.io/a", false),
        ("https://10.0.0.1/a", "https://10.0.0.2/a", false),
    ];
    for (a, b, same) in rows {
        let (a, b) = (FetchUrl::parse(a).unwrap(), FetchUrl::parse(b).unwrap());
        assert_eq!(a.is_same_site(&b), same, "{a} and {b}");
    }
}

/// Reads `name <tab> url <tab> url`, skipping comments.
fn pairs(table: &'static str) -> Vec<[&'static str; 3]> {
    let is_row = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let row = |line: &'static str| {
        let columns: Vec<_> = line.split('\t').collect();
        columns
            .try_into()
            .unwrap_or_else(|_| panic!("three columns expected: {line}"))
    };
    table.lines().filter(is_row).map(row).collect()
}

#[test]
fn look_alikes_never_merge() {
    let rows = pairs(include_str!("data/lookalikes.tsv"));
    assert!(rows.len() >= 200, "{} rows", rows.len());
    for [name, a, b] in rows {
        assert_ne!(canonical(a), canonical(b), "{name}");
    }
}

#[test]
fn spellings_of_one_address_merge() {
    let rows = pairs(include_str!("data/equivalents.tsv"));
    assert!(rows.len() >= 80, "{} rows", rows.len());
    for [name, a, b] in rows {
        assert_eq!(canonical(a), canonical(b), "{name}");
    }
}

#[test]
fn a_fetch_url_travels_through_serde_as_text() {
    let url: FetchUrl = FetchUrl::parse("https://example.com/a").unwrap();
    assert_eq!(String::from(url.clone()), "https://example.com/a");
    assert_eq!(
        FetchUrl::try_from("https://example.com/a".to_owned()).unwrap(),
        url
    );
}
