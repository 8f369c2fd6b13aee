//! The URL that is compared: one spelling for all the ways to write the same
//! address, and nothing that could make two articles one. Never requested.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::escape::{PATH, QUERY};
use crate::tracking::{is_tracking, matches_pattern};
use crate::{FetchUrl, UrlKey};

/// Stored with each row, so that rows keyed by older rules can be found and
/// re-keyed. Raise it with every change that can move a key.
pub const NORMALIZER_VERSION: u16 = 1;

/// The rules of one source beyond the common ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Further parameters to strip: names, or prefixes that end in `*`.
    pub strip_params: Vec<String>,
    /// Parameters that mean something on this site; they win over every strip.
    pub keep_params: Vec<String>,
    /// For the rare site where `/a` and `/a/` are two pages.
    pub keep_trailing_slash: bool,
}

impl Rules {
    fn strips(&self, name: &str) -> bool {
        let listed = |patterns: &[String]| patterns.iter().any(|p| matches_pattern(name, p));
        (is_tracking(name) || listed(&self.strip_params)) && !listed(&self.keep_params)
    }
}

/// A URL in the one spelling by which URLs are compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct CanonicalUrl(String);

impl CanonicalUrl {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The identity of the page: frontier row, document, every sink.
    pub fn key(&self) -> UrlKey {
        UrlKey::of(&self.0)
    }
}

impl fmt::Display for CanonicalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<CanonicalUrl> for String {
    fn from(url: CanonicalUrl) -> Self {
        url.0
    }
}

impl FetchUrl {
    /// The form in which this URL is compared with others.
    ///
    /// The parse has already lower-cased scheme and host, turned the host into
    /// IDNA ASCII, resolved dot segments and dropped the fragment.
    pub fn canonical(&self, rules: &Rules) -> CanonicalUrl {
        let url = self.as_url();
        let mut out = String::with_capacity(url.as_str().len() + 8);
        out.push_str("https://");
        out.push_str(self.host());
        if let Some(port) = self.unusual_port() {
            out.push(':');
            out.push_str(&port.to_string());
        }
        let path_start = out.len();
        PATH.normalize_into(url.path(), &mut out);
        if !rules.keep_trailing_slash {
            // All of them, so that doing it twice changes nothing.
            let kept = out[path_start..].trim_end_matches('/').len().max(1);
            out.truncate(path_start + kept);
        }
        if let Some(query) = url.query() {
            push_query(query, rules, &mut out);
        }
        CanonicalUrl(out)
    }
}

fn push_query(query: &str, rules: &Rules, out: &mut String) {
    let normalized = normalize_query(query);
    let mut pairs: Vec<&str> = normalized
        .split('&')
        .filter(|pair| !pair.is_empty() && !rules.strips(name_of(pair)))
        .collect();
    // Stable, so that equal names keep their order: `?id=1&id=2` is a list.
    pairs.sort_by_key(|pair| name_of(pair));
    let mut separator = '?';
    for pair in pairs {
        out.push(separator);
        out.push_str(pair);
        separator = '&';
    }
}

fn normalize_query(query: &str) -> Cow<'_, str> {
    if QUERY.is_normalized(query) {
        return Cow::Borrowed(query);
    }
    let mut normalized = String::with_capacity(query.len() + 8);
    QUERY.normalize_into(query, &mut normalized);
    Cow::Owned(normalized)
}

fn name_of(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(name, _)| name)
}
