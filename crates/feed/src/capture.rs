//! The value of an element while it is being read. A value in one piece stays
//! a slice of the document; only mixed content is put together.

use std::borrow::Cow;

use tidings_text::entities;

/// How the content of an element becomes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// References are decoded; markup that was not escaped is kept as text.
    Decoded,
    /// The source itself is the value (XHTML, or elements to look into).
    Source,
}

#[derive(Debug, Default)]
pub(crate) struct Value<'a> {
    first: Piece<'a>,
    /// White space that counts only if something follows.
    pending: &'a str,
    /// Everything, once there is more than one piece.
    built: Option<String>,
    /// An ampersand was met that starts no reference.
    has_stray: bool,
}

#[derive(Debug, Default, Clone, Copy)]
enum Piece<'a> {
    #[default]
    None,
    /// A stretch of the document: its range, references still encoded.
    Text {
        start: usize,
        text: &'a str,
    },
    Verbatim(&'a str),
}

impl<'a> Value<'a> {
    /// Adds text that starts at an offset of the document. Pieces that touch
    /// become one again.
    pub(crate) fn text(&mut self, document: &'a str, start: usize, text: &'a str) {
        if let (
            None,
            Piece::Text {
                start: first,
                text: before,
            },
        ) = (&self.built, self.first)
            && first + before.len() == start
        {
            let text = &document[first..start + text.len()];
            self.first = Piece::Text { start: first, text };
            return;
        }
        if text.trim_ascii().is_empty() {
            match (&mut self.built, self.first) {
                (Some(built), _) => built.push_str(text),
                (None, Piece::None) => {}
                (None, _) => self.pending = text,
            }
            return;
        }
        match self.first {
            Piece::None => self.first = Piece::Text { start, text },
            _ => {
                let has_stray = entities::decode_into(text, self.build());
                self.has_stray |= has_stray;
            }
        }
    }

    /// Adds text that is meant as it stands: CDATA, or markup.
    pub(crate) fn verbatim(&mut self, text: &'a str) {
        match self.first {
            Piece::None => self.first = Piece::Verbatim(text),
            Piece::Text { text: blank, .. }
                if self.built.is_none() && blank.trim_ascii().is_empty() =>
            {
                self.first = Piece::Verbatim(text);
            }
            _ => self.build().push_str(text),
        }
    }

    fn build(&mut self) -> &mut String {
        let (first, pending) = (self.first, std::mem::take(&mut self.pending));
        let built = self.built.get_or_insert_with(|| match first {
            Piece::None => String::new(),
            Piece::Text { text, .. } => entities::decode(text).into_owned(),
            Piece::Verbatim(text) => text.to_owned(),
        });
        built.push_str(pending);
        built
    }

    /// The value, and whether it holds an ampersand that was not escaped.
    pub(crate) fn finish(self) -> (Cow<'a, str>, bool) {
        let value = match (self.built, self.first) {
            (Some(built), _) => Cow::Owned(built),
            (None, Piece::None) => Cow::Borrowed(""),
            (None, Piece::Text { text, .. }) => return entities::decode_checked(text),
            (None, Piece::Verbatim(text)) => Cow::Borrowed(text),
        };
        (value, self.has_stray)
    }
}

#[cfg(test)]
mod tests {
    use super::Value;

    #[test]
    fn pieces_come_together_in_order() {
        let document = "a &amp; b";
        let mut value = Value::default();
        value.text(document, 0, &document[..2]);
        value.text(document, 2, &document[2..7]);
        value.text(document, 7, &document[7..]);
        assert_eq!(value.finish(), ("a & b".into(), false));

        let mut value = Value::default();
        value.text("\n ", 0, "\n ");
        value.verbatim("<b>&amp;</b>");
        value.text("\n \n", 20, "\n");
        assert_eq!(value.finish().0, "<b>&amp;</b>");

        let mut value = Value::default();
        value.verbatim("a");
        value.text(" ", 10, " ");
        value.verbatim("b");
        value.text("&lt; &", 30, "&lt; &");
        assert_eq!(value.finish(), ("a b< &".into(), true));
        assert_eq!(Value::default().finish().0, "");
    }
}
