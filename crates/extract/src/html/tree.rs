//! The tree as an array in document order: the descendants of a node are the
//! nodes from the next index up to its `end`. Text and attributes are places
//! in the source, decoded on demand. Never changed once built.

use std::borrow::Cow;

use tidings_text::entities::decode;

use super::tag::Tag;

/// The index of a node.
pub(crate) type NodeId = usize;

#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) tag: Tag,
    pub(super) parent: u32,
    /// One past the last descendant.
    pub(super) end: u32,
    /// Text: its place in the source. Element: its places in `attrs`.
    pub(super) from: u32,
    pub(super) to: u32,
    /// Position of the element's name in the source.
    pub(super) name: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Attr {
    pub(super) name: (u32, u32),
    pub(super) value: (u32, u32),
}

/// A parsed page. Node 0 is the root, an element without a name.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    pub(super) source: &'a str,
    pub(super) nodes: Vec<Node>,
    pub(super) attrs: Vec<Attr>,
    /// A cap was reached: something of the page is missing.
    pub(crate) truncated: bool,
}

impl<'a> Document<'a> {
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn tag(&self, node: NodeId) -> Tag {
        self.nodes[node].tag
    }

    /// The parent; the root is its own.
    pub(crate) fn parent(&self, node: NodeId) -> NodeId {
        self.nodes[node].parent as usize
    }

    /// One past the last descendant of `node`.
    pub(crate) fn end(&self, node: NodeId) -> NodeId {
        self.nodes[node].end as usize
    }

    /// The node itself, its parent, and so on up to the root.
    pub(crate) fn ancestors(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let mut next = Some(node);
        std::iter::from_fn(move || {
            let here = next?;
            next = (here != 0).then(|| self.parent(here));
            Some(here)
        })
    }

    pub(crate) fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let end = self.end(node);
        let mut next = node + 1;
        std::iter::from_fn(move || {
            let here = next;
            (here < end).then(|| {
                next = self.end(here);
                here
            })
        })
    }

    /// The element's name as it was written; empty for text.
    pub(crate) fn name(&self, node: NodeId) -> &'a str {
        let Node { tag, name, .. } = self.nodes[node];
        if tag == Tag::Text || node == 0 {
            return "";
        }
        let rest = &self.source[name as usize..];
        let end = rest.find(|c: char| c.is_ascii_whitespace() || c == '/' || c == '>');
        &rest[..end.unwrap_or(rest.len())]
    }

    /// The characters of a text node (or of raw content) as they stand in the source.
    pub(crate) fn raw_text(&self, node: NodeId) -> &'a str {
        let Node { tag, from, to, .. } = self.nodes[node];
        if tag == Tag::Text {
            &self.source[from as usize..to as usize]
        } else {
            ""
        }
    }

    /// Name and undecoded value of every attribute.
    pub(crate) fn attrs(&self, node: NodeId) -> impl Iterator<Item = (&'a str, &'a str)> + '_ {
        let Node { tag, from, to, .. } = self.nodes[node];
        let range = if tag == Tag::Text {
            0..0
        } else {
            from as usize..to as usize
        };
        self.attrs[range]
            .iter()
            .map(|attr| (self.span(attr.name), self.span(attr.value)))
    }

    /// The undecoded value of an attribute. The first wins, as in browsers.
    pub(crate) fn raw_attr(&self, node: NodeId, name: &str) -> Option<&'a str> {
        self.attrs(node)
            .find(|(candidate, _)| candidate.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The value of an attribute.
    pub(crate) fn attr(&self, node: NodeId, name: &str) -> Option<Cow<'a, str>> {
        self.raw_attr(node, name).map(decode)
    }

    /// All text below `node`, whitespace folded, a space at every element of a block.
    pub(crate) fn text(&self, node: NodeId) -> String {
        let mut joined = String::new();
        for id in node..self.end(node) {
            match self.tag(id) {
                Tag::Text if self.is_readable_text(id) => {
                    super::decode_into(self.raw_text(id), &mut joined);
                }
                tag if tag.is_block() || tag == Tag::Br => joined.push(' '),
                _ => {}
            }
        }
        crate::text::fold_whitespace(&joined)
    }

    /// Visible text: not the content of scripts and styles.
    pub(crate) fn is_readable_text(&self, node: NodeId) -> bool {
        let parent = self.tag(self.parent(node));
        !parent.is_raw() || matches!(parent, Tag::Title | Tag::Xmp)
    }

    fn span(&self, (from, to): (u32, u32)) -> &'a str {
        &self.source[from as usize..to as usize]
    }
}
