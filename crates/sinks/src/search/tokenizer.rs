//! The tokenizer for all scripts: runs of letters and digits, in lower case and
//! without accents. Scripts without spaces between words give one token per
//! character; a query in them becomes a phrase, which matches exactly the text.

use tantivy::tokenizer::{
    AsciiFoldingFilter, LowerCaser, RemoveLongFilter, TextAnalyzer, Token, TokenStream, Tokenizer,
};

/// The name of this analyzer in the schema; stored in every index.
pub(crate) const TOKENIZER: &str = "words";

/// Longer runs are keys and URLs, which are no search terms.
const MAX_TOKEN_BYTES: usize = 100;

pub(crate) fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(WordTokenizer::default())
        .filter(RemoveLongFilter::limit(MAX_TOKEN_BYTES))
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .build()
}

#[derive(Clone, Default)]
struct WordTokenizer {
    token: Token,
}

struct WordTokenStream<'a> {
    text: &'a str,
    /// Bytes consumed.
    at: usize,
    token: &'a mut Token,
}

impl Tokenizer for WordTokenizer {
    type TokenStream<'a> = WordTokenStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordTokenStream<'a> {
        self.token.reset();
        WordTokenStream {
            text,
            at: 0,
            token: &mut self.token,
        }
    }
}

impl TokenStream for WordTokenStream<'_> {
    fn advance(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let Some((start, first)) = rest.char_indices().find(|(_, c)| c.is_alphanumeric()) else {
            self.at = self.text.len();
            return false;
        };
        let length = if is_unspaced_script(first) {
            first.len_utf8()
        } else {
            let ends = |c: char| !c.is_alphanumeric() || is_unspaced_script(c);
            rest[start..].find(ends).unwrap_or(rest.len() - start)
        };
        let from = self.at + start;
        self.at = from + length;
        self.token.position = self.token.position.wrapping_add(1);
        self.token.offset_from = from;
        self.token.offset_to = self.at;
        self.token.text.clear();
        self.token.text.push_str(&self.text[from..self.at]);
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

/// Thai, Lao, Burmese, Khmer, kana and Han.
fn is_unspaced_script(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_many_scripts() {
        let rows: [(&str, &[&str]); 7] = [
            (
                "The River's end, 2026!",
                &["the", "river", "s", "end", "2026"],
            ),
            ("Ärger im Café", &["arger", "im", "cafe"]),
            ("Москва ЖИВЁТ", &["москва", "живёт"]),
            ("東京の news", &["東", "京", "の", "news"]),
            ("abc東def", &["abc", "東", "def"]),
            ("", &[]),
            ("…—!", &[]),
        ];
        for (text, words) in rows {
            let mut analyzer = analyzer();
            let mut stream = analyzer.token_stream(text);
            let mut found = Vec::new();
            while let Some(token) = stream.next() {
                assert_eq!(token.position, found.len());
                found.push(token.text.clone());
            }
            assert_eq!(found, words, "{text}");
        }
    }
}
