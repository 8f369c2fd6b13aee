//! What holds inside an element and all its children: namespaces, `xml:base`
//! and `xml:lang`.

use url::Url;

use crate::link;
use crate::namespace::{Bindings, Namespace};
use crate::tokens::Tag;

#[derive(Debug, Default)]
pub(crate) struct Scope<'a> {
    bindings: Bindings<'a>,
    /// With the depth that they hold from, innermost last.
    bases: Vec<(usize, Option<Url>)>,
    languages: Vec<(usize, &'a str)>,
}

impl<'a> Scope<'a> {
    /// Reads the attributes of an element that will be `depth` deep.
    pub(crate) fn enter(&mut self, tag: &Tag<'a>, depth: usize, is_root: bool, url: Option<&Url>) {
        if tag.attributes.is_empty() {
            return;
        }
        for (name, value) in tag.attributes.iter() {
            if !name.starts_with("xml") {
                continue;
            }
            match name {
                "xml:base" => self.push_base(depth, value, url),
                "xml:lang" => self.languages.push((depth, value.trim())),
                name => self.bindings.bind(depth, name, value, is_root),
            }
        }
    }

    /// Forgets what was said deeper than this.
    pub(crate) fn leave(&mut self, depth: usize) {
        self.bindings.leave(depth);
        while self.bases.last().is_some_and(|(at, _)| *at > depth) {
            self.bases.pop();
        }
        while self.languages.last().is_some_and(|(at, _)| *at > depth) {
            self.languages.pop();
        }
    }

    pub(crate) fn push_base(&mut self, depth: usize, value: &str, url: Option<&Url>) {
        let resolved = link::resolve(self.base(url), value);
        self.bases.push((depth, Url::parse(&resolved).ok()));
    }

    pub(crate) fn has_base(&self) -> bool {
        self.bases.iter().any(|(_, base)| base.is_some())
    }

    /// The nearest base, or else the address of the document.
    pub(crate) fn base<'s>(&'s self, url: Option<&'s Url>) -> Option<&'s Url> {
        let declared = self.bases.iter().rev().find_map(|(_, base)| base.as_ref());
        declared.or(url)
    }

    pub(crate) fn language(&self) -> Option<String> {
        let (_, language) = self.languages.last()?;
        (!language.is_empty()).then(|| (*language).to_owned())
    }

    /// The namespace of a prefix, and whether it was declared.
    pub(crate) fn namespace(&self, prefix: &str) -> (Namespace, bool) {
        self.bindings.resolve(prefix)
    }
}
