//! WARC 1.1 files, as archives and their tools read them: for each document the
//! page as a `response` record, where it is archived, and its fields as a
//! `metadata` record. One gzip member for each record.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use ring::digest;
use serde::Deserialize;
use tidings_document::Document;
use tidings_text::hex;

use crate::context::{Context, yes};
use crate::licensed_text;
use crate::page_source::{Page, PageSource};
use crate::rotating_files::{
    CompleteRecords, Format, Record, RecordKey, RotatingFiles, record_revision,
};
use crate::sink::{BatchLimits, Report, Sink, Verdict};

/// `kind = "warc"`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarcConfig {
    /// The folder of the files.
    pub path: PathBuf,
    /// A file is closed when it is larger, and when its day (UTC) is over.
    #[serde(default = "max_file_bytes")]
    pub max_file_bytes: u64,
    /// False: of the text, only what the licence allows to export. Pages are
    /// archived unchanged.
    #[serde(default = "yes")]
    pub full_text: bool,
}

/// The size that the WARC specification recommends.
fn max_file_bytes() -> u64 {
    1024 * 1024 * 1024
}

#[derive(Debug)]
pub(crate) struct Warc {
    name: String,
    files: RotatingFiles,
    full_text: bool,
    pages: Option<Arc<dyn PageSource>>,
}

impl Warc {
    pub(crate) fn new(name: &str, config: &WarcConfig, context: &Context) -> Self {
        let format = Format {
            extension: "warc.gz",
            header: warcinfo,
            scan,
        };
        let folder = context.folder.join(&config.path);
        Self {
            name: name.to_owned(),
            files: RotatingFiles::new(folder, name, config.max_file_bytes, format),
            full_text: config.full_text,
            pages: context.pages.clone(),
        }
    }

    async fn record(&self, document: &Document) -> Result<Record, Verdict> {
        let page = match &self.pages {
            Some(pages) => pages.page(document).await.map_err(|error| {
                Verdict::retry(format!(
                    "cannot read the archived page of {}: {error}",
                    document.id
                ))
            })?,
            None => None,
        };
        let metadata = licensed_text::json(document, self.full_text)
            .map_err(|error| Verdict::dead(error.to_string()))?;
        let mut bytes = Vec::new();
        let mut about = Vec::new();
        if let Some(page) = page {
            let id = record_id(document, "response");
            bytes.extend(response(document, &page, &id));
            about.push(("WARC-Concurrent-To", id));
        }
        about.push(("WARC-Target-URI", strip_whitespace(document.address())));
        about.push(("Content-Type", "application/json".to_owned()));
        let id = record_id(document, "metadata");
        bytes.extend(member(
            "metadata",
            &id,
            document.fetched_at,
            &about,
            &metadata,
        ));
        Ok(Record {
            id: document.id.clone(),
            revision: document.revision,
            bytes,
        })
    }
}

/// The response of the site. The body is stored decoded, so the headers about
/// its encoding and length no longer apply.
fn response(document: &Document, page: &Page, id: &str) -> Vec<u8> {
    let status = match document.http.status {
        0 => 200,
        status => status,
    };
    let mut block = format!("HTTP/1.1 {status} {}\r\n", reason(status)).into_bytes();
    let is_stale = |name: &str| {
        ["content-encoding", "transfer-encoding", "content-length"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
    };
    for (name, value) in page.headers.iter().filter(|(name, _)| !is_stale(name)) {
        let line = format!("{}: {}\r\n", strip_whitespace(name), single_line(value));
        block.extend(line.into_bytes());
    }
    block.extend(format!("Content-Length: {}\r\n\r\n", page.body.len()).into_bytes());
    block.extend(&page.body);
    let headers = [
        ("WARC-Target-URI", strip_whitespace(document.address())),
        (
            "Content-Type",
            "application/http;msgtype=response".to_owned(),
        ),
        ("WARC-Payload-Digest", sha256(&page.body)),
    ];
    member("response", id, document.fetched_at, &headers, &block)
}

fn warcinfo(name: &str, now: Timestamp) -> Vec<u8> {
    let block = format!(
        "software: Tidings/{}\r\nformat: WARC File Format 1.1\r\n",
        env!("CARGO_PKG_VERSION")
    );
    let headers = [
        ("WARC-Filename", name.to_owned()),
        ("Content-Type", "application/warc-fields".to_owned()),
    ];
    let id = urn(format!("{name} {now}").as_bytes());
    member("warcinfo", &id, now, &headers, block.as_bytes())
}

/// One record as one gzip member.
fn member(
    kind: &str,
    id: &str,
    date: Timestamp,
    headers: &[(&str, String)],
    block: &[u8],
) -> Vec<u8> {
    let mut head = format!("WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {id}\r\n");
    head.push_str(&format!("WARC-Date: {date:.0}\r\n"));
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("WARC-Block-Digest: {}\r\n", sha256(block)));
    head.push_str(&format!("Content-Length: {}\r\n\r\n", block.len()));
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    for part in [head.as_bytes(), block, b"\r\n\r\n"] {
        // Writing to memory does not fail.
        let _ = gzip.write_all(part);
    }
    gzip.finish().unwrap_or_default()
}

/// Deterministic: the same revision of a document always has the same ids.
fn record_id(document: &Document, kind: &str) -> String {
    let name = format!("{} {} {kind}", document.id, document.revision);
    urn(name.as_bytes())
}

/// A custom UUID (RFC 9562, version 8).
fn urn(name: &[u8]) -> String {
    let hash = digest::digest(&digest::SHA256, name);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.as_ref()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = hex::encode(bytes);
    let parts = [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ];
    format!("<urn:uuid:{}>", parts.join("-"))
}

fn sha256(bytes: &[u8]) -> String {
    format!(
        "sha256:{}",
        hex::encode(digest::digest(&digest::SHA256, bytes))
    )
}

fn single_line(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

fn strip_whitespace(text: &str) -> String {
    text.replace(|c: char| c.is_control() || c.is_whitespace(), "")
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        404 => "Not Found",
        410 => "Gone",
        _ => "Answered",
    }
}

/// Scans up to the last complete metadata record: a response without one was
/// never accepted.
fn scan(file: &mut BufReader<File>) -> io::Result<CompleteRecords> {
    let mut complete = CompleteRecords::default();
    let mut record = Vec::new();
    loop {
        record.clear();
        let read = GzDecoder::new(&mut *file).read_to_end(&mut record);
        if read.is_err() || record.is_empty() {
            return Ok(complete);
        }
        let end = file.stream_position()?;
        if record.starts_with(b"WARC/1.1\r\nWARC-Type: metadata\r\n") {
            let Some(key) = key_of(&record) else {
                return Ok(complete);
            };
            record_revision(&mut complete.revisions, &key.id, key.revision);
            complete.bytes = end;
        }
    }
}

fn key_of(record: &[u8]) -> Option<RecordKey> {
    let head_end = record.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let block = record[head_end..].strip_suffix(b"\r\n\r\n")?;
    serde_json::from_slice(block).ok()
}

#[async_trait]
impl Sink for Warc {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_local(&self) -> bool {
        true
    }

    fn limits(&self) -> BatchLimits {
        // Each may come with a page of some megabytes.
        BatchLimits {
            max_docs: 50,
            max_bytes: 8 * 1024 * 1024,
        }
    }

    async fn deliver(&self, batch: &[Document], now: Timestamp) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::Accepted; batch.len()];
        let mut records = Vec::with_capacity(batch.len());
        for (document, verdict) in batch.iter().zip(&mut verdicts) {
            match self.record(document).await {
                Ok(record) => records.push(record),
                Err(failed) => *verdict = failed,
            }
        }
        if records.is_empty() && !batch.is_empty() {
            return verdicts;
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
        if report.record("folder", found) {
            let pages = match &self.pages {
                Some(_) => "archived pages are written as response records",
                None => "no page archive: only metadata records are written",
            };
            report.record("pages", Ok(pages.to_owned()));
        }
        report
    }
}
