//! Where feeds are looked for, and which of those found is the best.

#![allow(clippy::unwrap_used)]

use tidings_feed::discovery::{
    Candidate, CandidateKind, Origin, assess_feed, assess_sitemap, candidates, rank,
    robots_sitemaps,
};
use tidings_feed::{Hints, parse, sitemap};
use url::Url;

fn found(page: &str, url: &str, robots: Option<&str>) -> Vec<Candidate> {
    candidates(Some(page.as_bytes()), &Url::parse(url).unwrap(), robots)
}

fn of(origin: Origin, list: &[Candidate]) -> Vec<&str> {
    let list = list.iter().filter(|candidate| candidate.origin == origin);
    list.map(|candidate| candidate.url.as_str()).collect()
}

#[test]
fn platforms_have_rules() {
    for (url, page, feed) in [
        (
            "https://www.youtube.com/channel/UCabc",
            "",
            "https://www.youtube.com/feeds/videos.xml?channel_id=UCabc",
        ),
        (
            "https://www.youtube.com/playlist?list=PL1",
            "",
            "https://www.youtube.com/feeds/videos.xml?playlist_id=PL1",
        ),
        (
            "https://www.youtube.com/user/jo",
            "",
            "https://www.youtube.com/feeds/videos.xml?user=jo",
        ),
        (
            "https://www.youtube.com/@jo",
            "<script>{\"channelId\":\"UC0123456789abcdefghijkl\"}</script>",
            "https://www.youtube.com/feeds/videos.xml?channel_id=UC0123456789abcdefghijkl",
        ),
        (
            "https://www.youtube.com/@jo",
            "<meta itemprop=\"identifier\" content=\"UC0123456789abcdefghijkl\">",
            "https://www.youtube.com/feeds/videos.xml?channel_id=UC0123456789abcdefghijkl",
        ),
        (
            "https://www.reddit.com/r/rust/top",
            "",
            "https://www.reddit.com/r/rust/.rss",
        ),
        (
            "https://old.reddit.com/u/jo",
            "",
            "https://www.reddit.com/user/jo/.rss",
        ),
        ("https://github.com/jo", "", "https://github.com/jo.atom"),
        (
            "https://github.com/jo/boats/issues",
            "",
            "https://github.com/jo/boats/releases.atom",
        ),
        (
            "https://gitlab.com/jo/boats",
            "",
            "https://gitlab.com/jo/boats/-/tags?format=atom",
        ),
        ("https://medium.com/@jo", "", "https://medium.com/feed/@jo"),
        (
            "https://jo.medium.com/a-story",
            "",
            "https://jo.medium.com/feed",
        ),
        (
            "https://jo.substack.com/p/one",
            "",
            "https://jo.substack.com/feed",
        ),
        (
            "https://jo.blogspot.com/2026/11/x.html",
            "",
            "https://jo.blogspot.com/feeds/posts/default",
        ),
        ("https://jo.tumblr.com/", "", "https://jo.tumblr.com/rss"),
        (
            "https://jo.wordpress.com/",
            "",
            "https://jo.wordpress.com/feed/",
        ),
        (
            "https://vimeo.com/jo",
            "",
            "https://vimeo.com/jo/videos/rss",
        ),
        (
            "https://mastodon.example/@jo",
            "",
            "https://mastodon.example/@jo.rss",
        ),
        (
            "https://bsky.app/profile/jo.example",
            "",
            "https://bsky.app/profile/jo.example/rss",
        ),
        (
            "https://stackoverflow.com/questions/tagged/rust",
            "",
            "https://stackoverflow.com/feeds/tag/rust",
        ),
        (
            "https://dba.stackexchange.com/questions/tagged/sql",
            "",
            "https://dba.stackexchange.com/feeds/tag/sql",
        ),
        (
            "https://arxiv.org/list/cs.CL/recent",
            "",
            "https://rss.arxiv.org/rss/cs.CL",
        ),
        (
            "https://a.example/category/ships/",
            "<meta name=generator content='WordPress 6.8'>",
            "https://a.example/category/ships/feed/",
        ),
        (
            "https://a.example/x/",
            "<meta name=\"generator\" content=\"Ghost 5\">",
            "https://a.example/rss/",
        ),
        (
            "https://a.example/x/",
            "<meta name=\"Generator\" content=\"Drupal 10\">",
            "https://a.example/rss.xml",
        ),
        (
            "https://a.example/",
            "<meta name=generator content=\"Hugo 0.1\">",
            "https://a.example/index.xml",
        ),
    ] {
        let list = found(page, url, None);
        assert_eq!(of(Origin::Platform, &list).first(), Some(&feed), "{url}");
    }
}

#[test]
fn a_page_names_its_feeds() {
    let page = r#"<!doctype html><html><head><base href="/blog/">
        <!-- <link rel="alternate" type="application/rss+xml" href="/commented-out"> -->
        <link rel="alternate" type="application/rss+xml" title="All &amp; more" href="all.rss">
        <LINK REL='Alternate Home' TYPE='application/atom+xml; charset=utf-8' HREF='/atom'>
        <link rel=alternate type=application/feed+json href=https://json.example/feed.json>
        <link rel="alternate" type="application/json" href="/wp-json/wp/v2/posts/1">
        <link rel="alternate" hreflang="de" href="/de/">
        <link rel="stylesheet" type="text/css" href="/feed.css">
        <link rel="sitemap" type="application/xml" href="/map.xml">
        <script>var x = '<link rel="alternate" type="application/rss+xml" href="/in-script">';</script>
        </head><body>
        <a href="https://other.example/rss.xml">elsewhere</a> <a href="news.rdf">RDF</a>
        <a href="/about">About</a> <a href="mailto:feed@a.example">Mail</a> <a href="/?feed=rss2">RSS</a>
        </body></html>"#;
    let list = found(
        page,
        "https://a.example/",
        Some(
            "User-agent: *\nSITEMAP : https://a.example/one.xml # first\nSite-map: /two.xml\nSitemap:\n",
        ),
    );
    assert_eq!(list[1].title.as_deref(), Some("All & more"));
    assert_eq!(
        of(Origin::LinkElement, &list),
        [
            "https://a.example/blog/all.rss",
            "https://a.example/atom",
            "https://json.example/feed.json",
            "https://a.example/map.xml"
        ]
    );
    assert_eq!(
        of(Origin::Anchor, &list),
        [
            "https://a.example/blog/news.rdf",
            "https://a.example/?feed=rss2",
            "https://other.example/rss.xml"
        ]
    );
    assert_eq!(
        of(Origin::Robots, &list),
        ["https://a.example/one.xml", "https://a.example/two.xml"]
    );
    let guesses = of(Origin::Guess, &list);
    for path in [
        "/feed",
        "/rss",
        "/atom.xml",
        "/feed.xml",
        "/rss.xml",
        "/index.xml",
        "/feed.json",
        "/sitemap.xml",
        "/news-sitemap.xml",
        "/sitemap_index.xml",
        "/sitemap_news.xml",
    ] {
        assert!(
            guesses.contains(&format!("https://a.example{path}").as_str()),
            "{path}"
        );
    }
    let mut seen = std::collections::HashSet::new();
    assert!(
        list.iter().all(|candidate| seen.insert(&candidate.url)),
        "each once"
    );
    let first_sitemap = list
        .iter()
        .position(|candidate| candidate.kind == CandidateKind::Sitemap)
        .unwrap();
    assert!(
        list[first_sitemap..]
            .iter()
            .all(|candidate| candidate.kind == CandidateKind::Sitemap)
    );
}

#[test]
fn robots_lines_are_read_in_any_case() {
    let robots = "\u{feff}sitemap: https://a.example/1\r\n  SITEMAP:https://a.example/2#x\nDisallow: /sitemap: x\n";
    assert_eq!(
        robots_sitemaps(robots),
        ["https://a.example/1", "https://a.example/2#x"]
    );
}

#[test]
fn the_living_full_feed_wins() {
    let now = "2026-11-15T00:00:00Z".parse().unwrap();
    let feed = |title: &str, month: u32, content: &str| {
        let items: String = (1..=10)
            .map(|day| format!("<item><title>{day}</title><link>https://a.example/{day}</link><pubDate>2026-{month:02}-{day:02}T00:00:00Z</pubDate><content:encoded>{content}</content:encoded></item>"))
            .collect();
        parse(
            format!("<rss><channel><title>{title}</title>{items}</channel></rss>").as_bytes(),
            &Hints::default(),
        )
        .unwrap()
    };
    let candidate = |url: &str, kind| Candidate {
        url: url.to_owned(),
        kind,
        origin: Origin::LinkElement,
        title: None,
    };
    let judged = |url: &str, title: &str, month, content| {
        assess_feed(
            candidate(url, CandidateKind::Feed),
            &feed(title, month, content),
            now,
        )
        .unwrap()
    };
    let map = sitemap::parse(
        b"<urlset><url><loc>https://a.example/1</loc><lastmod>2026-11-14</lastmod></url></urlset>",
        &Hints::default(),
    )
    .unwrap();
    let ranked = rank(vec![
        assess_sitemap(
            candidate("https://a.example/map", CandidateKind::Sitemap),
            &map,
            now,
        )
        .unwrap(),
        judged(
            "https://a.example/comments/feed",
            "Comments on A",
            11,
            "Whole",
        ),
        judged("https://a.example/old", "Old", 1, "Whole"),
        judged("https://a.example/short", "Short", 11, ""),
        judged("https://a.example/full", "Full", 11, "Whole"),
    ]);
    let order: Vec<_> = ranked
        .iter()
        .map(|ranked| ranked.candidate.url.as_str())
        .collect();
    assert_eq!(
        order,
        [
            "https://a.example/full",
            "https://a.example/short",
            "https://a.example/old",
            "https://a.example/comments/feed",
            "https://a.example/map"
        ]
    );
    assert_eq!(ranked[0].full_text_share, 1.0);
    assert!((ranked[0].items_per_day.unwrap() - 10.0 / 9.0).abs() < 1e-9);

    let empty = parse(b"<rss><channel/></rss>", &Hints::default()).unwrap();
    assert!(
        assess_feed(
            candidate("https://a.example/", CandidateKind::Feed),
            &empty,
            now
        )
        .is_none()
    );
}
