//! Documents as lines of JSON, in files rotated by size and day. A document is
//! accepted when its line is on disk. A log, not a table: every revision is a
//! line of its own, and readers use the highest one.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::PathBuf;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Deserialize;
use tidings_document::Document;

use crate::context::{Context, yes};
use crate::licensed_text;
use crate::rotating_files::{
    CompleteRecords, Format, Record, RecordKey, RotatingFiles, record_revision,
};
use crate::sink::{BatchLimits, Report, Sink, Verdict};

/// `kind = "jsonl"`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JsonlConfig {
    /// The folder of the files.
    pub path: PathBuf,
    /// A file is closed when it is larger, and when its day (UTC) is over.
    #[serde(default = "max_file_bytes")]
    pub max_file_bytes: u64,
    /// False: only what the licence allows to export.
    #[serde(default = "yes")]
    pub full_text: bool,
}

fn max_file_bytes() -> u64 {
    256 * 1024 * 1024
}

#[derive(Debug)]
pub(crate) struct Jsonl {
    name: String,
    files: RotatingFiles,
    full_text: bool,
}

impl Jsonl {
    pub(crate) fn new(name: &str, config: &JsonlConfig, context: &Context) -> Self {
        let format = Format {
            extension: "jsonl",
            header: |_, _| Vec::new(),
            scan,
        };
        let folder = context.folder.join(&config.path);
        Self {
            name: name.to_owned(),
            files: RotatingFiles::new(folder, name, config.max_file_bytes, format),
            full_text: config.full_text,
        }
    }
}

/// Scans up to the first incomplete line.
fn scan(file: &mut BufReader<File>) -> io::Result<CompleteRecords> {
    let mut complete = CompleteRecords::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let bytes = file.read_until(b'\n', &mut line)?;
        let Ok(key) = serde_json::from_slice::<RecordKey>(&line) else {
            return Ok(complete);
        };
        if line.last() != Some(&b'\n') {
            return Ok(complete);
        }
        complete.bytes += bytes as u64;
        record_revision(&mut complete.revisions, &key.id, key.revision);
    }
}

#[async_trait]
impl Sink for Jsonl {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_local(&self) -> bool {
        true
    }

    fn limits(&self) -> BatchLimits {
        BatchLimits {
            max_docs: 1000,
            max_bytes: 16 * 1024 * 1024,
        }
    }

    async fn deliver(&self, batch: &[Document], now: Timestamp) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::Accepted; batch.len()];
        let mut records = Vec::with_capacity(batch.len());
        for (document, verdict) in batch.iter().zip(&mut verdicts) {
            match licensed_text::json(document, self.full_text) {
                Ok(mut bytes) => {
                    bytes.push(b'\n');
                    records.push(Record {
                        id: document.id.clone(),
                        revision: document.revision,
                        bytes,
                    });
                }
                Err(error) => *verdict = Verdict::dead(error.to_string()),
            }
        }
        if let Err(error) = self.files.append(records, now).await {
            let error = format!("{}: {error}", self.files.folder().display());
            return vec![Verdict::retry(error); batch.len()];
        }
        verdicts
    }

    async fn check(&self, now: Timestamp) -> Report {
        let mut report = Report::default();
        let opened = self.files.append(Vec::new(), now).await;
        let found = opened
            .map(|()| format!("{} is writable", self.files.folder().display()))
            .map_err(|error| format!("{}: {error}", self.files.folder().display()));
        report.record("folder", found);
        report
    }
}
