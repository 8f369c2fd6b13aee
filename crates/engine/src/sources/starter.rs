//! The starter sources: a few well-known sources that ship with the program. Each
//! is added once and recorded for ever, so one that a user removes does not come
//! back.

use serde::Serialize;
use tidings_store::Store;
use tidings_url::FetchUrl;

use super::registry::{RegistryError, SourceDraft, add_source};
use super::settings::SourceSettings;

/// Name, home page, feed.
const STARTERS: [(&str, &str, &str); 18] = [
    (
        "Al Jazeera",
        "https://www.aljazeera.com/",
        "https://www.aljazeera.com/xml/rss/all.xml",
    ),
    (
        "Ars Technica",
        "https://arstechnica.com/",
        "https://feeds.arstechnica.com/arstechnica/index",
    ),
    (
        "BBC News",
        "https://www.bbc.co.uk/news",
        "https://feeds.bbci.co.uk/news/rss.xml",
    ),
    (
        "Deutsche Welle",
        "https://www.dw.com/en/",
        "https://rss.dw.com/rdf/rss-en-all",
    ),
    (
        "EFF",
        "https://www.eff.org/",
        "https://www.eff.org/rss/updates.xml",
    ),
    (
        "El País",
        "https://elpais.com/",
        "https://feeds.elpais.com/mrss-s/pages/ep/site/elpais.com/portada",
    ),
    (
        "France 24",
        "https://www.france24.com/en/",
        "https://www.france24.com/en/rss",
    ),
    (
        "Global Voices",
        "https://globalvoices.org/",
        "https://globalvoices.org/feed/",
    ),
    (
        "Hacker News",
        "https://news.ycombinator.com/",
        "https://news.ycombinator.com/rss",
    ),
    (
        "Le Monde",
        "https://www.lemonde.fr/",
        "https://www.lemonde.fr/rss/une.xml",
    ),
    (
        "LWN",
        "https://lwn.net/",
        "https://lwn.net/headlines/newrss",
    ),
    (
        "NASA",
        "https://www.nasa.gov/",
        "https://www.nasa.gov/feed/",
    ),
    (
        "Nature",
        "https://www.nature.com/",
        "https://www.nature.com/nature.rss",
    ),
    (
        "NPR",
        "https://www.npr.org/",
        "https://feeds.npr.org/1001/rss.xml",
    ),
    (
        "ProPublica",
        "https://www.propublica.org/",
        "https://www.propublica.org/feeds/propublica/main",
    ),
    (
        "Tagesschau",
        "https://www.tagesschau.de/",
        "https://www.tagesschau.de/index~rss2.xml",
    ),
    (
        "The Guardian",
        "https://www.theguardian.com/international",
        "https://www.theguardian.com/international/rss",
    ),
    (
        "The Public Domain Review",
        "https://publicdomainreview.org/",
        "https://publicdomainreview.org/rss.xml",
    ),
];

/// The result of adding the starter sources.
#[derive(Debug, Default, Serialize)]
pub struct StarterReport {
    /// Names of the sources that were (or would be) added.
    pub added: Vec<String>,
    /// Number of sources that were added before, or exist already.
    pub known: usize,
}

/// Adds the starter sources that were never added before.
pub async fn add_starter_sources(
    store: &Store,
    dry_run: bool,
) -> Result<StarterReport, RegistryError> {
    let mut report = StarterReport::default();
    for (name, home, feed) in STARTERS {
        let is_new = match dry_run {
            true => !store.was_starter_source(feed).await?,
            false => store.record_starter_source(feed).await?,
        };
        if !is_new || store.source_named(name).await?.is_some() {
            report.known += 1;
            continue;
        }
        report.added.push(name.to_owned());
        if !dry_run {
            add_source(store, &starter(name, home, feed)).await?;
        }
    }
    Ok(report)
}

fn starter(name: &str, home: &str, feed: &str) -> SourceDraft {
    let url = |text: &str| FetchUrl::parse(text).expect("the starter sources are tested");
    SourceDraft {
        name: name.to_owned(),
        url: url(home),
        priority: 5,
        settings: SourceSettings {
            feed_url: Some(url(feed)),
            ..SourceSettings::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_starter_is_a_source() {
        let mut names = std::collections::BTreeSet::new();
        for (name, home, feed) in STARTERS {
            assert!(starter(name, home, feed).row().is_ok());
            assert!(names.insert(name), "{name} is listed twice");
            assert!(feed.starts_with("https://"), "{feed}");
        }
    }
}
