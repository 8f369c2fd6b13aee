//! Embedded search: a writer that is killed in the middle loses nothing that it
//! had accepted.

use std::path::Path;
use std::time::{Duration, Instant};

use tidings_sinks::{SearchIndex, SearchQuery, Sink, Verdict};

use crate::child::{self, Child};
use crate::fixture::{context, deliver, document, try_sink};

fn open(folder: &Path) -> Box<dyn Sink> {
    try_sink("kind = \"search\"", &context(folder)).unwrap()
}

/// Writes until it is killed; says what was accepted.
#[tokio::test]
async fn writing_process() {
    let Some((folder, mut said)) = child::me("search") else {
        return;
    };
    let sink = open(&folder);
    for n in 0.. {
        let batch: Vec<_> = (n * 20..n * 20 + 20).map(|n| document(n, 1)).collect();
        if deliver(&*sink, &batch)
            .await
            .iter()
            .all(|it| *it == Verdict::Accepted)
        {
            child::say(&mut said, (n + 1) * 20);
        }
    }
}

#[tokio::test]
async fn a_killed_writer_loses_nothing_that_was_accepted() {
    let folder = tempfile::tempdir().unwrap();
    for life in 0..4 {
        let mut child = Child::start("search::writing_process", "search", folder.path());
        child.wait_until_it_said(20);
        let until = Instant::now() + Duration::from_millis(40 + 37 * life);
        while Instant::now() < until {
            std::thread::yield_now();
        }
        let accepted = child.kill() as u64;
        let reader = SearchIndex::open(folder.path().join("search")).unwrap();
        let there = reader.count().unwrap();
        assert!(
            there >= accepted,
            "{accepted} were accepted, {there} are there"
        );
        for n in 0..accepted as usize {
            let hits = reader
                .search(&SearchQuery::new(format!("id:{n:064x}")))
                .unwrap();
            assert_eq!(hits.total, 1, "document {n} once");
        }
    }
}
