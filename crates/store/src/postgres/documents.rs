//! Documents and their deliveries, a statement each for the whole batch: a new
//! document, a new revision, or nothing when the text is the same.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::near_duplicates;
use super::pool::Connection;
use crate::error::Result;
use crate::ids::FrontierId;
use crate::new_document::PreparedDocument;

const BEFORE: &str = "SELECT n.at::INTEGER, d.revision, d.content_hash
    FROM unnest($1::BIGINT[], $2::BYTEA[]) WITH ORDINALITY AS n(host_id, url_id, at)
    JOIN documents d ON d.host_id = n.host_id AND d.url_id = n.url_id";

/// The earliest document of each text.
const EARLIEST_BY_HASH: &str = "SELECT DISTINCT ON (content_hash) content_hash, url_id || key_tail
    FROM documents WHERE content_hash = ANY($1::BYTEA[]) AND content_hash IS NOT NULL
    ORDER BY content_hash, fetched_at";

/// The class of the advisory locks of texts: an arbitrary number, unique to Tidings.
/// Of two keys, so that it can't collide with the lock of migrations.
const TEXT_LOCK: i32 = 0x7469_6402;

/// Locks texts until the end of the transaction, always in order: who looks for the
/// original of a text waits for those that may be writing it.
const LOCK_TEXTS: &str =
    "SELECT pg_advisory_xact_lock($1::INTEGER, text_key) FROM unnest($2::INTEGER[]) AS t(text_key)";

const WRITE: &str = "INSERT INTO documents (host_id, url_id, key_tail, revision, source_id, title, content_hash, duplicate_of, cluster, body, fetched_at, change_id)
    SELECT n.*, $11, pg_current_xact_id()::text::BIGINT + coalesce((SELECT marks.n FROM marks WHERE marks.name = 'change_offset'), 0)
    FROM unnest($1::BIGINT[], $2::BYTEA[], $3::BYTEA[], $4::INTEGER[], $5::BIGINT[], $6::TEXT[], $7::BYTEA[], $8::BYTEA[], $9::BYTEA[], $10::TEXT[]) AS n
    ON CONFLICT (host_id, url_id) DO UPDATE SET revision = excluded.revision, source_id = excluded.source_id,
        title = excluded.title, content_hash = excluded.content_hash, duplicate_of = excluded.duplicate_of,
        cluster = excluded.cluster, fetched_at = excluded.fetched_at, body = excluded.body, change_id = excluded.change_id";

const ADD_DELIVERIES: &str = "INSERT INTO deliveries (sink, host_id, url_id, revision, attempts, next_attempt_at, created_at)
    SELECT s.name, n.host_id, n.url_id, n.revision, 0, $5, $5
    FROM unnest($1::BIGINT[], $2::BYTEA[], $3::INTEGER[], $4::BOOLEAN[]) AS n(host_id, url_id, revision, is_duplicate), sinks s
    WHERE s.enabled = 1 AND (s.duplicates = 1 OR NOT n.is_duplicate)
    ORDER BY s.name, n.host_id, n.url_id
    ON CONFLICT (sink, host_id, url_id) DO UPDATE SET revision = excluded.revision, attempts = 0, next_attempt_at = excluded.next_attempt_at";

type Written<'a> = (FrontierId, &'a PreparedDocument);

/// Writes documents, each with its id. One that occurs twice is written twice, in
/// order.
pub(super) async fn write_documents(
    connection: &mut Connection<'_>,
    documents: Vec<Written<'_>>,
    now: i64,
) -> Result<()> {
    let mut remaining = documents;
    lock_texts(connection, &remaining).await?;
    while !remaining.is_empty() {
        let mut seen = HashSet::new();
        let (once, again) = remaining.into_iter().partition(|(id, _)| seen.insert(*id));
        write_once(connection, once, now).await?;
        remaining = again;
    }
    Ok(())
}

/// All at once, before anything is written: in steps two transactions could wait
/// for each other.
async fn lock_texts(connection: &mut Connection<'_>, documents: &[Written<'_>]) -> Result<()> {
    let hashes = documents
        .iter()
        .filter_map(|(_, document)| document.content_hash.as_deref());
    let keys: BTreeSet<i32> = hashes.map(text_key).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let keys: Vec<i32> = keys.into_iter().collect();
    connection
        .query(LOCK_TEXTS, &[&TEXT_LOCK, &keys])
        .await
        .map(drop)
}

/// The first bytes of a hash. Texts that share them only wait for each other.
fn text_key(hash: &[u8]) -> i32 {
    hash.iter()
        .take(4)
        .fold(0, |key, byte| (key << 8) | i32::from(*byte))
}

/// The same for documents without repeated ids.
async fn write_once(
    connection: &mut Connection<'_>,
    documents: Vec<Written<'_>>,
    now: i64,
) -> Result<()> {
    let changed = changed(connection, documents).await?;
    if changed.is_empty() {
        return Ok(());
    }
    let duplicates = duplicates(connection, &changed).await?;
    let clusters = clusters(connection, &changed).await?;
    // All transactions lock rows in the same order.
    let mut rows: Vec<_> = changed.into_iter().zip(duplicates).collect();
    rows.sort_unstable_by_key(|((id, ..), _)| *id);
    let (changed, duplicates): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    let clusters: Vec<Option<&[u8]>> = changed
        .iter()
        .map(|(id, ..)| clusters.get(id).map(|cluster| &cluster[..]))
        .collect();
    let hosts: Vec<i64> = changed.iter().map(|(id, ..)| id.host.0).collect();
    let urls: Vec<&[u8]> = changed.iter().map(|(id, ..)| &id.url.0[..]).collect();
    let revisions: Vec<i32> = changed.iter().map(|(.., revision)| *revision).collect();
    let of = |part: fn(&PreparedDocument) -> &str| -> Vec<&str> {
        changed
            .iter()
            .map(|(_, document, _)| part(document))
            .collect()
    };
    let tails: Vec<&[u8]> = changed
        .iter()
        .map(|(_, document, _)| &document.key_tail[..])
        .collect();
    let sources: Vec<i64> = changed
        .iter()
        .map(|(_, document, _)| document.source_id)
        .collect();
    let hashes: Vec<Option<&[u8]>> = changed
        .iter()
        .map(|(_, document, _)| document.content_hash.as_deref())
        .collect();
    let (titles, bodies) = (
        of(|document| &document.title),
        of(|document| &document.body),
    );
    connection
        .execute(
            WRITE,
            &[
                &hosts,
                &urls,
                &tails,
                &revisions,
                &sources,
                &titles,
                &hashes,
                &duplicates,
                &clusters,
                &bodies,
                &now,
            ],
        )
        .await?;
    let are_duplicates: Vec<bool> = duplicates.iter().map(Option::is_some).collect();
    connection
        .execute(
            ADD_DELIVERIES,
            &[&hosts, &urls, &revisions, &are_duplicates, &now],
        )
        .await
        .map(drop)
}

/// Those whose text is new or changed, with their next revision.
async fn changed<'a>(
    connection: &mut Connection<'_>,
    documents: Vec<Written<'a>>,
) -> Result<Vec<(FrontierId, &'a PreparedDocument, i32)>> {
    let hosts: Vec<i64> = documents.iter().map(|(id, _)| id.host.0).collect();
    let urls: Vec<&[u8]> = documents.iter().map(|(id, _)| &id.url.0[..]).collect();
    let mut before: HashMap<usize, (i32, Option<Vec<u8>>)> = HashMap::new();
    for row in connection.query(BEFORE, &[&hosts, &urls]).await? {
        let at = row.get::<_, i32>(0).unsigned_abs() as usize - 1;
        before.insert(at, (row.get(1), row.get(2)));
    }
    let mut changed = Vec::with_capacity(documents.len());
    for (at, (id, document)) in documents.into_iter().enumerate() {
        match before.get(&at) {
            None => changed.push((id, document, 1)),
            Some((_, hash)) if hash.is_some() && *hash == document.content_hash => {}
            Some((revision, _)) => changed.push((id, document, revision + 1)),
        }
    }
    Ok(changed)
}

/// For each the url key of the earliest document with its text, if that is another.
async fn duplicates(
    connection: &mut Connection<'_>,
    documents: &[(FrontierId, &PreparedDocument, i32)],
) -> Result<Vec<Option<Vec<u8>>>> {
    let hashes: Vec<&[u8]> = documents
        .iter()
        .filter_map(|(_, document, _)| document.content_hash.as_deref())
        .collect();
    let mut first: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    for row in connection.query(EARLIEST_BY_HASH, &[&hashes]).await? {
        first.insert(row.get(0), row.get(1));
    }
    let mut duplicates = Vec::with_capacity(documents.len());
    for (id, document, _) in documents {
        let key = [&id.url.0[..], &document.key_tail[..]].concat();
        duplicates.push(document.content_hash.as_ref().and_then(|hash| {
            let earliest = first.entry(hash.clone()).or_insert_with(|| key.clone());
            (*earliest != key).then(|| earliest.clone())
        }));
    }
    Ok(duplicates)
}

/// The clusters that documents join, as they are stored.
async fn clusters(
    connection: &mut Connection<'_>,
    documents: &[(FrontierId, &PreparedDocument, i32)],
) -> Result<HashMap<FrontierId, [u8; 24]>> {
    let revised = documents.iter().filter(|(.., revision)| *revision > 1);
    let revised: Vec<FrontierId> = revised.map(|(id, ..)| *id).collect();
    near_duplicates::delete_sketches(connection, &revised).await?;
    let comparable: Vec<_> = documents
        .iter()
        .filter_map(|(id, document, _)| Some((*id, document.sketch.as_ref()?)))
        .collect();
    let joined = near_duplicates::insert_sketches(connection, &comparable).await?;
    let clusters = comparable.iter().zip(joined);
    Ok(clusters
        .filter_map(|((id, _), cluster)| Some((*id, cluster?.to_bytes())))
        .collect())
}
