//! The order in which a tree of sitemaps is read: news first, then the newest,
//! each at most once, not too deep and not for ever. Decides, fetches nothing.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use jiff::Timestamp;

use super::Entry;

/// A sitemap to read next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub url: String,
    /// 0 for the sitemaps that the walk started with.
    pub depth: usize,
    pub lastmod: Option<Timestamp>,
}

/// The state of one walk over the sitemaps of a site.
#[derive(Debug)]
pub struct Walk {
    steps: Vec<Step>,
    /// The remaining steps, as indexes: news, then the newest, then the first.
    waiting: BinaryHeap<(bool, Option<Timestamp>, Reverse<usize>)>,
    seen: HashSet<String>,
    max_files: usize,
    /// Children that have not changed since are not read.
    since: Option<Timestamp>,
}

impl Walk {
    /// Indexes inside indexes are followed this far.
    pub const MAX_DEPTH: usize = 3;

    pub fn new(max_files: usize, since: Option<Timestamp>) -> Self {
        Self {
            steps: Vec::new(),
            waiting: BinaryHeap::new(),
            seen: HashSet::new(),
            max_files,
            since,
        }
    }

    /// Adds a sitemap to start from. `false` if it is known.
    pub fn start(&mut self, url: &str) -> bool {
        self.offer(Step {
            url: url.to_owned(),
            depth: 0,
            lastmod: None,
        })
    }

    /// Adds a child that the index at `depth` lists. `false` if it will not be
    /// read: known already (a cycle), too deep, too many, or not changed.
    pub fn child(&mut self, depth: usize, entry: &Entry) -> bool {
        if let (Some(since), Some(lastmod)) = (self.since, entry.lastmod)
            && lastmod < since
        {
            return false;
        }
        self.offer(Step {
            url: entry.url.clone(),
            depth: depth + 1,
            lastmod: entry.lastmod,
        })
    }

    fn offer(&mut self, step: Step) -> bool {
        if step.depth > Self::MAX_DEPTH || self.seen.len() >= self.max_files {
            return false;
        }
        if !self.seen.insert(without_scheme(&step.url).to_owned()) {
            return false;
        }
        let is_news = step.url.contains("news");
        let index = Reverse(self.steps.len());
        self.waiting.push((is_news, step.lastmod, index));
        self.steps.push(step);
        true
    }

    /// The sitemap to read next.
    pub fn next_step(&mut self) -> Option<Step> {
        let (_, _, Reverse(index)) = self.waiting.pop()?;
        self.steps.get(index).cloned()
    }
}

/// `http` and `https` are one sitemap, or a redirect between them is a cycle.
fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}
