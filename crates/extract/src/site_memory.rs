//! What a site repeats: hashes of the blocks of its recent pages. A block that
//! several pages have is not what one of them is about. A plain value, small
//! and capped; the caller keeps one for each host and stores it as it likes.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::article::Article;
use crate::blocks::{Block, Kind};
use crate::roles::Roles;

/// Pages that are remembered; the oldest go first.
const PAGES: usize = 24;
/// Blocks of a page that are remembered: half of them its first, half its last,
/// because that is where sites put what they repeat.
const BLOCKS: usize = 96;
/// On so many pages, the one at hand among them, a block is the site's.
const SEVERAL: usize = 3;
/// Shorter lines ("Conclusion", "Step 1") come again without being boilerplate.
const SHORTEST: usize = 25;

/// What is remembered of the recent pages of one site. At most 10 KB.
///
/// ```
/// use tidings_extract::{Options, Page, SiteMemory, extract};
///
/// let now = "2026-01-01T00:00:00Z".parse().unwrap();
/// let mut memory = SiteMemory::default();
/// for (url, html) in [("https://daily.example/bread", "<p>…</p>"), ("https://daily.example/salt", "<p>…</p>")] {
///     let page = Page { html: html.as_bytes(), url, charset: None, selectors: None, feed: None, now };
///     let article = extract(&page, &Options { site: Some(&memory), ..Options::default() });
///     memory.learn(url, &article);
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct SiteMemory {
    /// Oldest first.
    pages: VecDeque<Seen>,
}

/// What is remembered of one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    /// Hash of its address.
    page: u32,
    /// Hashes of its blocks, sorted.
    blocks: Vec<u32>,
}

/// As it was stored; the caps hold whatever stands there.
#[derive(Deserialize)]
struct Stored {
    pages: VecDeque<Seen>,
}

impl From<Stored> for SiteMemory {
    fn from(stored: Stored) -> Self {
        let mut memory = Self::default();
        for seen in stored.pages {
            memory.remember(seen.page, seen.blocks);
        }
        memory
    }
}

impl SiteMemory {
    /// Remembers what the page of an extracted article could share with others.
    /// Only articles that were extracted with a memory in the options carry that.
    pub fn learn(&mut self, url: &str, article: &Article) {
        self.remember(address(url), article.prints.clone());
    }

    /// How many pages are remembered.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    fn remember(&mut self, page: u32, mut blocks: Vec<u32>) {
        if blocks.len() > BLOCKS {
            blocks.drain(BLOCKS / 2..blocks.len() - BLOCKS / 2);
        }
        blocks.sort_unstable();
        blocks.dedup();
        // Fetched again, or under another address, a page is still one page.
        self.pages
            .retain(|seen| seen.page != page && seen.blocks != blocks);
        if !blocks.is_empty() {
            self.pages.push_back(Seen { page, blocks });
        }
        while self.pages.len() > PAGES {
            self.pages.pop_front();
        }
    }

    /// For every block whether enough other pages of the site have it, too.
    pub(crate) fn known(&self, url: &str, blocks: &[Block]) -> Vec<bool> {
        let page = address(url);
        let others = || self.pages.iter().filter(|seen| seen.page != page);
        if others().count() + 1 < SEVERAL {
            return Vec::new();
        }
        let is_known = |block: &Block| {
            print_of(block).is_some_and(|print| {
                others()
                    .filter(|seen| seen.blocks.binary_search(&print).is_ok())
                    .nth(SEVERAL - 2)
                    .is_some()
            })
        };
        blocks.iter().map(is_known).collect()
    }
}

/// The hash of a block that a site may repeat; none for what comes again in
/// every text: headings, cells of tables, short lines.
pub(crate) fn print_of(block: &Block) -> Option<u32> {
    let may_repeat = matches!(block.kind, Kind::Paragraph | Kind::Bare | Kind::Item)
        && block.size >= SHORTEST
        && !block.roles.has(Roles::NAV);
    may_repeat.then(|| hash(&block.text))
}

/// The page that an address names: without scheme, `www.`, fragment and last slash.
fn address(url: &str) -> u32 {
    let url = url.split('#').next().unwrap_or(url);
    let url = url.split_once("://").map_or(url, |(_, rest)| rest);
    let url = url.strip_prefix("www.").unwrap_or(url);
    fold(url.trim_end_matches('/').bytes())
}

/// Letters in lower case and digits as one, so that "3 min" is "5 min".
fn hash(text: &str) -> u32 {
    let mut hash = Fnv::default();
    for c in text.chars().filter(|c| c.is_alphanumeric()) {
        if c.is_numeric() {
            hash.add(b'0');
        } else if c.is_ascii() {
            hash.add(c.to_ascii_lowercase() as u8);
        } else {
            for lower in c.to_lowercase() {
                u32::from(lower)
                    .to_le_bytes()
                    .into_iter()
                    .for_each(|byte| hash.add(byte));
            }
        }
    }
    hash.value()
}

fn fold(bytes: impl Iterator<Item = u8>) -> u32 {
    let mut hash = Fnv::default();
    bytes.for_each(|byte| hash.add(byte));
    hash.value()
}

/// FNV-1a: the same on every machine and in every version, unlike those of `std`.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }

    fn value(&self) -> u32 {
        (self.0 ^ (self.0 >> 32)) as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BLOCKS, PAGES, SiteMemory, address, hash};

    #[test]
    fn a_page_is_one_page_however_it_is_written() {
        for url in [
            "http://daily.example/bread",
            "https://www.daily.example/bread/",
            "https://daily.example/bread#crust",
        ] {
            assert_eq!(
                address(url),
                address("https://daily.example/bread"),
                "{url}"
            );
        }
        assert_ne!(
            address("https://daily.example/?id=1"),
            address("https://daily.example/?id=2")
        );
    }

    #[test]
    fn numbers_and_case_make_no_difference() {
        assert_eq!(hash("Read in 3 minutes"), hash("read in 5 Minutes!"));
        assert_ne!(hash("Read in minutes"), hash("Read in hours"));
        assert_eq!(hash("ÄPFEL"), hash("äpfel"));
    }

    #[test]
    fn the_same_article_under_another_address_is_the_same_page() {
        let mut memory = SiteMemory::default();
        memory.remember(1, (0..30).collect());
        memory.remember(2, (0..30).collect());
        assert_eq!(memory.pages(), 1);
        // What they have in common does not make two pages one.
        memory.remember(3, (25..60).collect());
        assert_eq!(memory.pages(), 2);
    }

    #[test]
    fn the_ends_of_a_long_page_are_remembered() {
        let mut memory = SiteMemory::default();
        memory.remember(1, (0..1000).collect());
        let blocks = &memory.pages[0].blocks;
        assert_eq!(blocks.len(), BLOCKS);
        assert!(blocks.contains(&0) && blocks.contains(&999) && !blocks.contains(&500));
    }

    proptest! {
        #[test]
        fn memory_is_bounded_and_survives_storage(
            pages in proptest::collection::vec((0_u32..40, proptest::collection::vec(0_u32..5000, 0..300)), 0..80),
        ) {
            let mut memory = SiteMemory::default();
            for (page, blocks) in pages {
                memory.remember(page, blocks);
                prop_assert!(memory.pages.len() <= PAGES);
                prop_assert!(memory.pages.iter().all(|seen| seen.blocks.len() <= BLOCKS));
                let same = memory.pages.iter().filter(|seen| seen.page == page).count();
                prop_assert!(same <= 1);
            }
            let stored = serde_json::to_string(&memory).unwrap();
            prop_assert!(stored.len() < 40_000);
            let again: SiteMemory = serde_json::from_str(&stored).unwrap();
            prop_assert_eq!(again, memory);
        }
    }

    #[test]
    fn what_was_stored_by_others_is_capped_too() {
        let pages: Vec<String> = (0..100)
            .map(|page| {
                let blocks: Vec<u32> = (page * 500..page * 500 + 400).collect();
                format!("{{\"page\":{page},\"blocks\":{blocks:?}}}")
            })
            .collect();
        let stored = format!("{{\"pages\":[{}]}}", pages.join(","));
        let memory: SiteMemory = serde_json::from_str(&stored).unwrap();
        assert_eq!(memory.pages(), PAGES);
        assert!(memory.pages.iter().all(|seen| seen.blocks.len() <= BLOCKS));
    }
}
