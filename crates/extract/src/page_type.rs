//! The type of a page, by a sum of signals: structured data, the shape
//! of the text, the links beside it. One signal alone never decides.

use crate::article::{Flags, PageType};

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
    pub(crate) has_title: bool,
    pub(crate) has_date: bool,
    pub(crate) has_author: bool,
    /// The path of the address is `/` or empty.
    pub(crate) is_front: bool,
    pub(crate) flags: Flags,
}

/// From how many words a page can be an article.
const ARTICLE_WORDS: usize = 150;
const STUB_WORDS: usize = 50;

pub(crate) fn judge(shape: &Shape<'_>) -> PageType {
    if shape.flags.soft_404 || shape.flags.captcha || shape.flags.consent_wall {
        return PageType::Other;
    }
    let mut score = 0_i32;
    score += match shape.json_ld_rank.max(shape.microdata_rank) {
        4.. => 5,
        2..=3 => 2,
        _ => 0,
    };
    score += match shape.og_type {
        Some("article" | "blog" | "news") => 3,
        Some("website" | "profile" | "product" | "product.group") => -1,
        _ => 0,
    };
    score += i32::from(shape.has_date) + i32::from(shape.has_author) + i32::from(shape.has_title);
    score += match shape.paragraphs {
        0..=1 => -2,
        2..=3 => 1,
        _ => 3,
    };
    if shape.words >= 2 * ARTICLE_WORDS {
        score += 2;
    }
    if shape.is_front {
        score -= 4;
    }
    let teasers = shape.linked_headings >= 8 && shape.words < 60 * shape.linked_headings;
    let mostly_links = shape.links >= 20 && shape.link_words > 2 * shape.words;
    if teasers {
        score -= 4;
    }
    if mostly_links {
        score -= 1;
    }
    if (teasers || mostly_links && shape.paragraphs < 3) && score < 5 {
        return PageType::Listing;
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
    } else {
        PageType::Other
    }
}

#[cfg(test)]
mod tests {
    use super::{Shape, judge};
    use crate::article::{Flags, PageType};

    #[test]
    fn pages_are_classified() {
        let article = Shape {
            json_ld_rank: 5,
            words: 600,
            paragraphs: 9,
            has_title: true,
            has_date: true,
            links: 120,
            link_words: 500,
            ..Shape::default()
        };
        let blog = Shape {
            words: 700,
            paragraphs: 8,
            has_title: true,
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
            is_front: true,
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
                    has_title: true,
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
                    og_type: Some("product"),
                    words: 200,
                    paragraphs: 1,
                    has_title: true,
                    ..Shape::default()
                },
                PageType::Other,
            ),
        ] {
            assert_eq!(judge(&shape), expected, "{name}");
        }
    }
}
