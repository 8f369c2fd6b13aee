//! One page of each family, from bytes to article: every field and its origin.

use tidings_extract::{Article, Flags, Options, Page, PageType, extract};

fn read(name: &str) -> Article {
    let path = format!("{}/tests/pages/{name}.html", env!("CARGO_MANIFEST_DIR"));
    let html = std::fs::read(path).expect("the page is there");
    let page = Page {
        html: &html,
        url: "https://harbour.example/news/story",
        charset: None,
        selectors: None,
        feed: None,
        now: "2026-11-15T12:00:00Z".parse().expect("a moment"),
    };
    extract(&page, &Options::default())
}

/// Every field with its origin, then the fields of the index.
fn shown(article: &Article) -> String {
    serde_json::to_string_pretty(article).expect("an article is JSON")
}

#[test]
fn news_with_json_ld_in_a_graph() {
    let article = read("json_ld_graph");
    assert_eq!(article.page_type, PageType::Article);
    insta::assert_snapshot!(shown(&article));
}

#[test]
fn open_graph_only_in_german() {
    insta::assert_snapshot!(shown(&read("open_graph")));
}

#[test]
fn microdata_in_french() {
    insta::assert_snapshot!(shown(&read("microdata")));
}

#[test]
fn no_metadata_in_japanese() {
    insta::assert_snapshot!(shown(&read("none")));
}

#[test]
fn malformed_json_ld_in_spanish() {
    insta::assert_snapshot!(shown(&read("malformed_json_ld")));
}

#[test]
fn a_paywall() {
    let article = read("paywall");
    assert_eq!(
        article.flags,
        Flags {
            paywall: true,
            ..Flags::default()
        }
    );
    insta::assert_snapshot!(shown(&article));
}

#[test]
fn amp_in_italian() {
    let article = read("amp");
    assert!(article.flags.amp);
    insta::assert_snapshot!(shown(&article));
}
