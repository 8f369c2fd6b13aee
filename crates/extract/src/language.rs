//! The language of an article: as declared, else as detected from the text,
//! else from the feed. ISO 639-1 where it exists.

use crate::provenance::{Origin, Sourced};
use crate::structured::{JsonLd, Meta};

/// Detection in shorter texts is a guess.
const MIN_DETECTION_CHARS: usize = 200;

pub(crate) fn find(
    meta: &Meta,
    json_ld: &JsonLd,
    text: &str,
    feed: Option<&str>,
) -> Option<Sourced<String>> {
    let declared = meta
        .lang
        .as_deref()
        .and_then(code)
        .map(|code| Sourced::new(code, Origin::Html))
        .or_else(|| {
            json_ld
                .text("inLanguage")
                .as_deref()
                .and_then(code)
                .map(|code| Sourced::new(code, Origin::JsonLd))
        })
        .or_else(|| {
            meta.get("og:locale")
                .and_then(code)
                .map(|code| Sourced::new(code, Origin::OpenGraph))
        })
        .or_else(|| {
            meta.first(&["dc.language", "dcterms.language"])
                .and_then(code)
                .map(|code| Sourced::new(code, Origin::DublinCore))
        })
        .or_else(|| {
            meta.first(&["content-language", "language"])
                .and_then(code)
                .map(|code| Sourced::new(code, Origin::Meta))
        });
    declared
        .or_else(|| detect(text).map(|code| Sourced::new(code, Origin::Text)))
        .or_else(|| {
            feed.and_then(code)
                .map(|code| Sourced::new(code, Origin::Feed))
        })
}

/// `de-AT`, `pt_BR`, `EN` to two or three letters.
fn code(tag: &str) -> Option<String> {
    let first = tag
        .trim()
        .split(['-', '_', ',', ' '])
        .next()?
        .to_ascii_lowercase();
    let is_code = (2..=3).contains(&first.len())
        && first.bytes().all(|b| b.is_ascii_lowercase())
        && !matches!(first.as_str(), "und" | "mul" | "xx");
    is_code.then_some(first)
}

fn detect(text: &str) -> Option<String> {
    if crate::text::size(text) < MIN_DETECTION_CHARS {
        return None;
    }
    let mut end = text.len().min(4000);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let found = whatlang::detect(&text[..end]).filter(whatlang::Info::is_reliable)?;
    let three = found.lang().code();
    let two = TWO_LETTERS
        .iter()
        .find(|(long, _)| *long == three)
        .map_or(three, |(_, short)| *short);
    Some(two.to_owned())
}

/// The detector speaks ISO 639-3.
const TWO_LETTERS: [(&str, &str); 52] = [
    ("eng", "en"),
    ("deu", "de"),
    ("fra", "fr"),
    ("spa", "es"),
    ("por", "pt"),
    ("ita", "it"),
    ("nld", "nl"),
    ("swe", "sv"),
    ("dan", "da"),
    ("nob", "nb"),
    ("fin", "fi"),
    ("pol", "pl"),
    ("ces", "cs"),
    ("slk", "sk"),
    ("slv", "sl"),
    ("hrv", "hr"),
    ("srp", "sr"),
    ("hun", "hu"),
    ("ron", "ro"),
    ("bul", "bg"),
    ("rus", "ru"),
    ("ukr", "uk"),
    ("bel", "be"),
    ("ell", "el"),
    ("tur", "tr"),
    ("ara", "ar"),
    ("heb", "he"),
    ("pes", "fa"),
    ("urd", "ur"),
    ("hin", "hi"),
    ("ben", "bn"),
    ("tam", "ta"),
    ("tel", "te"),
    ("mar", "mr"),
    ("guj", "gu"),
    ("kan", "kn"),
    ("mal", "ml"),
    ("pan", "pa"),
    ("tha", "th"),
    ("vie", "vi"),
    ("ind", "id"),
    ("jpn", "ja"),
    ("kor", "ko"),
    ("cmn", "zh"),
    ("kat", "ka"),
    ("hye", "hy"),
    ("lit", "lt"),
    ("lav", "lv"),
    ("est", "et"),
    ("cat", "ca"),
    ("afr", "af"),
    ("lat", "la"),
];

#[cfg(test)]
mod tests {
    use super::{code, detect};

    #[test]
    fn tags_become_codes() {
        for (tag, expected) in [
            ("de-AT", Some("de")),
            ("pt_BR", Some("pt")),
            ("EN", Some("en")),
            ("", None),
            ("english", None),
            ("und", None),
        ] {
            assert_eq!(code(tag).as_deref(), expected, "{tag}");
        }
    }

    #[test]
    fn long_texts_tell_their_language() {
        let german = "Der Rat der Stadt hat gestern Abend beschlossen, die alte Brücke zu erneuern und den Verkehr für zwei Jahre umzuleiten. ".repeat(3);
        let japanese = "市議会は昨夜、古い橋を架け替え、二年間にわたって交通を迂回させることを決定した。住民からは不安の声も上がっている。".repeat(3);
        assert_eq!(detect(&german).as_deref(), Some("de"));
        assert_eq!(detect(&japanese).as_deref(), Some("ja"));
        assert_eq!(detect("zu kurz"), None);
    }
}
