//! What comes under or after an article and is none of it: sections under
//! "Related articles", short lines at the end, words about the author and the
//! site, footnotes, invitations to follow.

use super::headings::{Aside, aside, product_aside};
use super::{ContentEvidence, Judge, Verdict, ends_a_sentence, is_paragraph};
use crate::blocks::{Block, Kind};

#[rustfmt::skip]
const NETWORKS: &[&str] = &[
    "facebook.com", "instagram.com", "twitter.com", "x.com", "linkedin.com", "pinterest.com", "youtube.com",
    "tiktok.com", "threads.net", "bsky.app", "t.me", "telegram.me", "whatsapp.com", "vk.com", "weibo.com",
];

/// How far around a block its like is looked for.
const WINDOW: usize = 200;

impl Judge<'_, '_> {
    /// What stands under "Related articles" and the like.
    pub(super) fn drop_asides(&mut self, of_product: bool) {
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
            if of_product && level.is_some() && product_aside(&block.text, before > 0) {
                self.verdicts[index] = Verdict::Tail;
                under = Some((Aside::Prose, level.unwrap_or(7)));
                continue;
            }
            if let Some(kind) = aside(&block.text)
                && (level.is_some() || block.size < 40)
                // A line of a list is one of many, never above something.
                && block.kind != Kind::Item
                && (kind == Aside::Links || before * 2 > total)
                && !(kind == Aside::Links && self.is_above_a_plain_list(index))
            {
                self.verdicts[index] = Verdict::Tail;
                if !self.is_button(index) {
                    under = Some((kind, level.unwrap_or(7)));
                }
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

    /// A label that comes again and again ("Read more") is a button of each
    /// entry, not the heading of what follows.
    fn is_button(&self, index: usize) -> bool {
        let block = &self.blocks.list[index];
        let from = self.range.start.max(index.saturating_sub(WINDOW));
        let to = self.range.end.min(index + WINDOW);
        let mut same = self.blocks.list[from..to]
            .iter()
            .filter(|other| other.text == block.text);
        !matches!(block.kind, Kind::Heading(_)) && same.nth(2).is_some()
    }

    /// "Recommended reading" above a list without a link is part of the article.
    fn is_above_a_plain_list(&self, index: usize) -> bool {
        let items: Vec<&Block> = self.blocks.list[index + 1..self.range.end]
            .iter()
            .take_while(|block| block.kind == Kind::Item)
            .take(10)
            .collect();
        items.len() > 2 && items.iter().all(|block| block.link_size == 0)
    }

    /// Short lines after the last paragraph, and lines about the author there.
    pub(super) fn drop_tail(&mut self, evidence: &ContentEvidence) {
        let mut tail = Vec::new();
        let mut paragraphs = 0;
        for index in self.kept().rev() {
            let block = &self.blocks.list[index];
            match block.kind {
                Kind::Heading(_) => {}
                Kind::Bare | Kind::Paragraph
                    if paragraphs == 0 && !ends_a_sentence(&block.text) && block.size < 80 =>
                {
                    if self.is_announced(index) {
                        break;
                    }
                    tail.push(index);
                }
                Kind::Bare | Kind::Paragraph
                    if paragraphs < 3
                        && (self.is_about_the_makers(block, evidence)
                            || paragraphs == 0
                                && block.italic
                                && introduces_somebody(&block.text)) =>
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

    /// The line before it ends with a colon.
    fn is_announced(&self, index: usize) -> bool {
        let mut before = (self.range.start..index).rev();
        before
            .find(|index| self.verdicts[*index] == Verdict::Kept)
            .is_some_and(|index| self.blocks.list[index].text.ends_with([':', '：']))
    }

    /// A line after the article: about the author or the site, a footnote, an
    /// invitation to follow.
    fn is_about_the_makers(&self, block: &Block, evidence: &ContentEvidence) -> bool {
        starts_with_name(&block.text, evidence)
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
}

/// "Jane Doe, a reporter at …", "The Daily is …": a known name, then more.
fn starts_with_name(text: &str, evidence: &ContentEvidence) -> bool {
    let after = |name: &String| {
        let start = text.get(..name.len())?;
        let rest = &text[name.len()..];
        (start.eq_ignore_ascii_case(name)
            && rest.len() > 20
            && !rest.starts_with(char::is_alphanumeric))
        .then_some(rest)
    };
    let mut full_names = evidence.authors.iter().filter(|name| name.contains(' '));
    // Articles of companies speak of the company; only a definition is no part of them.
    let is_defined = |rest: &str| rest.split_whitespace().take(2).any(is_copula);
    full_names.any(|name| after(name).is_some())
        || evidence
            .sites
            .iter()
            .any(|name| after(name).is_some_and(is_defined))
}

/// "Jane M. Doe is a reporter …": a name of several words, then what she is.
fn introduces_somebody(text: &str) -> bool {
    let name = text
        .split_whitespace()
        .take(6)
        .position(|word| !word.starts_with(char::is_uppercase));
    let verb = name.and_then(|length| text.split_whitespace().nth(length));
    name.is_some_and(|length| length > 1)
        && verb.is_some_and(|word| is_copula(word) || says_what_one_does(word))
}

fn says_what_one_does(word: &str) -> bool {
    matches!(
        word,
        "writes" | "works" | "has" | "covers" | "schreibt" | "arbeitet" | "écrit" | "escribe"
    )
}

fn is_copula(word: &str) -> bool {
    matches!(
        word,
        "is" | "are"
            | "was"
            | "were"
            | "ist"
            | "sind"
            | "war"
            | "est"
            | "sont"
            | "es"
            | "son"
            | "è"
            | "é"
            | "är"
            | "er"
    )
}

/// `[3] Title of a source, 2020`.
fn is_footnote(text: &str) -> bool {
    let number = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    number
        .is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}
