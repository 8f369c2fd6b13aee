//! Which blocks are the article: finds the element that holds it and judges
//! every block inside, with a reason for each; never changes a text.

mod clutter;
mod container;
mod headings;
mod invitations;
mod notices;
mod repeats;
mod rows;
mod tail;
mod thread;
mod witnesses;

use std::ops::Range;

use crate::blocks::{Block, Blocks, Kind};
use crate::html::{Document, NodeId};
use crate::page_clues::Layout;
use crate::roles::Roles;
use headings::aside;

/// Why a block is in the article or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Kept,
    /// Not inside the element that holds the article.
    Elsewhere,
    Role,
    Links,
    /// In a list of links, a box with a form, a row of teasers.
    Clutter,
    /// One of several blocks that are one link: a teaser.
    Card,
    Title,
    LooseHeading,
    /// Bylines, dates and the like before the first paragraph.
    Preamble,
    Tail,
    Repeated,
    /// A selector of the source takes it out.
    Removed,
    /// A disclaimer, a disclosure, a copyright line.
    Notice,
    /// Other pages of the site have it, too.
    OnOtherPages,
}

/// The blocks of the article.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) container: NodeId,
    pub(crate) verdicts: Vec<Verdict>,
}

/// Titles, names and repeated blocks known from elsewhere, to compare blocks with.
#[derive(Debug, Default)]
pub(crate) struct ContentEvidence {
    pub(crate) titles: Vec<String>,
    pub(crate) authors: Vec<String>,
    /// Names of the site.
    pub(crate) sites: Vec<String>,
    /// Blocks that other pages of the site have, too; empty if nothing is known.
    pub(crate) known: Vec<bool>,
    /// What others say about the text: its description, its body in the structured data.
    pub(crate) witnesses: Vec<String>,
    /// How the text is built.
    pub(crate) layout: Layout,
    /// The page declares itself an article.
    pub(crate) declares_article: bool,
}

/// Finds the article. If what claims to stand beside it is nearly all there is,
/// the claims are not believed and the search starts again without them.
pub(crate) fn find(
    document: &Document<'_>,
    blocks: &Blocks,
    evidence: &ContentEvidence,
) -> Content {
    match evidence.layout {
        Layout::Thread => {
            if let Some(posts) = thread::find(document, blocks) {
                return posts;
            }
        }
        Layout::Collection => {
            if let Some(rows) = rows::find(document, blocks) {
                return rows;
            }
        }
        Layout::Listing | Layout::Prose | Layout::Documentation | Layout::Product => {}
    }
    let mut prose = find_prose(document, blocks, evidence);
    if evidence.layout != Layout::Product {
        prose = second_opinion(document, blocks, evidence, prose);
    }
    let size = prose.size(blocks);
    let may_be_rows = match evidence.layout {
        Layout::Listing => true,
        Layout::Prose => size < MAX_TEASER_TEXT && !evidence.declares_article,
        _ => false,
    };
    if !may_be_rows {
        return prose;
    }
    let least = match evidence.layout {
        Layout::Listing => size,
        _ => size * MIN_ROWS_RATIO,
    };
    rows::find(document, blocks)
        .filter(|rows| rows.size(blocks) > least)
        .unwrap_or(prose)
}

/// What the witnesses point to, if the text that was found agrees with none of
/// them and is not much longer: a long text can stand under its description.
fn second_opinion(
    document: &Document<'_>,
    blocks: &Blocks,
    evidence: &ContentEvidence,
    first: Content,
) -> Content {
    let said = witnesses::runs_of(&evidence.witnesses);
    if said.is_empty() || witnesses::agree(&said, &first, blocks) {
        return first;
    }
    let Some(place) = witnesses::place(&said, document, blocks) else {
        return first;
    };
    let second = judge_in(document, blocks, evidence, Roles::NONE, (place, place));
    let (found, pointed) = (first.size(blocks), second.size(blocks));
    let ratio = match found < MAX_TEASER_TEXT {
        true => 4,
        false => 2,
    };
    if pointed * ratio >= found && witnesses::agree(&said, &second, blocks) {
        second
    } else {
        first
    }
}

/// Rows are looked for where the prose has less text than this,
const MAX_TEASER_TEXT: usize = 1_500;
/// and they are the content if they have this many times its text.
const MIN_ROWS_RATIO: usize = 3;

fn find_prose(document: &Document<'_>, blocks: &Blocks, evidence: &ContentEvidence) -> Content {
    let first = find_without(document, blocks, evidence, Roles::NONE);
    let size = first.size(blocks);
    let elsewhere = Roles::NAV | Roles::FOOTER | Roles::COMMENTS;
    let prose: usize = blocks
        .list
        .iter()
        .filter(|block| is_paragraph(block) && !block.roles.has(elsewhere))
        .map(|block| block.size)
        .sum();
    if size >= MIN_CONTENT_SIZE && size * MAX_PROSE_RATIO >= prose {
        return first;
    }
    let second = find_without(document, blocks, evidence, Roles::DOUBTFUL);
    if second.size(blocks) > size * 3 {
        second
    } else {
        first
    }
}

/// Less text than this starts a second search,
const MIN_CONTENT_SIZE: usize = 400;
/// and so does a total of prose this many times larger.
const MAX_PROSE_RATIO: usize = 4;

fn find_without(
    document: &Document<'_>,
    blocks: &Blocks,
    evidence: &ContentEvidence,
    ignored: Roles,
) -> Content {
    // A reference calls itself so.
    let ignored = match evidence.layout == Layout::Documentation {
        true => ignored | Roles::NOTES,
        false => ignored,
    };
    let chosen = container::choose(document, blocks, ignored, evidence);
    judge_in(document, blocks, evidence, ignored, chosen)
}

/// Judges every block of a container; `wider` is what it was narrowed from.
fn judge_in(
    document: &Document<'_>,
    blocks: &Blocks,
    evidence: &ContentEvidence,
    ignored: Roles,
    (container, wider): (NodeId, NodeId),
) -> Content {
    let is_manual = evidence.layout == Layout::Documentation;
    let mut verdicts = vec![Verdict::Elsewhere; blocks.list.len()];
    let range = blocks.within(document, container);
    let ignored = ignored | overclaimed(document, blocks, container, range.clone());
    let of_product = evidence.layout == Layout::Product;
    let clutter = clutter::find(document, blocks, container, range.clone(), of_product);
    for index in range.clone() {
        let block = &blocks.list[index];
        let inside = blocks
            .roles_below(document, container, block)
            .without(ignored);
        verdicts[index] = if clutter[index - range.start] {
            Verdict::Clutter
        } else if inside.has(Roles::OUTSIDE)
            || of_product && inside.has(Roles::REVIEWS)
            || inside.has(Roles::TOC) && block.link_density() > 0.5
        {
            Verdict::Role
        } else if block.in_card {
            Verdict::Card
        } else if is_only_links(block)
            && !is_manual
            && !is_introduced(
                &blocks.list[range.start..index],
                &verdicts[range.start..index],
                block,
            )
        {
            Verdict::Links
        } else if notices::is_notice(&block.text) {
            Verdict::Notice
        } else {
            Verdict::Kept
        };
    }
    drop_appeals(blocks, range.clone(), &mut verdicts);
    let mut judge = Judge {
        document,
        blocks,
        container,
        verdicts,
        range,
    };
    judge.drop_known(&evidence.known);
    if !is_manual {
        judge.drop_repeated();
        judge.drop_copy();
    }
    judge.drop_preamble(evidence);
    judge.drop_asides(of_product);
    judge.drop_invitations();
    judge.drop_tail(evidence);
    judge.drop_loose_headings();
    judge.keep_lead(wider);
    Content {
        container,
        verdicts: judge.verdicts,
    }
}

/// Leaves out what a site says to every reader, unless the text is about that.
fn drop_appeals(blocks: &Blocks, range: Range<usize>, verdicts: &mut [Verdict]) {
    let (mut total, mut appeals) = (0, Vec::new());
    for index in range {
        if verdicts[index] == Verdict::Kept {
            let block = &blocks.list[index];
            total += block.size;
            if !matches!(block.kind, Kind::Heading(_)) && notices::is_appeal(&block.text) {
                appeals.push(index);
            }
        }
    }
    let size: usize = appeals.iter().map(|index| blocks.list[*index].size).sum();
    if size * 10 <= total * MAX_APPEAL_TENTHS {
        for index in appeals {
            verdicts[index] = Verdict::Notice;
        }
    }
}

/// Tenths of the text that appeals may be.
const MAX_APPEAL_TENTHS: usize = 5;

/// Claims that would take away too much of the prose to be true.
fn overclaimed(
    document: &Document<'_>,
    blocks: &Blocks,
    container: NodeId,
    range: Range<usize>,
) -> Roles {
    let mut total = 0;
    let mut claimed = [0; Roles::DOUBTFUL_ONES.len()];
    for block in blocks.list[range]
        .iter()
        .filter(|block| is_paragraph(block))
    {
        total += block.size;
        let inside = blocks.roles_below(document, container, block);
        for (role, sum) in Roles::DOUBTFUL_ONES.iter().zip(&mut claimed) {
            if inside.has(*role) {
                *sum += block.size;
            }
        }
    }
    let too_much = Roles::DOUBTFUL_ONES
        .iter()
        .zip(claimed)
        .filter(|(_, sum)| sum * 10 > total * MAX_CLAIMED_TENTHS);
    too_much.fold(Roles::NONE, |all, (role, _)| all | *role)
}

/// Tenths of the prose that a claim may take away.
const MAX_CLAIMED_TENTHS: usize = 3;

/// Everything inside an element that a selector chose, but for scripts and forms.
pub(crate) fn inside(document: &Document<'_>, blocks: &Blocks, container: NodeId) -> Content {
    let mut verdicts = vec![Verdict::Elsewhere; blocks.list.len()];
    for index in blocks.within(document, container) {
        let hidden = blocks
            .roles_below(document, container, &blocks.list[index])
            .has(Roles::FORM | Roles::HIDDEN);
        verdicts[index] = if hidden { Verdict::Role } else { Verdict::Kept };
    }
    Content {
        container,
        verdicts,
    }
}

/// Everything that is not plainly something else: what is left to do without CPU time.
pub(crate) fn everything(blocks: &Blocks) -> Content {
    let judge = |block: &Block| {
        if block.roles.has(Roles::OUTSIDE) || is_only_links(block) {
            Verdict::Role
        } else {
            Verdict::Kept
        }
    };
    Content {
        container: 0,
        verdicts: blocks.list.iter().map(judge).collect(),
    }
}

impl Content {
    fn size(&self, blocks: &Blocks) -> usize {
        let kept = self
            .verdicts
            .iter()
            .zip(&blocks.list)
            .filter(|(verdict, _)| **verdict == Verdict::Kept);
        kept.map(|(_, block)| block.size).sum()
    }
}

fn is_only_links(block: &Block) -> bool {
    match block.kind {
        Kind::Heading(_) => false,
        _ => block.link_density() > 0.8 && block.size < 300,
    }
}

/// A link that the text leads to: in a table, under a heading or a line that
/// ends in a colon, or a whole sentence.
fn is_introduced(before: &[Block], verdicts: &[Verdict], block: &Block) -> bool {
    let Some(last) = before.iter().zip(verdicts).rev().find(|(earlier, _)| {
        earlier.node != block.node && earlier.kind != Kind::Item || block.kind != Kind::Item
    }) else {
        return false;
    };
    let (last, verdict) = last;
    match block.kind {
        Kind::Cell => true,
        Kind::Item => {
            *verdict == Verdict::Kept
                && (last.text.ends_with(':')
                    || matches!(last.kind, Kind::Heading(_)) && aside(&last.text).is_none())
        }
        Kind::Paragraph => {
            block.size >= 40 && ends_a_sentence(&block.text) && !block.roles.has(Roles::RELATED)
                || *verdict == Verdict::Kept && last.text.ends_with(':')
        }
        _ => false,
    }
}

/// A block that can only be prose.
fn is_paragraph(block: &Block) -> bool {
    block.size >= 80 && block.link_density() < 0.3 && !matches!(block.kind, Kind::Heading(_))
}

fn ends_a_sentence(text: &str) -> bool {
    text.trim_end_matches(['"', '”', '’', '\'', ')', '»', '“'])
        .ends_with(['.', '!', '?', ':', '…', '。', '！', '？', ';'])
}

struct Judge<'a, 's> {
    document: &'a Document<'s>,
    blocks: &'a Blocks,
    container: NodeId,
    verdicts: Vec<Verdict>,
    range: Range<usize>,
}

impl Judge<'_, '_> {
    fn kept(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.range
            .clone()
            .filter(|index| self.verdicts[*index] == Verdict::Kept)
    }

    fn drop_preamble(&mut self, evidence: &ContentEvidence) {
        let Some(first) = self.kept().find(|index| {
            is_paragraph(&self.blocks.list[*index]) && {
                let inside = self.blocks.roles_below(
                    self.document,
                    self.container,
                    &self.blocks.list[*index],
                );
                !inside.has(Roles::HEADER) || self.blocks.list[*index].size >= 200
            }
        }) else {
            return;
        };
        for index in self.range.start..first {
            if self.verdicts[index] != Verdict::Kept {
                continue;
            }
            let block = &self.blocks.list[index];
            let inside = self
                .blocks
                .roles_below(self.document, self.container, block);
            self.verdicts[index] = match block.kind {
                Kind::Heading(1) => Verdict::Title,
                Kind::Heading(_)
                    if evidence
                        .titles
                        .iter()
                        .any(|title| same_words(&block.text, title)) =>
                {
                    Verdict::Title
                }
                _ if evidence.layout == Layout::Documentation && is_paragraph(block) => continue,
                _ if inside.has(Roles::HEADER) && block.size < 200 => Verdict::Preamble,
                Kind::Bare | Kind::Paragraph
                    if block.size < 80 && !ends_a_sentence(&block.text) =>
                {
                    Verdict::Preamble
                }
                _ => continue,
            };
        }
    }

    /// Paragraphs between the headline and an article that was narrowed too far.
    fn keep_lead(&mut self, wider: NodeId) {
        let start = self.range.start;
        let from = self.blocks.within(self.document, wider).start;
        let Some(title) = (from..start)
            .rev()
            .find(|index| self.blocks.list[*index].kind == Kind::Heading(1))
        else {
            return;
        };
        for index in title + 1..start {
            let block = &self.blocks.list[index];
            if is_paragraph(block)
                && ends_a_sentence(&block.text)
                && !block.in_card
                && !self
                    .blocks
                    .roles_below(self.document, wider, block)
                    .has(Roles::OUTSIDE | Roles::HEADER)
            {
                self.verdicts[index] = Verdict::Kept;
            }
        }
    }

    /// A heading with nothing under it.
    fn drop_loose_headings(&mut self) {
        let mut text_follows = false;
        for index in self.range.clone().rev() {
            if self.verdicts[index] != Verdict::Kept {
                continue;
            }
            if !matches!(self.blocks.list[index].kind, Kind::Heading(_)) {
                text_follows = true;
            } else if !text_follows {
                self.verdicts[index] = Verdict::LooseHeading;
            }
        }
    }
}

fn same_words(a: &str, b: &str) -> bool {
    let words = |text: &str| {
        text.chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    words(a) == words(b)
}
