//! Any bytes as a sitemap: no panic, and no more entries than allowed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings_feed::{Hints, sitemap};

fuzz_target!(|bytes: &[u8]| {
    let hints = Hints {
        max_bytes: 1 << 20,
        ..Hints::default()
    };
    if let Ok(sitemap) = sitemap::parse(bytes, &hints) {
        assert!(sitemap.entries.len() <= sitemap::MAX_ENTRIES);
    }
});
