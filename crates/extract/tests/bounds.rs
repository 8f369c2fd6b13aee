//! Hostile pages: each is read within its limits, none panics, and the article in
//! it is still found. CPU time is measured by the `bombs` example, not here.

use std::cell::Cell;

use proptest::prelude::*;
use tidings_extract::{Article, Limits, Method, Options, Page, extract};

const STORY: &str = "<article><h1>A story</h1><p>The council voted on Monday to tear down the old bridge, and to build a new one in its place at once.</p>\
    <p>It will close in May and reopen two years later, when the trains run again and the ferries stop for good.</p></article>";

fn read(html: &[u8]) -> Article {
    read_with(html, &Options::default())
}

fn read_with(html: &[u8], options: &Options<'_>) -> Article {
    let now = "2026-11-15T12:00:00Z".parse().expect("a moment");
    extract(
        &Page {
            html,
            url: "https://a.example/story",
            charset: None,
            selectors: None,
            feed: None,
            now,
        },
        options,
    )
}

fn finds_the_story(html: &str) {
    let article = read(html.as_bytes());
    assert!(
        article.text.contains("The council voted"),
        "{:.300}",
        article.text
    );
}

#[test]
fn deep_nesting() {
    for tag in ["div", "b", "p", "table", "ul", "font", "custom-tag", "a"] {
        let deep = format!("<{tag}>").repeat(40_000);
        assert!(
            read(format!("{STORY}{deep}deep").as_bytes())
                .text
                .contains("The council"),
            "{tag}"
        );
        let _ = read(format!("{deep}{STORY}").as_bytes());
    }
}

#[test]
fn many_attributes() {
    let attributes: String = (0..80_000).map(|n| format!(" a{n}=x")).collect();
    finds_the_story(&format!("<body><div{attributes}>{STORY}</div>"));
}

#[test]
fn one_huge_text_and_one_huge_script() {
    let text = "word ".repeat(10 << 20);
    assert!(read(text.as_bytes()).cut);
    finds_the_story(&format!(
        "<script>{}</script>{STORY}",
        "x<y;".repeat(2_500_000)
    ));
    finds_the_story(&format!(
        "{STORY}<script>{}",
        "var a = '<p>';".repeat(100_000)
    ));
    finds_the_story(&format!(
        "{STORY}<img src=\"data:image/png;base64,{}\">",
        "A".repeat(5_000_000)
    ));
}

#[test]
fn things_that_never_end() {
    for start in [
        "<!--",
        "<title>",
        "<textarea>",
        "<svg>",
        "<noscript>",
        "<iframe>",
        "<a href=\"",
        "<p class='",
        "<![CDATA[",
        "</",
        "<?",
        "<style>",
        "&",
        "&#",
        "<a b=c",
    ] {
        finds_the_story(&format!("{STORY}{}", start.repeat(50_000)));
    }
}

#[test]
fn nul_bytes_and_controls_never_come_out() {
    let article = read(
        STORY
            .replace("Monday", "Mon\0d\u{1}a\u{202e}y")
            .replace("A story", "A \0story")
            .as_bytes(),
    );
    assert!(article.text.contains("voted on Monday"), "{}", article.text);
    let everything = serde_json::to_string(&article).expect("JSON");
    assert!(
        !everything.contains("\\u0000") && !everything.contains('\u{202e}'),
        "{everything}"
    );
}

#[test]
fn broken_json_ld_is_bounded() {
    for json in [
        "[".repeat(200_000),
        "{\"a\":".repeat(100_000),
        "\"".repeat(300_000),
        "{\"@graph\":[".repeat(10_000),
        "/*".repeat(100_000),
        "\\".repeat(100_000),
    ] {
        finds_the_story(&format!(
            "<script type=\"application/ld+json\">{json}</script>{STORY}"
        ));
    }
}

#[test]
fn limits_cut_and_mark_the_article_as_cut() {
    let limits = Limits {
        nodes: 40,
        ..Limits::default()
    };
    let article = read_with(
        format!("{STORY}{}", "<i>x</i>".repeat(1_000)).as_bytes(),
        &Options {
            limits,
            ..Options::default()
        },
    );
    assert!(article.cut && article.text.contains("The council"));
    let limits = Limits {
        html_bytes: 150,
        ..Limits::default()
    };
    assert!(
        read_with(
            STORY.as_bytes(),
            &Options {
                limits,
                ..Options::default()
            }
        )
        .cut
    );
}

#[test]
fn without_cpu_time_the_cheap_method_is_used() {
    let checks = Cell::new(0);
    let spent = || {
        checks.set(checks.get() + 1);
        false
    };
    let html = format!(
        "<nav><a href=/>Home</a></nav>{STORY}{}",
        "<p>more</p>".repeat(20_000)
    );
    let article = read_with(
        html.as_bytes(),
        &Options {
            within_budget: &spent,
            ..Options::default()
        },
    );
    assert_eq!(article.method, Method::Cheap);
    assert!(article.cut && article.text.contains("The council") && checks.get() > 0);
}

#[test]
fn empty_pages_have_no_hash() {
    for html in ["", " ", "<html>", "\0\0\0", "<script>only()</script>"] {
        let article = read(html.as_bytes());
        assert_eq!(
            (article.text.as_str(), article.content_hash, article.method),
            ("", None, Method::Nothing),
            "{html:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_the_same_way_twice(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let (first, second) = (read(&bytes), read(&bytes));
        prop_assert_eq!(first.text, second.text);
    }

    #[test]
    fn any_soup_of_tags_is_read(soup in proptest::collection::vec(prop_oneof![
        Just("<div>"), Just("</div>"), Just("<p>"), Just("</p>"), Just("<a href=x>"), Just("</a>"), Just("<table><tr><td>"), Just("</table>"), Just("<li>"),
        Just("</ul>"), Just("<ul>"), Just("<script>"), Just("</script>"), Just("<h1>"), Just("text é 日本 "), Just("<!--"), Just("-->"), Just("<br>"), Just("&amp;"), Just("<"), Just("<article class='post-body'>"), Just("<time datetime='2026-01-01'>"),
    ], 0..60)) {
        let _ = read(soup.concat().as_bytes());
    }
}
