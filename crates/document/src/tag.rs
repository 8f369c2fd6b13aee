//! The one spelling of a tag: lower-case, words joined by hyphens. Feeds, services,
//! pages and operators write the same tag in many ways.

/// A tag in the spelling of documents; empty if it has no letters or digits.
///
/// ```
/// # use tidings_document::normalize_tag;
/// assert_eq!(normalize_tag("  World News "), "world-news");
/// assert_eq!(normalize_tag("American poetry -- 19th century"), "american-poetry-19th-century");
/// assert_eq!(normalize_tag("Women’s rights"), "womens-rights");
/// ```
pub fn normalize_tag(tag: &str) -> String {
    let mut normalized = String::with_capacity(tag.len());
    for c in tag.chars() {
        match c {
            // Inside words: apostrophes, soft hyphens, joiners.
            '\'' | '’' | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{feff}' => {}
            c if is_separator(c) => {
                if !normalized.is_empty() && !normalized.ends_with('-') {
                    normalized.push('-');
                }
            }
            // Of a hashtag.
            '#' if normalized.is_empty() => {}
            c => normalized.extend(c.to_lowercase()),
        }
    }
    let end = normalized.trim_end_matches('-').len();
    normalized.truncate(end);
    let has_word = normalized.chars().any(char::is_alphanumeric);
    if has_word { normalized } else { String::new() }
}

/// Everything in ASCII but letters, digits and the signs of C++ and C#; beyond ASCII
/// spaces and punctuation. Marks of other scripts belong to their words.
fn is_separator(c: char) -> bool {
    match c {
        '+' | '#' => false,
        c if c.is_ascii() => !c.is_ascii_alphanumeric(),
        '\u{a1}' | '\u{a6}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}' => {
            true
        }
        '\u{2010}'..='\u{206f}' | '\u{3001}'..='\u{303f}' => true,
        '\u{ff01}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}' => true,
        c => c.is_whitespace() || c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::normalize_tag;

    #[test]
    fn every_spelling_of_a_tag_is_one() {
        let rows = [
            ("Wire", "wire"),
            ("World news", "world-news"),
            ("world_news", "world-news"),
            ("WORLD  –  NEWS!", "world-news"),
            ("#news", "news"),
            ("C++", "c++"),
            ("C#", "c#"),
            ("AT&T", "at-t"),
            ("Straße", "straße"),
            ("Économie / Social", "économie-social"),
            ("हिन्दी समाचार", "हिन्दी-समाचार"),
            ("新聞、経済", "新聞-経済"),
            ("--", ""),
            ("#", ""),
            ("", ""),
        ];
        for (tag, expected) in rows {
            assert_eq!(normalize_tag(tag), expected, "{tag}");
            assert_eq!(normalize_tag(expected), expected, "once is enough: {tag}");
        }
    }
}
