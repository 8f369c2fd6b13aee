//! One listing: its articles, the lists that it leads to, and the traps that it
//! would lead into. Links are judged beside each other here: what looks like the
//! clear articles of the page is one, and what there is too much of is a trap.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use tidings_url::{FetchUrl, Rules};

use crate::judge::{Judge, Reason, Site, Verdict};
use crate::link::{Link, Listing, links};
use crate::trap::{self, Trap};
use crate::words;

/// Clear articles of one shape that make others of it familiar.
const MIN_FAMILIAR: usize = 3;
/// Lists at one path that differ by parameters only.
const MAX_VARIANTS: usize = 8;

/// What a listing leads to.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// In the order of the page.
    pub articles: Vec<FoundArticle>,
    /// That were not known.
    pub listings: Vec<FoundListing>,
    /// In a fixed order, each once.
    pub traps: Vec<TrapSighting>,
    /// Parameters that hold a session, and name no page.
    pub session_params: Vec<String>,
    /// There were more lists than may be known.
    pub is_full: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundArticle {
    pub url: FetchUrl,
    /// What the link says: as a rule, its headline.
    pub text: String,
    /// Of another site.
    pub is_external: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundListing {
    pub url: FetchUrl,
    /// The next page of this one.
    pub is_older: bool,
}

/// A trap that a page would lead into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrapSighting {
    pub trap: Trap,
    /// Links into it.
    pub links: usize,
    pub example: String,
}

/// Reads one listing of a site.
pub fn gather(page: &Listing<'_>, site: &Site<'_>) -> Found {
    let links = links(page);
    let mut traps = Traps::default();
    let session_params = session_params(&links, site, &mut traps);
    let strip_params = [&site.rules.strip_params[..], &session_params].concat();
    let site = Site {
        rules: Rules {
            strip_params,
            ..site.rules.clone()
        },
        ..site.clone()
    };
    let verdicts = verdicts(&links, &Judge::new(&site));
    let mut found = Found {
        session_params,
        ..Found::default()
    };
    let key = |url: &FetchUrl| url.canonical(&site.rules).as_str().to_owned();
    let mut seen: HashSet<String> = site.listings.iter().chain([page.url]).map(key).collect();
    for (link, verdict) in links.iter().zip(&verdicts) {
        let is_external = *verdict == Verdict::External;
        let is_article = is_external || *verdict == Verdict::Article;
        if is_article && seen.insert(key(&link.url)) {
            found.articles.push(FoundArticle {
                url: link.url.clone(),
                text: link.text.clone(),
                is_external,
            });
        }
    }
    let mut variants = variants(&site.listings);
    for (link, verdict) in links.iter().zip(verdicts) {
        let is_older = verdict == Verdict::Older;
        match verdict {
            Verdict::No(Reason::Trap(trap)) => traps.record(trap, &link.url),
            Verdict::Listing | Verdict::Older if seen.insert(key(&link.url)) => {
                if page.depth >= site.max_depth {
                    // Deep enough; but some paths would never be.
                    if found.articles.is_empty() && path_grows(page, &link.url) {
                        traps.record(Trap::EndlessPath, &link.url);
                    }
                    continue;
                }
                let known = variants.entry(path_of(&link.url)).or_insert(0);
                if *known >= MAX_VARIANTS {
                    traps.record(Trap::Facets, &link.url);
                    continue;
                }
                if site.listings.len() + found.listings.len() >= site.max_listings {
                    found.is_full = true;
                    continue;
                }
                *known += 1;
                found.listings.push(FoundListing {
                    url: link.url.clone(),
                    is_older,
                });
            }
            _ => {}
        }
    }
    found.traps = traps.0.into_values().collect();
    found
}

/// The names of parameters that hold sessions. Their values change, so they say
/// nothing about the page.
fn session_params(links: &[Link], site: &Site<'_>, traps: &mut Traps) -> Vec<String> {
    let mut names = Vec::new();
    let ours = links.iter().filter(|link| link.url.is_same_site(site.home));
    for link in ours {
        for (name, value) in link.url.as_url().query_pairs() {
            if words::is_session(&name.to_ascii_lowercase(), &value) {
                traps.record(Trap::SessionId, &link.url);
                if !names.iter().any(|known| *known == name) {
                    names.push(name.into_owned());
                }
            }
        }
    }
    names
}

/// Judged twice: first each for itself, then beside what was clear.
fn verdicts(links: &[Link], judge: &Judge<'_>) -> Vec<Verdict> {
    let shapes: Vec<String> = links.iter().map(|link| judge.shape(link)).collect();
    let mut clear: HashMap<&str, usize> = HashMap::new();
    for (link, shape) in links.iter().zip(&shapes) {
        if judge.is_clear(link) {
            *clear.entry(shape).or_insert(0) += 1;
        }
    }
    let is_familiar = |shape: &String| {
        clear
            .get(&**shape)
            .is_some_and(|count| *count >= MIN_FAMILIAR)
    };
    let pairs = links.iter().zip(&shapes);
    pairs
        .map(|(link, shape)| judge.judge_as(link, is_familiar(shape)))
        .collect()
}

/// From parent to page to link, the path only gets longer.
fn path_grows(page: &Listing<'_>, link: &FetchUrl) -> bool {
    let has_grown = page
        .parent
        .is_some_and(|parent| trap::extends(page.url, parent));
    has_grown && trap::extends(link, page.url)
}

fn path_of(url: &FetchUrl) -> String {
    format!("{}{}", url.host(), url.as_url().path())
}

fn variants(listings: &[FetchUrl]) -> HashMap<String, usize> {
    let mut variants = HashMap::new();
    for url in listings {
        *variants.entry(path_of(url)).or_insert(0) += 1;
    }
    variants
}

#[derive(Default)]
struct Traps(BTreeMap<Trap, TrapSighting>);

impl Traps {
    fn record(&mut self, trap: Trap, url: &FetchUrl) {
        let sighting = self.0.entry(trap).or_insert_with(|| TrapSighting {
            trap,
            links: 0,
            example: url.as_str().to_owned(),
        });
        sighting.links += 1;
    }
}
