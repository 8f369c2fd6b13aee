//! Generated feeds: newsrooms and small sites in different shares, with days, weeks,
//! bursts, batches, deaths and changes. The policies know none of this.

use crate::simulate::rng::Rng;
use crate::simulate::world::{Feed, World};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// A Monday at midnight: 2026-01-05.
const START: i64 = 1_767_571_200_000;
/// How far back documents reach, in days.
const HISTORY: i64 = 180;

/// The populations that can be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Population {
    /// Two newsrooms in five feeds, the rest small sites.
    Mixed,
    /// Hardly any newsrooms.
    SmallWeb,
    /// Nearly only newsrooms.
    AllNews,
    /// Mixed, and most items come in bursts.
    Bursty,
    /// Mixed, and feeds change their rate every week or two.
    Changing,
    /// Mixed, and half of the feeds are or fall silent.
    Dying,
}

/// What a population is made of. Shares are in 0..1.
#[derive(Debug, Clone, Copy)]
pub struct Recipe {
    pub newsrooms: f64,
    /// Feeds that publish in batches at fixed times.
    pub batches: f64,
    /// Feeds that stop, before or during the time that is played.
    pub deaths: f64,
    /// Items that start a burst, and how many follow on average.
    pub bursts: f64,
    pub followers: f64,
    /// Mean days between changes of the rate; 0 for none.
    pub change_days: f64,
}

impl Population {
    pub const ALL: [Self; 6] = [
        Self::Mixed,
        Self::SmallWeb,
        Self::AllNews,
        Self::Bursty,
        Self::Changing,
        Self::Dying,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::SmallWeb => "small-web",
            Self::AllNews => "all-news",
            Self::Bursty => "bursty",
            Self::Changing => "changing",
            Self::Dying => "dying",
        }
    }

    pub fn recipe(self) -> Recipe {
        let mixed = Recipe {
            newsrooms: 0.4,
            batches: 0.1,
            deaths: 0.05,
            bursts: 0.1,
            followers: 2.0,
            change_days: 0.0,
        };
        match self {
            Self::Mixed => mixed,
            Self::SmallWeb => Recipe {
                newsrooms: 0.03,
                ..mixed
            },
            Self::AllNews => Recipe {
                newsrooms: 0.93,
                ..mixed
            },
            Self::Bursty => Recipe {
                bursts: 0.4,
                followers: 5.0,
                ..mixed
            },
            Self::Changing => Recipe {
                change_days: 10.0,
                ..mixed
            },
            Self::Dying => Recipe {
                deaths: 0.5,
                ..mixed
            },
        }
    }

    /// The world of a seed: a number of feeds, simulated for a number of days.
    pub fn world(self, feeds: u32, days: u32, seed: u64) -> World {
        let end = START + i64::from(days) * DAY;
        let recipe = self.recipe();
        let feeds = (0..i64::from(feeds)).map(|id| feed(id, &recipe, end, seed));
        World::new(self.name(), feeds.collect(), START, end)
    }
}

/// How one feed publishes.
struct Profile {
    /// Items per day on an ordinary weekday.
    per_day: f64,
    /// How much busier its busiest hour is than its mean hour, less one.
    swing: f64,
    /// Its busiest hour, UTC.
    peak: f64,
    weekend: f64,
    /// When it stops, in milliseconds since 1970.
    death: i64,
    /// Batches per day, and their minute; 0 for items one by one.
    batches: i64,
    minute: i64,
}

fn feed(id: i64, recipe: &Recipe, end: i64, seed: u64) -> Feed {
    let mut rng = Rng::of(seed, "feed", id as u64);
    let begin = START - HISTORY * DAY;
    // Every share of the feeds in a row, so that small populations have it too.
    let before = |id: i64| (id as f64 * recipe.newsrooms + 0.5) as i64;
    let is_newsroom = before(id + 1) > before(id);
    let per_day = if is_newsroom {
        rng.lognormal(25.0, 1.0).min(400.0)
    } else {
        rng.lognormal(0.2, 1.5).min(20.0)
    };
    let peak = rng.pick(&[1.0, 5.0, 8.0, 13.0, 14.0, 15.0, 19.0, 22.0]);
    let mut profile = Profile {
        per_day,
        swing: if is_newsroom { 0.8 } else { 0.6 } * rng.fraction().sqrt(),
        peak: peak + 2.0 * rng.normal(),
        weekend: 0.3 + 0.7 * rng.fraction(),
        death: i64::MAX,
        batches: 0,
        minute: (rng.fraction() * 60.0) as i64,
    };
    if rng.bernoulli(recipe.deaths) {
        let span = (end - begin) as f64;
        profile.death = begin + (rng.fraction() * span) as i64;
    }
    if rng.bernoulli(recipe.batches) {
        profile.batches = rng.pick(&[1, 2, 4, 24]);
    }
    let mut window = rng.pick(&[10, 10, 15, 20, 20, 25, 30, 50, 100]);
    if profile.batches > 0 {
        // Whoever publishes a batch makes room for it.
        let batch = per_day / profile.batches as f64;
        window = window.max((2.0 * batch) as usize);
    }
    let mut published = publish(&profile, recipe, begin, end, &mut rng);
    published.sort_unstable();
    // What no document shows any more is only weight.
    let old = published.partition_point(|at| *at < START);
    published.drain(..old.saturating_sub(window));
    Feed::new(id, window, published)
}

fn publish(profile: &Profile, recipe: &Recipe, begin: i64, end: i64, rng: &mut Rng) -> Vec<i64> {
    let mut published = Vec::new();
    let mut pace = 1.0;
    for hour in 0..(end - begin) / HOUR {
        let at = begin + hour * HOUR;
        if at >= profile.death {
            break;
        }
        if recipe.change_days > 0.0 && rng.bernoulli(1.0 / 24.0 / recipe.change_days) {
            pace = rng.lognormal(1.0, 1.5).min(30.0);
        }
        // 1970 began on a Thursday, so day 2 was the first Saturday.
        let day = (at / DAY + 3) % 7;
        let week = if day >= 5 { profile.weekend } else { 1.0 };
        let per_day = (profile.per_day * pace * week).min(400.0);
        let hour_of_day = (at / HOUR % 24) as f64;
        if profile.batches > 0 {
            let every = 24 / profile.batches;
            if (hour_of_day as i64 + profile.peak as i64).rem_euclid(every) == 0 {
                let items = rng.poisson(per_day / profile.batches as f64);
                let minute = at + profile.minute * 60_000;
                published.extend((0..items).map(|item| minute + item as i64 * 1000));
            }
            continue;
        }
        let angle = std::f64::consts::TAU * (hour_of_day - profile.peak) / 24.0;
        let mean = per_day / 24.0 * (1.0 + profile.swing * angle.cos());
        // Bursts bring the same items together, not more of them.
        let alone = mean / (1.0 + recipe.bursts * recipe.followers);
        for _ in 0..rng.poisson(alone) {
            let mut moment = at + (rng.fraction() * HOUR as f64) as i64;
            published.push(moment);
            if rng.bernoulli(recipe.bursts) {
                for _ in 0..rng.geometric(recipe.followers) {
                    moment += rng.wait(12.0 * 60_000.0) as i64;
                    published.push(moment);
                }
            }
        }
    }
    published.retain(|at| *at < end);
    published
}
