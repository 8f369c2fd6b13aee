//! Sketches and their keys, a statement each for the whole batch. Concurrent
//! transactions don't see each other: near-duplicates in them start two clusters,
//! and later ones join that of the most similar.

use std::collections::HashMap;

use tidings_document::Sketch;

use super::pool::Connection;
use crate::error::Result;
use crate::ids::{FrontierId, HostId, UrlId};
use crate::near_duplicates::{
    NearDuplicate, joined, keys_with_room, likeliest, most_similar, stored_key,
};

/// With a limit, since a cached plan that scans the table while it is small would
/// still be used when it is large.
const UNDER_KEYS: &str = "SELECT n.sketch_key, k.host_id, k.url_id FROM unnest($1::BIGINT[]) AS n(sketch_key)
    CROSS JOIN LATERAL (SELECT host_id, url_id FROM sketch_keys WHERE sketch_key = n.sketch_key LIMIT 32) AS k";

const CANDIDATES: &str = "SELECT n.host_id, n.url_id, s.sketch, d.cluster
    FROM unnest($1::BIGINT[], $2::BYTEA[]) AS n(host_id, url_id)
    CROSS JOIN LATERAL (SELECT sketch FROM sketches WHERE host_id = n.host_id AND url_id = n.url_id LIMIT 1) AS s
    CROSS JOIN LATERAL (SELECT cluster FROM documents WHERE host_id = n.host_id AND url_id = n.url_id LIMIT 1) AS d";

const UPSERT_SKETCHES: &str = "INSERT INTO sketches (host_id, url_id, sketch)
    SELECT * FROM unnest($1::BIGINT[], $2::BYTEA[], $3::BYTEA[])
    ON CONFLICT (host_id, url_id) DO UPDATE SET sketch = excluded.sketch";

const INSERT_KEYS: &str = "INSERT INTO sketch_keys (sketch_key, host_id, url_id)
    SELECT * FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BYTEA[]) ON CONFLICT DO NOTHING";

const DELETE_SKETCHES: &str =
    "DELETE FROM sketches s USING unnest($1::BIGINT[], $2::BYTEA[]) AS n(host_id, url_id)
    WHERE s.host_id = n.host_id AND s.url_id = n.url_id RETURNING s.host_id, s.url_id, s.sketch";

const DELETE_KEYS: &str = "DELETE FROM sketch_keys k
    USING unnest($1::BIGINT[], $2::BIGINT[], $3::BYTEA[]) AS n(sketch_key, host_id, url_id)
    WHERE k.sketch_key = n.sketch_key AND k.host_id = n.host_id AND k.url_id = n.url_id";

/// The documents under each key.
type Under = HashMap<i64, Vec<FrontierId>>;

/// Candidates for near-duplicates, with the cluster of each.
type Known = HashMap<FrontierId, (Sketch, FrontierId)>;

/// The document most similar to a text.
pub(super) async fn nearest(
    connection: &mut Connection<'_>,
    sketch: &Sketch,
) -> Result<Option<NearDuplicate>> {
    let under = under_keys(connection, &[sketch]).await?;
    let ids = likeliest(lists(&under, sketch));
    let known = known(connection, &ids).await?;
    Ok(compare(&known, &under, sketch))
}

/// Inserts the sketches of documents without repeated ids; for each the cluster
/// that it joins. Earlier ones of the batch are found by later ones.
pub(super) async fn insert_sketches(
    connection: &mut Connection<'_>,
    documents: &[(FrontierId, &Sketch)],
) -> Result<Vec<Option<FrontierId>>> {
    if documents.is_empty() {
        return Ok(Vec::new());
    }
    let sketches: Vec<&Sketch> = documents.iter().map(|(_, sketch)| *sketch).collect();
    let mut under = under_keys(connection, &sketches).await?;
    let mut ids: Vec<FrontierId> = sketches
        .iter()
        .flat_map(|sketch| likeliest(lists(&under, sketch)))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    let mut known = known(connection, &ids).await?;
    let (mut keys, mut clusters) = (Vec::new(), Vec::with_capacity(documents.len()));
    for (id, sketch) in documents {
        let cluster = joined(*id, compare(&known, &under, sketch));
        let counts: Vec<usize> = lists(&under, sketch).map(<[_]>::len).collect();
        for key in keys_with_room(sketch, counts.into_iter()) {
            under.entry(key).or_default().push(*id);
            keys.push((key, *id));
        }
        known.insert(*id, ((*sketch).clone(), cluster.unwrap_or(*id)));
        clusters.push(cluster);
    }
    let (hosts, urls) = columns(documents.iter().map(|(id, _)| id));
    let bytes: Vec<Vec<u8>> = sketches.iter().map(|sketch| sketch.to_bytes()).collect();
    connection
        .execute(UPSERT_SKETCHES, &[&hosts, &urls, &bytes])
        .await?;
    write_keys(connection, INSERT_KEYS, keys).await?;
    Ok(clusters)
}

/// Deletes the sketches of documents whose text has changed.
pub(super) async fn delete_sketches(
    connection: &mut Connection<'_>,
    ids: &[FrontierId],
) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let (hosts, urls) = columns(ids.iter());
    let mut keys = Vec::new();
    for row in connection.query(DELETE_SKETCHES, &[&hosts, &urls]).await? {
        let sketch = Sketch::from_bytes(row.get(2));
        if let (Some(id), Some(sketch)) = (id(&row, 0), sketch) {
            keys.extend(sketch.keys().iter().map(|key| (stored_key(*key), id)));
        }
    }
    write_keys(connection, DELETE_KEYS, keys).await
}

async fn write_keys(
    connection: &mut Connection<'_>,
    sql: &str,
    mut rows: Vec<(i64, FrontierId)>,
) -> Result<()> {
    // Sorted, neighbours hit the same pages of the index.
    rows.sort_unstable();
    let keys: Vec<i64> = rows.iter().map(|(key, _)| *key).collect();
    let (hosts, urls) = columns(rows.iter().map(|(_, id)| id));
    connection.execute(sql, &[&keys, &hosts, &urls]).await?;
    Ok(())
}

/// The documents under each key of the look-up for one text.
fn lists<'a>(under: &'a Under, sketch: &'a Sketch) -> impl Iterator<Item = &'a [FrontierId]> {
    let sought = sketch.lookup_keys().iter();
    sought.map(|key| under.get(&stored_key(*key)).map_or(&[][..], Vec::as_slice))
}

async fn under_keys(connection: &mut Connection<'_>, sketches: &[&Sketch]) -> Result<Under> {
    let mut keys: Vec<i64> = sketches
        .iter()
        .flat_map(|sketch| sketch.lookup_keys())
        .map(|key| stored_key(*key))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let mut under = Under::new();
    for row in connection.query(UNDER_KEYS, &[&keys]).await? {
        under.entry(row.get(0)).or_default().extend(id(&row, 1));
    }
    Ok(under)
}

async fn known(connection: &mut Connection<'_>, ids: &[FrontierId]) -> Result<Known> {
    if ids.is_empty() {
        return Ok(Known::new());
    }
    let (hosts, urls) = columns(ids.iter());
    let rows = connection.query(CANDIDATES, &[&hosts, &urls]).await?;
    let known = |row: &tokio_postgres::Row| {
        let id = id(row, 0)?;
        let cluster: Option<&[u8]> = row.get(3);
        let cluster = cluster.and_then(FrontierId::from_bytes).unwrap_or(id);
        Some((id, (Sketch::from_bytes(row.get(2))?, cluster)))
    };
    Ok(rows.iter().filter_map(known).collect())
}

/// The most similar of the documents under the keys of a text.
fn compare(known: &Known, under: &Under, sketch: &Sketch) -> Option<NearDuplicate> {
    let ids = likeliest(lists(under, sketch));
    let candidates = ids.iter().filter_map(|id| Some((*id, &known.get(id)?.0)));
    let (id, similarity) = most_similar(sketch, candidates)?;
    let cluster = known.get(&id)?.1;
    Some(NearDuplicate {
        id,
        cluster,
        similarity,
    })
}

fn id(row: &tokio_postgres::Row, at: usize) -> Option<FrontierId> {
    let url: &[u8] = row.get(at + 1);
    Some(FrontierId {
        host: HostId(row.get(at)),
        url: UrlId(url.try_into().ok()?),
    })
}

fn columns<'a>(ids: impl Iterator<Item = &'a FrontierId>) -> (Vec<i64>, Vec<&'a [u8]>) {
    ids.map(|id| (id.host.0, &id.url.0[..])).unzip()
}
