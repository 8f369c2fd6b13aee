//! What a site repeats on its pages is learned and left out: through the public
//! surface, with a memory that the caller owns.

use tidings_extract::{Article, Options, Page, SiteMemory, extract};

const INVITATION: &str =
    "Tell us your story: we are working on a series about bakers and would love to hear from you.";
const STORIES: [&str; 5] = ["rye", "wheat", "spelt", "barley", "oats"];

/// A page about one grain, with the same invitation in the midst of its text.
fn page(grain: &str) -> String {
    format!(
        "<html><head><title>All about {grain}</title></head><body><article><h1>All about {grain}</h1>
        <p>Of all that grows on the fields of the village, {grain} was the first that the bakers learned to trust,
        and the story of how they came to do so is longer than this page.</p>
        <p>{INVITATION}</p>
        <h2>Conclusion</h2>
        <p>Whoever wants to bake with {grain} needs practice first of all, then water, salt and an oven that
        keeps its heat through the night, and in the end a good knife.</p></article></body></html>"
    )
}

fn read(html: &str, url: &str, memory: &SiteMemory) -> Article {
    let page = Page {
        html: html.as_bytes(),
        url,
        charset: None,
        selectors: None,
        feed: None,
        now: "2026-11-15T12:00:00Z".parse().expect("a moment"),
    };
    let options = Options {
        site: Some(memory),
        ..Options::default()
    };
    extract(&page, &options)
}

fn url(grain: &str) -> String {
    format!("https://bakers.example/{grain}")
}

fn learn(memory: &mut SiteMemory, grain: &str) -> Article {
    let article = read(&page(grain), &url(grain), memory);
    memory.learn(&url(grain), &article);
    article
}

#[test]
fn what_three_pages_have_is_not_what_one_is_about() {
    let mut memory = SiteMemory::default();
    for (count, grain) in (1..).zip(STORIES) {
        let article = learn(&mut memory, grain);
        assert_eq!(article.text.contains(INVITATION), count < 3, "{grain}");
        assert!(article.text.contains(&format!("bake with {grain}")));
        // Headings come again in every text.
        assert!(article.text.contains("Conclusion"));
    }
    assert_eq!(memory.pages(), STORIES.len());
}

#[test]
fn a_page_that_is_fetched_again_does_not_count_twice() {
    let mut memory = SiteMemory::default();
    for _ in 0..5 {
        assert!(learn(&mut memory, "rye").text.contains(INVITATION));
        assert!(learn(&mut memory, "wheat").text.contains(INVITATION));
    }
    assert_eq!(memory.pages(), 2);
    // Nor is it evidence against itself.
    learn(&mut memory, "spelt");
    let twice = [
        learn(&mut memory, "spelt").text,
        learn(&mut memory, "spelt").text,
    ];
    assert_eq!(twice[0], twice[1]);
    assert!(!twice[0].contains(INVITATION));
}

#[test]
fn an_article_under_many_addresses_is_still_an_article() {
    let mut memory = SiteMemory::default();
    let html = page("rye");
    for copy in 0..6 {
        let url = format!("https://bakers.example/rye?from={copy}");
        let article = read(&html, &url, &memory);
        assert!(
            article.text.contains("bake with rye")
                && article.text.contains("first that the bakers")
        );
        memory.learn(&url, &article);
    }
}

#[test]
fn what_is_known_stays_known_while_pages_go_by() {
    let mut memory = SiteMemory::default();
    for number in 0..100_u32 {
        let grain: String = number
            .to_string()
            .bytes()
            .map(|digit| char::from(digit + 49))
            .collect();
        let article = learn(&mut memory, &grain);
        assert_eq!(article.text.contains(INVITATION), number < 2, "{number}");
    }
    assert!(memory.pages() < 100);
}

#[test]
fn boilerplate_that_outweighs_the_article_does_not_hide_it() {
    let terms = "<p>These are the terms of our bakery, which every reader of this page accepts by reading on, whether
        the bread is good or not, and which our lawyers have made as long as they could for so little money.</p>
        <p>Nobody has ever read the terms to their end, but whoever does will find that the bakery is not to be
        blamed for burnt crusts, for crumbs in the bed, or for bread that was eaten before it had cooled down.</p>";
    let html = |grain: &str| {
        format!(
            "<html><body><div class=a><h1>All about {grain}</h1><p>Bread of {grain} is dark, heavy and keeps for a week, which is why the sailors liked it.</p></div><div class=b>{terms}</div></body></html>"
        )
    };
    let mut memory = SiteMemory::default();
    let mut last = String::new();
    for grain in STORIES {
        let article = read(&html(grain), &url(grain), &memory);
        memory.learn(&url(grain), &article);
        last = article.text;
    }
    assert!(last.contains("the sailors liked it"), "{last}");
    assert!(!last.contains("burnt crusts"), "{last}");
}

#[test]
fn without_a_memory_nothing_is_learned() {
    let html = page("rye");
    let page = Page {
        html: html.as_bytes(),
        url: &url("rye"),
        charset: None,
        selectors: None,
        feed: None,
        now: "2026-11-15T12:00:00Z".parse().expect("a moment"),
    };
    let mut memory = SiteMemory::default();
    memory.learn(&url("rye"), &extract(&page, &Options::default()));
    assert_eq!(memory.pages(), 0);
}
