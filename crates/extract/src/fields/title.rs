//! The title: the headline that the page shows, confirmed by what it says in
//! its head; without the name of the site.

use crate::provenance::{Origin, Sourced};
use crate::text::letters;

/// Headings with more letters than this are paragraphs.
const LONGEST: usize = 150;

/// What could be the title.
#[derive(Debug, Default)]
pub(crate) struct TitleCandidates {
    /// Headings that stand before the first paragraph, those of the first level
    /// before all others, in order.
    pub(crate) headings: Vec<(u8, String)>,
    pub(crate) json_ld: Option<String>,
    pub(crate) open_graph: Option<String>,
    pub(crate) twitter: Option<String>,
    pub(crate) dublin_core: Option<String>,
    pub(crate) microdata: Option<String>,
    pub(crate) tag: Option<String>,
    /// How the site calls itself.
    pub(crate) site_name: Option<String>,
    /// The host of the page: a site is often named like it.
    pub(crate) host: String,
}

/// Which of them it is.
pub(crate) fn choose(candidates: &TitleCandidates) -> Option<Sourced<String>> {
    let site = Site {
        name: candidates
            .site_name
            .as_deref()
            .map(letters)
            .filter(|name| !name.is_empty()),
        host: letters(&candidates.host),
    };
    let declared = [
        (&candidates.json_ld, Origin::JsonLd),
        (&candidates.open_graph, Origin::OpenGraph),
        (&candidates.twitter, Origin::Twitter),
        (&candidates.dublin_core, Origin::DublinCore),
        (&candidates.microdata, Origin::Microdata),
        (&candidates.tag, Origin::Html),
    ]
    .map(|(text, origin)| {
        (
            text.as_deref()
                .map(|text| site.cut(text))
                .filter(|title| !title.is_empty() && !site.is_named(title)),
            origin,
        )
    });
    let heads: Vec<String> = declared
        .iter()
        .filter_map(|(text, _)| text.clone())
        .collect();
    if let Some(heading) = headline(&candidates.headings, &heads, &site) {
        return Some(Sourced::new(site.cut(heading), Origin::Html));
    }
    // An object of the structured data may be about something else on the page.
    let supported = |text: &str| {
        heads
            .iter()
            .filter(|head| share_of_words(text, head) > 0.3)
            .count()
            > 1
    };
    let first = declared
        .iter()
        .find(|(text, _)| text.as_deref().is_some_and(supported))
        .or_else(|| declared.iter().find(|(text, _)| text.is_some()));
    first.and_then(|(text, origin)| text.clone().map(|text| Sourced::new(text, *origin)))
}

/// The heading that the reader takes for the title: one that the head of the
/// page repeats, or the one of the first level that says the same in other words.
fn headline<'a>(headings: &'a [(u8, String)], heads: &[String], site: &Site) -> Option<&'a str> {
    let mut usable = headings.iter().filter(|(_, text)| {
        !site.is_named(text) && (3..=LONGEST).contains(&letters(text).chars().count())
    });
    if heads.is_empty() {
        return usable
            .find(|(level, _)| *level == 1)
            .map(|(_, text)| text.as_str());
    }
    let repeated = usable.clone().find(|(level, text)| {
        *level <= 3 && heads.iter().any(|head| letters(head) == letters(text))
    });
    if let Some((_, text)) = repeated {
        return Some(text);
    }
    let likeness = |heading: &str| {
        heads
            .iter()
            .map(|head| share_of_words(heading, head))
            .sum::<f32>()
            / heads.len() as f32
    };
    let first = |level: u8, least: f32| {
        usable
            .clone()
            .find(|(of, text)| *of == level && likeness(text) > least)
            .map(|(_, text)| text.as_str())
    };
    first(1, 0.34)
        .or_else(|| first(2, 0.8))
        .or_else(|| first(3, 0.8))
}

/// How many of the words of the two are in both.
fn share_of_words(a: &str, b: &str) -> f32 {
    let words = |text: &str| -> Vec<String> {
        if text.chars().any(crate::text::is_dense) {
            return text
                .chars()
                .filter(|c| c.is_alphanumeric())
                .map(String::from)
                .collect();
        }
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let (a, b) = (words(a), words(b));
    let common = a.iter().filter(|word| b.contains(word)).count();
    common as f32 / a.len().min(b.len()).max(1) as f32
}

/// The site, as its name appears in titles.
#[derive(Debug)]
struct Site {
    name: Option<String>,
    host: String,
}

impl Site {
    fn is_named(&self, text: &str) -> bool {
        let text = letters(text);
        self.name.as_ref().is_some_and(|name| *name == text)
            || (text.len() >= 4 && self.host.starts_with(&text))
            || self.host == text
    }

    fn owns(&self, part: &str) -> bool {
        let part = letters(part);
        if part.is_empty() {
            return false;
        }
        self.name
            .as_ref()
            .is_some_and(|name| part.contains(name.as_str()) || name.contains(&part))
            || (part.len() >= 3 && self.host.contains(&part))
    }

    /// Cuts the name of the site off either end, and a rubric behind a bar.
    fn cut(&self, title: &str) -> String {
        const SEPARATORS: [&str; 10] = [
            " | ", " - ", " – ", " — ", " » ", " « ", " · ", " • ", " :: ", " ― ",
        ];
        let mut best = title.trim();
        for _ in 0..2 {
            for separator in SEPARATORS {
                if let Some((rest, last)) = best.rsplit_once(separator) {
                    let rubric = matches!(separator, " | " | " » " | " :: ")
                        && last.split_whitespace().count() <= 3
                        && rest.split_whitespace().count() >= 3;
                    if (self.owns(last) || rubric) && !rest.trim().is_empty() {
                        best = rest.trim();
                    }
                }
                if let Some((first, rest)) = best.split_once(separator)
                    && self
                        .name
                        .as_ref()
                        .is_some_and(|name| letters(first) == *name)
                    && !rest.trim().is_empty()
                {
                    best = rest.trim();
                }
            }
        }
        best.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{Site, TitleCandidates, choose};
    use crate::text::letters;

    #[test]
    fn the_name_of_the_site_goes() {
        for (title, name, expected) in [
            (
                "A long story | The Daily",
                Some("The Daily"),
                "A long story",
            ),
            (
                "A long story - The Daily",
                Some("The Daily"),
                "A long story",
            ),
            (
                "The Daily: A long story",
                Some("The Daily"),
                "The Daily: A long story",
            ),
            (
                "The Daily | A long story",
                Some("The Daily"),
                "A long story",
            ),
            ("Rise - and fall", Some("The Daily"), "Rise - and fall"),
            ("A long story | Daily News", None, "A long story"),
            ("A long story – Gazette", None, "A long story"),
            ("Rise and fall - a story", None, "Rise and fall - a story"),
        ] {
            let site = Site {
                name: name.map(letters),
                host: letters("gazette.example"),
            };
            assert_eq!(site.cut(title), expected, "{title}");
        }
    }

    #[test]
    fn the_headline_wins_over_what_was_written_for_search_engines() {
        let mut candidates = TitleCandidates {
            headings: vec![
                (1, "Gazette".into()),
                (1, "Ten ways to bake bread at home".into()),
            ],
            open_graph: Some("Bake bread: ten easy ways".into()),
            host: "gazette.example".into(),
            ..TitleCandidates::default()
        };
        assert_eq!(
            choose(&candidates).map(|title| title.value).as_deref(),
            Some("Ten ways to bake bread at home")
        );
        candidates.headings.truncate(1);
        assert_eq!(
            choose(&candidates).map(|title| title.value).as_deref(),
            Some("Bake bread: ten easy ways")
        );
    }
}
