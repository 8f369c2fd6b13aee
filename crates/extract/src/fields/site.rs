//! How a site is named in the titles of its pages, and how a title reads
//! without that name. The name comes from the page's own words, its address,
//! and from what one of its titles has more than another.

use crate::text::{fold_whitespace, letters, word_count};

const SEPARATORS: [&str; 10] = [
    " | ", " - ", " – ", " — ", " » ", " « ", " · ", " • ", " :: ", " ― ",
];

/// The names of sites and rubrics have no more words,
const MAX_NAME_WORDS: usize = 5;
/// and no more characters.
const MAX_NAME_CHARS: usize = 34;

/// The site, as its name appears in titles.
#[derive(Debug)]
pub(super) struct Site {
    /// As the page gives it, then as its titles have it, in letters only.
    names: Vec<String>,
    host: String,
    /// The parts of the host between dots, but for the last.
    labels: Vec<String>,
}

impl Site {
    /// `titles` are all that the page calls itself, with and without the name.
    pub(super) fn new(name: Option<&str>, host: &str, titles: &[&str]) -> Self {
        let mut names: Vec<String> = name.map(letters).into_iter().collect();
        for longer in titles {
            let rests = titles.iter().filter_map(|title| rest_after(longer, title));
            names.extend(rests.map(letters));
        }
        names.retain(|name| !name.is_empty());
        let mut labels: Vec<String> = host.split('.').map(letters).collect();
        labels.pop();
        Self {
            names,
            host: letters(host),
            labels,
        }
    }

    /// Whether a text is the name of the site and nothing else.
    pub(super) fn is_named(&self, text: &str) -> bool {
        let text = letters(text);
        self.names.contains(&text)
            || (text.len() >= 4 && self.host.starts_with(&text))
            || (text.len() >= 3 && self.labels.contains(&text))
            || self.host == text
    }

    fn owns(&self, part: &str) -> bool {
        let letters_of_part = letters(part);
        if letters_of_part.is_empty() {
            return false;
        }
        self.names
            .iter()
            .any(|name| letters_of_part.contains(name.as_str()) || name.contains(&letters_of_part))
            || (letters_of_part.len() >= 3 && self.host.contains(&letters_of_part))
            || self.is_made_of_labels(part)
    }

    /// "Oven's Forum" on forum.oven.example.
    fn is_made_of_labels(&self, part: &str) -> bool {
        let mut words = part
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.len() >= 3)
            .peekable();
        words.peek().is_some() && words.all(|word| self.labels.contains(&letters(word)))
    }

    /// Cuts the name of the site off either end, and a rubric behind a bar.
    pub(super) fn cut(&self, title: &str) -> String {
        // Some write the bar without spaces.
        let spaced = title.replace('|', " | ");
        let folded = fold_whitespace(if title.contains('|') { &spaced } else { title });
        let mut best = folded.as_str();
        for _ in 0..2 {
            for separator in SEPARATORS {
                if let Some((rest, last)) = best.rsplit_once(separator) {
                    let rubric = matches!(separator, " | " | " » " | " :: ") && is_tail(rest, last);
                    if (self.owns(last) || rubric) && !rest.trim().is_empty() {
                        best = rest.trim();
                    }
                }
                if let Some((first, rest)) = best.split_once(separator)
                    && self.names.contains(&letters(first))
                    && !rest.trim().is_empty()
                {
                    best = rest.trim();
                }
            }
        }
        best.to_owned()
    }
}

/// Whether this is the name of a site or of a rubric behind a full title, by its length.
pub(super) fn is_tail(title: &str, last: &str) -> bool {
    word_count(title) >= 3
        && word_count(last) <= MAX_NAME_WORDS
        && last.chars().count() <= MAX_NAME_CHARS
}

/// The part behind a separator where the title continues after `other`.
fn rest_after<'a>(title: &'a str, other: &str) -> Option<&'a str> {
    let rest = title.trim().strip_prefix(other.trim())?;
    SEPARATORS
        .iter()
        .find_map(|separator| rest.strip_prefix(separator))
        .filter(|rest| rest.split_whitespace().count() <= 6)
}

#[cfg(test)]
mod tests {
    use super::Site;

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
            ("A long story | All the News of Today", None, "A long story"),
            (
                "A long story | All the News of Today and More",
                None,
                "A long story | All the News of Today and More",
            ),
            ("Stories | Daily News", None, "Stories | Daily News"),
            ("如何在家烤面包｜面包师", None, "如何在家烤面包｜面包师"),
            ("如何在家烤面包 | 面包师", None, "如何在家烤面包"),
            ("A long story – Gazette", None, "A long story"),
            ("A long story| The Daily", Some("The Daily"), "A long story"),
            ("A long story|Daily", Some("The Daily"), "A long story"),
            ("A long story - Gazette's Forum", None, "A long story"),
            ("Rise and fall - a story", None, "Rise and fall - a story"),
        ] {
            let site = Site::new(name, "forum.gazette.example", &[]);
            assert_eq!(site.cut(title), expected, "{title}");
        }
    }

    #[test]
    fn the_name_is_what_one_title_has_more_than_another() {
        let titles = ["A long story", "A long story - Notes of a Baker"];
        let site = Site::new(None, "a.example", &titles);
        assert!(site.is_named("Notes of a baker"));
        assert_eq!(
            site.cut("Another story - Notes of a Baker"),
            "Another story"
        );
    }

    #[test]
    fn a_logo_that_says_a_part_of_the_host_is_the_name() {
        let site = Site::new(None, "community.oven.example", &[]);
        assert!(site.is_named("Oven"));
        assert!(!site.is_named("Ovens"));
        assert!(!site.is_named("Example"));
    }
}
