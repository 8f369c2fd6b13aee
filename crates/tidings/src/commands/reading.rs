//! What is read out of one page, for people who look: the article with the
//! witness of each field, and what selectors match. Keeps nothing.

use jiff::Timestamp;
use serde::Serialize;
use tidings_engine::ArticleSelectors;
use tidings_extract::{Article, Options, Page, Selector, Selectors, Sourced, extract, select};
use tidings_net::Response;

use crate::output;

/// What one selector matched.
#[derive(Debug, Serialize)]
pub(crate) struct Matched {
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

/// What each selector matches on a page.
pub(crate) fn matches(
    response: &Response,
    selectors: &ArticleSelectors,
) -> anyhow::Result<Vec<Matched>> {
    let mut matched = Vec::new();
    for (field, text) in selectors.named() {
        let selector = Selector::parse(&text)?;
        matched.push(Matched {
            field,
            texts: select(&page(response, None), &Options::default(), &selector),
            selector: text,
        });
    }
    Ok(matched)
}

/// The article for people.
pub(crate) fn show(article: &Article) -> anyhow::Result<()> {
    fn told<T>(field: Option<&Sourced<T>>, text: impl Fn(&T) -> String) -> Option<String> {
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
        ("title", told(article.title.as_ref(), text)),
        ("authors", told(article.authors.as_ref(), list)),
        (
            "published",
            told(article.published.as_ref(), ToString::to_string),
        ),
        (
            "modified",
            told(article.modified.as_ref(), ToString::to_string),
        ),
        ("language", told(article.language.as_ref(), text)),
        ("section", told(article.section.as_ref(), text)),
        ("tags", told(article.tags.as_ref(), list)),
        ("image", told(article.image.as_ref(), text)),
        ("site", told(article.site_name.as_ref(), text)),
        ("canonical", told(article.canonical_url.as_ref(), text)),
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

/// The word for a witness, as the library's JSON has it.
fn origin(origin: &impl Serialize) -> String {
    let word = serde_json::to_value(origin).unwrap_or_default();
    word.as_str().unwrap_or_default().replace('_', " ")
}

fn walls(article: &Article) -> Option<String> {
    let flags = &article.flags;
    let standing = [
        (flags.paywall, "paywall"),
        (flags.consent_wall, "consent"),
        (flags.soft_404, "not found in disguise"),
        (flags.captcha, "captcha"),
    ];
    let names: Vec<_> = standing
        .into_iter()
        .filter_map(|(stands, name)| stands.then_some(name))
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}
