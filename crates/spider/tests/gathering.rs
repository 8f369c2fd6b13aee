//! Whole pages: what is gathered from them, and what holds for any page.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use tidings_spider::{Found, Listing, Site, Trap, gather};
use tidings_url::FetchUrl;

fn url(text: &str) -> FetchUrl {
    FetchUrl::parse(text).unwrap()
}

struct Visit<'a> {
    at: &'a str,
    depth: u16,
    parent: Option<&'a str>,
    listings: &'a [&'a str],
}

impl Default for Visit<'_> {
    fn default() -> Self {
        Self {
            at: "https://paper.example/",
            depth: 0,
            parent: None,
            listings: &[],
        }
    }
}

fn visit(html: &str, visit: &Visit<'_>) -> Found {
    let home = url("https://paper.example/");
    let site = Site {
        listings: visit.listings.iter().map(|text| url(text)).collect(),
        ..Site::new(&home, "2026-11-15T12:00:00Z".parse().unwrap())
    };
    let (at, parent) = (url(visit.at), visit.parent.map(url));
    let page = Listing {
        html: html.as_bytes(),
        charset: Some("utf-8"),
        url: &at,
        depth: visit.depth,
        parent: parent.as_ref(),
    };
    gather(&page, &site)
}

fn traps(found: &Found) -> Vec<(Trap, usize)> {
    found
        .traps
        .iter()
        .map(|met| (met.trap, met.links))
        .collect()
}

fn listings(found: &Found) -> Vec<&str> {
    found
        .listings
        .iter()
        .map(|listing| listing.url.as_url().path())
        .collect()
}

#[test]
fn each_article_comes_once_and_known_lists_do_not_come_back() {
    let found = visit(
        "<nav><a href=/world>World</a><a href=/sport>Sport</a><a href=/>Home</a></nav>
         <a href=/2026/11/15/council-votes><img src=x></a>
         <h2><a href='/2026/11/15/council-votes?utm_source=home'>Council votes</a></h2>
         <a rel=next href=/page/2>Older</a>",
        &Visit {
            listings: &["https://paper.example/", "http://paper.example/world/"],
            ..Visit::default()
        },
    );
    assert_eq!(found.articles.len(), 1);
    assert_eq!(listings(&found), ["/sport", "/page/2"]);
    assert_eq!(
        found
            .listings
            .iter()
            .map(|l| l.is_older)
            .collect::<Vec<_>>(),
        [false, true]
    );
    assert_eq!(traps(&found), []);
}

#[test]
fn what_is_built_like_clear_articles_is_one() {
    let clear: String = (0..3)
        .map(|n| format!("<h3><a href=/n/harbour-plan-{n}>The harbour plan, part {n}</a></h3>"))
        .collect();
    // Two words and a headline: not enough alone.
    let doubtful = "<h3><a href=/n/town-hall>Hall</a></h3>";
    assert_eq!(visit(doubtful, &Visit::default()).articles.len(), 0);
    let beside = visit(&(clear + doubtful), &Visit::default());
    assert_eq!(beside.articles.len(), 4);
}

#[test]
fn sessions_are_named_and_stripped_and_not_followed_twice() {
    let found = visit(
        "<nav><a href='/world?sid=0123456789abcdef0123'>World</a><a href='/world?sid=fedcba98765432100000'>World</a></nav>
         <h2><a href='/2026/11/15/council-votes?sid=0123456789abcdef0123'>Council votes</a></h2>
         <h2><a href='/2026/11/15/council-votes?sid=00000000aaaaaaaa1111'>Council votes</a></h2>
         <h2><a href='/story.php?sid=4711'>A story with a number</a></h2>",
        &Visit::default(),
    );
    assert_eq!((found.articles.len(), found.listings.len()), (2, 1));
    assert_eq!(found.session_params, ["sid"]);
    assert_eq!(traps(&found), [(Trap::SessionId, 4)]);
}

#[test]
fn variants_of_a_list_are_facets_after_a_few() {
    let html: String = (0..30)
        .map(|n| format!("<nav><a href='/shop?group={n}'>{n}</a></nav>"))
        .collect();
    let found = visit(&html, &Visit::default());
    assert_eq!(found.listings.len(), 8);
    assert_eq!(traps(&found), [(Trap::Facets, 22)]);
}

#[test]
fn a_path_that_only_grows_is_named_where_it_ends() {
    let html = "<a href=/archive/a/b/c>c</a>";
    let deep = Visit {
        at: "https://paper.example/archive/a/b",
        depth: 2,
        parent: Some("https://paper.example/archive/a"),
        ..Visit::default()
    };
    let found = visit(html, &deep);
    assert_eq!(
        (found.listings.len(), traps(&found)),
        (0, vec![(Trap::EndlessPath, 1)])
    );
    // A section of a section that has stories is nothing but deep.
    let with_story = format!("{html}<a href=/council-votes-on-harbour>x</a>");
    assert_eq!(traps(&visit(&with_story, &deep)), []);
}

#[test]
fn the_number_of_lists_is_bounded() {
    let html: String = (0..200)
        .map(|n| format!("<nav><a href='/s{n}x'>{n}</a></nav>"))
        .collect();
    let found = visit(&html, &Visit::default());
    assert!(found.is_full);
    assert_eq!(found.listings.len(), 50);
}

/// Addresses as untrusted pages write them.
fn hrefs() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,60}",
        "(/[a-z0-9-]{1,12}){0,14}(\\?[a-z]{1,6}=[a-z0-9]{0,20}){0,3}",
        "https?://[a-z]{1,8}\\.(example|co\\.uk|localhost)/[a-z/0-9-]{0,30}",
        "//paper\\.example[./@:a-z]{0,10}/[a-z-]{0,20}",
        "\\PC{0,40}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_out_of_scope_is_ever_gathered(
        hrefs in prop::collection::vec(hrefs(), 0..40),
        base in hrefs(),
        depth in 0u16..4,
    ) {
        let links: String = hrefs.iter().map(|href| format!("<h2><a href=\"{href}\">A headline of five words</a></h2>")).collect();
        let html = format!("<base href=\"{base}\">{links}");
        let found = visit(&html, &Visit { depth, ..Visit::default() });
        let home = url("https://paper.example/");
        for article in &found.articles {
            prop_assert!(article.url.is_same_site(&home) && !article.is_external, "{}", article.url);
        }
        for listing in &found.listings {
            prop_assert!(listing.url.is_same_site(&home), "{}", listing.url);
            prop_assert!(depth < 2);
        }
    }

    #[test]
    fn no_page_panics(html in "\\PC{0,400}") {
        visit(&html, &Visit::default());
    }
}
