//! One site of the simulated web: its name, habits and defects, all chosen by
//! the seed. Knows where its articles live; renders and serves nothing.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use tidings_url::FetchUrl;

use crate::fault::FaultRule;
use crate::feed_format::{FeedDefect, FeedFormat};
use crate::rng::Rng;
use crate::schedule::{Rhythm, Schedule};
use crate::text::{self, Language};
use crate::trap::SiteTrap;
use crate::world_config::WorldConfig;

/// A site and its habits.
#[derive(Debug, Clone)]
pub struct Site {
    pub index: u32,
    /// The host name, without the port.
    pub host: String,
    /// The host name as URLs carry it, with the port.
    pub authority: String,
    pub name: String,
    pub language: Language,
    pub feeds: Vec<FeedSpec>,
    pub sitemap: SitemapKind,
    pub robots: RobotsKind,
    pub template: Template,
    /// Whether feeds and pages carry ETag and Last-Modified.
    pub has_validators: bool,
    /// Whether bodies are gzipped for clients that accept it.
    pub compresses: bool,
    /// Whether links in feeds carry tracking parameters.
    pub tags_links: bool,
    /// Milliseconds before a response: at least, and at most that much more.
    pub latency_ms: (u64, u64),
    pub faults: Vec<FaultRule>,
    /// Pages without end beside its articles.
    pub trap: Option<SiteTrap>,
    pub(crate) is_for_readers: bool,
    pub(crate) crawl_delay: Duration,
    pub(crate) layout: Layout,
    pub(crate) schedule: Schedule,
    pub(crate) seed: u64,
    pub(crate) has_plain_fates: bool,
    pub(crate) page_bytes: usize,
}

/// One feed of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FeedSpec {
    pub path: String,
    pub format: FeedFormat,
    /// How many of the newest articles it lists.
    pub window: u64,
    pub full_text: bool,
    pub defect: Option<FeedDefect>,
}

/// How a site lists its pages for crawlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SitemapKind {
    None,
    /// `/sitemap.xml` with everything.
    Single,
    /// `/sitemap_index.xml` over numbered files, and a news sitemap.
    Index,
    /// The same, with gzipped files.
    GzipIndex,
    /// `/sitemap.txt`, one address per line.
    Text,
}

/// How a site responds to `/robots.txt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RobotsKind {
    /// 404: everything is allowed.
    Absent,
    /// Allows all but the members' pages, and names the sitemap.
    Usual,
    /// The same, with a Crawl-delay.
    CrawlDelay,
}

/// How the pages of a site describe themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Template {
    /// JSON-LD `NewsArticle` inside an `@graph`, and Open Graph.
    JsonLdGraph,
    OpenGraph,
    Microdata,
    /// A heading and paragraphs; nothing for machines.
    Plain,
}

/// The shape of a site's article addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Dated,
    Html,
    Query,
    SlugSlash,
}

impl Site {
    pub(crate) fn of(config: &WorldConfig, index: u32, port: u16) -> Self {
        let host = host_name(config.seed, index);
        let mut rng = Rng::of(config.seed, "site", u64::from(index));
        let language = *rng.pick(&[
            Language::En,
            Language::En,
            Language::En,
            Language::De,
            Language::Fr,
            Language::Es,
        ]);
        let per_day = *rng.pick(&[0.5, 2.0, 6.0, 12.0, 30.0, 80.0]) * config.pace;
        let origin = config.start.as_second()
            - (f64::from(config.articles_per_site) * 86_400.0 / per_day) as i64;
        let rhythm = *rng.pick(&[
            Rhythm::Steady,
            Rhythm::Daytime,
            Rhythm::Daytime,
            Rhythm::Hourly,
        ]);
        let site = Self {
            index,
            authority: format!("{host}:{port}"),
            name: display_name(&host),
            host,
            language,
            feeds: feeds(&mut rng, config),
            sitemap: *rng.pick(&[
                SitemapKind::None,
                SitemapKind::Single,
                SitemapKind::Index,
                SitemapKind::GzipIndex,
                SitemapKind::Text,
            ]),
            robots: *rng.pick(&[
                RobotsKind::Absent,
                RobotsKind::Usual,
                RobotsKind::Usual,
                RobotsKind::Usual,
                RobotsKind::CrawlDelay,
            ]),
            template: *rng.pick(&[
                Template::JsonLdGraph,
                Template::OpenGraph,
                Template::Microdata,
                Template::Plain,
            ]),
            has_validators: rng.random_bool(75),
            compresses: rng.random_bool(60),
            tags_links: rng.random_bool(25),
            latency_ms: latency(&mut rng, config.latency),
            faults: faults(&mut rng, config, index),
            trap: config.traps.get(&index).copied(),
            is_for_readers: config.without_feeds,
            crawl_delay: config.crawl_delay,
            layout: *rng.pick(&[
                Layout::Dated,
                Layout::Html,
                Layout::Query,
                Layout::SlugSlash,
            ]),
            schedule: Schedule {
                rhythm,
                per_day,
                origin,
                seed: config.seed,
                site: u64::from(index),
            },
            seed: config.seed,
            has_plain_fates: config.plain_fates,
            page_bytes: config.page_bytes,
        };
        match config.without_feeds {
            false => site,
            true => Self {
                feeds: Vec::new(),
                sitemap: SitemapKind::None,
                ..site
            },
        }
    }

    /// The Crawl-delay of its robots.txt, if it has one.
    pub fn crawl_delay(&self) -> Option<Duration> {
        (self.robots == RobotsKind::CrawlDelay).then_some(self.crawl_delay)
    }

    /// The address of the home page.
    pub fn home(&self) -> String {
        self.absolute("/")
    }

    pub fn absolute(&self, path: &str) -> String {
        format!("http://{}{path}", self.authority)
    }

    /// A path of this site as the pipeline knows it.
    pub fn url(&self, path: &str) -> FetchUrl {
        // Names and paths are made of ASCII words, so this always parses.
        FetchUrl::parse(&self.absolute(path)).expect("simulated addresses are valid URLs")
    }

    /// How many articles exist at `now`; their numbers are `0..count`.
    pub fn published_by(&self, now: Timestamp) -> u64 {
        self.schedule.count_by(now)
    }
}

/// A readable host name that carries its index: `amber-courier-17.localhost`.
/// Browsers and resolvers send every name under `localhost` to this machine
/// (RFC 6761), so any site opens in a browser without set-up.
pub(crate) fn host_name(seed: u64, index: u32) -> String {
    let mut rng = Rng::of(seed, "name", u64::from(index));
    let (first, last) = (rng.pick(text::FIRST_NAMES), rng.pick(text::LAST_NAMES));
    format!("{first}-{last}-{index}.localhost")
}

/// The index in a host name; whether the site exists is for the world to say.
pub(crate) fn index_in(host: &str) -> Option<u32> {
    host.strip_suffix(".localhost")?
        .rsplit('-')
        .next()?
        .parse()
        .ok()
}

fn display_name(host: &str) -> String {
    let mut words = host.split('-').take(2).map(text::capitalised);
    format!(
        "{} {}",
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default()
    )
}

fn feeds(rng: &mut Rng, config: &WorldConfig) -> Vec<FeedSpec> {
    let count = *rng.pick(&[1, 1, 1, 2]);
    let mut feeds = Vec::new();
    for nth in 0..count {
        let format = *rng.pick(FeedFormat::ALL);
        let path = match (nth, format) {
            (0, FeedFormat::Atom1 | FeedFormat::Atom03) => "/atom.xml",
            (0, FeedFormat::Json1 | FeedFormat::Json11) => "/feed.json",
            (0, _) => *rng.pick(&["/feed", "/rss.xml", "/feed.xml"]),
            _ => "/feeds/all.xml",
        };
        let defect = *rng.pick(FeedDefect::ALL);
        let broken = rng.below(100) < u64::from(config.defect_percent);
        feeds.push(FeedSpec {
            path: path.to_owned(),
            format,
            window: config
                .feed_window
                .unwrap_or(*rng.pick(&[10, 20, 30, 50, 100])),
            full_text: rng.random_bool(40),
            defect: (broken && defect.fits(format)).then_some(defect),
        });
    }
    feeds
}

fn latency(rng: &mut Rng, wanted: bool) -> (u64, u64) {
    let chosen = *rng.pick(&[(2, 5), (5, 20), (20, 60), (80, 200)]);
    if wanted { chosen } else { (0, 0) }
}

fn faults(rng: &mut Rng, config: &WorldConfig, index: u32) -> Vec<FaultRule> {
    let scripted = config.scripts.get(&index).cloned().unwrap_or_default();
    let rule = FaultRule::passing(rng);
    let is_faulty = rng.below(100) < u64::from(config.fault_percent);
    scripted
        .into_iter()
        .chain(is_faulty.then_some(rule))
        .collect()
}
