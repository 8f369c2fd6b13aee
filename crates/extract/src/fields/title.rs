//! The title: the headline that the page shows, confirmed by what it says in
//! its head; without the name of the site.

use super::site::Site;
use crate::provenance::{Origin, Sourced};
use crate::text::letters;

/// Headings with more letters than this are paragraphs.
const LONGEST: usize = 150;
/// A heading of no more words can be a rubric,
const RUBRIC: usize = 3;
/// if several witnesses agree on a title of at least so many.
const FULL: usize = 5;
/// Words that may stand before the title in the heading: "Blog:", "Opinion |".
const KICKER: usize = 3;

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
    let titles: Vec<&str> = [
        &candidates.tag,
        &candidates.open_graph,
        &candidates.json_ld,
        &candidates.twitter,
    ]
    .into_iter()
    .filter_map(|title| title.as_deref())
    .chain(main_headings(&candidates.headings))
    .collect();
    let site = Site::new(candidates.site_name.as_deref(), &candidates.host, &titles);
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
        let heading = without_kicker(heading, &heads).unwrap_or(heading);
        let title = site.cut(heading);
        let fuller = candidates
            .json_ld
            .is_some()
            .then(|| fuller(&title, &heads))
            .flatten();
        return Some(match fuller {
            Some(fuller) => Sourced::new(fuller.to_owned(), Origin::JsonLd),
            None => Sourced::new(title, Origin::Html),
        });
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

fn main_headings(headings: &[(u8, String)]) -> impl Iterator<Item = &str> {
    let first = headings.iter().filter(|(level, _)| *level == 1);
    first.take(3).map(|(_, text)| text.as_str())
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
    let agreed = agreed(heads);
    let likeness = |heading: &str| {
        let shares = heads.iter().map(|head| share_of_words(heading, head));
        match agreed {
            Some(_) => shares.sum::<f32>() / heads.len() as f32,
            // Where the witnesses contradict each other, it is enough to be like one.
            None => shares.fold(0.0, f32::max),
        }
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
        .filter(|heading| !agreed.is_some_and(|title| is_rubric(heading, title)))
}

/// A few words above an article whose full title is known.
fn is_rubric(heading: &str, title: &str) -> bool {
    word_count(heading) <= RUBRIC
        && word_count(title) >= FULL
        && !letters(title).starts_with(&letters(heading))
}

/// What all heads say, if there are several and they say the same.
fn agreed(heads: &[String]) -> Option<&str> {
    let (first, others) = heads.split_first()?;
    let same = !others.is_empty() && others.iter().all(|head| letters(head) == letters(first));
    same.then_some(first.as_str())
}

/// The heading without a word before the title ("Blog: …") that no head repeats.
fn without_kicker<'a>(heading: &'a str, heads: &[String]) -> Option<&'a str> {
    let (kicker, rest) = [": ", " | ", " – ", " — ", " - "]
        .iter()
        .filter_map(|separator| heading.split_once(separator))
        .min_by_key(|(kicker, _)| kicker.len())?;
    let known = heads.iter().any(|head| letters(head) == letters(rest));
    (known && word_count(kicker) <= KICKER).then_some(rest.trim())
}

/// What all heads say, if the heading is only its beginning.
fn fuller<'a>(heading: &str, heads: &'a [String]) -> Option<&'a str> {
    let rest = agreed(heads)?.strip_prefix(heading)?;
    let goes_on = rest.strip_prefix(' ')?.starts_with(char::is_alphanumeric);
    goes_on.then_some(heads.first()?.as_str())
}

fn word_count(text: &str) -> usize {
    crate::text::word_count(text)
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

#[cfg(test)]
mod tests {
    use super::{TitleCandidates, choose};

    fn chosen(candidates: &TitleCandidates) -> String {
        choose(candidates)
            .map(|title| title.value)
            .unwrap_or_default()
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

    #[test]
    fn a_rubric_above_the_article_is_not_its_title() {
        let mut candidates = TitleCandidates {
            headings: vec![(1, "Bread tips".into())],
            open_graph: Some("Ten bread tips that bakers swear by".into()),
            tag: Some("Ten bread tips that bakers swear by".into()),
            ..TitleCandidates::default()
        };
        assert_eq!(chosen(&candidates), "Ten bread tips that bakers swear by");
        // A short heading is a title when the others are short or not of one mind.
        candidates.tag = Some("Bread tips from bakers".into());
        assert_eq!(chosen(&candidates), "Bread tips");
    }

    #[test]
    fn a_word_before_the_title_goes() {
        for (heading, expected) in [
            ("Blog: How bread is baked", "How bread is baked"),
            ("Opinion | How bread is baked", "How bread is baked"),
            ("Bread: How bread is made", "Bread: How bread is made"),
        ] {
            let candidates = TitleCandidates {
                headings: vec![(1, heading.into())],
                open_graph: Some("How bread is baked".into()),
                ..TitleCandidates::default()
            };
            assert_eq!(chosen(&candidates), expected);
        }
    }

    #[test]
    fn where_the_head_contradicts_itself_the_heading_decides() {
        let candidates = TitleCandidates {
            headings: vec![(
                1,
                "After baking forty loaves, these are the best ovens we know".into(),
            )],
            open_graph: Some("Five ovens that every baker will want to own this very year".into()),
            tag: Some("The best ovens, tested".into()),
            ..TitleCandidates::default()
        };
        assert!(chosen(&candidates).starts_with("After baking forty loaves"));
    }

    #[test]
    fn a_heading_that_breaks_off_is_completed() {
        let candidates = TitleCandidates {
            headings: vec![(1, "The best ovens for bread".into())],
            json_ld: Some("The best ovens for bread in 2026".into()),
            open_graph: Some("The best ovens for bread in 2026".into()),
            ..TitleCandidates::default()
        };
        assert_eq!(chosen(&candidates), "The best ovens for bread in 2026");
    }
}
