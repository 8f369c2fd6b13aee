//! The page as a list of blocks: runs of text without a break, in document
//! order, each with what is needed to judge it (length, links, roles of what it
//! stands in). A subtree is a contiguous range of blocks. Judges nothing.

use crate::html::{Document, NodeId, Tag, decode_into};
use crate::roles::{Roles, own_roles};
use crate::text;

/// What kind of line a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Heading(u8),
    Paragraph,
    Item,
    Cell,
    Quote,
    Code,
    /// Text directly in a `div` or another container.
    Bare,
}

/// A run of text.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// The innermost block-level element around it.
    pub(crate) node: NodeId,
    /// Its first and last text node.
    pub(crate) first: NodeId,
    pub(crate) last: NodeId,
    pub(crate) kind: Kind,
    pub(crate) text: String,
    /// Characters, those of scripts without spaces counted twice.
    pub(crate) size: usize,
    /// The part of `size` inside links.
    pub(crate) link_size: usize,
    /// Roles of all elements it stands in.
    pub(crate) roles: Roles,
    /// It is bold as a whole, like a heading without the name.
    pub(crate) bold: bool,
    /// It is in italics as a whole.
    pub(crate) italic: bool,
    /// The link that it stands in holds other blocks too.
    pub(crate) in_card: bool,
    /// Its link leads to another place of the same page.
    pub(crate) to_itself: bool,
}

impl Block {
    pub(crate) fn link_density(&self) -> f32 {
        if self.size == 0 {
            0.0
        } else {
            self.link_size as f32 / self.size as f32
        }
    }
}

/// All blocks of a page in document order.
#[derive(Debug)]
pub(crate) struct Blocks {
    pub(crate) list: Vec<Block>,
    /// Roles that every node claims for itself, unless it holds most of the page.
    pub(crate) own_roles: Vec<Roles>,
}

impl Blocks {
    /// The blocks inside a node.
    pub(crate) fn within(&self, document: &Document<'_>, node: NodeId) -> std::ops::Range<usize> {
        let from = self.list.partition_point(|block| block.first < node);
        let end = document.end(node);
        let to = self.list.partition_point(|block| block.first < end);
        from..to
    }

    /// The roles of what stands around a block inside `container`. What a word
    /// or a link in it claims does not apply to the whole.
    pub(crate) fn roles_below(
        &self,
        document: &Document<'_>,
        container: NodeId,
        block: &Block,
    ) -> Roles {
        let mut roles = Roles::NONE;
        for id in document.ancestors(block.first) {
            if id == container {
                break;
            }
            if block.last < document.end(id) {
                roles |= self.own_roles[id];
            }
        }
        roles
    }

    /// The roles of all elements around a node.
    pub(crate) fn roles_around(&self, document: &Document<'_>, node: NodeId) -> Roles {
        let mut roles = Roles::NONE;
        for id in document.ancestors(node) {
            roles |= self.own_roles[id];
        }
        roles
    }

    /// Roles go down the tree. An element that holds most of the text can't be
    /// something beside it, whatever its class says (`has-sidebar`).
    fn assign_roles(&mut self, document: &Document<'_>) {
        let mut prose = vec![0_u32; document.len() + 1];
        let mut total = 0;
        for block in &self.list {
            let size = u32::try_from(block.size - block.link_size).unwrap_or(u32::MAX);
            total += size;
            prose[block.first] += size;
        }
        for node in (1..document.len()).rev() {
            prose[document.parent(node)] += prose[node];
        }
        self.own_roles = vec![Roles::NONE; document.len()];
        let mut all = vec![Roles::NONE; document.len()];
        for node in 1..document.len() {
            let mut own = own_roles(document, node);
            if own != Roles::NONE && prose[node] > total / 5 * 2 {
                own = own.without(Roles::OUTSIDE);
            }
            self.own_roles[node] = own;
            all[node] = own | all[document.parent(node)];
        }
        for block in &mut self.list {
            if block.link_size > 0 {
                let link = document
                    .ancestors(block.first)
                    .find(|id| document.tag(*id) == Tag::A);
                block.in_card = link.is_some_and(|link| link < block.node);
                let link = link
                    .or_else(|| (block.node..=block.last).find(|id| document.tag(*id) == Tag::A));
                block.to_itself = link
                    .and_then(|link| document.raw_attr(link, "href"))
                    .is_some_and(|href| href.starts_with('#') && href.len() > 1);
            }
            let around = document
                .ancestors(block.first)
                .find(|id| block.last < document.end(*id));
            block.roles = all[around.unwrap_or(0)];
        }
    }
}

/// Cuts a page into blocks.
pub(crate) fn cut(document: &Document<'_>) -> Blocks {
    let mut cutter = Cutter {
        document,
        list: Vec::new(),
        open: None,
        decoded: String::new(),
    };
    // Where inline content of the current block ends: leaving it is a break.
    let mut block_ends: Vec<NodeId> = Vec::new();
    let mut link_end = 0;
    let mut bold_end = 0;
    let mut italic_end = 0;
    let mut breaks = 0;
    for node in 1..document.len() {
        while block_ends.last().is_some_and(|end| *end <= node) {
            block_ends.pop();
            cutter.close();
        }
        let tag = document.tag(node);
        if tag == Tag::Text {
            let parent = document.tag(document.parent(node));
            if parent.is_raw() && parent != Tag::Xmp {
                continue;
            }
            breaks = 0;
            cutter.add(
                node,
                Style {
                    link: node < link_end,
                    bold: node < bold_end,
                    italic: node < italic_end,
                },
            );
            continue;
        }
        match tag {
            Tag::Br => {
                breaks += 1;
                if breaks > 1 {
                    cutter.close();
                } else {
                    cutter.line_break();
                }
            }
            Tag::A => link_end = link_end.max(document.end(node)),
            Tag::I | Tag::Em => italic_end = italic_end.max(document.end(node)),
            Tag::B | Tag::Strong => bold_end = bold_end.max(document.end(node)),
            _ if tag.is_block() => {
                cutter.close();
                block_ends.push(document.end(node));
            }
            _ => {}
        }
    }
    cutter.close();
    let mut blocks = Blocks {
        list: cutter.list,
        own_roles: Vec::new(),
    };
    blocks.assign_roles(document);
    blocks
}

/// How a piece of text looks.
#[derive(Debug, Clone, Copy)]
struct Style {
    link: bool,
    bold: bool,
    italic: bool,
}

struct Cutter<'d, 's> {
    document: &'d Document<'s>,
    list: Vec<Block>,
    open: Option<Block>,
    decoded: String,
}

impl Cutter<'_, '_> {
    fn add(&mut self, node: NodeId, style: Style) {
        let raw = self.document.raw_text(node);
        let blank = raw.bytes().all(|b| b.is_ascii_whitespace());
        if blank && self.open.is_none() {
            return;
        }
        let document = self.document;
        let block = self.open.get_or_insert_with(|| {
            let around = document
                .ancestors(node)
                .find(|id| document.tag(*id).is_block())
                .unwrap_or(0);
            Block {
                node: around,
                first: node,
                last: node,
                kind: kind(document, around),
                text: String::with_capacity(raw.len() + 16),
                size: 0,
                link_size: 0,
                roles: Roles::NONE,
                bold: true,
                italic: true,
                in_card: false,
                to_itself: false,
            }
        });
        let before = block.text.len();
        if memchr::memchr(b'&', raw.as_bytes()).is_some() {
            self.decoded.clear();
            decode_into(raw, &mut self.decoded);
            text::fold_whitespace_into(&self.decoded, &mut block.text);
        } else {
            text::fold_whitespace_into(raw, &mut block.text);
        }
        let added = text::size(&block.text[before..]);
        block.size += added;
        if style.link {
            block.link_size += added;
        }
        if added > 1 {
            block.bold &= style.bold;
            block.italic &= style.italic;
        }
        block.last = node;
    }

    fn line_break(&mut self) {
        if let Some(block) = &mut self.open {
            let trimmed = block.text.trim_end().len();
            block.text.truncate(trimmed);
            if !block.text.is_empty() {
                block.text.push('\n');
            }
        }
    }

    fn close(&mut self) {
        let Some(mut block) = self.open.take() else {
            return;
        };
        let trimmed = block.text.trim_end().len();
        block.text.truncate(trimmed);
        if block.text.chars().any(char::is_alphanumeric) {
            self.list.push(block);
        }
    }
}

fn kind(document: &Document<'_>, around: NodeId) -> Kind {
    match document.tag(around) {
        Tag::H1 => Kind::Heading(1),
        Tag::H2 => Kind::Heading(2),
        Tag::H3 => Kind::Heading(3),
        Tag::H4 => Kind::Heading(4),
        Tag::H5 => Kind::Heading(5),
        Tag::H6 => Kind::Heading(6),
        Tag::P => {
            let parent = document.tag(document.parent(around));
            match parent {
                Tag::Li => Kind::Item,
                Tag::Blockquote => Kind::Quote,
                _ => Kind::Paragraph,
            }
        }
        Tag::Li | Tag::Dt | Tag::Dd => Kind::Item,
        Tag::Td | Tag::Th | Tag::Caption => Kind::Cell,
        Tag::Blockquote => Kind::Quote,
        Tag::Pre | Tag::Xmp => Kind::Code,
        _ => Kind::Bare,
    }
}
