//! What people read in Rust code: its comments and its string literals, each with
//! the line where it begins. Comment lines that follow each other are one text.

/// Comments and string literals, by line.
pub(crate) fn prose_of(code: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let bytes = code.as_bytes();
    let (mut at, mut line) = (0, 1);
    let mut last_comment = 0;
    while at < bytes.len() {
        let rest = &code[at..];
        let length = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            let text = rest[..length].trim_start_matches(['/', '!']);
            match found.last_mut() {
                Some((_, comment)) if last_comment + 1 == line && last_comment > 0 => {
                    comment.push(' ');
                    comment.push_str(text.trim());
                }
                _ => found.push((line, text.trim().to_owned())),
            }
            last_comment = line;
            length
        } else if let Some(hashes) = raw_string(rest, at, bytes) {
            let open = rest.find('"').map_or(rest.len(), |quote| quote + 1);
            let close = format!("\"{}", "#".repeat(hashes));
            let end = rest[open..]
                .find(&close)
                .map_or(rest.len(), |end| open + end);
            found.push((line, rest[open..end].to_owned()));
            last_comment = 0;
            (end + close.len()).min(rest.len())
        } else if rest.starts_with('"') {
            let end = string_end(rest);
            found.push((line, rest[1..end].replace("\\n", " ")));
            last_comment = 0;
            (end + 1).min(rest.len())
        } else {
            char_literal(rest).unwrap_or_else(|| rest.chars().next().map_or(1, char::len_utf8))
        };
        line += rest[..length].matches('\n').count();
        at += length;
    }
    found
}

/// The number of hashes, if a raw string begins here.
fn raw_string(rest: &str, at: usize, bytes: &[u8]) -> Option<usize> {
    let is_inside_a_word =
        at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let after = rest.strip_prefix('r').or_else(|| rest.strip_prefix("br"))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    (!is_inside_a_word && after[hashes..].starts_with('"')).then_some(hashes)
}

/// Where the closing quote of a string is.
fn string_end(rest: &str) -> usize {
    let mut is_escaped = false;
    for (place, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return place,
            _ => {}
        }
    }
    rest.len()
}

/// The length of a character literal, so that a quote in it opens no string.
fn char_literal(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('\'')?;
    if let Some(escaped) = after.strip_prefix('\\') {
        let end = escaped.char_indices().skip(1).find(|(_, c)| *c == '\'')?.0;
        return (end <= 10).then_some(end + 3);
    }
    let first = after.chars().next()?;
    after[first.len_utf8()..]
        .starts_with('\'')
        .then(|| first.len_utf8() + 2)
}
