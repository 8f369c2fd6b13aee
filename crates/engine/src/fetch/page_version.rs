//! What a page says of itself, and by what it is compared with another page of its
//! site. Pure: decides by titles and texts, and fetches nothing.

use tidings_document::{Document, Sketch};
use tidings_extract::{Article, Origin, sketch};
use tidings_store::{FrontierId, Target};
use tidings_url::{FetchUrl, ProxyHosts, Rules};

use crate::sources::target;

/// The share of common shingles from which on two texts are one story. Much above
/// that of near-duplicates: a print version differs little.
const MIN_SIMILARITY: f32 = 0.5;

/// What a page says of itself, and by what it is compared with another.
#[derive(Debug)]
pub(super) struct PageVersion {
    title: String,
    content_hash: Option<String>,
    sketch: Option<Sketch>,
    /// The address that it names, if any.
    named: Option<String>,
    /// Whether it names it by `rel=canonical`.
    has_link: bool,
}

impl PageVersion {
    pub(super) fn of(article: &Article) -> Self {
        let named = article.canonical_url.as_ref();
        let title = article.title.as_ref();
        Self {
            title: title.map(|title| title.value.clone()).unwrap_or_default(),
            content_hash: article.content_hash.clone(),
            sketch: article.sketch.clone(),
            named: named.map(|named| named.value.clone()),
            has_link: named.is_some_and(|named| named.origin == Origin::Html),
        }
    }

    pub(super) fn of_document(document: Document) -> Self {
        Self {
            sketch: sketch(&document.body_text),
            title: document.title,
            content_hash: document.content_hash,
            named: document.canonical_url,
            has_link: false,
        }
    }

    /// The other page of its site that it names, if it does.
    pub(super) fn other_page(
        &self,
        page: &Target,
        rules: &Rules,
        proxies: &ProxyHosts,
    ) -> Option<Target> {
        let url = FetchUrl::parse(self.named.as_deref().filter(|_| self.has_link)?).ok()?;
        let is_front = url.as_url().path() == "/" && url.as_url().query().is_none();
        let named = target(url, rules, proxies);
        let is_other = named.id() != page.id() && named.url.is_same_site(&page.url);
        (is_other && !is_front).then_some(named)
    }

    /// Whether it names itself, or no page.
    pub(super) fn names_itself(&self, id: FrontierId, rules: &Rules, proxies: &ProxyHosts) -> bool {
        let Some(named) = &self.named else {
            return true;
        };
        let named = FetchUrl::parse(named).ok();
        named.is_some_and(|url| target(url, rules, proxies).id() == id)
    }

    /// Whether both have the same story: the title, and nearly all of the text.
    pub(super) fn is_same_story(&self, other: &Self) -> bool {
        let has_same_hash = self.content_hash.is_some() && self.content_hash == other.content_hash;
        let has_same_text = match (&self.sketch, &other.sketch) {
            (Some(ours), Some(theirs)) => ours.similarity(theirs) >= MIN_SIMILARITY,
            _ => false,
        };
        has_same_title(&self.title, &other.title) && (has_same_hash || has_same_text)
    }
}

/// Equal but for case, punctuation, and the name of the site at either end. A page
/// without a title proves nothing.
fn has_same_title(one: &str, other: &str) -> bool {
    let words = |title: &str| {
        let words = title.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| !word.is_empty());
        let lower: Vec<String> = words.map(str::to_lowercase).collect();
        format!(" {} ", lower.join(" "))
    };
    let (one, other) = (words(one), words(other));
    let is_empty = one.trim().is_empty() || other.trim().is_empty();
    !is_empty && (one.contains(&other) || other.contains(&one))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORY: &str = "The council of the harbour town decided on Monday that the old pier will be \
        repaired before winter, and that the ferry will go from the other side until then.";

    fn version(title: &str, text: &str, named: Option<&str>) -> PageVersion {
        PageVersion {
            title: title.to_owned(),
            content_hash: tidings_extract::content_hash(text),
            sketch: sketch(text),
            named: named.map(str::to_owned),
            has_link: true,
        }
    }

    fn page(url: &str) -> Target {
        let url = FetchUrl::parse(url).unwrap();
        target(url, &Rules::default(), &ProxyHosts::default())
    }

    #[test]
    fn only_another_page_of_the_site_is_looked_at() {
        let rows = [
            ("https://a.example/story", None),
            ("http://a.example/story/?utm_source=x", None),
            ("https://a.example/", None),
            ("https://b.example/story", None),
            ("https://other.test/story", None),
            ("not a url", None),
            (
                "https://a.example/2026/story",
                Some("https://a.example/2026/story"),
            ),
            (
                "https://www.a.example/story",
                Some("https://www.a.example/story"),
            ),
            ("https://a.example/?p=7", Some("https://a.example/?p=7")),
        ];
        let here = page("https://a.example/story");
        for (named, expected) in rows {
            let said = version("Pier", STORY, Some(named));
            let found = said.other_page(&here, &Rules::default(), &ProxyHosts::default());
            let found = found.map(|found| found.url.as_str().to_owned());
            assert_eq!(found.as_deref(), expected, "{named}");
        }
        let said = PageVersion {
            has_link: false,
            ..version("Pier", STORY, Some("https://a.example/other"))
        };
        let found = said.other_page(&here, &Rules::default(), &ProxyHosts::default());
        assert_eq!(found, None, "og:url is not a canonical link");
    }

    #[test]
    fn the_same_story_has_the_same_title_and_text() {
        let changed = format!("{STORY} Read more in the morning paper.");
        let other = "In the capital the parliament has voted on the budget of next year after a debate \
            of nine hours, and the minister called the result a good compromise for all.";
        let stub = "Subscribe to read this story.";
        let rows = [
            ("The old pier", STORY, "The old pier", STORY, true),
            (
                "The old pier",
                STORY,
                "The Old Pier | Harbour News",
                &changed,
                true,
            ),
            ("The old pier", STORY, "The old pier", other, false),
            ("The old pier", STORY, "A new ferry", STORY, false),
            ("", STORY, "", STORY, false),
            ("The old pier", stub, "The old pier", stub, true),
            ("The old pier", stub, "A new ferry", stub, false),
            ("The old pier", "", "The old pier", "", false),
        ];
        for (title, text, other_title, other_text, expected) in rows {
            let (one, two) = (
                version(title, text, None),
                version(other_title, other_text, None),
            );
            let found = (one.is_same_story(&two), two.is_same_story(&one));
            assert_eq!(found, (expected, expected), "{title} {other_title}");
        }
    }
}
