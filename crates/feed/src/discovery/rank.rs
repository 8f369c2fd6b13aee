//! Which of several feeds of a site is the one to follow: what is alive, what
//! carries the articles, what is not the comments. Pure arithmetic on what was
//! parsed.

use jiff::Timestamp;
use serde::Serialize;

use super::{Candidate, CandidateKind};
use crate::model::{ContentQuality, Feed};
use crate::sitemap::Sitemap;

/// A candidate that turned out to be a feed or a sitemap.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranked {
    pub candidate: Candidate,
    /// The title of the feed, or what the page called it.
    pub title: Option<String>,
    pub items: usize,
    pub newest: Option<Timestamp>,
    /// Over the time that the document covers; `None` without dates.
    pub items_per_day: Option<f64>,
    /// The share of items with the full text, from 0 to 1.
    pub full_text_share: f64,
    /// The latest items, as the document lists them.
    pub latest: Vec<Story>,
    /// Higher is better; comparable within one site only.
    pub score: f64,
}

/// One item, to show what a feed is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Story {
    pub title: Option<String>,
    pub link: Option<String>,
    pub published: Option<Timestamp>,
}

/// Stories that are shown of each find.
const SHOWN: usize = 5;

const DAY: f64 = 86_400.0;

/// Judges a feed. `None` if it has no items: then it is not a find.
pub fn assess_feed(candidate: Candidate, feed: &Feed, now: Timestamp) -> Option<Ranked> {
    if feed.items.is_empty() {
        return None;
    }
    let dates: Vec<Timestamp> = feed.items.iter().filter_map(|item| item.date()).collect();
    let full = feed
        .items
        .iter()
        .filter(|item| item.content_quality == ContentQuality::Full);
    let full_text_share = full.count() as f64 / feed.items.len() as f64;
    let title = feed.title.clone().or_else(|| candidate.title.clone());
    let count = feed.items.len();
    let judged = judged(candidate, title, count, &dates, full_text_share, now);
    let latest = feed.items.iter().take(SHOWN).map(|item| Story {
        title: item.title.clone(),
        link: item.link.clone(),
        published: item.date(),
    });
    Some(Ranked {
        latest: latest.collect(),
        ..judged
    })
}

/// Judges a sitemap. Its dates count only if they can be believed.
pub fn assess_sitemap(candidate: Candidate, sitemap: &Sitemap, now: Timestamp) -> Option<Ranked> {
    if sitemap.entries.is_empty() {
        return None;
    }
    let date = |entry: &crate::sitemap::Entry| {
        let news = entry.news.as_ref().and_then(|news| news.published);
        news.or(entry.lastmod.filter(|_| sitemap.lastmod_is_trusted))
    };
    let dates: Vec<Timestamp> = sitemap.entries.iter().filter_map(date).collect();
    let title = candidate.title.clone();
    Some(judged(
        candidate,
        title,
        sitemap.entries.len(),
        &dates,
        0.0,
        now,
    ))
}

/// Sorts what was found, the best first. Feeds stand before sitemaps.
pub fn rank(mut found: Vec<Ranked>) -> Vec<Ranked> {
    found.sort_by(|a, b| {
        let is_sitemap = |ranked: &Ranked| ranked.candidate.kind == CandidateKind::Sitemap;
        is_sitemap(a)
            .cmp(&is_sitemap(b))
            .then(b.score.total_cmp(&a.score))
            .then(a.candidate.origin.cmp(&b.candidate.origin))
            .then(a.candidate.url.len().cmp(&b.candidate.url.len()))
            .then(a.candidate.url.cmp(&b.candidate.url))
    });
    found
}

fn judged(
    candidate: Candidate,
    title: Option<String>,
    items: usize,
    dates: &[Timestamp],
    full_text_share: f64,
    now: Timestamp,
) -> Ranked {
    let newest = dates.iter().max().copied();
    let oldest = dates.iter().min().copied();
    let seconds =
        |from: Timestamp, to: Timestamp| (to.as_second() - from.as_second()).max(0) as f64;
    let items_per_day = newest.zip(oldest).map(|(newest, oldest)| {
        // At least a day: twenty items within a minute are not 28,800 per day.
        dates.len() as f64 / (seconds(oldest, newest) / DAY).max(1.0)
    });
    // 1 for today, a half after a week, near nothing after a year.
    let freshness = newest.map_or(0.0, |newest| 1.0 / (1.0 + seconds(newest, now) / DAY / 7.0));
    // 1 at fifty per day, with most of the difference at the low end.
    let rate = (1.0 + items_per_day.unwrap_or(0.0)).ln() / 51_f64.ln();
    let size = (items as f64).min(20.0) / 20.0;
    let score = 2.0 * freshness + rate.min(1.0) + full_text_share + 0.5 * size
        - 2.0 * f64::from(u8::from(is_about_comments(&candidate, title.as_deref())));
    Ranked {
        candidate,
        title,
        items,
        newest,
        items_per_day,
        full_text_share,
        latest: Vec::new(),
        score,
    }
}

fn is_about_comments(candidate: &Candidate, title: Option<&str>) -> bool {
    let says = |text: &str| text.to_lowercase().contains("comment");
    says(&candidate.url) || title.is_some_and(says)
}
