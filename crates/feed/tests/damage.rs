//! Damage costs what it hits, never what stands before it: every fixture is
//! cut at twenty places and has bytes flipped, and the items before the place
//! stay as they were. Hostile documents end quickly and in bounds.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use tidings_feed::{Defects, Feed, Hints, Item, discovery, parse, sitemap};

fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut files: Vec<_> = files
        .map(|path| {
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                std::fs::read(path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

/// Fixtures in which the end of each item can be found byte by byte.
fn is_transparent(bytes: &[u8]) -> bool {
    bytes.is_ascii() && (ends(bytes).count() == parsed(bytes).map_or(0, |feed| feed.items.len()))
}

fn ends(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let text = std::str::from_utf8(bytes)
        .unwrap_or("")
        .to_ascii_lowercase();
    let find = |end: &str| {
        let found: Vec<usize> = text
            .match_indices(end)
            .map(|(at, _)| at + end.len())
            .collect();
        found
    };
    let mut all = [find("</item>"), find("</entry>")].concat();
    all.sort_unstable();
    all.into_iter()
}

fn parsed(bytes: &[u8]) -> Option<Feed> {
    parse(bytes, &Hints::default()).ok()
}

fn keys(items: &[Item]) -> Vec<(Option<String>, Option<String>)> {
    items
        .iter()
        .map(|item| (item.link.clone(), item.title.clone()))
        .collect()
}

/// The items that ended before the damage are still there, in order.
fn assert_kept(name: &str, whole: &[u8], damaged: &[u8], at: usize) {
    let kept = ends(whole).filter(|end| *end <= at).count();
    if kept == 0 {
        return;
    }
    let before = keys(&parsed(whole).unwrap().items);
    let after = parsed(damaged).unwrap_or_else(|| panic!("{name}: nothing left, damage at {at}"));
    let after = keys(&after.items);
    assert!(
        after.len() >= kept && before[..kept] == after[..kept],
        "{name}, damage at {at}: {:?} became {after:?}",
        &before[..kept]
    );
}

#[test]
fn a_cut_keeps_the_items_before_it() {
    let mut checked = 0;
    for (name, whole) in fixtures() {
        let transparent = is_transparent(&whole);
        for step in 0..=20 {
            let at = whole.len() * step / 20;
            let cut = &whole[..at];
            let _ = parsed(cut);
            if transparent {
                assert_kept(&name, &whole, cut, at);
                checked += 1;
            }
        }
    }
    assert!(checked > 500, "{checked}");
}

#[test]
fn a_cut_in_json_keeps_the_items_before_it() {
    let one = |n: usize| {
        format!("{{\"id\":\"{n}\",\"url\":\"https://a.example/{n}\",\"title\":\"{n}\"}}")
    };
    let items: Vec<String> = (0..20).map(one).collect();
    let head = "{\"version\":\"https://jsonfeed.org/version/1.1\",\"items\":[";
    let text = format!("{head}{}]}}", items.join(","));
    let mut end = head.len();
    for (n, item) in items.iter().enumerate() {
        end += item.len();
        for cut in end..end + item.len() {
            let Some(cut) = text.get(..cut) else { break };
            let feed = parsed(cut.as_bytes()).unwrap();
            assert!(feed.items.len() > n, "{cut}");
        }
        end += 1;
    }
}

#[test]
fn a_flipped_byte_keeps_the_items_before_it() {
    for (name, whole) in fixtures() {
        let transparent = is_transparent(&whole);
        for step in 0..40 {
            let at = whole.len() * step / 40;
            for flip in [0x01, 0x02, 0x10, 0x20, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] ^= flip;
                let _ = parsed(&damaged);
                if transparent && damaged[at] != 0 {
                    assert_kept(&name, &whole, &damaged, at);
                }
            }
        }
    }
}

/// Not timed: a parser that is not linear would not come back from these.
#[test]
fn hostile_documents_end() {
    let wrapped = |inside: String| format!("<rss><channel><item><title>x</title>{inside}");
    let laughs = "<!DOCTYPE rss [<!ENTITY a \"aaaaaaaaaa\">".to_owned()
        + &(0..30)
            .map(|n| format!("<!ENTITY b{n} \"&a;&a;&a;&a;\">"))
            .collect::<String>()
        + "]><rss><channel><item><title>&b29;</title></item></channel></rss>";
    for (what, text) in [
        ("entities", laughs),
        (
            "attributes",
            wrapped(
                (0..80_000).fold("<a".to_owned(), |text, n| text + &format!(" a{n}='1'")) + ">",
            ),
        ),
        (
            "namespaces",
            wrapped(
                (0..80_000).fold("<a".to_owned(), |text, n| {
                    text + &format!(" xmlns:a{n}='1'")
                }) + ">",
            ),
        ),
        ("depth", wrapped("<a>".repeat(200_000))),
        (
            "depth in a value",
            wrapped(format!("<description>{}", "<a>".repeat(200_000))),
        ),
        (
            "sections",
            wrapped("<description><![CDATA[".repeat(100_000)),
        ),
        ("comments", wrapped("<!--".repeat(100_000))),
        ("instructions", wrapped("<?x ".repeat(100_000))),
        ("quotes", wrapped("<a b='\" ".repeat(100_000))),
        ("open tags", wrapped("<a ".repeat(100_000))),
        ("ends", wrapped("</a>".repeat(200_000))),
        ("unclosed items", "<item>".repeat(100_000)),
        (
            "ampersands",
            wrapped(format!("<description>{}", "&".repeat(1_000_000))),
        ),
        ("bases", wrapped("<a xml:base='b/'>".repeat(500))),
        (
            "JSON depth",
            format!(
                "{{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[{}",
                "[".repeat(100_000)
            ),
        ),
        (
            "date",
            wrapped(format!("<pubDate>{}</pubDate>", "(".repeat(100_000))),
        ),
        (
            "script",
            wrapped(format!(
                "<description><![CDATA[<script>{}]]></description></item>",
                "</".repeat(500_000)
            )),
        ),
    ] {
        let items = parsed(text.as_bytes()).map_or(0, |feed| feed.items.len());
        assert!(items <= 100_000, "{what}");
        let _ = sitemap::parse(text.as_bytes(), &Hints::default());
        let url = "https://example.com/".parse().unwrap();
        let _ = discovery::candidates(Some(text.as_bytes()), &url, Some(&text));
    }
}

#[test]
fn a_hundred_thousand_items_are_read_one_by_one() {
    let mut text = "<rss><channel>".to_owned();
    for n in 0..100_000 {
        text += &format!("<item><title>{n}</title><link>https://a.example/{n}</link></item>");
    }
    let mut count = 0;
    let feed = tidings_feed::parse_each(text.as_bytes(), &Hints::default(), |item| {
        assert_eq!(item.title, Some(count.to_string()));
        count += 1;
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(count, 100_000);
    assert!(feed.unwrap().items.is_empty());

    let mut first = Vec::new();
    tidings_feed::parse_each(text.as_bytes(), &Hints::default(), |item| {
        first.push(item.title.unwrap());
        if first.len() == 3 {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    })
    .unwrap();
    assert_eq!(first, ["0", "1", "2"]);
}

fn assert_sound(text: &str, defects: &Defects) {
    for defect in defects {
        assert!(defect.offset <= text.len() && defect.line >= 1);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parsed(&bytes);
        let _ = sitemap::parse(&bytes, &Hints::default());
    }

    /// Made of the pieces that feeds are made of, in any order.
    #[test]
    fn any_markup_is_read_or_refused(pieces in proptest::collection::vec(
        prop_oneof![
            Just("<rss>"), Just("<channel>"), Just("<item>"), Just("</item>"), Just("<title>"),
            Just("</title>"), Just("<link href='"), Just("<link>"), Just("</link>"), Just("'>"),
            Just("\">"), Just("<![CDATA["), Just("]]>"), Just("<!--"), Just("-->"), Just("&amp;"),
            Just("&"), Just("<"), Just(">"), Just("text"), Just("\u{feff}"), Just("é"),
            Just("<feed xmlns='http://www.w3.org/2005/Atom'>"), Just("<entry>"), Just("</entry>"),
            Just("<content type='xhtml'>"), Just("</content>"), Just("<pubDate>"), Just("<?"),
            Just("<urlset>"), Just("<url>"), Just("<loc>"), Just("</loc>"), Just("https://a.example/"),
        ], 0..40)) {
        let text: String = pieces.concat();
        if let Some(feed) = parsed(text.as_bytes()) {
            assert_sound(&text, &feed.defects);
            for item in &feed.items {
                let titles = item.title.iter().chain(&item.link);
                prop_assert!(titles.into_iter().all(|text| !text.contains('\0')));
            }
        }
        let _ = sitemap::parse(text.as_bytes(), &Hints::default());
    }

    /// What is behind an item can't change it.
    #[test]
    fn items_do_not_depend_on_what_follows(junk in "[<>&a-z\"'/!\\[\\]-]{0,40}") {
        let feed = format!("<rss><channel><item><title>One</title><link>https://a.example/1</link></item>{junk}");
        let items = parsed(feed.as_bytes()).unwrap().items;
        prop_assert_eq!(items[0].title.as_deref(), Some("One"));
        prop_assert_eq!(items[0].link.as_deref(), Some("https://a.example/1"));
    }
}
