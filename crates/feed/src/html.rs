//! HTML to plain text: tags out, references decoded once, white space
//! collapsed, scripts and styles dropped. Works on fragments of any quality
//! and never builds a tree.

use tidings_text::entities;

/// Which tags are markup. In a title, `Vec<T>` is a type and not a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tags {
    Any,
    OnlyHtml,
    None,
}

/// Which tags of a title are meant as such. "The <video> element" is about a
/// tag: markup has an end somewhere, or is one of those that need none.
pub(crate) fn tags_of_title(title: &str) -> Tags {
    let is_markup = ["</", "/>", "<br", "<img", "<wbr", "<!--"];
    let bytes = title.as_bytes();
    if memchr::memchr(b'<', bytes).is_none() || !is_markup.iter().any(|sign| title.contains(sign)) {
        Tags::None
    } else {
        Tags::OnlyHtml
    }
}

/// The text that a reader of the page would see.
pub(crate) fn text(html: &str, tags: Tags) -> String {
    let mut text = Collapsed::with_capacity(html.len().min(1 << 16));
    let mut decoded = String::new();
    for piece in Pieces::new(html, tags) {
        match piece {
            Piece::Break => text.space(),
            Piece::Text(raw) if memchr::memchr(b'&', raw.as_bytes()).is_none() => text.push(raw),
            Piece::Text(raw) => {
                decoded.clear();
                entities::decode_into(raw, &mut decoded);
                text.push(&decoded);
            }
        }
    }
    text.finish()
}

/// Plain text with white space collapsed and control characters dropped.
pub(crate) fn collapse(plain: &str) -> String {
    let mut text = Collapsed::with_capacity(plain.len());
    text.push(plain);
    text.finish()
}

/// Whether more than `limit` characters would be left of a fragment. Looks no
/// further than it must.
pub(crate) fn has_more_than(limit: usize, html: &str, tags: Tags) -> bool {
    let mut count = Count::default();
    Pieces::new(html, tags).any(|piece| match piece {
        Piece::Break => {
            count.wants_space = true;
            false
        }
        Piece::Text(raw) => count.exceeds(limit, raw),
    })
}

/// The same for plain text.
pub(crate) fn is_longer_than(limit: usize, plain: &str) -> bool {
    let mut count = Count::default();
    plain.chars().any(|c| count.add(c) > limit)
}

/// How many characters a [`Collapsed`] text would have.
#[derive(Default)]
struct Count {
    characters: usize,
    wants_space: bool,
}

impl Count {
    fn exceeds(&mut self, limit: usize, raw: &str) -> bool {
        let mut decoded = String::new();
        let mut rest = raw;
        while let Some(c) = rest.chars().next() {
            let (length, is_over) = if c == '&' {
                decoded.clear();
                let length = entities::reference(rest, &mut decoded);
                (length, decoded.chars().any(|c| self.add(c) > limit))
            } else {
                (c.len_utf8(), self.add(c) > limit)
            };
            if is_over {
                return true;
            }
            rest = &rest[length..];
        }
        false
    }

    fn add(&mut self, c: char) -> usize {
        if c.is_whitespace() {
            self.wants_space = true;
        } else if !is_dropped(c) {
            self.characters += 1 + usize::from(self.wants_space && self.characters > 0);
            self.wants_space = false;
        }
        self.characters
    }
}

fn is_dropped(c: char) -> bool {
    c.is_control() || c == '\u{feff}'
}

/// A string in which every run of white space is one space.
struct Collapsed {
    text: String,
    wants_space: bool,
}

impl Collapsed {
    fn with_capacity(capacity: usize) -> Self {
        Self {
            text: String::with_capacity(capacity),
            wants_space: false,
        }
    }

    fn space(&mut self) {
        self.wants_space = true;
    }

    fn push(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let bytes = rest.as_bytes();
            let run = bytes.iter().position(|byte| !is_plain(*byte));
            let run = run.unwrap_or(bytes.len());
            if run > 0 {
                self.word(&rest[..run]);
                rest = &rest[run..];
                continue;
            }
            let Some(c) = rest.chars().next() else { return };
            rest = &rest[c.len_utf8()..];
            match c {
                c if c.is_whitespace() => self.wants_space = true,
                c if is_dropped(c) => {}
                _ => self
                    .word(&text[text.len() - rest.len() - c.len_utf8()..text.len() - rest.len()]),
            }
        }
    }

    fn word(&mut self, word: &str) {
        if self.wants_space && !self.text.is_empty() {
            self.text.push(' ');
        }
        self.wants_space = false;
        self.text.push_str(word);
    }

    fn finish(mut self) -> String {
        self.text.shrink_to_fit();
        self.text
    }
}

/// Bytes that are copied in runs: all but white space, control characters and
/// the lead bytes under which Unicode has such.
fn is_plain(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f && !matches!(byte, 0xc2 | 0xe1 | 0xe2 | 0xe3 | 0xef)
}

#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    /// Text with its references still encoded.
    Text(&'a str),
    /// A tag that separates words.
    Break,
}

/// The visible parts of a fragment.
struct Pieces<'a> {
    rest: &'a str,
    tags: Tags,
}

impl<'a> Pieces<'a> {
    fn new(html: &'a str, tags: Tags) -> Self {
        Self { rest: html, tags }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        loop {
            match memchr::memchr(b'<', self.rest.as_bytes()) {
                None if self.rest.is_empty() => return None,
                None => return Some(Piece::Text(self.take(self.rest.len()))),
                Some(0) => {}
                Some(at) => return Some(Piece::Text(self.take(at))),
            }
            let markup = Markup::at(self.rest, self.tags);
            match markup {
                Markup::None => return Some(Piece::Text(self.take(1))),
                Markup::Inline(length) => self.take(length),
                Markup::Break(length) => {
                    self.take(length);
                    return Some(Piece::Break);
                }
                Markup::Section { skip, length } => {
                    self.take(skip);
                    let text = self.take(length);
                    self.rest = self.rest.strip_prefix("]]>").unwrap_or(self.rest);
                    return Some(Piece::Text(text));
                }
            };
        }
    }
}

/// What stands at a `<`, and how many bytes of it there are.
enum Markup {
    None,
    Inline(usize),
    Break(usize),
    /// A CDATA section whose text is visible.
    Section {
        skip: usize,
        length: usize,
    },
}

impl Markup {
    fn at(rest: &str, tags: Tags) -> Self {
        if tags == Tags::None {
            return Self::None;
        }
        let bytes = rest.as_bytes();
        let to_end = |end: Option<usize>| end.unwrap_or(rest.len());
        if let Some(inside) = rest.strip_prefix("<!--") {
            let end = memchr::memmem::find(inside.as_bytes(), b"-->");
            return Self::Inline(to_end(end.map(|at| at + "<!---->".len())));
        }
        if let Some(inside) = rest.strip_prefix("<![CDATA[") {
            let end = memchr::memmem::find(inside.as_bytes(), b"]]>");
            let length = end.unwrap_or(inside.len());
            let skip = "<![CDATA[".len();
            return Self::Section { skip, length };
        }
        match bytes.get(1) {
            Some(b'!' | b'?') => Self::Inline(to_end(memchr::memchr(b'>', bytes).map(|at| at + 1))),
            Some(b'/') if bytes.get(2).is_some_and(u8::is_ascii_alphabetic) => {
                Self::tag(rest, 2, tags)
            }
            Some(byte) if byte.is_ascii_alphabetic() => Self::tag(rest, 1, tags),
            _ => Self::None,
        }
    }

    fn tag(rest: &str, name_at: usize, tags: Tags) -> Self {
        let bytes = rest.as_bytes();
        let name = tag_name(&bytes[name_at..]);
        let mut buffer = [0; 16];
        let Some(lower) = lower_case(name, &mut buffer) else {
            return match tags {
                Tags::Any => Self::Inline(tag_end(bytes)),
                Tags::OnlyHtml | Tags::None => Self::None,
            };
        };
        let display = display_of(lower);
        match display {
            Display::Unknown if tags == Tags::OnlyHtml => Self::None,
            Display::Unknown | Display::Inline => Self::Inline(tag_end(bytes)),
            Display::Block => Self::Break(tag_end(bytes)),
            Display::Hidden if name_at == 2 => Self::Break(tag_end(bytes)),
            Display::Hidden => {
                let start = tag_end(bytes);
                Self::Break(start + end_of_hidden(&bytes[start..], lower))
            }
        }
    }
}

pub(crate) fn tag_name(bytes: &[u8]) -> &[u8] {
    let ends = |byte: &u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b':' | b'_');
    &bytes[..bytes.iter().position(ends).unwrap_or(bytes.len())]
}

/// Where a tag ends, counting its `>`. Quotes hide one only behind a `=`.
pub(crate) fn tag_end(bytes: &[u8]) -> usize {
    let mut at = 1;
    let mut first_close = None;
    while let Some(found) = memchr::memchr3(b'>', b'"', b'\'', &bytes[at..]) {
        let here = at + found;
        let byte = bytes[here];
        if byte == b'>' {
            return here + 1;
        }
        at = here + 1;
        if bytes[..here].trim_ascii_end().ends_with(b"=") {
            match memchr::memchr(byte, &bytes[at..]) {
                Some(close) => at += close + 1,
                None => {
                    first_close = memchr::memchr(b'>', &bytes[at..]).map(|close| at + close + 1);
                    break;
                }
            }
        }
    }
    first_close.unwrap_or(bytes.len())
}

/// How long the invisible content of an element is, its end tag excluded.
pub(crate) fn end_of_hidden(bytes: &[u8], name: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memmem::find(&bytes[at..], b"</") {
        let end = &bytes[at + found + 2..];
        if tag_name(end).eq_ignore_ascii_case(name) {
            return at + found;
        }
        at += found + 2;
    }
    bytes.len()
}

fn lower_case<'b>(name: &[u8], buffer: &'b mut [u8; 16]) -> Option<&'b [u8]> {
    let lower = buffer.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    Some(lower)
}

enum Display {
    Inline,
    Block,
    Hidden,
    Unknown,
}

fn display_of(name: &[u8]) -> Display {
    match name {
        b"script" | b"style" | b"template" | b"head" | b"svg" | b"iframe" => Display::Hidden,
        b"address" | b"article" | b"aside" | b"blockquote" | b"body" | b"br" | b"button"
        | b"caption" | b"center" | b"dd" | b"details" | b"dialog" | b"dir" | b"div" | b"dl"
        | b"dt" | b"fieldset" | b"figcaption" | b"figure" | b"footer" | b"form" | b"frame"
        | b"frameset" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"header" | b"hgroup"
        | b"hr" | b"html" | b"input" | b"legend" | b"li" | b"main" | b"menu" | b"meta" | b"nav"
        | b"ol" | b"option" | b"p" | b"pre" | b"search" | b"section" | b"summary" | b"table"
        | b"tbody" | b"td" | b"tfoot" | b"th" | b"thead" | b"tr" | b"ul" | b"video" | b"audio"
        | b"canvas" | b"img" => Display::Block,
        b"a" | b"math" | b"noscript" | b"object" | b"select" | b"textarea" | b"title" | b"abbr"
        | b"acronym" | b"area" | b"b" | b"base" | b"bdi" | b"bdo" | b"big" | b"blink" | b"cite"
        | b"code" | b"col" | b"colgroup" | b"data" | b"datalist" | b"del" | b"dfn" | b"em"
        | b"embed" | b"font" | b"i" | b"ins" | b"kbd" | b"label" | b"link" | b"map" | b"mark"
        | b"marquee" | b"meter" | b"nobr" | b"output" | b"param" | b"picture" | b"progress"
        | b"q" | b"rp" | b"rt" | b"ruby" | b"s" | b"samp" | b"small" | b"source" | b"span"
        | b"strike" | b"strong" | b"sub" | b"sup" | b"time" | b"track" | b"tt" | b"u" | b"var"
        | b"wbr" => Display::Inline,
        _ => Display::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::{Tags, has_more_than, tags_of_title, text};

    #[test]
    fn the_text_of_a_fragment_is_what_a_reader_sees() {
        for (html, expected) in [
            ("a <b>bold</b> word", "a bold word"),
            ("<p>one</p><p>two</p>", "one two"),
            ("a<br>b", "a b"),
            ("Tom &amp; Jerry &amp;amp;", "Tom & Jerry &amp;"),
            (
                "x<script>alert('<p>')</script>y<style>p{}</style>z",
                "x y z",
            ),
            ("x<SCRIPT type=a>1</Script >y", "x y"),
            ("x <!-- hidden > --> y", "x y"),
            ("a < b and c > d", "a < b and c > d"),
            ("<a title=\"x > y\">link</a>", "link"),
            ("<a title=\"x>link</a>", "link"),
            ("5\" <b>x</b>", "5\" x"),
            ("<![CDATA[kept]]>", "kept"),
            ("\u{0}a\u{b}b\u{7}\u{feff}", "a b"),
            ("a\u{a0}\u{2003}b\n\t c", "a b c"),
            ("<script>never closed", ""),
            ("<custom-tag>in</custom-tag>", "in"),
            ("", ""),
        ] {
            assert_eq!(text(html, Tags::Any), expected, "{html}");
        }
        for title in ["The <video> element", "How <script> works", "a < b > c"] {
            assert_eq!(text(title, tags_of_title(title)), title);
        }
        assert_eq!(
            text("Vec<T> &lt;T&gt; <b>x</b>", Tags::OnlyHtml),
            "Vec<T> <T> x"
        );
    }

    #[test]
    fn lengths_are_judged_without_the_markup() {
        assert!(has_more_than(0, "<p>a</p>", Tags::Any));
        assert!(!has_more_than(0, "<p> &nbsp;<img src=x></p>", Tags::Any));
        let long = format!("<p>{}</p>", "word ".repeat(30));
        assert!(has_more_than(100, &long, Tags::Any));
        assert!(!has_more_than(200, &long, Tags::Any));
    }
}
