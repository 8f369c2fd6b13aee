//! Source to tree, in one pass and in linear time: a reading of HTML that
//! follows the standard where pages depend on it (implied end tags, raw text,
//! scopes) and never moves a node once placed, so document order is the order
//! of the array. The caps are checked here, where the memory would be spent.

use memchr::{memchr, memmem};

use super::tag::Tag;
use super::tree::{Attr, Document, Node};

/// Resource limits of a page. Beyond a cap the rest is left out, never an error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParserLimits {
    pub(crate) depth: usize,
    pub(crate) attributes: usize,
    pub(crate) texts: usize,
    /// Elements and texts together.
    pub(crate) nodes: usize,
    /// Bytes of one run of characters.
    pub(crate) text_bytes: usize,
}

impl Default for ParserLimits {
    fn default() -> Self {
        Self {
            depth: 512,
            attributes: 256,
            texts: 50_000,
            nodes: 200_000,
            text_bytes: 1 << 20,
        }
    }
}

/// Parses a page. `keep_going` is checked now and then; once it is false, the rest is left out.
pub(crate) fn parse<'a>(
    source: &'a str,
    limits: &ParserLimits,
    keep_going: &dyn Fn() -> bool,
) -> Document<'a> {
    let mut parser = Parser {
        source,
        bytes: source.as_bytes(),
        limits: *limits,
        document: Document {
            source,
            nodes: Vec::with_capacity(source.len() / 40 + 16),
            attrs: Vec::with_capacity(source.len() / 40 + 16),
            truncated: false,
        },
        open: Vec::with_capacity(64),
        open_of: [0; Tag::COUNT],
        beyond: 0,
        texts: 0,
        after_block: true,
        unended: Vec::new(),
        unended_comment: false,
    };
    parser.push(Tag::Other, 0, (0, 0));
    parser.run(keep_going);
    parser.close_to(0);
    parser.document
}

struct Parser<'a> {
    source: &'a str,
    bytes: &'a [u8],
    limits: ParserLimits,
    document: Document<'a>,
    /// The open elements, root first.
    open: Vec<(Tag, u32)>,
    /// How many of each are open: an end tag without its element costs nothing.
    open_of: [u16; Tag::COUNT],
    /// Elements that were opened beyond the depth cap and not closed yet.
    beyond: usize,
    texts: usize,
    /// The last tag was of a block, so whitespace that follows means nothing.
    after_block: bool,
    /// Raw elements that have no end tag in the rest of the page.
    unended: Vec<Tag>,
    unended_comment: bool,
}

impl Parser<'_> {
    fn run(&mut self, keep_going: &dyn Fn() -> bool) {
        let mut at = 0;
        let mut tags = 0_u32;
        while at < self.bytes.len() {
            let markup = memchr(b'<', &self.bytes[at..]).map_or(self.bytes.len(), |i| at + i);
            self.text(at, markup);
            if markup == self.bytes.len() {
                return;
            }
            tags += 1;
            if (tags & 0xfff == 0 && !keep_going())
                || self.document.nodes.len() >= self.limits.nodes
            {
                self.document.truncated = true;
                return;
            }
            at = match self.bytes.get(markup + 1) {
                Some(byte) if byte.is_ascii_alphabetic() => self.start_tag(markup),
                Some(b'/') => self.end_tag(markup),
                Some(b'!') => self.declaration(markup),
                Some(b'?') => self.after_gt(markup),
                _ => {
                    self.text(markup, markup + 1);
                    markup + 1
                }
            };
        }
    }

    fn after_gt(&self, from: usize) -> usize {
        memchr(b'>', &self.bytes[from..]).map_or(self.bytes.len(), |i| from + i + 1)
    }

    /// A comment, a doctype or CDATA.
    fn declaration(&mut self, at: usize) -> usize {
        let rest = &self.bytes[at..];
        if !rest.starts_with(b"<!--") {
            return self.after_gt(at);
        }
        if rest.starts_with(b"<!-->") {
            return at + 5;
        }
        // A comment that never ends would swallow the page: it ends at its first `>`.
        // That there is no end is remembered: looking again and again is quadratic.
        if self.unended_comment {
            return self.after_gt(at);
        }
        match memmem::find(&rest[4..], b"-->") {
            Some(i) => at + 4 + i + 3,
            None => {
                self.unended_comment = true;
                self.after_gt(at)
            }
        }
    }

    fn text(&mut self, from: usize, to: usize) {
        if from == to {
            return;
        }
        let blank = self.bytes[from..to].iter().all(u8::is_ascii_whitespace);
        if blank && self.after_block {
            return;
        }
        if self.texts >= self.limits.texts {
            self.document.truncated = true;
            return;
        }
        let mut end = to;
        if to - from > self.limits.text_bytes {
            self.document.truncated = true;
            end = from + self.limits.text_bytes;
            while !self.source.is_char_boundary(end) {
                end -= 1;
            }
        }
        if !blank {
            self.leave_head();
        }
        self.texts += 1;
        self.after_block = false;
        self.leaf(Tag::Text, from, (index(from), index(end)));
    }

    fn start_tag(&mut self, at: usize) -> usize {
        let name_end = self.name_end(at + 1);
        let tag = Tag::of(&self.bytes[at + 1..name_end]);
        let (after, attrs, self_closing) = self.attributes(name_end);
        if after > self.bytes.len() {
            // An unfinished tag at the end of the page.
            return self.bytes.len();
        }
        match tag {
            Tag::Html | Tag::Body if self.open.iter().any(|(open, _)| *open == tag) => {
                return after;
            }
            Tag::Plaintext => return after,
            _ => {}
        }
        if !tag.is_head_content() && !matches!(tag, Tag::Head | Tag::Html) {
            self.leave_head();
        }
        self.imply_end_tags(tag);
        if tag.is_block() || tag == Tag::Br {
            self.after_block = true;
        }
        let foreign = matches!(tag, Tag::Svg | Tag::Math);
        if tag.is_void() || (self_closing && foreign) {
            self.leaf(tag, at + 1, attrs);
            return after;
        }
        if tag.is_raw() {
            return self.raw_element(tag, at, after, attrs);
        }
        self.push(tag, at + 1, attrs);
        after
    }

    /// An element whose content is characters, up to its end tag.
    fn raw_element(&mut self, tag: Tag, at: usize, after: usize, attrs: (u32, u32)) -> usize {
        let (content_end, next) = match self.find_end_tag(tag, after) {
            Some(end) => (end, self.after_gt(end)),
            // The standard lets these run to the end of the page. For a script that
            // is right; for the others it would cost the article.
            None if matches!(tag, Tag::Script | Tag::Style) => (self.bytes.len(), self.bytes.len()),
            None => (after, after),
        };
        let id = self.leaf(tag, at + 1, attrs);
        // Only structured data and titles are ever read.
        if matches!(tag, Tag::Script | Tag::Title | Tag::Xmp) && content_end > after {
            let mut end = content_end.min(after + self.limits.text_bytes);
            while !self.source.is_char_boundary(end) {
                end -= 1;
            }
            self.document.nodes.push(Node {
                tag: Tag::Text,
                parent: index(id),
                end: index(self.document.nodes.len() + 1),
                from: index(after),
                to: index(end),
                name: 0,
            });
            self.document.nodes[id].end = index(self.document.nodes.len());
        }
        next
    }

    fn find_end_tag(&mut self, tag: Tag, from: usize) -> Option<usize> {
        if self.unended.contains(&tag) {
            return None;
        }
        let name = tag.name().as_bytes();
        let mut at = from;
        loop {
            let Some(found) = memchr(b'<', &self.bytes[at..]) else {
                self.unended.push(tag);
                return None;
            };
            at += found;
            let rest = &self.bytes[at + 1..];
            if let Some(rest) = rest.strip_prefix(b"/")
                && rest.len() >= name.len()
                && rest[..name.len()].eq_ignore_ascii_case(name)
                && !rest.get(name.len()).is_some_and(u8::is_ascii_alphanumeric)
            {
                return Some(at);
            }
            at += 1;
        }
    }

    fn end_tag(&mut self, at: usize) -> usize {
        let name_end = self.name_end(at + 2);
        let name = &self.bytes[at + 2..name_end];
        let after = self.after_gt(name_end);
        if !name.first().is_some_and(u8::is_ascii_alphabetic) {
            return after;
        }
        let tag = Tag::of(name);
        if tag.is_block() || tag == Tag::Br {
            self.after_block = true;
        }
        match tag {
            // What follows these still belongs to the page.
            Tag::Body | Tag::Html => return after,
            Tag::Br => {
                self.leaf(Tag::Br, at + 2, (0, 0));
                return after;
            }
            _ => {}
        }
        if self.beyond > 0 {
            self.beyond -= 1;
            return after;
        }
        if let Some(depth) = self.matching(tag, name) {
            self.close_to(depth);
        }
        after
    }

    /// The depth of the open element that an end tag closes, if it may reach it.
    fn matching(&self, tag: Tag, name: &[u8]) -> Option<usize> {
        use Tag::*;
        if !tag.is_heading() && self.open_of[tag as usize] == 0 {
            return None;
        }
        let table_part = matches!(tag, Table | Tbody | Thead | Tfoot | Tr | Td | Th | Caption);
        for depth in (1..self.open.len()).rev() {
            let (open, id) = self.open[depth];
            let same = match tag {
                Other => {
                    open == Other
                        && self
                            .document
                            .name(id as usize)
                            .as_bytes()
                            .eq_ignore_ascii_case(name)
                }
                _ if tag.is_heading() => open.is_heading(),
                _ => open == tag,
            };
            if same {
                return Some(depth);
            }
            let barrier = if table_part {
                matches!(open, Table | Html | Body | Template)
            } else if tag == Li {
                matches!(open, Ul | Ol | Menu) || open.is_scope()
            } else if tag.is_block() || tag == Other {
                open.is_scope()
            } else {
                // Inline: the standard would rebuild the tree here; we leave it open.
                open.is_block()
            };
            if barrier {
                return None;
            }
        }
        None
    }

    fn imply_end_tags(&mut self, tag: Tag) {
        use Tag::*;
        if tag.closes_p() {
            self.close_nearest(&[P], |open| open.is_scope() || open == Button);
        }
        match tag {
            Li => self.close_nearest(&[Li], |open| {
                matches!(
                    open,
                    Ul | Ol | Menu | Section | Article | Blockquote | Figure
                ) || open.is_scope()
            }),
            Dt | Dd => self.close_nearest(&[Dt, Dd], |open| open == Dl || open.is_scope()),
            Option | Optgroup => self.close_nearest(&[Option], |open| {
                matches!(open, Select | Optgroup) || open.is_block()
            }),
            Tr => self.close_nearest(&[Tr], |open| matches!(open, Table | Template)),
            Td | Th => self.close_nearest(&[Td, Th], |open| matches!(open, Tr | Table | Template)),
            Tbody | Thead | Tfoot => {
                self.close_nearest(&[Tbody, Thead, Tfoot], |open| {
                    matches!(open, Table | Template)
                });
            }
            A => self.close_nearest(&[A], |open| open.is_block()),
            Body => self.close_nearest(&[Head], |_| false),
            _ if tag.is_heading()
                && self.open.last().is_some_and(|(open, _)| open.is_heading()) =>
            {
                self.close_to(self.open.len() - 1);
            }
            _ => {}
        }
    }

    fn close_nearest(&mut self, wanted: &[Tag], barrier: impl Fn(Tag) -> bool) {
        if wanted.iter().all(|tag| self.open_of[*tag as usize] == 0) {
            return;
        }
        for depth in (1..self.open.len()).rev() {
            let (open, _) = self.open[depth];
            if wanted.contains(&open) {
                self.close_to(depth);
                return;
            }
            if barrier(open) {
                return;
            }
        }
    }

    fn leave_head(&mut self) {
        if self.open.last().is_some_and(|(open, _)| *open == Tag::Head) {
            self.close_to(self.open.len() - 1);
        }
    }

    /// Closes the open elements at `depth` and deeper.
    fn close_to(&mut self, depth: usize) {
        let end = index(self.document.nodes.len());
        for (tag, id) in self.open.drain(depth..) {
            self.open_of[tag as usize] -= 1;
            self.document.nodes[id as usize].end = end;
        }
    }

    fn push(&mut self, tag: Tag, name: usize, attrs: (u32, u32)) {
        if self.open.len() >= self.limits.depth {
            self.document.truncated = true;
            self.beyond += 1;
            self.leaf(tag, name, attrs);
            return;
        }
        let id = self.leaf(tag, name, attrs);
        self.open.push((tag, index(id)));
        self.open_of[tag as usize] += 1;
    }

    fn leaf(&mut self, tag: Tag, name: usize, (from, to): (u32, u32)) -> usize {
        let id = self.document.nodes.len();
        let parent = self.open.last().map_or(0, |(_, parent)| *parent);
        self.document.nodes.push(Node {
            tag,
            parent,
            end: index(id + 1),
            from,
            to,
            name: index(name),
        });
        id
    }

    fn name_end(&self, from: usize) -> usize {
        self.bytes[from..]
            .iter()
            .position(|b| b.is_ascii_whitespace() || matches!(b, b'/' | b'>' | b'<'))
            .map_or(self.bytes.len(), |i| from + i)
    }

    /// Reads attributes up to `>`: where the tag ends, where they stand in
    /// `attrs`, and whether the tag ends in `/>`.
    fn attributes(&mut self, from: usize) -> (usize, (u32, u32), bool) {
        let bytes = self.bytes;
        let first = self.document.attrs.len();
        let mut at = from;
        let mut self_closing = false;
        loop {
            while at < bytes.len() && (bytes[at].is_ascii_whitespace() || bytes[at] == b'/') {
                self_closing = bytes[at] == b'/';
                at += 1;
            }
            match bytes.get(at) {
                None => {
                    self.document.attrs.truncate(first);
                    return (bytes.len() + 1, (0, 0), false);
                }
                Some(b'>') => {
                    at += 1;
                    break;
                }
                Some(_) => {}
            }
            self_closing = false;
            let name_from = at;
            at += 1;
            while at < bytes.len()
                && !(bytes[at].is_ascii_whitespace() || matches!(bytes[at], b'=' | b'>' | b'/'))
            {
                at += 1;
            }
            let name = (index(name_from), index(at));
            let mut value_at = at;
            while value_at < bytes.len() && bytes[value_at].is_ascii_whitespace() {
                value_at += 1;
            }
            let mut value = (0, 0);
            if bytes.get(value_at) == Some(&b'=') {
                value_at += 1;
                while value_at < bytes.len() && bytes[value_at].is_ascii_whitespace() {
                    value_at += 1;
                }
                let (value_from, value_to, next) = match bytes.get(value_at) {
                    Some(quote @ (b'"' | b'\'')) => {
                        let from = value_at + 1;
                        let to = memchr(*quote, &bytes[from..]).map_or(bytes.len(), |i| from + i);
                        (from, to, to + 1)
                    }
                    _ => {
                        let mut to = value_at;
                        while to < bytes.len()
                            && !bytes[to].is_ascii_whitespace()
                            && bytes[to] != b'>'
                        {
                            to += 1;
                        }
                        (value_at, to, to)
                    }
                };
                value = (index(value_from), index(value_to));
                at = next.min(bytes.len());
            }
            if self.document.attrs.len() - first < self.limits.attributes {
                self.document.attrs.push(Attr { name, value });
            } else {
                self.document.truncated = true;
            }
        }
        (
            at,
            (index(first), index(self.document.attrs.len())),
            self_closing,
        )
    }
}

/// Sources are capped far below 4 GiB before they get here.
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
