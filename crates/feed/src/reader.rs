//! Reads RSS, RDF, Atom and CDF: keeps the stack of open elements, decides
//! which element is which field of what, and hands items on as they end. What
//! is misnested costs the element it is in, never the rest.

mod fields;

use std::ops::ControlFlow;

use url::Url;

use crate::capture::{Mode, Value};
use crate::channel::Channel;
use crate::defect::DefectKind;
use crate::draft::Draft;
use crate::element::{Element, element};
use crate::field::Field;
use crate::hints::Hints;
use crate::model::{Feed, Format, Item};
use crate::namespace::{self, Namespace};
use crate::scope::Scope;
use crate::tokens::{Tag, Token, Tokens};

/// Deeper elements are looked through, not at.
const MAX_DEPTH: usize = 512;

/// What an open element is to its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The feed: its children describe it.
    Feed,
    Item,
    /// Inside an item, where only media elements count.
    Media,
    /// Nothing in here is about the feed or the item.
    Elsewhere,
}

struct Open<'a> {
    name: &'a str,
    place: Place,
}

/// The element whose value is being read.
struct Capture<'a> {
    /// Its index in the stack.
    index: usize,
    field: Field<'a>,
    mode: Mode,
    value: Value<'a>,
    content_start: usize,
    of_item: bool,
}

pub(crate) struct Reader<'a, 'r> {
    tokens: Tokens<'a>,
    hints: &'r Hints<'r>,
    emit: &'r mut dyn FnMut(Item) -> ControlFlow<()>,
    scope: Scope<'a>,
    stack: Vec<Open<'a>>,
    /// How many open elements are deeper than the stack may be.
    too_deep: usize,
    channel: Channel,
    /// The home page that the channel names.
    site: Option<Url>,
    draft: Option<Draft>,
    capture: Option<Capture<'a>>,
    is_atom: bool,
    is_stopped: bool,
    items: usize,
    /// Items without link, id and title.
    dropped: usize,
    undeclared: Vec<&'a str>,
}

impl<'a, 'r> Reader<'a, 'r> {
    pub(crate) fn new(
        tokens: Tokens<'a>,
        format: Format,
        hints: &'r Hints<'r>,
        emit: &'r mut dyn FnMut(Item) -> ControlFlow<()>,
    ) -> Self {
        Self {
            tokens,
            hints,
            emit,
            scope: Scope::default(),
            stack: Vec::new(),
            too_deep: 0,
            channel: Channel::new(format),
            site: None,
            draft: None,
            capture: None,
            is_atom: matches!(format, Format::Atom03 | Format::Atom10),
            is_stopped: false,
            items: 0,
            dropped: 0,
            undeclared: Vec::new(),
        }
    }

    /// Reads from the root element to the end of the document.
    pub(crate) fn read(mut self, root: Tag<'a>) -> Feed {
        self.start(root);
        while !self.is_stopped
            && let Some(token) = self.tokens.next()
        {
            match token {
                Token::Start(tag) => self.start(tag),
                Token::End(name) => self.end(name),
                Token::Text(text) => {
                    if let Some(capture) = &mut self.capture {
                        let offset = self.tokens.offset();
                        capture.value.text(self.tokens.text(), offset, text);
                    }
                }
                Token::CData(text) => {
                    if let Some(capture) = &mut self.capture {
                        capture.value.verbatim(text);
                    }
                }
                Token::Doctype(_) => {}
            }
        }
        self.finish()
    }

    fn finish(mut self) -> Feed {
        if !self.is_stopped {
            let is_cut = self.capture.is_some() || self.draft.is_some();
            // A truncated value is worse than none.
            self.capture = None;
            self.finish_item();
            if is_cut || !self.stack.is_empty() {
                let end = self.tokens.text().len();
                let text = self.tokens.text();
                let detail = "the document ends before its last element does";
                self.tokens
                    .defects
                    .note(DefectKind::Truncated, text, end, detail);
            }
            self.tokens.defects.note_dropped(self.dropped);
            if self.items == 0 {
                self.tokens
                    .defects
                    .note_whole(DefectKind::NoItems, "no item or entry");
            }
        }
        let mut feed = self.channel.feed;
        feed.defects = self.tokens.defects;
        feed
    }

    fn start(&mut self, tag: Tag<'a>) {
        if self.capture.is_some() && !self.ends_capture(&tag) {
            return self.start_in_capture(tag);
        }
        if self.stack.len() >= MAX_DEPTH {
            if self.too_deep == 0 {
                self.tokens.note(DefectKind::TooDeep, tag.name);
            }
            self.too_deep += usize::from(!tag.is_empty);
            return;
        }
        let is_root = self.stack.iter().all(|open| open.place == Place::Feed);
        let depth = self.stack.len() + 1;
        self.scope.enter(&tag, depth, is_root, self.hints.url);
        let found = self.element_of(tag.name);
        if found == Element::Item && self.draft.is_some() {
            self.tokens
                .note(DefectKind::MismatchedTag, "an item starts inside an item");
            self.close_item();
        }
        let place = self.open(found, &tag);
        if tag.is_empty {
            if place == Place::Item {
                self.finish_item();
            }
            self.scope.leave(self.stack.len());
            return;
        }
        self.stack.push(Open {
            name: tag.name,
            place,
        });
    }

    fn element_of(&mut self, name: &'a str) -> Element {
        let (prefix, local) = namespace::split(name);
        let (found, is_declared) = self.scope.namespace(prefix);
        if !is_declared && !self.undeclared.contains(&prefix) && self.undeclared.len() < 16 {
            self.undeclared.push(prefix);
            self.tokens.note(DefectKind::UndeclaredPrefix, prefix);
        }
        // The root's name alone makes a feed, whatever it is said to belong to.
        let found = if self.stack.is_empty() && found != Namespace::Rdf {
            Namespace::Feed
        } else {
            found
        };
        element(found, local)
    }

    fn place(&self) -> Place {
        self.stack.last().map_or(Place::Feed, |open| open.place)
    }

    /// Whether a start tag shows that the captured element was never closed.
    fn ends_capture(&mut self, tag: &Tag<'a>) -> bool {
        let Some(capture) = &self.capture else {
            return false;
        };
        let holds_line = matches!(
            capture.field.element,
            Element::Title(3)
                | Element::Link
                | Element::Guid
                | Element::Id
                | Element::Published(_)
                | Element::Updated(_)
        );
        let (prefix, local) = namespace::split(tag.name);
        let (found, _) = self.scope.namespace(prefix);
        if found != Namespace::Feed || tag.attributes.get("xmlns").is_some() {
            return false;
        }
        let ends = match element(found, local) {
            Element::Item => true,
            Element::Link => holds_line && local.len() > 1,
            Element::Title(_)
            | Element::Guid
            | Element::Published(3)
            | Element::Updated(3)
            | Element::Enclosure => holds_line,
            Element::Summary(_) => holds_line && local.eq_ignore_ascii_case("description"),
            _ => false,
        };
        if ends {
            let index = capture.index;
            let name = self.stack.get(index).map_or("", |open| open.name);
            let detail = format!("<{name}> is not closed");
            self.tokens.note(DefectKind::MismatchedTag, &detail);
            self.finish_capture();
            self.stack.truncate(index);
            self.scope.leave(index);
        }
        ends
    }

    fn start_in_capture(&mut self, tag: Tag<'a>) {
        if let Some(capture) = &mut self.capture {
            capture.value.verbatim(tag.source);
        }
        if tag.is_empty || is_void(tag.name) {
            return;
        }
        if self.stack.len() >= MAX_DEPTH {
            self.too_deep += 1;
            return;
        }
        self.stack.push(Open {
            name: tag.name,
            place: Place::Elsewhere,
        });
    }

    fn end(&mut self, name: &'a str) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        let is_it = |open: &Open<'_>| open.name == name;
        let found = match self.stack.last() {
            Some(open) if is_it(open) => Some(self.stack.len() - 1),
            _ => self
                .stack
                .iter()
                .rposition(|open| is_it(open) || open.name.eq_ignore_ascii_case(name)),
        };
        let Some(index) = found else {
            if let Some(capture) = &mut self.capture {
                let source = &self.tokens.text()[self.tokens.offset()..self.tokens.position()];
                capture.value.verbatim(source);
            }
            if !is_void(name) {
                self.tokens.note(
                    DefectKind::MismatchedTag,
                    &format!("</{name}> closes nothing"),
                );
            }
            return;
        };
        if let Some(capture) = &mut self.capture
            && index > capture.index
        {
            let source = &self.tokens.text()[self.tokens.offset()..self.tokens.position()];
            capture.value.verbatim(source);
            self.stack.truncate(index);
            return;
        }
        if index + 1 < self.stack.len() && self.capture.is_none() {
            let open = self.stack.last().map_or("", |open| open.name);
            self.tokens.note(
                DefectKind::MismatchedTag,
                &format!("<{open}> is not closed"),
            );
        }
        self.finish_capture();
        while self.stack.len() > index {
            let open = self.stack.pop();
            if open.is_some_and(|open| open.place == Place::Item) {
                self.finish_item();
            }
        }
        self.scope.leave(index);
    }

    /// Closes the open item and all that is open inside it.
    fn close_item(&mut self) {
        self.finish_capture();
        let item = self
            .stack
            .iter()
            .rposition(|open| open.place == Place::Item);
        if let Some(index) = item {
            self.stack.truncate(index);
            self.scope.leave(index);
        }
        self.finish_item();
    }

    fn finish_capture(&mut self) {
        let Some(capture) = self.capture.take() else {
            return;
        };
        self.stack.truncate(capture.index + 1);
        let value = match capture.mode {
            Mode::Decoded => {
                let (value, has_stray) = capture.value.finish();
                if has_stray {
                    let text = self.tokens.text();
                    let defects = &mut self.tokens.defects;
                    defects.note(DefectKind::StrayMarkup, text, capture.content_start, "&");
                }
                value
            }
            Mode::Source => {
                let end = self.tokens.offset().max(capture.content_start);
                self.tokens.text()[capture.content_start..end].into()
            }
        };
        if capture.of_item != self.draft.is_some() {
            return;
        }
        self.set(Field {
            value,
            ..capture.field
        });
    }

    fn finish_item(&mut self) {
        let Some(draft) = self.draft.take() else {
            return;
        };
        if draft.is_blank() && self.tokens.position() >= self.tokens.text().len() {
            return;
        }
        if draft.is_nameless() {
            self.dropped += 1;
            return;
        }
        let text = self.tokens.text();
        let item = draft.finish(text, self.hints.now, &mut self.tokens.defects);
        self.items += 1;
        if (self.emit)(item).is_break() {
            self.is_stopped = true;
        }
    }
}

/// Elements of HTML that have no end tag.
fn is_void(name: &str) -> bool {
    [
        "br", "hr", "img", "input", "meta", "wbr", "area", "col", "embed", "param", "source",
        "track",
    ]
    .iter()
    .any(|void| name.eq_ignore_ascii_case(void))
}
