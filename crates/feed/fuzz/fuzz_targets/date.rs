//! Any text as a date: no panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings_feed::date;

fuzz_target!(|text: &str| {
    let _ = date::parse(text);
});
