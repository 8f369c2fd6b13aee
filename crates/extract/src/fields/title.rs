//! The title: the headline that the page shows, confirmed by the titles in its
//! head; without the name of the site.

use super::site::{Site, is_tail};
use crate::provenance::{Origin, Sourced};
use crate::text::letters;

/// Headings with more letters than this are paragraphs.
const MAX_TITLE_LETTERS: usize = 150;
/// A heading of no more words can be a rubric,
const MAX_RUBRIC_WORDS: usize = 3;
/// if several titles in the head agree on one with at least this many.
const MIN_TITLE_WORDS: usize = 5;
/// A heading of the first level matches the head if it shares more of its words.
const MIN_SHARED_WORDS: f32 = 0.34;
/// Words of a label beside the title in the heading: "Blog:", "/ Dec 2026".
const MAX_LABEL_WORDS: usize = 3;

/// The candidates for the title.
#[derive(Debug, Default)]
pub(crate) struct TitleCandidates {
    /// Headings before the first paragraph, those of the first level
    /// before all others, in order.
    pub(crate) headings: Vec<(u8, String)>,
    pub(crate) json_ld: Option<String>,
    pub(crate) open_graph: Option<String>,
    pub(crate) twitter: Option<String>,
    pub(crate) dublin_core: Option<String>,
    pub(crate) microdata: Option<String>,
    pub(crate) tag: Option<String>,
    /// The declared name of the site.
    pub(crate) site_name: Option<String>,
    /// The host of the page: a site is often named like it.
    pub(crate) host: String,
}

/// Chooses among the candidates.
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
    let heads = heads(&declared);
    if let Some(heading) = headline(&candidates.headings, &heads, &site) {
        let heading = without_label(heading, &heads).unwrap_or(heading);
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
    first.and_then(|(text, origin)| {
        let text = text.as_deref()?;
        Some(Sourced::new(without_name(text).to_owned(), *origin))
    })
}

/// A title that no heading shows without what may be the name of a site that we don't know.
fn without_name(title: &str) -> &str {
    [" - ", " – ", " — "]
        .iter()
        .filter_map(|separator| title.rsplit_once(separator))
        .find(|(rest, last)| is_tail(rest, last) && !last.starts_with(char::is_lowercase))
        .map_or(title, |(rest, _)| rest)
}

/// The titles in the head of the page. Microdata is mostly the heading itself,
/// so it confirms nothing, but it counts where there is no other.
fn heads(declared: &[(Option<String>, Origin)]) -> Vec<String> {
    let declared_titles = |by_page: bool| -> Vec<String> {
        declared
            .iter()
            .filter(|(_, origin)| (*origin == Origin::Microdata) == by_page)
            .filter_map(|(text, _)| text.clone())
            .collect()
    };
    let heads = declared_titles(false);
    match heads.is_empty() {
        true => declared_titles(true),
        false => heads,
    }
}

fn main_headings(headings: &[(u8, String)]) -> impl Iterator<Item = &str> {
    let first = headings.iter().filter(|(level, _)| *level == 1);
    first.take(3).map(|(_, text)| text.as_str())
}

/// The heading that the reader takes for the title: one that the head of the
/// page repeats, or the one of the first level with similar words.
fn headline<'a>(headings: &'a [(u8, String)], heads: &[String], site: &Site) -> Option<&'a str> {
    let mut usable = headings.iter().filter(|(_, text)| {
        !site.is_named(text) && (3..=MAX_TITLE_LETTERS).contains(&letters(text).chars().count())
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
            // Where the titles in the head contradict each other, one match is enough.
            None => shares.fold(0.0, f32::max),
        }
    };
    let lower = || {
        usable
            .clone()
            .find(|(level, text)| {
                matches!(level, 2 | 3) && heads.iter().any(|head| is_most_of(text, head))
            })
            .map(|(_, text)| text.as_str())
    };
    usable
        .clone()
        .find(|(level, text)| *level == 1 && likeness(text) > MIN_SHARED_WORDS)
        .map(|(_, text)| text.as_str())
        .or_else(lower)
        .filter(|heading| !agreed.is_some_and(|title| is_rubric(heading, title)))
}

/// Whether a title in the head has these words and few more: a smaller heading may leave out
/// the name of a site that we don't know, but a longer one is another title.
fn is_most_of(heading: &str, head: &str) -> bool {
    let (part, whole) = (letters(heading), letters(head));
    (whole.starts_with(&part) || whole.ends_with(&part))
        && word_count(heading) * 2 >= word_count(head)
}

/// A few words above an article whose full title is known.
fn is_rubric(heading: &str, title: &str) -> bool {
    word_count(heading) <= MAX_RUBRIC_WORDS
        && word_count(title) >= MIN_TITLE_WORDS
        && !letters(title).starts_with(&letters(heading))
}

/// The title that all heads agree on, if there are several.
fn agreed(heads: &[String]) -> Option<&str> {
    let (first, others) = heads.split_first()?;
    let same = !others.is_empty() && others.iter().all(|head| letters(head) == letters(first));
    same.then_some(first.as_str())
}

/// The heading without a word before the title ("Blog: …") that a head leaves
/// out, or behind it ("… / Dec 2026") if all do: there it could be a subtitle.
fn without_label<'a>(heading: &'a str, heads: &[String]) -> Option<&'a str> {
    let is_label = |text: &str| word_count(text) <= MAX_LABEL_WORDS;
    let before = [":", " | ", " – ", " — ", " - "]
        .iter()
        .filter_map(|separator| heading.split_once(separator))
        .min_by_key(|(label, _)| label.len())
        .filter(|(label, rest)| {
            is_label(label) && heads.iter().any(|head| letters(head) == letters(rest))
        })
        .map(|(_, rest)| rest.trim());
    let behind = || {
        [" / ", " | ", " · ", " • "]
            .iter()
            .filter_map(|separator| heading.rsplit_once(separator))
            .find(|(rest, label)| {
                is_label(label) && agreed(heads).is_some_and(|head| letters(head) == letters(rest))
            })
            .map(|(rest, _)| rest.trim())
    };
    before.or_else(behind)
}

/// The title that all heads agree on, if the heading is only its beginning.
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
        // A short heading is a title when the others are short or contradict each other.
        candidates.tag = Some("Bread tips from bakers".into());
        assert_eq!(chosen(&candidates), "Bread tips");
    }

    #[test]
    fn a_label_beside_the_title_goes() {
        let title = "How bread is baked";
        for (heading, tag, expected) in [
            ("Blog: How bread is baked", title, title),
            ("Title:How bread is baked", title, title),
            ("Opinion | How bread is baked", title, title),
            ("How bread is baked / Dec 2026", title, title),
            ("How bread is baked · News", title, title),
            // No head knows the title without it.
            (
                "Bread: How bread is made",
                title,
                "Bread: How bread is made",
            ),
            // More than a label.
            (
                "All that we ever learned: How bread is baked",
                title,
                "All that we ever learned: How bread is baked",
            ),
            // Text behind the title is a subtitle until all heads leave it out.
            (
                "How bread is baked / a guide",
                "Bread, a guide",
                "How bread is baked / a guide",
            ),
        ] {
            let candidates = TitleCandidates {
                headings: vec![(1, heading.into())],
                open_graph: Some(title.into()),
                tag: Some(tag.into()),
                ..TitleCandidates::default()
            };
            assert_eq!(chosen(&candidates), expected, "{heading}");
        }
    }

    #[test]
    fn microdata_of_the_heading_confirms_nothing() {
        let mut candidates = TitleCandidates {
            headings: vec![(1, "Bread tips".into()), (1, "More tips".into())],
            microdata: Some("Bread tips".into()),
            open_graph: Some("Ten bread tips that bakers swear by".into()),
            tag: Some("Ten bread tips that bakers swear by".into()),
            ..TitleCandidates::default()
        };
        assert_eq!(chosen(&candidates), "Ten bread tips that bakers swear by");
        (candidates.open_graph, candidates.tag) = (None, None);
        candidates.headings.reverse();
        assert_eq!(chosen(&candidates), "Bread tips");
    }

    #[test]
    fn a_smaller_heading_is_the_title_only_if_a_head_says_little_more() {
        for (heading, tag, expected) in [
            // The name of the site, which is declared nowhere else.
            (
                "How bread is baked",
                "Baker How bread is baked",
                "How bread is baked",
            ),
            (
                "How bread is baked, by hand and day by day",
                "How bread is baked",
                "How bread is baked",
            ),
            ("Bread", "Bread that bakers bake", "Bread that bakers bake"),
        ] {
            let candidates = TitleCandidates {
                headings: vec![(2, heading.into())],
                tag: Some(tag.into()),
                ..TitleCandidates::default()
            };
            assert_eq!(chosen(&candidates), expected, "{heading}");
        }
    }

    #[test]
    fn a_title_that_no_heading_shows_loses_a_name_behind_a_dash() {
        for (tag, expected) in [
            (
                "How bread is baked - Notes of a Baker",
                "How bread is baked",
            ),
            ("How bread is baked – Notes", "How bread is baked"),
            // A few words, or a sentence that goes on.
            ("About bread – Notes", "About bread – Notes"),
            (
                "How bread is baked – by hand",
                "How bread is baked – by hand",
            ),
            (
                "How bread is baked - All That You Must Know About It",
                "How bread is baked - All That You Must Know About It",
            ),
        ] {
            let mut candidates = TitleCandidates {
                tag: Some(tag.into()),
                ..TitleCandidates::default()
            };
            assert_eq!(chosen(&candidates), expected, "{tag}");
            candidates.headings = vec![(1, tag.into())];
            assert_eq!(chosen(&candidates), tag);
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
    fn a_truncated_heading_is_completed() {
        let candidates = TitleCandidates {
            headings: vec![(1, "The best ovens for bread".into())],
            json_ld: Some("The best ovens for bread in 2026".into()),
            open_graph: Some("The best ovens for bread in 2026".into()),
            ..TitleCandidates::default()
        };
        assert_eq!(chosen(&candidates), "The best ovens for bread in 2026");
    }
}
