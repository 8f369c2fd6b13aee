//! Any bytes, with and without hints: no panic, and what is listed as an item
//! can be turned into text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings_feed::{Hints, parse};
use url::Url;

fuzz_target!(|bytes: &[u8]| {
    let url = Url::parse("https://example.com/feed.xml").ok();
    let now = jiff::Timestamp::from_second(1_800_000_000).ok();
    for hints in [
        Hints::default(),
        Hints {
            content_type: Some("text/xml; charset=windows-1251"),
            url: url.as_ref(),
            now,
            max_bytes: 1 << 20,
        },
    ] {
        if let Ok(feed) = parse(bytes, &hints) {
            for item in &feed.items {
                for markup in [&item.summary, &item.content].into_iter().flatten() {
                    assert!(!markup.text().contains('\0'));
                }
            }
        }
    }
});
