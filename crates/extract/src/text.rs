//! Small rules about strings: whitespace, words, comparison forms. Everything
//! here is linear and knows nothing of pages.

/// One space for every run of whitespace, none at the ends; characters that
/// have no place in text (NUL, controls, zero-width, bidi overrides) go.
pub(crate) fn fold_whitespace(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    fold_whitespace_into(text, &mut out);
    if out.ends_with(' ') {
        out.pop();
    }
    out
}

/// Appends folded text; a space is not doubled across calls, nor put first.
pub(crate) fn fold_whitespace_into(text: &str, out: &mut String) {
    for c in text.chars() {
        if c.is_whitespace() {
            if !out.is_empty() && !out.ends_with([' ', '\n']) {
                out.push(' ');
            }
        } else if !is_noise(c) {
            out.push(c);
        }
    }
}

/// Invisible characters that only ever get in the way of comparing text.
fn is_noise(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{200b}' | '\u{feff}' | '\u{ad}' | '\u{2060}' | '\u{fffc}'
        )
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The size of a text: characters, those of scripts without spaces twice.
pub(crate) fn size(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.chars().map(|c| if is_dense(c) { 2 } else { 1 }).sum()
}

/// Characters of scripts that put a word into one or two of them.
pub(crate) fn is_dense(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}')
}

/// Letters and digits in lower case, nothing else: the form in which titles,
/// names and lines are compared.
pub(crate) fn letters(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Words; in scripts without spaces two characters count as one.
pub(crate) fn word_count(text: &str) -> usize {
    let (mut words, mut dense, mut open) = (0, 0, false);
    for c in text.chars() {
        if is_dense(c) {
            dense += 1;
            open = false;
        } else if c.is_alphanumeric() {
            words += usize::from(!open);
            open = true;
        } else if c.is_whitespace() {
            open = false;
        }
    }
    words + dense / 2
}
