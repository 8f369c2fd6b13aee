//! Which of several dates on a page is that of publication: one small page for
//! each rule, through the public surface.

use tidings_extract::{Options, Page, extract};

const TEXT: &str = "<p>Bread has been baked for some fourteen thousand years, and in every century the bakers
    have found that flour, water, salt and time are all that it takes to make a good loaf.</p>
    <p>The dough rests while the yeast eats its way through the sugar, and the gas that it leaves behind is
    caught by the gluten, which is why a loaf of wheat rises and a loaf of rye hardly does.</p>";

fn published(head: &str, top: &str, after: &str) -> Option<String> {
    let html = format!(
        "<html><head><title>How bread is baked</title>{head}</head><body>{top}<article>{TEXT}</article>{after}</body></html>"
    );
    let page = Page {
        html: html.as_bytes(),
        url: "https://ovens.example/how-bread-is-baked",
        charset: None,
        selectors: None,
        feed: None,
        now: "2026-11-15T12:00:00Z".parse().expect("a moment"),
    };
    extract(&page, &Options::default())
        .published
        .map(|when| when.value.to_string())
}

#[test]
fn the_date_of_the_day_above_the_headline_is_not_that_of_the_article() {
    let menu = "<div>Rye</div><div>Wheat</div><div>Ovens</div><div>Salt</div><div>Yeast</div>";
    let top = format!(
        "<div class=date>November 14, 2026</div>{menu}<h1>How bread is baked</h1><div>02.03.2026</div>"
    );
    assert_eq!(published("", &top, "").as_deref(), Some("2026-03-02"));
    // Without another it is better than none.
    let top = format!("<div class=date>November 14, 2026</div>{menu}<h1>How bread is baked</h1>");
    assert_eq!(published("", &top, "").as_deref(), Some("2026-11-14"));
}

#[test]
fn an_excerpt_in_the_head_of_the_page_is_the_articles_own() {
    let top = "<section class=post-hero><h1>How bread is baked</h1><div class=post-excerpt><p>All about it.</p><div>March 2, 2026</div></div></section>";
    assert_eq!(published("", top, "").as_deref(), Some("2026-03-02"));
    let related =
        "<div class=related-posts><div>How rye is baked</div><div>March 2, 2026</div></div>";
    assert_eq!(published("", "", related), None);
}

#[test]
fn a_midnight_gives_way_to_a_moment_nearby() {
    let head = |page: &str| {
        format!(
            "<script type='application/ld+json'>[{{\"@type\":\"Article\",\"headline\":\"Bread\",\"datePublished\":\"2026-03-01T00:00:00+0000\"}},
            {{\"@type\":\"WebPage\",\"datePublished\":\"{page}\"}}]</script>"
        )
    };
    for (page, expected) in [
        ("2026-03-02T04:39:05+00:00", "2026-03-02T04:39:05Z"),
        ("2026-03-12T04:39:05+00:00", "2026-03-01T00:00:00Z"),
        ("2026-03-02T00:00:00+00:00", "2026-03-01T00:00:00Z"),
    ] {
        let found = published(&head(page), "", "");
        assert_eq!(found.as_deref(), Some(expected), "{page}");
    }
}

#[test]
fn the_data_of_the_page_counts_if_it_names_one_day() {
    let data = |more: &str| {
        format!(
            "<script>self.data = {{\"post\":{{\"publishedAt\":\"2026-03-02T10:00:00Z\"}}{more}}}</script>"
        )
    };
    assert_eq!(published("", "", &data("")).as_deref(), Some("2026-03-02"));
    let other = ",\"next\":{\"publishedAt\":\"2026-03-05T10:00:00Z\"}";
    assert_eq!(published("", "", &data(other)), None);
    let broken = ",\"next\":{\"publishedAt\":\"ä€ö\"}";
    assert_eq!(
        published("", "", &data(broken)).as_deref(),
        Some("2026-03-02")
    );
}

#[test]
fn the_page_shows_which_number_is_the_month() {
    let head = "<meta name='article:published_time' content='03-09-2026'>";
    for (top, expected) in [
        ("", "2026-09-03"),
        (
            "<h1>How bread is baked</h1><div>Published March 9, 2026</div>",
            "2026-03-09",
        ),
        // Another day is no other reading.
        (
            "<h1>How bread is baked</h1><div>Published March 12, 2026</div>",
            "2026-09-03",
        ),
    ] {
        assert_eq!(published(head, top, "").as_deref(), Some(expected), "{top}");
    }
    let top = "<h1>How bread is baked</h1><div>Published March 9, 2026</div>";
    for clear in ["2026-09-03", "September 3, 2026"] {
        let head = format!("<meta name='article:published_time' content='{clear}'>");
        let found = published(&head, top, "");
        assert_eq!(found.as_deref(), Some("2026-09-03"), "{clear}");
    }
}
