//! Boxes inside the article that are not part of it, known by their build and
//! in any language: lists of links, boxes with a form, rows of teasers.

use std::ops::Range;

use crate::blocks::{Blocks, Kind};
use crate::html::{Document, NodeId, Tag};

/// A box with a form has less text than this around it.
const MAX_FORM_BOX_SIZE: usize = 350;
/// A paragraph longer than this belongs to the article.
const MIN_PARAGRAPH_SIZE: usize = 160;
/// A teaser has less text than this.
const MAX_TEASER_SIZE: usize = 400;

/// For every block of the range whether it is in such a box.
pub(super) fn find(
    document: &Document<'_>,
    blocks: &Blocks,
    container: NodeId,
    range: Range<usize>,
) -> Vec<bool> {
    let sizes = Sizes::new(document, blocks, container, range.clone());
    let mut boxes: Vec<NodeId> = Vec::new();
    sizes.tables_of_contents(&mut boxes);
    sizes.form_boxes(&mut boxes);
    sizes.teaser_rows(&mut boxes);
    let mut clutter = vec![false; range.len()];
    for node in boxes {
        for index in blocks.within(document, node) {
            if range.contains(&index) {
                clutter[index - range.start] = true;
            }
        }
    }
    clutter
}

/// Text and link text below every node of the container.
struct Sizes<'a, 's> {
    document: &'a Document<'s>,
    blocks: &'a Blocks,
    container: NodeId,
    size: Vec<u32>,
    links: Vec<u32>,
}

impl<'a, 's> Sizes<'a, 's> {
    fn new(
        document: &'a Document<'s>,
        blocks: &'a Blocks,
        container: NodeId,
        range: Range<usize>,
    ) -> Self {
        let end = document.end(container);
        let mut size = vec![0_u32; end - container];
        let mut links = vec![0_u32; end - container];
        for block in &blocks.list[range] {
            size[block.first - container] += u32::try_from(block.size).unwrap_or(u32::MAX);
            links[block.first - container] += u32::try_from(block.link_size).unwrap_or(u32::MAX);
        }
        for node in (container + 1..end).rev() {
            let parent = document.parent(node) - container;
            size[parent] += size[node - container];
            links[parent] += links[node - container];
        }
        Self {
            document,
            blocks,
            container,
            size,
            links,
        }
    }

    fn size(&self, node: NodeId) -> usize {
        self.size[node - self.container] as usize
    }

    fn nodes(&self) -> Range<NodeId> {
        self.container + 1..self.document.end(self.container)
    }

    /// Tables of contents: lists of links to places of the same page.
    fn tables_of_contents(&self, boxes: &mut Vec<NodeId>) {
        for node in self.nodes() {
            if matches!(
                self.document.tag(node),
                Tag::Ul | Tag::Ol | Tag::Menu | Tag::Dl
            ) {
                let (size, links) = (
                    self.size[node - self.container],
                    self.links[node - self.container],
                );
                let within = self.blocks.within(self.document, node);
                let anchors = self.blocks.list[within.clone()]
                    .iter()
                    .filter(|block| block.to_itself)
                    .count();
                if links * 10 > size * 7 && anchors * 2 > within.len() {
                    boxes.push(node);
                }
            }
        }
    }

    /// The largest box around a form that holds little else.
    fn form_boxes(&self, boxes: &mut Vec<NodeId>) {
        for node in self.nodes() {
            let is_form = match self.document.tag(node) {
                Tag::Form | Tag::Textarea => true,
                Tag::Input => self
                    .document
                    .raw_attr(node, "type")
                    .is_some_and(|kind| matches!(kind, "email" | "tel")),
                _ => false,
            };
            if !is_form {
                continue;
            }
            let is_box = |id: NodeId| {
                self.size(id) < MAX_FORM_BOX_SIZE
                    && !self.blocks.list[self.blocks.within(self.document, id)]
                        .iter()
                        .any(|block| block.size > MIN_PARAGRAPH_SIZE)
            };
            let around = self
                .document
                .ancestors(node)
                .take_while(|id| *id != self.container && is_box(*id))
                .last();
            boxes.extend(around);
        }
    }

    /// Three or more similar elements in a row, each small and with a linked headline.
    fn teaser_rows(&self, boxes: &mut Vec<NodeId>) {
        let mut rows: Vec<NodeId> = Vec::new();
        for node in self.container..self.document.end(self.container) {
            if self.document.tag(node) == Tag::Text || self.size(node) == 0 {
                continue;
            }
            let mut row: Vec<NodeId> = Vec::new();
            let mut look = "";
            for child in self.document.children(node) {
                if !self.document.tag(child).is_block() || self.size(child) == 0 {
                    continue;
                }
                let class = self.document.raw_attr(child, "class").unwrap_or("");
                let is_similar = row
                    .last()
                    .is_none_or(|last| self.document.tag(*last) == self.document.tag(child))
                    && (row.is_empty() || class == look);
                if !self.is_teaser(child) || !is_similar {
                    if row.len() >= 3 {
                        rows.append(&mut row);
                    }
                    row.clear();
                }
                if self.is_teaser(child) {
                    row.push(child);
                    look = class;
                }
            }
            if row.len() >= 3 {
                rows.append(&mut row);
            }
        }
        // A list of small things can be the article itself.
        let all: usize = rows.iter().map(|node| self.size(*node)).sum();
        if all * 4 < self.size(self.container) {
            boxes.append(&mut rows);
        }
    }

    fn is_teaser(&self, node: NodeId) -> bool {
        if self.size(node) >= MAX_TEASER_SIZE
            || !matches!(
                self.document.tag(node),
                Tag::Div | Tag::Li | Tag::Article | Tag::Section
            )
        {
            return false;
        }
        let within = self.blocks.within(self.document, node);
        let is_headline = |index: usize| {
            let block = &self.blocks.list[index];
            block.link_density() > 0.9 && (matches!(block.kind, Kind::Heading(_)) || block.in_card)
        };
        within.len() <= 8 && within.len() > 1 && within.clone().any(is_headline)
    }
}
