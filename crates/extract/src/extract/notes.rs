//! The verdict of every block of a page, with its reason in words, for `explain`.

use crate::article::BlockNote;
use crate::blocks::{Block, Blocks};
use crate::content::{Content, Verdict};
use crate::html::Document;

pub(super) fn notes(document: &Document<'_>, blocks: &Blocks, content: &Content) -> Vec<BlockNote> {
    let describe = |node: usize| {
        let mut name = document.name(node).to_owned();
        for (attribute, mark) in [("id", '#'), ("class", '.')] {
            for word in document
                .raw_attr(node, attribute)
                .unwrap_or("")
                .split_ascii_whitespace()
                .take(3)
            {
                name.push(mark);
                name.push_str(word);
            }
        }
        if node == content.container {
            format!("[{name}]")
        } else {
            name
        }
    };
    let note = |block: &Block, verdict: &Verdict| BlockNote {
        verdict: format!("{verdict:?}"),
        why: format!(
            "{:?}, size {}, links {:.2}{}, roles [{}]",
            block.kind,
            block.size,
            block.link_density(),
            if block.to_itself { " to itself" } else { "" },
            block.roles.names()
        ),
        path: document
            .ancestors(block.first)
            .skip(1)
            .take(5)
            .map(describe)
            .collect::<Vec<_>>()
            .join(" < "),
        text: block.text.clone(),
    };
    blocks
        .list
        .iter()
        .zip(&content.verdicts)
        .map(|(block, verdict)| note(block, verdict))
        .collect()
}
