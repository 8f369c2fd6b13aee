//! Embedded search: queries and filters, revisions, one writer and many readers,
//! rebuilding.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use tidings_document::Document;
use tidings_sinks::{Hit, SearchError, SearchIndex, SearchQuery, Sink, Verdict, rebuild};

use crate::fixture::{context, deliver, document, documents, error_of, now, title, try_sink};

fn open(folder: &Path) -> Box<dyn Sink> {
    try_sink("kind = \"search\"", &context(folder)).unwrap()
}

fn index(folder: &Path) -> SearchIndex {
    SearchIndex::open(folder.join("search")).unwrap()
}

fn ids(hits: &[Hit]) -> Vec<usize> {
    let number = |hit: &Hit| usize::from_str_radix(&hit.id, 16).unwrap();
    hits.iter().map(number).collect()
}

fn found(index: &SearchIndex, text: &str) -> Vec<usize> {
    let mut found = ids(&index.search(&SearchQuery::new(text)).unwrap().hits);
    found.sort_unstable();
    found
}

fn library() -> Vec<Document> {
    let story = |n: usize, title: &str, text: &str| Document {
        title: title.into(),
        body_text: text.into(),
        ..document(n, 1)
    };
    let mut library = vec![
        story(
            0,
            "Bread",
            "Flour, water and time. The river mill grinds it.",
        ),
        story(
            1,
            "River rises",
            "After the rain the river rose two metres in Köln.",
        ),
        story(
            2,
            "Weather",
            "Rain again, says the office. The fool hides his mistake <b>.",
        ),
        story(3, "東京の天気", "今日は雨です。東京都の予報。"),
        story(
            4,
            "Long",
            &format!("{} needle {}", "hay ".repeat(900), "hay ".repeat(900)),
        ),
    ];
    library[1].source_name = "Kölner Bote".into();
    library[1].language = Some("de".into());
    library[2].tags = vec!["weather".into()];
    library[2].published_at = Some("2026-11-10T00:00:00Z".parse().unwrap());
    library[3].published_at = None;
    library
}

#[tokio::test]
async fn words_phrases_and_filters_find_what_they_should() {
    let folder = tempfile::tempdir().unwrap();
    let sink = open(folder.path());
    let verdicts = deliver(&*sink, &library()).await;
    assert_eq!(verdicts, vec![Verdict::Accepted; 5]);
    let index = index(folder.path());
    assert_eq!(index.count().unwrap(), 5);
    let rows: [(&str, &[usize]); 14] = [
        ("river", &[0, 1]),
        ("RIVER rain", &[1]),
        ("koln", &[1]),
        ("\"says the office\"", &[2]),
        ("\"office says\"", &[]),
        ("rain -river", &[2]),
        ("bread OR weather", &[0, 2]),
        ("title:river", &[1]),
        ("東京", &[3]),
        ("京東", &[]),
        ("needle", &[4]),
        ("\"unfinished", &[]),
        ("((", &[]),
        ("", &[0, 1, 2, 3, 4]),
    ];
    for (text, expected) in rows {
        assert_eq!(found(&index, text), expected, "{text:?}");
    }
    type Set = fn(&mut SearchQuery);
    let filters: [(&str, Set, &[usize]); 6] = [
        ("source", |q| q.source = Some("Kölner Bote".into()), &[1]),
        ("tag", |q| q.tag = Some("weather".into()), &[2]),
        ("language", |q| q.language = Some("de".into()), &[1]),
        (
            "since",
            |q| q.since = Some("2026-11-15T00:00:00Z".parse().unwrap()),
            &[3],
        ),
        (
            "until",
            |q| q.until = Some("2026-11-12T00:00:00Z".parse().unwrap()),
            &[2],
        ),
        (
            "both",
            |q| {
                q.since = Some("2026-11-14T08:00:00Z".parse().unwrap());
                q.until = Some("2026-11-14T08:00:01Z".parse().unwrap());
            },
            &[0, 1, 4],
        ),
    ];
    for (name, set, expected) in filters {
        let mut query = SearchQuery::new("");
        set(&mut query);
        let mut hits = ids(&index.search(&query).unwrap().hits);
        hits.sort_unstable();
        assert_eq!(hits, expected, "{name}");
    }
}

#[tokio::test]
async fn hits_are_sorted_and_paged_with_snippets() {
    let folder = tempfile::tempdir().unwrap();
    deliver(&*open(folder.path()), &library()).await;
    let index = index(folder.path());
    let hits = index.search(&SearchQuery::new("river")).unwrap().hits;
    assert_eq!(ids(&hits), [1, 0], "the title counts for more");
    // The newest first, without words.
    let all = index.search(&SearchQuery::new("")).unwrap();
    assert_eq!(
        (
            all.total,
            ids(&all.hits)[0],
            *ids(&all.hits).last().unwrap()
        ),
        (5, 3, 2)
    );
    let page = |limit, offset| {
        let query = SearchQuery {
            limit,
            offset,
            ..SearchQuery::new("")
        };
        let page = index.search(&query).unwrap();
        assert_eq!(page.total, 5);
        page.hits.len()
    };
    assert_eq!(
        [
            page(2, 0),
            page(2, 4),
            page(2, 5),
            page(0, 0),
            page(usize::MAX, usize::MAX)
        ],
        [2, 1, 0, 1, 0]
    );
    let snippet = |text: &str| {
        index.search(&SearchQuery::new(text)).unwrap().hits[0]
            .snippet
            .clone()
    };
    let needle = snippet("needle");
    assert!(needle.text.len() < 300);
    assert_eq!(&needle.text[needle.highlights[0].clone()], "needle");
    let plain = snippet("mistake");
    assert!(
        plain.text.contains("<b"),
        "plain text, not HTML: {}",
        plain.text
    );
    assert!(snippet("title:long").text.starts_with("hay hay"));
    let hit = &index.search(&SearchQuery::new("bread")).unwrap().hits[0];
    assert_eq!(hit.url, document(0, 1).url);
    assert_eq!(hit.tags, document(0, 1).tags);
    assert_eq!(hit.published_at, document(0, 1).published_at);
    assert_eq!(hit.fetched_at, now());
}

#[tokio::test]
async fn one_process_writes_and_readers_see_each_commit() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        SearchIndex::open(folder.path()),
        Err(SearchError::None(_))
    ));
    let first = open(folder.path());
    deliver(&*first, &documents(0..3)).await;
    let reader = index(folder.path());
    let second = open(folder.path());
    let verdict = &deliver(&*second, &documents(3..4)).await[0];
    assert!(
        error_of(verdict).contains("another process writes"),
        "{verdict:?}"
    );
    let report = second.check(now()).await;
    assert!(report.is_ok(), "it is readable meanwhile: {report}");
    assert_eq!(reader.count().unwrap(), 3);
    deliver(&*first, &documents(3..6)).await;
    assert_eq!(reader.count().unwrap(), 6);
    drop(first);
    deliver(&*second, &documents(6..7)).await;
    assert_eq!(reader.count().unwrap(), 7);
    assert!(second.check(now()).await.is_ok());
}

#[tokio::test]
async fn rebuilding_replaces_all_and_readers_follow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("search");
    let sink = open(folder.path());
    deliver(&*sink, &documents(0..5)).await;
    let reader = index(folder.path());
    let busy = rebuild(&path, documents(0..1), true, |_| {});
    assert!(matches!(busy, Err(SearchError::Locked(_))));
    drop(sink);
    let mut progress = Vec::new();
    let done = rebuild(&path, documents(0..2500), true, |done| progress.push(done)).unwrap();
    assert_eq!((done, progress), (2500, vec![1000, 2000, 2500]));
    assert_eq!(reader.count().unwrap(), 2500);
    // And the sink continues there.
    deliver(
        &*open(folder.path()),
        &[document(2499, 2), document(2500, 1)],
    )
    .await;
    assert_eq!(reader.count().unwrap(), 2501);
    assert_eq!(
        std::fs::read_dir(&path).unwrap().count(),
        2,
        "one generation and the lock"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_order_of_revisions_ends_with_the_newest_once(
        batches in prop::collection::vec(prop::collection::vec((0_usize..8, 1_i64..6), 1..12), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let sink = open(folder.path());
            let mut newest: BTreeMap<usize, i64> = BTreeMap::new();
            for batch in batches {
                let documents: Vec<_> = batch.iter().map(|(n, revision)| document(*n, *revision)).collect();
                deliver(&*sink, &documents).await;
                for (n, revision) in batch {
                    let known = newest.entry(n).or_default();
                    *known = revision.max(*known);
                }
                let results = index(folder.path()).search(&SearchQuery::new("")).unwrap();
                let indexed: BTreeMap<usize, i64> = results
                    .hits
                    .iter()
                    .map(|hit| {
                        let n = usize::from_str_radix(&hit.id, 16).unwrap();
                        assert_eq!(hit.title, title(n, hit.revision));
                        (n, hit.revision)
                    })
                    .collect();
                assert_eq!(results.total, newest.len(), "each once");
                assert_eq!(indexed, newest);
            }
        });
    }
}

#[tokio::test]
async fn a_damaged_file_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let sink = open(folder.path());
    deliver(&*sink, &documents(0..50)).await;
    let path = folder.path().join("search");
    assert!(sink.check(now()).await.is_ok());
    SearchIndex::check_integrity(&path).unwrap();

    let mut stored = None;
    let mut folders = vec![path.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap().path();
            match entry.extension() {
                _ if entry.is_dir() => folders.push(entry),
                Some(extension) if extension == "store" => stored = Some(entry),
                _ => {}
            }
        }
    }
    let stored = stored.unwrap();
    let mut bytes = std::fs::read(&stored).unwrap();
    bytes[10] ^= 1;
    // Replaced, as the old file may be mapped into memory.
    std::fs::remove_file(&stored).unwrap();
    std::fs::write(&stored, bytes).unwrap();
    let error = SearchIndex::check_integrity(&path).unwrap_err();
    assert!(matches!(error, SearchError::Damaged(..)), "{error}");
    let report = sink.check(now()).await;
    assert!(!report.is_ok(), "{report}");
    assert!(report.to_string().contains("sink rebuild"), "{report}");
}
