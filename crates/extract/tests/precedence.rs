//! The precedence of origins: selectors first, the feed last, and no date in the
//! future from any.

use tidings_extract::{
    FeedEntry, Method, Options, Origin, Page, Quality, Selector, Selectors, When, extract, select,
};

const PAGE: &str = "<html lang=en><head><title>Old title | The Daily</title>
<script type='application/ld+json'>{\"@type\":\"NewsArticle\",\"headline\":\"A headline for machines\",\"datePublished\":\"2026-03-02\",\"author\":\"Machine\"}</script></head>
<body><div id=top><h2 class=headline>The headline of the source</h2><span class=who>By Ines Okafor</span><time class=when datetime='2026-03-01T10:00:00Z'>yesterday</time></div>
<div class=text><p>After eleven years of debate, the council voted on Monday to tear down the old bridge.</p><p class=ad-note>Our partner sells bridges, and they are very cheap this week.</p></div>
<div class=other><p>Another long paragraph that is not part of the article, whatever it looks like to a machine that weighs.</p></div></body></html>";

fn page<'a>(
    html: &'a str,
    selectors: Option<&'a Selectors>,
    feed: Option<&'a FeedEntry>,
) -> Page<'a> {
    Page {
        html: html.as_bytes(),
        url: "https://daily.example/bridge",
        charset: None,
        selectors,
        feed,
        now: "2026-11-15T12:00:00Z".parse().expect("a moment"),
    }
}

fn selector(text: &str) -> Option<Selector> {
    Some(Selector::parse(text).expect("a selector"))
}

#[test]
fn selectors_of_the_source_win() {
    let selectors = Selectors {
        title: selector(".headline"),
        body: selector("div.text"),
        author: selector(".who"),
        published: selector("time.when"),
        remove: selector(".ad-note"),
        ..Selectors::default()
    };
    let article = extract(&page(PAGE, Some(&selectors), None), &Options::default());
    assert_eq!(
        article.text,
        "After eleven years of debate, the council voted on Monday to tear down the old bridge."
    );
    assert_eq!(article.method, Method::Selector);
    let title = article.title.expect("a title");
    assert_eq!(
        (title.value.as_str(), title.origin),
        ("The headline of the source", Origin::Selector)
    );
    assert_eq!(article.authors.expect("an author").value, ["Ines Okafor"]);
    assert_eq!(
        article.published.expect("a date").value.to_string(),
        "2026-03-01T10:00:00Z"
    );
    let shown = select(
        &page(PAGE, None, None),
        &Options::default(),
        &selectors.body.expect("set above"),
    );
    assert_eq!(shown.len(), 1);
}

#[test]
fn a_selector_that_finds_nothing_gives_way() {
    let selectors = Selectors {
        title: selector("h1.gone"),
        body: selector(".gone"),
        ..Selectors::default()
    };
    let article = extract(&page(PAGE, Some(&selectors), None), &Options::default());
    assert_eq!(article.method, Method::Blocks);
    assert!(article.text.contains("the council voted"));
}

#[test]
fn the_feed_fills_what_the_page_leaves_open() {
    let feed = FeedEntry {
        title: Some("Bridge to be rebuilt".into()),
        authors: vec!["Tom Reyes".into()],
        published: When::parse("2026-03-02"),
        summary: Some("<p>The council has <b>voted</b> to rebuild the bridge.</p>".into()),
        language: Some("en-CA".into()),
        ..FeedEntry::default()
    };
    let article = extract(
        &page(
            "<div id=app></div><script src=app.js></script>",
            None,
            Some(&feed),
        ),
        &Options::default(),
    );
    assert_eq!(article.text, "The council has voted to rebuild the bridge.");
    assert_eq!(
        (article.method, article.quality),
        (Method::Feed, Quality::TitleOnly)
    );
    assert_eq!(article.title.map(|title| title.origin), Some(Origin::Feed));
    assert_eq!(
        article.published.map(|when| when.origin),
        Some(Origin::Feed)
    );
    assert_eq!(
        article
            .language
            .map(|language| (language.value, language.origin)),
        Some(("en".into(), Origin::Feed))
    );
}

#[test]
fn a_page_that_is_built_in_the_browser_has_its_text_in_json_ld() {
    let body = "The council voted on Monday to tear down the old bridge and to build a new one. "
        .repeat(6);
    let html = format!(
        "<div id=app>Loading</div><script type='application/ld+json'>{{\"@type\":\"NewsArticle\",\"headline\":\"Bridge\",\"articleBody\":\"{body}\"}}</script>"
    );
    let article = extract(&page(&html, None, None), &Options::default());
    assert_eq!(article.method, Method::JsonLd);
    assert!(article.text.starts_with("The council voted"));
}

#[test]
fn no_date_in_the_future_is_accepted() {
    let html = PAGE
        .replace("2026-03-02", "2027-03-02")
        .replace("2026-03-01", "2031-01-01");
    let article = extract(&page(&html, None, None), &Options::default());
    assert_eq!(article.published, None);
}
