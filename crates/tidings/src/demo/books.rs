//! What the simulated web has published, and what has become of each article: a
//! document, a loss, or nothing yet. Pure: what is new comes in, sums come out.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::Serialize;
use tidings_sim::{Entry, Expected};
use tidings_store::FrontierId;
use tidings_url::{FetchUrl, ProxyHosts, Rules, UrlKey};

use crate::words::{count, number};

/// How everything adds up at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Sum {
    /// Articles that should be documents, now or soon.
    pub(crate) published: u64,
    /// Those that are documents.
    pub(crate) fetched: u64,
    /// What the embedded search holds, if there is one.
    pub(crate) delivered: Option<u64>,
    /// Those that are neither documents nor lost.
    pub(crate) to_come: u64,
    /// Given up in the frontier or by the sink, or done without a document.
    pub(crate) lost: u64,
    /// Second documents of an article, and what the sink has twice.
    pub(crate) duplicated: u64,
    /// Documents of which the ledger knows nothing.
    pub(crate) unknown: u64,
    pub(crate) requests: u64,
    /// Requests that came too soon, or while another was under way.
    pub(crate) impolite: u64,
    /// Requests that were answered badly on purpose.
    pub(crate) faults: u64,
}

impl Sum {
    /// Whether nothing is to come, and everything that is stored is delivered.
    pub(crate) fn is_complete(&self) -> bool {
        let stored = self.fetched + self.duplicated + self.unknown;
        self.to_come == 0
            && self
                .delivered
                .is_none_or(|count| count + self.lost >= stored)
    }

    /// Whether nothing is lost, doubled or made up.
    pub(crate) fn is_right(&self) -> bool {
        self.lost == 0 && self.duplicated == 0 && self.unknown == 0
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |figure: u64, what: &str| format!("{} {what}", number(figure));
        let parts = [
            Some(part(self.published, "published")),
            Some(part(self.fetched, "fetched")),
            self.delivered.map(|figure| part(figure, "delivered")),
            Some(part(self.to_come, "to come")),
            Some(part(self.lost, "lost")),
            Some(part(self.duplicated, "duplicated")),
            (self.unknown > 0).then(|| part(self.unknown, "of nothing")),
            Some(part(self.impolite, "impolite")),
            (self.faults > 0).then(|| format!("{} met", count(self.faults, "fault"))),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        write!(f, "ledger: {}", parts.join(" · "))
    }
}

/// All articles that should become documents.
#[derive(Debug, Default)]
pub(super) struct Books {
    articles: Vec<Article>,
    /// The page's own address and the one that feeds announce.
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

impl Books {
    /// An article has appeared.
    pub(super) fn publish(&mut self, entry: &Entry) {
        if entry.expected != Expected::Document {
            return;
        }
        let place = self.articles.len();
        let mut ids = Vec::new();
        for address in [&entry.url, &entry.announced_url] {
            // What is no URL to us could not be found under it either.
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
    pub(super) fn keep(&mut self, key: UrlKey) {
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

    /// These addresses were given up; nothing else is.
    pub(super) fn bury(&mut self, dead: &[UrlKey]) {
        for article in &mut self.articles {
            article.is_lost = false;
        }
        for at in dead.iter().filter_map(|key| self.by_key.get(key)) {
            self.articles[*at].is_lost = true;
        }
    }

    /// Articles that are no documents, with their places in the frontier.
    pub(super) fn missing(&self) -> impl Iterator<Item = (usize, &[FrontierId])> {
        let all = self.articles.iter().enumerate();
        all.filter(|(_, article)| !article.is_document)
            .map(|(number, article)| (number, article.ids.as_slice()))
    }

    pub(super) fn lose(&mut self, number: usize) {
        self.articles[number].is_lost = true;
    }

    /// All documents, whatever they are of.
    pub(super) fn documents(&self) -> u64 {
        self.documents.len() as u64
    }

    pub(super) fn sum(&self, delivered: Option<u64>, buried_by_sink: u64) -> Sum {
        let is_lost = |article: &&Article| article.is_lost && !article.is_document;
        let lost = self.articles.iter().filter(is_lost).count() as u64;
        let published = self.articles.len() as u64;
        let twice = delivered.map_or(0, |count| count.saturating_sub(self.documents()));
        Sum {
            published,
            fetched: self.fetched,
            delivered,
            to_come: published - self.fetched - lost,
            lost: lost + buried_by_sink,
            duplicated: self.duplicated + twice,
            unknown: self.unknown,
            ..Sum::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three articles, of which 1 is announced elsewhere, and one that is missing.
    fn books() -> Books {
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
        let mut books = Books::default();
        for entry in [
            entry(0, "story-0", Expected::Document),
            entry(1, "short-1", Expected::Document),
            entry(2, "story-2", Expected::Document),
            entry(3, "story-3", Expected::NotFound),
        ] {
            books.publish(&entry);
        }
        books
    }

    fn key(path: &str) -> UrlKey {
        let url = FetchUrl::parse(&format!("https://a.example/{path}")).unwrap();
        url.canonical(&Rules::default()).key()
    }

    #[test]
    fn everything_is_somewhere() {
        // What is stored, what is given up, what the sink has; and how that adds up:
        // fetched, to come, lost, duplicated, of nothing.
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
                "given up is lost, unless it is a document",
                &["story-0"],
                &["story-0", "short-1", "story-3"],
                1,
                [1, 1, 1, 0, 0],
            ),
            ("what should be none", &["story-3"], &[], 1, [0, 3, 0, 0, 1]),
            ("twice in the sink", &["story-0"], &[], 2, [1, 2, 0, 1, 0]),
        ];
        for (name, stored, dead, delivered, expected) in rows {
            let mut books = books();
            for path in stored {
                books.keep(key(path));
                books.keep(key(path));
            }
            books.bury(&dead.iter().map(|path| key(path)).collect::<Vec<_>>());
            let sum = books.sum(Some(delivered), 0);
            let found = [
                sum.fetched,
                sum.to_come,
                sum.lost,
                sum.duplicated,
                sum.unknown,
            ];
            assert_eq!((found, sum.published), (expected, 3), "{name}");
        }
    }

    #[test]
    fn a_loss_can_be_mended() {
        let mut books = books();
        books.lose(1);
        assert_eq!(books.sum(None, 0).lost, 1);
        books.bury(&[]);
        assert_eq!(books.sum(None, 0).lost, 0, "it was given another chance");
        books.lose(1);
        books.keep(key("story-1"));
        let sum = books.sum(None, 2);
        assert_eq!(
            (sum.fetched, sum.lost),
            (1, 2),
            "what a sink has buried is lost"
        );
        assert_eq!(books.missing().count(), 2);
    }

    #[test]
    fn a_sum_is_told_in_words() {
        let sum = Sum {
            published: 20_000,
            fetched: 14_210,
            delivered: Some(14_200),
            to_come: 5_790,
            requests: 16_000,
            faults: 312,
            ..Sum::default()
        };
        assert!(sum.is_right());
        assert_eq!(
            sum.to_string(),
            "ledger: 20,000 published · 14,210 fetched · 14,200 delivered · 5,790 to come · 0 lost · 0 duplicated · 0 impolite · 312 faults met"
        );
        let wrong = Sum { unknown: 2, ..sum };
        assert!(!wrong.is_right());
        assert!(wrong.to_string().contains("· 2 of nothing ·"));
    }
}
