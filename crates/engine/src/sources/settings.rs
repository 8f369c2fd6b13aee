//! The settings of a source beyond name and URL, as the store holds them in JSON.
//! Pure: parsed at the edge, and an error names the field that is wrong.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use thiserror::Error;
use tidings_adapters::{SourceAdapter, adapter, adapters, strip_configuration_only};
use tidings_document::License;
use tidings_polling::Policy;
use tidings_spider::ArticlePatterns;
use tidings_store::{Origin, Source, Target};
use tidings_url::{FetchUrl, ProxyHosts, Rules};

use super::presets::{Preset, expanded};
use super::selectors::SelectorSettings;
use crate::politeness::Politeness;

/// Valid values of `rate_limit`, in requests per second.
const RATE_LIMITS: std::ops::RangeInclusive<f64> = 0.001..=100.0;

/// The highest `max_depth`, in clicks from the home page.
const MAX_DEPTH: u16 = 10;

/// Valid values of `retries`.
const MAX_RETRIES: u16 = 50;
const FIRST_RETRY_SECONDS: std::ops::RangeInclusive<u32> = 1..=7 * 86_400;

/// The parameter of a URL that names an item which has no link of its own: the feed
/// and the item are its identity. It is never requested.
pub(crate) const ITEM_PARAM: &str = "tidings-item";

/// The kind of sources without an adapter: with feeds, sitemaps or neither.
const FEED: &str = "feed";
/// The kind of a feed that is not found yet: its URL is the site's.
pub(crate) const SITE: &str = "site";
/// The kind of a page that lists articles, which the spider visits.
pub(crate) const LISTING: &str = "listing";

fn is_feed(kind: &str) -> bool {
    kind == FEED
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// An invalid setting.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("source {name:?}: {why}")]
pub struct SettingsError {
    name: String,
    why: String,
}

impl SettingsError {
    pub(crate) fn new(name: &str, why: &str) -> Self {
        Self {
            name: name.to_owned(),
            why: why.to_owned(),
        }
    }

    /// The reason, without the name of the source.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }
}

/// How the articles of a source are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IngestionMode {
    Feed,
    Spider,
    Both,
}

/// By which policy its feed is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PollPolicy {
    Fixed,
    Doubling,
    #[default]
    Adaptive,
}

/// What happens to the entries of a sitemap that have no date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undated {
    #[default]
    Take,
    Skip,
}

/// How often a page is retried after an error of its site, and after which time
/// first; each retry waits twice as long as the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retries {
    pub max: u16,
    pub first_seconds: u32,
}

/// All settings of a source; a missing one has its default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SourceSettings {
    /// The earlier system as which it behaves; what is set here wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// `feed`, or the name of an adapter.
    #[serde(skip_serializing_if = "is_feed")]
    pub kind: String,
    /// The configuration of the adapter, by its schema.
    #[serde(skip_serializing_if = "Json::is_null")]
    pub config: Json,
    /// Items become documents with the text that they bring; no page is fetched.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub as_documents: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed_url: Option<FetchUrl>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sitemap_url: Option<FetchUrl>,
    /// Default: by its feed when one is known, else by its pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingestion_mode: Option<IngestionMode>,
    /// Regular expressions of article URLs; when set, they alone decide.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub article_url_patterns: Vec<String>,
    /// Clicks from the home page to the last page that lists articles.
    pub max_depth: u16,
    /// Maximum visits of listing pages per day, all listings together.
    pub pages_per_day: u32,
    /// Maximum articles of other sites per day that the home page may add.
    #[serde(skip_serializing_if = "is_zero")]
    pub external_per_day: u32,
    /// New URLs per day; the rest waits for the next day. Default: as configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_new_urls_per_day: Option<u32>,
    pub poll_policy: PollPolicy,
    pub feed_poll_interval_minutes: u32,
    /// The feed is fetched whatever robots.txt says; pages never are.
    pub feed_ignores_robots: bool,
    /// Articles with the same title within a week are one: for aggregators.
    pub title_week: bool,
    /// An item with a known guid and a new URL is the same item. Default: yes, unless
    /// the guids of the feed repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guid_is_identity: Option<bool>,
    pub sitemap_interval_hours: u32,
    /// Entries that changed longer ago are ignored.
    pub sitemap_within_hours: u32,
    pub sitemap_undated: Undated,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// All its documents are important.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub important: bool,
    /// Documents with one of these tags are important.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub important_tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<License>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strip_params: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keep_params: Vec<String>,
    pub keep_trailing_slash: bool,
    /// Maximum requests per second to its host; robots.txt may lower it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<f64>,
    /// Pages are fetched again to detect changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recrawl: Option<Recrawl>,
    /// Of pages that fail. Default: 5 retries, from a minute to six hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    #[serde(skip_serializing_if = "SelectorSettings::is_empty")]
    pub selectors: SelectorSettings,
}

/// Bounds of the interval between two fetches of a page; within them it adapts to
/// how often the page changes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recrawl {
    pub min_hours: f64,
    pub max_hours: f64,
}

impl Recrawl {
    pub(crate) fn bounds(self) -> (Duration, Duration) {
        let hours = |hours: f64| Duration::from_secs_f64(hours * 3600.0);
        (hours(self.min_hours), hours(self.max_hours))
    }
}

impl Default for SourceSettings {
    fn default() -> Self {
        Self {
            preset: None,
            kind: FEED.to_owned(),
            config: Json::Null,
            as_documents: false,
            feed_url: None,
            sitemap_url: None,
            ingestion_mode: None,
            article_url_patterns: Vec::new(),
            max_depth: 2,
            pages_per_day: 500,
            external_per_day: 0,
            max_new_urls_per_day: None,
            poll_policy: PollPolicy::default(),
            feed_poll_interval_minutes: 15,
            feed_ignores_robots: false,
            title_week: false,
            guid_is_identity: None,
            sitemap_interval_hours: 6,
            sitemap_within_hours: 48,
            sitemap_undated: Undated::Take,
            tags: Vec::new(),
            important: false,
            important_tags: Vec::new(),
            license: None,
            content_type: None,
            user_agent: None,
            strip_params: Vec::new(),
            keep_params: Vec::new(),
            keep_trailing_slash: false,
            rate_limit: None,
            recrawl: None,
            retries: None,
            selectors: SelectorSettings::default(),
        }
    }
}

impl SourceSettings {
    /// The settings of a stored source. What only the configuration file may set is
    /// ignored: older versions stored it.
    pub fn of(source: &Source) -> Result<Self, SettingsError> {
        let mut settings = source.config.clone();
        settings.get_mut("config").map(strip_configuration_only);
        Self::parse(&source.name, &settings)
    }

    /// Whether a stored source has settings that only the configuration file may
    /// set, and that are ignored.
    pub fn has_ignored(source: &Source) -> bool {
        let mut config = source.config.get("config").cloned();
        config.as_mut().is_some_and(strip_configuration_only)
    }

    /// Parses settings; `name` is for the message.
    pub fn parse(name: &str, config: &Json) -> Result<Self, SettingsError> {
        let invalid = |why: String| SettingsError {
            name: name.to_owned(),
            why,
        };
        let settings: Self = serde_json::from_value(expanded(&renamed(config)))
            .map_err(|error| invalid(error.to_string()))?;
        settings.check_adapter().map_err(invalid)?;
        let minutes = settings.feed_poll_interval_minutes;
        if !(1..=60 * 24 * 7).contains(&minutes) {
            return Err(invalid(format!(
                "feed_poll_interval_minutes is {minutes}; valid: from 1 to 10080 (a week)"
            )));
        }
        if settings.sitemap_interval_hours == 0 {
            return Err(invalid(
                "sitemap_interval_hours is 0; valid: at least 1".to_owned(),
            ));
        }
        if let Some(rate) = settings.rate_limit
            && !(RATE_LIMITS.contains(&rate))
        {
            return Err(invalid(format!(
                "rate_limit is {rate} requests per second; valid: from {} to {}",
                RATE_LIMITS.start(),
                RATE_LIMITS.end()
            )));
        }
        if let Some(Recrawl {
            min_hours,
            max_hours,
        }) = settings.recrawl
            && !(min_hours >= 0.01 && min_hours <= max_hours && max_hours <= 24.0 * 365.0)
        {
            return Err(invalid(format!(
                "recrawl is from {min_hours} to {max_hours} hours; valid: from 0.01 to 8760, the lower first"
            )));
        }
        if let Some(Retries { max, first_seconds }) = settings.retries
            && (max > MAX_RETRIES || !FIRST_RETRY_SECONDS.contains(&first_seconds))
        {
            return Err(invalid(format!(
                "retries is {max}, the first after {first_seconds} seconds; valid: max from 0 to {MAX_RETRIES}, first_seconds from {} to {}",
                FIRST_RETRY_SECONDS.start(),
                FIRST_RETRY_SECONDS.end()
            )));
        }
        if settings.max_depth > MAX_DEPTH {
            let depth = settings.max_depth;
            return Err(invalid(format!(
                "max_depth is {depth}; valid: from 0 to {MAX_DEPTH}"
            )));
        }
        if settings.pages_per_day == 0 {
            return Err(invalid("pages_per_day is 0; valid: at least 1".to_owned()));
        }
        ArticlePatterns::parse(&settings.article_url_patterns)
            .map_err(|error| invalid(format!("article_url_patterns: {error}")))?;
        settings.selectors.parsed().map_err(invalid)?;
        Ok(settings)
    }

    /// The adapter of its service; `None` for feeds.
    pub(crate) fn adapter(&self) -> Option<&'static dyn SourceAdapter> {
        adapter(&self.kind)
    }

    fn check_adapter(&self) -> Result<(), String> {
        match self.adapter() {
            Some(adapter) => adapter.validate(&self.config).map_err(|e| e.to_string()),
            None if self.kind != FEED => {
                let kinds: Vec<_> = adapters().iter().map(|known| known.kind()).collect();
                let (kind, kinds) = (&self.kind, kinds.join(", "));
                Err(format!("kind is {kind:?}; valid: feed, {kinds}"))
            }
            None if !self.config.is_null() => {
                Err("config is for adapters, but the kind is feed".to_owned())
            }
            None => Ok(()),
        }
    }

    /// As they are stored: what the preset sets is left to it.
    pub fn to_json(&self) -> Json {
        // Strings, numbers and lists only: there is nothing that could fail.
        let mut settings = serde_json::to_value(self).unwrap_or_default();
        let preset = self.preset.map(Preset::settings).unwrap_or_default();
        if let Some(settings) = settings.as_object_mut() {
            for (key, value) in preset {
                // What is left out would be the preset's.
                let unset = match value {
                    Json::Bool(_) => Json::Bool(false),
                    _ => Json::Null,
                };
                if *settings.entry(key.as_str()).or_insert(unset) == value {
                    settings.remove(&key);
                }
            }
        }
        settings
    }

    /// How its articles are found.
    pub fn mode(&self) -> IngestionMode {
        let has_feed = self.feed_url.is_some() || self.sitemap_url.is_some();
        self.ingestion_mode.unwrap_or(match has_feed {
            true => IngestionMode::Feed,
            false => IngestionMode::Spider,
        })
    }

    /// Whether a feed of this kind is polled for it.
    pub(crate) fn wants(&self, kind: &str) -> bool {
        match kind {
            LISTING => self.mode() != IngestionMode::Feed,
            FEED | "sitemap" | SITE => self.ingestion_mode != Some(IngestionMode::Spider),
            _ => true,
        }
    }

    pub(crate) fn patterns(&self) -> ArticlePatterns {
        // They were parsed when the settings were.
        ArticlePatterns::parse(&self.article_url_patterns).unwrap_or_default()
    }

    pub(crate) fn interval(&self) -> Policy {
        Policy::Fixed {
            every: Duration::from_secs(u64::from(self.feed_poll_interval_minutes) * 60),
        }
    }

    pub(crate) fn policy(&self) -> Policy {
        match self.poll_policy {
            PollPolicy::Fixed => self.interval(),
            PollPolicy::Doubling => Policy::Doubling,
            PollPolicy::Adaptive => Policy::Adaptive,
        }
    }

    /// Whether a guid of its feed says which item it is. By default small numbers,
    /// which may be positions in the feed, don't.
    pub(crate) fn identifies(&self, guid: &str) -> bool {
        let is_position = guid.len() <= 3 && guid.bytes().all(|byte| byte.is_ascii_digit());
        self.guid_is_identity.unwrap_or(!is_position)
    }

    pub(crate) fn politeness(&self) -> Politeness {
        Politeness {
            ignores_robots: false,
            gap: self
                .rate_limit
                .map(|rate| Duration::from_secs_f64(rate.recip())),
        }
    }

    pub(crate) fn feed_politeness(&self) -> Politeness {
        Politeness {
            ignores_robots: self.feed_ignores_robots,
            ..self.politeness()
        }
    }

    pub(crate) fn rules(&self) -> Rules {
        Rules {
            strip_params: self.strip_params.clone(),
            keep_params: self
                .keep_params
                .iter()
                .cloned()
                .chain([ITEM_PARAM.to_owned()])
                .collect(),
            keep_trailing_slash: self.keep_trailing_slash,
        }
    }
}

/// Settings that an earlier version wrote, under their names of today.
fn renamed(config: &Json) -> Json {
    const OLD: &str = "sitemap_takes_undated";
    let mut config = config.clone();
    if let Some(fields) = config.as_object_mut()
        && let Some(is_taken) = fields.get(OLD).and_then(Json::as_bool)
    {
        fields.remove(OLD);
        let undated = if is_taken { "take" } else { "skip" };
        fields
            .entry("sitemap_undated")
            .or_insert_with(|| undated.into());
    }
    config
}

/// The identity of a URL under the rules of its source.
pub(crate) fn target(url: FetchUrl, rules: &Rules, proxies: &ProxyHosts) -> Target {
    Target {
        key: url.canonical(rules).key(),
        host: url.host_key(proxies),
        url,
    }
}

/// The priority of a URL: what a publisher announces comes first, what was found
/// deep in a site last.
pub(crate) fn priority(source: u8, origin: Origin, depth: u16) -> u8 {
    let bonus = match origin {
        Origin::Feed => 2,
        Origin::Sitemap => 1,
        Origin::Spider | Origin::Manual | Origin::Api | Origin::Agent => 0,
    };
    let depth = if origin == Origin::Spider {
        i32::from(depth)
    } else {
        0
    };
    (i32::from(source) + bonus - depth).clamp(1, 10) as u8
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn priorities_follow_origin_and_depth() {
        let rows = [
            (5, Origin::Feed, 0, 7),
            (5, Origin::Sitemap, 0, 6),
            (5, Origin::Manual, 3, 5),
            (5, Origin::Spider, 2, 3),
            (9, Origin::Feed, 0, 10),
            (1, Origin::Spider, 9, 1),
        ];
        for (base, origin, depth, expected) in rows {
            assert_eq!(priority(base, origin, depth), expected, "{origin} {base}");
        }
    }

    #[test]
    fn an_invalid_setting_is_named() {
        let rows = [
            (json!({ "feed_ulr": "x" }), "unknown field `feed_ulr`"),
            (json!({ "kind": "newspi" }), "valid: feed, newsapi"),
            (json!({ "config": { "q": "x" } }), "config is for adapters"),
            (
                json!({ "kind": "newsapi", "config": { "qq": "x" } }),
                "config.qq: is unknown",
            ),
            (json!({ "feed_url": "ftp://a.example/" }), "ftp"),
            (json!({ "poll_policy": "often" }), "unknown variant `often`"),
            (
                json!({ "feed_poll_interval_minutes": 0 }),
                "from 1 to 10080",
            ),
            (json!({ "sitemap_interval_hours": 0 }), "at least 1"),
            (json!({ "max_depth": 11 }), "from 0 to 10"),
            (json!({ "pages_per_day": 0 }), "at least 1"),
            (
                json!({ "article_url_patterns": ["/("] }),
                "article_url_patterns: \"/(\" is not a valid regular expression: unclosed group",
            ),
            (json!({ "rate_limit": 0 }), "from 0.001 to 100"),
            (
                json!({ "recrawl": { "min_hours": 5, "max_hours": 1 } }),
                "the lower first",
            ),
            (json!({ "preset": "sember" }), "unknown variant `sember`"),
            (json!({ "sitemap_undated": "x" }), "unknown variant `x`"),
            (
                json!({ "retries": { "max": 51, "first_seconds": 1 } }),
                "max from 0 to 50",
            ),
            (
                json!({ "retries": { "max": 1, "first_seconds": 0 } }),
                "first_seconds from 1",
            ),
            (
                json!({ "selectors": { "article": { "title": "h1[" } } }),
                "selectors.article.title: \"h1[\" is not a valid selector at column 4",
            ),
        ];
        for (config, message) in rows {
            let error = SourceSettings::parse("paper", &config)
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("source \"paper\": ") && error.contains(message),
                "{error}"
            );
        }
    }

    #[test]
    fn settings_survive_the_store() {
        let settings = SourceSettings {
            feed_url: Some("https://a.example/feed".parse().unwrap()),
            poll_policy: PollPolicy::Fixed,
            tags: vec!["a".to_owned()],
            ..SourceSettings::default()
        };
        assert_eq!(
            SourceSettings::parse("a", &settings.to_json()),
            Ok(settings)
        );
        assert_eq!(
            SourceSettings::parse("a", &json!({})),
            Ok(SourceSettings::default())
        );
    }

    #[test]
    fn a_preset_survives_the_store_and_is_not_written_out() {
        for preset in Preset::ALL {
            let config = json!({ "preset": preset.as_str(), "max_depth": 3 });
            let settings = SourceSettings::parse("a", &config).unwrap();
            assert_eq!(settings.preset, Some(preset));
            let stored = settings.to_json();
            assert_eq!(stored["preset"], preset.as_str());
            assert_eq!(stored.get("poll_policy"), None, "{stored}");
            assert_eq!(SourceSettings::parse("a", &stored), Ok(settings));
        }
        let own = json!({ "preset": "sembr", "poll_policy": "adaptive", "as_documents": false });
        let settings = SourceSettings::parse("a", &own).unwrap();
        assert_eq!(settings.poll_policy, PollPolicy::Adaptive);
        assert_eq!(settings.feed_poll_interval_minutes, 30);
        let again = SourceSettings::parse("a", &settings.to_json()).unwrap();
        assert_eq!(again, settings);
    }

    #[test]
    fn each_preset_has_the_settings_of_its_system() {
        let rows = [
            (
                "media-cloud",
                PollPolicy::Doubling,
                None,
                Some((4, 3600)),
                false,
            ),
            (
                "north-cloud",
                PollPolicy::Fixed,
                Some(15),
                Some((2, 60)),
                false,
            ),
            ("sembr", PollPolicy::Fixed, Some(30), None, true),
            (
                "collection",
                PollPolicy::Fixed,
                Some(360),
                Some((3, 1)),
                true,
            ),
        ];
        for (preset, policy, minutes, retries, as_documents) in rows {
            let settings = SourceSettings::parse("a", &json!({ "preset": preset })).unwrap();
            assert_eq!(settings.poll_policy, policy, "{preset}");
            let interval = minutes.unwrap_or(settings.feed_poll_interval_minutes);
            assert_eq!(settings.feed_poll_interval_minutes, interval, "{preset}");
            let found = settings.retries.map(|of| (of.max, of.first_seconds));
            assert_eq!(found, retries, "{preset}");
            assert_eq!(settings.as_documents, as_documents, "{preset}");
            let by_title_and_guid = preset == "media-cloud";
            assert_eq!(settings.title_week, by_title_and_guid, "{preset}");
            assert_eq!(
                settings.guid_is_identity,
                Some(by_title_and_guid),
                "{preset}"
            );
        }
        let north = SourceSettings::parse("a", &json!({ "preset": "north-cloud" })).unwrap();
        assert_eq!(
            (north.sitemap_interval_hours, north.sitemap_within_hours),
            (6, 48)
        );
        assert_eq!(north.sitemap_undated, Undated::Skip);
    }

    #[test]
    fn settings_of_an_earlier_version_are_read() {
        let rows = [(true, Undated::Take), (false, Undated::Skip)];
        for (is_taken, expected) in rows {
            let config = json!({ "sitemap_takes_undated": is_taken });
            let settings = SourceSettings::parse("a", &config).unwrap();
            assert_eq!(settings.sitemap_undated, expected);
        }
    }
}
