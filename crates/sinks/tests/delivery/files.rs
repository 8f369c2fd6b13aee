//! JSONL and WARC: the content of the files, their rotation, and recovery from an
//! incomplete record that a killed writer left.

use jiff::Timestamp;
use serde_json::Value;
use tidings_document::HttpFacts;
use tidings_sinks::Verdict;

use crate::fixture::files::{KINDS, all, bytes_of, names, open, open_with, warc_records};
use crate::fixture::{deliver, document, documents, error_of, is_retry, now};

fn later(hours: i64) -> Timestamp {
    now() + jiff::SignedDuration::from_hours(hours)
}

#[tokio::test]
async fn files_are_rotated_by_size_and_day_and_only_then_have_their_final_name() {
    for (kind, end) in [("jsonl", "jsonl"), ("warc", "warc.gz")] {
        let folder = tempfile::tempdir().unwrap();
        let sink = open_with(kind, folder.path(), "max_file_bytes = 2000");
        let file = |day: u32, number: u32| format!("main-202611{day}-{number:06}.{end}");
        let part = |day, number| format!("{}.part", file(day, number));
        deliver(&*sink, &documents(0..10)).await;
        assert_eq!(names(folder.path()), [part(15, 1)]);
        deliver(&*sink, &documents(10..11)).await;
        assert_eq!(names(folder.path()), [file(15, 1), part(15, 2)]);
        // The same again, after the file was closed: not written twice.
        deliver(&*sink, &documents(0..11)).await;
        assert_eq!(all(folder.path()).len(), 11);
        // Nothing new, and a new day.
        assert!(sink.deliver(&[], later(14)).await.is_empty());
        assert_eq!(names(folder.path()), [file(15, 1), part(15, 2)]);
        assert!(sink.deliver(&[], later(15)).await.is_empty());
        assert_eq!(names(folder.path()), [file(15, 1), file(15, 2)]);
        sink.deliver(&documents(11..12), later(15)).await;
        assert_eq!(
            names(folder.path()),
            [file(15, 1), file(15, 2), part(16, 1)]
        );
        assert_eq!(all(folder.path()).len(), 12);
        assert!(sink.check(later(15)).await.is_ok());
    }
}

#[tokio::test]
async fn documents_are_read_back_unchanged() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let batch = documents(0..5);
        let sink = open(kind, folder.path());
        assert_eq!(deliver(&*sink, &batch).await, vec![Verdict::Accepted; 5]);
        assert_eq!(all(folder.path()), batch, "{kind}");
        // A newer revision is another record, an older one is none.
        deliver(&*sink, &[document(2, 3), document(2, 2)]).await;
        deliver(&*sink, &[document(2, 1)]).await;
        let revisions: Vec<_> = all(folder.path())
            .iter()
            .skip(5)
            .map(|it| it.revision)
            .collect();
        assert_eq!(revisions, [3, 2], "{kind}");
        let folder = tempfile::tempdir().unwrap();
        let short = open_with(kind, folder.path(), "full_text = false");
        deliver(&*short, &batch[..1]).await;
        assert_eq!(all(folder.path())[0].body_text, batch[0].excerpt);
    }
}

#[tokio::test]
async fn an_incomplete_record_is_truncated_wherever_it_was_cut() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        deliver(&*open(kind, folder.path()), &documents(0..3)).await;
        let name = names(folder.path()).remove(0);
        let whole = bytes_of(folder.path(), &name);
        deliver(&*open(kind, folder.path()), &documents(4..5)).await;
        let longer = bytes_of(folder.path(), &name);
        let cuts = (whole.len()..longer.len())
            .step_by(7)
            .chain([whole.len() + 1, longer.len() - 1]);
        for cut in cuts {
            std::fs::write(folder.path().join("out").join(&name), &longer[..cut]).unwrap();
            let sink = open(kind, folder.path());
            deliver(&*sink, &documents(4..5)).await;
            assert_eq!(
                bytes_of(folder.path(), &name),
                longer,
                "{kind} cut at {cut}"
            );
        }
        // Nothing of the first record is left: begin again.
        for cut in [0, 1, whole.len() / 10] {
            std::fs::write(folder.path().join("out").join(&name), &whole[..cut]).unwrap();
            deliver(&*open(kind, folder.path()), &documents(0..3)).await;
            assert_eq!(all(folder.path()), documents(0..3), "{kind} cut at {cut}");
        }
    }
}

#[tokio::test]
async fn a_second_writer_is_rejected_and_a_missing_folder_is_retried() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let first = open(kind, folder.path());
        deliver(&*first, &documents(0..1)).await;
        let second = open(kind, folder.path());
        let verdict = &deliver(&*second, &documents(1..2)).await[0];
        assert!(
            error_of(verdict).contains("another process writes"),
            "{verdict:?}"
        );
        drop(first);
        assert_eq!(
            deliver(&*second, &documents(1..2)).await,
            [Verdict::Accepted]
        );
        assert_eq!(all(folder.path()).len(), 2);
        // A file where the folder should be.
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("out"), "").unwrap();
        let sink = open(kind, folder.path());
        assert!(is_retry(&deliver(&*sink, &documents(0..1)).await[0]));
        assert!(!sink.check(now()).await.is_ok());
        std::fs::remove_file(folder.path().join("out")).unwrap();
        assert_eq!(deliver(&*sink, &documents(0..1)).await, [Verdict::Accepted]);
    }
}

#[tokio::test]
async fn a_warc_has_the_page_and_its_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let mut batch = documents(2..4);
    batch[0].http = HttpFacts {
        status: 203,
        ..HttpFacts::default()
    };
    deliver(&*open("warc", folder.path()), &batch).await;
    let records = warc_records(&bytes_of(folder.path(), &names(folder.path())[0]));
    let kinds: Vec<_> = records
        .iter()
        .map(|(head, _)| head["WARC-Type"].as_str())
        .collect();
    assert_eq!(kinds, ["warcinfo", "response", "metadata", "metadata"]);
    let (head, block) = &records[1];
    assert_eq!(head["WARC-Target-URI"], batch[0].url);
    assert_eq!(head["WARC-Date"], "2026-11-15T09:00:00Z");
    assert_eq!(head["Content-Type"], "application/http;msgtype=response");
    let block = String::from_utf8(block.clone()).unwrap();
    assert!(block.starts_with("HTTP/1.1 203 "), "{block}");
    assert!(
        block.ends_with("\r\n\r\n<h1>Story 2 revision 1</h1>"),
        "{block}"
    );
    assert!(
        !block.contains("Content-Encoding") && !block.contains("\nWARC-Type"),
        "{block}"
    );
    let (about, json) = &records[2];
    assert_eq!(about["WARC-Concurrent-To"], head["WARC-Record-ID"]);
    let json: Value = serde_json::from_slice(json).unwrap();
    assert_eq!(json["title"], batch[0].title.as_str());
    assert!(
        !records[3].0.contains_key("WARC-Concurrent-To"),
        "no page, no response"
    );
}
