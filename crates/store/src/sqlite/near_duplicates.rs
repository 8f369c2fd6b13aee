//! Sketches and their keys: a few index probes for each document. With one writer,
//! every document sees all that were written before it.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tidings_document::Sketch;

use crate::ids::{FrontierId, HostId, UrlId};
use crate::near_duplicates::{
    NearDuplicate, joined, keys_with_room, likeliest, most_similar, stored_key,
};

/// The document most similar to a text.
pub(super) fn nearest(
    connection: &Connection,
    sketch: &Sketch,
) -> rusqlite::Result<Option<NearDuplicate>> {
    compare(connection, sketch, &under_keys(connection, sketch)?)
}

/// Inserts the sketch of a document; returns the cluster that it joins.
pub(super) fn insert_sketch(
    connection: &Connection,
    id: FrontierId,
    sketch: &Sketch,
) -> rusqlite::Result<Option<FrontierId>> {
    let under = under_keys(connection, sketch)?;
    let duplicate = compare(connection, sketch, &under)?;
    let mut insert = connection.prepare_cached(
        "INSERT OR IGNORE INTO sketch_keys (sketch_key, host_id, url_id) VALUES (?1, ?2, ?3)",
    )?;
    for key in keys_with_room(sketch, under.iter().map(Vec::len)) {
        insert.execute(params![key, id.host.0, id.url.0])?;
    }
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO sketches (host_id, url_id, sketch) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![id.host.0, id.url.0, sketch.to_bytes()])?;
    Ok(joined(id, duplicate))
}

/// Deletes the sketch of a document whose text has changed.
pub(super) fn delete_sketch(connection: &Connection, id: FrontierId) -> rusqlite::Result<()> {
    let bytes: Option<Vec<u8>> = connection
        .prepare_cached("DELETE FROM sketches WHERE host_id = ?1 AND url_id = ?2 RETURNING sketch")?
        .query_row(params![id.host.0, id.url.0], |row| row.get(0))
        .optional()?;
    let Some(sketch) = bytes.as_deref().and_then(Sketch::from_bytes) else {
        return Ok(());
    };
    let mut delete = connection.prepare_cached(
        "DELETE FROM sketch_keys WHERE sketch_key = ?1 AND host_id = ?2 AND url_id = ?3",
    )?;
    for key in sketch.keys() {
        delete.execute(params![stored_key(*key), id.host.0, id.url.0])?;
    }
    Ok(())
}

/// The documents under each key of the look-up.
fn under_keys(connection: &Connection, sketch: &Sketch) -> rusqlite::Result<Vec<Vec<FrontierId>>> {
    let mut select = connection
        .prepare_cached("SELECT host_id, url_id FROM sketch_keys WHERE sketch_key = ?1")?;
    let mut under = |key: &u64| select.query_map([stored_key(*key)], id)?.collect();
    sketch.lookup_keys().iter().map(&mut under).collect()
}

fn id(row: &Row<'_>) -> rusqlite::Result<FrontierId> {
    Ok(FrontierId {
        host: HostId(row.get(0)?),
        url: UrlId(row.get(1)?),
    })
}

/// The most similar of the documents under the keys.
fn compare(
    connection: &Connection,
    sketch: &Sketch,
    under: &[Vec<FrontierId>],
) -> rusqlite::Result<Option<NearDuplicate>> {
    let mut select = connection
        .prepare_cached("SELECT sketch FROM sketches WHERE host_id = ?1 AND url_id = ?2")?;
    let mut candidates = Vec::new();
    for id in likeliest(under.iter().map(Vec::as_slice)) {
        let bytes: Option<Vec<u8>> = select
            .query_row(params![id.host.0, id.url.0], |row| row.get(0))
            .optional()?;
        if let Some(sketch) = bytes.as_deref().and_then(Sketch::from_bytes) {
            candidates.push((id, sketch));
        }
    }
    let candidates = candidates.iter().map(|(id, sketch)| (*id, sketch));
    let Some((id, similarity)) = most_similar(sketch, candidates) else {
        return Ok(None);
    };
    // The cluster is stored after the body: it is read only for the best match.
    let cluster: Option<Option<Vec<u8>>> = connection
        .prepare_cached("SELECT cluster FROM documents WHERE host_id = ?1 AND url_id = ?2")?
        .query_row(params![id.host.0, id.url.0], |row| row.get(0))
        .optional()?;
    let cluster = cluster
        .flatten()
        .as_deref()
        .and_then(FrontierId::from_bytes);
    Ok(Some(NearDuplicate {
        id,
        cluster: cluster.unwrap_or(id),
        similarity,
    }))
}
