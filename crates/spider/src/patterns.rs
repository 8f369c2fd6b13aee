//! What the addresses of a source's articles look like, when somebody has said
//! so: regular expressions, of which one must match. They decide alone.

use regex::{Regex, RegexBuilder};
use thiserror::Error;

/// Patterns of one source.
const MOST: usize = 50;
/// Bytes that one compiled pattern may take.
const LARGEST: usize = 1 << 20;

/// A pattern that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternError {
    #[error("{0:?} is not a pattern: {1}")]
    Unreadable(String, String),
    #[error("there are {0} patterns, and may be {MOST}")]
    TooMany(usize),
}

/// The patterns of a source; without any, heuristics decide.
#[derive(Debug, Clone, Default)]
pub struct ArticlePatterns(Vec<Regex>);

impl ArticlePatterns {
    pub fn parse(patterns: &[String]) -> Result<Self, PatternError> {
        if patterns.len() > MOST {
            return Err(PatternError::TooMany(patterns.len()));
        }
        let parse = |pattern: &String| {
            let parsed = RegexBuilder::new(pattern).size_limit(LARGEST).build();
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
