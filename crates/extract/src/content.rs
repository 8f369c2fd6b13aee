//! Which blocks are the article: finds the element that holds it and judges
//! every block inside. Says why for each; never changes a text.

mod clutter;
mod container;
mod headings;
mod notices;

use std::collections::HashSet;
use std::ops::Range;

use crate::blocks::{Block, Blocks, Kind};
use crate::html::{Document, NodeId};
use crate::roles::Roles;
use headings::{Aside, aside};

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
}

/// The blocks of the article.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) container: NodeId,
    pub(crate) verdicts: Vec<Verdict>,
}

/// What the page says about itself elsewhere, to compare with.
#[derive(Debug, Default)]
pub(crate) struct Witnesses {
    pub(crate) titles: Vec<String>,
    pub(crate) authors: Vec<String>,
    /// How the site calls itself.
    pub(crate) sites: Vec<String>,
}

/// Finds the article. If what claims to stand beside it is nearly all there is,
/// the claims are not believed and the search starts again without them.
pub(crate) fn find(document: &Document<'_>, blocks: &Blocks, witnesses: &Witnesses) -> Content {
    let first = find_without(document, blocks, witnesses, Roles::NONE);
    let size = first.size(blocks);
    let elsewhere = Roles::NAV | Roles::FOOTER | Roles::COMMENTS;
    let prose: usize = blocks
        .list
        .iter()
        .filter(|block| is_paragraph(block) && !block.roles.has(elsewhere))
        .map(|block| block.size)
        .sum();
    if size >= ENOUGH && size * LITTLE >= prose {
        return first;
    }
    let second = find_without(document, blocks, witnesses, Roles::DOUBTFUL);
    if second.size(blocks) > size * 3 {
        second
    } else {
        first
    }
}

/// Less text than this makes us look twice,
const ENOUGH: usize = 400;
/// and so does less than this part of all prose.
const LITTLE: usize = 4;

fn find_without(
    document: &Document<'_>,
    blocks: &Blocks,
    witnesses: &Witnesses,
    ignored: Roles,
) -> Content {
    let (container, wider) = container::choose(document, blocks, ignored);
    let mut verdicts = vec![Verdict::Elsewhere; blocks.list.len()];
    let range = blocks.within(document, container);
    let ignored = ignored | overclaimed(document, blocks, container, range.clone());
    let clutter = clutter::find(document, blocks, container, range.clone());
    for index in range.clone() {
        let block = &blocks.list[index];
        let inside = blocks
            .roles_below(document, container, block)
            .without(ignored);
        verdicts[index] = if clutter[index - range.start] {
            Verdict::Clutter
        } else if inside.has(Roles::OUTSIDE) || inside.has(Roles::TOC) && block.link_density() > 0.5
        {
            Verdict::Role
        } else if block.in_card {
            Verdict::Card
        } else if is_only_links(block)
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
    let mut judge = Judge {
        document,
        blocks,
        container,
        verdicts,
        range,
    };
    judge.drop_repeated();
    judge.drop_preamble(witnesses);
    judge.drop_asides();
    judge.drop_tail(witnesses);
    judge.drop_loose_headings();
    judge.keep_lead(wider);
    Content {
        container,
        verdicts: judge.verdicts,
    }
}

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
        .filter(|(_, sum)| sum * 10 > total * OVERCLAIMED);
    too_much.fold(Roles::NONE, |all, (role, _)| all | *role)
}

/// Tenths of the prose that a claim may take away.
const OVERCLAIMED: usize = 3;

/// Everything inside an element that somebody chose, but for scripts and forms.
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
            block.size >= 40 && ends_a_sentence(&block.text)
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

#[rustfmt::skip]
const NETWORKS: &[&str] = &[
    "facebook.com", "instagram.com", "twitter.com", "x.com", "linkedin.com", "pinterest.com", "youtube.com",
    "tiktok.com", "threads.net", "bsky.app", "t.me", "telegram.me", "whatsapp.com", "vk.com", "weibo.com",
];

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

    /// The same text again: variants of a page for phones and desktops.
    fn drop_repeated(&mut self) {
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

    fn drop_preamble(&mut self, witnesses: &Witnesses) {
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
                    if witnesses
                        .titles
                        .iter()
                        .any(|title| same_words(&block.text, title)) =>
                {
                    Verdict::Title
                }
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

    /// What stands under "Related articles" and the like.
    fn drop_asides(&mut self) {
        let total: usize = self.kept().map(|index| self.blocks.list[index].size).sum();
        let mut before = 0;
        let mut under: Option<(Aside, u8)> = None;
        for index in self.range.clone() {
            if self.verdicts[index] != Verdict::Kept {
                continue;
            }
            let block = &self.blocks.list[index];
            let level = match block.kind {
                Kind::Heading(level) => Some(level),
                _ if block.bold && block.size < 60 => Some(7),
                _ => None,
            };
            if let Some(kind) = aside(&block.text)
                && (level.is_some() || block.size < 40)
                && (kind == Aside::Links || before * 2 > total)
            {
                under = Some((kind, level.unwrap_or(7)));
                self.verdicts[index] = Verdict::Tail;
                continue;
            }
            before += block.size;
            match under {
                Some((Aside::Links, heading)) => {
                    if is_paragraph(block) || level.is_some_and(|level| level <= heading) {
                        under = None;
                    } else {
                        self.verdicts[index] = Verdict::Tail;
                    }
                }
                Some((Aside::Prose, heading)) => {
                    if level.is_some_and(|level| level <= heading) {
                        under = None;
                    } else {
                        self.verdicts[index] = Verdict::Tail;
                    }
                }
                None => {}
            }
        }
    }

    /// Short lines after the last paragraph, and what is said about the author there.
    fn drop_tail(&mut self, witnesses: &Witnesses) {
        let mut tail = Vec::new();
        let mut paragraphs = 0;
        for index in self.kept().rev() {
            let block = &self.blocks.list[index];
            match block.kind {
                Kind::Heading(_) => {}
                Kind::Bare | Kind::Paragraph
                    if paragraphs == 0 && !ends_a_sentence(&block.text) && block.size < 80 =>
                {
                    tail.push(index);
                }
                Kind::Bare | Kind::Paragraph
                    if paragraphs < 3
                        && (self.is_about_the_makers(block, witnesses)
                            || paragraphs == 0 && block.italic && block.size < 500) =>
                {
                    tail.push(index);
                }
                Kind::Bare | Kind::Paragraph if paragraphs < 3 => paragraphs += 1,
                _ => break,
            }
        }
        for index in tail {
            self.verdicts[index] = Verdict::Tail;
        }
    }

    /// Said after the article: about the author or the site, a footnote, an
    /// invitation to follow.
    fn is_about_the_makers(&self, block: &Block, witnesses: &Witnesses) -> bool {
        starts_with_name(&block.text, witnesses)
            || is_footnote(&block.text)
            || block.size < 200 && self.leads_to_network(block)
    }

    /// One of its links leads to a social network.
    fn leads_to_network(&self, block: &Block) -> bool {
        block.link_size > 0
            && (block.node..=block.last).any(|node| {
                let host = self
                    .document
                    .raw_attr(node, "href")
                    .and_then(|href| href.split("://").nth(1))
                    .map(|rest| rest.split('/').next().unwrap_or(rest));
                host.is_some_and(|host| {
                    NETWORKS.contains(&host.trim_start_matches("www.").trim_start_matches("m."))
                })
            })
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

/// "Jane Doe is a reporter at …", "The Daily is …": a known name, then more.
fn starts_with_name(text: &str, witnesses: &Witnesses) -> bool {
    let full_names = witnesses.authors.iter().filter(|name| name.contains(' '));
    full_names.chain(&witnesses.sites).any(|name| {
        text.get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
            && text.len() > name.len() + 20
            && !text[name.len()..].starts_with(char::is_alphanumeric)
    })
}

/// `[3] Title of a source, 2020`.
fn is_footnote(text: &str) -> bool {
    let number = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    number
        .is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
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
