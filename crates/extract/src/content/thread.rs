//! The text of a thread: elements of one build, each a post of somebody. Of
//! each post its body is kept, and one line with the name and one with the
//! date; what the forum says about its members is not.

use std::collections::HashSet;
use std::ops::Range;

use super::{Content, Verdict, is_paragraph};
use crate::blocks::{Block, Blocks, Kind};
use crate::dates::find_in_words;
use crate::html::{Document, NodeId, Tag};
use crate::roles::Roles;

/// Posts of one mark must have this share of the text of the mark with the most.
const MIN_MARK_SHARE: f32 = 0.6;
/// Posts that are read.
const MAX_POSTS: usize = 2_000;
/// Shorter lines come again without being a quotation.
const MIN_QUOTE_SIZE: usize = 40;
/// Less text than this is no thread.
const MIN_THREAD_SIZE: usize = 60;

/// The posts of a page; none if no element calls itself a post.
pub(super) fn find(document: &Document<'_>, blocks: &Blocks) -> Option<Content> {
    let mut sizes = vec![0_u32; document.len()];
    for block in &blocks.list {
        sizes[block.first] += u32::try_from(block.size).unwrap_or(0);
    }
    for node in (1..document.len()).rev() {
        sizes[document.parent(node)] += sizes[node];
    }
    let posts = posts(document, blocks, &sizes)?;
    let mut verdicts = vec![Verdict::Elsewhere; blocks.list.len()];
    for &post in &posts {
        let within = blocks.within(document, post);
        let bodies = bodies(document, &sizes, post);
        let Some(first) = bodies.first() else {
            keep_body(document, blocks, post, within, &mut verdicts);
            continue;
        };
        for &body in &bodies {
            keep_body(
                document,
                blocks,
                body,
                blocks.within(document, body),
                &mut verdicts,
            );
        }
        if bodies.len() == 1 {
            let inside = blocks.within(document, *first);
            keep_byline(document, blocks, post, within, &inside, &mut verdicts);
        }
    }
    keep_opening(blocks, posts[0], &mut verdicts);
    drop_quotes(blocks, &mut verdicts);
    let kept: usize = verdicts
        .iter()
        .zip(&blocks.list)
        .filter(|(verdict, _)| **verdict == Verdict::Kept)
        .map(|(_, block)| block.size)
        .sum();
    if kept < MIN_THREAD_SIZE {
        return None;
    }
    // What holds all posts.
    let (first, last) = (*posts.first()?, *posts.last()?);
    let container = document
        .ancestors(first)
        .find(|node| document.end(*node) > last)
        .unwrap_or(0);
    Some(Content {
        container,
        verdicts,
    })
}

/// The posts under the mark that tells them apart best: of the marks with most
/// of the text the one with the most elements.
fn posts(document: &Document<'_>, blocks: &Blocks, sizes: &[u32]) -> Option<Vec<NodeId>> {
    let mut marks: Vec<(&str, NodeId, Vec<NodeId>, u32)> = Vec::new();
    let beside = Roles::NAV | Roles::FOOTER | Roles::ASIDE;
    for (node, size) in sizes.iter().enumerate().skip(1) {
        if document.tag(node) == Tag::Text || *size == 0 {
            continue;
        }
        for mark in marks_of(document, node) {
            let known = marks.iter_mut().find(|(name, _, _, _)| *name == mark);
            let entry = match known {
                Some(entry) => entry,
                None => {
                    marks.push((mark, 0, Vec::new(), 0));
                    marks.last_mut()?
                }
            };
            // Outermost ones only, and none beside the thread.
            if node >= entry.1
                && entry.2.len() < MAX_POSTS
                && !blocks.roles_around(document, node).has(beside)
            {
                entry.1 = document.end(node);
                entry.2.push(node);
                entry.3 += size;
            }
        }
    }
    let most = marks.iter().map(|(_, _, _, sum)| *sum).max()?;
    marks
        .into_iter()
        .filter(|(_, _, _, sum)| *sum as f32 >= most as f32 * MIN_MARK_SHARE)
        .max_by_key(|(_, _, posts, sum)| (posts.len(), *sum))
        .map(|(_, _, posts, _)| posts)
}

/// The words by which an element calls itself a post.
fn marks_of<'a>(document: &Document<'a>, node: NodeId) -> Vec<&'a str> {
    let mut marks = Vec::new();
    if document.tag(node) == Tag::A {
        return marks;
    }
    for (name, value) in document.attrs(node) {
        if name.eq_ignore_ascii_case("class") {
            for class in value.split_ascii_whitespace().take(20) {
                // Questions and their answers are posts of one thread.
                if ["question", "answer"]
                    .iter()
                    .any(|known| class.eq_ignore_ascii_case(known))
                {
                    marks.push("question or answer");
                } else if ["bbp-topic", "bbp-reply"]
                    .iter()
                    .any(|known| class.eq_ignore_ascii_case(known))
                {
                    marks.push("bbp");
                } else if POST_CLASSES
                    .iter()
                    .any(|known| class.eq_ignore_ascii_case(known))
                {
                    marks.push(class);
                }
            }
        } else if name.eq_ignore_ascii_case("id") {
            let stem = value.trim_end_matches(|c: char| c.is_ascii_digit());
            if stem.len() < value.len()
                && POST_IDS
                    .iter()
                    .any(|known| stem.eq_ignore_ascii_case(known))
            {
                marks.push(stem);
            }
        } else if name.eq_ignore_ascii_case("itemtype") {
            let kind = value.trim().rsplit('/').next().unwrap_or(value);
            if matches!(
                kind,
                "DiscussionForumPosting" | "Comment" | "Answer" | "Question"
            ) {
                marks.push(kind);
            }
        }
    }
    if document.name(node).eq_ignore_ascii_case("shreddit-comment") {
        marks.push("shreddit-comment");
    }
    marks
}

/// What was written, without what the forum shows around it: the outermost
/// elements that are surely a body, else the largest that may be one.
fn bodies(document: &Document<'_>, sizes: &[u32], post: NodeId) -> Vec<NodeId> {
    let (mut sure, mut sure_end) = (Vec::new(), 0);
    let mut perhaps: Option<NodeId> = None;
    let mut node = post + 1;
    while node < document.end(post) {
        if document.tag(node) == Tag::Text || sizes[node] == 0 {
            node += 1;
            continue;
        }
        let kind = body_kind(document, node);
        match kind {
            // A signature is written once and shown under everything.
            Some(Body::None) => {
                node = document.end(node);
                continue;
            }
            Some(Body::Sure) if node >= sure_end => {
                sure.push(node);
                sure_end = document.end(node);
            }
            Some(Body::Perhaps)
                if perhaps.is_none_or(|known| {
                    node < document.end(known) && sizes[node] * 10 >= sizes[known] * 9
                        || node >= document.end(known) && sizes[node] > sizes[known]
                }) =>
            {
                perhaps = Some(node);
            }
            _ => {}
        }
        node += 1;
    }
    if sure.is_empty() {
        sure.extend(perhaps);
    }
    sure
}

/// How surely an element holds what somebody wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Body {
    None,
    Perhaps,
    Sure,
}

fn body_kind(document: &Document<'_>, node: NodeId) -> Option<Body> {
    let mut kind = None;
    for (name, value) in document.attrs(node) {
        let is_body =
            name.eq_ignore_ascii_case("itemprop") && matches!(value, "text" | "articleBody");
        let is_message = name.eq_ignore_ascii_case("id") && value.starts_with("post_message_");
        if is_body || is_message {
            kind = kind.max(Some(Body::Sure));
        } else if name.eq_ignore_ascii_case("class") {
            for class in value.split_ascii_whitespace().take(20) {
                if class.to_ascii_lowercase().contains("signature") {
                    return Some(Body::None);
                }
                let is_in =
                    |list: &[&str]| list.iter().any(|known| class.eq_ignore_ascii_case(known));
                if is_in(SURE_BODIES) {
                    kind = kind.max(Some(Body::Sure));
                } else if is_in(BODY_CLASSES) {
                    kind = kind.max(Some(Body::Perhaps));
                }
            }
        }
    }
    kind
}

fn keep_body(
    document: &Document<'_>,
    blocks: &Blocks,
    body: NodeId,
    range: Range<usize>,
    verdicts: &mut [Verdict],
) {
    let beside =
        Roles::FORM | Roles::SHARE | Roles::AD | Roles::HIDDEN | Roles::NAV | Roles::CONSENT;
    for index in range {
        let block = &blocks.list[index];
        let is_beside = blocks.roles_below(document, body, block).has(beside)
            || class_around(
                document,
                body,
                block,
                &["signature", "edited", "reactions", "likes"],
            );
        verdicts[index] = if is_beside {
            Verdict::Role
        } else {
            Verdict::Kept
        };
    }
}

/// The name and the date of a post, once each.
fn keep_byline(
    document: &Document<'_>,
    blocks: &Blocks,
    post: NodeId,
    within: Range<usize>,
    body: &Range<usize>,
    verdicts: &mut [Verdict],
) {
    let (mut has_name, mut has_date) = (false, false);
    for index in within {
        if body.contains(&index) {
            continue;
        }
        let block = &blocks.list[index];
        let has_time = || {
            (block.node..=block.last).any(|node| document.tag(node) == Tag::Time)
                || document
                    .ancestors(block.first)
                    .take_while(|node| *node != post)
                    .any(|node| document.tag(node) == Tag::Time)
        };
        let is_name = !has_name
            && index < body.start
            && block.size < 40
            && class_around(
                document,
                post,
                block,
                &[
                    "username",
                    "author",
                    "creator",
                    "poster",
                    "user-name",
                    "nickname",
                ],
            );
        let is_date = !has_date
            && block.size < 60
            && (has_time() || find_in_words(&block.text).is_some())
            && !class_around(
                document,
                post,
                block,
                &["userextras", "userinfo", "user-info", "extras"],
            );
        if is_name || is_date {
            has_name |= is_name;
            has_date |= is_date;
            verdicts[index] = Verdict::Kept;
        }
    }
}

/// The opening post may stand above the others, without their mark.
fn keep_opening(blocks: &Blocks, first: NodeId, verdicts: &mut [Verdict]) {
    let beside = Roles::NAV
        | Roles::FOOTER
        | Roles::ASIDE
        | Roles::FORM
        | Roles::CONSENT
        | Roles::HIDDEN
        | Roles::PROMO
        | Roles::RELATED
        | Roles::AD;
    let end = blocks.list.partition_point(|block| block.first < first);
    let Some(headline) = blocks.list[..end]
        .iter()
        .rposition(|block| block.kind == Kind::Heading(1))
    else {
        return;
    };
    for (index, block) in blocks.list[..end].iter().enumerate().skip(headline + 1) {
        if is_paragraph(block) && !block.in_card && !block.roles.has(beside) {
            verdicts[index] = Verdict::Kept;
        }
    }
}

/// What an earlier post has said already: an answer quotes it.
fn drop_quotes(blocks: &Blocks, verdicts: &mut [Verdict]) {
    let mut seen = HashSet::new();
    for (block, verdict) in blocks.list.iter().zip(verdicts) {
        if *verdict == Verdict::Kept
            && block.size >= MIN_QUOTE_SIZE
            && !seen.insert(block.text.as_str())
        {
            *verdict = Verdict::Repeated;
        }
    }
}

/// Whether the class of an element around a block, inside `within`, has one of the words.
fn class_around(document: &Document<'_>, within: NodeId, block: &Block, words: &[&str]) -> bool {
    document
        .ancestors(block.first)
        .take_while(|node| *node != within)
        .filter_map(|node| document.raw_attr(node, "class"))
        .any(|class| {
            let class = class.to_ascii_lowercase();
            words.iter().any(|word| class.contains(word))
        })
}

#[rustfmt::skip]
const POST_CLASSES: &[&str] = &[
    "post", "message", "comment", "reply", "topic-post", "crawler-post", "cpost",
    "ipscomment", "ipsentry", "postcontainer", "post-container", "postbit", "postbitlegacy", "b-post", "blockpost",
    "post_block", "message--post", "topic-reply", "forum-post", "comment-wrapper", "post-wrapper", "post-item", "thread-post", "postbox", "lia-message-view-wrapper", "windowbg",
    "windowbg2", "post_wrapper", "athing", "comtr", "entry-post",
];
#[rustfmt::skip]
const POST_IDS: &[&str] = &[
    "post", "post_", "post-", "post_id_", "comment-", "comment_", "answer-", "reply-", "msg", "msg_", "p", "pid",
    "elcomment_", "edit", "message-", "table",
];
#[rustfmt::skip]
const SURE_BODIES: &[&str] = &[
    "cooked", "bbwrapper", "post_message", "post-message", "postmsg", "ipstype_richtext", "ipsrichtext", "s-prose",
    "usertext-body", "md", "commtext", "post-text", "comment-content", "lia-message-body-content",
    "bbp-reply-content", "bbp-topic-content", "post_body", "commentbody", "messagetext", "post__content",
    "postcontent", "narrow",
];
#[rustfmt::skip]
const BODY_CLASSES: &[&str] = &[
    "content", "postbody", "post-body", "message-content", "message-body", "message-usercontent", "post-content",
    "cpost_contentwrap", "comment_body", "comment-body", "entry-content", "body", "post_content", "msgtext",
    "inner", "message-text", "text",
];
