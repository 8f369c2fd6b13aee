//! Live streams: they start at a cursor, carry cursors, and end with their token.

use tidings_store::{Filter, Order};

use crate::fixture::{ADMIN, Served, VIEWER};

/// The ids of the events of a stream.
fn ids(text: &str) -> Vec<String> {
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
    ids.map(str::to_owned).collect()
}

fn is_whole(text: &str, count: usize) -> bool {
    text.matches("\ndata: ").count() >= count
        && text.trim_end_matches(['\r', '\n', ' ']).ends_with('}')
}

#[tokio::test]
async fn documents_are_streamed_and_resume_after_a_cursor() {
    let served = Served::start().await;
    served.fetched("https://a.example/1", "First").await;
    served.fetched("https://b.example/2", "Second").await;
    let stream = || {
        served
            .request("GET", "/api/v1/documents/stream")
            .token(VIEWER)
    };
    let all = stream().read_until(|text| is_whole(text, 2)).await;
    assert_eq!(all.header("content-type"), "text/event-stream");
    assert!(all.text.contains("\"title\":\"First\"") && all.text.contains("\"title\":\"Second\""));
    let first = ids(&all.text).remove(0);
    let rest = stream()
        .header("last-event-id", &first)
        .read_until(|text| is_whole(text, 1))
        .await;
    assert!(
        !rest.text.contains("First") && rest.text.contains("Second"),
        "{}",
        rest.text
    );
    let last = ids(&all.text).remove(1);
    let waiting = stream()
        .header("last-event-id", &last)
        .read_until(|text| is_whole(text, 1));
    let making = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        served.fetched("https://c.example/3", "Third").await;
    };
    let (live, ()) = tokio::join!(waiting, making);
    assert!(
        live.text.contains("Third") && !live.text.contains("Second"),
        "{}",
        live.text
    );
}

/// A document of a slow transaction: a copy of another.
const SLOW: &str = "INSERT INTO documents (host_id, url_id, key_tail, revision, source_id, title, fetched_at, body, change_id)
    SELECT $1, url_id, key_tail, 1, source_id, title, fetched_at, body, pg_current_xact_id()::text::BIGINT FROM documents WHERE host_id NOT IN (1, 2) LIMIT 1";

#[tokio::test]
async fn a_document_that_commits_late_is_streamed_too() {
    let (served, address) = Served::start_on_postgres().await;
    served.fetched("https://a.example/1", "First").await;
    let connect = async || {
        let connected = tokio_postgres::connect(&address, tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        client
    };
    let (mut one, mut two) = (connect().await, connect().await);
    let slow = one.transaction().await.unwrap();
    slow.execute(SLOW, &[&1_i64]).await.unwrap();
    let slower = two.transaction().await.unwrap();
    slower.execute(SLOW, &[&2_i64]).await.unwrap();
    let stream = || {
        served
            .request("GET", "/api/v1/documents/stream")
            .token(VIEWER)
    };
    let reading = stream().read_until(|text| is_whole(text, 5));
    let committing = async {
        let pause = || tokio::time::sleep(std::time::Duration::from_millis(200));
        served.fetched("https://b.example/2", "Second").await;
        pause().await;
        slower.commit().await.unwrap();
        served.fetched("https://c.example/3", "Third").await;
        pause().await;
        slow.commit().await.unwrap();
    };
    let (all, ()) = tokio::join!(reading, committing);
    let data = |text: &str| -> Vec<serde_json::Value> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let name = |document: &serde_json::Value| document["frontier_id"].as_str().unwrap().to_owned();
    let names: Vec<String> = data(&all.text).iter().map(name).collect();
    let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!((names.len(), distinct.len()), (5, 5), "{names:?}");
    // A client that resumes after any of them gets exactly the later ones.
    for (n, id) in ids(&all.text).iter().enumerate().take(4) {
        let rest = stream().header("last-event-id", id);
        let rest = rest.read_until(|text| is_whole(text, 4 - n)).await;
        let rest: Vec<String> = data(&rest.text).iter().map(name).collect();
        assert_eq!(rest, names[n + 1..]);
    }
}

/// Waits until the metrics report this number of streams.
pub(crate) async fn until_streams(served: &Served, number: &str) {
    let begun = std::time::Instant::now();
    loop {
        let metrics = served.get("/metrics").await.text;
        let mut lines = metrics.lines();
        let found = lines.find_map(|line| line.strip_prefix("tidings_streams "));
        if found == Some(number) {
            return;
        }
        assert!(begun.elapsed().as_secs() < 60, "{found:?}, not {number}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn events_start_now_or_after_a_cursor() {
    let served = Served::start().await;
    served.fetched("https://a.example/1", "First").await;
    let old = served
        .request("GET", "/api/v1/events?after=0")
        .token(VIEWER)
        .read_until(|text| is_whole(text, 1))
        .await;
    assert!(!ids(&old.text).is_empty());
    until_streams(&served, "0").await;
    let new = served
        .request("GET", "/api/v1/events")
        .token(VIEWER)
        .read_until(|text| is_whole(text, 1));
    let making = async {
        until_streams(&served, "1").await;
        served.fetched("https://b.example/2", "Second").await;
    };
    let (new, ()) = tokio::join!(new, making);
    let last_old: i64 = ids(&old.text).last().unwrap().parse().unwrap();
    let first_new: i64 = ids(&new.text)[0].parse().unwrap();
    assert!(first_new > last_old);
    let wrong = served
        .request("GET", "/api/v1/events")
        .token(VIEWER)
        .header("last-event-id", "x")
        .send()
        .await;
    wrong.assert_problem(400, "last-event-id");
}

#[tokio::test]
async fn a_stream_ends_with_its_token_and_is_counted_while_open() {
    let served = Served::start().await;
    let tokens = served.store.tokens().await.unwrap();
    let viewer = tokens
        .iter()
        .find(|token| token.name == "test viewer")
        .unwrap();
    let stream = tokio::spawn(served.request("GET", "/api/v1/events").token(VIEWER).send());
    until_streams(&served, "1").await;
    let path = format!("/api/v1/tokens/{}", viewer.token_id);
    served
        .request("DELETE", &path)
        .token(ADMIN)
        .send()
        .await
        .good();
    assert_eq!(stream.await.unwrap().status, 200);
    until_streams(&served, "0").await;
}

#[tokio::test]
async fn clients_that_never_read_do_not_block_others() {
    let served = Served::start().await;
    served.fetched("https://a.example/1", "First").await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        let request = served
            .request("GET", "/api/v1/documents/stream")
            .token(VIEWER);
        silent.push(tokio::spawn(request.read_until(|_| false)));
    }
    served.fetched("https://b.example/2", "Second").await;
    let rows = served
        .store
        .list(&Filter::default(), Order::Id, None, 10)
        .await
        .unwrap();
    assert_eq!(rows.rows.len(), 2);
    served.get("/api/v1/frontier").await.good();
    silent.iter().for_each(tokio::task::JoinHandle::abort);
}
