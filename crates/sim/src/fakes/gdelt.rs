//! A fake GDELT: the DOC API (250 at a time, plain-text errors with 200) and the
//! packed files of every quarter of an hour, some of which may be missing.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use serde_json::json;

use super::api::{ApiState, FakeApi, Parameters};
use super::http::{Call, Reply};

const SLOT: i64 = 15 * 60;

impl FakeApi {
    pub async fn gdelt() -> io::Result<Self> {
        Self::start(respond).await
    }
}

fn stamp(at: i64, format: &str) -> String {
    let time = jiff::Timestamp::from_second(at).unwrap_or_default();
    time.strftime(format).to_string()
}

fn name(slot: i64) -> String {
    format!("{}.export.CSV.zip", stamp(slot, "%Y%m%d%H%M%S"))
}

fn respond(state: &mut ApiState, call: &Call, parameters: &Parameters) -> Reply {
    if call.path == "/api/v2/doc/doc" {
        return articles(state, parameters);
    }
    let newest = state.now / SLOT * SLOT;
    if call.path == "/gdeltv2/lastupdate.txt" {
        let name = name(newest);
        let file = file(state, newest);
        let sum = state.key.clone().unwrap_or_else(|| md5(&file));
        let line = format!(
            "{} {sum} http://data.gdeltproject.org/gdeltv2/{name}\n",
            file.len()
        );
        return Reply::text(200, &line);
    }
    let wanted = call.path.trim_start_matches("/gdeltv2/");
    let slot = (0..400)
        .map(|back| newest - back * SLOT)
        .find(|slot| name(*slot) == wanted);
    match slot.filter(|_| !state.missing.contains(wanted)) {
        None => Reply::text(404, "NoSuchKey"),
        Some(slot) => Reply::Response {
            status: 200,
            headers: vec![("Content-Type", "application/zip".to_owned())],
            body: file(state, slot),
        },
    }
}

fn articles(state: &ApiState, parameters: &Parameters) -> Reply {
    if parameters.get("query").unwrap_or_default().len() < 3 {
        return Reply::text(200, "Your query was too short or too long.\n");
    }
    let number = |name: &str| parameters.get(name).unwrap_or_default().to_owned();
    let (from, to) = (number("startdatetime"), number("enddatetime"));
    let mut listed: Vec<_> = state
        .stories
        .iter()
        .filter(|story| {
            let at = stamp(story.at, "%Y%m%d%H%M%S");
            at >= from && at <= to
        })
        .collect();
    if listed.is_empty() {
        return Reply::text(200, "{}");
    }
    listed.sort_by_key(|story| (story.at, story.id));
    let most = parameters.number("maxrecords", 75).min(250);
    let articles: Vec<_> = listed
        .iter()
        .take(most)
        .map(|story| {
            json!({
                "url": story.url, "url_mobile": "", "title": story.title,
                "seendate": stamp(story.at, "%Y%m%dT%H%M%SZ"), "socialimage": "",
                "domain": "paper.example", "language": "English", "sourcecountry": "",
            })
        })
        .collect();
    // As the service writes it: with escapes that JSON has not.
    let text = json!({ "articles": articles }).to_string();
    Reply::text(200, &text.replace("Story 1\"", "Story\\' 1\""))
}

/// The events of one quarter of an hour: 61 columns, each address twice.
fn file(state: &ApiState, slot: i64) -> Vec<u8> {
    let mut table = String::new();
    for story in &state.stories {
        if story.at / SLOT * SLOT == slot {
            for _ in 0..2 {
                let _ = writeln!(table, "{}{}", "x\t".repeat(60), story.url);
            }
        }
    }
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
    let written = packed.write_all(table.as_bytes());
    let data = written.and_then(|()| packed.finish()).unwrap_or_default();
    let mut crc = Crc::new();
    crc.update(table.as_bytes());
    let mut zip = Vec::new();
    zip.extend_from_slice(&0x0403_4b50_u32.to_le_bytes());
    zip.extend_from_slice(&[20, 0, 0, 0, 8, 0, 0, 0, 0, 0]);
    for number in [crc.sum(), data.len() as u32, table.len() as u32] {
        zip.extend_from_slice(&number.to_le_bytes());
    }
    zip.extend_from_slice(&[1, 0, 0, 0, b'x']);
    zip.extend(data);
    zip
}

fn md5(bytes: &[u8]) -> String {
    use md5::{Digest as _, Md5};
    tidings_text::hex::encode(Md5::digest(bytes))
}
