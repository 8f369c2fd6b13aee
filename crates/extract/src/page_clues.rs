//! What a page says about its own type before its text is read: the words of
//! its address, the types in its structured data, the software that made it,
//! the prices that it shows. Decides how the text is looked for.

use url::Url;

use crate::blocks::Blocks;
use crate::html::{Document, Tag};
use crate::structured::{JsonLd, Meta, Microdata, article_rank};

/// How the main text of a page is built, and so where it is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Layout {
    /// Paragraphs: articles, and all that is not known to be something else.
    #[default]
    Prose,
    /// Posts of several people under each other.
    Thread,
    /// Paragraphs among code, tables and tabs.
    Documentation,
    /// One thing that is for sale.
    Product,
    /// Rows of things for sale.
    Collection,
    /// Rows of links, teasers, entries.
    Listing,
}

/// The clues.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PageClues {
    pub(crate) layout: Layout,
    /// The path of the address is `/` or empty.
    pub(crate) is_front: bool,
    /// The address leads to something that is offered.
    pub(crate) offers_service: bool,
    /// The address has a word for articles: `blog`, `news`, `how-to-…`.
    pub(crate) is_article_path: bool,
    /// Structured data or a date of publication in the head declares an article.
    pub(crate) declares_article: bool,
    pub(crate) is_live_blog: bool,
}

/// Blocks with a price from which a page is about several things for sale.
const MIN_PRICES: usize = 8;
/// Code blocks from which a page without a date is documentation.
const MIN_CODE_BLOCKS: usize = 10;

pub(crate) fn collect(
    url: &str,
    document: &Document<'_>,
    blocks: &Blocks,
    json_ld: &JsonLd,
    meta: &Meta,
    microdata: &Microdata,
) -> PageClues {
    let parsed = Url::parse(url).ok();
    let path: Vec<String> = parsed
        .as_ref()
        .and_then(Url::path_segments)
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .take(12)
        .map(str::to_ascii_lowercase)
        .collect();
    let host = parsed
        .as_ref()
        .and_then(Url::host_str)
        .unwrap_or("")
        .to_ascii_lowercase();
    let signs = Signs {
        host: host.trim_start_matches("www."),
        path: &path,
        generator: meta.get("generator").unwrap_or("").to_ascii_lowercase(),
        og_type: meta.get("og:type").unwrap_or("").to_ascii_lowercase(),
        json_ld,
        microdata,
        prices: blocks
            .list
            .iter()
            .filter(|block| block.size < 120 && has_price(&block.text))
            .count(),
        code_blocks: (1..document.len())
            .filter(|node| document.tag(*node) == Tag::Pre)
            .count(),
        declares_article: json_ld
            .article_type()
            .is_some_and(|kind| article_rank(&kind) >= 4)
            || meta.get("article:published_time").is_some(),
    };
    PageClues {
        layout: signs.layout(),
        is_front: path.is_empty(),
        offers_service: signs.has(SERVICE_PARTS),
        is_article_path: signs.is_article_path(),
        declares_article: signs.declares_article,
        is_live_blog: json_ld.has_type("LiveBlogPosting"),
    }
}

struct Signs<'a> {
    host: &'a str,
    path: &'a [String],
    generator: String,
    og_type: String,
    json_ld: &'a JsonLd,
    microdata: &'a Microdata,
    prices: usize,
    code_blocks: usize,
    declares_article: bool,
}

impl Signs<'_> {
    fn layout(&self) -> Layout {
        if self.is_thread() {
            Layout::Thread
        } else if self.is_product() {
            Layout::Product
        } else if self.is_collection() {
            Layout::Collection
        } else if self.is_documentation() {
            Layout::Documentation
        } else if self.is_listing() {
            Layout::Listing
        } else {
            Layout::Prose
        }
    }

    /// Whether a part of the path is one of the words.
    fn has(&self, words: &[&str]) -> bool {
        self.path.iter().any(|part| words.contains(&part.as_str()))
    }

    /// Whether a part of the path is one of the words and another follows.
    fn has_below(&self, words: &[&str]) -> bool {
        let above = &self.path[..self.path.len().saturating_sub(1)];
        above.iter().any(|part| words.contains(&part.as_str()))
    }

    fn has_type(&self, kind: &str) -> bool {
        self.json_ld.has_type(kind) || self.microdata.kinds.iter().any(|found| found == kind)
    }

    fn is_article_path(&self) -> bool {
        self.has_below(ARTICLE_PARTS)
            || self.path.last().is_some_and(|last| {
                ["how-to-", "what-is-", "what-are-", "why-", "best-", "top-"]
                    .iter()
                    .any(|start| last.starts_with(start))
            })
    }

    fn is_thread(&self) -> bool {
        if self.has_type("DiscussionForumPosting")
            || self.has_type("QAPage")
            || FORUM_SOFTWARE
                .iter()
                .any(|name| self.generator.contains(name))
                && !self.path.is_empty()
        {
            return true;
        }
        let starts = |start: &str| self.path.iter().any(|part| part.starts_with(start));
        if starts("viewtopic") || starts("showthread") || starts("thread-") {
            return true;
        }
        let is_number = |part: &String| part.bytes().all(|b| b.is_ascii_digit());
        if self.path.windows(2).any(|pair| {
            pair[0] == "questions" && is_number(&pair[1]) || pair[0] == "r" && self.path.len() > 3
        }) {
            return true;
        }
        let is_forum = self
            .host
            .split('.')
            .any(|label| FORUM_WORDS.contains(&label))
            || self.has(FORUM_WORDS);
        is_forum && self.has_below(THREAD_PARTS) && !self.declares_article
    }

    fn is_product(&self) -> bool {
        if self.og_type == "product.group"
            || self.has_below(&["collections"]) && !self.has(&["products"])
        {
            return false;
        }
        let several = self.has_type("ItemList")
            || self.has_type("CollectionPage")
            || self.has_type("SearchResultsPage");
        let declared = matches!(
            self.og_type.as_str(),
            "product" | "og:product" | "product.item" | "ebay-objects:item"
        );
        let described = self.json_ld.of_type("Product").count() == 1
            || self.json_ld.has_type("ProductGroup")
            || self
                .microdata
                .kinds
                .iter()
                .any(|kind| kind.ends_with("Product"))
                && self.prices < 3 * MIN_PRICES;
        let by_path = self.has_below(PRODUCT_PARTS);
        !several
            && (declared
                || by_path && !self.is_article_path()
                || described && !self.declares_article)
            && !(self.declares_article && !declared && !by_path)
    }

    fn is_collection(&self) -> bool {
        if self.og_type == "product.group" || self.has_below(&["collections"]) {
            return true;
        }
        let several = self.has_type("ItemList")
            || self.has_type("CollectionPage")
            || self.has_type("OfferCatalog")
            || self.json_ld.of_type("Product").count() > 3;
        self.prices >= MIN_PRICES
            && !self.declares_article
            && !self.is_article_path()
            && self.og_type != "article"
            && (several || self.has(COLLECTION_PARTS) || self.prices >= 4 * MIN_PRICES)
    }

    fn is_documentation(&self) -> bool {
        if self.has(&["blog", "blogs", "news", "articles", "posts"]) || self.path.is_empty() {
            return false;
        }
        let is_encyclopedia = [
            "wikipedia.org",
            "wiktionary.org",
            "wikinews.org",
            "fandom.com",
        ]
        .iter()
        .any(|name| self.host.ends_with(name));
        if is_encyclopedia {
            return false;
        }
        let by_host = self
            .host
            .split('.')
            .next()
            .is_some_and(|label| DOCS_HOSTS.contains(&label))
            || self.host.ends_with("readthedocs.io")
            || self.host.ends_with("gitbook.io");
        let start = &self.path[..self.path.len().min(4)];
        let by_path = start.iter().any(|part| DOCS_PARTS.contains(&part.as_str()));
        DOCS_SOFTWARE
            .iter()
            .any(|name| self.generator.contains(name))
            || by_host
            || by_path && (!self.declares_article || self.code_blocks > 0)
            || self.json_ld.has_type("APIReference")
            || self.code_blocks >= MIN_CODE_BLOCKS
                && !self.declares_article
                && self.og_type != "article"
    }

    fn is_listing(&self) -> bool {
        let last = self.path.last().map_or("", String::as_str);
        if last.starts_with("list_of_") {
            return true;
        }
        if self.declares_article {
            return false;
        }
        self.has_type("CollectionPage")
            || self.has_type("ItemList")
            || self.has_type("SearchResultsPage")
            || LISTING_ENDS.contains(&last)
            || self.has_below(LISTING_PARTS)
    }
}

/// `$19.99`, `19,99 €`, `£ 5`: a sign of money beside a digit.
pub(crate) fn has_price(text: &str) -> bool {
    text.char_indices().any(|(at, c)| {
        matches!(c, '$' | '€' | '£' | '¥' | '₹' | '₽')
            && (text[at + c.len_utf8()..]
                .trim_start()
                .starts_with(|next: char| next.is_ascii_digit())
                || text[..at]
                    .trim_end()
                    .ends_with(|before: char| before.is_ascii_digit()))
    })
}

#[rustfmt::skip]
const FORUM_SOFTWARE: &[&str] = &[
    "discourse", "vbulletin", "phpbb", "mybb", "xenforo", "nodebb", "flarum", "vanilla", "invision", "smf",
    "fluxbb", "punbb", "simple machines", "woltlab",
];
#[rustfmt::skip]
const FORUM_WORDS: &[&str] = &[
    "forum", "forums", "bbs", "community", "discuss", "discussion", "discussions", "answers", "boards", "board",
    "talk", "foro", "foros", "groups",
];
const THREAD_PARTS: &[&str] = &[
    "t",
    "threads",
    "thread",
    "topic",
    "topics",
    "discussion",
    "discussions",
    "forum",
    "forums",
    "td-p",
    "m-p",
    "questions",
    "question",
    "post",
    "posts",
];
const PRODUCT_PARTS: &[&str] = &[
    "product", "products", "dp", "itm", "pdp", "produkt", "produit",
];
#[rustfmt::skip]
const COLLECTION_PARTS: &[&str] = &[
    "collections", "collection", "c", "cat", "category", "categories", "browse", "shop", "store", "market", "w", "b",
    "s", "sale", "clearance", "shopping", "product-category",
];
#[rustfmt::skip]
const DOCS_HOSTS: &[&str] = &[
    "docs", "doc", "documentation", "developer", "developers", "devdocs", "wiki", "manual", "man", "api", "help",
    "support", "kb", "reference",
];
#[rustfmt::skip]
const DOCS_PARTS: &[&str] = &[
    "docs", "doc", "documentation", "reference", "manual", "man", "api", "apidocs", "handbook", "kb", "wiki",
    "javadoc", "sdk", "tutorials",
];
#[rustfmt::skip]
const DOCS_SOFTWARE: &[&str] = &[
    "mediawiki", "docusaurus", "sphinx", "gitbook", "mkdocs", "dokuwiki", "vitepress", "antora", "rustdoc",
    "doxygen", "readme", "docfx", "starlight", "mdbook",
];
#[rustfmt::skip]
const LISTING_ENDS: &[&str] = &[
    "news", "blog", "blogs", "articles", "archive", "archives", "latest", "search", "jobs", "directory", "press",
    "events", "standings", "rankings", "charts", "stories", "podcasts", "videos", "publications", "resources",
    "in-the-news", "press-releases", "newsroom", "all-news", "browse",
];
#[rustfmt::skip]
const LISTING_PARTS: &[&str] = &[
    "category", "categories", "tag", "tags", "archive", "archives", "list", "chart", "browse", "genre", "rankings",
    "directory", "market",
];
#[rustfmt::skip]
const ARTICLE_PARTS: &[&str] = &[
    "blog", "blogs", "news", "article", "articles", "post", "posts", "story", "stories", "guide", "guides", "learn",
    "learning", "insights", "resources", "resource-center", "tips", "magazine", "journal", "opinion", "hub",
    "library", "education", "knowledge", "review", "reviews", "recipes", "recipe", "press", "research",
];
#[rustfmt::skip]
const SERVICE_PARTS: &[&str] = &[
    "services", "service", "features", "pricing", "solutions", "solution", "use-cases", "portfolio", "plans",
    "coupons", "offers", "packages", "platform", "demo", "tour", "contact", "about-us", "careers", "department",
    "departments", "programs", "courses", "industries", "compare", "integrations",
];

#[cfg(test)]
mod tests {
    use super::{Layout, PageClues, collect, has_price};
    use crate::blocks;
    use crate::html::{ParserLimits, parse};
    use crate::structured::{JsonLd, Meta, Microdata};

    fn clues(url: &str, html: &str) -> PageClues {
        let document = parse(html, &ParserLimits::default(), &|| true);
        let blocks = blocks::cut(&document);
        collect(
            url,
            &document,
            &blocks,
            &JsonLd::collect(&document),
            &Meta::collect(&document),
            &Microdata::collect(&document),
        )
    }

    #[test]
    fn prices_are_known_by_their_sign() {
        for text in ["$19.99", "from £ 5", "19,99 €", "¥990"] {
            assert!(has_price(text), "{text}");
        }
        for text in ["$PATH", "the € rose", "19.99"] {
            assert!(!has_price(text), "{text}");
        }
    }

    #[test]
    fn a_page_says_what_it_is() {
        let prices = "<li>Loaf <b>$4.50</b></li>".repeat(10);
        for (name, url, html, expected) in [
            (
                "a thread by its address",
                "https://forum.example/threads/rye.12/",
                "<p>Rye?",
                Layout::Thread,
            ),
            (
                "a thread by its software",
                "https://a.example/x/7",
                "<meta name=generator content='Discourse 3.4'>",
                Layout::Thread,
            ),
            (
                "a manual",
                "https://docs.example/en/oven.html",
                "<p>Heat it.",
                Layout::Documentation,
            ),
            (
                "a post of a manual's blog",
                "https://docs.example/blog/oven",
                "<p>Heat it.",
                Layout::Prose,
            ),
            (
                "a thing for sale",
                "https://a.example/products/rye",
                "<p>A loaf.",
                Layout::Product,
            ),
            (
                "things for sale",
                "https://a.example/collections/bread",
                "<p>Loaves.",
                Layout::Collection,
            ),
            (
                "things for sale by their prices",
                "https://a.example/shop",
                prices.as_str(),
                Layout::Collection,
            ),
            (
                "a category",
                "https://a.example/category/bread",
                "<p>Bread.",
                Layout::Listing,
            ),
            (
                "an article in a category",
                "https://a.example/category/bread",
                "<meta property=article:published_time content=2026-01-01>",
                Layout::Prose,
            ),
            (
                "a post",
                "https://a.example/2026/bread",
                "<p>Bread.",
                Layout::Prose,
            ),
        ] {
            assert_eq!(clues(url, html).layout, expected, "{name}");
        }
    }
}
