//! Live streams: they begin where one is, carry their place, and end with their
//! token.

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
async fn documents_come_as_they_are_made_and_resume_after_the_last() {
    let served = Served::start().await;
    served.fetched("https://a.example/1", "First").await;
    served.fetched("https://b.example/2", "Second").await;
    let stream = || served.ask("GET", "/api/v1/documents/stream").token(VIEWER);
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

#[tokio::test]
async fn events_begin_now_or_after_a_number() {
    let served = Served::start().await;
    served.fetched("https://a.example/1", "First").await;
    let old = served
        .ask("GET", "/api/v1/events?after=0")
        .token(VIEWER)
        .read_until(|text| is_whole(text, 1))
        .await;
    assert!(!ids(&old.text).is_empty());
    let new = served
        .ask("GET", "/api/v1/events")
        .token(VIEWER)
        .read_until(|text| is_whole(text, 1));
    let making = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        served.fetched("https://b.example/2", "Second").await;
    };
    let (new, ()) = tokio::join!(new, making);
    let last_old: i64 = ids(&old.text).last().unwrap().parse().unwrap();
    let first_new: i64 = ids(&new.text)[0].parse().unwrap();
    assert!(first_new > last_old);
    let wrong = served
        .ask("GET", "/api/v1/events")
        .token(VIEWER)
        .header("last-event-id", "x")
        .send()
        .await;
    wrong.refuses(400, "last-event-id");
}

#[tokio::test]
async fn a_stream_ends_with_its_token_and_is_counted_while_it_lives() {
    let served = Served::start().await;
    let tokens = served.store.tokens().await.unwrap();
    let viewer = tokens
        .iter()
        .find(|token| token.name == "test viewer")
        .unwrap();
    let stream = tokio::spawn(served.ask("GET", "/api/v1/events").token(VIEWER).send());
    let streams = async || {
        let metrics = served.get("/metrics").await.text;
        metrics
            .lines()
            .find_map(|line| line.strip_prefix("tidings_streams "))
            .unwrap()
            .to_owned()
    };
    while streams().await != "1" {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let path = format!("/api/v1/tokens/{}", viewer.token_id);
    served.ask("DELETE", &path).token(ADMIN).send().await.good();
    assert_eq!(stream.await.unwrap().status, 200);
    while streams().await != "0" {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn clients_that_never_read_hold_nobody_up() {
    let served = Served::start().await;
    served.fetched("https://a.example/1", "First").await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        let ask = served.ask("GET", "/api/v1/documents/stream").token(VIEWER);
        silent.push(tokio::spawn(ask.read_until(|_| false)));
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
