//! The obvious design, for comparison: one wide table, a join with the host
//! table in the claim, one URL at a time. Its tables have names of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_postgres::{Client, NoTls};

use crate::backlog::{Backlog, Figure};

/// Table, indexes and trigger as a published system shipped them.
const TABLES: &str = "DROP TABLE IF EXISTS reference_frontier, reference_host;
    CREATE TABLE reference_frontier (
        id UUID PRIMARY KEY DEFAULT gen_random_uuid(), url TEXT NOT NULL, url_hash CHAR(64) NOT NULL UNIQUE, host TEXT NOT NULL,
        source_id VARCHAR(36) NOT NULL DEFAULT '', origin VARCHAR(20) NOT NULL DEFAULT 'feed', parent_url TEXT,
        depth SMALLINT NOT NULL DEFAULT 0, priority SMALLINT NOT NULL, status VARCHAR(20) NOT NULL DEFAULT 'pending',
        next_fetch_at TIMESTAMPTZ NOT NULL DEFAULT now(), last_fetched_at TIMESTAMPTZ, fetch_count INT NOT NULL DEFAULT 0,
        content_hash CHAR(64), etag TEXT, last_modified TEXT, retry_count SMALLINT NOT NULL DEFAULT 0, last_error TEXT,
        discovered_at TIMESTAMPTZ NOT NULL DEFAULT now(), created_at TIMESTAMPTZ NOT NULL DEFAULT now(), updated_at TIMESTAMPTZ NOT NULL DEFAULT now());
    CREATE TABLE reference_host (host TEXT PRIMARY KEY, last_fetch_at TIMESTAMPTZ NOT NULL, min_delay_ms INT NOT NULL);
    CREATE OR REPLACE FUNCTION reference_touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.updated_at = now(); RETURN NEW; END'";

const INDEXES: &str = "CREATE INDEX ON reference_frontier (priority DESC, next_fetch_at) WHERE status = 'pending';
    CREATE INDEX ON reference_frontier (host, last_fetched_at DESC);
    CREATE INDEX ON reference_frontier (source_id, status);
    CREATE INDEX ON reference_frontier (content_hash) WHERE content_hash IS NOT NULL;
    CREATE TRIGGER reference_touch BEFORE UPDATE ON reference_frontier FOR EACH ROW EXECUTE FUNCTION reference_touch();
    ANALYZE reference_frontier; ANALYZE reference_host";

const CLAIM: &str = "SELECT f.id::text, f.host FROM reference_frontier f LEFT JOIN reference_host h ON h.host = f.host
    WHERE f.status = 'pending' AND f.next_fetch_at <= now()
      AND (h.host IS NULL OR h.last_fetch_at + make_interval(secs => h.min_delay_ms / 1000.0) <= now())
    ORDER BY f.priority DESC, f.next_fetch_at LIMIT 1 FOR UPDATE OF f SKIP LOCKED";

async fn connect(address: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
    tokio::spawn(async move { drop(connection.await) });
    client.batch_execute("SET synchronous_commit = off").await?;
    Ok(client)
}

pub(super) async fn fill(
    address: &str,
    size: usize,
    hosts: usize,
    backlog: Backlog,
    delay_ms: u32,
) -> anyhow::Result<()> {
    let client = connect(address).await?;
    client.batch_execute(TABLES).await?;
    let even = format!("'h' || n % {hosts} || '.example'");
    let (host, priority) = match backlog {
        Backlog::Uniform => (even, "5".to_owned()),
        Backlog::Skewed => {
            let spread = "n * 0.618033988749895 - floor(n * 0.618033988749895)";
            (
                format!("'h' || floor({hosts} * ({spread}) ^ 3) || '.example'"),
                "n % 10 + 1".to_owned(),
            )
        }
        Backlog::Adversarial => (
            format!("CASE WHEN n % 2 = 0 THEN 'blocked.example' ELSE {even} END"),
            "CASE WHEN n % 2 = 0 THEN 10 ELSE 5 END".to_owned(),
        ),
    };
    let rows = format!(
        "INSERT INTO reference_frontier (url, url_hash, host, priority)
         SELECT 'https://' || host || '/' || n, md5(n::text) || md5('x' || n), host, priority
         FROM (SELECT n, {host} AS host, {priority} AS priority FROM generate_series(1, {size}) n) x;
         INSERT INTO reference_host SELECT DISTINCT host, now() - interval '1 hour', {delay_ms} FROM reference_frontier;
         UPDATE reference_host SET min_delay_ms = 2000000000 WHERE host = 'blocked.example'"
    );
    client.batch_execute(&rows).await?;
    client.batch_execute(INDEXES).await?;
    Ok(())
}

pub(super) async fn measure(
    address: &str,
    urls: usize,
    workers: usize,
    backlog: Backlog,
    delay: Duration,
    seconds: Duration,
) -> anyhow::Result<Figure> {
    let starts: Arc<Mutex<(HashMap<String, Instant>, usize)>> = Arc::default();
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..workers {
        let (mut client, starts) = (connect(address).await?, Arc::clone(&starts));
        tasks.spawn(async move {
            let claim = client.prepare(CLAIM).await?;
            let (mut done, mut times) = (0_usize, Vec::new());
            while start.elapsed() < seconds {
                let sent = Instant::now();
                let transaction = client.transaction().await?;
                let row = transaction.query_opt(&claim, &[]).await?;
                let Some(row) = row else {
                    transaction.commit().await?;
                    times.push(sent.elapsed().as_secs_f64() * 1000.0);
                    continue;
                };
                let host: String = row.get(1);
                let id: String = row.get(0);
                transaction.execute("UPDATE reference_frontier SET status = 'fetching', updated_at = now() WHERE id = $1::text::uuid", &[&id]).await?;
                transaction.commit().await?;
                times.push(sent.elapsed().as_secs_f64() * 1000.0);
                {
                    let mut starts = starts.lock().unwrap_or_else(PoisonError::into_inner);
                    let before = starts.0.insert(host.clone(), Instant::now());
                    let too_soon = before.is_some_and(|before| before.elapsed() < delay);
                    starts.1 += usize::from(too_soon);
                }
                client
                    .execute(
                        "UPDATE reference_frontier SET status = 'pending', next_fetch_at = now(), last_fetched_at = now(), fetch_count = fetch_count + 1, updated_at = now() WHERE id = $1::text::uuid",
                        &[&id],
                    )
                    .await?;
                client
                    .execute(
                        "INSERT INTO reference_host VALUES ($1, now(), 1000) ON CONFLICT (host) DO UPDATE SET last_fetch_at = now()",
                        &[&host],
                    )
                    .await?;
                done += 1;
            }
            anyhow::Ok((done, times))
        });
    }
    let (mut completed, mut times) = (0, Vec::new());
    while let Some(task) = tasks.join_next().await {
        let (done, took) = task??;
        completed += done;
        times.extend(took);
    }
    times.sort_by(f64::total_cmp);
    let violations = starts.lock().unwrap_or_else(PoisonError::into_inner).1;
    Ok(Figure {
        engine: "reference",
        what: "claim+complete",
        urls,
        backlog: backlog.as_str(),
        workers,
        per_second: completed as f64 / start.elapsed().as_secs_f64(),
        p99_ms: times.get(times.len() * 99 / 100).copied(),
        violations: Some(violations),
    })
}
