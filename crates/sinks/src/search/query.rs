//! Queries: words, phrases and filters in, hits with snippets out. Read-only; sees
//! what any process had committed when the query starts.

use std::ops::{Bound, Range};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde::Serialize;
use tantivy::collector::{Count, TopDocs};
use tantivy::query::{AllQuery, BooleanQuery, Occur, Query, QueryParser, RangeQuery, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Value as _};
use tantivy::snippet::SnippetGenerator;
use tantivy::{DocAddress, Index, IndexReader, Order, Searcher, TantivyDocument, Term};

use super::SearchError;
use super::generations;
use super::schema::{Fields, number_of, text_of};
use super::writer::reader_of;

const MAX_HITS: usize = 1000;
/// Deeper pages are not read, and cost memory.
const MAX_OFFSET: usize = 100_000;
const SNIPPET_CHARS: usize = 200;
/// A word in the title counts for more than one in the text.
const TITLE_BOOST: f32 = 3.0;

/// A query. All filters that are set must match.
#[derive(Debug, Clone)]
pub struct SearchQuery {
    /// Words that must all occur; `"…"` for phrases, `-word` for words that
    /// must not, `OR`, `title:word`. Empty: everything, the newest first.
    pub text: String,
    pub source: Option<String>,
    pub tag: Option<String>,
    pub language: Option<String>,
    /// Published (else fetched) at this time or later.
    pub since: Option<Timestamp>,
    /// Published (else fetched) before this time.
    pub until: Option<Timestamp>,
    /// At most 1,000.
    pub limit: usize,
    pub offset: usize,
}

impl SearchQuery {
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            source: None,
            tag: None,
            language: None,
            since: None,
            until: None,
            limit: 20,
            offset: 0,
        }
    }
}

/// The result of a query.
#[derive(Debug, Clone, Serialize)]
pub struct SearchResults {
    /// Number of all matches.
    pub total: usize,
    /// The requested page of them.
    pub hits: Vec<Hit>,
}

/// One matching document.
#[derive(Debug, Clone, Serialize)]
pub struct Hit {
    pub id: String,
    pub revision: i64,
    pub url: String,
    pub title: String,
    pub source: String,
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_at: Option<Timestamp>,
    pub fetched_at: Timestamp,
    /// Relevance; none for a query without words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
    pub snippet: Snippet,
}

/// An excerpt around the matching words. Plain text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Snippet {
    pub text: String,
    /// Byte ranges of those words in `text`.
    pub highlights: Vec<Range<usize>>,
}

/// An index opened for queries.
#[derive(Debug)]
pub struct SearchIndex {
    folder: PathBuf,
    open: Mutex<Option<OpenGeneration>>,
}

/// An open generation and its last known commit.
struct OpenGeneration {
    generation: u64,
    /// Inode and modification time of `meta.json`, which every commit replaces.
    commit: (u64, i64, i64),
    index: Index,
    reader: IndexReader,
    fields: Fields,
}

impl std::fmt::Debug for OpenGeneration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "generation {}", self.generation)
    }
}

impl SearchIndex {
    /// Opens the index of a folder; it must exist.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, SearchError> {
        let index = Self {
            folder: folder.into(),
            open: Mutex::default(),
        };
        index.searcher()?;
        Ok(index)
    }

    /// Number of documents in the index.
    pub fn count(&self) -> Result<u64, SearchError> {
        let (searcher, _, _) = self.searcher()?;
        Ok(searcher.num_docs())
    }

    /// Compares every file of an index with its checksum. Reads the whole index:
    /// call it on a blocking thread.
    pub fn check_integrity(folder: &Path) -> Result<(), SearchError> {
        let mut attempts = 3;
        let damaged = loop {
            // Opened anew: an index knows only the files that it had then.
            let (_, index, _) = Self::open(folder)?.searcher()?;
            attempts -= 1;
            match index.validate_checksum() {
                Ok(damaged) => break damaged,
                // The writer has merged a segment and removed its files meanwhile.
                Err(_) if attempts > 0 => {}
                Err(error) => return Err(error.into()),
            }
        };
        match damaged.into_iter().min() {
            None => Ok(()),
            Some(file) => Err(SearchError::Damaged(folder.to_owned(), file)),
        }
    }

    /// Blocks for some milliseconds: call it on a blocking thread.
    pub fn search(&self, query: &SearchQuery) -> Result<SearchResults, SearchError> {
        let (searcher, index, fields) = self.searcher()?;
        let words = parse_text(&index, fields, &query.text);
        let all = filtered(words.as_deref(), query, fields);
        let limit = query.limit.clamp(1, MAX_HITS);
        let top = TopDocs::with_limit(limit).and_offset(query.offset.min(MAX_OFFSET));
        let found: Vec<(Option<f32>, DocAddress)>;
        let total;
        if words.is_some() {
            let (best, count) = searcher.search(&all, &(top.order_by_score(), Count))?;
            found = best
                .into_iter()
                .map(|(score, at)| (Some(score), at))
                .collect();
            total = count;
        } else {
            let newest = top.order_by_fast_field::<i64>("date", Order::Desc);
            let (best, count) = searcher.search(&all, &(newest, Count))?;
            found = best.into_iter().map(|(_, at)| (None, at)).collect();
            total = count;
        }
        let mut snippets = match &words {
            Some(words) => Some(SnippetGenerator::create(&searcher, words, fields.text)?),
            None => None,
        };
        if let Some(snippets) = &mut snippets {
            snippets.set_max_num_chars(SNIPPET_CHARS);
        }
        let mut hits = Vec::with_capacity(found.len());
        for (score, at) in found {
            let body: TantivyDocument = searcher.doc(at)?;
            hits.push(hit(&body, fields, score, snippets.as_ref()));
        }
        Ok(SearchResults { total, hits })
    }

    /// A searcher of the last commit.
    fn searcher(&self) -> Result<(Searcher, Index, Fields), SearchError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open.take();
        let generation = self.generation()?;
        let current = match current(&self.folder, generation, known) {
            // It was replaced by a newer one meanwhile.
            Err(_) if self.generation()? != generation => {
                current(&self.folder, self.generation()?, None)?
            }
            other => other?,
        };
        let current = open.insert(current);
        Ok((
            current.reader.searcher(),
            current.index.clone(),
            current.fields,
        ))
    }

    fn generation(&self) -> Result<u64, SearchError> {
        let none = || SearchError::None(self.folder.clone());
        generations::current(&self.folder)?.ok_or_else(none)
    }
}

/// The generation at its last commit; reuses the known one if it is current.
fn current(
    folder: &Path,
    generation: u64,
    known: Option<OpenGeneration>,
) -> Result<OpenGeneration, SearchError> {
    let commit = commit_of(&generations::path_of(folder, generation))?;
    match known {
        Some(known) if known.generation == generation => {
            if known.commit != commit {
                known.reader.reload()?;
            }
            Ok(OpenGeneration { commit, ..known })
        }
        _ => {
            let (index, fields) = generations::open(folder, generation)?;
            Ok(OpenGeneration {
                generation,
                commit,
                reader: reader_of(&index)?,
                index,
                fields,
            })
        }
    }
}

fn commit_of(path: &Path) -> std::io::Result<(u64, i64, i64)> {
    let meta = std::fs::metadata(path.join("meta.json"))?;
    Ok((meta.ino(), meta.mtime(), meta.mtime_nsec()))
}

/// The text as a query; none without words. Syntax errors are parsed leniently.
fn parse_text(index: &Index, fields: Fields, text: &str) -> Option<Box<dyn Query>> {
    if text.trim().is_empty() || text.trim() == "*" {
        return None;
    }
    let mut parser = QueryParser::for_index(index, vec![fields.title, fields.text]);
    parser.set_conjunction_by_default();
    parser.set_field_boost(fields.title, TITLE_BOOST);
    let (query, _) = parser.parse_query_lenient(text);
    Some(query)
}

fn filtered(words: Option<&dyn Query>, query: &SearchQuery, fields: Fields) -> BooleanQuery {
    let words = words.map_or_else(
        || Box::new(AllQuery) as Box<dyn Query>,
        |words| words.box_clone(),
    );
    let mut must = vec![(Occur::Must, words)];
    let exactly = [
        (fields.source, &query.source),
        (fields.tags, &query.tag),
        (fields.language, &query.language),
    ];
    for (field, value) in exactly {
        if let Some(value) = value {
            let term = Term::from_field_text(field, value);
            let filter = TermQuery::new(term, IndexRecordOption::Basic);
            must.push((Occur::Must, without_score(Box::new(filter))));
        }
    }
    if query.since.is_some() || query.until.is_some() {
        let moment = |at: Timestamp| Term::from_field_i64(fields.date, at.as_millisecond());
        let from = query
            .since
            .map_or(Bound::Unbounded, |at| Bound::Included(moment(at)));
        let to = query
            .until
            .map_or(Bound::Unbounded, |at| Bound::Excluded(moment(at)));
        let filter = RangeQuery::new(from, to);
        must.push((Occur::Must, without_score(Box::new(filter))));
    }
    BooleanQuery::new(must)
}

/// Filters select documents and do not affect relevance.
fn without_score(filter: Box<dyn Query>) -> Box<dyn Query> {
    Box::new(tantivy::query::ConstScoreQuery::new(filter, 0.0))
}

fn hit(
    body: &TantivyDocument,
    fields: Fields,
    score: Option<f32>,
    snippets: Option<&SnippetGenerator>,
) -> Hit {
    let moment = |field: Field| {
        let millis = number_of(body, field)?;
        Timestamp::from_millisecond(millis).ok()
    };
    let language = text_of(body, fields.language);
    let tags = body.get_all(fields.tags);
    Hit {
        id: text_of(body, fields.id),
        revision: number_of(body, fields.revision).unwrap_or_default(),
        url: text_of(body, fields.url),
        title: text_of(body, fields.title),
        source: text_of(body, fields.source),
        tags: tags
            .filter_map(|tag| tag.as_str().map(str::to_owned))
            .collect(),
        language: (!language.is_empty()).then_some(language),
        published_at: moment(fields.published),
        fetched_at: moment(fields.fetched).unwrap_or_default(),
        score,
        snippet: snippet(body, fields, snippets),
    }
}

/// Around the matching words, or from the start if the text has none of them.
fn snippet(body: &TantivyDocument, fields: Fields, snippets: Option<&SnippetGenerator>) -> Snippet {
    let text = text_of(body, fields.text);
    if let Some(snippets) = snippets {
        let found = snippets.snippet(&text);
        if !found.fragment().is_empty() {
            return Snippet {
                text: found.fragment().to_owned(),
                highlights: found.highlighted().to_vec(),
            };
        }
    }
    let start = match text.char_indices().nth(SNIPPET_CHARS) {
        Some((end, _)) => {
            let start = &text[..end];
            let word_end = start.rfind(char::is_whitespace).unwrap_or(end);
            format!("{}…", start[..word_end].trim_end())
        }
        None => text,
    };
    Snippet {
        text: start,
        highlights: Vec::new(),
    }
}
