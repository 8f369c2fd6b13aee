//! The URLs of a bulk submit, parsed while the body arrives: a JSON array, JSON lines
//! or CSV. What is in memory is the URLs, of which there is a limit, and one entry,
//! which has one, too; never the body.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead as _, BufReader, Read};
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::StatusCode;
use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::body_fields::BodyFields;
use crate::params::MAX_ID;
use crate::problem::Problem;

const MAX_URLS: usize = 100_000;
/// Of one entry with what separates it from others; a URL is much shorter.
const MAX_ENTRY_BYTES: usize = 64 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One item of a request.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) url: String,
    pub(crate) source_id: i64,
    pub(crate) priority: u8,
}

/// A body that was read to its end.
#[derive(Debug)]
pub(crate) struct BulkBody {
    pub(crate) items: Vec<Item>,
    /// Of all its bytes.
    pub(crate) hash: [u8; 32],
}

/// Reads a body of at most `max_bytes` within `timeout`.
pub(crate) async fn read(
    body: Body,
    media_type: &str,
    max_bytes: usize,
    timeout: Duration,
) -> Result<BulkBody, Problem> {
    let parse: fn(&mut BodyReader, &Entries) -> Result<(), Problem> = match media_type {
        "application/json" => parse_array,
        "application/x-ndjson" | "application/jsonl" | "application/ndjson" => parse_lines,
        "text/csv" => parse_csv,
        _ => {
            return Err(Problem {
                field: Some("content-type".to_owned()),
                ..Problem::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "send application/json, application/x-ndjson or text/csv",
                )
            });
        }
    };
    let (runtime, deadline) = (Handle::current(), Instant::now() + timeout);
    let mut reader = BodyReader {
        body: body.into_data_stream(),
        runtime,
        deadline,
        timeout,
        chunk: Bytes::new(),
        left: max_bytes,
        max_bytes,
        hash: Sha256::new(),
    };
    // The parsers read from a blocking reader.
    let read = tokio::task::spawn_blocking(move || {
        let entries = Entries::default();
        let parsed = parse(&mut reader, &entries);
        let failed = entries.problem.take().map_or(parsed, Err);
        match failed {
            Err(problem) => {
                // Whoever is still sending gets to read the response.
                while let Ok(Some(_)) = reader.next_chunk() {}
                Err(problem)
            }
            Ok(()) => Ok(BulkBody {
                items: entries.items.take(),
                hash: reader.hash.finalize().into(),
            }),
        }
    });
    let body = read.await.map_err(Problem::internal)??;
    match body.items.len() {
        0 => Err(Problem::field("body", "the body has no URL")),
        _ => Ok(body),
    }
}

/// The bytes of a body, for a thread that may block.
struct BodyReader {
    body: BodyDataStream,
    runtime: Handle,
    deadline: Instant,
    timeout: Duration,
    chunk: Bytes,
    /// Bytes that may still come.
    left: usize,
    max_bytes: usize,
    hash: Sha256,
}

impl BodyReader {
    fn next_chunk(&mut self) -> Result<Option<Bytes>, Problem> {
        // Inside of the block: a timeout needs the runtime.
        let next = async { tokio::time::timeout_at(self.deadline, self.body.next()).await };
        let chunk = match self.runtime.block_on(next) {
            Err(_) => return Err(Problem::slow_body(self.timeout)),
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(Problem::long_body(self.max_bytes)),
            Ok(Some(Ok(chunk))) => chunk,
        };
        self.left = match self.left.checked_sub(chunk.len()) {
            None => return Err(Problem::long_body(self.max_bytes)),
            Some(left) => left,
        };
        self.hash.update(&chunk);
        Ok(Some(chunk))
    }
}

/// What was parsed so far.
#[derive(Debug, Default)]
struct Entries {
    items: RefCell<Vec<Item>>,
    /// Since the end of the last entry.
    entry_bytes: Cell<usize>,
    /// What a parser can only pass on as an error of its own.
    problem: RefCell<Option<Problem>>,
}

impl Entries {
    /// Another entry begins.
    fn end_entry(&self) {
        self.entry_bytes.set(0);
    }

    fn push(&self, item: Item) -> Result<(), Problem> {
        let mut items = self.items.borrow_mut();
        if items.len() == MAX_URLS {
            return Err(Problem {
                field: Some("body".to_owned()),
                ..Problem::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    format!("more than {MAX_URLS} URLs; split the request"),
                )
            });
        }
        items.push(item);
        self.end_entry();
        Ok(())
    }

    fn read<'a>(&'a self, reader: &'a mut BodyReader) -> BufReader<EntryReader<'a>> {
        BufReader::new(EntryReader {
            reader,
            entries: self,
        })
    }
}

/// Fails when one entry is too long.
struct EntryReader<'a> {
    reader: &'a mut BodyReader,
    entries: &'a Entries,
}

impl Read for EntryReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.reader.chunk.is_empty() {
            match self.reader.next_chunk() {
                Ok(Some(chunk)) => self.reader.chunk = chunk,
                Ok(None) => return Ok(0),
                Err(problem) => return Err(self.fail(problem)),
            }
        }
        let chunk = &mut self.reader.chunk;
        let length = buffer.len().min(chunk.len());
        buffer[..length].copy_from_slice(&chunk.split_to(length));
        let entry_bytes = self.entries.entry_bytes.get() + length;
        self.entries.entry_bytes.set(entry_bytes);
        if entry_bytes > MAX_ENTRY_BYTES {
            let number = self.entries.items.borrow().len() + 1;
            let why = format!("item {number} is longer than {MAX_ENTRY_BYTES} bytes");
            return Err(self.fail(Problem::field("body", why)));
        }
        Ok(length)
    }
}

impl EntryReader<'_> {
    fn fail(&self, problem: Problem) -> io::Error {
        self.entries.problem.replace(Some(problem));
        io::Error::other("the body cannot be read")
    }
}

fn parse_array(reader: &mut BodyReader, entries: &Entries) -> Result<(), Problem> {
    let mut array = serde_json::Deserializer::from_reader(entries.read(reader));
    let parsed = array.deserialize_seq(UrlArray(entries));
    parsed.and_then(|()| array.end()).map_err(|error| {
        Problem::field(
            "body",
            format!("the body is not a JSON array of URLs: {error}"),
        )
    })
}

/// Keeps the items of an array, one by one.
struct UrlArray<'a>(&'a Entries);

impl<'de> Visitor<'de> for UrlArray<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        let mut number = 0;
        while let Some(value) = array.next_element::<Json>()? {
            number += 1;
            item(value, number)
                .and_then(|item| self.0.push(item))
                .map_err(|problem| {
                    self.0.problem.replace(Some(problem));
                    A::Error::custom("invalid item")
                })?;
        }
        Ok(())
    }
}

fn parse_lines(reader: &mut BodyReader, entries: &Entries) -> Result<(), Problem> {
    let mut lines = entries.read(reader);
    let (mut line, mut number) = (Vec::new(), 0);
    // Why it fails is with the entries.
    while lines
        .read_until(b'\n', &mut line)
        .map_err(Problem::internal)?
        > 0
    {
        number += 1;
        if line.trim_ascii().is_empty() {
            entries.end_entry();
        } else {
            let value = serde_json::from_slice(&line)
                .map_err(|error| Problem::field("body", format!("line {number}: {error}")))?;
            entries.push(item(value, number)?)?;
        }
        line.clear();
    }
    Ok(())
}

/// A URL, or an object with one.
fn item(value: Json, number: usize) -> Result<Item, Problem> {
    let fields = match value {
        Json::String(url) => {
            return Ok(Item {
                url,
                source_id: 0,
                priority: 5,
            });
        }
        Json::Object(fields) => fields,
        _ => {
            return Err(Problem::field(
                "body",
                format!("item {number} is neither a URL nor an object"),
            ));
        }
    };
    let mut fields = BodyFields::new(fields, "");
    let mut read = || {
        Ok(Item {
            url: fields.text("url")?,
            source_id: fields.number("source_id", 0..=MAX_ID)?.unwrap_or(0),
            priority: fields.number("priority", 1..=10)?.unwrap_or(5) as u8,
        })
    };
    let result = read();
    let in_place = |problem: Problem| Problem {
        detail: format!("item {number}: {}", problem.detail),
        ..problem
    };
    let item = result.map_err(in_place)?;
    fields.finish().map_err(in_place)?;
    Ok(item)
}

fn parse_csv(reader: &mut BodyReader, entries: &Entries) -> Result<(), Problem> {
    let (mut input, mut start) = (entries.read(reader), Vec::new());
    // Why it fails is with the entries.
    let read = input.by_ref().take(3).read_to_end(&mut start);
    read.map_err(Problem::internal)?;
    if start == BYTE_ORDER_MARK {
        start.clear();
    }
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(io::Cursor::new(start).chain(input));
    let invalid = |why: String| Problem::field("body", why);
    let headers = reader
        .headers()
        .map_err(|error| invalid(error.to_string()))?
        .clone();
    entries.end_entry();
    let column = |name: &str| {
        headers
            .iter()
            .position(|header| header.eq_ignore_ascii_case(name))
    };
    let Some(url) = column("url") else {
        return Err(invalid("the first line has no column url".to_owned()));
    };
    let (source, priority) = (column("source_id"), column("priority"));
    for record in reader.records() {
        let record = record.map_err(|error| invalid(error.to_string()))?;
        let line = record.position().map_or(0, csv::Position::line);
        let number = |at: Option<usize>, name: &str, default: i64, max: i64| match at
            .and_then(|at| record.get(at))
            .filter(|text| !text.is_empty())
        {
            None => Ok(default),
            Some(text) => text
                .parse()
                .ok()
                .filter(|number| (default.min(1)..=max).contains(number))
                .ok_or_else(|| {
                    Problem::field(name, format!("line {line}: {name} {text:?} is invalid"))
                }),
        };
        entries.push(Item {
            url: record.get(url).unwrap_or_default().to_owned(),
            source_id: number(source, "source_id", 0, MAX_ID)?,
            priority: number(priority, "priority", 5, 10)? as u8,
        })?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use futures_util::stream;

    /// Reads a body that arrives in chunks of this many bytes.
    async fn read_in(chunk: usize, media_type: &str, text: &str) -> Result<BulkBody, Problem> {
        let chunks: Vec<_> = text.as_bytes().chunks(chunk).map(<[u8]>::to_vec).collect();
        let chunks = stream::iter(chunks.into_iter().map(Ok::<_, io::Error>));
        let timeout = Duration::from_secs(60);
        read(Body::from_stream(chunks), media_type, 200, timeout).await
    }

    #[tokio::test]
    async fn chunks_do_not_matter() {
        for (media_type, text) in [
            (
                "application/json",
                r#" ["x:1", {"url": "é:2", "priority": 9}] "#,
            ),
            (
                "application/x-ndjson",
                "\r\n\"x:1\"\r\n\n{\"url\":\"é:2\",\"priority\":9}",
            ),
            ("text/csv", "\u{feff}URL, priority\nx:1,\n\"é:2\",9\n"),
        ] {
            for chunk in [1, 2, 7, 200] {
                let body = read_in(chunk, media_type, text).await.unwrap();
                let items: Vec<_> = body
                    .items
                    .iter()
                    .map(|item| (item.url.as_str(), item.priority))
                    .collect();
                assert_eq!(items, [("x:1", 5), ("é:2", 9)], "{media_type} by {chunk}");
                assert_eq!(body.hash, <[u8; 32]>::from(Sha256::digest(text)));
            }
        }
    }

    #[tokio::test]
    async fn what_follows_or_is_too_much_is_refused() {
        for (text, status) in [
            ("[\"x:1\"] [", 400),
            ("[\"x:1\"", 400),
            ("{}", 400),
            ("", 400),
            (&format!("[{}]", "\"x:1\",".repeat(40)), 413),
        ] {
            let failed = read_in(7, "application/json", text).await;
            assert_eq!(failed.unwrap_err().status, status, "{text}");
        }
    }
}
