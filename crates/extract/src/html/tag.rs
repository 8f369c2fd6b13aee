//! Element names as one byte, and what the parser and the reader need to know
//! about each: void, block, raw text, heading. Names that are not listed are
//! `Other`; their spelling stays in the source.

macro_rules! tags {
    ($($variant:ident $name:literal,)*) => {
        /// The elements that mean something to extraction.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Tag {
            /// A run of characters, not an element.
            Text,
            /// Any element that is not listed.
            Other,
            $($variant,)*
        }

        impl Tag {
            /// How many there are, `Text` and `Other` included.
            pub(crate) const COUNT: usize = [$($name),*].len() + 2;

            fn from_lower(name: &[u8]) -> Self {
                match name {
                    $(name if name == $name.as_bytes() => Self::$variant,)*
                    _ => Self::Other,
                }
            }

            /// The name in lower case; empty for `Text` and `Other`.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    Self::Text | Self::Other => "",
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

tags! {
    A "a", P "p", Div "div", Span "span", Li "li", Ul "ul", Ol "ol", Br "br", Img "img", Td "td", Tr "tr",
    Th "th", Table "table", Tbody "tbody", Thead "thead", Tfoot "tfoot", Caption "caption", B "b", I "i",
    Em "em", Strong "strong", U "u", S "s", Small "small", Big "big", Font "font", Code "code", Tt "tt",
    Nobr "nobr", H1 "h1", H2 "h2", H3 "h3", H4 "h4", H5 "h5", H6 "h6", Script "script", Style "style",
    Meta "meta", Link "link", Base "base", Title "title", Head "head", Body "body", Html "html",
    Article "article", Section "section", Main "main", Nav "nav", Aside "aside", Header "header",
    Footer "footer", Figure "figure", Figcaption "figcaption", Picture "picture", Source "source",
    Video "video", Audio "audio", Iframe "iframe", Svg "svg", Math "math", Noscript "noscript",
    Template "template", Form "form", Input "input", Button "button", Select "select", Option "option",
    Optgroup "optgroup", Textarea "textarea", Label "label", Fieldset "fieldset", Dl "dl", Dt "dt", Dd "dd",
    Blockquote "blockquote", Pre "pre", Hr "hr", Time "time", Address "address", Details "details",
    Summary "summary", Dialog "dialog", Center "center", Hgroup "hgroup", Menu "menu", Search "search",
    Wbr "wbr", Area "area", Col "col", Embed "embed", Param "param", Track "track", Object "object",
    Noembed "noembed", Noframes "noframes", Xmp "xmp", Plaintext "plaintext", Sup "sup", Sub "sub",
    Legend "legend", Rt "rt", Rp "rp", Abbr "abbr", Cite "cite", Q "q", Mark "mark", Del "del", Ins "ins",
}

impl Tag {
    /// The tag of a name in any case.
    pub(crate) fn of(name: &[u8]) -> Self {
        let mut lower = [0_u8; 10];
        let Some(lower) = lower.get_mut(..name.len()) else {
            return Self::Other;
        };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        Self::from_lower(lower)
    }

    pub(crate) fn is_void(self) -> bool {
        use Tag::*;
        matches!(
            self,
            Br | Img
                | Meta
                | Link
                | Base
                | Input
                | Hr
                | Source
                | Wbr
                | Area
                | Col
                | Embed
                | Param
                | Track
        )
    }

    /// Whose content is characters up to the end tag. `svg`, `noscript` and
    /// `iframe` are among them because nothing inside is an article.
    pub(crate) fn is_raw(self) -> bool {
        use Tag::*;
        matches!(
            self,
            Script | Style | Title | Textarea | Iframe | Svg | Noscript | Noembed | Noframes | Xmp
        )
    }

    /// Starts a new line of text.
    pub(crate) fn is_block(self) -> bool {
        use Tag::*;
        matches!(
            self,
            P | Div
                | Li
                | Ul
                | Ol
                | Td
                | Tr
                | Th
                | Table
                | Tbody
                | Thead
                | Tfoot
                | Caption
                | H1
                | H2
                | H3
                | H4
                | H5
                | H6
                | Head
                | Body
                | Html
                | Article
                | Section
                | Main
                | Nav
                | Aside
                | Header
                | Footer
                | Figure
                | Figcaption
                | Form
                | Fieldset
                | Dl
                | Dt
                | Dd
                | Blockquote
                | Pre
                | Hr
                | Address
                | Details
                | Summary
                | Dialog
                | Center
                | Hgroup
                | Menu
                | Search
                | Option
                | Optgroup
                | Select
                | Textarea
                | Legend
                | Object
                | Template
                | Title
                | Xmp
        )
    }

    /// Ends an open paragraph when it starts.
    pub(crate) fn closes_p(self) -> bool {
        use Tag::*;
        self.is_block()
            && !matches!(
                self,
                Td | Tr
                    | Th
                    | Tbody
                    | Thead
                    | Tfoot
                    | Caption
                    | Option
                    | Optgroup
                    | Select
                    | Textarea
                    | Legend
                    | Object
                    | Template
                    | Title
                    | Head
                    | Body
                    | Html
            )
    }

    /// End tags of inner elements don't reach beyond these.
    pub(crate) fn is_scope(self) -> bool {
        use Tag::*;
        matches!(
            self,
            Table | Td | Th | Caption | Html | Body | Template | Object
        )
    }

    pub(crate) fn is_heading(self) -> bool {
        use Tag::*;
        matches!(self, H1 | H2 | H3 | H4 | H5 | H6)
    }

    /// What may stand in `head`; any other element ends it.
    pub(crate) fn is_head_content(self) -> bool {
        use Tag::*;
        matches!(
            self,
            Base | Link | Meta | Noscript | Script | Style | Template | Title
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Tag;

    #[test]
    fn names_are_read_in_any_case_and_any_length() {
        assert_eq!(Tag::of(b"DiV"), Tag::Div);
        assert_eq!(Tag::of(b"blockquote"), Tag::Blockquote);
        assert_eq!(Tag::of(b"a-very-long-custom-element"), Tag::Other);
        assert_eq!(Tag::Blockquote.name(), "blockquote");
    }
}
