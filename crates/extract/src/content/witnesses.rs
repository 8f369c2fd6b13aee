//! A second opinion on where the article is: the text whose words agree with what
//! the head of the page, its structured data and the feed say about it. Asked
//! only if the text that was found agrees with none of them.

use std::collections::HashSet;

use super::{Content, Verdict};
use crate::blocks::Blocks;
use crate::html::{Document, NodeId, Tag};
use crate::near_duplicate::word_hashes;
use crate::roles::Roles;

/// Words in a row that two texts must have in common to count.
const RUN: usize = 4;
/// Fewer runs say nothing.
const MIN_RUNS: usize = 5;
/// Runs of one witness that are compared.
const MAX_RUNS: usize = 120;
/// A text with less than this share of the runs agrees with no witness.
const MIN_AGREEMENT: f32 = 0.15;
/// A place that has this share of them is where the article is.
const MIN_PLACE_AGREEMENT: f32 = 0.5;
/// The place of the article holds this share of what was found on the page.
const MIN_PLACE_SHARE: f32 = 0.8;

/// The runs of words of each witness that says enough.
pub(super) fn runs_of(witnesses: &[String]) -> Vec<HashSet<u64>> {
    witnesses
        .iter()
        .map(|text| runs(text).take(MAX_RUNS).collect::<HashSet<u64>>())
        .filter(|runs| runs.len() >= MIN_RUNS)
        .collect()
}

fn runs(text: &str) -> impl Iterator<Item = u64> {
    let words = word_hashes(text);
    let count = words.len().saturating_sub(RUN - 1);
    (0..count).map(move |at| {
        words[at..at + RUN]
            .iter()
            .fold(0, |hash: u64, word| hash.rotate_left(9) ^ word)
    })
}

/// Whether what was found agrees with a witness.
pub(super) fn agree(witnesses: &[HashSet<u64>], content: &Content, blocks: &Blocks) -> bool {
    let kept = content.verdicts.iter().zip(&blocks.list);
    let found: HashSet<u64> = kept
        .filter(|(verdict, _)| **verdict == Verdict::Kept)
        .flat_map(|(_, block)| runs(&block.text))
        .collect();
    witnesses
        .iter()
        .any(|runs| share(runs, &found) >= MIN_AGREEMENT)
}

fn share(runs: &HashSet<u64>, found: &HashSet<u64>) -> f32 {
    runs.intersection(found).count() as f32 / runs.len().max(1) as f32
}

/// The element that holds what a witness says: the innermost with nearly all of
/// it, widened to what calls itself the article or to the element around it.
pub(super) fn place(
    witnesses: &[HashSet<u64>],
    document: &Document<'_>,
    blocks: &Blocks,
) -> Option<NodeId> {
    let elsewhere = Roles::NAV | Roles::FOOTER | Roles::COMMENTS | Roles::CONSENT | Roles::RELATED;
    let found: Vec<(usize, HashSet<u64>)> = blocks
        .list
        .iter()
        .enumerate()
        .filter(|(_, block)| !block.roles.has(elsewhere) && !block.in_card)
        .map(|(index, block)| (index, runs(&block.text).collect()))
        .collect();
    let best = witnesses
        .iter()
        .map(|witness| {
            let counts: Vec<(usize, usize)> = found
                .iter()
                .map(|(index, runs)| (*index, witness.intersection(runs).count()))
                .filter(|(_, count)| *count > 0)
                .collect();
            let sum: usize = counts.iter().map(|(_, count)| count).sum();
            (sum as f32 / witness.len() as f32, sum, counts)
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (agreement, sum, counts) = best;
    if agreement < MIN_PLACE_AGREEMENT {
        return None;
    }
    let (first, _) = counts.iter().max_by_key(|(_, count)| *count)?;
    let holds = |node: NodeId| -> usize {
        counts
            .iter()
            .filter(|(index, _)| (node..document.end(node)).contains(&blocks.list[*index].first))
            .map(|(_, count)| count)
            .sum()
    };
    let mut around = document
        .ancestors(blocks.list[*first].node)
        .filter(|node| document.tag(*node).is_block() || document.tag(*node) == Tag::Other);
    let place = around.find(|node| holds(*node) as f32 >= sum as f32 * MIN_PLACE_SHARE)?;
    let claims = Roles::BODY | Roles::ARTICLE | Roles::MAIN;
    document
        .ancestors(place)
        .find(|node| blocks.own_roles[*node].has(claims))
        .or_else(|| {
            let parent = document.parent(place);
            Some(match document.tag(parent) {
                Tag::Body | Tag::Html => place,
                _ if parent == 0 => place,
                _ => parent,
            })
        })
}
