//! The pipeline from bytes to article: decode, parse, cut into blocks, find the
//! article among them, fill every field from the best evidence. Only calls and
//! combines; each rule lives in the module that is named after it.

mod judge;
mod notes;
mod raw_fields;

use std::panic::{AssertUnwindSafe, catch_unwind};

use tidings_text::charset::{self, CharsetFrom};
use url::Url;

use crate::article::{Article, Method};
use crate::blocks::{Block, Blocks};
use crate::content::{self, Content, ContentEvidence, Verdict};
use crate::fields::about::Statements;
use crate::fields::{self, author};
use crate::html::{self, Document, ParserLimits};
use crate::near_duplicate::sketch;
use crate::page::{FeedEntry, Options, Page};
use crate::page_clues::Layout;
use crate::selectors::{Selector, value_of};
use crate::structured::{JsonLd, Meta, Microdata};
use crate::{blocks, fingerprint, language, page_clues, page_type, render, site_memory, text};

/// Maximum length of an excerpt.
const MAX_EXCERPT_CHARS: usize = 200;
/// A body in the structured data must be this much longer to replace the page's.
const MIN_HIDDEN_BODY_RATIO: usize = 3;
/// With less text than this, a product is described by its structured data.
const MIN_DESCRIPTION_BYTES: usize = 200;
/// Characters of a witness that are compared.
const MAX_WITNESS_CHARS: usize = 1_000;
/// With less text than this, `noscript` is read.
const MIN_VISIBLE_BYTES: usize = 400;
/// `noscript` elements that are examined, and how much one must hold.
const MAX_NOSCRIPTS: usize = 200;
const MIN_NOSCRIPT_BYTES: usize = 400;

/// Extracts the article of a page. Never fails: a page without an article gives
/// an empty text; a defect in here that would panic is contained and gives the
/// same.
pub fn extract(page: &Page<'_>, options: &Options<'_>) -> Article {
    catch_unwind(AssertUnwindSafe(|| extract_inner(page, options))).unwrap_or_else(|_| Article {
        cut: true,
        ..Article::default()
    })
}

/// The texts that a selector finds on a page, to show what it matches.
pub fn select(page: &Page<'_>, options: &Options<'_>, selector: &Selector) -> Vec<String> {
    let (source, _) = decode(page, options);
    let document = html::parse(&source, &parser_limits(options), options.within_budget);
    selector
        .all(&document)
        .take(100)
        .map(|node| value_of(&document, node))
        .collect()
}

fn extract_inner(page: &Page<'_>, options: &Options<'_>) -> Article {
    let (source, charset) = decode(page, options);
    let limits = parser_limits(options);
    let article = extract_from(page, options, &source, charset, &limits);
    if article.text.len() >= MIN_VISIBLE_BYTES || !has_hidden_text(&source) {
        return article;
    }
    // Pages that are built in the browser carry their text for others in `noscript`.
    let limits = ParserLimits {
        noscript: true,
        ..limits
    };
    let without_scripts = extract_from(page, options, &source, charset, &limits);
    if without_scripts.text.len() > article.text.len() * MIN_HIDDEN_BODY_RATIO {
        without_scripts
    } else {
        article
    }
}

/// Whether a `noscript` holds more than a notice or a pixel.
fn has_hidden_text(source: &str) -> bool {
    let bytes = source.as_bytes();
    let end = memchr::memmem::Finder::new(b"</noscript");
    memchr::memmem::find_iter(bytes, b"<noscript")
        .take(MAX_NOSCRIPTS)
        .any(|at| {
            let rest = &bytes[at..];
            end.find(rest).unwrap_or(rest.len()) > MIN_NOSCRIPT_BYTES
        })
}

fn extract_from(
    page: &Page<'_>,
    options: &Options<'_>,
    source: &str,
    charset: &'static str,
    limits: &ParserLimits,
) -> Article {
    let document = html::parse(source, limits, options.within_budget);
    let json_ld = JsonLd::collect(&document);
    let meta = Meta::collect(&document);
    let microdata = Microdata::collect(&document);
    let base = base_url(page.url, meta.base.as_deref());
    let statements = Statements {
        json_ld: &json_ld,
        meta: &meta,
        microdata: &microdata,
        base: base.as_ref(),
    };

    let blocks = blocks::cut(&document);
    let clues = page_clues::collect(page.url, &document, &blocks, &json_ld, &meta, &microdata);
    let prints: Vec<Option<u32>> = match options.site {
        Some(_) => blocks.list.iter().map(site_memory::print_of).collect(),
        None => Vec::new(),
    };
    let evidence = ContentEvidence {
        titles: [
            json_ld.text("headline"),
            meta.get("og:title").map(str::to_owned),
            meta.title.clone(),
        ]
        .into_iter()
        .flatten()
        .collect(),
        authors: author::declared(&json_ld, &meta, &microdata),
        sites: statements
            .site_name()
            .map(|site| site.value)
            .filter(|name| name.len() > 3)
            .into_iter()
            .collect(),
        known: options
            .site
            .map(|site| site.known(page.url, &prints))
            .unwrap_or_default(),
        witnesses: witnesses(&statements, page.feed),
        layout: clues.layout,
        declares_article: clues.declares_article,
    };
    let (content, method) = find_content(page, options, &document, &blocks, &evidence);
    let kept: Vec<&Block> = blocks
        .list
        .iter()
        .zip(&content.verdicts)
        .filter(|(_, verdict)| **verdict == Verdict::Kept)
        .map(|(block, _)| block)
        .collect();

    let mut article = Article {
        text: render::text(&kept),
        method,
        charset,
        cut: document.truncated || page.html.len() > options.limits.html_bytes,
        ..Article::default()
    };
    article.prints = to_learn(&prints, &content, &evidence.known);
    if options.markdown {
        article.markdown = Some(render::markdown(&kept));
    }
    article.links = render::links(&document, &kept, base.as_ref());
    article.images = render::images(&document, content.container, base.as_ref());
    if clues.layout == Layout::Product {
        describe_product(&mut article, &json_ld);
    }
    fall_back(&mut article, &json_ld, page.feed);

    fields::fill(
        &mut article,
        page,
        &document,
        &blocks,
        &content,
        &statements,
        clues,
    );
    article.word_count = text::word_count(&article.text);
    let described = article
        .description
        .as_ref()
        .map_or("", |description| description.value.as_str());
    article.excerpt = render::excerpt(
        if article.text.is_empty() {
            described
        } else {
            &article.text
        },
        MAX_EXCERPT_CHARS,
    );
    article.language = language::find(
        &meta,
        &json_ld,
        &article.text,
        page.feed.and_then(|feed| feed.language.as_deref()),
    );
    article.flags = judge::find_walls(&article, &document, &blocks, &statements, source);
    article.page_type = page_type::judge(&judge::shape(
        &article,
        &document,
        &blocks,
        &kept,
        &statements,
        clues,
    ));
    if judge::has_no_author(&article, clues) {
        article.authors = None;
    }
    article.quality = judge::quality(&article.text, &options.quality);
    article.content_hash = fingerprint::content_hash(&article.text);
    article.sketch = sketch(&article.text);
    article.confidence = judge::confidence(&article, &blocks, &kept);
    article.raw_content = raw_fields::fill(&article, page.url, &json_ld, &meta);
    if options.explain {
        article.blocks = notes::notes(&document, &blocks, &content);
    }
    article
}

/// What the page and the feed say about the text.
fn witnesses(statements: &Statements<'_>, feed: Option<&FeedEntry>) -> Vec<String> {
    let head = |text: String| text.chars().take(MAX_WITNESS_CHARS).collect::<String>();
    [
        statements.json_ld.text("articleBody"),
        statements.json_ld.text("description"),
        statements.meta.get("og:description").map(str::to_owned),
        statements.meta.get("description").map(str::to_owned),
        feed.and_then(|feed| feed.summary.clone()),
    ]
    .into_iter()
    .flatten()
    .map(head)
    .collect()
}

/// What can be learned from the page: what is in the article, and what is known
/// already, wherever it is (else it would be forgotten with its last page).
fn to_learn(prints: &[Option<u32>], content: &Content, known: &[bool]) -> Vec<u32> {
    prints
        .iter()
        .zip(known)
        .zip(&content.verdicts)
        .filter(|((_, known), verdict)| **known || **verdict == Verdict::Kept)
        .filter_map(|((print, _), _)| *print)
        .collect()
}

pub(crate) fn decode(page: &Page<'_>, options: &Options<'_>) -> (String, &'static str) {
    let bytes = &page.html[..page.html.len().min(options.limits.html_bytes)];
    let host = Url::parse(page.url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned));
    let top_level = host.as_deref().and_then(|host| host.rsplit('.').next());
    let hints = charset::Hints {
        label: page.charset,
        top_level_domain: top_level,
        ..charset::Hints::default()
    };
    let decoded = charset::decode(bytes, &hints);
    let text = match decoded.from {
        CharsetFrom::Bom => None,
        _ => charset::undo_double_encoding(&decoded.text),
    };
    let text = text.unwrap_or_else(|| decoded.text.into_owned());
    (text, decoded.charset)
}

pub(crate) fn parser_limits(options: &Options<'_>) -> ParserLimits {
    let limits = &options.limits;
    ParserLimits {
        depth: limits.depth,
        attributes: limits.attributes_per_tag,
        texts: limits.texts,
        nodes: limits.nodes,
        text_bytes: limits.text_bytes,
        noscript: false,
    }
}

pub(crate) fn base_url(url: &str, base: Option<&str>) -> Option<Url> {
    let page = Url::parse(url).ok();
    match (page, base) {
        (Some(page), Some(base)) => page.join(base).ok().or(Some(page)),
        (page, None) => page,
        (None, Some(base)) => Url::parse(base).ok(),
    }
}

/// By selector, by weighing, or (without CPU time) everything that is not
/// plainly something else.
fn find_content(
    page: &Page<'_>,
    options: &Options<'_>,
    document: &Document<'_>,
    blocks: &Blocks,
    evidence: &ContentEvidence,
) -> (Content, Method) {
    let selectors = page.selectors;
    let mut content = None;
    if let Some(node) = selectors
        .and_then(|selectors| selectors.body.as_ref())
        .and_then(|selector| selector.first(document))
    {
        content = Some((content::inside(document, blocks, node), Method::Selector));
    }
    let (mut content, method) = content.unwrap_or_else(|| {
        if (options.within_budget)() {
            (content::find(document, blocks, evidence), Method::Blocks)
        } else {
            (content::everything(blocks), Method::Cheap)
        }
    });
    if let Some(remove) = selectors.and_then(|selectors| selectors.remove.as_ref()) {
        for node in remove.all(document) {
            for index in blocks.within(document, node) {
                content.verdicts[index] = Verdict::Removed;
            }
        }
    }
    (content, method)
}

/// A shop that is built in the browser describes its product in the structured data.
fn describe_product(article: &mut Article, json_ld: &JsonLd) {
    let description = json_ld
        .of_type("Product")
        .chain(json_ld.of_type("ProductGroup"))
        .find_map(|product| json_ld.as_text(product.get("description")?));
    if let Some(description) = description
        && article.text.len() < MIN_DESCRIPTION_BYTES
        && description.len() > article.text.len() * MIN_HIDDEN_BODY_RATIO
    {
        article.text = plain(&description);
        article.method = Method::JsonLd;
    }
}

/// Pages that are built in the browser carry their text in the structured data
/// or not at all; then the feed is the last resort.
fn fall_back(article: &mut Article, json_ld: &JsonLd, feed: Option<&FeedEntry>) {
    if let Some(body) = json_ld
        .text("articleBody")
        .filter(|body| body.len() > 200 && body.len() > article.text.len() * MIN_HIDDEN_BODY_RATIO)
    {
        article.text = plain(&body);
        article.method = Method::JsonLd;
    } else if article.text.is_empty() {
        match feed
            .and_then(|feed| feed.summary.as_deref())
            .map(plain)
            .filter(|text| !text.is_empty())
        {
            Some(summary) => {
                article.text = summary;
                article.method = Method::Feed;
            }
            None => article.method = Method::Nothing,
        }
    }
}

/// HTML or text to plain text.
fn plain(markup: &str) -> String {
    if !markup.contains(['<', '&']) {
        return text::fold_whitespace(markup);
    }
    let document = html::parse(markup, &ParserLimits::default(), &|| true);
    let blocks = blocks::cut(&document);
    render::text(&blocks.list.iter().collect::<Vec<_>>())
}
