//! Links as they stand on real front pages, and what each is.

#![allow(clippy::unwrap_used)]

use tidings_spider::{ArticlePatterns, Judge, Link, Reason, Site, Trap, Verdict};
use tidings_url::FetchUrl;

const ARTICLE: Verdict = Verdict::Article;
const LISTING: Verdict = Verdict::Listing;
const OLDER: Verdict = Verdict::Older;
const EXCLUDED: Verdict = Verdict::No(Reason::Excluded);
const MEDIA: Verdict = Verdict::No(Reason::Media);
const OUTSIDE: Verdict = Verdict::No(Reason::OutOfScope);
const UNCLEAR: Verdict = Verdict::No(Reason::Unclear);
const CALENDAR: Verdict = Verdict::No(Reason::Trap(Trap::Calendar));
const REPEATING: Verdict = Verdict::No(Reason::Trap(Trap::RepeatingPath));
const SESSION: Verdict = Verdict::No(Reason::Trap(Trap::SessionId));
const FACETS: Verdict = Verdict::No(Reason::Trap(Trap::Facets));
const ENDLESS: Verdict = Verdict::No(Reason::Trap(Trap::EndlessPath));

/// Where a link stands.
#[derive(Debug, Clone, Copy)]
enum Place {
    Menu,
    Headline,
    Text,
}
use Place::{Headline, Menu, Text};

fn link(address: &str, place: Place, text: &str) -> Link {
    let home = FetchUrl::parse("https://www.paper.example/").unwrap();
    Link {
        text: text.to_owned(),
        is_navigation: matches!(place, Menu),
        is_headline: matches!(place, Headline),
        ..Link::bare(home.join(address).unwrap())
    }
}

fn site(home: &FetchUrl) -> Site<'_> {
    Site::new(home, "2026-11-15T12:00:00Z".parse().unwrap())
}

#[test]
fn links_are_classified_by_address_and_place() {
    let home = FetchUrl::parse("https://www.paper.example/").unwrap();
    let site = site(&home);
    let judge = Judge::new(&site);
    let rows = [
        // Articles by date
        ("/2026/11/15/council-votes", Text, "", ARTICLE),
        ("/2026/11/15/harbour", Text, "", ARTICLE),
        ("/news/2026/11/harbour-plan", Text, "", ARTICLE),
        ("/world/2026/nov/15/harbour", Text, "", ARTICLE),
        ("/2026-11-15/harbour", Text, "", ARTICLE),
        ("/2019/03/02/an-old-story", Text, "", ARTICLE),
        ("/en/2026/11/15/harbour.html", Text, "", ARTICLE),
        // By the words of their last part
        ("/council-votes-on-harbour", Text, "", ARTICLE),
        ("/news/council-votes-on-harbour/", Text, "", ARTICLE),
        ("/politics/council_votes_on_harbour", Text, "", ARTICLE),
        ("/sport/cup-final-won-1.234567", Text, "", ARTICLE),
        ("/rat-stimmt-ab-4711.html", Text, "", ARTICLE),
        (
            "/%d0%be-%d0%b3%d0%be-%d1%80%d0%be-%d0%b4",
            Text,
            "",
            ARTICLE,
        ),
        (
            "//m.paper.example/council-votes-on-harbour",
            Text,
            "",
            ARTICLE,
        ),
        // By number
        ("/news/world-europe-65432109", Text, "", ARTICLE),
        ("/article/123456", Text, "", ARTICLE),
        ("/story/98765", Text, "", ARTICLE),
        ("/?p=123", Text, "Council votes on harbour", ARTICLE),
        ("/story?id=17", Headline, "Council votes", ARTICLE),
        (
            "/story?id=17&utm_source=home",
            Headline,
            "Council votes",
            ARTICLE,
        ),
        (
            "/index.php?article_id=42",
            Headline,
            "Council votes",
            ARTICLE,
        ),
        // By where they stand
        ("/go/17", Headline, "Council votes on the harbour", ARTICLE),
        ("/x9k2", Headline, "Council votes on the harbour", ARTICLE),
        ("/story/harbour", Headline, "Harbour", ARTICLE),
        // Lists
        ("/world", Menu, "World", LISTING),
        ("/world", Text, "World", LISTING),
        ("/section/world", Text, "", LISTING),
        ("/news/politics/europe", Menu, "Europe", LISTING),
        ("/category/science-and-technology-news", Text, "", LISTING),
        (
            "/topics/energy-and-climate-change-policy",
            Text,
            "",
            LISTING,
        ),
        ("/rubrik/wirtschaft/", Menu, "Wirtschaft", LISTING),
        ("/opinion", Menu, "Opinion and what others think", LISTING),
        ("/wirtschaft.html", Menu, "Wirtschaft", LISTING),
        ("/index.php?section=4", Menu, "Local", LISTING),
        ("/2026/11", Text, "November", LISTING),
        ("/page/2", Text, "Older", OLDER),
        ("/section/world/page/3", Text, "Older", OLDER),
        ("/world?page=2", Text, "2", OLDER),
        ("/page/1", Text, "Newest", UNCLEAR),
        ("/world/17", Text, "", UNCLEAR),
        ("/a/b/c/d", Text, "", UNCLEAR),
        // Excluded
        ("/login", Menu, "Log in", EXCLUDED),
        ("/user/login?next=/world", Menu, "Log in", EXCLUDED),
        ("/account/settings", Menu, "", EXCLUDED),
        ("/search", Menu, "Search", EXCLUDED),
        ("/?s=harbour", Text, "", EXCLUDED),
        ("/tag/harbour", Text, "Harbour", EXCLUDED),
        ("/tags/council-votes-on-harbour", Text, "", EXCLUDED),
        (
            "/author/jo-ann-van-der-berg",
            Text,
            "Jo Ann van der Berg",
            EXCLUDED,
        ),
        ("/autor/12345", Text, "", EXCLUDED),
        ("/cart", Menu, "", EXCLUDED),
        ("/checkout/basket", Menu, "", EXCLUDED),
        (
            "/subscribe",
            Headline,
            "Subscribe to all our stories now",
            EXCLUDED,
        ),
        ("/newsletter/the-week-in-short", Text, "", EXCLUDED),
        ("/privacy", Menu, "", EXCLUDED),
        ("/impressum.html", Menu, "", EXCLUDED),
        ("/contact-us", Menu, "", EXCLUDED),
        ("/2026/11/15/council-votes/print", Text, "", EXCLUDED),
        ("/2026/11/15/council-votes/amp", Text, "", EXCLUDED),
        ("/2026/11/15/council-votes?replytocom=7", Text, "", EXCLUDED),
        (
            "/2026/11/15/council-votes?share=facebook",
            Text,
            "",
            EXCLUDED,
        ),
        ("/feed", Menu, "RSS", EXCLUDED),
        ("/council-votes-on-harbour/comments", Text, "", EXCLUDED),
        (
            "/media/council-votes-on-harbour.jpg",
            Headline,
            "Council votes on harbour",
            MEDIA,
        ),
        ("/reports/annual-report-of-the-council.pdf", Text, "", MEDIA),
        ("/podcast/episode-17-the-harbour.mp3", Text, "", MEDIA),
        ("/rss.xml", Menu, "", MEDIA),
        // Other sites
        (
            "https://other.example/2026/11/15/council-votes",
            Headline,
            "",
            OUTSIDE,
        ),
        (
            "https://paper.example.evil.example/a-b-c-d-e",
            Headline,
            "",
            OUTSIDE,
        ),
        (
            "https://notpaper.example/council-votes-on-harbour",
            Headline,
            "",
            OUTSIDE,
        ),
        ("https://facebook.com/sharer?u=x", Menu, "", OUTSIDE),
        // Traps
        ("/calendar/2026/11", Menu, "November", CALENDAR),
        ("/events/2026-11-15", Text, "15", CALENDAR),
        ("/2031/05", Text, "May", CALENDAR),
        ("/1998/05", Text, "May", CALENDAR),
        ("/whats-on?month=3&year=2027", Text, "March", CALENDAR),
        ("/agenda?date=2027-03-01", Text, "", CALENDAR),
        ("/news/news/world", Menu, "", REPEATING),
        ("/a/b/a/b/a", Text, "", REPEATING),
        (
            "/de/en/de/en/de/council-votes-on-harbour",
            Text,
            "",
            REPEATING,
        ),
        ("/world;jsessionid=1A2B3C4D5E6F7A8B9C0D", Menu, "", SESSION),
        ("/(S(lit3py55t21z5v55vlm25s55))/world", Menu, "", SESSION),
        ("/shop?color=red&size=m", Menu, "", FACETS),
        ("/world?sort=date", Menu, "", FACETS),
        ("/world?view=grid&page=2", Text, "", FACETS),
        ("/a/b/c/d/e/f/g/h/i/j/k", Menu, "", ENDLESS),
    ];
    assert!(rows.len() >= 60, "{}", rows.len());
    let mut wrong = Vec::new();
    for (address, place, text, expected) in rows {
        let found = judge.judge(&link(address, place, text));
        if found != expected {
            wrong.push(format!("{address} {place:?}: {found:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn patterns_decide_alone() {
    let home = FetchUrl::parse("https://www.paper.example/").unwrap();
    let patterns = [
        r"/n/\d+$".to_owned(),
        r"^https://www\.paper\.example/x/".to_owned(),
    ];
    let site = Site {
        patterns: ArticlePatterns::parse(&patterns).unwrap(),
        ..site(&home)
    };
    let judge = Judge::new(&site);
    let rows = [
        ("/n/17", ARTICLE),
        ("/x/login", ARTICLE),
        ("/2026/11/15/council-votes-on-harbour", UNCLEAR),
        ("/world", LISTING),
        ("/login", EXCLUDED),
        ("https://other.example/n/17", OUTSIDE),
        ("/n/n/17", REPEATING),
    ];
    for (address, expected) in rows {
        assert_eq!(judge.judge(&link(address, Text, "")), expected, "{address}");
    }
    let error = ArticlePatterns::parse(&["/ok".to_owned(), "/(".to_owned()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#""/(" is not a valid regular expression: unclosed group"#
    );
    assert!(ArticlePatterns::parse(&vec!["x".to_owned(); 51]).is_err());
}

#[test]
fn other_sites_are_read_only_when_that_is_allowed_and_clear() {
    let home = FetchUrl::parse("https://www.paper.example/").unwrap();
    let site = Site {
        allows_external: true,
        ..site(&home)
    };
    let judge = Judge::new(&site);
    let rows = [
        (
            "https://other.example/2026/11/15/council-votes-on",
            Text,
            Verdict::External,
        ),
        (
            "https://other.example/council-votes-on-harbour",
            Text,
            OUTSIDE,
        ),
        ("https://other.example/world", Menu, OUTSIDE),
        ("https://other.example/login", Menu, EXCLUDED),
        ("/world", Menu, LISTING),
    ];
    for (address, place, expected) in rows {
        assert_eq!(
            judge.judge(&link(address, place, "")),
            expected,
            "{address}"
        );
    }
}

#[test]
fn a_nofollow_link_is_not_followed() {
    let home = FetchUrl::parse("https://www.paper.example/").unwrap();
    let site = site(&home);
    let sponsored = Link {
        is_nofollow: true,
        ..link("/2026/11/15/buy-our-lovely-pans", Headline, "Buy our pans")
    };
    assert_eq!(
        Judge::new(&site).judge(&sponsored),
        Verdict::No(Reason::NoFollow)
    );
}
