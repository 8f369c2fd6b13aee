//! Project Gutenberg: new ebooks from the daily catalogue, oldest first, and
//! their texts from the cache of plain texts, two seconds apart. The site itself
//! is not for robots: sources of this kind should set `as_documents`.

use std::borrow::Cow;
use std::io::Read as _;
use std::time::Duration;

use async_trait::async_trait;
use flate2::read::GzDecoder;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::Value as Json;
use tidings_document::License;

use crate::adapter::{
    AdapterError, AdapterErrorKind, AdapterItem, Pull, PullContext, SourceAdapter, Text,
};
use crate::quota::Quota;
use crate::requests::{Session, days, number, overlap};
use crate::schema;
use crate::window::Window;

const SERVICE: &str = "https://www.gutenberg.org";
const GAP: Duration = Duration::from_secs(2);
const CATALOGUE: &str = "/cache/epub/feeds/pg_catalog.csv.gz";
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The catalogue unpacked: about 20 MB today.
const MAX_UNPACKED_BYTES: u64 = 200 * 1024 * 1024;
const BACK_DAYS: u64 = 30;
/// Ebooks are dated by the day, and get into the catalogue late.
const OVERLAP_MINUTES: u64 = 7 * 24 * 60;
const MAX_TEXTS: u64 = 50;
/// The catalogue is fetched once per day; a long backfill continues hourly.
const PULLS_PER_DAY: u32 = 1;
const PULLS_PER_DAY_OF_BACKFILL: u32 = 24;

#[derive(Debug)]
pub(crate) struct Gutenberg;

/// One line of the catalogue.
#[derive(Debug, Deserialize)]
struct Book {
    #[serde(rename = "Text#")]
    number: u64,
    #[serde(rename = "Type")]
    kind: String,
    #[serde(rename = "Issued")]
    issued: String,
    #[serde(rename = "Title")]
    title: String,
    #[serde(rename = "Language")]
    language: String,
    #[serde(rename = "Authors")]
    authors: String,
    #[serde(rename = "Subjects")]
    subjects: String,
    #[serde(rename = "Bookshelves")]
    bookshelves: String,
}

#[async_trait]
impl SourceAdapter for Gutenberg {
    fn kind(&self) -> &'static str {
        "gutenberg"
    }

    fn schema(&self) -> Json {
        schema::object(
            [
                (
                    "language",
                    schema::text("Only ebooks in this language, two letters"),
                ),
                (
                    "subject",
                    schema::text(
                        "Only ebooks with this word in a subject or bookshelf, for example poetry",
                    ),
                ),
                (
                    "back_days",
                    schema::number("Days to look back on the first pull", 1, 36_500, BACK_DAYS),
                ),
                ("overlap_minutes", schema::overlap_minutes(OVERLAP_MINUTES)),
                (
                    "max_texts",
                    schema::number("Max texts per pull", 1, 10_000, MAX_TEXTS),
                ),
            ],
            &[],
        )
    }

    async fn pull(
        &self,
        config: &Json,
        cursor: Option<&str>,
        context: &PullContext<'_>,
    ) -> Result<Pull, AdapterError> {
        let mut session = Session::new(context, GAP);
        let overlap = overlap(config, OVERLAP_MINUTES);
        let mut window = Window::parse(cursor);
        let from = window
            .range(context.now, days(config, BACK_DAYS), overlap)
            .from;
        let ebooks = catalogue(&mut session, config, from).await?;
        let mut pull = Pull::default();
        let mut texts = 0;
        for (at, book) in ebooks {
            let id = book.number.to_string();
            if window.contains(&id) {
                continue;
            }
            let is_full = context.wants_text && texts >= number(config, "max_texts", MAX_TEXTS);
            if pull.items.len() >= context.max_items || is_full {
                pull.has_more = true;
                break;
            }
            let mut item = item(book, at);
            if context.wants_text {
                texts += 1;
                match text(&mut session, &id).await {
                    Ok(Some(text)) => item.text = Some(Text::Plain(text)),
                    // Some ebooks are only pictures or sound.
                    Ok(None) => {
                        window.insert(&id, at);
                        continue;
                    }
                    Err(error) if pull.items.is_empty() => return Err(error),
                    Err(error) => {
                        pull.note = Some(error.message);
                        pull.has_more = true;
                        break;
                    }
                }
            }
            window.insert(&id, at);
            pull.items.push(item);
        }
        window.advance();
        pull.cursor = window.to_json(overlap);
        (pull.requests, pull.bytes) = (session.requests, session.bytes);
        let pulls = if pull.has_more {
            PULLS_PER_DAY_OF_BACKFILL
        } else {
            PULLS_PER_DAY
        };
        pull.quota = Some(Quota {
            left: pulls * pull.requests,
            resets_in: Duration::from_secs(86_400),
        });
        Ok(pull)
    }
}

/// The ebooks since `from` that are wanted, the oldest first.
async fn catalogue(
    session: &mut Session<'_>,
    config: &Json,
    from: i64,
) -> Result<Vec<(i64, Book)>, AdapterError> {
    let response = session
        .get_large(&session.address(SERVICE, CATALOGUE, &[])?)
        .await?;
    if !response.is_success() {
        return Err(session.status_error(&response, None));
    }
    let wrong = |why: String| {
        let message = session.readable(&format!("the catalogue is invalid: {why}"));
        AdapterError::new(AdapterErrorKind::Malformed, message)
    };
    let unpacked = unpack(&response.body).map_err(|error| wrong(error.to_string()))?;
    if !unpacked.starts_with(b"Text#") {
        return Err(wrong("it does not start with the header row".to_owned()));
    }
    let mut reader = csv::Reader::from_reader(&unpacked[..]);
    let language = config["language"].as_str().map(str::to_lowercase);
    let subject = config["subject"].as_str().map(str::to_lowercase);
    let mut ebooks = Vec::new();
    for row in reader.deserialize() {
        let book: Book = row.map_err(|error| wrong(error.to_string()))?;
        let is_wanted = book.kind == "Text"
            && language.as_ref().is_none_or(|wanted| {
                book.language
                    .split(';')
                    .any(|one| one.trim().eq_ignore_ascii_case(wanted))
            })
            && subject.as_ref().is_none_or(|wanted| {
                format!("{};{}", book.subjects, book.bookshelves)
                    .to_lowercase()
                    .contains(wanted)
            });
        let issued = book.issued.parse::<Date>().ok();
        let issued = issued.and_then(|day| day.to_zoned(TimeZone::UTC).ok());
        if let Some(issued) = issued
            && is_wanted
            && issued.timestamp().as_second() >= from
        {
            ebooks.push((issued.timestamp().as_second(), book));
        }
    }
    ebooks.sort_by_key(|(at, book)| (*at, book.number));
    Ok(ebooks)
}

/// The catalogue, which is packed unless the server calls that its encoding: then the
/// HTTP client has unpacked it.
fn unpack(body: &[u8]) -> std::io::Result<Cow<'_, [u8]>> {
    if !body.starts_with(&GZIP_MAGIC) {
        return Ok(Cow::Borrowed(body));
    }
    let mut unpacked = Vec::new();
    GzDecoder::new(body)
        .take(MAX_UNPACKED_BYTES)
        .read_to_end(&mut unpacked)?;
    Ok(Cow::Owned(unpacked))
}

/// The text of a book; `None` when there is none.
async fn text(session: &mut Session<'_>, id: &str) -> Result<Option<String>, AdapterError> {
    let url = session.address(SERVICE, &format!("/cache/epub/{id}/pg{id}.txt"), &[])?;
    let response = session.get(&url).await?;
    match response.status {
        404 | 410 => Ok(None),
        200 => Ok(Some(between_the_markers(&response.text().text).to_owned())),
        _ => Err(session.status_error(&response, None)),
    }
}

/// Without the licence around the book.
fn between_the_markers(text: &str) -> &str {
    let line_after = |at: usize| text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
    let text_of = |name: &str| {
        let known = [format!("*** {name} OF TH"), format!("***{name} OF TH")];
        known.iter().find_map(|marker| text.find(marker.as_str()))
    };
    let start = text_of("START").map_or(0, line_after);
    let end = text_of("END")
        .filter(|end| *end >= start)
        .unwrap_or(text.len());
    text[start..end].trim_matches('\u{feff}').trim()
}

fn item(book: Book, at: i64) -> AdapterItem {
    let subjects = format!("{};{}", book.subjects, book.bookshelves);
    let listed = |text: &str| -> Vec<String> {
        let parts = text
            .split(';')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    };
    AdapterItem {
        url: format!("https://www.gutenberg.org/ebooks/{}", book.number),
        guid: book.number.to_string(),
        // Titles of some ebooks go over lines.
        title: book.title.split_whitespace().collect::<Vec<_>>().join(" "),
        authors: listed(&book.authors)
            .iter()
            .map(|author| name(author))
            .collect(),
        published: Timestamp::from_second(at).ok(),
        content_type: Some(content_type(&subjects).to_owned()),
        tags: listed(&subjects),
        language: book
            .language
            .split(';')
            .next()
            .map(|one| one.trim().to_owned()),
        license: Some(License::PublicDomain),
        ..AdapterItem::default()
    }
}

fn content_type(subjects: &str) -> &'static str {
    let subjects = subjects.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| subjects.contains(word));
    match () {
        () if has(&["poetry", "poems", "sonnets"]) => "poem",
        () if has(&["drama", "tragedies", "comedies"]) => "play",
        () if has(&["fiction", "novel", "stories", "tales"]) => "fiction",
        () => "text",
    }
}

/// `Dickens, Charles, 1812-1870 [Editor]` in natural order.
fn name(author: &str) -> String {
    let author = author.split('[').next().unwrap_or_default();
    let is_date = |part: &str| part.chars().any(|c| c.is_ascii_digit());
    let parts = author.split(',').map(str::trim);
    let parts: Vec<&str> = parts
        .filter(|part| !part.is_empty() && !is_date(part))
        .collect();
    match parts.as_slice() {
        [last, first, ..] => format!("{first} {last}"),
        [only] => (*only).to_owned(),
        [] => author.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_natural_order() {
        let rows = [
            ("Dickens, Charles, 1812-1870", "Charles Dickens"),
            ("Homer, 751? BCE-651? BCE", "Homer"),
            ("Anonymous", "Anonymous"),
            ("Butler, Samuel, 1835-1902 [Translator]", "Samuel Butler"),
        ];
        for (author, expected) in rows {
            assert_eq!(name(author), expected);
        }
    }

    #[test]
    fn the_licence_is_not_the_book() {
        let text = "\u{feff}The Project Gutenberg eBook\n*** START OF THE PROJECT GUTENBERG EBOOK X ***\n\nThe book.\n\n*** END OF THE PROJECT GUTENBERG EBOOK X ***\nLicence";
        assert_eq!(between_the_markers(text), "The book.");
        assert_eq!(between_the_markers("Only the book."), "Only the book.");
    }

    #[test]
    fn subjects_say_what_a_text_is() {
        assert_eq!(content_type("English poetry -- 19th century"), "poem");
        assert_eq!(content_type("Science fiction"), "fiction");
        assert_eq!(content_type("Tragedies"), "play");
        assert_eq!(content_type("Cookery"), "text");
    }
}
