//! What a completed claim writes: rows, documents, deliveries, events.

use tidings_store::{DeliveryVerdict, ExpiringTable, NewDocument, Outcome, Status, Verdict};

use crate::fixture::{Fixture, MINUTE, SECOND, failed, fetched, id, submission, target, urgent};

on_both_engines!(
    a_fetch_stores_validators_and_a_304_keeps_them,
    failures_are_counted_and_a_success_resets_them,
    a_deferred_url_loses_no_retry,
    dead_urls_stay_dead_with_a_reason,
    a_recrawl_is_claimable_when_it_is_due,
    a_redirect_is_recorded_under_both_urls,
    a_redirect_to_a_waiting_url_finishes_both,
    a_document_grows_revisions_only_when_its_text_changes,
    the_same_text_elsewhere_is_a_duplicate,
    of_two_equal_texts_in_one_batch_the_second_is_a_duplicate,
    every_sink_gets_one_delivery_and_every_delivery_a_verdict,
    a_lost_lease_writes_no_document,
    a_repeated_completion_was_stored_once,
    the_whole_history_is_recorded,
    every_change_of_state_is_explained_by_an_event,
);

fn document(url: &str, text: &str) -> Box<NewDocument> {
    Box::new(NewDocument {
        key: target(url).key,
        source_id: 3,
        title: format!("On {text}"),
        content_hash: Some(text.as_bytes().to_vec()),
        sketch: None,
        body: format!("{{\"text\":\"{text}\"}}"),
    })
}

fn with_document(url: &str, text: &str) -> Outcome {
    Outcome::Fetched {
        etag: Some("\"1\"".to_owned()),
        last_modified: None,
        content_hash: Some(text.as_bytes().to_vec()),
        document: Some(document(url, text)),
        again_in: Some(MINUTE),
    }
}

async fn a_fetch_stores_validators_and_a_304_keeps_them(t: Fixture) {
    let url = "https://a.example/x";
    t.submit(&[url]).await;
    let claim = t.claim_one().await;
    t.complete(&claim, with_document(url, "one")).await;
    t.advance(MINUTE);
    let claim = t.claim_one().await;
    assert_eq!(
        (claim.etag.as_deref(), claim.content_hash.as_deref()),
        (Some("\"1\""), Some(&b"one"[..]))
    );
    t.complete(
        &claim,
        Outcome::NotModified {
            again_in: Some(MINUTE),
        },
    )
    .await;
    let row = t.store.url(id(url)).await.unwrap().unwrap();
    assert_eq!(
        (row.status, row.fetch_count, row.etag.as_deref()),
        (Status::Fetched, 2, Some("\"1\""))
    );
    assert_eq!(
        t.store.document(id(url)).await.unwrap().unwrap().revision,
        1
    );
}

async fn failures_are_counted_and_a_success_resets_them(t: Fixture) {
    let url = "https://a.example/x";
    t.submit(&[url]).await;
    for count in 1..=2 {
        let claim = t.claim_one().await;
        t.complete(&claim, failed(MINUTE)).await;
        let row = t.store.url(id(url)).await.unwrap().unwrap();
        assert_eq!((row.status, row.retry_count), (Status::Failed, count));
        assert_eq!(row.last_error.as_deref(), Some("connection reset"));
        t.advance(MINUTE);
    }
    let claim = t.claim_one().await;
    t.complete(&claim, fetched()).await;
    let row = t.store.url(id(url)).await.unwrap().unwrap();
    assert_eq!(
        (row.status, row.retry_count, row.attempts),
        (Status::Fetched, 0, 3)
    );
    t.assert_counters_match().await;
}

async fn a_deferred_url_loses_no_retry(t: Fixture) {
    let url = "https://a.example/x";
    t.submit(&[url]).await;
    let claim = t.claim_one().await;
    t.complete(
        &claim,
        Outcome::Deferred {
            reason: "store unavailable".to_owned(),
            retry_in: MINUTE,
        },
    )
    .await;
    let row = t.store.url(id(url)).await.unwrap().unwrap();
    assert_eq!(
        (row.status, row.retry_count, row.reason.as_deref()),
        (Status::Pending, 0, Some("store unavailable"))
    );
    assert_eq!(
        t.submit(&[url]).await,
        [Verdict::Known],
        "it is deferred on purpose"
    );
    t.advance(MINUTE);
    t.claim_one().await;
}

async fn dead_urls_stay_dead_with_a_reason(t: Fixture) {
    let url = "https://a.example/x";
    t.submit(&[url]).await;
    let claim = t.claim_one().await;
    t.complete(
        &claim,
        Outcome::Dead {
            reason: "not_found".to_owned(),
            error: Some("404".to_owned()),
        },
    )
    .await;
    t.advance(MINUTE);
    assert_eq!(t.claim(1).await, []);
    let row = t.store.url(id(url)).await.unwrap().unwrap();
    assert_eq!(
        (row.status, row.reason.as_deref(), row.last_error.as_deref()),
        (Status::Dead, Some("not_found"), Some("404"))
    );
    t.assert_counters_match().await;
}

async fn a_recrawl_is_claimable_when_it_is_due(t: Fixture) {
    t.submit(&["https://a.example/x"]).await;
    let claim = t.claim_one().await;
    let again = Outcome::Fetched {
        etag: None,
        last_modified: None,
        content_hash: None,
        document: None,
        again_in: Some(MINUTE),
    };
    t.complete(&claim, again).await;
    assert_eq!(t.status("https://a.example/x").await, Status::Fetched);
    t.advance(SECOND * 59);
    assert_eq!(t.claim(1).await, []);
    t.advance(SECOND);
    t.claim_one().await;
    t.assert_counters_match().await;
}

async fn a_redirect_is_recorded_under_both_urls(t: Fixture) {
    let (short, long) = ("https://a.example/go/1", "https://b.example/story");
    t.submit(&[short]).await;
    let claim = t.claim_one().await;
    let outcome = Outcome::Redirected {
        to: Box::new(submission(long)),
        etag: Some("\"e\"".to_owned()),
        last_modified: None,
        content_hash: None,
        document: Some(document(long, "story")),
    };
    assert!(t.complete(&claim, outcome).await);
    let row = t.store.url(id(short)).await.unwrap().unwrap();
    assert_eq!(
        (row.status, row.reason.as_deref()),
        (Status::Dead, Some("redirect"))
    );
    let row = t.store.url(id(long)).await.unwrap().unwrap();
    assert_eq!(
        (row.status, row.etag.as_deref()),
        (Status::Fetched, Some("\"e\""))
    );
    assert_eq!(
        t.store.explain(id(short)).await.unwrap().alias_of,
        Some(id(long))
    );
    assert_eq!(
        t.submit(&[short, long]).await,
        [Verdict::Known, Verdict::Known]
    );
    assert_eq!(
        t.store.document(id(long)).await.unwrap().unwrap().title,
        "On story"
    );
    assert!(t.store.document(id(short)).await.unwrap().is_none());
    t.assert_counters_match().await;
}

async fn a_redirect_to_a_waiting_url_finishes_both(t: Fixture) {
    let (short, long) = ("https://a.example/go/1", "https://b.example/story");
    t.submit(&[short]).await;
    let claim = t.claim_one().await;
    t.submit(&[long]).await;
    let outcome = Outcome::Redirected {
        to: Box::new(submission(long)),
        etag: None,
        last_modified: None,
        content_hash: None,
        document: None,
    };
    t.complete(&claim, outcome).await;
    t.advance(MINUTE);
    assert_eq!(t.claim(5).await, [], "neither is fetched again for nothing");
    assert_eq!(t.status(long).await, Status::Fetched);
    t.assert_counters_match().await;
}

async fn a_document_grows_revisions_only_when_its_text_changes(t: Fixture) {
    let url = "https://a.example/x";
    t.submit(&[url]).await;
    for (text, revision) in [("one", 1), ("one", 1), ("two", 2), ("one", 3)] {
        let claim = t.claim_one().await;
        t.complete(&claim, with_document(url, text)).await;
        let found = t.store.document(id(url)).await.unwrap().unwrap();
        assert_eq!(
            (found.revision, found.id),
            (revision, target(url).key),
            "{text}"
        );
        assert!(found.body.contains(text));
        t.advance(MINUTE);
    }
    assert_eq!(t.store.documents_after(None, 10).await.unwrap().len(), 1);
}

async fn the_same_text_elsewhere_is_a_duplicate(t: Fixture) {
    t.store.register_sink("search", false).await.unwrap();
    t.store.register_sink("archive", true).await.unwrap();
    for url in ["https://a.example/x", "https://b.example/copy"] {
        t.submit(&[url]).await;
        let claim = t.claim_one().await;
        t.complete(&claim, with_document(url, "wire")).await;
        t.advance(SECOND);
    }
    let copy = t
        .store
        .document(id("https://b.example/copy"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(copy.duplicate_of, Some(target("https://a.example/x").key));
    let waiting: Vec<_> = t
        .store
        .outbox()
        .await
        .unwrap()
        .into_iter()
        .map(|state| (state.sink, state.waiting))
        .collect();
    assert_eq!(
        waiting,
        [("archive".to_owned(), 2), ("search".to_owned(), 1)]
    );
}

async fn of_two_equal_texts_in_one_batch_the_second_is_a_duplicate(t: Fixture) {
    t.store.register_sink("search", false).await.unwrap();
    let urls = ["https://b.example/1", "https://a.example/2"];
    t.submit(&urls).await;
    let mut claims = t.claim(2).await;
    claims.sort_by_key(|claim| claim.url.as_str() != urls[0]);
    let completions: Vec<_> = claims
        .iter()
        .map(|claim| {
            tidings_store::Completion::new(
                claim.lease_token,
                with_document(claim.url.as_str(), "wire"),
            )
        })
        .collect();
    assert_eq!(t.store.complete(&completions).await.unwrap(), [true, true]);
    let copy = t.store.document(id(urls[1])).await.unwrap().unwrap();
    assert_eq!(copy.duplicate_of, Some(target(urls[0]).key));
    assert_eq!(t.store.outbox().await.unwrap()[0].waiting, 1);
}

async fn every_sink_gets_one_delivery_and_every_delivery_a_verdict(t: Fixture) {
    t.store.register_sink("search", false).await.unwrap();
    t.store.register_sink("off", false).await.unwrap();
    t.store.disable_sink("off").await.unwrap();
    let urls = [
        "https://a.example/1",
        "https://b.example/2",
        "https://c.example/3",
    ];
    t.submit(&urls).await;
    for claim in t.claim(3).await {
        let url = claim.url.as_str().to_owned();
        t.complete(&claim, with_document(&url, &url)).await;
    }
    let deliveries = t
        .store
        .claim_deliveries("search", 10, u64::MAX, MINUTE)
        .await
        .unwrap();
    assert_eq!(deliveries.len(), 3);
    assert_eq!(
        t.store
            .claim_deliveries("search", 10, u64::MAX, MINUTE)
            .await
            .unwrap(),
        [],
        "they are leased"
    );
    let find = |url: &str| {
        deliveries
            .iter()
            .find(|delivery| delivery.id == id(url))
            .unwrap()
            .clone()
    };
    let verdicts = [
        (find(urls[0]), DeliveryVerdict::Accepted),
        (
            find(urls[1]),
            DeliveryVerdict::Retry {
                error: "429".to_owned(),
                after: SECOND,
            },
        ),
        (
            find(urls[2]),
            DeliveryVerdict::Dead {
                reason: "mapping".to_owned(),
            },
        ),
    ];
    t.store
        .complete_deliveries("search", &verdicts)
        .await
        .unwrap();
    let state = |states: Vec<tidings_store::OutboxState>| {
        states
            .into_iter()
            .find(|s| s.sink == "search")
            .map(|s| (s.waiting, s.dead))
    };
    assert_eq!(state(t.store.outbox().await.unwrap()), Some((1, 1)));
    let dead = t.store.dead_letters("search", None, 10).await.unwrap();
    assert_eq!(dead[0].reason, "mapping");
    let rest = t.store.dead_letters("search", Some(dead[0].cursor()), 10);
    assert!(rest.await.unwrap().is_empty());
    t.advance(SECOND);
    let again = t
        .store
        .claim_deliveries("search", 10, u64::MAX, MINUTE)
        .await
        .unwrap();
    assert_eq!((again.len(), again[0].attempt), (1, 2));
    // The verdict of a lost lease must not remove the delivery.
    t.advance(MINUTE);
    let newer = t
        .store
        .claim_deliveries("search", 10, u64::MAX, MINUTE)
        .await
        .unwrap();
    t.store
        .complete_deliveries("search", &[(again[0].clone(), DeliveryVerdict::Accepted)])
        .await
        .unwrap();
    assert_eq!(state(t.store.outbox().await.unwrap()), Some((1, 1)));
    t.store
        .complete_deliveries("search", &[(newer[0].clone(), DeliveryVerdict::Accepted)])
        .await
        .unwrap();
    assert_eq!(state(t.store.outbox().await.unwrap()), Some((0, 1)));
}

async fn a_lost_lease_writes_no_document(t: Fixture) {
    let url = "https://a.example/x";
    t.store.register_sink("search", false).await.unwrap();
    t.submit(&[url]).await;
    let lost = t.claim_one().await;
    t.advance(MINUTE);
    t.claim_one().await;
    assert!(!t.complete(&lost, with_document(url, "stale")).await);
    assert!(t.store.document(id(url)).await.unwrap().is_none());
    assert_eq!(t.store.outbox().await.unwrap()[0].waiting, 0);
}

/// As after a COMMIT whose response was lost: the caller can't know, and repeats.
async fn a_repeated_completion_was_stored_once(t: Fixture) {
    let outcomes = [
        (
            "https://a.example/x",
            with_document("https://a.example/x", "one"),
        ),
        ("https://b.example/x", failed(MINUTE)),
        ("https://c.example/x", Outcome::Released),
    ];
    for (url, outcome) in outcomes {
        t.submit(&[url]).await;
        let claim = t.claim_one().await;
        assert!(t.complete(&claim, outcome.clone()).await);
        let (row, events) = (t.store.url(id(url)).await.unwrap(), t.events(url).await);
        assert!(t.complete(&claim, outcome.clone()).await, "stored already");
        assert_eq!(
            format!("{:?}", t.store.url(id(url)).await.unwrap()),
            format!("{row:?}"),
            "and not twice"
        );
        assert_eq!(t.events(url).await, events);
        let other = Outcome::Dead {
            reason: "gone".to_owned(),
            error: None,
        };
        assert!(!t.complete(&claim, other).await, "another outcome is late");
        let rest = Outcome::Dead {
            reason: "gone".to_owned(),
            error: None,
        };
        t.advance(MINUTE * 2);
        assert!(t.complete(&t.claim_one().await, rest).await);
    }
    // What was stored of a removed row is not taken for its successor's.
    let url = "https://d.example/x";
    for is_stored in [true, false] {
        t.submit(&[url]).await;
        let claim = t.claim_one().await;
        if is_stored {
            assert!(t.complete(&claim, fetched()).await);
            t.store.remove(&[id(url)]).await.unwrap();
            t.advance(MINUTE);
        } else {
            t.advance(MINUTE);
            t.claim_one().await;
            assert!(!t.complete(&claim, fetched()).await);
        }
    }
    t.assert_counters_match().await;
}

async fn the_whole_history_is_recorded(t: Fixture) {
    let url = "https://a.example/x";
    t.submit(&[url]).await;
    let claim = t.claim_one().await;
    t.complete(&claim, failed(SECOND)).await;
    t.advance(SECOND);
    let claim = t.claim_one().await;
    t.complete(&claim, Outcome::Released).await;
    t.advance(SECOND);
    let claim = t.claim_one().await;
    t.complete(&claim, with_document(url, "text")).await;
    assert_eq!(
        t.events(url).await,
        ["discovered", "failed", "released", "fetched"]
    );
    let history = t.store.explain(id(url)).await.unwrap();
    assert_eq!(history.events[1].detail["error"], "connection reset");
    assert_eq!(history.events[3].detail["attempt"], 3);
    let all = t.store.events_after(0, 100).await.unwrap();
    assert_eq!(
        all.iter()
            .map(|event| event.kind.as_str())
            .collect::<Vec<_>>(),
        ["failed", "released", "fetched"]
    );
    t.advance(SECOND);
    assert_eq!(t.prune(ExpiringTable::Events, MINUTE).await, 0);
    assert_eq!(t.prune(ExpiringTable::Events, SECOND / 2).await, 3);
    assert_eq!(t.store.events_after(0, 100).await.unwrap().len(), 0);
    t.assert_counters_match().await;
}

async fn every_change_of_state_is_explained_by_an_event(t: Fixture) {
    let (url, elsewhere) = ("https://a.example/x", "https://b.example/y");
    let mut expected = vec!["discovered".to_owned()];
    t.submit(&[url]).await;
    t.store.submit(&[urgent(url, 9)]).await.unwrap();
    expected.push("raised".to_owned());
    assert_eq!(t.events(url).await, expected, "submitted");
    let dead = || Outcome::Dead {
        reason: "gone".to_owned(),
        error: None,
    };
    let moved = || Outcome::Redirected {
        to: Box::new(submission(elsewhere)),
        etag: None,
        last_modified: None,
        content_hash: None,
        document: None,
    };
    let deferred = || Outcome::Deferred {
        reason: "429".to_owned(),
        retry_in: SECOND,
    };
    // How the claim ends, if it does; the event and the status after it.
    let ends: [(Option<Outcome>, &str, Status); 8] = [
        (Some(Outcome::Released), "released", Status::Pending),
        (Some(deferred()), "deferred", Status::Pending),
        (Some(failed(SECOND)), "failed", Status::Failed),
        (None, "lease_expired", Status::Fetching),
        (
            Some(Outcome::NotModified { again_in: None }),
            "not_modified",
            Status::Fetched,
        ),
        (Some(fetched()), "fetched", Status::Fetched),
        (Some(dead()), "dead", Status::Dead),
        (Some(moved()), "redirected", Status::Dead),
    ];
    for (outcome, kind, status) in ends {
        t.advance(MINUTE * 5);
        if matches!(t.status(url).await, Status::Fetched | Status::Dead) {
            t.store.requeue(&[id(url)]).await.unwrap();
            expected.push("retried".to_owned());
        }
        let claim = t.claim_one().await;
        match outcome {
            Some(outcome) => assert!(t.complete(&claim, outcome).await, "{kind}"),
            None => {
                t.advance(MINUTE * 5);
                let again = t.claim_one().await;
                assert_eq!(t.status(url).await, status);
                assert!(t.complete(&again, Outcome::Released).await);
                expected.extend(["lease_expired".to_owned(), "released".to_owned()]);
                continue;
            }
        }
        expected.push(kind.to_owned());
        assert_eq!(t.events(url).await, expected);
        assert_eq!(t.status(url).await, status, "{kind}");
    }
    t.store.remove(&[id(url)]).await.unwrap();
    let all = t.store.events_after(0, 100).await.unwrap();
    assert_eq!(all.last().map(|event| event.kind.as_str()), Some("removed"));
}
