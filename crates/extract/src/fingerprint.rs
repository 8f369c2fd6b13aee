//! The hash of a text, equal for texts that differ only in case, punctuation
//! or whitespace. Empty texts have none, so empty pages never collide.

use sha2::{Digest as _, Sha256};
use tidings_text::hex;

/// SHA-256 of the words in lower case, one space between them, as hexadecimal.
pub fn content_hash(text: &str) -> Option<String> {
    let mut hasher = Sha256::new();
    let mut buffer = String::with_capacity(256);
    let mut any = false;
    for word in text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        if any {
            buffer.push(' ');
        }
        any = true;
        buffer.extend(word.chars().flat_map(char::to_lowercase));
        if buffer.len() > 200 {
            hasher.update(buffer.as_bytes());
            buffer.clear();
        }
    }
    hasher.update(buffer.as_bytes());
    any.then(|| hex::encode(hasher.finalize()))
}

#[cfg(test)]
mod tests {
    use super::content_hash;

    #[test]
    fn only_words_count() {
        assert_eq!(content_hash("Hello,  World!"), content_hash("hello world"));
        assert_ne!(content_hash("hello world"), content_hash("helloworld"));
        assert_eq!(content_hash(" …! \n"), None);
        assert_eq!(content_hash("a").map(|hash| hash.len()), Some(64));
    }
}
