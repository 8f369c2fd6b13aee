//! Judgements about the whole page, made when everything else is known: walls,
//! kind of page, quality, confidence.

use url::Url;

use crate::article::{Article, Flags, Method, Quality};
use crate::blocks::{Block, Blocks, Kind};
use crate::fields::about::Statements;
use crate::html::{Document, Tag};
use crate::page::{Page, QualityBounds};
use crate::page_type::Shape;
use crate::structured::article_rank;
use crate::walls;

pub(super) fn find_walls(
    article: &Article,
    document: &Document<'_>,
    blocks: &Blocks,
    statements: &Statements<'_>,
) -> Flags {
    // A wall is short: the first lines of a page are enough to know it.
    let mut page = String::new();
    for block in blocks.list.iter().take(400) {
        page.push_str(&block.text);
        page.push('\n');
    }
    let has_box = |word: &str| {
        (1..document.len()).any(|node| {
            document.tag(node) != Tag::Text
                && ["class", "id"].iter().any(|name| {
                    document
                        .raw_attr(node, name)
                        .is_some_and(|value| value.contains(word))
                })
        })
    };
    let short = article.text.len() < 3_000;
    let title = article
        .title
        .as_ref()
        .map_or("", |title| title.value.as_str());
    walls::find(&walls::Signs {
        title: statements.meta.title.as_deref().unwrap_or(title),
        text: &article.text,
        page: &page,
        says_paywall: statements.says_paywall(),
        has_paywall_box: short && has_box("paywall"),
        has_captcha: short && (has_box("captcha") || has_box("cf-challenge")),
        amp: statements.meta.amp,
    })
}

pub(super) fn shape<'a>(
    article: &Article,
    page: &Page<'_>,
    document: &Document<'_>,
    blocks: &Blocks,
    kept: &[&Block],
    statements: &Statements<'a>,
) -> Shape<'a> {
    let is_heading = |block: &Block| matches!(block.kind, Kind::Heading(_));
    Shape {
        json_ld_rank: statements
            .json_ld
            .article_type()
            .map_or(0, |kind| article_rank(&kind)),
        microdata_rank: statements.microdata.kind.as_deref().map_or(0, article_rank),
        og_type: statements.meta.get("og:type"),
        words: article.word_count,
        paragraphs: kept
            .iter()
            .filter(|block| block.size >= 80 && block.link_density() < 0.3 && !is_heading(block))
            .count(),
        link_words: blocks.list.iter().map(|block| block.link_size / 6).sum(),
        links: (1..document.len())
            .filter(|node| document.tag(*node) == Tag::A)
            .count(),
        linked_headings: blocks
            .list
            .iter()
            .filter(|block| (is_heading(block) || block.in_card) && block.link_density() > 0.8)
            .count(),
        has_title: article.title.is_some(),
        has_date: article.published.is_some(),
        has_author: article.authors.is_some(),
        is_front: Url::parse(page.url).is_ok_and(|url| url.path() == "/" && url.query().is_none()),
        flags: article.flags,
    }
}

pub(super) fn quality(text: &str, bounds: &QualityBounds) -> Quality {
    match text.chars().count() {
        n if n >= bounds.full => Quality::Full,
        n if n >= bounds.summary => Quality::Summary,
        n if n >= bounds.stub => Quality::Stub,
        _ => Quality::TitleOnly,
    }
}

/// How much of the prose of the page was taken, and how sure the kind of page is.
pub(super) fn confidence(article: &Article, blocks: &Blocks, kept: &[&Block]) -> f32 {
    if article.text.is_empty() {
        return 0.0;
    }
    if article.method == Method::Selector {
        return 1.0;
    }
    let prose = |block: &Block| {
        if block.size >= 80 && block.link_density() < 0.3 {
            block.size
        } else {
            0
        }
    };
    let all: usize = blocks.list.iter().map(prose).sum();
    let taken: usize = kept.iter().map(|block| prose(block)).sum();
    let share = taken as f32 / all.max(1) as f32;
    let base = match article.quality {
        Quality::Full => 0.6,
        Quality::Summary => 0.45,
        Quality::Stub => 0.3,
        Quality::TitleOnly => 0.1,
    };
    ((base + share * 0.4).clamp(0.0, 1.0) * 100.0).round() / 100.0
}
