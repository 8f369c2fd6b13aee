//! The one writer of an index. Upserts documents by id, never an older revision
//! over a newer one, and has committed to disk when it returns. Uncommitted
//! changes of a killed process are lost.

use std::collections::HashMap;
use std::path::Path;

use tantivy::merge_policy::LogMergePolicy;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet as _, Index, IndexReader, IndexWriter, ReloadPolicy, TERMINATED, Term};
use tidings_document::Document;

use super::SearchError;
use super::generations::{self, WriteLock};
use super::schema::{Entry, Fields, schema};
use crate::licensed_text;

/// Two are 1.4 times as fast as one; each adds a segment per commit, and more
/// segments slow down queries.
const MAX_THREADS: usize = 2;
/// With the default of eight, merging is a third of all work.
const MIN_MERGE_SEGMENTS: usize = 16;
const MEMORY_BUDGET_BYTES: usize = 64 * 1024 * 1024;

pub(crate) struct Writer {
    writer: IndexWriter,
    reader: IndexReader,
    fields: Fields,
    _lock: WriteLock,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Writer")
    }
}

impl Writer {
    /// Opens the index, or creates an empty one.
    pub(crate) fn open(path: &Path) -> Result<Self, SearchError> {
        let lock = generations::lock(path)?;
        let generation = match generations::current(path)? {
            Some(generation) => generation,
            None => {
                generations::create_unfinished(path, &lock)?;
                generations::publish(path, &lock)?
            }
        };
        let (index, fields) = generations::open(path, generation)?;
        Ok(Self {
            writer: writer_of(&index)?,
            reader: reader_of(&index)?,
            fields,
            _lock: lock,
        })
    }

    pub(crate) fn count(&self) -> Result<u64, SearchError> {
        Ok(self.reader.searcher().num_docs())
    }

    pub(crate) fn write(&mut self, entries: Vec<Entry>) -> Result<(), SearchError> {
        let mut newest: HashMap<String, Entry> = HashMap::with_capacity(entries.len());
        for entry in entries {
            let known = newest.get(&entry.id).map(|known| known.revision);
            if known.is_none_or(|known| known < entry.revision) {
                newest.insert(entry.id.clone(), entry);
            }
        }
        let mut is_changed = false;
        for (id, entry) in newest {
            let term = Term::from_field_text(self.fields.id, &id);
            let indexed = self.revision(&term)?;
            if indexed.is_some_and(|indexed| indexed >= entry.revision) {
                continue;
            }
            if indexed.is_some() {
                self.writer.delete_term(term);
            }
            self.writer.add_document(entry.body)?;
            is_changed = true;
        }
        if is_changed {
            self.writer.commit()?;
            self.reader.reload()?;
        }
        Ok(())
    }

    /// The indexed revision.
    fn revision(&self, id: &Term) -> Result<Option<i64>, SearchError> {
        let searcher = self.reader.searcher();
        for segment in searcher.segment_readers() {
            let inverted = segment.inverted_index(self.fields.id)?;
            let Some(mut postings) = inverted.read_postings(id, IndexRecordOption::Basic)? else {
                continue;
            };
            while postings.doc() != TERMINATED {
                let doc = postings.doc();
                if !segment.is_deleted(doc) {
                    let revisions = segment.fast_fields().i64("revision")?;
                    return Ok(revisions.first(doc));
                }
                postings.advance();
            }
        }
        Ok(None)
    }
}

fn writer_of(index: &Index) -> Result<IndexWriter, SearchError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let writer = index.writer_with_num_threads(cores.min(MAX_THREADS), MEMORY_BUDGET_BYTES)?;
    let mut merging = LogMergePolicy::default();
    merging.set_min_num_segments(MIN_MERGE_SEGMENTS);
    writer.set_merge_policy(Box::new(merging));
    Ok(writer)
}

pub(crate) fn reader_of(index: &Index) -> Result<IndexReader, SearchError> {
    let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual);
    Ok(reader.try_into()?)
}

/// Rebuilds the index from documents, each passed once. The old index serves until
/// the new one is complete; a process that is killed meanwhile changes nothing.
/// `progress` receives the number of documents done. Fails while a sink writes.
pub fn rebuild(
    path: &Path,
    documents: impl IntoIterator<Item = Document>,
    full_text: bool,
    mut progress: impl FnMut(u64),
) -> Result<u64, SearchError> {
    let lock = generations::lock(path)?;
    let index = generations::create_unfinished(path, &lock)?;
    let mut writer = writer_of(&index)?;
    let (_, fields) = schema();
    let mut done = 0;
    for document in documents {
        let text = licensed_text::of(&document, full_text);
        writer.add_document(Entry::of(&document, text, fields).body)?;
        done += 1;
        if done % 1000 == 0 {
            progress(done);
        }
    }
    writer.commit()?;
    writer.wait_merging_threads()?;
    generations::publish(path, &lock)?;
    progress(done);
    Ok(done)
}
