//! One link: an article, a list, or nothing to follow, and why. The patterns of
//! a source decide alone; without any, signs in the address and the place of the
//! link are scored, and no single sign decides.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;
use tidings_url::{FetchUrl, Rules};

use crate::link::Link;
use crate::path::Parts;
use crate::patterns::ArticlePatterns;
use crate::trap::{self, Trap};
use crate::words;

/// A site as it is known when one of its pages is read.
#[derive(Debug, Clone)]
pub struct Site<'a> {
    pub home: &'a FetchUrl,
    /// How its addresses are compared.
    pub rules: Rules,
    pub patterns: ArticlePatterns,
    /// Clicks from the home page to the last list.
    pub max_depth: u16,
    /// Maximum number of lists of the site.
    pub max_listings: usize,
    /// The addresses of those that are.
    pub listings: Vec<FetchUrl>,
    /// Articles of other sites are collected too.
    pub allows_external: bool,
    pub now: Timestamp,
}

impl<'a> Site<'a> {
    /// A site of which nothing is known.
    pub fn new(home: &'a FetchUrl, now: Timestamp) -> Self {
        Self {
            home,
            rules: Rules::default(),
            patterns: ArticlePatterns::default(),
            max_depth: 2,
            max_listings: 50,
            listings: Vec::new(),
            allows_external: false,
            now,
        }
    }
}

/// What a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Article,
    /// An article of another site.
    External,
    Listing,
    /// The next page of a list: stories that are older.
    Older,
    No(Reason),
}

/// Why a link is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Of another site.
    OutOfScope,
    /// A login, a search, a tag, an author, a cart, …
    Excluded,
    /// A picture, a feed, a file.
    Media,
    /// The page marks it `nofollow`.
    NoFollow,
    /// Neither an article nor a list, as far as is known.
    Unclear,
    Trap(Trap),
}

/// Minimum score of an article, and of a clear one.
const ARTICLE_SCORE: i32 = 3;
const CLEAR_SCORE: i32 = 4;

/// Judges the links of one site.
#[derive(Debug)]
pub struct Judge<'a> {
    site: &'a Site<'a>,
    today: Date,
}

impl<'a> Judge<'a> {
    pub fn new(site: &'a Site<'a>) -> Self {
        Self {
            site,
            today: site.now.to_zoned(TimeZone::UTC).date(),
        }
    }

    /// What a link is, whatever the links beside it are.
    pub fn judge(&self, link: &Link) -> Verdict {
        self.judge_as(link, false)
    }

    /// The same, when it is known whether clear articles beside it have the same shape.
    pub(crate) fn judge_as(&self, link: &Link, is_familiar: bool) -> Verdict {
        let is_ours = link.url.is_same_site(self.site.home);
        if !is_ours && !self.site.allows_external {
            return Verdict::No(Reason::OutOfScope);
        }
        let article = match is_ours {
            true => Verdict::Article,
            false => Verdict::External,
        };
        let parts = self.parts(link);
        if let Some(trap) = trap::of_any(&link.url, &parts) {
            return Verdict::No(Reason::Trap(trap));
        }
        if is_ours && self.site.patterns.matches(link.url.as_str()) {
            return article;
        }
        if let Some(reason) = refusal(link, &parts) {
            return Verdict::No(reason);
        }
        let needed = match is_ours {
            true => ARTICLE_SCORE,
            false => CLEAR_SCORE,
        };
        let score = score(link, &parts) + i32::from(is_familiar);
        let is_open = !is_ours || self.site.patterns.is_empty();
        if is_open && score >= needed && parts.page_number().is_none() {
            return article;
        }
        match is_ours {
            true => self.list(link, &parts),
            false => Verdict::No(Reason::OutOfScope),
        }
    }

    /// Whether it is an article beyond doubt.
    pub(crate) fn is_clear(&self, link: &Link) -> bool {
        let is_article = matches!(self.judge(link), Verdict::Article);
        is_article && score(link, &self.parts(link)) >= CLEAR_SCORE
    }

    /// The pattern that similar addresses share.
    pub(crate) fn shape(&self, link: &Link) -> String {
        self.parts(link).shape()
    }

    /// Without what says how a reader came, or who reads.
    fn parts(&self, link: &Link) -> Parts {
        let canonical = link.url.canonical(&self.site.rules);
        match FetchUrl::parse(canonical.as_str()) {
            Ok(url) => Parts::of(&url),
            Err(_) => Parts::of(&link.url),
        }
    }

    /// What is no article may be a list.
    fn list(&self, link: &Link, parts: &Parts) -> Verdict {
        if let Some(trap) = trap::of_list(parts, self.today) {
            return Verdict::No(Reason::Trap(trap));
        }
        if link.is_next || parts.page_number().is_some() {
            return match parts.page_number() {
                Some(0 | 1) => Verdict::No(Reason::Unclear),
                _ => Verdict::Older,
            };
        }
        let is_named = parts
            .segments
            .iter()
            .any(|part| words::is_listing_word(part));
        let is_short = parts.slug_words() <= 3 && parts.last().len() <= 40;
        let is_high = parts.segments.len() <= 2;
        let has_number = parts.id_digits() > 0 && parts.date().is_none();
        let is_list = is_named || link.is_navigation || (is_high && is_short && !has_number);
        match is_list && parts.segments.len() <= 6 {
            true => Verdict::Listing,
            false => Verdict::No(Reason::Unclear),
        }
    }
}

/// Why a link is neither, whatever else it looks like.
fn refusal(link: &Link, parts: &Parts) -> Option<Reason> {
    if link.is_nofollow {
        return Some(Reason::NoFollow);
    }
    if parts.ending.as_deref().is_some_and(words::is_media) {
        return Some(Reason::Media);
    }
    let is_excluded = |part: &String| words::is_excluded(part);
    let acts = |(name, _): &(String, String)| words::is_action(name);
    let excluded = parts.segments.iter().any(is_excluded) || parts.query.iter().any(acts);
    excluded.then_some(Reason::Excluded)
}

/// How likely a link is an article, by signs.
fn score(link: &Link, parts: &Parts) -> i32 {
    let last_is_behind_date = parts
        .date()
        .is_some_and(|date| date.end < parts.segments.len());
    let words = parts.slug_words();
    let has_id_param = parts.query.iter().any(|(name, value)| {
        let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        words::is_article_param(name) && is_number
    });
    let signs = [
        (last_is_behind_date, 3),
        (words >= 4, 3),
        (words == 3, 2),
        (parts.id_digits() >= 5 && parts.date().is_none(), 2),
        (parts.id_digits() > 0 && words >= 2, 1),
        (has_id_param, 2),
        (words::is_article_word(parts.above()), 1),
        (parts.ending.is_some() && words >= 2, 1),
        (link.is_headline, 2),
        (link.is_card, 1),
        (link.text.split_whitespace().nth(3).is_some(), 1),
        (link.is_navigation, -3),
        (link.is_next, -4),
        (words::is_listing_word(parts.above()), -4),
        (parts.segments.is_empty() && parts.query.is_empty(), -9),
    ];
    signs
        .iter()
        .filter(|(holds, _)| *holds)
        .map(|(_, weight)| weight)
        .sum()
}
