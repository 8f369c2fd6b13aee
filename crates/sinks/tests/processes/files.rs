//! JSONL and WARC: a killed writer leaves neither an incomplete file nor an
//! incomplete record, and the reference reader agrees.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use tidings_sinks::Verdict;

use crate::child::{self, Child};
use crate::fixture::files::{KINDS, all, names, open, open_with, read};
use crate::fixture::{deliver, document, documents, until_done};

/// `warcio` is the reference reader; where it is installed it must agree.
#[tokio::test]
async fn the_reference_reader_accepts_the_files() {
    let folder = tempfile::tempdir().unwrap();
    deliver(&*open("warc", folder.path()), &documents(0..20)).await;
    let python = std::env::var("TIDINGS_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_warcio = Command::new(&python).args(["-c", "import warcio"]).output();
    if !has_warcio.is_ok_and(|output| output.status.success()) {
        let note = "skipped: python3 has no warcio (pip install warcio)\n";
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return;
    }
    let part = folder.path().join("out").join(&names(folder.path())[0]);
    let file: PathBuf = folder.path().join("whole.warc.gz");
    std::fs::copy(part, &file).unwrap();
    let check = "import sys; from warcio.archiveiterator import ArchiveIterator
kinds = []
for record in ArchiveIterator(open(sys.argv[1], 'rb'), check_digests='raise'):
    body = record.content_stream().read()
    kinds.append(record.rec_type)
    if record.rec_type == 'response':
        assert record.http_headers.get_statuscode() == '200', record.http_headers
        assert body.startswith(b'<h1>Story'), body
print(kinds.count('warcinfo'), kinds.count('response'), kinds.count('metadata'))";
    let output = Command::new(&python)
        .args(["-c", check])
        .arg(&file)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        printed.trim(),
        "1 19 20",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Writes batches from the last reported one, until it is killed.
async fn write_until_killed(kind: &str) {
    let Some((folder, mut progress)) = child::started_as(kind) else {
        return;
    };
    let accepted = std::fs::read_to_string(folder.join("from")).unwrap();
    let sink = open_with(kind, &folder, "max_file_bytes = 30000");
    for n in accepted.parse::<usize>().unwrap() / 10.. {
        let batch: Vec<_> = (n * 10..n * 10 + 10).map(|n| document(n, 1)).collect();
        let verdicts = deliver(&*sink, &batch).await;
        assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Accepted));
        child::report_progress(&mut progress, n * 10 + 10);
    }
}

#[tokio::test]
async fn jsonl_process() {
    write_until_killed("jsonl").await;
}

#[tokio::test]
async fn warc_process() {
    write_until_killed("warc").await;
}

#[test]
fn killed_writers_leave_complete_files_and_each_document_once() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let mut accepted = 0;
        for life in 0..8 {
            std::fs::write(folder.path().join("from"), accepted.to_string()).unwrap();
            let mut child = Child::start(&format!("files::{kind}_process"), kind, folder.path());
            child.wait_for_progress(accepted + 10);
            let until = Instant::now() + Duration::from_micros(3_000 + 7_919 * life);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            accepted = child.kill();
            for name in names(folder.path())
                .iter()
                .filter(|name| !name.ends_with(".part"))
            {
                assert!(!read(folder.path(), name).is_empty(), "{name}");
            }
        }
        // The last one is opened once more, as a restart would.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let sink = open_with(kind, folder.path(), "max_file_bytes = 30000");
        let rest: Vec<_> = (accepted..accepted + 10).map(|n| document(n, 1)).collect();
        runtime.block_on(until_done(&*sink, rest));
        let mut ids: Vec<_> = all(folder.path()).into_iter().map(|it| it.id).collect();
        ids.sort();
        let expected: Vec<_> = (0..accepted + 10).map(|n| document(n, 1).id).collect();
        assert_eq!(ids, expected, "{kind}");
        assert!(names(folder.path()).len() > 2, "{kind}: files were rotated");
    }
}
