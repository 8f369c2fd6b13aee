//! Embedded search: a killed writer loses nothing that it had accepted.

use std::path::Path;
use std::time::{Duration, Instant};

use tidings_sinks::{SearchIndex, SearchQuery, Sink, Verdict};

use crate::child::{self, Child};
use crate::fixture::{context, deliver, document, try_sink};

fn open(folder: &Path) -> Box<dyn Sink> {
    try_sink("kind = \"search\"", &context(folder)).unwrap()
}

/// Writes until it is killed; reports the number of accepted documents.
#[tokio::test]
async fn writing_process() {
    let Some((folder, mut progress)) = child::started_as("search") else {
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
            child::report_progress(&mut progress, (n + 1) * 20);
        }
    }
}

#[tokio::test]
async fn a_killed_writer_loses_nothing_that_was_accepted() {
    let folder = tempfile::tempdir().unwrap();
    for life in 0..4 {
        let mut child = Child::start("search::writing_process", "search", folder.path());
        child.wait_for_progress(20);
        let until = Instant::now() + Duration::from_millis(40 + 37 * life);
        while Instant::now() < until {
            std::thread::yield_now();
        }
        let accepted = child.kill() as u64;
        let reader = SearchIndex::open(folder.path().join("search")).unwrap();
        let indexed = reader.count().unwrap();
        assert!(
            indexed >= accepted,
            "{accepted} were accepted, {indexed} are indexed"
        );
        for n in 0..accepted as usize {
            let hits = reader
                .search(&SearchQuery::new(format!("id:{n:064x}")))
                .unwrap();
            assert_eq!(hits.total, 1, "document {n} once");
        }
    }
}
