//! What belongs to the text of an article and what only stands beside it: one
//! small page for each rule, through the public surface.

use tidings_extract::{Article, Options, Page, extract};

/// An article of three long paragraphs with `inside` before the last one and
/// `after` behind it; `head` goes into the head of the page.
fn article(head: &str, inside: &str, after: &str) -> Article {
    let html = format!(
        "<html lang=en><head><title>How bread is baked</title>{head}</head><body>
        <nav><a href=/>Home</a> <a href=/bread>Bread</a></nav>
        <article><h1>How bread is baked</h1>
        <p>Bread has been baked for some fourteen thousand years, and in every century the bakers have found
        that flour, water, salt and time are all that it takes to make a good loaf.</p>
        <p>The dough rests while the yeast eats its way through the sugar, and the gas that it leaves behind
        is caught by the gluten, which is why a loaf of wheat rises and a loaf of rye hardly does.</p>
        {inside}
        <p>When the crust is dark and the bottom sounds hollow the bread is done, although every baker will
        tell you that the hardest part is to wait until it has cooled before it is cut.</p>
        {after}</article></body></html>"
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
}

#[test]
fn each_row_is_kept_or_left_out() {
    let site = "<meta property=og:site_name content='Ovens & Sons'>";
    for (name, head, inside, after, probe, kept) in [
        (
            "a postscript in italics is the author's own",
            "",
            "",
            "<p><em>P.S. If your oven has no thermometer, wait until flour on its floor turns brown.</em></p>",
            "flour on its floor",
            true,
        ),
        (
            "the last line is announced by the one before it",
            "",
            "",
            "<p>The recipe with all of its weights and times can be found here:</p><p>https://ovens.example/rye.pdf</p>",
            "rye.pdf",
            true,
        ),
        (
            "the last line is a signature",
            "",
            "",
            "<p>Maria, baker and mother</p>",
            "baker and mother",
            false,
        ),
        (
            "in italics, an author is introduced",
            "",
            "",
            "<p><em>Maria P. Becker is a baker in Ulm and has written three works about sourdough.</em></p>",
            "Maria P. Becker",
            false,
        ),
        (
            "a company speaks of itself in its article",
            site,
            "",
            "<p>Ovens &amp; Sons helps bakers to find the oven that fits their dough and their bakery.</p>",
            "fits their dough",
            true,
        ),
        (
            "a company is described under its article",
            site,
            "",
            "<p>Ovens &amp; Sons is a maker of ovens that was founded in 1911 and has two hundred employees.</p>",
            "founded in 1911",
            false,
        ),
        (
            "a list that is recommended, without links",
            "",
            "<p><b>Recommended loaves</b></p><ul><li>The long loaf</li><li>Rye at home</li><li>Salt and time</li></ul>",
            "",
            "Rye at home",
            true,
        ),
        (
            "a list of links that is recommended",
            "",
            "<p><b>Recommended posts</b></p><ul><li><a href=/a>The long loaf</a></li><li><a href=/b>Rye at home</a></li><li><a href=/c>Salt and time</a></li></ul>",
            "",
            "Rye at home",
            false,
        ),
        (
            "a bold line of a list is no heading",
            "",
            "<ul><li><b>Popular posts say so</b></li><li>Salt slows the yeast</li></ul><p>But nobody measured it.</p>",
            "",
            "But nobody measured it",
            true,
        ),
        (
            "a button that every entry has is no heading",
            "",
            "<div><p>Rye, with seeds.</p><span>Read more</span></div><div><p>Wheat, with nuts.</p><span>Read more</span></div><div><p>Oats, with milk.</p><span>Read more</span></div>",
            "",
            "Wheat, with nuts",
            true,
        ),
        (
            "the heading of an answer may be a button",
            "",
            "<button><h3>Why does rye hardly rise?</h3></button><p>It has little gluten, and what it has is weak, so that the gas is lost long before the loaf is baked.</p>",
            "",
            "Why does rye hardly rise?",
            true,
        ),
        (
            "the author of a quotation stands under it",
            "",
            "<figure><blockquote>Bread that is cut hot is bread that is wasted.</blockquote><figcaption>Maria Becker, baker in Ulm</figcaption></figure>",
            "",
            "baker in Ulm",
            true,
        ),
        (
            "under a picture stands what it shows",
            "",
            "<figure><img src=/a.jpg><figcaption>Maria Becker, baker in Ulm</figcaption></figure>",
            "",
            "baker in Ulm",
            false,
        ),
        (
            "a caption is known by a long name, too",
            "",
            "<div class='ArticleContent_ArticleContent__imageBlock_caption__AuqrJ'><p>A loaf by Maria</p></div>",
            "",
            "A loaf by Maria",
            false,
        ),
        (
            "an address is no sentence of the article",
            "",
            "",
            "<address><p>Ovens and Sons, 12 Mill Lane, third floor, 89073 Ulm, open from Monday to Saturday.</p></address>",
            "12 Mill Lane",
            false,
        ),
        (
            "names that were written together are known by their stems",
            "",
            "<div class=blog_contributorshortbio>Maria has baked bread in Ulm since she was ten years old.</div>",
            "",
            "since she was ten",
            false,
        ),
        (
            "a footnote is known by its number",
            "",
            "",
            "<p id=fn1>1. Guild of Bakers (2019). The history of rye in the south of the country.</p>",
            "Guild of Bakers",
            false,
        ),
        (
            "what is put after the content is not of it",
            "",
            "",
            "<div class=ads-after-content><p>Our mission is to keep the bread of this page free for all of its readers.</p></div>",
            "Our mission",
            false,
        ),
        (
            "a teaser that is one linked sentence",
            "",
            "<div class=teaser><p><a href=/rye>Learn how to bake rye bread without any yeast at all.</a></p></div>",
            "",
            "without any yeast",
            false,
        ),
    ] {
        let text = article(head, inside, after).text;
        assert!(text.contains("sounds hollow"), "{name}: {text}");
        assert_eq!(text.contains(probe), kept, "{name}: {text}");
    }
}

#[test]
fn a_run_of_invitations_behind_the_article_goes() {
    let run = "<p>Tell us your story: we collect what bakers know.</p>
        <p>This show is a member of the network of bakers.</p>
        <p>Join our list, it is free and always will be.</p>
        <p>The music was played by Troy, who bakes, too.</p>
        <p>Questions are welcome at desk@ovens.example at any time.</p>";
    let text = article("", "", run).text;
    assert!(text.ends_with("before it is cut."), "{text}");
    // One is the last word of the author.
    let one = "<p>Try it with rye next time, and let the dough rest for a day.</p>";
    assert!(article("", "", one).text.contains("Try it with rye"));
    // A text that is nothing else is the article.
    let steps = "<p>Get a bowl, and make it a large one.</p>".repeat(3)
        + "<p>Find a warm place for the dough to rest.</p>";
    let text = article("", &steps, "").text;
    assert!(
        text.contains("Get a bowl") && text.contains("Find a warm place"),
        "{text}"
    );
}
