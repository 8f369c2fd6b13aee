//! The fields of an article, each from the first origin that has it: selectors,
//! JSON-LD, meta tags, microdata, the page itself, the feed, in this order.

pub(crate) mod about;
pub(crate) mod author;
mod byline;
pub(crate) mod published;
mod site;
pub(crate) mod title;

use url::Url;

use crate::article::Article;
use crate::blocks::{Blocks, Kind};
use crate::content::{Content, Verdict};
use crate::dates::When;
use crate::html::Document;
use crate::page::Page;
use crate::provenance::{Origin, Sourced};
use crate::roles::Roles;
use crate::selectors::{Selector, value_of};
use about::Statements;
use published::DateEvidence;
use title::TitleCandidates;

/// Fills every field.
pub(crate) fn fill(
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
    let evidence = DateEvidence {
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
