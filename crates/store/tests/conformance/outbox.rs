//! The outbox beyond the first attempt: replays, retries of dead letters, limits,
//! and the cursor of document changes.

use std::time::Duration;

use tidings_store::{
    ChangeCursor, Delivery, DeliveryVerdict, NewDocument, Outcome, RetriedDeadLetters, SinkService,
};

use crate::fixture::{Fixture, MINUTE, SECOND, id, target};

const HOUR: Duration = Duration::from_secs(3600);

on_both_engines!(
    an_accepted_delivery_is_counted_once,
    a_replay_delivers_earlier_documents_again,
    dead_letters_are_retried_and_a_newer_revision_supersedes_them,
    dead_letters_without_a_document_are_counted,
    a_batch_of_verdicts_is_completed_delivery_by_delivery,
    the_outbox_has_a_limit,
    a_claim_has_no_more_bytes_than_wanted_but_one_document,
    enabling_a_sink_queues_what_it_missed,
    a_registered_sink_stays_disabled_until_it_is_enabled,
    a_removed_sink_leaves_nothing_behind,
    a_sink_with_files_is_served_by_one_node,
    a_sink_that_no_process_serves_is_known,
    changes_are_in_order_and_a_changed_document_is_listed_again,
    many_documents_are_read_in_one_call,
);

fn with_document(url: &str, text: &str) -> Outcome {
    let hash = vec![text.len() as u8, text.as_bytes()[0]];
    Outcome::Fetched {
        etag: None,
        last_modified: None,
        content_hash: Some(hash.clone()),
        document: Some(Box::new(NewDocument {
            key: target(url).key,
            source_id: 0,
            title: text.to_owned(),
            content_hash: Some(hash),
            sketch: None,
            body: format!("{{\"title\":\"{text}\"}}"),
        })),
        again_in: None,
    }
}

pub(crate) async fn fetch(t: &Fixture, url: &str, text: &str) {
    t.submit(&[url]).await;
    t.advance(MINUTE);
    // One that was fetched before is fetched again.
    t.store.requeue(&[id(url)]).await.unwrap();
    let claim = t.claim_one().await;
    assert!(t.complete(&claim, with_document(url, text)).await);
}

async fn claim(t: &Fixture) -> Vec<Delivery> {
    t.store
        .claim_deliveries("s", 100, u64::MAX, MINUTE)
        .await
        .unwrap()
}

async fn complete(t: &Fixture, deliveries: &[Delivery], verdict: &DeliveryVerdict) {
    let verdicts: Vec<_> = deliveries
        .iter()
        .map(|delivery| (delivery.clone(), verdict.clone()))
        .collect();
    t.store.complete_deliveries("s", &verdicts).await.unwrap();
}

async fn state(t: &Fixture) -> (i64, i64, i64) {
    let state = t.store.outbox().await.unwrap().remove(0);
    (state.delivered, state.waiting, state.dead)
}

/// Retried, and without a document.
async fn retry_dead_letters(t: &Fixture) -> (u64, u64) {
    let RetriedDeadLetters {
        retried,
        missing_documents,
    } = t.store.retry_dead_letters("s").await.unwrap();
    (retried, missing_documents)
}

fn refused() -> DeliveryVerdict {
    DeliveryVerdict::Dead {
        reason: "mapping".to_owned(),
    }
}

async fn an_accepted_delivery_is_counted_once(t: Fixture) {
    t.store.register_sink("s", false).await.unwrap();
    fetch(&t, "https://a.example/1", "one").await;
    fetch(&t, "https://a.example/2", "twice").await;
    assert!(t.store.next_delivery_due("s").await.unwrap().is_some());
    let deliveries = claim(&t).await;
    complete(&t, &deliveries, &DeliveryVerdict::Accepted).await;
    complete(&t, &deliveries, &DeliveryVerdict::Accepted).await;
    assert_eq!(state(&t).await, (2, 0, 0));
    assert_eq!(t.store.next_delivery_due("s").await.unwrap(), None);
}

async fn a_claim_has_no_more_bytes_than_wanted_but_one_document(t: Fixture) {
    t.store.register_sink("s", false).await.unwrap();
    for (at, bytes) in [(1, 1000), (2, 5000), (3, 900), (4, 900), (5, 10)] {
        let text = format!("{at}{}", "é".repeat(bytes / 2));
        fetch(&t, &format!("https://a.example/{at}"), &text).await;
    }
    let claim = async |max_docs, max_bytes| {
        let claimed = t.store.claim_deliveries("s", max_docs, max_bytes, MINUTE);
        claimed.await.unwrap().len()
    };
    // What does not fit stays for the next claim, in its place.
    assert_eq!(
        claim(100, 2000).await,
        1,
        "the second is too large for both"
    );
    assert_eq!(
        claim(100, 2000).await,
        1,
        "too large, and delivered all the same"
    );
    assert_eq!(claim(100, 2000).await, 3);
    assert_eq!(claim(100, 2000).await, 0);
    t.advance(HOUR);
    assert_eq!(claim(2, u64::MAX).await, 2);
}

async fn a_replay_delivers_earlier_documents_again(t: Fixture) {
    fetch(&t, "https://a.example/1", "one").await;
    t.store.register_sink("s", false).await.unwrap();
    t.advance(SECOND);
    let since = t.store.now().await.unwrap();
    fetch(&t, "https://a.example/2", "twice").await;
    assert_eq!(state(&t).await, (0, 1, 0));
    // A sink that was added late gets earlier documents.
    assert_eq!(t.store.replay("s", None).await.unwrap(), 1);
    assert_eq!(state(&t).await, (0, 2, 0));
    complete(&t, &claim(&t).await, &DeliveryVerdict::Accepted).await;
    assert_eq!(t.store.replay("s", Some(since)).await.unwrap(), 1);
    assert_eq!(t.store.replay("nobody", None).await.unwrap(), 0);
    assert_eq!(state(&t).await, (2, 1, 0));
}

async fn dead_letters_are_retried_and_a_newer_revision_supersedes_them(t: Fixture) {
    t.store.register_sink("s", false).await.unwrap();
    fetch(&t, "https://a.example/1", "one").await;
    complete(&t, &claim(&t).await, &refused()).await;
    assert_eq!(state(&t).await, (0, 0, 1));
    assert_eq!(retry_dead_letters(&t).await, (1, 0));
    assert_eq!(state(&t).await, (0, 1, 0));
    complete(&t, &claim(&t).await, &refused()).await;
    fetch(&t, "https://a.example/1", "other").await;
    complete(&t, &claim(&t).await, &DeliveryVerdict::Accepted).await;
    assert_eq!(state(&t).await, (1, 0, 0));
}

async fn dead_letters_without_a_document_are_counted(t: Fixture) {
    t.store.register_sink("s", false).await.unwrap();
    for n in 1..4 {
        fetch(&t, &format!("https://a.example/{n}"), &"x".repeat(n)).await;
    }
    complete(&t, &claim(&t).await, &refused()).await;
    t.sql("DELETE FROM documents WHERE title = 'xx'").await;
    assert_eq!(retry_dead_letters(&t).await, (2, 1));
    assert_eq!(state(&t).await, (0, 2, 0));
    assert_eq!(retry_dead_letters(&t).await, (0, 0));
    assert_eq!(state(&t).await, (0, 2, 0));
}

async fn a_batch_of_verdicts_is_completed_delivery_by_delivery(t: Fixture) {
    t.store.register_sink("s", false).await.unwrap();
    for n in 0..12 {
        fetch(&t, &format!("https://h{n}.example/"), &"x".repeat(n + 1)).await;
    }
    let verdict = |n: usize| match n % 3 {
        0 => DeliveryVerdict::Accepted,
        1 => DeliveryVerdict::Retry {
            error: "full".to_owned(),
            after: SECOND,
        },
        _ => refused(),
    };
    let deliveries = claim(&t).await;
    let verdicts: Vec<_> = deliveries
        .iter()
        .enumerate()
        .map(|(n, delivery)| {
            let mut delivery = delivery.clone();
            // Some were claimed by another, or are about an older revision.
            match n {
                0..3 => delivery.attempt += 1,
                3..6 => delivery.revision -= 1,
                _ => {}
            }
            (delivery, verdict(n))
        })
        .collect();
    t.store.complete_deliveries("s", &verdicts).await.unwrap();
    assert_eq!(state(&t).await, (2, 8, 2));
    t.store.complete_deliveries("s", &verdicts).await.unwrap();
    assert_eq!(
        state(&t).await,
        (2, 8, 2),
        "the second time nothing is held"
    );
    t.store.complete_deliveries("s", &[]).await.unwrap();
    // Two are retried after a second; the others are leased for a minute.
    t.advance(SECOND);
    let again = claim(&t).await;
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(|delivery| delivery.attempt == 2));
    let history = t.store.explain(again[0].id).await.unwrap();
    assert_eq!(history.deliveries[0]["last_error"], "full");
    let dead = t.store.dead_letters("s", None, 10).await.unwrap();
    assert!(dead.iter().all(|letter| letter.reason == "mapping"));
    t.advance(MINUTE);
    assert_eq!(claim(&t).await.len(), 8);
}

async fn the_outbox_has_a_limit(t: Fixture) {
    t.store.register_sink("s", false).await.unwrap();
    for n in 1..4 {
        fetch(&t, &format!("https://a.example/{n}"), &"x".repeat(n)).await;
    }
    assert!(t.store.outbox_exceeds(2).await.unwrap());
    assert!(!t.store.outbox_exceeds(3).await.unwrap());
    // A disabled sink does not fill the outbox.
    t.store.disable_sink("s").await.unwrap();
    assert!(!t.store.outbox_exceeds(2).await.unwrap());
}

async fn enabling_a_sink_queues_what_it_missed(t: Fixture) {
    t.store.register_sink("s", false).await.unwrap();
    fetch(&t, "https://a.example/1", "early").await;
    complete(&t, &claim(&t).await, &DeliveryVerdict::Accepted).await;
    fetch(&t, "https://a.example/2", "pending").await;
    let in_flight = claim(&t).await;
    t.advance(HOUR);
    assert!(t.store.disable_sink("s").await.unwrap());
    fetch(&t, "https://a.example/2", "changed").await;
    fetch(&t, "https://a.example/3", "missed").await;
    assert_eq!(state(&t).await, (1, 1, 0));
    assert_eq!(t.store.enable_sink("s").await.unwrap(), Some(2));
    // What was sent before the change does not count for the changed document.
    complete(&t, &in_flight, &DeliveryVerdict::Accepted).await;
    assert_eq!(state(&t).await, (1, 2, 0));
    complete(&t, &claim(&t).await, &DeliveryVerdict::Accepted).await;
    assert_eq!(t.store.enable_sink("s").await.unwrap(), Some(0), "once");
    assert_eq!(state(&t).await, (3, 0, 0));
    assert_eq!(t.store.enable_sink("nobody").await.unwrap(), None);
    assert!(!t.store.disable_sink("nobody").await.unwrap());
}

async fn a_registered_sink_stays_disabled_until_it_is_enabled(t: Fixture) {
    t.store.register_sink("s", false).await.unwrap();
    assert_eq!(serve(&t, None).await, SinkService::Served);
    t.store.disable_sink("s").await.unwrap();
    let disabled_at = t.store.outbox().await.unwrap()[0].disabled_at;
    t.advance(HOUR);
    t.store.register_sink("s", true).await.unwrap();
    t.store.disable_sink("s").await.unwrap();
    assert_eq!(serve(&t, None).await, SinkService::Disabled);
    let row = t.store.outbox().await.unwrap().remove(0);
    assert!(!row.enabled);
    assert_eq!(row.disabled_at, disabled_at, "the first time counts");
    t.store.enable_sink("s").await.unwrap();
    assert_eq!(serve(&t, None).await, SinkService::Served);
    assert_eq!(t.store.outbox().await.unwrap()[0].disabled_at, None);
}

async fn a_removed_sink_leaves_nothing_behind(t: Fixture) {
    t.store.register_sink("s", false).await.unwrap();
    fetch(&t, "https://a.example/1", "dead").await;
    complete(&t, &claim(&t).await, &refused()).await;
    fetch(&t, "https://a.example/2", "pending").await;
    assert!(t.store.remove_sink("s").await.unwrap());
    assert!(!t.store.remove_sink("s").await.unwrap());
    assert!(t.store.outbox().await.unwrap().is_empty());
    assert_eq!(serve(&t, None).await, SinkService::Removed);
    t.store.register_sink("s", false).await.unwrap();
    assert_eq!(state(&t).await, (0, 0, 0), "it starts anew");
}

async fn serve(t: &Fixture, node: Option<&str>) -> SinkService {
    t.store.serve_sink("s", node).await.unwrap()
}

async fn a_sink_with_files_is_served_by_one_node(t: Fixture) {
    let other = |node: &str| SinkService::OtherNode(node.to_owned());
    t.store.register_sink("s", false).await.unwrap();
    assert_eq!(serve(&t, Some("a")).await, SinkService::Served);
    assert_eq!(serve(&t, Some("b")).await, other("a"));
    assert_eq!(serve(&t, Some("a")).await, SinkService::Served);
    // However long the node is away.
    t.advance(HOUR);
    assert_eq!(serve(&t, Some("b")).await, other("a"));
    assert!(t.store.move_sink("s", "b").await.unwrap());
    assert_eq!(serve(&t, Some("b")).await, SinkService::Served);
    assert_eq!(serve(&t, Some("a")).await, other("b"));
    assert!(!t.store.move_sink("nobody", "b").await.unwrap());
}

async fn a_sink_that_no_process_serves_is_known(t: Fixture) {
    let is_unserved = async || {
        let state = t.store.outbox().await.unwrap().remove(0);
        state.is_unserved(t.store.now().await.unwrap())
    };
    t.store.register_sink("s", false).await.unwrap();
    assert!(!is_unserved().await);
    t.advance(MINUTE);
    serve(&t, Some("a")).await;
    t.advance(MINUTE);
    assert!(!is_unserved().await);
    // Another node is no help.
    serve(&t, Some("b")).await;
    t.advance(MINUTE);
    assert!(is_unserved().await);
    serve(&t, Some("a")).await;
    assert!(!is_unserved().await);
    t.advance(HOUR);
    t.store.disable_sink("s").await.unwrap();
    assert!(!is_unserved().await, "a disabled sink needs no process");
}

pub(crate) type Change = (ChangeCursor, tidings_store::StoredDocument);

/// Waits for `count` changes. Transactions of other tests on the same server delay
/// them.
pub(crate) async fn changes(
    t: &Fixture,
    mut after: Option<ChangeCursor>,
    count: usize,
) -> Vec<Change> {
    let mut seen: Vec<Change> = Vec::new();
    let deadline = std::time::Instant::now() + MINUTE;
    while seen.len() < count && std::time::Instant::now() < deadline {
        let limit = (count - seen.len()) as u32;
        seen.extend(t.store.document_changes(after, limit).await.unwrap());
        after = seen.last().map(|(cursor, _)| *cursor).or(after);
        tokio::time::sleep(SECOND / 50).await;
    }
    seen
}

pub(crate) fn titles(changes: &[Change]) -> Vec<&str> {
    changes
        .iter()
        .map(|change| change.1.title.as_str())
        .collect()
}

async fn changes_are_in_order_and_a_changed_document_is_listed_again(t: Fixture) {
    let urls = [
        "https://b.example/1",
        "https://a.example/2",
        "https://c.example/3",
    ];
    for (n, url) in urls.iter().enumerate() {
        fetch(&t, url, &"x".repeat(n + 1)).await;
    }
    let first = changes(&t, None, 2).await;
    assert_eq!(titles(&first), ["x", "xx"]);
    let cursor: ChangeCursor = first[1].0.to_string().parse().unwrap();
    fetch(&t, urls[1], "changed").await;
    let rest = changes(&t, Some(cursor), 2).await;
    assert_eq!(titles(&rest), ["xxx", "changed"]);
    let end = t.store.document_changes(Some(rest[1].0), 10).await;
    assert!(end.unwrap().is_empty());
    assert!("7-zz".parse::<ChangeCursor>().is_err());
}

async fn many_documents_are_read_in_one_call(t: Fixture) {
    let urls: Vec<String> = (0..5).map(|n| format!("https://h{n}.example/")).collect();
    for (n, url) in urls.iter().enumerate() {
        fetch(&t, url, &"x".repeat(n + 1)).await;
    }
    let ids: Vec<_> = urls
        .iter()
        .map(|url| id(url))
        .chain([id("https://none.example/")])
        .collect();
    // More than are read in one statement.
    let ids = ids.repeat(50);
    assert!(t.store.documents(&ids).await.unwrap().len() >= 5);
    assert_eq!(t.store.documents(&ids[..6]).await.unwrap().len(), 5);
    assert!(t.store.documents(&[]).await.unwrap().is_empty());
}
