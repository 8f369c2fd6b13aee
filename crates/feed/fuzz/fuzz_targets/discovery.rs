//! Any page and any robots.txt: no panic, and every candidate is absolute.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings_feed::discovery;
use url::Url;

fuzz_target!(|bytes: &[u8]| {
    let url = Url::parse("https://example.com/a/page.html").expect("a valid URL");
    let robots = String::from_utf8_lossy(bytes);
    for candidate in discovery::candidates(Some(bytes), &url, Some(&robots)) {
        assert!(candidate.url.starts_with("http"));
    }
});
