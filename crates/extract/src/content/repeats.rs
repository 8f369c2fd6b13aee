//! Text that a page carries twice: variants for phones and desktops, and the
//! whole article once more for machines; the first is kept. And text that the
//! site carries on several pages, which is not what this one is about.

use std::collections::HashSet;

use super::{Judge, Verdict};
use crate::near_duplicate::word_hashes;

/// A copy of a whole article is at least this long.
const MIN_COPY_SIZE: usize = 1_500;

impl Judge<'_, '_> {
    /// What other pages of the site have, too, unless that is most of the text:
    /// then it is the same article under another address.
    pub(super) fn drop_known(&mut self, known: &[bool]) {
        if known.is_empty() {
            return;
        }
        let (mut total, mut common) = (0, 0);
        for index in self.kept() {
            let size = self.blocks.list[index].size;
            total += size;
            common += if known[index] { size } else { 0 };
        }
        if common * 2 > total {
            return;
        }
        for index in self
            .kept()
            .filter(|index| known[*index])
            .collect::<Vec<_>>()
        {
            self.verdicts[index] = Verdict::OnOtherPages;
        }
    }

    /// The same text again: variants of a page for phones and desktops.
    pub(super) fn drop_repeated(&mut self) {
        let mut seen = HashSet::new();
        let mut repeated = Vec::new();
        let (mut total, mut again) = (0, 0);
        for index in self.kept() {
            let block = &self.blocks.list[index];
            total += block.size;
            if block.size >= 40 && !seen.insert(block.text.as_str()) {
                repeated.push(index);
                again += block.size;
            }
        }
        // Single lines do come twice in an article; whole sections don't.
        if again * 4 < total {
            return;
        }
        for pair in repeated.windows(2) {
            // What is short goes with the long ones around it.
            let between = pair[0] + 1..pair[1];
            if between.len() < 8
                && between
                    .clone()
                    .all(|index| self.blocks.list[index].size < 40)
            {
                for index in between
                    .filter(|index| self.verdicts[*index] == Verdict::Kept)
                    .collect::<Vec<_>>()
                {
                    self.verdicts[index] = Verdict::Repeated;
                }
            }
        }
        for index in repeated {
            self.verdicts[index] = Verdict::Repeated;
        }
    }

    /// The article once more in one piece: some sites add it as Markdown, for machines.
    pub(super) fn drop_copy(&mut self) {
        let Some(big) = self
            .kept()
            .max_by_key(|index| self.blocks.list[*index].size)
        else {
            return;
        };
        let text = &self.blocks.list[big].text;
        if self.blocks.list[big].size < MIN_COPY_SIZE {
            return;
        }
        let runs = |text: &str| -> HashSet<u64> {
            let words = word_hashes(text);
            words
                .windows(5)
                .map(|run| {
                    run.iter()
                        .fold(0, |hash: u64, word| hash.rotate_left(9) ^ word)
                })
                .collect()
        };
        let own = runs(text);
        let others: HashSet<u64> = self
            .kept()
            .filter(|index| *index != big)
            .flat_map(|index| runs(&self.blocks.list[index].text))
            .collect();
        if own.intersection(&others).count() * 10 > own.len() * 7 {
            self.verdicts[big] = Verdict::Repeated;
        }
    }
}
