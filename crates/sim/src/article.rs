//! One article of one site: its address, its text and its fate, all of which
//! follow from the seed. This is the ground truth that tests compare with.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::rng::Rng;
use crate::site::{Layout, Site};
use crate::text;

/// Where the announced link leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// The page is there.
    Page,
    /// The link is a short one that redirects to the page.
    Moved,
    /// The page lies behind a robots.txt rule.
    Members,
    /// The page was taken down: 404.
    Missing,
}

/// An article as its newsroom knows it.
#[derive(Debug, Clone)]
pub struct Article {
    pub number: u64,
    pub path: String,
    /// The link that feeds carry, when it is not the page's own path.
    pub short_path: Option<String>,
    pub title: String,
    pub authors: Vec<String>,
    pub section: &'static str,
    pub published: Timestamp,
    /// When a correction was added, for some.
    pub edited: Option<Timestamp>,
    pub fate: Fate,
    text: Rng,
}

impl Article {
    pub(crate) fn of(site: &Site, number: u64) -> Self {
        let mut rng = Rng::of(site.seed, "article", u64::from(site.index) << 40 | number);
        let title = text::headline(&mut rng, site.language);
        let section = *rng.pick(text::SECTIONS);
        let published = site.schedule.published_at(number);
        let fate = if site.has_plain_fates {
            Fate::Page
        } else {
            fate(&mut rng)
        };
        let authors = (0..rng.between(1, 2))
            .map(|_| text::author(&mut rng))
            .collect();
        let edited = rng
            .random_bool(10)
            .then(|| published + SignedDuration::from_mins(rng.between(20, 600) as i64));
        Self {
            number,
            path: site.layout.path(number, &title, section, published, fate),
            short_path: (fate == Fate::Moved).then(|| format!("/go/{number}")),
            title,
            authors,
            section,
            published,
            edited,
            fate,
            text: rng,
        }
    }

    /// The path that feeds and sitemaps announce.
    pub fn announced_path(&self) -> &str {
        self.short_path.as_deref().unwrap_or(&self.path)
    }

    /// When the page last changed, as seen at `now`.
    pub fn changed(&self, now: Timestamp) -> Timestamp {
        self.edited
            .filter(|edited| *edited <= now)
            .unwrap_or(self.published)
    }

    /// The paragraphs of the article, as they read at `now`.
    pub fn paragraphs(&self, site: &Site, now: Timestamp) -> Vec<String> {
        let mut rng = self.text.clone();
        let count = rng.between(4, 12);
        let mut paragraphs: Vec<_> = (0..count)
            .map(|_| text::paragraph(&mut rng, site.language))
            .collect();
        if self.changed(now) > self.published {
            paragraphs.push(format!("+++ {}", text::sentence(&mut rng, site.language)));
        }
        paragraphs
    }

    /// What feeds carry when they do not carry the whole text.
    pub fn summary(&self, site: &Site) -> String {
        let first = self.paragraphs(site, self.published).into_iter().next();
        first.unwrap_or_default()
    }
}

fn fate(rng: &mut Rng) -> Fate {
    match rng.below(100) {
        0..=2 => Fate::Missing,
        3..=6 => Fate::Members,
        7..=11 => Fate::Moved,
        _ => Fate::Page,
    }
}

impl Site {
    pub fn article(&self, number: u64) -> Article {
        Article::of(self, number)
    }

    /// The newest articles first, at most `count`.
    pub fn latest(&self, now: Timestamp, count: u64) -> impl Iterator<Item = Article> + '_ {
        let published = self.published_by(now);
        (published.saturating_sub(count)..published)
            .rev()
            .map(|number| self.article(number))
    }

    /// The article at a path, if it is published by `now`.
    pub fn article_at(&self, path: &str, now: Timestamp) -> Option<Article> {
        let number = number_in(path)?;
        if number >= self.published_by(now) {
            return None;
        }
        let article = self.article(number);
        let known = article.path == path || article.short_path.as_deref() == Some(path);
        known.then_some(article)
    }
}

impl Layout {
    fn path(
        self,
        number: u64,
        title: &str,
        section: &str,
        published: Timestamp,
        fate: Fate,
    ) -> String {
        let slug = text::slug(title);
        if fate == Fate::Members {
            return format!("/members/{slug}-{number}");
        }
        match self {
            Self::Dated => {
                let date = published.to_zoned(TimeZone::UTC).date();
                format!(
                    "/{:04}/{:02}/{:02}/{slug}-{number}",
                    date.year(),
                    date.month(),
                    date.day()
                )
            }
            Self::Html => format!("/{section}/{slug}-{number}.html"),
            Self::Query => format!("/story?id={number}"),
            Self::SlugSlash => format!("/p/{slug}-{number}/"),
        }
    }
}

/// The article number that every layout carries: the last digits of the path.
fn number_in(path: &str) -> Option<u64> {
    let end = path.trim_end_matches('/').trim_end_matches(".html");
    let digits = end.len() - end.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    end[end.len() - digits..].parse().ok()
}
