//! Which vocabulary a name belongs to. Namespaces are matched by a table of
//! the addresses that are met in the wild, then by well-known prefixes; never
//! by the local name alone, so that `author/title` or `ep:title` is no title.

/// A vocabulary that feeds use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Namespace {
    /// RSS of any version, Atom of any version: one vocabulary for us.
    Feed,
    Rdf,
    Dc,
    DcTerms,
    Content,
    Syndication,
    Media,
    Itunes,
    Xhtml,
    Other,
}

/// Most documents declare fewer than ten.
const MAX_BINDINGS: usize = 256;

/// The prefixes that are bound at some place in a document.
#[derive(Debug, Default)]
pub(crate) struct Bindings<'a> {
    /// Innermost last; the default namespace has an empty prefix.
    list: Vec<(usize, &'a str, Namespace)>,
}

impl<'a> Bindings<'a> {
    /// Reads `xmlns` and `xmlns:prefix`; other attributes are ignored.
    pub(crate) fn bind(&mut self, depth: usize, attribute: &'a str, uri: &str, is_root: bool) {
        let prefix = match attribute.strip_prefix("xmlns") {
            Some("") => "",
            Some(rest) => match rest.strip_prefix(':') {
                Some(prefix) => prefix,
                None => return,
            },
            None => return,
        };
        if self.list.len() >= MAX_BINDINGS {
            return;
        }
        let namespace = match by_uri(uri) {
            Some(namespace) => namespace,
            // Whatever the root calls its own namespace, it is a feed's.
            None if prefix.is_empty() && is_root => Namespace::Feed,
            None => by_prefix(prefix).unwrap_or(Namespace::Other),
        };
        self.list.push((depth, prefix, namespace));
    }

    /// Forgets what was bound deeper than this.
    pub(crate) fn leave(&mut self, depth: usize) {
        while self.list.last().is_some_and(|(at, ..)| *at > depth) {
            self.list.pop();
        }
    }

    /// The namespace of a prefix, and whether it was declared.
    pub(crate) fn resolve(&self, prefix: &str) -> (Namespace, bool) {
        let bound = self
            .list
            .iter()
            .rev()
            .find(|(_, bound, _)| *bound == prefix);
        match bound {
            Some((_, _, namespace)) => (*namespace, true),
            None if prefix.is_empty() => (Namespace::Feed, true),
            None => (by_prefix(prefix).unwrap_or(Namespace::Other), false),
        }
    }
}

/// Splits a qualified name.
pub(crate) fn split(name: &str) -> (&str, &str) {
    match memchr::memchr(b':', name.as_bytes()) {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => ("", name),
    }
}

fn by_prefix(prefix: &str) -> Option<Namespace> {
    let namespace = match prefix.to_ascii_lowercase().as_str() {
        "atom" | "atom10" | "atom03" | "a10" | "rss" | "rss1" | "rss10" => Namespace::Feed,
        "rdf" => Namespace::Rdf,
        "dc" => Namespace::Dc,
        "dcterms" | "dct" => Namespace::DcTerms,
        "content" => Namespace::Content,
        "sy" => Namespace::Syndication,
        "media" => Namespace::Media,
        "itunes" => Namespace::Itunes,
        "xhtml" => Namespace::Xhtml,
        _ => return None,
    };
    Some(namespace)
}

fn by_uri(uri: &str) -> Option<Namespace> {
    let uri = uri.trim().to_ascii_lowercase();
    let name = uri.split_once("://").map_or(uri.as_str(), |(_, rest)| rest);
    let name = name.strip_prefix("www.").unwrap_or(name);
    let name = name.trim_end_matches(['/', '#']);
    let namespace = match name {
        ""
        | "w3.org/2005/atom"
        | "purl.org/atom/ns"
        | "purl.org/atom"
        | "purl.org/rss/1.0"
        | "purl.org/rss/2.0"
        | "purl.org/net/rss1.1"
        | "my.netscape.com/rdf/simple/0.9"
        | "channel.netscape.com/rdf/simple/0.9"
        | "my.netscape.com/publish/formats/rss-0.91.dtd"
        | "blogs.law.harvard.edu/tech/rss"
        | "cyber.law.harvard.edu/rss/rss.html"
        | "rssboard.org/rss-specification" => Namespace::Feed,
        "w3.org/1999/02/22-rdf-syntax-ns" => Namespace::Rdf,
        "purl.org/dc/elements/1.0" | "purl.org/dc/elements/1.1" => Namespace::Dc,
        "purl.org/dc/terms" => Namespace::DcTerms,
        "purl.org/rss/1.0/modules/content" => Namespace::Content,
        "purl.org/rss/1.0/modules/syndication" => Namespace::Syndication,
        "itunes.com/dtds/podcast-1.0.dtd" | "example.com/dtds/podcast-1.0.dtd" => Namespace::Itunes,
        "w3.org/1999/xhtml" => Namespace::Xhtml,
        other if other.starts_with("backend.userland.com/") => Namespace::Feed,
        other if other.ends_with("search.yahoo.com/mrss") => Namespace::Media,
        _ => return None,
    };
    Some(namespace)
}

#[cfg(test)]
mod tests {
    use super::{Bindings, Namespace};

    #[test]
    fn addresses_win_over_prefixes_and_inner_over_outer() {
        let mut bindings = Bindings::default();
        assert_eq!(bindings.resolve(""), (Namespace::Feed, true));
        assert_eq!(bindings.resolve("dc"), (Namespace::Dc, false));
        assert_eq!(bindings.resolve("ep"), (Namespace::Other, false));
        bindings.bind(0, "xmlns", "urn:my-own-format", true);
        bindings.bind(0, "xmlns:m", " HTTPS://Search.Yahoo.com/mrss ", true);
        bindings.bind(0, "xmlns:dc", "urn:unknown", true);
        bindings.bind(3, "xmlns", "http://www.w3.org/1999/xhtml", false);
        assert_eq!(bindings.resolve(""), (Namespace::Xhtml, true));
        assert_eq!(bindings.resolve("m"), (Namespace::Media, true));
        assert_eq!(bindings.resolve("dc"), (Namespace::Dc, true));
        bindings.leave(2);
        assert_eq!(bindings.resolve(""), (Namespace::Feed, true));
    }
}
