//! The rules of a robots.txt for one product (RFC 9309): tolerant of everything
//! that sites put into one. Pure.

use std::time::Duration;

use tidings_url::FetchUrl;

use super::pattern::{Pattern, normalize};
use crate::limits::MAX_ROBOTS_BYTES;

/// A longer delay would freeze a host; it is clamped, and reported as clamped.
const MAX_CRAWL_DELAY: Duration = Duration::from_secs(60);

/// The rules for one product.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RobotsRules {
    rules: Vec<Rule>,
    crawl_delay: Option<Duration>,
    /// The file wants a longer delay than the maximum.
    pub is_delay_clamped: bool,
    /// Absolute addresses, in the order of the file.
    pub sitemaps: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    allows: bool,
    pattern: Pattern,
    /// As it is written, for messages.
    text: String,
}

/// What the rules say of one URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    /// By this line.
    Disallowed(String),
}

impl RobotsRules {
    /// Reads a file for a product token such as `Tidings`.
    pub fn parse(file: &[u8], product: &str) -> Self {
        let file = &file[..file.len().min(MAX_ROBOTS_BYTES)];
        let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
        let text = String::from_utf8_lossy(file);
        let (mut ours, mut everyones) = (Group::default(), Group::default());
        let mut sitemaps = Vec::new();
        // Who the lines are for, and whether a rule has come since they were named.
        let (mut is_ours, mut is_everyones, mut has_rules) = (false, false, true);
        for line in text.split(['\n', '\r']) {
            let Some((key, value)) = key_and_value(line) else {
                continue;
            };
            match key {
                Key::UserAgent => {
                    if has_rules {
                        (is_ours, is_everyones, has_rules) = (false, false, false);
                    }
                    let token = product_token(value);
                    if token.eq_ignore_ascii_case(product) {
                        is_ours = true;
                        ours.exists = true;
                    } else if value == "*" || value.starts_with("* ") {
                        is_everyones = true;
                    }
                }
                Key::Allow | Key::Disallow => {
                    has_rules = true;
                    let Some(pattern) = Pattern::parse(value) else {
                        continue;
                    };
                    let rule = Rule {
                        allows: key == Key::Allow,
                        pattern,
                        text: line.trim().chars().take(200).collect(),
                    };
                    ours.add(is_ours, &rule);
                    everyones.add(is_everyones, &rule);
                }
                Key::CrawlDelay => {
                    let delay = value.parse().ok().filter(|seconds: &f64| *seconds >= 0.0);
                    ours.set_delay(is_ours, delay);
                    everyones.set_delay(is_everyones, delay);
                }
                Key::Sitemap => sitemaps.push(value.to_owned()),
            }
        }
        let group = if ours.exists { ours } else { everyones };
        let wanted = group
            .delay
            .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        Self {
            rules: group.rules,
            crawl_delay: wanted.map(|delay| delay.min(MAX_CRAWL_DELAY)),
            is_delay_clamped: wanted.is_some_and(|delay| delay > MAX_CRAWL_DELAY),
            sitemaps,
        }
    }

    /// The delay that the site wants between requests.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// The longest rule that matches path and query decides; of two as long, the
    /// one that allows.
    pub fn verdict(&self, url: &FetchUrl) -> Verdict {
        let path = normalize(&url.as_url()[url::Position::BeforePath..url::Position::AfterQuery]);
        if path == "/robots.txt" {
            return Verdict::Allowed;
        }
        let matching = self.rules.iter().filter(|rule| rule.pattern.matches(&path));
        match matching.max_by_key(|rule| (rule.pattern.length(), rule.allows)) {
            Some(rule) if !rule.allows => Verdict::Disallowed(rule.text.clone()),
            _ => Verdict::Allowed,
        }
    }

    /// About how much memory it holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        let rules: usize = self
            .rules
            .iter()
            .map(|rule| 150 + 2 * rule.text.len())
            .sum();
        let sitemaps: usize = self.sitemaps.iter().map(|sitemap| 50 + sitemap.len()).sum();
        200 + rules + sitemaps
    }
}

/// The lines of all groups that are for the same crawlers, put together.
#[derive(Default)]
struct Group {
    exists: bool,
    rules: Vec<Rule>,
    delay: Option<f64>,
}

impl Group {
    fn add(&mut self, is_for_it: bool, rule: &Rule) {
        if is_for_it {
            self.rules.push(rule.clone());
        }
    }

    fn set_delay(&mut self, is_for_it: bool, delay: Option<f64>) {
        if is_for_it && delay.is_some() {
            self.delay = delay;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
}

/// A line without its comment, if its key is known. Common misspellings
/// are accepted.
fn key_and_value(line: &str) -> Option<(Key, &str)> {
    let line = line.split('#').next().unwrap_or_default();
    let line = line.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    let (key, value) = line
        .split_once(':')
        .or_else(|| line.split_once(char::is_whitespace))?;
    let key = match key.trim().to_ascii_lowercase().as_str() {
        "user-agent" | "useragent" | "user agent" => Key::UserAgent,
        "allow" => Key::Allow,
        "disallow" | "dissallow" | "dissalow" | "disalow" | "diasllow" | "disallaw" => {
            Key::Disallow
        }
        "crawl-delay" | "crawldelay" => Key::CrawlDelay,
        "sitemap" | "site-map" => Key::Sitemap,
        _ => return None,
    };
    Some((key, value.trim()))
}

/// The product token of a User-Agent: by it robots.txt addresses a crawler. Behind
/// `compatible;` is the name of one that starts like a browser.
pub(crate) fn product_of(user_agent: &str) -> &str {
    let name = user_agent.split_once("compatible;");
    product_token(name.map_or(user_agent, |(_, name)| name).trim_start())
}

/// `Tidings/1.0 (…)` is known as `Tidings`: letters, `_` and `-` (RFC 9309 §2.2.1).
fn product_token(value: &str) -> &str {
    let ends = |c: char| !(c.is_ascii_alphabetic() || c == '_' || c == '-');
    value.split(ends).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crawler_is_addressed_by_its_product() {
        let rows = [
            ("Tidings/0.1.0 (+https://us.example/)", "Tidings"),
            ("NorthCloud-Crawler/1.0", "NorthCloud-Crawler"),
            (
                "Mozilla/5.0 (compatible; mc_bot/2.0; +https://us.example/)",
                "mc_bot",
            ),
            ("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla"),
        ];
        for (user_agent, product) in rows {
            assert_eq!(product_of(user_agent), product, "{user_agent}");
        }
    }
}
