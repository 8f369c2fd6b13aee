//! The sitemaps of an index: which are kept, which are due, which make room. An index
//! may list anything, so what a source may have is bounded, and what is left out is
//! counted.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use tidings_feed::sitemap::Sitemap;
use tidings_store::{Feed, Moment, Result, Store};
use tidings_url::FetchUrl;

use super::feed_state::FeedState;
use super::poll_error::RETIRED;
use super::sitemap::is_news;

/// Levels of nested indexes that are followed.
const MAX_DEPTH: usize = 3;

/// Sitemaps of one index that are kept: news, then the newest.
const MAX_OF_INDEX: usize = 1000;

/// Sitemaps below the indexes of one source.
const MAX_OF_SOURCE: usize = 5000;

const WEEK_MS: i64 = 7 * 86_400_000;

/// What becomes of the sitemaps of an index.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// New ones with their state, the most urgent first.
    add: Vec<(String, String)>,
    /// Known ones that are due now, and those that are due after them.
    due_first: Vec<i64>,
    due_next: Vec<i64>,
    /// Retired ones that make room for new ones.
    remove: Vec<i64>,
    left_out: LeftOut,
}

/// How many sitemaps of an index are not polled, by reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    listed: usize,
    elsewhere: usize,
    beyond_index: usize,
    beyond_source: usize,
}

impl LeftOut {
    /// For the operator, if anything was left out.
    pub(super) fn reason(&self) -> Option<String> {
        let rows = [
            (self.elsewhere, "belong to another site".to_owned()),
            (
                self.beyond_index,
                format!("are beyond the {MAX_OF_INDEX} newest of one index"),
            ),
            (
                self.beyond_source,
                format!("are beyond the {MAX_OF_SOURCE} of one source"),
            ),
        ];
        let reasons = rows.iter().filter(|(count, _)| *count > 0);
        let reasons: Vec<String> = reasons
            .map(|(count, reason)| format!("{count} {reason}"))
            .collect();
        (!reasons.is_empty()).then(|| {
            format!(
                "of {} sitemaps in the index, {}; they are left out",
                self.listed,
                reasons.join(", ")
            )
        })
    }
}

/// Other sites whose robots.txt is read because of one index.
const MAX_OTHER_SITES: usize = 5;

/// The robots.txt of each other site that an index leads to: it may name the sitemaps
/// that are published there for this one.
pub(super) fn robots_of_other_sites(index: &Sitemap, own_url: &FetchUrl) -> Vec<FetchUrl> {
    let mut found: Vec<FetchUrl> = Vec::new();
    for entry in &index.entries {
        if let Ok(url) = own_url.join(&entry.url)
            && !url.is_same_site(own_url)
            && let Ok(robots) = url.join("/robots.txt")
            && !found.contains(&robots)
        {
            found.push(robots);
            if found.len() == MAX_OTHER_SITES {
                break;
            }
        }
    }
    found
}

/// The sitemaps of an index that the robots.txt of their own host names, or whose
/// host names the index.
pub(super) fn named_by_host(
    index: &Sitemap,
    own_url: &FetchUrl,
    robots: &FetchUrl,
    named: &[String],
) -> Vec<String> {
    let named: HashSet<String> = named
        .iter()
        .filter_map(|named| robots.join(named).ok())
        .map(|named| named.as_str().to_owned())
        .collect();
    let names_index = named.contains(own_url.as_str());
    let entries = index.entries.iter();
    let urls = entries.filter_map(|entry| own_url.join(&entry.url).ok());
    let is_named = |url: &FetchUrl| {
        url.host() == robots.host() && (names_index || named.contains(url.as_str()))
    };
    urls.filter(is_named)
        .map(|url| url.as_str().to_owned())
        .collect()
}

/// Adds the sitemaps of an index, and makes those due that have changed since their
/// last poll. Of other sites only those in `named` are followed.
pub(super) async fn follow_index(
    store: &Store,
    index: &Sitemap,
    named: &HashSet<String>,
    own_url: &FetchUrl,
    own: &Feed,
    interval_ms: i64,
    now: Moment,
) -> Result<LeftOut> {
    let depth = FeedState::parse(&own.policy).depth;
    if depth >= MAX_DEPTH {
        return Ok(LeftOut::default());
    }
    let known = store.feeds_of_source(own.source_id).await?;
    let plan = plan(index, named, own_url, &known, depth, interval_ms, now);
    store.remove_feeds(&plan.remove).await?;
    store
        .add_child_feeds(own.source_id, "sitemap", &plan.add)
        .await?;
    store.resume_feeds(&plan.due_first, now).await?;
    store
        .resume_feeds(&plan.due_next, Moment(now.0 + 1))
        .await?;
    Ok(plan.left_out)
}

fn plan(
    index: &Sitemap,
    named: &HashSet<String>,
    own_url: &FetchUrl,
    known: &[Feed],
    depth: usize,
    interval_ms: i64,
    now: Moment,
) -> Plan {
    let mut plan = Plan::default();
    plan.left_out.listed = index.entries.len();
    let mut children: HashMap<&str, (&Feed, usize)> = HashMap::new();
    for feed in known.iter().filter(|feed| feed.kind == "sitemap") {
        children.insert(&feed.url, (feed, FeedState::parse(&feed.policy).depth));
    }
    let mut seen = HashSet::new();
    let mut listed: Vec<(FetchUrl, Option<Timestamp>)> = Vec::new();
    for entry in &index.entries {
        let Ok(url) = own_url.join(&entry.url) else {
            continue;
        };
        if !url.is_same_site(own_url) && !named.contains(url.as_str()) {
            plan.left_out.elsewhere += 1;
        } else if seen.insert(url.as_str().to_owned()) {
            listed.push((url, entry.lastmod));
        }
    }
    // Feeds due at the same time are polled in this order.
    listed.sort_by_key(|(url, lastmod)| (!is_news(url.as_str()), Reverse(*lastmod)));
    plan.left_out.beyond_index = listed.len().saturating_sub(MAX_OF_INDEX);
    listed.truncate(MAX_OF_INDEX);
    for (url, lastmod) in listed {
        let lastmod = lastmod.filter(|_| index.lastmod_is_trusted);
        let Some((feed, known_depth)) = children.get(url.as_str()) else {
            let state = FeedState {
                depth: depth + 1,
                is_dated: lastmod.is_some(),
                ..FeedState::default()
            };
            plan.add.push((url.as_str().to_owned(), state.to_json()));
            continue;
        };
        // The index itself, or one above it, is polled on its own.
        if *known_depth > depth && has_changed(feed, lastmod, interval_ms, now) {
            match is_news(&feed.url) {
                true => plan.due_first.push(feed.feed_id),
                false => plan.due_next.push(feed.feed_id),
            }
        }
    }
    let below = children.values().filter(|(_, depth)| *depth > 0);
    let below: Vec<&Feed> = below.map(|(feed, _)| *feed).collect();
    let excess = (below.len() + plan.add.len()).saturating_sub(MAX_OF_SOURCE);
    let mut retired: Vec<&Feed> = below
        .into_iter()
        .filter(|feed| is_retired(feed) && !seen.contains(&feed.url))
        .collect();
    retired.sort_by_key(|feed| feed.last_polled_at);
    plan.remove = retired
        .iter()
        .take(excess)
        .map(|feed| feed.feed_id)
        .collect();
    plan.left_out.beyond_source = excess - plan.remove.len();
    let room = plan.add.len().saturating_sub(plan.left_out.beyond_source);
    plan.add.truncate(room);
    plan
}

fn is_retired(feed: &Feed) -> bool {
    feed.error_class.as_deref() == Some(RETIRED)
}

/// Whether a sitemap is due because of what its index says of it.
fn has_changed(feed: &Feed, lastmod: Option<Timestamp>, interval_ms: i64, now: Moment) -> bool {
    match (feed.last_polled_at, lastmod) {
        (None, _) => true,
        // A day's date may mean any hour of that day.
        (Some(polled), Some(lastmod)) => {
            let slack = if lastmod.as_second() % 86_400 == 0 {
                86_400_000
            } else {
                0
            };
            lastmod.as_millisecond() + slack >= polled.0
        }
        (Some(polled), None) if is_retired(feed) => now.0 - polled.0 >= WEEK_MS,
        (Some(polled), None) => now.0 - polled.0 >= interval_ms,
    }
}

#[cfg(test)]
mod tests {
    use tidings_feed::Hints;

    use super::*;

    const NOW: Moment = Moment(1_794_700_800_000);

    fn feed(n: i64, url: &str) -> Feed {
        Feed {
            feed_id: n,
            source_id: 1,
            kind: "sitemap".to_owned(),
            url: url.to_owned(),
            etag: None,
            last_modified: None,
            body_hash: None,
            items_checksum: None,
            item_count: 0,
            last_polled_at: Some(Moment(NOW.0 - n)),
            last_new_at: None,
            next_poll_at: NOW,
            consecutive_errors: 0,
            error_class: None,
            last_error: None,
            paused_reason: None,
            policy: "{\"depth\":1}".to_owned(),
            demand_nano: 0,
        }
    }

    fn index(urls: &[(String, Option<&str>)]) -> Sitemap {
        let entry = |(url, lastmod): &(String, Option<&str>)| {
            let lastmod = lastmod.map(|date| format!("<lastmod>{date}</lastmod>"));
            let lastmod = lastmod.unwrap_or_default();
            format!("<sitemap><loc>{url}</loc>{lastmod}</sitemap>")
        };
        let body: String = urls.iter().map(entry).collect();
        let body = format!("<sitemapindex>{body}</sitemapindex>");
        let hints = Hints {
            now: Some(Timestamp::from_millisecond(NOW.0).unwrap()),
            ..Hints::default()
        };
        tidings_feed::sitemap::parse(body.as_bytes(), &hints).unwrap()
    }

    fn plan_of(index: &Sitemap, known: &[Feed]) -> Plan {
        let own = "https://www.a.example/index.xml".parse().unwrap();
        plan(index, &HashSet::new(), &own, known, 0, 6 * 3_600_000, NOW)
    }

    #[test]
    fn a_sitemap_of_another_site_is_followed_if_that_site_names_it() {
        let own: FetchUrl = "https://www.a.example/index.xml".parse().unwrap();
        let urls = [
            "https://maps.example/a/1.xml",
            "https://maps.example/b/2.xml",
            "https://other.example/3.xml",
        ];
        let index = index(&urls.map(|url| (url.to_owned(), None)));
        let robots = robots_of_other_sites(&index, &own);
        let shown: Vec<&str> = robots.iter().map(FetchUrl::as_str).collect();
        let expected = [
            "https://maps.example/robots.txt",
            "https://other.example/robots.txt",
        ];
        assert_eq!(shown, expected);
        let named = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            named_by_host(&index, &own, &robots[0], &lines)
        };
        assert_eq!(named(&["/a/1.xml"]), [urls[0]]);
        assert_eq!(named(&["https://www.a.example/index.xml"]), urls[..2]);
        // Nobody can vouch for another host.
        assert!(named(&["https://other.example/3.xml"]).is_empty());
        let named = named(&["/b/2.xml"]).into_iter().collect();
        let plan = plan(&index, &named, &own, &[], 0, 1, NOW);
        let added: Vec<&str> = plan.add.iter().map(|(url, _)| url.as_str()).collect();
        assert_eq!((added, plan.left_out.elsewhere), (vec![urls[1]], 2));
    }

    #[test]
    fn an_index_adds_its_newest_sitemaps_and_says_what_is_left_out() {
        let mut urls: Vec<(String, Option<&str>)> = (0..1500)
            .map(|n| {
                (
                    format!("https://b.a.example/{n}.xml"),
                    Some("2025-01-01T08:00:00Z"),
                )
            })
            .collect();
        urls.push((
            "https://a.example/new.xml".to_owned(),
            Some("2026-11-14T08:00:00Z"),
        ));
        urls.push(("https://a.example/news.xml".to_owned(), None));
        urls.push(("https://other.example/1.xml".to_owned(), None));
        let plan = plan_of(&index(&urls), &[]);
        assert_eq!(plan.add.len(), MAX_OF_INDEX);
        assert_eq!(plan.add[0].0, "https://a.example/news.xml");
        assert_eq!(plan.add[1].0, "https://a.example/new.xml");
        let reason = plan.left_out.reason().unwrap();
        assert_eq!(
            reason,
            "of 1503 sitemaps in the index, 1 belong to another site, \
             502 are beyond the 1000 newest of one index; they are left out"
        );
    }

    #[test]
    fn a_source_has_so_many_sitemaps_and_retired_ones_make_room() {
        let mut known: Vec<Feed> = (0..4990)
            .map(|n| feed(n, &format!("https://a.example/old/{n}.xml")))
            .collect();
        for n in [3, 7] {
            known[n].error_class = Some(RETIRED.to_owned());
        }
        let urls: Vec<(String, Option<&str>)> = (0..20)
            .map(|n| (format!("https://a.example/{n}.xml"), None))
            .collect();
        let plan = plan_of(&index(&urls), &known);
        // The one that was polled longest ago first.
        assert_eq!(plan.remove, [7, 3]);
        assert_eq!(plan.add.len(), 12);
        let reason = plan.left_out.reason().unwrap();
        assert!(
            reason.contains("8 are beyond the 5000 of one source"),
            "{reason}"
        );
    }

    #[test]
    fn only_changed_sitemaps_are_polled() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let moment = |text: &str| Moment::from(at(text));
        let now = moment("2026-11-15T12:00:00Z");
        let polled = Some(moment("2026-11-15T06:00:00Z"));
        let hour = 3_600_000;
        let of = |polled| Feed {
            last_polled_at: polled,
            ..feed(1, "https://a.example/a.xml")
        };
        let rows = [
            ("never polled", None, Some(at("2020-01-01T00:00:00Z")), true),
            ("older", polled, Some(at("2026-11-15T05:59:59Z")), false),
            ("newer", polled, Some(at("2026-11-15T06:30:00Z")), true),
            (
                "the same day, without an hour",
                polled,
                Some(at("2026-11-15T00:00:00Z")),
                true,
            ),
            (
                "the day before, without an hour",
                polled,
                Some(at("2026-11-14T00:00:00Z")),
                false,
            ),
            ("undated, a while ago", polled, None, true),
        ];
        for (name, polled, lastmod, expected) in rows {
            let found = has_changed(&of(polled), lastmod, 6 * hour, now);
            assert_eq!(found, expected, "{name}");
        }
        assert!(
            !has_changed(&of(polled), None, 7 * hour, now),
            "a moment ago"
        );
        let retired = Feed {
            error_class: Some(RETIRED.to_owned()),
            ..of(polled)
        };
        assert!(!has_changed(&retired, None, hour, now), "retired");
        let newer = Some(at("2026-11-15T06:30:00Z"));
        assert!(
            has_changed(&retired, newer, hour, now),
            "retired, but newer"
        );
    }
}
