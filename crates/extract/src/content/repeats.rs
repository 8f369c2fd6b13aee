//! Text that a page carries twice: variants for phones and desktops, and the
//! whole article once more for machines; the first is kept. And text that the
//! site carries on several pages, which is not what this one is about.

use std::collections::{HashMap, HashSet};

use super::{Judge, Verdict};
use crate::near_duplicate::word_hashes;

/// Shorter blocks repeat nothing by themselves.
const MIN_REPEATED_SIZE: usize = 40;
/// Blocks of a run that is a copy, or its size.
const MIN_RUN: usize = 3;
const MIN_RUN_SIZE: usize = 600;
/// A paragraph is never repeated with good reason.
const MIN_PARAGRAPH_SIZE: usize = 160;
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

    /// The same text again: variants of a page for phones and desktops. A variant
    /// is a run in the same order; single lines come again with good reason.
    pub(super) fn drop_repeated(&mut self) {
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut total = 0;
        // Long blocks in order: their index, and the place of the first with this text.
        let mut long: Vec<(usize, Option<usize>)> = Vec::new();
        for index in self.kept() {
            let block = &self.blocks.list[index];
            total += block.size;
            if block.size >= MIN_REPEATED_SIZE {
                let place = long.len();
                let first = *places.entry(block.text.as_str()).or_insert(place);
                long.push((index, (first != place).then_some(first)));
            }
        }
        let copies: Vec<usize> = long
            .iter()
            .filter(|(_, first)| first.is_some())
            .map(|(index, _)| *index)
            .collect();
        let size_of = |list: &[usize]| -> usize {
            let sizes = list.iter().map(|index| self.blocks.list[*index].size);
            sizes.sum()
        };
        let originals: HashSet<usize> = long.iter().filter_map(|(_, first)| *first).collect();
        // Nearly everything is there twice, and not more often.
        let is_double = size_of(&copies) * 5 > total * 2 && copies.len() * 2 < originals.len() * 3;
        let repeated = match is_double {
            true => copies,
            false => self.repeated_runs(&long),
        };
        if size_of(&repeated) * 4 < total {
            return;
        }
        for pair in repeated.windows(2) {
            // What is short goes with the long ones around it.
            let between = pair[0] + 1..pair[1];
            if between.len() < 8
                && between
                    .clone()
                    .all(|index| self.blocks.list[index].size < MIN_REPEATED_SIZE)
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

    /// The blocks that are copies: in a run that follows its originals block by
    /// block, right behind its original, or so long that nobody says it twice.
    fn repeated_runs(&self, long: &[(usize, Option<usize>)]) -> Vec<usize> {
        let mut repeated = Vec::new();
        let mut at = 0;
        while at < long.len() {
            let Some(first) = long[at].1 else {
                at += 1;
                continue;
            };
            let length = long[at..]
                .iter()
                .enumerate()
                .take_while(|(step, (_, original))| *original == Some(first + step))
                .count();
            let run = &long[at..at + length];
            let size: usize = run
                .iter()
                .map(|(index, _)| self.blocks.list[*index].size)
                .sum();
            let is_copy = length >= MIN_RUN || size >= MIN_RUN_SIZE || first + 1 == at;
            let copies = run
                .iter()
                .map(|(index, _)| *index)
                .filter(|index| is_copy || self.blocks.list[*index].size >= MIN_PARAGRAPH_SIZE);
            repeated.extend(copies);
            at += length;
        }
        repeated
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
