//! The text of a page whose content is rows: products, teasers, results,
//! entries of an index. The rows are elements of one build under each other;
//! what holds most of them is the container, and inside it links and short
//! lines are what the page is about.

use super::{Content, Verdict};
use crate::blocks::{Block, Blocks, Kind};
use crate::html::{Document, NodeId, Tag};
use crate::roles::Roles;

/// Rows of one build that make a list.
const MIN_ROWS: usize = 4;
/// Characters of a row.
const MIN_ROW_SIZE: usize = 8;
const MAX_ROW_SIZE: usize = 3_000;
/// The container holds this share of the text in rows.
const MIN_ROW_SHARE: f32 = 0.8;
/// The main element is the container if it has at most this many times its text.
const MAX_MAIN_RATIO: f32 = 3.0;
/// Builds of children that are told apart.
const MAX_LOOKS: usize = 40;
/// Less text in rows than this is no list.
const MIN_LIST_SIZE: usize = 150;

/// Beside the rows whatever the page is.
const BESIDE: Roles = Roles::NAV
    .and(Roles::FOOTER)
    .and(Roles::CONSENT)
    .and(Roles::HIDDEN)
    .and(Roles::FILTER);
/// Left out of the rows, unless they are most of the text.
const DOUBTFUL: [Roles; 7] = [
    Roles::FORM,
    Roles::ASIDE,
    Roles::PROMO,
    Roles::SHARE,
    Roles::AD,
    Roles::COMMENTS,
    Roles::HIDDEN,
];

/// The rows of a page; none if it has no list.
pub(super) fn find(document: &Document<'_>, blocks: &Blocks) -> Option<Content> {
    let mut sizes = sizes(document, blocks, BESIDE.and(Roles::ASIDE));
    let all: u32 = blocks
        .list
        .iter()
        .map(|block| u32::try_from(block.size).unwrap_or(0))
        .sum();
    // A layout that calls everything a menu or a side bar says nothing.
    if sizes[0] * 6 < all {
        sizes = self::sizes(document, blocks, Roles::NAV.and(Roles::FOOTER));
    }
    let rows = row_weights(document, &sizes);
    let total = rows[0];
    if (total as usize) < MIN_LIST_SIZE {
        return None;
    }
    let mut container = 0;
    for (node, row) in rows.iter().enumerate().skip(1) {
        if document.tag(node) != Tag::Text
            && *row as f32 >= total as f32 * MIN_ROW_SHARE
            && document.parent(node) <= container
        {
            container = node;
        }
    }
    let main = document
        .ancestors(container)
        .find(|node| blocks.own_roles[*node].has(Roles::MAIN));
    if let Some(main) = main
        && sizes[main] as f32 <= sizes[container].max(1) as f32 * MAX_MAIN_RATIO
    {
        container = main;
    }
    Some(judge(document, blocks, container))
}

/// Text below every node that is not in one of the roles.
fn sizes(document: &Document<'_>, blocks: &Blocks, beside: Roles) -> Vec<u32> {
    let mut sizes = vec![0_u32; document.len()];
    for block in &blocks.list {
        if !block.roles.has(beside) {
            sizes[block.first] += u32::try_from(block.size).unwrap_or(0);
        }
    }
    for node in (1..document.len()).rev() {
        sizes[document.parent(node)] += sizes[node];
    }
    sizes
}

/// The text in rows below every node: of the outermost lists only.
fn row_weights(document: &Document<'_>, sizes: &[u32]) -> Vec<u32> {
    let mut weights = vec![0_u32; document.len()];
    let mut covered = 0;
    let mut looks: Vec<(Tag, &str, usize, u32)> = Vec::new();
    for node in 0..document.len() {
        if node < covered || document.tag(node) == Tag::Text || sizes[node] == 0 {
            continue;
        }
        looks.clear();
        for child in document.children(node) {
            let size = sizes[child];
            if !(MIN_ROW_SIZE..=MAX_ROW_SIZE).contains(&(size as usize)) {
                continue;
            }
            let Some((tag, class)) = look(document, child) else {
                continue;
            };
            let known = looks
                .iter()
                .position(|(t, c, _, _)| *t == tag && *c == class);
            match known {
                Some(at) => {
                    looks[at].2 += 1;
                    looks[at].3 += size;
                }
                None if looks.len() < MAX_LOOKS => looks.push((tag, class, 1, size)),
                None => {}
            }
        }
        let list = looks
            .iter()
            .filter(|(_, _, count, _)| *count >= MIN_ROWS)
            .max_by_key(|(_, _, _, sum)| *sum);
        if let Some((_, _, _, sum)) = list
            && sum * 2 > sizes[node]
        {
            weights[node] += sum;
            covered = document.end(node);
        }
    }
    for node in (1..document.len()).rev() {
        weights[document.parent(node)] += weights[node];
    }
    weights
}

/// What rows of one list have in common: the name and the first class.
fn look<'a>(document: &Document<'a>, node: NodeId) -> Option<(Tag, &'a str)> {
    let tag = document.tag(node);
    match tag {
        Tag::Li | Tag::Tr | Tag::Dt => Some((tag, "")),
        Tag::Div | Tag::Section | Tag::Article | Tag::A | Tag::Other | Tag::Dl => {
            let class = document.raw_attr(node, "class").unwrap_or("");
            Some((tag, class.split_ascii_whitespace().next().unwrap_or("")))
        }
        _ => None,
    }
}

fn judge(document: &Document<'_>, blocks: &Blocks, container: NodeId) -> Content {
    let range = blocks.within(document, container);
    let inside: Vec<Roles> = blocks.list[range.clone()]
        .iter()
        .map(|block| blocks.roles_below(document, container, block))
        .collect();
    let total: usize = blocks.list[range.clone()]
        .iter()
        .map(|block| block.size)
        .sum();
    let mut dropped = BESIDE;
    for role in DOUBTFUL {
        let claimed: usize = blocks.list[range.clone()]
            .iter()
            .zip(&inside)
            .filter(|(_, roles)| roles.has(role))
            .map(|(block, _)| block.size)
            .sum();
        dropped = if claimed * 2 < total {
            dropped | role
        } else {
            dropped.without(role)
        };
    }
    let mut verdicts = vec![Verdict::Elsewhere; blocks.list.len()];
    for (index, roles) in range.zip(inside) {
        let block = &blocks.list[index];
        verdicts[index] = if roles.has(dropped) {
            Verdict::Role
        } else if is_button(block) {
            Verdict::Links
        } else if super::notices::is_notice(&block.text) {
            Verdict::Notice
        } else {
            Verdict::Kept
        };
    }
    Content {
        container,
        verdicts,
    }
}

/// A label that does something: it is in every row and says nothing about it.
fn is_button(block: &Block) -> bool {
    if block.size > 24 || matches!(block.kind, Kind::Heading(_)) {
        return false;
    }
    let text = block.text.to_lowercase();
    matches!(
        text.as_str(),
        "add to cart"
            | "add to bag"
            | "add to basket"
            | "add to wishlist"
            | "add to favorites"
            | "quick view"
            | "quick shop"
            | "quick add"
            | "compare"
            | "buy now"
            | "shop now"
            | "view details"
            | "read more"
            | "learn more"
            | "load more"
            | "show more"
            | "see more"
            | "view all"
            | "see all"
            | "next"
            | "previous"
            | "close"
            | "save"
            | "share"
            | "in den warenkorb"
            | "weiterlesen"
            | "ajouter au panier"
            | "lire la suite"
            | "añadir al carrito"
            | "leer más"
    )
}
