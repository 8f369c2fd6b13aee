//! The author when the head of the page names none: one small page for each
//! rule, through the public surface.

use tidings_extract::{Options, Page, extract};

fn authors(top: &str, after: &str) -> Vec<String> {
    let html = format!(
        "<html><head><title>How bread is baked</title></head><body><h1>How bread is baked</h1>{top}<article>
        <p>Bread has been baked for some fourteen thousand years, and in every century the bakers have found
        that flour, water, salt and time are all that it takes to make a good loaf.</p>
        <p>The dough rests while the yeast eats its way through the sugar, and the gas that it leaves behind is
        caught by the gluten, which is why a loaf of wheat rises and a loaf of rye hardly does.</p>{after}</article></body></html>"
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
        .authors
        .map(|authors| authors.value)
        .unwrap_or_default()
}

#[test]
fn a_name_beside_a_date_under_the_headline_is_a_byline() {
    let date = "<div>March 2, 2026</div>";
    assert_eq!(
        authors(&format!("<div>Maria Becker</div>{date}"), ""),
        ["Maria Becker"]
    );
    assert_eq!(
        authors(&format!("{date}<div>Maria Becker</div>"), ""),
        ["Maria Becker"]
    );
    // Without a date, or with more than a name, it can be anything.
    assert!(authors("<div>Maria Becker</div>", "").is_empty());
    assert!(
        authors(
            &format!("<div>Rye and wheat and salt and yeast</div>{date}"),
            ""
        )
        .is_empty()
    );
}

#[test]
fn a_sentence_may_say_who_wrote_it() {
    let sentence = "<p>This post was written by Maria Becker, baker in Ulm.</p>";
    assert_eq!(authors(sentence, ""), ["Maria Becker"]);
    assert_eq!(
        authors("<span>Written by:Maria Becker</span>", ""),
        ["Maria Becker"]
    );
}

#[test]
fn a_label_makes_a_name_of_what_stands_behind_it() {
    for (top, expected) in [
        ("<div>By</div><div>The Oven Team</div>", "The Oven Team"),
        ("<div>By</div><div>Yeastie</div>", "Yeastie"),
        (
            "<div><span>By</span><span>Maria Becker</span></div>",
            "Maria Becker",
        ),
    ] {
        assert_eq!(authors(top, ""), [expected], "{top}");
    }
    assert!(authors("<div>By</div><div>clicking you agree</div>", "").is_empty());
}

#[test]
fn the_address_of_an_author_makes_a_name_of_its_text() {
    for (link, expected) in [
        ("<a href=/author/yeastie/>Yeastie</a>", Some("Yeastie")),
        (
            "<a href=/authors/oven-staff>The Oven Team</a>",
            Some("The Oven Team"),
        ),
        ("<a href=/author/yeastie/>All posts</a>", None),
        ("<a href=/ovens/yeastie/>Yeastie</a>", None),
    ] {
        let found = authors(&format!("<div>{link}</div>"), "");
        assert_eq!(found.first().map(String::as_str), expected, "{link}");
    }
}

#[test]
fn a_link_beside_the_text_counts_if_there_is_no_other_name() {
    let aside = "<aside><a rel=author href=/profile/maria>Maria Becker</a></aside>";
    let other = "<aside><a rel=author href=/profile/tom>Tom Reyes</a></aside>";
    assert_eq!(authors(aside, ""), ["Maria Becker"]);
    assert_eq!(authors(aside, aside), ["Maria Becker"]);
    assert!(authors(aside, other).is_empty());
    assert!(authors(&format!("<nav>{aside}</nav>"), "").is_empty());
    assert_eq!(
        authors(other, "<a rel=author href=/profile/maria>Maria Becker</a>"),
        ["Maria Becker"]
    );
}

#[test]
fn a_box_about_the_author_may_say_it_at_length() {
    let bio = "<div class=author-bio>This post was written by Maria Becker, head of dough, salt and \
        everything else that a bakery in a small town needs</div>";
    assert_eq!(authors("", bio), ["Maria Becker"]);
}

#[test]
fn a_label_under_the_text_counts_if_there_is_one_name() {
    let far = "<p>Rye, wheat, salt, yeast and water, in this order, and then it is left alone.</p>"
        .repeat(45);
    let box_of = |name: &str| format!("<div>Written by</div><div>{name}</div>");
    let maria = box_of("Maria Becker");
    assert_eq!(authors("", &format!("{far}{maria}")), ["Maria Becker"]);
    assert!(authors("", &format!("{far}{}", box_of("Yeastie"))).is_empty());
    assert!(authors("", &format!("{far}{maria}{}", box_of("Tom Reyes"))).is_empty());
}

#[test]
fn a_login_gives_way_to_a_name_on_the_page() {
    let login = "<meta name=author content=andrew.k>";
    assert_eq!(authors(login, ""), ["andrew.k"]);
    assert_eq!(
        authors(
            &format!("{login}<div class=byline>By Maria Becker</div>"),
            ""
        ),
        ["Maria Becker"]
    );
}
