//! One small page for each class of pages that was read wrongly once: where the
//! text is, what is none of it, what kind of page it is, what keeps it from us.

use tidings_extract::{Article, Flags, Options, Origin, Page, PageType, extract};

fn read_at(name: &str, url: &str) -> Article {
    let path = format!(
        "{}/tests/pages/classes/{name}.html",
        env!("CARGO_MANIFEST_DIR")
    );
    let html = std::fs::read(path).expect("the page is there");
    extract_from(&html, url)
}

fn extract_from(html: &[u8], url: &str) -> Article {
    let page = Page {
        html,
        url,
        charset: None,
        selectors: None,
        feed: None,
        now: "2026-11-15T12:00:00Z".parse().expect("a moment"),
    };
    extract(&page, &Options::default())
}

fn read(name: &str) -> Article {
    read_at(name, "https://harbour.example/news/story")
}

#[track_caller]
fn has(article: &Article, phrases: &[&str]) {
    for phrase in phrases {
        assert!(
            article.text.contains(phrase),
            "{phrase:?} is missing in:\n{}",
            article.text
        );
    }
}

#[track_caller]
fn lacks(article: &Article, phrases: &[&str]) {
    for phrase in phrases {
        assert!(
            !article.text.contains(phrase),
            "{phrase:?} is in:\n{}",
            article.text
        );
    }
}

#[test]
fn a_thread_that_only_browsers_without_scripts_see() {
    let article = read_at(
        "noscript_thread",
        "https://talk.harbour.example/t/ferry-timetable/12",
    );
    assert_eq!(article.page_type, PageType::Forum);
    has(
        &article,
        &["sails on Sundays", "first frost", "anneli", "bertold"],
    );
}

#[test]
fn an_article_in_a_template() {
    has(&read("template_article"), &["The council met", "dogs pay"]);
}

#[test]
fn a_thread_is_what_was_written_and_by_whom() {
    let article = read_at("thread", "https://forum.harbour.example/threads/oars.7/");
    assert_eq!(article.page_type, PageType::Forum);
    has(
        &article,
        &[
            "clinker dinghy",
            "oars of spruce",
            "that settles it",
            "tidewater",
        ],
    );
    lacks(
        &article,
        &["Joined", "4,512", "therapy", "rules of the house"],
    );
    assert_eq!(
        article.text.matches("oars of spruce").count(),
        1,
        "a quotation is said once: {}",
        article.text
    );
}

#[test]
fn the_opening_post_may_stand_above_the_others() {
    let reply = |n: u8| {
        format!(
            "<div class=comment id=comment-{n}><div class=comment-body><p>Reply number {n} says that the lock opens at \
             six, whatever the board on the wall tells.</p></div></div>"
        )
    };
    let html = format!(
        "<title>When does the lock open?</title><h1>When does the lock open?</h1>
        <div class=topic><p>I come down the river on Friday and would like to know when the lock opens in the morning,
        because the board is hard to read.</p></div>{}{}",
        reply(1),
        reply(2)
    );
    let article = extract_from(
        html.as_bytes(),
        "https://forum.harbour.example/topic/lock-12",
    );
    has(
        &article,
        &["I come down the river", "Reply number 1", "Reply number 2"],
    );
}

#[test]
fn of_several_articles_under_each_other_the_first_is_meant() {
    let article = read("infinite_scroll");
    has(&article, &["The council met", "Shopkeepers"]);
    lacks(&article, &["Snow has closed", "new bell"]);
}

#[test]
fn what_a_site_says_to_every_reader_is_no_part_of_an_article() {
    let article = read("appeals");
    has(
        &article,
        &[
            "The council met",
            "The boat was built",
            "Shopkeepers",
            "dogs pay",
        ],
    );
    lacks(
        &article,
        &[
            "cookies",
            "donation",
            "inbox",
            "Comments are",
            "Reporting by",
        ],
    );
}

#[test]
fn an_article_about_cookies_keeps_its_text() {
    has(
        &read("about_cookies"),
        &["in the basket", "size of letters", "which door"],
    );
}

#[test]
fn the_rows_of_a_list_are_its_text() {
    let article = read_at("listing", "https://harbour.example/category/notes");
    assert_eq!(article.page_type, PageType::Listing);
    has(
        &article,
        &[
            "Ferry notes",
            "A rope was stolen",
            "Quay notes",
            "A crane arrived",
        ],
    );
    lacks(&article, &["nothing better to do", "Home"]);
    assert_eq!(article.authors, None);
}

#[test]
fn things_for_sale_have_their_names_and_prices() {
    let article = read_at(
        "collection",
        "https://shop.harbour.example/collections/ropes",
    );
    assert_eq!(article.page_type, PageType::Collection);
    has(&article, &["Hemp rope", "$12.50", "Waxed rope", "$9.90"]);
    lacks(&article, &["Add to cart", "Under $10", "post boat"]);
}

#[test]
fn a_page_that_is_a_table_has_it_as_its_text() {
    let article = read("table_page");
    has(&article, &["Heron", "12:04", "Sandpiper", "17:05"]);
    lacks(&article, &["club house"]);
}

#[test]
fn a_product_is_described_without_the_opinions_of_others() {
    let article = read_at("product", "https://shop.harbour.example/products/ash-oar");
    assert_eq!(article.page_type, PageType::Product);
    has(&article, &["planed by hand", "hand's breadth"]);
    lacks(&article, &["my neighbour", "smelled of fish", "Oar oil"]);
}

#[test]
fn a_product_that_scripts_would_show_is_described_by_its_data() {
    let html = br#"<title>Ash oar</title><h1>Ash oar</h1><div id=app></div>
        <script type="application/ld+json">{"@type":"Product","name":"Ash oar","description":"An oar of one piece of ash, planed by hand and oiled twice, with a leather collar."}</script>"#;
    let article = extract_from(html, "https://shop.harbour.example/products/ash-oar");
    has(&article, &["planed by hand"]);
}

#[test]
fn what_comes_again_with_good_reason_is_kept() {
    let article = read("meal_plans");
    assert_eq!(
        article.text.matches("porridge of oats").count(),
        4,
        "{}",
        article.text
    );
    assert_eq!(article.text.matches("soup of leeks").count(), 4);
}

#[test]
fn a_variant_of_the_page_for_phones_is_left_out() {
    let story = "<p>The council met on Tuesday evening to decide whether the old ferry should sail again.</p>
        <p>The boat was built in a yard upstream that closed long ago, and two brothers kept it running.</p>
        <p>Shopkeepers on the far bank hope that visitors will cross once more when summer comes.</p>";
    let html = format!(
        "<title>Ferry</title><article><h1>Ferry</h1><div class=desktop>{story}</div><div class=mobile>{story}</div></article>"
    );
    let article = extract_from(html.as_bytes(), "https://harbour.example/news/story");
    assert_eq!(article.text.matches("The council met").count(), 1);
    assert_eq!(article.text.matches("Shopkeepers").count(), 1);
}

#[test]
fn a_manual_keeps_its_commands_and_its_tabs() {
    let article = read_at("manual", "https://docs.harbour.example/ferry/operate");
    assert_eq!(article.page_type, PageType::Documentation);
    assert_eq!(article.text.matches("ferryctl status").count(), 2);
    has(&article, &["green lever", "no winch"]);
}

#[test]
fn a_sentence_has_no_cards_and_hints_of_icons_in_it() {
    let article = read("hover_card");
    has(
        &article,
        &[
            "steered by Anneli Quay who never once",
            "open to everybody who can read",
        ],
    );
}

#[test]
fn a_short_article_beats_a_long_footer() {
    let article = read("bare_body");
    has(&article, &["three of its piles", "upper quay"]);
    lacks(&article, &["great flood"]);
}

#[test]
fn walls_are_named() {
    let none = Flags::default;
    for (name, expected) in [
        (
            "login_wall",
            Flags {
                login_wall: true,
                ..none()
            },
        ),
        (
            "geo_block",
            Flags {
                geo_block: true,
                ..none()
            },
        ),
        (
            "bot_check",
            Flags {
                captcha: true,
                ..none()
            },
        ),
        (
            "press_and_hold",
            Flags {
                captcha: true,
                ..none()
            },
        ),
        (
            "script_shell",
            Flags {
                script_shell: true,
                ..none()
            },
        ),
        ("free_text", none()),
        // It says so, and all of it is there.
        (
            "declared_paywall",
            Flags {
                paywall: true,
                ..none()
            },
        ),
    ] {
        assert_eq!(read(name).flags, expected, "{name}");
    }
}

#[test]
fn a_declared_language_is_overruled_by_the_script() {
    for (name, language) in [("russian_as_english", "ru"), ("thai_as_english", "th")] {
        let found = read(name).language.expect("a language");
        assert_eq!(
            (found.value.as_str(), found.origin),
            (language, Origin::Text),
            "{name}"
        );
    }
    let article = read("thai_as_english");
    assert!(article.word_count > 50, "{}", article.word_count);
    assert_ne!(article.page_type, PageType::Stub);
}

#[test]
fn an_offer_is_a_service_and_nobody_wrote_it() {
    let article = read_at("service", "https://harbour.example/services/ferry-hire");
    assert_eq!(article.page_type, PageType::Service);
    assert_eq!(article.authors, None);
    has(&article, &["forty guests", "Bring a fiddle"]);
}

#[test]
fn without_another_date_that_of_the_last_change_counts_and_says_so() {
    let html = b"<meta property=article:modified_time content=2026-03-05T10:00:00Z><title>Ferry</title>
        <article><h1>Ferry</h1><p>The council met on Tuesday evening to decide whether the old ferry should sail.</p></article>";
    let article = extract_from(html, "https://harbour.example/news/story");
    let found = article.published.expect("a date");
    assert_eq!(
        (found.value.to_string().as_str(), found.origin),
        ("2026-03-05T10:00:00Z", Origin::LastModified)
    );
}

#[test]
fn dates_are_read_in_many_languages() {
    for (line, day) in [
        ("5. maaliskuuta 2026", "2026-03-05"),
        ("2026. március 5.", "2026-03-05"),
        ("5 martie 2026", "2026-03-05"),
        ("5. ožujka 2026.", "2026-03-05"),
        ("5 مارس 2026", "2026-03-05"),
        ("5 במרץ 2026", "2026-03-05"),
        ("5 มีนาคม 2026", "2026-03-05"),
        ("5 मार्च 2026", "2026-03-05"),
        ("5 Maret 2026", "2026-03-05"),
        ("2026 m. kovo 5 d.", "2026-03-05"),
    ] {
        let html = format!(
            "<meta charset=utf-8><title>Ferry</title><article><h1>Ferry</h1><div class=date>{line}</div>
            <p>The council met on Tuesday evening to decide whether the old ferry should sail again this summer.</p></article>"
        );
        let article = extract_from(html.as_bytes(), "https://harbour.example/news/story");
        assert_eq!(
            article
                .published
                .map(|found| found.value.day().to_string())
                .as_deref(),
            Some(day),
            "{line}"
        );
    }
}

#[test]
fn the_only_heading_of_the_first_level_is_the_title() {
    let html = b"<title>Ferry news: what you must know | River Post</title><meta property=og:title content='Ferry news: what you must know'>
        <article><h1>Council lets the old boat sail for one more summer, ferry men cheer</h1>
        <p>The council met on Tuesday evening to decide whether the old ferry should sail again this summer.</p></article>";
    let article = extract_from(html, "https://harbour.example/news/story");
    assert_eq!(
        article.title.expect("a title").value,
        "Council lets the old boat sail for one more summer, ferry men cheer"
    );
}

#[test]
fn what_the_description_repeats_is_the_article() {
    let article = read("second_opinion");
    has(&article, &["A lamp has fallen", "Divers will lift it"]);
    lacks(&article, &["The River Post", "travelling circus"]);
}
