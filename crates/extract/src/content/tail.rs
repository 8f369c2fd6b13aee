//! What comes under or after an article and is none of it: sections under
//! "Related articles", short lines at the end, words about the author and the
//! site, footnotes, invitations to follow.

use super::headings::{Aside, aside};
use super::{Judge, Verdict, Witnesses, ends_a_sentence, is_paragraph};
use crate::blocks::{Block, Kind};

#[rustfmt::skip]
const NETWORKS: &[&str] = &[
    "facebook.com", "instagram.com", "twitter.com", "x.com", "linkedin.com", "pinterest.com", "youtube.com",
    "tiktok.com", "threads.net", "bsky.app", "t.me", "telegram.me", "whatsapp.com", "vk.com", "weibo.com",
];

impl Judge<'_, '_> {
    /// What stands under "Related articles" and the like.
    pub(super) fn drop_asides(&mut self) {
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
    pub(super) fn drop_tail(&mut self, witnesses: &Witnesses) {
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
