//! What the addresses of a source's articles look like, when an operator has
//! configured it: regular expressions, of which one must match. They decide alone.

use regex::{Regex, RegexBuilder};
use thiserror::Error;

/// Patterns of one source.
const MAX_PATTERNS: usize = 50;
/// Bytes of one compiled pattern.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// An invalid pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternError {
    #[error("{0:?} is not a valid regular expression: {1}")]
    Unreadable(String, String),
    #[error("there are {0} patterns, at most {MAX_PATTERNS} are allowed")]
    TooMany(usize),
}

/// The patterns of a source; without any, heuristics decide.
#[derive(Debug, Clone, Default)]
pub struct ArticlePatterns(Vec<Regex>);

impl ArticlePatterns {
    pub fn parse(patterns: &[String]) -> Result<Self, PatternError> {
        if patterns.len() > MAX_PATTERNS {
            return Err(PatternError::TooMany(patterns.len()));
        }
        let parse = |pattern: &String| {
            let parsed = RegexBuilder::new(pattern)
                .size_limit(MAX_COMPILED_BYTES)
                .build();
            // The last line says what is wrong; those before it draw a picture.
            let why = |error: regex::Error| {
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default();
                last.trim_start_matches("error: ").to_owned()
            };
            parsed.map_err(|error| PatternError::Unreadable(pattern.clone(), why(error)))
        };
        patterns
            .iter()
            .map(parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, url: &str) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(url))
    }
}
