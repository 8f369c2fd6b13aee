//! The type of a page, by a sum of signals: structured data, the shape
//! of the text, the links beside it. One signal alone never decides.

use crate::article::{Flags, PageType};
use crate::page_clues::{Layout, PageClues};

/// The signals.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shape<'a> {
    pub(crate) json_ld_rank: u8,
    pub(crate) microdata_rank: u8,
    pub(crate) og_type: Option<&'a str>,
    /// Words of the extracted text.
    pub(crate) words: usize,
    /// Paragraphs of prose in it.
    pub(crate) paragraphs: usize,
    /// Words in links of the whole page, and links.
    pub(crate) link_words: usize,
    pub(crate) links: usize,
    /// Headlines that are links: teasers.
    pub(crate) linked_headings: usize,
    pub(crate) has_date: bool,
    pub(crate) has_author: bool,
    /// Characters of the text, and those in paragraphs of it.
    pub(crate) size: usize,
    pub(crate) prose: usize,
    pub(crate) clues: PageClues,
    pub(crate) flags: Flags,
}

/// From how many words a page can be an article.
const ARTICLE_WORDS: usize = 150;
const STUB_WORDS: usize = 50;
/// From how many characters in paragraphs on teasers stand beside a text.
const MIN_PROSE_SIZE: usize = 800;

pub(crate) fn judge(shape: &Shape<'_>) -> PageType {
    if shape.flags.soft_404 || shape.flags.captcha || shape.flags.consent_wall {
        return PageType::Other;
    }
    match shape.clues.layout {
        Layout::Thread => return PageType::Forum,
        Layout::Documentation => return PageType::Documentation,
        Layout::Product => return PageType::Product,
        Layout::Collection => return PageType::Collection,
        Layout::Listing if !is_one_text(shape) => return PageType::Listing,
        Layout::Listing | Layout::Prose => {}
    }
    if shape.clues.is_live_blog {
        return PageType::LiveBlog;
    }
    let score = score(shape);
    let is_prose = shape.paragraphs >= 4
        && shape.prose >= MIN_PROSE_SIZE
        && shape.prose * 2 > shape.size
        && !shape.clues.is_front;
    let teasers =
        !is_prose && shape.linked_headings >= 8 && shape.words < 60 * shape.linked_headings;
    let mostly_links = shape.links >= 20 && shape.link_words > 2 * shape.words;
    let is_offer = shape.clues.is_front || shape.clues.offers_service;
    if (teasers || mostly_links && shape.paragraphs < 3) && score < 5 {
        return match is_offer && !teasers {
            true => PageType::Service,
            false => PageType::Listing,
        };
    }
    if shape.words < STUB_WORDS {
        return if shape.links >= 20 && score < 5 {
            PageType::Listing
        } else {
            PageType::Stub
        };
    }
    if score >= 4 && shape.words >= ARTICLE_WORDS || score >= 6 {
        PageType::Article
    } else if shape.words >= ARTICLE_WORDS && !shape.has_date {
        PageType::Service
    } else {
        PageType::Other
    }
}

/// Paragraphs are most of it, and there are several.
fn is_one_text(shape: &Shape<'_>) -> bool {
    shape.paragraphs >= 6 && shape.prose * 10 > shape.size * 7 && shape.linked_headings < 4
}

/// How much speaks for an article.
fn score(shape: &Shape<'_>) -> i32 {
    let clues = shape.clues;
    let mut score = match shape.json_ld_rank.max(shape.microdata_rank) {
        4.. => 5,
        2..=3 => 2,
        _ => 0,
    };
    score += match shape.og_type {
        Some("article" | "blog" | "news") => 2,
        Some("website" | "profile" | "product" | "product.group") => -1,
        _ => 0,
    };
    score += 2 * i32::from(shape.has_date) + i32::from(shape.has_author);
    score += match shape.paragraphs {
        0..=1 => -2,
        2..=3 => 0,
        _ => 2,
    };
    // A text is paragraphs; an offer is lines.
    if shape.words >= 2 * ARTICLE_WORDS && shape.prose * 10 > shape.size * 6 {
        score += 2;
    }
    if clues.is_article_path {
        score += 2;
    }
    if clues.offers_service {
        score -= 3;
    }
    if clues.is_front {
        score -= 4;
    }
    if shape.linked_headings >= 8 && shape.words < 30 * shape.linked_headings {
        score -= 3;
    }
    if shape.links >= 20 && shape.link_words > 2 * shape.words {
        score -= 1;
    }
    score
}

#[cfg(test)]
mod tests {
    use super::{Shape, judge};
    use crate::article::{Flags, PageType};
    use crate::page_clues::{Layout, PageClues};

    #[test]
    fn pages_are_classified() {
        let article = Shape {
            json_ld_rank: 5,
            words: 600,
            paragraphs: 9,
            has_date: true,
            links: 120,
            link_words: 500,
            ..Shape::default()
        };
        let blog = Shape {
            words: 700,
            paragraphs: 8,
            size: 4_000,
            prose: 3_500,
            links: 30,
            link_words: 90,
            ..Shape::default()
        };
        let front = Shape {
            words: 300,
            paragraphs: 2,
            linked_headings: 30,
            links: 200,
            link_words: 1500,
            clues: PageClues {
                is_front: true,
                ..PageClues::default()
            },
            ..Shape::default()
        };
        for (name, shape, expected) in [
            ("news", article, PageType::Article),
            ("a blog without any metadata", blog, PageType::Article),
            ("a front page", front, PageType::Listing),
            (
                "a short notice",
                Shape {
                    words: 30,
                    links: 10,
                    ..Shape::default()
                },
                PageType::Stub,
            ),
            (
                "a captcha",
                Shape {
                    flags: Flags {
                        captcha: true,
                        ..Flags::default()
                    },
                    ..article
                },
                PageType::Other,
            ),
            (
                "a page of a shop",
                Shape {
                    words: 200,
                    paragraphs: 1,
                    clues: PageClues {
                        layout: Layout::Product,
                        ..PageClues::default()
                    },
                    ..Shape::default()
                },
                PageType::Product,
            ),
        ] {
            assert_eq!(judge(&shape), expected, "{name}");
        }
    }
}
