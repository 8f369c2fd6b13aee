//! robots.txt as RFC 9309 and Google's published rules read it, row by row.

use std::time::Duration;

use tidings_net::{RobotsRules, Verdict};

use crate::url;

/// Files, and what each says of some paths: `+` allowed, `-` disallowed.
const FILES: &[(&str, &str, &[&str])] = &[
    ("an empty file", "", &["+/", "+/a?b=c"]),
    ("only comments", "# nothing\n#more", &["+/"]),
    ("no group", "Disallow: /", &["+/"]),
    (
        "all for everyone",
        "User-agent: *\nDisallow: /",
        &["-/", "-/a", "+/robots.txt"],
    ),
    (
        "nothing for everyone",
        "User-agent: *\nDisallow:",
        &["+/", "+/a"],
    ),
    (
        "an empty allow",
        "User-agent: *\nAllow:\nDisallow: /a",
        &["-/a", "+/b"],
    ),
    (
        "our group",
        "User-agent: Tidings\nDisallow: /a\nUser-agent: *\nDisallow: /b",
        &["-/a", "+/b"],
    ),
    (
        "our group, after everyone's",
        "User-agent: *\nDisallow: /b\nUser-agent: tidings\nDisallow: /a",
        &["-/a", "+/b"],
    ),
    (
        "our group without rules",
        "User-agent: *\nDisallow: /\nUser-agent: Tidings\n",
        &["+/a"],
    ),
    (
        "our group in capitals",
        "USER-AGENT: TIDINGS\nDISALLOW: /a",
        &["-/a"],
    ),
    (
        "our group with a version",
        "User-agent: Tidings/2.1\nDisallow: /a",
        &["-/a"],
    ),
    (
        "our group with words after it",
        "User-agent: Tidings crawler\nDisallow: /a",
        &["-/a"],
    ),
    (
        "a longer name is another's",
        "User-agent: TidingsBot\nDisallow: /a",
        &["+/a"],
    ),
    (
        "a shorter name is another's",
        "User-agent: Tid\nDisallow: /a",
        &["+/a"],
    ),
    (
        "a name in a name is another's",
        "User-agent: not-tidings\nDisallow: /a",
        &["+/a"],
    ),
    (
        "two groups of ours are one",
        "User-agent: Tidings\nDisallow: /a\n\nUser-agent: x\nDisallow: /c\n\nUser-agent: Tidings\nDisallow: /b",
        &["-/a", "-/b", "+/c"],
    ),
    (
        "one group for two",
        "User-agent: x\nUser-agent: Tidings\nDisallow: /a",
        &["-/a"],
    ),
    (
        "one group for us and everyone",
        "User-agent: *\nUser-agent: Tidings\nDisallow: /a",
        &["-/a"],
    ),
    (
        "a blank line does not end a group",
        "User-agent: Tidings\n\nDisallow: /a",
        &["-/a"],
    ),
    (
        "an unknown line does not end the names",
        "User-agent: x\nNoindex: /z\nUser-agent: Tidings\nDisallow: /a",
        &["-/a"],
    ),
    (
        "a sitemap does not end a group",
        "User-agent: *\nDisallow: /a\nSitemap: https://a.example/s.xml\nDisallow: /b",
        &["-/a", "-/b"],
    ),
    (
        "everyone, with words after it",
        "User-agent: * # all\nDisallow: /a",
        &["-/a"],
    ),
    (
        "a star in a name is nobody",
        "User-agent: *bot\nDisallow: /a",
        &["+/a"],
    ),
    (
        "prefix",
        "User-agent: *\nDisallow: /fish",
        &[
            "-/fish",
            "-/fish.html",
            "-/fish/salmon",
            "-/fishheads",
            "-/fish?id=1",
            "+/Fish",
            "+/catfish",
            "+/?id=fish",
        ],
    ),
    (
        "prefix and star",
        "User-agent: *\nDisallow: /fish*",
        &[
            "-/fish",
            "-/fish.html",
            "-/fishheads/yummy.html",
            "+/Fish.asp",
            "+/catfish",
        ],
    ),
    (
        "folder",
        "User-agent: *\nDisallow: /fish/",
        &[
            "-/fish/",
            "-/fish/?id=1",
            "-/fish/salmon.htm",
            "+/fish",
            "+/fish.html",
            "+/animals/fish/",
            "+/Fish/Salmon",
        ],
    ),
    (
        "suffix by star",
        "User-agent: *\nDisallow: /*.php",
        &[
            "-/index.php",
            "-/filename.php",
            "-/folder/filename.php?parameters",
            "-/folder/any.php.file.html",
            "-/filename.php/",
            "+/",
            "+/windows.PHP",
        ],
    ),
    (
        "suffix by dollar",
        "User-agent: *\nDisallow: /*.php$",
        &[
            "-/filename.php",
            "-/folder/filename.php",
            "+/filename.php?parameters",
            "+/filename.php/",
            "+/filename.php5",
            "+/windows.PHP",
        ],
    ),
    (
        "star in the middle",
        "User-agent: *\nDisallow: /fish*.php",
        &[
            "-/fish.php",
            "-/fishheads/catfish.php?parameters",
            "+/Fish.PHP",
        ],
    ),
    (
        "several stars",
        "User-agent: *\nDisallow: /a*b*c",
        &["-/abc", "-/axxbxxc", "-/a/b/c/d", "+/acb", "+/ab"],
    ),
    (
        "stars in a row",
        "User-agent: *\nDisallow: /a**b",
        &["-/ab", "-/axb", "+/a"],
    ),
    ("only a star", "User-agent: *\nDisallow: *", &["-/", "-/a"]),
    (
        "only a dollar",
        "User-agent: *\nDisallow: /$",
        &["-/", "+/a", "+/?a"],
    ),
    (
        "a dollar in the middle is a dollar",
        "User-agent: *\nDisallow: /a$b",
        &["-/a$b", "-/a$bc", "+/a"],
    ),
    (
        "the end must match as the last part",
        "User-agent: *\nDisallow: /*a*a$",
        &["-/aa", "-/xaxa", "+/a", "+/aab"],
    ),
    (
        "allow is longer",
        "User-agent: *\nDisallow: /folder\nAllow: /folder/page",
        &["+/folder/page", "-/folder/other"],
    ),
    (
        "disallow is longer",
        "User-agent: *\nAllow: /a\nDisallow: /a/b",
        &["+/a", "-/a/b"],
    ),
    (
        "equals, and allow wins",
        "User-agent: *\nDisallow: /folder\nAllow: /folder",
        &["+/folder/page"],
    ),
    (
        "the order does not matter",
        "User-agent: *\nAllow: /p\nDisallow: /",
        &["+/page", "-/other"],
    ),
    (
        "a longer star beats a shorter path",
        "User-agent: *\nAllow: /page\nDisallow: /*.htm",
        &["-/page.htm", "+/page.css"],
    ),
    (
        "a shorter star loses",
        "User-agent: *\nAllow: /page\nDisallow: /*.ph",
        &["+/page.php5"],
    ),
    (
        "the home page alone",
        "User-agent: *\nAllow: /$\nDisallow: /",
        &["+/", "-/page.htm"],
    ),
    (
        "path and query",
        "User-agent: *\nDisallow: /*?\nAllow: /*?$",
        &["-/?a", "-/a?b=1", "+/a", "+/a?"],
    ),
    (
        "a parameter",
        "User-agent: *\nDisallow: /*sessionid=",
        &["-/a?sessionid=1", "-/a?b=1&sessionid=2", "+/a?b=1"],
    ),
    (
        "unreserved escapes are letters",
        "User-agent: *\nDisallow: /foo/bar/%62%61%7A",
        &["-/foo/bar/baz", "-/foo/bar/%62az"],
    ),
    (
        "letters are unreserved escapes",
        "User-agent: *\nDisallow: /foo/bar/baz",
        &["-/foo/bar/%62%61%7A"],
    ),
    (
        "other escapes stay",
        "User-agent: *\nDisallow: /foo/bar?q=http%3A%2F%2Fx.example",
        &[
            "-/foo/bar?q=http%3A%2F%2Fx.example",
            "-/foo/bar?q=http%3a%2f%2fx.example",
            "+/foo/bar?q=http://x.example",
        ],
    ),
    (
        "bytes that are not ASCII are escapes",
        "User-agent: *\nDisallow: /foo/bar/ツ",
        &["-/foo/bar/%E3%83%84", "-/foo/bar/ツ"],
    ),
    (
        "escapes are bytes that are not ASCII",
        "User-agent: *\nDisallow: /foo/bar/%e3%83%84",
        &["-/foo/bar/ツ"],
    ),
    (
        "an escaped star is a star",
        "User-agent: *\nDisallow: /a%2Ab",
        &["-/a*b", "-/a%2ab", "+/axb"],
    ),
    (
        "an escaped dollar is a dollar",
        "User-agent: *\nDisallow: /a%24",
        &["-/a$", "-/a$b", "+/a"],
    ),
    (
        "a path without its slash",
        "User-agent: *\nDisallow: a",
        &["-/a", "+/b/a"],
    ),
    (
        "case matters in paths",
        "User-agent: *\nDisallow: /A",
        &["-/A", "+/a"],
    ),
    (
        "spaces around everything",
        "  User-agent :  *  \n\t Disallow\t:\t/a \t",
        &["-/a", "+/b"],
    ),
    (
        "a comment after a rule",
        "User-agent: *\nDisallow: /a # not here\nDisallow: /b#nor here",
        &["-/a", "-/b"],
    ),
    ("no colon", "User-agent *\nDisallow /a", &["-/a"]),
    (
        "common slips",
        "useragent: *\nDissallow: /a\ndisalow: /b",
        &["-/a", "-/b"],
    ),
    ("a BOM", "\u{feff}User-agent: *\nDisallow: /a", &["-/a"]),
    ("CRLF", "User-agent: *\r\nDisallow: /a\r\n", &["-/a"]),
    ("CR alone", "User-agent: *\rDisallow: /a\r", &["-/a"]),
    ("NUL", "User-agent: *\n\0Disallow: /a\0\n", &["-/a"]),
    (
        "a page instead of a file",
        "<!DOCTYPE html><html><body>User-agent: nobody</body></html>",
        &["+/"],
    ),
    (
        "an unfinished last line",
        "User-agent: *\nDisallow: /a\nDisall",
        &["-/a", "+/b"],
    ),
];

fn verdict(rules: &RobotsRules, path: &str) -> Verdict {
    rules.verdict(&url(&format!("https://a.example{path}")))
}

#[test]
fn files_are_read_as_the_standard_says() {
    let mut rows = 0;
    for (name, file, paths) in FILES {
        let rules = RobotsRules::parse(file.as_bytes(), "Tidings");
        for expected in *paths {
            let (sign, path) = expected.split_at(1);
            let is_allowed = verdict(&rules, path) == Verdict::Allowed;
            assert_eq!(is_allowed, sign == "+", "{name}: {path}");
            rows += 1;
        }
    }
    assert!(rows >= 80, "{rows} rows");
}

#[test]
fn a_verdict_names_its_rule() {
    let rules = RobotsRules::parse(
        b"User-agent: *\nDisallow: /a\nDisallow: /a/b  # why",
        "Tidings",
    );
    assert_eq!(
        verdict(&rules, "/a/b/c"),
        Verdict::Disallowed("Disallow: /a/b  # why".to_owned())
    );
}

#[test]
fn delays_are_honoured_and_clamped() {
    let rows = [
        ("5", Some(5.0), false),
        ("0.5", Some(0.5), false),
        ("0", Some(0.0), false),
        ("86400", Some(60.0), true),
        ("1e9", Some(60.0), true),
        ("inf", Some(60.0), true),
        ("-1", None, false),
        ("abc", None, false),
        ("NaN", None, false),
        ("", None, false),
    ];
    for (value, seconds, is_clamped) in rows {
        let file = format!(
            "User-agent: x\nCrawl-delay: 7\nUser-agent: *\nCrawl-delay: {value}\nDisallow: /a"
        );
        let rules = RobotsRules::parse(file.as_bytes(), "Tidings");
        assert_eq!(
            rules.crawl_delay(),
            seconds.map(Duration::from_secs_f64),
            "{value}"
        );
        assert_eq!(rules.is_delay_clamped, is_clamped, "{value}");
    }
}

#[test]
fn sitemaps_are_listed_wherever_they_stand() {
    let file = "Sitemap: https://a.example/1.xml\nUser-agent: x\nDisallow: /\nsitemap:https://a.example/2.xml\nSITE-MAP: /3.xml";
    let rules = RobotsRules::parse(file.as_bytes(), "Tidings");
    assert_eq!(
        rules.sitemaps,
        [
            "https://a.example/1.xml",
            "https://a.example/2.xml",
            "/3.xml"
        ]
    );
}

#[test]
fn half_a_mebibyte_is_read_and_no_more() {
    let filler = |bytes: usize| "# filler line\n".repeat(bytes / 14);
    let inside = format!("User-agent: *\n{}Disallow: /inside\n", filler(499_000));
    assert!(inside.len() < 500 * 1024);
    let file = format!("{inside}{}Disallow: /outside\n", filler(100_000));
    let rules = RobotsRules::parse(file.as_bytes(), "Tidings");
    assert_ne!(verdict(&rules, "/inside"), Verdict::Allowed);
    assert_eq!(verdict(&rules, "/outside"), Verdict::Allowed);
}

#[test]
fn noise_is_harmless() {
    let mut noise: Vec<u8> = (0..200_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    noise.extend_from_slice(b"\nUser-agent: *\nDisallow: /a\n");
    noise.extend_from_slice(&b"Disallow: /".repeat(50_000));
    let rules = RobotsRules::parse(&noise, "Tidings");
    assert_ne!(verdict(&rules, "/a"), Verdict::Allowed);
    let wide: Vec<u8> = "User-agent: *\nDisallow: /a"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    RobotsRules::parse(&wide, "Tidings");
}
