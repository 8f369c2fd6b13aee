//! The whole way from bytes to article: decode, parse, cut into blocks, find
//! the article among them, ask every witness for every field. Only calls and
//! combines; each rule lives in the module that is named after it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use url::Url;

use crate::article::{Article, BlockNote, Method, Quality};
use crate::blocks::{Block, Blocks, Kind};
use crate::content::{self, Content, Verdict, Witnesses};
use crate::fields::about::Statements;
use crate::fields::author;
use crate::fields::published::{self, Evidence};
use crate::fields::title::{self, TitleCandidates};
use crate::html::{self, Document, ParserLimits, Tag};
use crate::near_duplicate::Signature;
use crate::page::{FeedEntry, Options, Page, QualityBounds};
use crate::page_type::{self, Shape};
use crate::provenance::{Origin, Sourced};
use crate::roles::Roles;
use crate::selectors::{Selector, value_of};
use crate::structured::{JsonLd, Meta, Microdata, article_rank};
use crate::when::When;
use crate::{blocks, charset, fingerprint, language, raw_content, render, text, walls};

/// Characters of an excerpt.
const EXCERPT: usize = 200;
/// A body in the structured data must be this much longer to replace the page's.
const HIDDEN_BODY: usize = 3;

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
    let document = html::parse(&source, &parser_limits(options), options.within_budget);
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
    let witnesses = Witnesses {
        titles: [
            json_ld.text("headline"),
            meta.get("og:title").map(str::to_owned),
            meta.title.clone(),
        ]
        .into_iter()
        .flatten()
        .collect(),
        authors: author::declared(&json_ld, &meta, &microdata),
    };
    let (content, method) = find_content(page, options, &document, &blocks, &witnesses);
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
    if options.markdown {
        article.markdown = Some(render::markdown(&kept));
    }
    article.links = render::links(&document, &kept, base.as_ref());
    article.images = render::images(&document, content.container, base.as_ref());
    fall_back(&mut article, &json_ld, page.feed);

    fill_fields(
        &mut article,
        page,
        &document,
        &blocks,
        &content,
        &statements,
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
        EXCERPT,
    );
    article.language = language::find(
        &meta,
        &json_ld,
        &article.text,
        page.feed.and_then(|feed| feed.language.as_deref()),
    );
    article.flags = find_walls(&article, &document, &blocks, &statements);
    article.page_type = page_type::judge(&shape(
        &article,
        page,
        &document,
        &blocks,
        &kept,
        &statements,
    ));
    article.quality = quality(&article.text, &options.quality);
    article.content_hash = fingerprint::content_hash(&article.text);
    article.signature = Signature::of(&article.text);
    article.confidence = confidence(&article, &blocks, &kept);
    article.raw_content = raw_content::fill(&article, page.url, &json_ld, &meta);
    if options.explain {
        article.blocks = notes(&document, &blocks, &content);
    }
    article
}

fn decode(page: &Page<'_>, options: &Options<'_>) -> (String, &'static str) {
    let bytes = &page.html[..page.html.len().min(options.limits.html_bytes)];
    let host = Url::parse(page.url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned));
    let top_level = host.as_deref().and_then(|host| host.rsplit('.').next());
    charset::decode(bytes, page.charset, top_level)
}

fn parser_limits(options: &Options<'_>) -> ParserLimits {
    let limits = &options.limits;
    ParserLimits {
        depth: limits.depth,
        attributes: limits.attributes_per_tag,
        texts: limits.texts,
        nodes: limits.nodes,
        text_bytes: limits.text_bytes,
    }
}

fn base_url(url: &str, base: Option<&str>) -> Option<Url> {
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
    witnesses: &Witnesses,
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
            (content::find(document, blocks, witnesses), Method::Blocks)
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

/// Pages that are built in the browser carry their text in the structured data
/// or not at all; then the feed is the last witness.
fn fall_back(article: &mut Article, json_ld: &JsonLd, feed: Option<&FeedEntry>) {
    if let Some(body) = json_ld
        .text("articleBody")
        .filter(|body| body.len() > 200 && body.len() > article.text.len() * HIDDEN_BODY)
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

fn fill_fields(
    article: &mut Article,
    page: &Page<'_>,
    document: &Document<'_>,
    blocks: &Blocks,
    content: &Content,
    statements: &Statements<'_>,
) {
    let Statements {
        json_ld,
        meta,
        microdata,
        ..
    } = *statements;
    let selected = |selector: Option<&Selector>| {
        selector
            .and_then(|selector| selector.first(document))
            .map(|node| value_of(document, node))
            .filter(|value| !value.is_empty())
    };
    let selectors = page.selectors;
    let feed = page.feed;

    article.site_name = statements.site_name();
    article.description = statements.description();
    article.section = statements.section();
    article.tags = statements.tags().or_else(|| {
        feed.filter(|feed| !feed.tags.is_empty())
            .map(|feed| Sourced::new(feed.tags.clone(), Origin::Feed))
    });
    article.canonical_url = statements.canonical_url();
    article.license = statements.license();
    article.robots = statements.robots();
    article.image = selected(selectors.and_then(|s| s.image.as_ref()))
        .and_then(|url| statements.resolve(&url))
        .map(|url| Sourced::new(url, Origin::Selector))
        .or_else(|| statements.image())
        .or_else(|| {
            article
                .images
                .first()
                .map(|image| Sourced::new(image.url.clone(), Origin::Html))
        })
        .or_else(|| {
            feed.and_then(|feed| feed.image.clone())
                .map(|url| Sourced::new(url, Origin::Feed))
        });
    article.title = selected(selectors.and_then(|s| s.title.as_ref()))
        .map(|title| Sourced::new(title, Origin::Selector))
        .or_else(|| {
            title::choose(&title_candidates(
                article, page, blocks, content, statements,
            ))
        })
        .or_else(|| {
            feed.and_then(|feed| feed.title.clone())
                .map(|title| Sourced::new(title, Origin::Feed))
        });
    let site = article.site_name.as_ref().map(|site| site.value.as_str());
    article.authors = selected(selectors.and_then(|s| s.author.as_ref()))
        .map(|line| author::split(&line))
        .filter(|names| !names.is_empty())
        .map(|names| Sourced::new(names, Origin::Selector))
        .or_else(|| {
            author::find(
                document,
                blocks,
                content.container,
                json_ld,
                meta,
                microdata,
                site,
            )
        })
        .or_else(|| {
            feed.filter(|feed| !feed.authors.is_empty())
                .map(|feed| Sourced::new(feed.authors.clone(), Origin::Feed))
        });
    let evidence = Evidence {
        document,
        blocks,
        container: content.container,
        json_ld,
        meta,
        microdata,
        url: page.url,
        now: page.now,
    };
    let believed = |when: &When| published::believes(*when, page.now);
    article.published = selected(selectors.and_then(|s| s.published.as_ref()))
        .and_then(|text| When::parse(&text))
        .filter(believed)
        .map(|when| Sourced::new(when, Origin::Selector))
        .or_else(|| published::published(&evidence))
        .or_else(|| {
            feed.and_then(|feed| feed.published)
                .filter(believed)
                .map(|when| Sourced::new(when, Origin::Feed))
        });
    article.modified = published::modified(&evidence).or_else(|| {
        feed.and_then(|feed| feed.modified)
            .filter(believed)
            .map(|when| Sourced::new(when, Origin::Feed))
    });
}

fn title_candidates(
    article: &Article,
    page: &Page<'_>,
    blocks: &Blocks,
    content: &Content,
    statements: &Statements<'_>,
) -> TitleCandidates {
    let Statements {
        json_ld,
        meta,
        microdata,
        ..
    } = *statements;
    let first_paragraph = content
        .verdicts
        .iter()
        .zip(&blocks.list)
        .position(|(verdict, block)| *verdict == Verdict::Kept && block.size > 80)
        .unwrap_or(blocks.list.len());
    let elsewhere = Roles::NAV | Roles::FOOTER | Roles::HIDDEN | Roles::CONSENT;
    let headings = blocks.list[..first_paragraph]
        .iter()
        .filter(|block| !block.roles.has(elsewhere))
        .filter_map(|block| match block.kind {
            Kind::Heading(level) => Some((level, block.text.replace('\n', " "))),
            _ => None,
        });
    TitleCandidates {
        headings: headings.collect(),
        json_ld: json_ld.text("headline").or_else(|| json_ld.text("name")),
        open_graph: meta.get("og:title").map(str::to_owned),
        twitter: meta.get("twitter:title").map(str::to_owned),
        dublin_core: meta
            .first(&["dc.title", "dcterms.title"])
            .map(str::to_owned),
        microdata: microdata
            .get("headline")
            .or_else(|| microdata.get("name"))
            .map(str::to_owned),
        tag: meta.title.clone(),
        site_name: article.site_name.as_ref().map(|site| site.value.clone()),
        host: Url::parse(page.url)
            .ok()
            .and_then(|url| {
                url.host_str()
                    .map(|host| host.trim_start_matches("www.").to_owned())
            })
            .unwrap_or_default(),
    }
}

fn find_walls(
    article: &Article,
    document: &Document<'_>,
    blocks: &Blocks,
    statements: &Statements<'_>,
) -> crate::article::Flags {
    // A wall is short: the first lines of a page are enough to know it.
    let mut page = String::new();
    for block in blocks.list.iter().take(400) {
        page.push_str(&block.text);
        page.push('\n');
    }
    let has_box = |word: &str| {
        (1..document.len()).any(|node| {
            document.tag(node) != Tag::Text
                && ["class", "id"].iter().any(|name| {
                    document
                        .raw_attr(node, name)
                        .is_some_and(|value| value.contains(word))
                })
        })
    };
    let short = article.text.len() < 3_000;
    let title = article
        .title
        .as_ref()
        .map_or("", |title| title.value.as_str());
    walls::find(&walls::Signs {
        title: statements.meta.title.as_deref().unwrap_or(title),
        text: &article.text,
        page: &page,
        says_paywall: statements.says_paywall(),
        has_paywall_box: short && has_box("paywall"),
        has_captcha: short && (has_box("captcha") || has_box("cf-challenge")),
        amp: statements.meta.amp,
    })
}

fn shape<'a>(
    article: &Article,
    page: &Page<'_>,
    document: &Document<'_>,
    blocks: &Blocks,
    kept: &[&Block],
    statements: &Statements<'a>,
) -> Shape<'a> {
    let is_heading = |block: &Block| matches!(block.kind, Kind::Heading(_));
    Shape {
        json_ld_rank: statements
            .json_ld
            .article_type()
            .map_or(0, |kind| article_rank(&kind)),
        microdata_rank: statements.microdata.kind.as_deref().map_or(0, article_rank),
        og_type: statements.meta.get("og:type"),
        words: article.word_count,
        paragraphs: kept
            .iter()
            .filter(|block| block.size >= 80 && block.link_density() < 0.3 && !is_heading(block))
            .count(),
        link_words: blocks.list.iter().map(|block| block.link_size / 6).sum(),
        links: (1..document.len())
            .filter(|node| document.tag(*node) == Tag::A)
            .count(),
        linked_headings: blocks
            .list
            .iter()
            .filter(|block| (is_heading(block) || block.in_card) && block.link_density() > 0.8)
            .count(),
        has_title: article.title.is_some(),
        has_date: article.published.is_some(),
        has_author: article.authors.is_some(),
        is_front: Url::parse(page.url).is_ok_and(|url| url.path() == "/" && url.query().is_none()),
        flags: article.flags,
    }
}

fn quality(text: &str, bounds: &QualityBounds) -> Quality {
    match text.chars().count() {
        n if n >= bounds.full => Quality::Full,
        n if n >= bounds.summary => Quality::Summary,
        n if n >= bounds.stub => Quality::Stub,
        _ => Quality::TitleOnly,
    }
}

/// How much of the prose of the page was taken, and how sure the kind of page is.
fn confidence(article: &Article, blocks: &Blocks, kept: &[&Block]) -> f32 {
    if article.text.is_empty() {
        return 0.0;
    }
    if article.method == Method::Selector {
        return 1.0;
    }
    let prose = |block: &Block| {
        if block.size >= 80 && block.link_density() < 0.3 {
            block.size
        } else {
            0
        }
    };
    let all: usize = blocks.list.iter().map(prose).sum();
    let taken: usize = kept.iter().map(|block| prose(block)).sum();
    let share = taken as f32 / all.max(1) as f32;
    let base = match article.quality {
        Quality::Full => 0.6,
        Quality::Summary => 0.45,
        Quality::Stub => 0.3,
        Quality::TitleOnly => 0.1,
    };
    ((base + share * 0.4).clamp(0.0, 1.0) * 100.0).round() / 100.0
}

fn notes(document: &Document<'_>, blocks: &Blocks, content: &Content) -> Vec<BlockNote> {
    let describe = |node: usize| {
        let mut name = document.name(node).to_owned();
        for (attribute, mark) in [("id", '#'), ("class", '.')] {
            for word in document
                .raw_attr(node, attribute)
                .unwrap_or("")
                .split_ascii_whitespace()
                .take(3)
            {
                name.push(mark);
                name.push_str(word);
            }
        }
        if node == content.container {
            format!("[{name}]")
        } else {
            name
        }
    };
    let note = |block: &Block, verdict: &Verdict| BlockNote {
        verdict: format!("{verdict:?}"),
        why: format!(
            "{:?}, size {}, links {:.2}{}, roles [{}]",
            block.kind,
            block.size,
            block.link_density(),
            if block.to_itself { " to itself" } else { "" },
            block.roles.names()
        ),
        path: document
            .ancestors(block.first)
            .skip(1)
            .take(5)
            .map(describe)
            .collect::<Vec<_>>()
            .join(" < "),
        text: block.text.clone(),
    };
    blocks
        .list
        .iter()
        .zip(&content.verdicts)
        .map(|(block, verdict)| note(block, verdict))
        .collect()
}
