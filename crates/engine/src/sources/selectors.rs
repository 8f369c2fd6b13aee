//! The CSS selectors of a source for the parts of its articles, validated when
//! the source is saved. Pure.

use serde::{Deserialize, Serialize};
use tidings_extract::{Selector, Selectors};

/// The selectors of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SelectorSettings {
    #[serde(skip_serializing_if = "ArticleSelectors::is_empty")]
    pub article: ArticleSelectors,
}

/// On an article page. A part without a selector, or whose selector does not
/// match, is auto-detected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArticleSelectors {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(alias = "container", skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    #[serde(alias = "byline", skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(alias = "published_time", skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// An article on whose page it matches is important.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub important: Option<String>,
    /// Left out of the body.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

impl ArticleSelectors {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Each selector that is set, under its name.
    pub fn named(&self) -> Vec<(&'static str, String)> {
        let exclude = (!self.exclude.is_empty()).then(|| self.exclude.join(", "));
        [
            ("title", self.title.clone()),
            ("body", self.body.clone()),
            ("author", self.author.clone()),
            ("published", self.published.clone()),
            ("image", self.image.clone()),
            ("important", self.important.clone()),
            ("exclude", exclude),
        ]
        .into_iter()
        .filter_map(|(name, selector)| Some((name, selector?)))
        .collect()
    }
}

impl SelectorSettings {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The parsed selectors; the error names the field and the column.
    pub fn parsed(&self) -> Result<Selectors, String> {
        let mut parsed = Selectors::default();
        for (name, text) in self.article.named() {
            let selector = Selector::parse(&text)
                .map_err(|error| format!("selectors.article.{name}: {error}"))?;
            let field = match name {
                "title" => &mut parsed.title,
                "body" => &mut parsed.body,
                "author" => &mut parsed.author,
                "published" => &mut parsed.published,
                "image" => &mut parsed.image,
                "important" => &mut parsed.important,
                _ => &mut parsed.remove,
            };
            *field = Some(selector);
        }
        Ok(parsed)
    }
}
