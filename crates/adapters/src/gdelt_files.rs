//! The files that GDELT writes every quarter of an hour: packed tables of what
//! was seen where. Each is read once; one that is missing is requested again for
//! a day. Checksums are verified where the list has them.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::time::Duration;

use flate2::Crc;
use flate2::read::DeflateDecoder;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tidings_document::License;
use tidings_text::hex;

use crate::adapter::{AdapterError, AdapterErrorKind, AdapterItem, Pull, PullContext};
use crate::requests::{Session, number};
use crate::window::Window;

const SERVICE: &str = "http://data.gdeltproject.org";
const SLOT_SECONDS: i64 = 15 * 60;
pub(crate) const MAX_SLOTS: u64 = 8;
/// A missing file is not expected after this many seconds.
const MISSING_TTL: i64 = 86_400;
/// How long URLs are remembered, because later files mention them again.
const SEEN_TTL: Duration = Duration::from_secs(86_400);
const MAX_UNPACKED_BYTES: u64 = 500 * 1024 * 1024;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Cursor {
    /// The next file, by its time in seconds.
    next: Option<i64>,
    missing: BTreeSet<i64>,
    window: Window,
}

/// A file of the list.
struct Newest {
    slot: i64,
    md5: String,
}

pub(crate) async fn pull(
    session: &mut Session<'_>,
    config: &Json,
    cursor: Option<&str>,
    context: &PullContext<'_>,
) -> Result<Pull, AdapterError> {
    let table = match config["table"].as_str() {
        Some("mentions") => ("mentions.CSV.zip", Some(5)),
        Some("gkg") => ("gkg.csv.zip", Some(4)),
        // The address is in the last column.
        _ => ("export.CSV.zip", None),
    };
    let known = cursor.and_then(|text| serde_json::from_str(text).ok());
    let mut cursor: Cursor = known.unwrap_or_default();
    let newest = newest(session, table.0).await?;
    let first = *cursor.next.get_or_insert(newest.slot);
    let oldest = newest.slot - MISSING_TTL;
    cursor.missing.retain(|slot| *slot >= oldest);
    let later = (0..)
        .map(|n| first + n * SLOT_SECONDS)
        .take_while(|slot| *slot <= newest.slot);
    let wanted: Vec<i64> = cursor.missing.iter().copied().chain(later).collect();
    let max_slots = number(config, "max_slots", MAX_SLOTS) as usize;
    let mut pull = Pull {
        has_more: wanted.len() > max_slots,
        ..Pull::default()
    };
    for slot in wanted.into_iter().take(max_slots) {
        let md5 = (slot == newest.slot).then_some(newest.md5.as_str());
        let rows = match file(session, slot, table.0, md5).await {
            Ok(rows) => rows,
            Err(error) if pull.items.is_empty() => return Err(error),
            Err(error) => {
                pull.note = Some(error.message);
                pull.has_more = true;
                break;
            }
        };
        let is_there = rows.is_some();
        for url in rows.iter().flat_map(|rows| addresses(rows, table.1)) {
            if cursor.window.contains(url) {
                continue;
            }
            if pull.items.len() >= context.max_items {
                // The file is read again; the URLs that were delivered are known.
                pull.has_more = true;
                return Ok(finish(pull, &cursor));
            }
            cursor.window.insert(url, slot);
            pull.items.push(AdapterItem {
                url: url.to_owned(),
                guid: url.to_owned(),
                published: Timestamp::from_second(slot).ok(),
                license: Some(License::Api),
                ..AdapterItem::default()
            });
        }
        match is_there {
            true => cursor.missing.remove(&slot),
            false => cursor.missing.insert(slot),
        };
        cursor.next = cursor.next.map(|next| next.max(slot + SLOT_SECONDS));
    }
    cursor.window.advance();
    Ok(finish(pull, &cursor))
}

fn finish(pull: Pull, cursor: &Cursor) -> Pull {
    let stored = Cursor {
        next: cursor.next,
        missing: cursor.missing.clone(),
        window: Window::parse(Some(&cursor.window.to_json(SEEN_TTL))),
    };
    Pull {
        // Strings and numbers only: there is nothing that could fail.
        cursor: serde_json::to_string(&stored).unwrap_or_else(|_| "{}".to_owned()),
        ..pull
    }
}

fn malformed(why: &str) -> AdapterError {
    AdapterError::new(AdapterErrorKind::Malformed, why)
}

/// The newest file of a table: size, checksum and address on a line.
async fn newest(session: &mut Session<'_>, table: &str) -> Result<Newest, AdapterError> {
    let url = session.address(SERVICE, "/gdeltv2/lastupdate.txt", &[])?;
    let response = session.get(&url).await?;
    if !response.is_success() {
        return Err(session.status_error(&response, None));
    }
    let text = String::from_utf8_lossy(&response.body);
    let found = text.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (md5, url) = (words.next()?, words.next()?);
        let stamp = url
            .strip_suffix(table)?
            .strip_suffix('.')?
            .rsplit('/')
            .next()?;
        let time = DateTime::strptime("%Y%m%d%H%M%S", stamp).ok()?;
        Some(Newest {
            slot: time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second(),
            md5: md5.to_owned(),
        })
    });
    found.ok_or_else(|| malformed("the list of the newest files is not as documented"))
}

/// A table, unpacked; `None` when the file is not there.
async fn file(
    session: &mut Session<'_>,
    slot: i64,
    table: &str,
    md5: Option<&str>,
) -> Result<Option<String>, AdapterError> {
    let time = Timestamp::from_second(slot).unwrap_or_default();
    let path = format!("/gdeltv2/{}.{table}", time.strftime("%Y%m%d%H%M%S"));
    let response = session
        .get_large(&session.address(SERVICE, &path, &[])?)
        .await?;
    match response.status {
        404 => return Ok(None),
        200 => {}
        _ => return Err(session.status_error(&response, None)),
    }
    let sum = hex::encode(Md5::digest(&response.body));
    if md5.is_some_and(|md5| !md5.eq_ignore_ascii_case(&sum)) {
        return Err(malformed("the checksum of a file differs from the list"));
    }
    let bytes =
        unzipped(&response.body).ok_or_else(|| malformed("a file is not a valid zip archive"))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The first file of a zip archive, checked against its checksum.
fn unzipped(archive: &[u8]) -> Option<Vec<u8>> {
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let digits = archive.get(at..at + bytes)?.iter().rev();
        Some(digits.fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    let is_deflated = number(0, 4)? == 0x0403_4b50 && number(8, 2)? == 8;
    let start = 30 + number(26, 2)? + number(28, 2)?;
    let mut bytes = Vec::new();
    let mut packed = DeflateDecoder::new(archive.get(start..)?).take(MAX_UNPACKED_BYTES);
    packed
        .read_to_end(&mut bytes)
        .ok()
        .filter(|_| is_deflated)?;
    let mut crc = Crc::new();
    crc.update(&bytes);
    // Zero when the checksum comes after the data.
    let expected = number(14, 4)?;
    (expected == 0 || expected == crc.sum() as usize).then_some(bytes)
}

/// The column with the address; the last one without a number.
fn addresses(table: &str, column: Option<usize>) -> impl Iterator<Item = &str> {
    table.lines().filter_map(move |line| {
        let mut columns = line.split('\t');
        let found = match column {
            Some(column) => columns.nth(column),
            None => columns.next_back(),
        };
        found.map(str::trim).filter(|url| url.starts_with("http"))
    })
}
