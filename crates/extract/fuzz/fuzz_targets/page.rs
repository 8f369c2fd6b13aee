//! Any bytes are a page: nothing panics, text is clean, and the same bytes give
//! the same article. The first byte chooses the options.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings_extract::{Method, Options, Page, Selector, Selectors, When, extract};

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, html)) = bytes.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(html);
    // Whatever a page can carry is also read on its own.
    let _ = When::parse(&text);
    let selectors = (mode & 1 == 1).then(|| {
        let line = text.lines().next().unwrap_or("");
        Selectors { body: Selector::parse(line).ok(), remove: Selector::parse("aside, .x > p").ok(), ..Selectors::default() }
    });
    let charset = [None, Some("utf-8"), Some("shift_jis"), Some("utf-16"), Some("x-nonsense")][usize::from(mode >> 1) % 5];
    let page = Page {
        html,
        url: "https://a.example/2026/01/02/story",
        charset,
        selectors: selectors.as_ref(),
        feed: None,
        now: jiff::Timestamp::from_second(1_790_000_000).expect("a moment"),
    };
    let options = Options { markdown: true, explain: mode & 0x80 != 0, ..Options::default() };
    let article = extract(&page, &options);
    assert!(!article.text.contains('\0'));
    assert_eq!(article.text.is_empty(), article.method == Method::Nothing, "{:?}", article.method);
    let again = extract(&page, &options);
    assert_eq!(article.text, again.text);
    assert_eq!(article.content_hash, again.content_hash);
});
