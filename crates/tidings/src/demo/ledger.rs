//! What the simulated web has published, and the state of each article: document,
//! lost, or pending. Pure: changes in, totals out.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::Serialize;
use tidings_sim::{Entry, Expected};
use tidings_store::FrontierId;
use tidings_url::{FetchUrl, ProxyHosts, Rules, UrlKey};

use crate::format::{count, number};

/// The totals of the ledger at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LedgerTotals {
    /// Articles that should be documents, now or soon.
    pub(crate) published: u64,
    /// Those that are documents.
    pub(crate) fetched: u64,
    /// Documents in the embedded search, if there is one.
    pub(crate) delivered: Option<u64>,
    /// Those that are neither documents nor lost.
    pub(crate) pending: u64,
    /// Failed permanently in the frontier or in the sink, or done without a document.
    pub(crate) lost: u64,
    /// Second documents of an article, and documents that the sink has twice.
    pub(crate) duplicated: u64,
    /// Documents that the ledger does not expect.
    pub(crate) unknown: u64,
    pub(crate) requests: u64,
    /// Requests sooner than the delay of the host, or while another was in flight.
    pub(crate) politeness_violations: u64,
    /// Requests that the simulated web let fail on purpose.
    pub(crate) faults_injected: u64,
}

impl LedgerTotals {
    /// Whether nothing is pending, and everything that is stored is delivered.
    pub(crate) fn is_complete(&self) -> bool {
        let stored = self.fetched + self.duplicated + self.unknown;
        self.pending == 0
            && self
                .delivered
                .is_none_or(|count| count + self.lost >= stored)
    }

    /// Whether nothing is lost, duplicated or unexpected.
    pub(crate) fn is_consistent(&self) -> bool {
        self.lost == 0 && self.duplicated == 0 && self.unknown == 0
    }
}

impl fmt::Display for LedgerTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |figure: u64, what: &str| format!("{} {what}", number(figure));
        let parts = [
            Some(part(self.published, "published")),
            Some(part(self.fetched, "fetched")),
            self.delivered.map(|figure| part(figure, "delivered")),
            Some(part(self.pending, "pending")),
            Some(part(self.lost, "lost")),
            Some(part(self.duplicated, "duplicated")),
            (self.unknown > 0).then(|| part(self.unknown, "unexpected")),
            Some(count(self.politeness_violations, "politeness violation")),
            (self.faults_injected > 0)
                .then(|| format!("{} injected", count(self.faults_injected, "fault"))),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        write!(f, "ledger: {}", parts.join(" · "))
    }
}

/// All articles that should become documents.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    articles: Vec<Article>,
    /// By the article's own URL and by the one that feeds announce.
    by_key: HashMap<UrlKey, usize>,
    documents: HashSet<UrlKey>,
    fetched: u64,
    duplicated: u64,
    unknown: u64,
}

#[derive(Debug)]
struct Article {
    ids: Vec<FrontierId>,
    is_document: bool,
    is_lost: bool,
}

impl Ledger {
    /// An article was published.
    pub(super) fn add_published(&mut self, entry: &Entry) {
        if entry.expected != Expected::Document {
            return;
        }
        let place = self.articles.len();
        let mut ids = Vec::new();
        for address in [&entry.url, &entry.announced_url] {
            // What does not parse as a URL can't be discovered by it either.
            let Ok(url) = FetchUrl::parse(address) else {
                continue;
            };
            let key = url.canonical(&Rules::default()).key();
            let id = FrontierId::of(&url.host_key(&ProxyHosts::default()), &key);
            self.by_key.insert(key, place);
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        self.articles.push(Article {
            ids,
            is_document: false,
            is_lost: false,
        });
    }

    /// A document was stored, or changed.
    pub(super) fn add_document(&mut self, key: UrlKey) {
        if !self.documents.insert(key) {
            return;
        }
        let article = self.by_key.get(&key).map(|at| &mut self.articles[*at]);
        match article {
            None => self.unknown += 1,
            Some(article) if article.is_document => self.duplicated += 1,
            Some(article) => {
                article.is_document = true;
                self.fetched += 1;
            }
        }
    }

    /// These URLs failed permanently, and no others.
    pub(super) fn set_failed(&mut self, failed: &[UrlKey]) {
        for article in &mut self.articles {
            article.is_lost = false;
        }
        for at in failed.iter().filter_map(|key| self.by_key.get(key)) {
            self.articles[*at].is_lost = true;
        }
    }

    /// Articles without a document, with their ids in the frontier.
    pub(super) fn missing(&self) -> impl Iterator<Item = (usize, &[FrontierId])> {
        let all = self.articles.iter().enumerate();
        all.filter(|(_, article)| !article.is_document)
            .map(|(number, article)| (number, article.ids.as_slice()))
    }

    /// It is done without a document.
    pub(super) fn mark_lost(&mut self, number: usize) {
        self.articles[number].is_lost = true;
    }

    /// All documents, expected or not.
    pub(super) fn documents(&self) -> u64 {
        self.documents.len() as u64
    }

    pub(super) fn totals(&self, delivered: Option<u64>, dead_letters: u64) -> LedgerTotals {
        let is_lost = |article: &&Article| article.is_lost && !article.is_document;
        let lost = self.articles.iter().filter(is_lost).count() as u64;
        let published = self.articles.len() as u64;
        let twice_in_sink = delivered.map_or(0, |count| count.saturating_sub(self.documents()));
        LedgerTotals {
            published,
            fetched: self.fetched,
            delivered,
            pending: published - self.fetched - lost,
            lost: lost + dead_letters,
            duplicated: self.duplicated + twice_in_sink,
            unknown: self.unknown,
            ..LedgerTotals::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three articles, of which 1 is announced elsewhere, and one that is missing.
    fn ledger() -> Ledger {
        let entry = |number: u64, announced: &str, expected| {
            let url = format!("https://a.example/story-{number}");
            Entry {
                site: 0,
                number,
                announced_url: format!("https://a.example/{announced}"),
                key: key(&format!("story-{number}")),
                url,
                title: String::new(),
                published: jiff::Timestamp::UNIX_EPOCH,
                expected,
            }
        };
        let mut ledger = Ledger::default();
        for entry in [
            entry(0, "story-0", Expected::Document),
            entry(1, "short-1", Expected::Document),
            entry(2, "story-2", Expected::Document),
            entry(3, "story-3", Expected::NotFound),
        ] {
            ledger.add_published(&entry);
        }
        ledger
    }

    fn key(path: &str) -> UrlKey {
        let url = FetchUrl::parse(&format!("https://a.example/{path}")).unwrap();
        url.canonical(&Rules::default()).key()
    }

    #[test]
    fn every_article_is_in_one_column() {
        // Stored, failed permanently, delivered; and the totals: fetched, pending, lost,
        // duplicated, unexpected.
        type Row<'a> = (&'a str, &'a [&'a str], &'a [&'a str], u64, [u64; 5]);
        let rows: [Row<'_>; 7] = [
            ("nothing yet", &[], &[], 0, [0, 3, 0, 0, 0]),
            ("one", &["story-0"], &[], 1, [1, 2, 0, 0, 0]),
            (
                "its own address or the announced one",
                &["short-1"],
                &[],
                1,
                [1, 2, 0, 0, 0],
            ),
            ("both", &["short-1", "story-1"], &[], 2, [1, 2, 0, 1, 0]),
            (
                "a permanent failure is lost, unless it is a document",
                &["story-0"],
                &["story-0", "short-1", "story-3"],
                1,
                [1, 1, 1, 0, 0],
            ),
            ("what should be none", &["story-3"], &[], 1, [0, 3, 0, 0, 1]),
            ("twice in the sink", &["story-0"], &[], 2, [1, 2, 0, 1, 0]),
        ];
        for (name, stored, dead, delivered, expected) in rows {
            let mut ledger = ledger();
            for path in stored {
                ledger.add_document(key(path));
                ledger.add_document(key(path));
            }
            ledger.set_failed(&dead.iter().map(|path| key(path)).collect::<Vec<_>>());
            let totals = ledger.totals(Some(delivered), 0);
            let found = [
                totals.fetched,
                totals.pending,
                totals.lost,
                totals.duplicated,
                totals.unknown,
            ];
            assert_eq!((found, totals.published), (expected, 3), "{name}");
        }
    }

    #[test]
    fn a_lost_article_can_be_recovered() {
        let mut ledger = ledger();
        ledger.mark_lost(1);
        assert_eq!(ledger.totals(None, 0).lost, 1);
        ledger.set_failed(&[]);
        assert_eq!(ledger.totals(None, 0).lost, 0, "it was retried");
        ledger.mark_lost(1);
        ledger.add_document(key("story-1"));
        let totals = ledger.totals(None, 2);
        assert_eq!(
            (totals.fetched, totals.lost),
            (1, 2),
            "a dead letter is lost"
        );
        assert_eq!(ledger.missing().count(), 2);
    }

    #[test]
    fn totals_are_shown_as_columns() {
        let totals = LedgerTotals {
            published: 20_000,
            fetched: 14_210,
            delivered: Some(14_200),
            pending: 5_790,
            requests: 16_000,
            faults_injected: 312,
            ..LedgerTotals::default()
        };
        assert!(totals.is_consistent());
        assert_eq!(
            totals.to_string(),
            "ledger: 20,000 published · 14,210 fetched · 14,200 delivered · 5,790 pending · 0 lost · 0 duplicated · 0 politeness violations · 312 faults injected"
        );
        let wrong = LedgerTotals {
            unknown: 2,
            ..totals
        };
        assert!(!wrong.is_consistent());
        assert!(wrong.to_string().contains("· 2 unexpected ·"));
    }
}
