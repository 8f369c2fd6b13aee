//! Where the article is: the element whose text outweighs what stands beside
//! it. Every block weighs for or against; the element with the greatest sum
//! wins, then narrows to what calls itself the article body if little is lost.

use crate::blocks::{Block, Blocks, Kind};
use crate::html::{Document, NodeId, Tag};
use crate::roles::Roles;

/// A body that claims to be one may lose this share of the text around it.
const MIN_BODY_SHARE: f32 = 0.75;
/// The share of all text in bodies from which one of them is the whole.
const COMPLETE_SHARE: f32 = 0.95;
/// Any inner element must hold this share of the text to be preferred.
const MIN_INNER_SHARE: f32 = 0.95;

/// The weight of a block for (or against) the elements around it.
fn weight(block: &Block, ignored: Roles) -> f32 {
    if block.roles.without(ignored).has(Roles::OUTSIDE) {
        return 0.0;
    }
    let size = block.size as f32;
    let links = block.link_density();
    match block.kind {
        Kind::Heading(_) if links > 0.5 => -15.0,
        Kind::Heading(_) => size.min(40.0) * 0.5,
        _ if links > 0.5 => -(20.0 + size.min(100.0) * 0.2),
        _ if block.size < 25 => -3.0,
        _ => size * (1.0 - links),
    }
}

/// The element that holds the article, and the one before it was narrowed.
/// What other pages of the site have, too, weighs nothing.
pub(super) fn choose(
    document: &Document<'_>,
    blocks: &Blocks,
    ignored: Roles,
    known: &[bool],
) -> (NodeId, NodeId) {
    let mut sums = vec![0.0_f32; document.len()];
    let mut gains = vec![0.0_f32; document.len()];
    for (index, block) in blocks.list.iter().enumerate() {
        if known.get(index).copied().unwrap_or(false) {
            continue;
        }
        let weight = weight(block, ignored);
        sums[block.first] += weight;
        gains[block.first] += weight.max(0.0);
    }
    for node in (1..document.len()).rev() {
        let parent = document.parent(node);
        sums[parent] += sums[node];
        gains[parent] += gains[node];
    }
    let mut best = 0;
    for node in 1..document.len() {
        if document.tag(node) != Tag::Text && sums[node] >= sums[best] {
            best = node;
        }
    }
    let best = first_of_several(document, &gains, best);
    (narrow(document, blocks, &gains, best), best)
}

/// Pages that load the next article below the first (infinite scroll): the
/// first is meant. Each has a headline of the first level of its own.
fn first_of_several(document: &Document<'_>, gains: &[f32], best: NodeId) -> NodeId {
    let mut articles = Vec::new();
    let mut node = best + 1;
    while node < document.end(best) {
        let has_headline =
            || (node..document.end(node)).any(|inner| document.tag(inner) == Tag::H1);
        if document.tag(node) == Tag::Article && gains[node] >= gains[best] * 0.15 && has_headline()
        {
            articles.push(node);
            node = document.end(node);
        } else {
            node += 1;
        }
    }
    if articles.len() > 1 {
        articles[0]
    } else {
        best
    }
}

fn narrow(document: &Document<'_>, blocks: &Blocks, gains: &[f32], best: NodeId) -> NodeId {
    // An article in several parts: none of them is all of it.
    let parts = |role: Roles| {
        let (mut sum, mut end) = (0.0, 0);
        for (node, gain) in gains
            .iter()
            .enumerate()
            .take(document.end(best))
            .skip(best + 1)
        {
            if node >= end && blocks.own_roles[node].has(role) {
                sum += gain;
                end = document.end(node);
            }
        }
        sum
    };
    let bodies = parts(Roles::BODY);
    let mut chosen = best;
    for node in best + 1..document.end(best) {
        if !document.tag(node).is_block() {
            continue;
        }
        let own = blocks.own_roles[node];
        let share = if own.has(Roles::BODY) && gains[node] >= bodies * COMPLETE_SHARE
            || own.has(Roles::ARTICLE)
        {
            MIN_BODY_SHARE
        } else {
            MIN_INNER_SHARE
        };
        if gains[node] >= gains[best] * share {
            chosen = node;
        }
    }
    chosen
}
