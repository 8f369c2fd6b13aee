//! One article of one site: its address, its text and its fate, all of which
//! follow from the seed. This is the ground truth that tests compare with.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::dice::Dice;
use crate::prose;
use crate::site::Site;

/// What happens to someone who follows the announced link.
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
    text: Dice,
}

impl Article {
    pub(crate) fn of(site: &Site, number: u64) -> Self {
        let mut dice = Dice::of(site.seed, "article", u64::from(site.index) << 40 | number);
        let title = prose::headline(&mut dice, site.language);
        let section = *dice.pick(prose::SECTIONS);
        let published = site.schedule.published_at(number);
        let fate = if site.has_plain_fates {
            Fate::Page
        } else {
            fate(&mut dice)
        };
        let authors = (0..dice.between(1, 2))
            .map(|_| prose::author(&mut dice))
            .collect();
        let edited = dice
            .chance(10)
            .then(|| published + SignedDuration::from_mins(dice.between(20, 600) as i64));
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
            text: dice,
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
        let mut dice = self.text.clone();
        let count = dice.between(4, 12);
        let mut paragraphs: Vec<_> = (0..count)
            .map(|_| prose::paragraph(&mut dice, site.language))
            .collect();
        if self.changed(now) > self.published {
            paragraphs.push(format!("+++ {}", prose::sentence(&mut dice, site.language)));
        }
        paragraphs
    }

    /// What feeds carry when they do not carry the whole text.
    pub fn summary(&self, site: &Site) -> String {
        let first = self.paragraphs(site, self.published).into_iter().next();
        first.unwrap_or_default()
    }
}

fn fate(dice: &mut Dice) -> Fate {
    match dice.below(100) {
        0..=2 => Fate::Missing,
        3..=6 => Fate::Members,
        7..=11 => Fate::Moved,
        _ => Fate::Page,
    }
}
