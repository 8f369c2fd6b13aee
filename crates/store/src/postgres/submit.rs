//! Adds, deletes and requeues frontier rows. The order of locks: guids, titles, hosts
//! (new ones first, each by id), and only then rows of `urls` and `queue`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::pool::Connection;
use super::rows::{Events, LOCK_HOSTS, hosts_of, refresh_heads, write_counter_deltas};
use crate::counters::{CounterDeltas, stored_status};
use crate::error::{Result, StoreError};
use crate::frontier::{GuidHash, Status, TitleHash, Verdict};
use crate::ids::{FrontierId, HostId, UrlId};
use crate::queue_head::QueueHead;
use crate::submission::{ALIAS_EVENT, GUID_REFRESH_MS, Prepared, alias_detail};

/// Known URLs, by position in the batch. `waiting`: pending the first fetch, neither
/// leased nor deferred.
const KNOWN: &str = "SELECT k.at::INTEGER, u.host_id IS NOT NULL AND u.status = 0 AND u.reason IS NULL AND q.owner IS NULL AND q.host_id IS NOT NULL AS waiting,
        q.priority, q.due_at
    FROM unnest($1::BIGINT[], $2::BYTEA[]) WITH ORDINALITY AS k(host_id, url_id, at)
    LEFT JOIN urls u ON u.host_id = k.host_id AND u.url_id = k.url_id
    LEFT JOIN queue q ON q.host_id = u.host_id AND q.url_id = u.url_id
    LEFT JOIN aliases a ON a.host_id = k.host_id AND a.url_id = k.url_id
    WHERE u.host_id IS NOT NULL OR a.host_id IS NOT NULL";

const ADD_TITLES: &str = "INSERT INTO seen_titles (source_id, title_hash, seen_at)
    SELECT source_id, title_hash, $3 FROM unnest($1::BIGINT[], $2::BYTEA[]) AS t(source_id, title_hash)
    ON CONFLICT DO NOTHING RETURNING source_id, title_hash";

const ADD_GUIDS: &str = "INSERT INTO seen_guids (source_id, guid_hash, host_id, url_id, seen_at)
    SELECT source_id, guid_hash, host_id, url_id, $5
    FROM unnest($1::BIGINT[], $2::BYTEA[], $3::BIGINT[], $4::BYTEA[]) AS g(source_id, guid_hash, host_id, url_id)
    ON CONFLICT DO NOTHING";

const REFRESH_GUIDS: &str = "UPDATE seen_guids g SET seen_at = $3
    FROM unnest($1::BIGINT[], $2::BYTEA[]) AS k(source_id, guid_hash)
    WHERE g.source_id = k.source_id AND g.guid_hash = k.guid_hash AND g.seen_at <= $4";

/// Guids that were listed with another URL, by position: the page which that URL is,
/// or redirects to, and its status.
const MOVED_GUIDS: &str = "SELECT k.at::INTEGER, coalesce(a.target_host_id, g.host_id), coalesce(a.target_url_id, g.url_id), u.status
    FROM unnest($1::BIGINT[], $2::BYTEA[], $3::BIGINT[], $4::BYTEA[]) WITH ORDINALITY AS k(source_id, guid_hash, host_id, url_id, at)
    JOIN seen_guids g ON g.source_id = k.source_id AND g.guid_hash = k.guid_hash
    LEFT JOIN aliases a ON a.host_id = g.host_id AND a.url_id = g.url_id
    LEFT JOIN urls u ON u.host_id = coalesce(a.target_host_id, g.host_id) AND u.url_id = coalesce(a.target_url_id, g.url_id)
    WHERE g.host_id <> k.host_id OR g.url_id <> k.url_id";

const REPLACE_GUIDS: &str = "UPDATE seen_guids g SET host_id = k.host_id, url_id = k.url_id, seen_at = $5
    FROM unnest($1::BIGINT[], $2::BYTEA[], $3::BIGINT[], $4::BYTEA[]) AS k(source_id, guid_hash, host_id, url_id)
    WHERE g.source_id = k.source_id AND g.guid_hash = k.guid_hash";

const REMOVE_GUID_ALIASES: &str =
    "DELETE FROM aliases a USING unnest($1::BIGINT[], $2::BYTEA[]) AS k(host_id, url_id)
    WHERE a.host_id = k.host_id AND a.url_id = k.url_id AND a.kind = 'guid'";

const ADD_ALIASES: &str = "INSERT INTO aliases (host_id, url_id, target_host_id, target_url_id, kind, created_at)
    SELECT n.host_id, n.url_id, n.target_host_id, n.target_url_id, 'guid', $5
    FROM unnest($1::BIGINT[], $2::BYTEA[], $3::BIGINT[], $4::BYTEA[]) AS n(host_id, url_id, target_host_id, target_url_id)
    WHERE NOT EXISTS (SELECT 1 FROM urls u WHERE u.host_id = n.host_id AND u.url_id = n.url_id)
    ON CONFLICT DO NOTHING RETURNING host_id, url_id";

pub(super) const ADD_HOSTS: &str = "INSERT INTO hosts (host_id, host_key, delay_ms, max_in_flight)
    SELECT host_id, host_key, $3, $4 FROM unnest($1::BIGINT[], $2::TEXT[]) AS h(host_id, host_key) ORDER BY host_id
    ON CONFLICT DO NOTHING";

const ADD_URLS: &str = "INSERT INTO urls (host_id, url_id, key_tail, url, source_id, origin, priority, depth, norm_v, parent_url, item, status, discovered_at, updated_at)
    SELECT host_id, url_id, key_tail, url, source_id, origin, priority, depth, norm_v, parent_url, item, 0, $12, $12
    FROM unnest($1::BIGINT[], $2::BYTEA[], $3::BYTEA[], $4::TEXT[], $5::BIGINT[], $6::SMALLINT[], $7::SMALLINT[], $8::SMALLINT[], $9::SMALLINT[], $10::TEXT[], $11::TEXT[])
        AS n(host_id, url_id, key_tail, url, source_id, origin, priority, depth, norm_v, parent_url, item)
    ON CONFLICT DO NOTHING RETURNING host_id, url_id";

const ADD_QUEUE: &str = "INSERT INTO queue (host_id, url_id, priority, due_at, attempt)
    SELECT host_id, url_id, priority, due_at, 0 FROM unnest($1::BIGINT[], $2::BYTEA[], $3::SMALLINT[], $4::BIGINT[]) AS n(host_id, url_id, priority, due_at)";

/// A host's head becomes the better of its current head and the new one.
const IMPROVE_HEADS: &str = "UPDATE hosts SET head_priority = n.priority, head_due = n.due_at
    FROM unnest($1::BIGINT[], $2::SMALLINT[], $3::BIGINT[]) AS n(host_id, priority, due_at)
    WHERE hosts.host_id = n.host_id
      AND (hosts.head_priority = 0
           OR (n.due_at <= $4 AND (hosts.head_due > $4 OR hosts.head_priority < n.priority))
           OR (n.due_at > $4 AND hosts.head_due > n.due_at))";

/// Submits the URLs whose titles are new; `None` for the others. Those whose guid is
/// known under another URL become aliases.
pub(super) async fn submit(
    connection: &mut Connection<'_>,
    batch: &[Prepared],
    delay_ms: i32,
    max_in_flight: i16,
    now: i64,
) -> Result<Vec<Option<Verdict>>> {
    let aliases = record_guids(connection, batch, now).await?;
    let is_alias = |row: &Prepared| aliases.contains_key(&row.id);
    if aliases.is_empty() && batch.iter().all(|row| row.title.is_none()) {
        let verdicts = submit_all(connection, batch, delay_ms, max_in_flight, now).await?;
        return Ok(verdicts.into_iter().map(Some).collect());
    }
    let titled = batch.iter().filter(|row| !is_alias(row));
    let new = record_titles(connection, titled, now).await?;
    let is_wanted = |row: &&Prepared| {
        let is_new = |title| new.contains(&(row.source_id, title));
        !is_alias(row) && row.title.is_none_or(is_new)
    };
    let wanted: Vec<Prepared> = batch.iter().filter(is_wanted).cloned().collect();
    let verdicts = submit_all(connection, &wanted, delay_ms, max_in_flight, now).await?;
    add_aliases(connection, batch, &aliases, now).await?;
    let mut verdicts = verdicts.into_iter();
    let verdict = |row: &Prepared| match is_alias(row) {
        true => Some(Verdict::Known),
        false => is_wanted(&row).then(|| verdicts.next()).flatten(),
    };
    Ok(batch.iter().map(verdict).collect())
}

/// Records guids, in order; returns the URLs that are aliases, and of which.
async fn record_guids(
    connection: &mut Connection<'_>,
    batch: &[Prepared],
    now: i64,
) -> Result<HashMap<FrontierId, FrontierId>> {
    let rows: Vec<(&Prepared, GuidHash)> = batch
        .iter()
        .filter_map(|row| Some((row, row.guid?)))
        .collect();
    if rows.is_empty() {
        return Ok(HashMap::new());
    }
    let mut firsts: BTreeMap<(i64, GuidHash), FrontierId> = BTreeMap::new();
    for (row, guid) in &rows {
        firsts.entry((row.source_id, *guid)).or_insert(row.id);
    }
    let guids = GuidColumns::of(
        firsts
            .iter()
            .map(|((source, guid), id)| (*source, guid, id)),
    );
    connection
        .execute(
            ADD_GUIDS,
            &[
                &guids.sources,
                &guids.guids,
                &guids.hosts,
                &guids.urls,
                &now,
            ],
        )
        .await?;
    let stale = now - GUID_REFRESH_MS;
    connection
        .execute(REFRESH_GUIDS, &[&guids.sources, &guids.guids, &now, &stale])
        .await?;
    let all = GuidColumns::of(
        rows.iter()
            .map(|(row, guid)| (row.source_id, guid, &row.id)),
    );
    let moved = connection
        .query(
            MOVED_GUIDS,
            &[&all.sources, &all.guids, &all.hosts, &all.urls],
        )
        .await?;
    let (mut aliases, mut replaced) = (HashMap::new(), Vec::new());
    for found in &moved {
        let at = found.get::<_, i32>(0).unsigned_abs() as usize - 1;
        let (row, guid) = &rows[at];
        let url: &[u8] = found.get(2);
        let url = url
            .try_into()
            .map_err(|_| StoreError::corrupt("url id", url.len()))?;
        let target = FrontierId {
            host: HostId(found.get(1)),
            url: UrlId(url),
        };
        let status: Option<i16> = found.get(3);
        let is_added_now = status.is_none() && firsts.values().any(|first| *first == target);
        let is_alive = status.is_some_and(|status| stored_status(status) != Status::Dead);
        match target != row.id && (is_alive || is_added_now) {
            true => drop(aliases.insert(row.id, target)),
            false => replaced.push((row.source_id, guid, &row.id)),
        }
    }
    if !replaced.is_empty() {
        let guids = GuidColumns::of(replaced.into_iter());
        connection
            .execute(
                REPLACE_GUIDS,
                &[
                    &guids.sources,
                    &guids.guids,
                    &guids.hosts,
                    &guids.urls,
                    &now,
                ],
            )
            .await?;
        connection
            .execute(REMOVE_GUID_ALIASES, &[&guids.hosts, &guids.urls])
            .await?;
    }
    Ok(aliases)
}

/// Guids and their URLs as columns.
#[derive(Default)]
struct GuidColumns<'a> {
    sources: Vec<i64>,
    guids: Vec<&'a [u8]>,
    hosts: Vec<i64>,
    urls: Vec<&'a [u8]>,
}

impl<'a> GuidColumns<'a> {
    fn of(rows: impl Iterator<Item = (i64, &'a GuidHash, &'a FrontierId)>) -> Self {
        let mut columns = Self::default();
        for (source, guid, id) in rows {
            columns.sources.push(source);
            columns.guids.push(guid);
            columns.hosts.push(id.host.0);
            columns.urls.push(&id.url.0);
        }
        columns
    }
}

/// Makes URLs aliases of the pages that have their guids, unless they are known
/// themselves.
async fn add_aliases(
    connection: &mut Connection<'_>,
    batch: &[Prepared],
    aliases: &HashMap<FrontierId, FrontierId>,
    now: i64,
) -> Result<()> {
    let rows: Vec<(&Prepared, &FrontierId)> = batch
        .iter()
        .filter_map(|row| Some((row, aliases.get(&row.id)?)))
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    let hosts: Vec<i64> = rows.iter().map(|(row, _)| row.id.host.0).collect();
    let urls: Vec<&[u8]> = rows.iter().map(|(row, _)| &row.id.url.0[..]).collect();
    let target_hosts: Vec<i64> = rows.iter().map(|(_, target)| target.host.0).collect();
    let target_urls: Vec<&[u8]> = rows.iter().map(|(_, target)| &target.url.0[..]).collect();
    let added = connection
        .query(
            ADD_ALIASES,
            &[&hosts, &urls, &target_hosts, &target_urls, &now],
        )
        .await?;
    let added: HashSet<(i64, &[u8])> = added.iter().map(|row| (row.get(0), row.get(1))).collect();
    let added: Vec<(&FrontierId, String)> = rows
        .iter()
        .filter(|(row, _)| added.contains(&(row.id.host.0, &row.id.url.0[..])))
        .map(|(row, target)| (*target, alias_detail(row)))
        .collect();
    let mut events = Events::default();
    for (target, detail) in &added {
        events.add(target.host.0, &target.url.0, ALIAS_EVENT, detail);
    }
    events.write(connection, now).await
}

/// Records titles, in order; returns those that are new to their source.
async fn record_titles<'a>(
    connection: &mut Connection<'_>,
    rows: impl Iterator<Item = &'a Prepared>,
    now: i64,
) -> Result<HashSet<(i64, TitleHash)>> {
    let titles: BTreeSet<(i64, TitleHash)> = rows
        .filter_map(|row| Some((row.source_id, row.title?)))
        .collect();
    let (sources, hashes): (Vec<i64>, Vec<&[u8]>) =
        titles.iter().map(|(id, hash)| (*id, &hash[..])).unzip();
    let rows = connection
        .query(ADD_TITLES, &[&sources, &hashes, &now])
        .await?;
    let new =
        |row: &tokio_postgres::Row| Some((row.get(0), row.get::<_, &[u8]>(1).try_into().ok()?));
    Ok(rows.iter().filter_map(new).collect())
}

async fn submit_all(
    connection: &mut Connection<'_>,
    batch: &[Prepared],
    delay_ms: i32,
    max_in_flight: i16,
    now: i64,
) -> Result<Vec<Verdict>> {
    let hosts: Vec<i64> = batch.iter().map(|row| row.id.host.0).collect();
    let urls: Vec<&[u8]> = batch.iter().map(|row| &row.id.url.0[..]).collect();
    let mut verdicts = vec![Verdict::New; batch.len()];
    let mut raised: Vec<(usize, QueueHead)> = Vec::new();
    for row in connection.query(KNOWN, &[&hosts, &urls]).await? {
        let at = row.get::<_, i32>(0).unsigned_abs() as usize - 1;
        verdicts[at] = Verdict::Known;
        if row.get(1) {
            let current = QueueHead {
                priority: row.get(2),
                due: row.get(3),
            };
            let wanted = QueueHead {
                priority: batch[at].priority.max(current.priority),
                due: batch[at].not_before.max(now).min(current.due),
            };
            if wanted != current {
                raised.push((at, wanted));
            }
        }
    }
    let new: Vec<usize> = (0..batch.len())
        .filter(|at| verdicts[*at] == Verdict::New)
        .collect();
    if new.is_empty() && raised.is_empty() {
        return Ok(verdicts);
    }
    add_hosts(connection, batch, &new, delay_ms, max_in_flight).await?;
    let touched = new.iter().chain(raised.iter().map(|(at, _)| at));
    let touched = hosts_of(touched.map(|at| batch[*at].id.host.0));
    connection.query(LOCK_HOSTS, &[&touched]).await?;
    let mut heads: BTreeMap<i64, QueueHead> = BTreeMap::new();
    let mut improve_head = |host: i64, head: QueueHead| {
        let best = heads.entry(host).or_insert(QueueHead::EMPTY);
        *best = best.better(head, now);
    };
    let mut deltas = CounterDeltas::default();
    for at in add(connection, batch, &new, now, &mut verdicts).await? {
        let row = &batch[at];
        improve_head(
            row.id.host.0,
            QueueHead {
                priority: row.priority,
                due: row.not_before.max(now),
            },
        );
        deltas.add(row.source_id, row.origin, Status::Pending, 1);
    }
    for (at, head) in raise(connection, batch, &raised, now).await? {
        verdicts[at] = Verdict::Raised;
        let best = heads.entry(batch[at].id.host.0).or_insert(QueueHead::EMPTY);
        *best = best.better(head, now);
    }
    let ids: Vec<i64> = heads.keys().copied().collect();
    let priorities: Vec<i16> = heads.values().map(|head| head.priority).collect();
    let dues: Vec<i64> = heads.values().map(|head| head.due).collect();
    connection
        .execute(IMPROVE_HEADS, &[&ids, &priorities, &dues, &now])
        .await?;
    write_counter_deltas(connection, &deltas).await?;
    Ok(verdicts)
}

async fn add_hosts(
    connection: &mut Connection<'_>,
    batch: &[Prepared],
    new: &[usize],
    delay_ms: i32,
    max_in_flight: i16,
) -> Result<()> {
    let names: BTreeMap<i64, &str> = new
        .iter()
        .map(|at| (batch[*at].id.host.0, batch[*at].host_key.as_str()))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let (ids, keys): (Vec<i64>, Vec<&str>) = names.into_iter().unzip();
    connection
        .execute(ADD_HOSTS, &[&ids, &keys, &delay_ms, &max_in_flight])
        .await
        .map(drop)
}

/// Inserts URLs and queue rows; returns the positions that were really new. The
/// hosts are locked.
async fn add(
    connection: &mut Connection<'_>,
    batch: &[Prepared],
    new: &[usize],
    now: i64,
    verdicts: &mut [Verdict],
) -> Result<Vec<usize>> {
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<&Prepared> = new.iter().map(|at| &batch[*at]).collect();
    let column = |of: fn(&Prepared) -> i16| rows.iter().map(|row| of(row)).collect::<Vec<_>>();
    let hosts: Vec<i64> = rows.iter().map(|row| row.id.host.0).collect();
    let urls: Vec<&[u8]> = rows.iter().map(|row| &row.id.url.0[..]).collect();
    let tails: Vec<&[u8]> = rows.iter().map(|row| &row.key_tail[..]).collect();
    let texts: Vec<&str> = rows.iter().map(|row| row.url.as_str()).collect();
    let sources: Vec<i64> = rows.iter().map(|row| row.source_id).collect();
    let parents: Vec<Option<&str>> = rows.iter().map(|row| row.parent_url.as_deref()).collect();
    let items: Vec<Option<&str>> = rows.iter().map(|row| row.item.as_deref()).collect();
    let inserted = connection
        .query(
            ADD_URLS,
            &[
                &hosts,
                &urls,
                &tails,
                &texts,
                &sources,
                &column(|row| row.origin),
                &column(|row| row.priority),
                &column(|row| row.depth),
                &column(|row| row.norm_v),
                &parents,
                &items,
                &now,
            ],
        )
        .await?;
    // Another transaction may have inserted some of them before the hosts were locked.
    let mut position: HashMap<(i64, &[u8]), usize> = rows
        .iter()
        .zip(new)
        .map(|(row, at)| ((row.id.host.0, &row.id.url.0[..]), *at))
        .collect();
    let mut added: Vec<usize> = Vec::with_capacity(inserted.len());
    for row in &inserted {
        added.extend(position.remove(&(row.get(0), row.get(1))));
    }
    for at in position.into_values() {
        verdicts[at] = Verdict::Known;
    }
    let hosts: Vec<i64> = added.iter().map(|at| batch[*at].id.host.0).collect();
    let urls: Vec<&[u8]> = added.iter().map(|at| &batch[*at].id.url.0[..]).collect();
    let priorities: Vec<i16> = added.iter().map(|at| batch[*at].priority).collect();
    let dues: Vec<i64> = added
        .iter()
        .map(|at| batch[*at].not_before.max(now))
        .collect();
    connection
        .execute(ADD_QUEUE, &[&hosts, &urls, &priorities, &dues])
        .await?;
    Ok(added)
}

/// Raises pending URLs. The hosts are locked now, so the rows are read again.
async fn raise(
    connection: &mut Connection<'_>,
    batch: &[Prepared],
    raised: &[(usize, QueueHead)],
    now: i64,
) -> Result<Vec<(usize, QueueHead)>> {
    if raised.is_empty() {
        return Ok(Vec::new());
    }
    let hosts: Vec<i64> = raised.iter().map(|(at, _)| batch[*at].id.host.0).collect();
    let urls: Vec<&[u8]> = raised
        .iter()
        .map(|(at, _)| &batch[*at].id.url.0[..])
        .collect();
    let priorities: Vec<i16> = raised.iter().map(|(_, head)| head.priority).collect();
    let dues: Vec<i64> = raised.iter().map(|(_, head)| head.due).collect();
    let rows = connection
        .query(
            "UPDATE queue q SET priority = greatest(q.priority, n.priority), due_at = least(q.due_at, n.due_at)
             FROM unnest($1::BIGINT[], $2::BYTEA[], $3::SMALLINT[], $4::BIGINT[]) WITH ORDINALITY AS n(host_id, url_id, priority, due_at, at)
             WHERE q.host_id = n.host_id AND q.url_id = n.url_id AND q.owner IS NULL
             RETURNING n.at::INTEGER, q.priority, q.due_at",
            &[&hosts, &urls, &priorities, &dues],
        )
        .await?;
    connection
        .execute(
            "UPDATE urls u SET priority = greatest(u.priority, n.priority), updated_at = $4
             FROM unnest($1::BIGINT[], $2::BYTEA[], $3::SMALLINT[]) AS n(host_id, url_id, priority)
             WHERE u.host_id = n.host_id AND u.url_id = n.url_id",
            &[&hosts, &urls, &priorities, &now],
        )
        .await?;
    let done: Vec<(usize, QueueHead)> = rows
        .iter()
        .map(|row| {
            (
                raised[row.get::<_, i32>(0).unsigned_abs() as usize - 1].0,
                QueueHead {
                    priority: row.get(1),
                    due: row.get(2),
                },
            )
        })
        .collect();
    let details: Vec<String> = done
        .iter()
        .map(|(_, head)| serde_json::json!({ "to": head.priority }).to_string())
        .collect();
    let mut events = Events::default();
    for ((at, _), detail) in done.iter().zip(&details) {
        events.add(batch[*at].id.host.0, &batch[*at].id.url.0, "raised", detail);
    }
    events.write(connection, now).await?;
    Ok(done)
}

/// A row of a bulk action.
struct Found {
    source_id: i64,
    origin: i16,
    counted_as: Status,
    host: i64,
    url: Vec<u8>,
}

fn found(row: &tokio_postgres::Row) -> Found {
    Found {
        source_id: row.get(0),
        origin: row.get(1),
        counted_as: if row.get(3) {
            Status::Fetching
        } else {
            stored_status(row.get(2))
        },
        host: row.get(4),
        url: row.get(5),
    }
}

const FIND: &str =
    "SELECT u.source_id, u.origin, u.status, q.owner IS NOT NULL, u.host_id, u.url_id
    FROM unnest($1::BIGINT[], $2::BYTEA[]) AS k(host_id, url_id)
    JOIN urls u ON u.host_id = k.host_id AND u.url_id = k.url_id
    LEFT JOIN queue q ON q.host_id = u.host_id AND q.url_id = u.url_id";

async fn locked(
    connection: &mut Connection<'_>,
    ids: &[FrontierId],
    only_unleased_at: Option<i64>,
) -> Result<(Vec<i64>, Vec<Found>)> {
    let hosts = hosts_of(ids.iter().map(|id| id.host.0));
    connection.query(LOCK_HOSTS, &[&hosts]).await?;
    let host_ids: Vec<i64> = ids.iter().map(|id| id.host.0).collect();
    let url_ids: Vec<&[u8]> = ids.iter().map(|id| &id.url.0[..]).collect();
    let rows = match only_unleased_at {
        Some(now) => {
            let sql = format!("{FIND} WHERE q.owner IS NULL OR q.due_at <= $3");
            connection.query(&sql, &[&host_ids, &url_ids, &now]).await?
        }
        None => connection.query(FIND, &[&host_ids, &url_ids]).await?,
    };
    Ok((hosts, rows.iter().map(found).collect()))
}

pub(super) async fn remove(
    connection: &mut Connection<'_>,
    ids: &[FrontierId],
    now: i64,
) -> Result<u64> {
    let (hosts, rows) = locked(connection, ids, None).await?;
    let (host_ids, url_ids): (Vec<i64>, Vec<&[u8]>) =
        rows.iter().map(|row| (row.host, &row.url[..])).unzip();
    for table in ["queue", "urls"] {
        let sql = format!(
            "DELETE FROM {table} t USING unnest($1::BIGINT[], $2::BYTEA[]) AS k(host_id, url_id) WHERE t.host_id = k.host_id AND t.url_id = k.url_id"
        );
        connection.execute(&sql, &[&host_ids, &url_ids]).await?;
    }
    let (mut deltas, mut events) = (CounterDeltas::default(), Events::default());
    for row in &rows {
        deltas.add(row.source_id, row.origin, row.counted_as, -1);
        events.add(row.host, &row.url, "removed", "{}");
    }
    events.write(connection, now).await?;
    refresh_heads(connection, &hosts, now).await?;
    write_counter_deltas(connection, &deltas).await?;
    Ok(rows.len() as u64)
}

pub(super) async fn requeue(
    connection: &mut Connection<'_>,
    ids: &[FrontierId],
    now: i64,
) -> Result<u64> {
    let (hosts, rows) = locked(connection, ids, Some(now)).await?;
    let (host_ids, url_ids): (Vec<i64>, Vec<&[u8]>) =
        rows.iter().map(|row| (row.host, &row.url[..])).unzip();
    connection
        .execute(
            "INSERT INTO queue (host_id, url_id, priority, due_at, attempt)
             SELECT u.host_id, u.url_id, u.priority, $3, u.attempts
             FROM unnest($1::BIGINT[], $2::BYTEA[]) AS k(host_id, url_id) JOIN urls u ON u.host_id = k.host_id AND u.url_id = k.url_id
             ON CONFLICT (host_id, url_id) DO UPDATE SET due_at = excluded.due_at, owner = NULL, crashes = 0, priority = abs(queue.priority)",
            &[&host_ids, &url_ids, &now],
        )
        .await?;
    connection
        .execute(
            "UPDATE urls u SET status = 0, retry_count = 0, reason = NULL, attempts = q.attempt, updated_at = $3
             FROM unnest($1::BIGINT[], $2::BYTEA[]) AS k(host_id, url_id) JOIN queue q ON q.host_id = k.host_id AND q.url_id = k.url_id
             WHERE u.host_id = k.host_id AND u.url_id = k.url_id",
            &[&host_ids, &url_ids, &now],
        )
        .await?;
    let details: Vec<String> = rows
        .iter()
        .map(|row| serde_json::json!({ "was": row.counted_as }).to_string())
        .collect();
    let (mut deltas, mut events) = (CounterDeltas::default(), Events::default());
    for (row, detail) in rows.iter().zip(&details) {
        deltas.add(row.source_id, row.origin, row.counted_as, -1);
        deltas.add(row.source_id, row.origin, Status::Pending, 1);
        events.add(row.host, &row.url, "retried", detail);
    }
    events.write(connection, now).await?;
    refresh_heads(connection, &hosts, now).await?;
    write_counter_deltas(connection, &deltas).await?;
    Ok(rows.len() as u64)
}
