//! CSS selectors for sources: which element holds the title, the body, the
//! author, the date; what to leave out. The common part of CSS, parsed once
//! with errors that name the column, matched from the element upwards.

mod parse;

use crate::html::{Document, NodeId, Tag};

pub use parse::SelectorError;

/// The selectors of a source. All optional.
#[derive(Debug, Clone, Default)]
pub struct Selectors {
    pub title: Option<Selector>,
    pub body: Option<Selector>,
    pub author: Option<Selector>,
    pub published: Option<Selector>,
    pub image: Option<Selector>,
    /// An article on whose page it matches is important.
    pub important: Option<Selector>,
    /// What to leave out of the body.
    pub remove: Option<Selector>,
}

/// A parsed selector list.
#[derive(Debug, Clone)]
pub struct Selector {
    alternatives: Vec<Complex>,
}

/// Compounds from right to left, each with what joins it to the one on its left.
#[derive(Debug, Clone)]
struct Complex {
    last: Compound,
    before: Vec<(Combinator, Compound)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Combinator {
    Descendant,
    Child,
    Next,
    Later,
}

#[derive(Debug, Clone, Default)]
struct Compound {
    name: Option<String>,
    tests: Vec<Test>,
}

#[derive(Debug, Clone)]
enum Test {
    Attribute {
        name: String,
        operator: Operator,
        value: String,
        any_case: bool,
    },
    Not(Box<Compound>),
    NthChild(usize),
    LastChild,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Present,
    Equals,
    /// One of the words.
    Includes,
    Starts,
    Ends,
    Contains,
    /// The value, or the value and a hyphen.
    Dash,
}

impl Selector {
    /// Parses a selector list; the error names the column.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::parse(text)
    }

    pub(crate) fn matches(&self, document: &Document<'_>, node: NodeId) -> bool {
        self.alternatives.iter().any(|complex| {
            complex.last.matches(document, node) && joins(document, node, &complex.before)
        })
    }

    pub(crate) fn all<'d>(
        &'d self,
        document: &'d Document<'_>,
    ) -> impl Iterator<Item = NodeId> + 'd {
        (1..document.len())
            .filter(|node| document.tag(*node) != Tag::Text && self.matches(document, *node))
    }

    pub(crate) fn first(&self, document: &Document<'_>) -> Option<NodeId> {
        self.all(document).next()
    }
}

/// What a selector finds, as text: the content of `meta`, the `datetime` of
/// `time`, the address of an image, else the text inside.
pub(crate) fn value_of(document: &Document<'_>, node: NodeId) -> String {
    let attribute = match document.tag(node) {
        Tag::Meta => Some("content"),
        Tag::Time => Some("datetime"),
        Tag::Img => Some("src"),
        Tag::Link => Some("href"),
        _ => None,
    };
    attribute
        .and_then(|name| document.attr(node, name))
        .map(|value| value.trim().to_owned())
        .filter(|value| !value.is_empty())
        .unwrap_or_else(|| document.text(node))
}

/// Whether the compounds to the left of a matched one match, too.
fn joins(document: &Document<'_>, node: NodeId, before: &[(Combinator, Compound)]) -> bool {
    let Some(((combinator, compound), rest)) = before.split_first() else {
        return true;
    };
    let fits = |candidate: NodeId| {
        compound.matches(document, candidate) && joins(document, candidate, rest)
    };
    match combinator {
        Combinator::Child => node != 0 && fits(document.parent(node)),
        Combinator::Descendant => document.ancestors(node).skip(1).any(fits),
        Combinator::Next => elements_before(document, node).last().is_some_and(fits),
        Combinator::Later => elements_before(document, node).any(fits),
    }
}

fn elements_before<'d>(
    document: &'d Document<'_>,
    node: NodeId,
) -> impl Iterator<Item = NodeId> + 'd {
    document
        .children(document.parent(node))
        .take_while(move |child| *child < node)
        .filter(|child| document.tag(*child) != Tag::Text)
}

impl Compound {
    fn matches(&self, document: &Document<'_>, node: NodeId) -> bool {
        if node == 0 || document.tag(node) == Tag::Text {
            return false;
        }
        self.name
            .as_ref()
            .is_none_or(|name| document.name(node).eq_ignore_ascii_case(name))
            && self.tests.iter().all(|test| test.holds(document, node))
    }
}

impl Test {
    fn holds(&self, document: &Document<'_>, node: NodeId) -> bool {
        match self {
            Self::Attribute {
                name,
                operator,
                value,
                any_case,
            } => document
                .attr(node, name)
                .is_some_and(|actual| compare(&actual, *operator, value, *any_case)),
            Self::Not(compound) => !compound.matches(document, node),
            Self::NthChild(n) => elements_before(document, node).count() + 1 == *n,
            Self::LastChild => !document
                .children(document.parent(node))
                .any(|child| child > node && document.tag(child) != Tag::Text),
        }
    }
}

fn compare(actual: &str, operator: Operator, value: &str, any_case: bool) -> bool {
    let (lower_actual, lower_value);
    let (actual, value) = if any_case {
        lower_actual = actual.to_lowercase();
        lower_value = value.to_lowercase();
        (lower_actual.as_str(), lower_value.as_str())
    } else {
        (actual, value)
    };
    match operator {
        Operator::Present => true,
        Operator::Equals => actual == value,
        Operator::Includes => actual.split_ascii_whitespace().any(|word| word == value),
        Operator::Starts => !value.is_empty() && actual.starts_with(value),
        Operator::Ends => !value.is_empty() && actual.ends_with(value),
        Operator::Contains => !value.is_empty() && actual.contains(value),
        Operator::Dash => actual
            .strip_prefix(value)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-')),
    }
}

#[cfg(test)]
mod tests {
    use super::Selector;
    use crate::html::{ParserLimits, parse};

    const PAGE: &str = r#"<main id=m><div class="post body" data-kind="News-item"><p>one<p class=x>two</div><section><p>three</p><p lang=en-GB>four</p></section></main>"#;

    fn texts(selector: &str) -> Vec<String> {
        let document = parse(PAGE, &ParserLimits::default(), &|| true);
        let selector = Selector::parse(selector).expect("valid");
        selector
            .all(&document)
            .map(|node| document.text(node))
            .collect()
    }

    #[test]
    fn selectors_find_what_css_finds() {
        for (selector, expected) in [
            ("p", vec!["one", "two", "three", "four"]),
            (".post > p", vec!["one", "two"]),
            ("main section p, p.x", vec!["two", "three", "four"]),
            ("#m .body p:not(.x)", vec!["one"]),
            ("[data-kind^=News] p:first-child", vec!["one"]),
            ("[data-kind='news-ITEM' i] p:last-child", vec!["two"]),
            ("div + section p:nth-child(2)", vec!["four"]),
            ("div ~ section p[lang|=en]", vec!["four"]),
            ("section *", vec!["three", "four"]),
            ("article p", vec![]),
        ] {
            assert_eq!(texts(selector), expected, "{selector}");
        }
    }

    #[test]
    fn mistakes_are_named_with_their_column() {
        for (selector, message) in [
            ("", "column 1: a selector is empty"),
            (
                "div >",
                "column 6: a selector is missing after the combinator",
            ),
            ("div[", "column 5: a name is missing"),
            ("div[a=b", "column 8: ']' is missing"),
            ("p:hover", "column 3: ':hover' is not supported"),
            ("a,,b", "column 3: a selector is empty"),
            (".1x", "column 2: a name is missing"),
        ] {
            let error = Selector::parse(selector).expect_err(selector);
            assert_eq!(
                error.to_string(),
                format!("\"{selector}\" is not a valid selector at {message}")
            );
        }
    }
}
