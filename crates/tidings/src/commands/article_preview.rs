//! Preview of the extraction of one page: the article with the origin of each
//! field, and what selectors match. Stores nothing.

use jiff::Timestamp;
use serde::Serialize;
use tidings_engine::ArticleSelectors;
use tidings_extract::{Article, Options, Page, Selector, Selectors, Sourced, extract, select};
use tidings_net::Response;

use crate::output;

/// The matches of one selector.
#[derive(Debug, Serialize)]
pub(crate) struct SelectorMatches {
    pub(crate) field: &'static str,
    pub(crate) selector: String,
    pub(crate) texts: Vec<String>,
}

fn page<'a>(response: &'a Response, selectors: Option<&'a Selectors>) -> Page<'a> {
    let content_type = response.header("content-type").unwrap_or_default();
    Page {
        html: &response.body,
        url: response.url.as_str(),
        charset: tidings_text::charset::from_content_type(content_type),
        selectors,
        feed: None,
        now: Timestamp::now(),
    }
}

pub(crate) fn article(response: &Response, selectors: Option<&Selectors>) -> Article {
    extract(&page(response, selectors), &Options::default())
}

/// The matches of each selector on a page.
pub(crate) fn matches(
    response: &Response,
    selectors: &ArticleSelectors,
) -> anyhow::Result<Vec<SelectorMatches>> {
    let mut matched = Vec::new();
    for (field, text) in selectors.named() {
        let selector = Selector::parse(&text)?;
        matched.push(SelectorMatches {
            field,
            texts: select(&page(response, None), &Options::default(), &selector),
            selector: text,
        });
    }
    Ok(matched)
}

/// Prints the article as text.
pub(crate) fn show(article: &Article) -> anyhow::Result<()> {
    fn with_origin<T>(field: Option<&Sourced<T>>, text: impl Fn(&T) -> String) -> Option<String> {
        field.map(|field| format!("{}  ({})", text(&field.value), origin(&field.origin)))
    }
    let text = |text: &String| text.clone();
    let list = |list: &Vec<String>| list.join(", ");
    let found = format!(
        "{} words by {}, {} quality, page type {}, confidence {:.2}",
        article.word_count,
        article.method.as_str(),
        article.quality.as_str(),
        article.page_type.as_str(),
        article.confidence
    );
    let known = [
        ("title", with_origin(article.title.as_ref(), text)),
        ("authors", with_origin(article.authors.as_ref(), list)),
        (
            "published",
            with_origin(article.published.as_ref(), ToString::to_string),
        ),
        (
            "modified",
            with_origin(article.modified.as_ref(), ToString::to_string),
        ),
        ("language", with_origin(article.language.as_ref(), text)),
        ("section", with_origin(article.section.as_ref(), text)),
        ("tags", with_origin(article.tags.as_ref(), list)),
        ("image", with_origin(article.image.as_ref(), text)),
        ("site", with_origin(article.site_name.as_ref(), text)),
        (
            "canonical",
            with_origin(article.canonical_url.as_ref(), text),
        ),
        ("text", Some(found)),
        ("walls", walls(article)),
    ];
    let rows: Vec<[String; 2]> = known
        .into_iter()
        .filter_map(|(name, value)| Some([name.to_owned(), value?]))
        .collect();
    output::columns(&rows)?;
    output::line("")?;
    output::line(&article.text)
}

/// The origin of a field, as the library's JSON names it.
fn origin(origin: &impl Serialize) -> String {
    let name = serde_json::to_value(origin).unwrap_or_default();
    name.as_str().unwrap_or_default().replace('_', " ")
}

fn walls(article: &Article) -> Option<String> {
    let flags = &article.flags;
    let found = [
        (flags.paywall, "paywall"),
        (flags.consent_wall, "consent wall"),
        (flags.soft_404, "soft 404"),
        (flags.captcha, "captcha"),
    ];
    let names: Vec<_> = found
        .into_iter()
        .filter_map(|(is_found, name)| is_found.then_some(name))
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}
