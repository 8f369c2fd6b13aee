//! What a site repeats: hashes of the blocks of its recent pages. A block that
//! several pages have is not what one of them is about. A plain value, small
//! and capped; the caller keeps one for each host and stores it as it likes.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::article::Article;
use crate::blocks::{Block, Kind};
use crate::near_duplicate::mix;
use crate::roles::Roles;

/// Pages that are remembered; the oldest are dropped first.
const MAX_PAGES: usize = 24;
/// Blocks of a page that are remembered: half of them its first, half its last,
/// because that is where sites put what they repeat.
const MAX_BLOCKS: usize = 96;
/// Pages, this one included, from which on a block is boilerplate of the site.
const MIN_PAGES: usize = 3;
/// Shorter lines ("Conclusion", "Step 1") recur without being boilerplate.
const MIN_BLOCK_SIZE: usize = 25;

/// What is remembered of the recent pages of one site: at most 10 KB of hashes,
/// 30 KB as JSON. Extraction only reads it; the caller decides what is learned.
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
    /// On how many of the pages each block is, sorted; computed from the pages.
    #[serde(skip)]
    counts: Vec<(u32, u8)>,
}

/// What is remembered of one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    /// Hash of its address.
    page: u32,
    /// Hashes of its blocks, sorted.
    blocks: Vec<u32>,
}

/// The stored form; the caps are applied again when it is read.
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
        memory.count();
        memory
    }
}

impl SiteMemory {
    /// Remembers what the page of an extracted article could share with others.
    /// Only articles that were extracted with a memory in the options carry that.
    pub fn learn(&mut self, url: &str, article: &Article) {
        self.remember(address(url), article.prints.clone());
        self.count();
    }

    /// How many pages are remembered.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    fn remember(&mut self, page: u32, mut blocks: Vec<u32>) {
        if blocks.len() > MAX_BLOCKS {
            blocks.drain(MAX_BLOCKS / 2..blocks.len() - MAX_BLOCKS / 2);
        }
        blocks.sort_unstable();
        blocks.dedup();
        // Fetched again, or under another address, a page is still one page.
        self.pages
            .retain(|seen| seen.page != page && seen.blocks != blocks);
        if !blocks.is_empty() {
            self.pages.push_back(Seen { page, blocks });
        }
        while self.pages.len() > MAX_PAGES {
            self.pages.pop_front();
        }
    }

    fn count(&mut self) {
        let mut all: Vec<u32> = self
            .pages
            .iter()
            .flat_map(|seen| seen.blocks.iter().copied())
            .collect();
        all.sort_unstable();
        self.counts.clear();
        for block in all {
            match self.counts.last_mut() {
                Some((last, count)) if *last == block => *count += 1,
                _ => self.counts.push((block, 1)),
            }
        }
    }

    /// For every block whether enough other pages of the site have it, too.
    /// An earlier fetch of the page itself does not count.
    pub(crate) fn known(&self, url: &str, prints: &[Option<u32>]) -> Vec<bool> {
        let page = address(url);
        let before = self.pages.iter().find(|seen| seen.page == page);
        let others = |print: u32| {
            let found = self
                .counts
                .binary_search_by_key(&print, |(block, _)| *block);
            let all = found.map_or(0, |at| usize::from(self.counts[at].1));
            let own = before.is_some_and(|seen| seen.blocks.binary_search(&print).is_ok());
            all - usize::from(own)
        };
        prints
            .iter()
            .map(|print| print.is_some_and(|print| others(print) + 1 >= MIN_PAGES))
            .collect()
    }
}

/// The hash of a block that a site may repeat; none for what recurs in
/// every text: headings, cells of tables, short lines.
pub(crate) fn print_of(block: &Block) -> Option<u32> {
    let may_repeat = matches!(block.kind, Kind::Paragraph | Kind::Bare | Kind::Item)
        && block.size >= MIN_BLOCK_SIZE
        && !block.roles.has(Roles::NAV);
    may_repeat.then(|| hash(&block.text, fold_digits))
}

/// The page that an address names: without scheme, `www.`, fragment and last slash.
fn address(url: &str) -> u32 {
    let url = url.split('#').next().unwrap_or(url);
    let url = url.split_once("://").map_or(url, |(_, rest)| rest);
    let url = url.strip_prefix("www.").unwrap_or(url);
    hash(url.trim_end_matches('/'), |bytes| bytes)
}

/// A hash that is the same on every machine and in every version, unlike those
/// of `std`; eight bytes at a time, after they were folded.
fn hash(text: &str, fold: impl Fn(u64) -> u64) -> u32 {
    let (chunks, rest) = text.as_bytes().as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let mut hash = text.len() as u64;
    for chunk in chunks.iter().chain(std::iter::once(&last)) {
        hash = mix(hash ^ fold(u64::from_le_bytes(*chunk)));
    }
    (hash >> 32) as u32
}

/// Folds all digits, so that "3 min" equals "5 min": in the bytes that start with a
/// 3 (digits, and a few signs in ASCII) the rest is cleared.
fn fold_digits(bytes: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let differs = (bytes & (0xf0 * EACH)) ^ (0x30 * EACH);
    // The upper bit of each byte that is zero in `differs`.
    let digits = !(((differs & (0x7f * EACH)) + 0x7f * EACH) | differs) & (0x80 * EACH);
    bytes & !((digits >> 7) * 0x0f)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MAX_BLOCKS, MAX_PAGES, SiteMemory, address, fold_digits, hash};

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
    fn numbers_make_no_difference() {
        let hash = |text| hash(text, fold_digits);
        assert_eq!(hash("Read it in 3 minutes"), hash("Read it in 5 minutes"));
        assert_eq!(hash("Für 30 € im Jahr 2026"), hash("Für 49 € im Jahr 2031"));
        assert_ne!(hash("Read it in 3 minutes"), hash("Read it in 3 moments"));
        assert_ne!(hash("Read it"), hash("Read it\0"));
    }

    #[test]
    fn a_block_is_counted_once_per_page() {
        let mut memory = SiteMemory::default();
        let prints = [Some(7), Some(8), None];
        for (page, blocks) in [(1, vec![7, 7, 8]), (2, vec![7]), (2, vec![7, 9])] {
            memory.remember(page, blocks);
            memory.count();
        }
        assert_eq!(
            memory.known("https://daily.example/new", &prints),
            [true, false, false]
        );
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
        assert_eq!(blocks.len(), MAX_BLOCKS);
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
                prop_assert!(memory.pages.len() <= MAX_PAGES);
                prop_assert!(memory.pages.iter().all(|seen| seen.blocks.len() <= MAX_BLOCKS));
                let same = memory.pages.iter().filter(|seen| seen.page == page).count();
                prop_assert!(same <= 1);
            }
            memory.count();
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
        assert_eq!(memory.pages(), MAX_PAGES);
        assert!(
            memory
                .pages
                .iter()
                .all(|seen| seen.blocks.len() <= MAX_BLOCKS)
        );
    }
}
