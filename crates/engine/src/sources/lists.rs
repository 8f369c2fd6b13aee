//! Import and export of source lists: OPML, CSV, JSON lines. Row by row: an
//! invalid row is reported with its line and reason, and the others are imported.
//! Reading and writing are pure; adding is in batches.

use std::collections::HashSet;

use serde_json::{Map, Value as Json};
use tidings_feed::opml;
use tidings_store::{NewSource, Source, Store};
use tidings_url::FetchUrl;

use super::registry::{RegistryError, SourceDraft, roots};
use super::settings::SourceSettings;

/// The file format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListFormat {
    Opml,
    Csv,
    JsonLines,
}

/// One row of a list: its line, and the source or why it is invalid.
#[derive(Debug)]
pub struct ListRow {
    pub line: usize,
    pub draft: Result<SourceDraft, String>,
}

/// The result of an import.
#[derive(Debug, Default, serde::Serialize)]
pub struct ListReport {
    pub added: usize,
    /// Rows whose feed or URL is in the registry already.
    pub known: usize,
    /// Line and reason of each invalid row.
    pub bad: Vec<(usize, String)>,
}

/// Rows per transaction.
const BATCH: usize = 500;

/// Parses a list.
pub fn read_list(format: ListFormat, bytes: &[u8]) -> Result<Vec<ListRow>, String> {
    match format {
        ListFormat::Opml => read_opml(bytes),
        ListFormat::Csv => read_csv(bytes),
        ListFormat::JsonLines => Ok(read_json_lines(bytes)),
    }
}

fn read_opml(bytes: &[u8]) -> Result<Vec<ListRow>, String> {
    let outlines = opml::parse(bytes).map_err(|error| error.to_string())?;
    let row = |outline: opml::Outline| {
        let mut fields = Map::new();
        fields.insert("feed_url".to_owned(), outline.feed_url.into());
        fields.insert("tags".to_owned(), outline.categories.into());
        let draft = draft(outline.title, outline.home_page, None, fields);
        ListRow {
            line: outline.line,
            draft,
        }
    };
    Ok(outlines.into_iter().map(row).collect())
}

/// Columns are named as the settings; tags are separated by semicolons.
fn read_csv(bytes: &[u8]) -> Result<Vec<ListRow>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(bytes);
    let columns = reader.headers().map_err(|error| error.to_string())?.clone();
    let has = |name: &str| {
        columns
            .iter()
            .any(|column| column.eq_ignore_ascii_case(name))
    };
    if !has("url") && !has("feed_url") {
        return Err(
            "the first line must name the columns; one of them must be url or feed_url".to_owned(),
        );
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let line = error.position().map_or(0, |place| place.line() as usize);
                let draft = Err(error.to_string());
                rows.push(ListRow { line, draft });
                continue;
            }
        };
        let line = record.position().map_or(0, |place| place.line() as usize);
        let (mut name, mut url, mut priority, mut fields) = (None, None, None, Map::new());
        for (column, value) in columns
            .iter()
            .zip(record.iter())
            .filter(|(_, value)| !value.is_empty())
        {
            match column.to_ascii_lowercase().as_str() {
                "name" => name = Some(value.to_owned()),
                "url" => url = Some(value.to_owned()),
                "priority" => priority = Some(Json::from(value)),
                "tags" => {
                    let tags: Vec<&str> = value.split(';').map(str::trim).collect();
                    fields.insert("tags".to_owned(), tags.into());
                }
                setting => {
                    let json = serde_json::from_str(value)
                        .ok()
                        .filter(|json: &Json| !json.is_string());
                    fields.insert(setting.to_owned(), json.unwrap_or_else(|| value.into()));
                }
            }
        }
        let draft = draft(name, url, priority, fields);
        rows.push(ListRow { line, draft });
    }
    Ok(rows)
}

fn read_json_lines(bytes: &[u8]) -> Vec<ListRow> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| ListRow {
            line: at + 1,
            draft: read_json(line),
        })
        .collect()
}

fn read_json(line: &str) -> Result<SourceDraft, String> {
    let Json::Object(mut fields) = serde_json::from_str(line).map_err(|error| error.to_string())?
    else {
        return Err("expected a JSON object".to_owned());
    };
    let mut text = |name: &str| {
        fields
            .remove(name)
            .and_then(|value| value.as_str().map(str::to_owned))
    };
    let (name, url) = (text("name"), text("url"));
    let priority = fields.remove("priority");
    draft(name, url, priority, fields)
}

/// A source from the fields of a row, with defaults for missing ones.
fn draft(
    name: Option<String>,
    url: Option<String>,
    priority: Option<Json>,
    settings: Map<String, Json>,
) -> Result<SourceDraft, String> {
    let label = name.clone().or_else(|| url.clone()).unwrap_or_default();
    let settings = SourceSettings::parse(&label, &Json::Object(settings))
        .map_err(|error| error.why().to_owned())?;
    let parse = |text: &str| FetchUrl::parse(text).map_err(|error| error.to_string());
    let url = match (url, &settings.feed_url) {
        (Some(url), _) => parse(&url)?,
        (None, Some(feed)) => feed.clone(),
        (None, None) => return Err("neither url nor feed_url is given".to_owned()),
    };
    let priority = match priority {
        None => 5,
        Some(value) => {
            let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
            let in_range = number.filter(|number| (1..=10).contains(number));
            in_range.ok_or_else(|| format!("priority {value} is not a number from 1 to 10"))? as u8
        }
    };
    let draft = SourceDraft {
        name: name.unwrap_or_else(|| url.host().to_owned()),
        url,
        priority,
        settings,
    };
    let checked = draft.check_text().map_err(|error| error.why().to_owned());
    checked.map(|()| draft)
}

/// Adds the sources that are new. A dry run reports the same and writes nothing.
pub async fn import_list(
    store: &Store,
    rows: Vec<ListRow>,
    dry_run: bool,
    mut progress: impl FnMut(usize),
) -> Result<ListReport, RegistryError> {
    let (mut names, mut followed) = names_and_urls(store).await?;
    let mut report = ListReport::default();
    let mut batch: Vec<(NewSource, Vec<(&'static str, String)>)> = Vec::new();
    for ListRow { line, draft } in rows {
        progress(1);
        let mut draft = match draft {
            Ok(draft) => draft,
            Err(why) => {
                report.bad.push((line, why));
                continue;
            }
        };
        let feed = draft
            .settings
            .feed_url
            .as_ref()
            .map(|url| url.as_str().to_owned());
        if !followed.insert(
            feed.clone()
                .unwrap_or_else(|| draft.url.as_str().to_owned()),
        ) {
            report.known += 1;
            continue;
        }
        draft.name = free_name(&draft.name, &mut names);
        let feeds = roots(&draft.settings, &draft.url);
        batch.push((draft.row()?, feeds));
        report.added += 1;
        if batch.len() == BATCH && !dry_run {
            store.add_sources(&std::mem::take(&mut batch)).await?;
        }
    }
    if !dry_run && !batch.is_empty() {
        store.add_sources(&batch).await?;
    }
    Ok(report)
}

/// The names and the feed URLs (or home pages) in the registry.
async fn names_and_urls(
    store: &Store,
) -> Result<(HashSet<String>, HashSet<String>), RegistryError> {
    let (mut names, mut followed, mut after) = (HashSet::new(), HashSet::new(), i64::MIN);
    loop {
        let sources = store.sources_after(after, 1000).await?;
        let Some(last) = sources.last() else {
            return Ok((names, followed));
        };
        after = last.source_id;
        for source in sources {
            let settings = SourceSettings::of(&source).unwrap_or_default();
            followed.insert(settings.feed_url.map_or(source.url, String::from));
            names.insert(source.name);
        }
    }
}

/// The name, or the name with the first free number.
fn free_name(name: &str, taken: &mut HashSet<String>) -> String {
    let mut free = name.to_owned();
    let mut number = 2;
    while !taken.insert(free.clone()) {
        free = format!("{name} {number}");
        number += 1;
    }
    free
}

/// One source as a row of a list; [`list_start`] and [`list_end`] enclose the rows.
pub fn write_row(format: ListFormat, source: &Source) -> String {
    let settings = SourceSettings::of(source).unwrap_or_default();
    let feed = settings.feed_url.as_ref().map_or("", FetchUrl::as_str);
    match format {
        ListFormat::Opml => {
            let [name, feed, url] = [source.name.as_str(), feed, source.url.as_str()].map(escape);
            format!(
                "    <outline type=\"rss\" text=\"{name}\" title=\"{name}\" xmlUrl=\"{feed}\" htmlUrl=\"{url}\"/>"
            )
        }
        ListFormat::Csv => {
            let priority = source.priority.to_string();
            let fields = [
                &source.name,
                &source.url,
                feed,
                &priority,
                &settings.tags.join(";"),
            ];
            fields.map(quote).join(",")
        }
        ListFormat::JsonLines => {
            let mut row = settings.to_json();
            row["name"] = source.name.as_str().into();
            row["url"] = source.url.as_str().into();
            row["priority"] = source.priority.into();
            row.to_string()
        }
    }
}

pub fn list_start(format: ListFormat) -> Option<&'static str> {
    match format {
        ListFormat::Opml => Some(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<opml version=\"2.0\">\n  <head><title>Tidings</title></head>\n  <body>",
        ),
        ListFormat::Csv => Some("name,url,feed_url,priority,tags"),
        ListFormat::JsonLines => None,
    }
}

pub fn list_end(format: ListFormat) -> Option<&'static str> {
    (format == ListFormat::Opml).then_some("  </body>\n</opml>")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

/// A CSV cell that is only text: spreadsheets run what starts like a formula.
fn quote(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        return format!("\"'{}\"", text.replace('"', "\"\""));
    }
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
