//! Claims: order, politeness limits, leases, crashes and quarantine.

use std::collections::HashSet;
use std::time::Duration;

use tidings_store::{
    Claim, ClaimRequest, Completion, HostChange, LeaseToken, Moment, Outcome, Status,
};

use crate::fixture::{Fixture, MINUTE, SECOND, WORKER, fetched, id, submission, urgent};

on_both_engines!(
    a_host_that_was_never_fetched_is_claimable,
    a_host_has_one_request_at_a_time,
    the_delay_lies_between_starts,
    a_host_may_allow_concurrent_requests,
    several_of_one_host_only_without_a_delay,
    urgent_first_and_then_the_longest_waiting,
    a_huge_host_does_not_starve_others,
    low_priority_is_not_starved,
    an_expired_lease_is_claimed_again_and_the_old_worker_is_refused,
    a_url_whose_lease_expired_keeps_its_place,
    a_worker_of_a_removed_url_has_no_claim_on_its_successor,
    an_extended_lease_is_not_lost,
    a_late_completion_does_not_release_the_host_of_another,
    a_released_url_is_claimable_again_without_a_retry,
    three_crashes_mean_quarantine,
    a_url_blamed_for_crashes_is_quarantined_sooner,
    no_url_of_a_blocked_host_is_claimed,
    retry_after_blocks_the_host,
    an_idle_claim_reports_when_the_next_host_is_ready,
    a_future_retry_does_not_hide_what_is_due,
    slow_hosts_have_a_longer_cooldown,
);

async fn a_host_that_was_never_fetched_is_claimable(t: Fixture) {
    t.submit(&["https://a.example/x"]).await;
    let claim = t.claim_one().await;
    assert_eq!(claim.url.as_str(), "https://a.example/x");
    assert_eq!((claim.lease_token.attempt, claim.retry_count), (1, 0));
    assert_eq!(claim.host_delay, SECOND);
    assert_eq!(t.status("https://a.example/x").await, Status::Fetching);
    t.assert_counters_match().await;
}

async fn a_host_has_one_request_at_a_time(t: Fixture) {
    t.submit(&[
        "https://a.example/1",
        "https://a.example/2",
        "https://b.example/1",
    ])
    .await;
    let claims = t.claim(10).await;
    let hosts: HashSet<_> = claims
        .iter()
        .map(|claim| claim.lease_token.id.host)
        .collect();
    assert_eq!((claims.len(), hosts.len()), (2, 2));
    t.advance(SECOND * 50);
    assert_eq!(t.claim(10).await, [], "both hosts are leased");
}

async fn the_delay_lies_between_starts(t: Fixture) {
    t.submit(&["https://a.example/1", "https://a.example/2"])
        .await;
    let claim = t.claim_one().await;
    t.advance(Duration::from_millis(300));
    t.complete(&claim, fetched()).await;
    t.advance(Duration::from_millis(699));
    assert_eq!(t.claim(1).await, [], "999 ms after the start");
    t.advance(Duration::from_millis(1));
    t.claim_one().await;
}

async fn a_host_may_allow_concurrent_requests(t: Fixture) {
    t.submit(&[
        "https://a.example/1",
        "https://a.example/2",
        "https://a.example/3",
    ])
    .await;
    let host = id("https://a.example/1").host;
    t.store.set_host_limits(host, SECOND, 2).await.unwrap();
    let first = t.claim_one().await;
    assert_eq!(
        t.claim(1).await,
        [],
        "the delay holds between starts all the same"
    );
    t.advance(SECOND);
    t.claim_one().await;
    t.advance(SECOND);
    assert_eq!(t.claim(1).await, [], "two are in flight");
    t.complete(&first, fetched()).await;
    t.claim_one().await;
}

async fn several_of_one_host_only_without_a_delay(t: Fixture) {
    let urls: Vec<_> = (0..5)
        .flat_map(|n| {
            [
                format!("https://a.example/{n}"),
                format!("https://b.example/{n}"),
            ]
        })
        .collect();
    t.submit(&urls.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
    t.store
        .set_host_limits(id("https://b.example/0").host, Duration::ZERO, 3)
        .await
        .unwrap();
    let request = ClaimRequest {
        per_host: 4,
        ..ClaimRequest::new(WORKER, 10)
    };
    let claims = t.store.claim(&request).await.unwrap().claims;
    let of = |host: &str| {
        claims
            .iter()
            .filter(|claim| claim.url.host() == host)
            .count()
    };
    assert_eq!((of("a.example"), of("b.example")), (1, 3));
}

async fn urgent_first_and_then_the_longest_waiting(t: Fixture) {
    t.store
        .submit(&[urgent("https://a.example/5", 5)])
        .await
        .unwrap();
    t.advance(SECOND);
    t.store
        .submit(&[
            urgent("https://b.example/5", 5),
            urgent("https://a.example/9", 9),
        ])
        .await
        .unwrap();
    t.advance(SECOND);
    t.store
        .submit(&[urgent("https://c.example/7", 7)])
        .await
        .unwrap();
    let mut order = Vec::new();
    for _ in 0..3 {
        order.push(t.claim_one().await.url.as_str().to_owned());
    }
    assert_eq!(
        order,
        [
            "https://a.example/9",
            "https://c.example/7",
            "https://b.example/5"
        ]
    );
}

async fn a_huge_host_does_not_starve_others(t: Fixture) {
    let huge: Vec<_> = (0..5000)
        .map(|n| urgent(&format!("https://huge.example/{n}"), 10))
        .collect();
    t.store.submit(&huge).await.unwrap();
    let others: Vec<_> = (0..50)
        .map(|n| submission(&format!("https://small-{n}.example/")))
        .collect();
    t.store.submit(&others).await.unwrap();
    let claims = t.claim(51).await;
    assert_eq!(claims.len(), 51);
    assert_eq!(
        claims
            .iter()
            .filter(|claim| claim.url.host() == "huge.example")
            .count(),
        1
    );
}

async fn low_priority_is_not_starved(t: Fixture) {
    t.store
        .submit(&[
            urgent("https://low.example/", 1),
            urgent("https://busy.example/low", 1),
        ])
        .await
        .unwrap();
    let mut rounds = 0;
    let mut waiting = HashSet::from([
        "https://low.example/".to_owned(),
        "https://busy.example/low".to_owned(),
    ]);
    while !waiting.is_empty() {
        // There is always more that is urgent, also on the same host.
        let urgent_ones: Vec<_> = (0..2)
            .map(|n| urgent(&format!("https://busy-{rounds}-{n}.example/"), 10))
            .chain([urgent(&format!("https://busy.example/{rounds}"), 10)])
            .collect();
        t.store.submit(&urgent_ones).await.unwrap();
        for claim in t.claim(3).await {
            waiting.remove(claim.url.as_str());
            t.complete(&claim, fetched()).await;
        }
        t.advance(SECOND);
        rounds += 1;
        assert!(
            rounds < 40,
            "still waiting after {rounds} claims: {waiting:?}"
        );
    }
}

async fn an_expired_lease_is_claimed_again_and_the_old_worker_is_refused(t: Fixture) {
    t.submit(&["https://a.example/x"]).await;
    let lost = t.claim_one().await;
    t.advance(SECOND * 59);
    assert_eq!(t.claim(1).await, []);
    t.advance(SECOND);
    let found = t.claim_one().await;
    assert_eq!(found.lease_token.attempt, 2);
    assert!(
        !t.complete(&lost, fetched()).await,
        "the stale worker must be refused"
    );
    assert_eq!(t.status("https://a.example/x").await, Status::Fetching);
    assert!(t.complete(&found, fetched()).await);
    assert!(
        !t.complete(&found, Outcome::Released).await,
        "a claim ends once"
    );
    assert_eq!(
        t.events("https://a.example/x").await,
        ["discovered", "lease_expired", "fetched"]
    );
    t.assert_counters_match().await;
}

async fn a_url_whose_lease_expired_keeps_its_place(t: Fixture) {
    let url = |name: &str| format!("https://a.example/{name}");
    for name in ["first", "second", "third"] {
        t.submit(&[&url(name)]).await;
        t.advance(SECOND);
    }
    let lost = t.claim_one().await;
    assert_eq!(lost.url.as_str(), url("first"));
    t.submit(&[&url("last")]).await;
    t.advance(MINUTE);
    let found = t.claim_one().await;
    assert_eq!(found.url.as_str(), url("first"), "not behind the backlog");
    t.advance(MINUTE);
    // Its place is within its priority.
    t.store.submit(&[urgent(&url("urgent"), 9)]).await.unwrap();
    let mut order = Vec::new();
    for _ in 0..5 {
        let claim = t.claim_one().await;
        assert_eq!(
            claim.priority,
            if order.is_empty() { 9 } else { 5 },
            "{}",
            claim.url
        );
        assert!(t.complete(&claim, fetched()).await);
        order.push(claim.url.as_str().to_owned());
        t.advance(SECOND * 2);
    }
    assert_eq!(
        order,
        ["urgent", "first", "second", "third", "last"].map(url)
    );
    assert_eq!(t.claim(1).await, []);
    t.assert_counters_match().await;
}

/// A removed and re-added URL starts again at the first attempt.
async fn a_worker_of_a_removed_url_has_no_claim_on_its_successor(t: Fixture) {
    let url = "https://a.example/x";
    t.submit(&[url]).await;
    let removed = t.claim_one().await;
    t.store.remove(&[id(url)]).await.unwrap();
    t.advance(MINUTE);
    t.submit(&[url]).await;
    let successor = t.claim_one().await;
    assert_eq!(
        removed.lease_token.attempt, successor.lease_token.attempt,
        "only the row differs"
    );
    assert!(!t.complete(&removed, fetched()).await);
    assert_eq!(
        t.store
            .extend_leases(&[removed.lease_token, successor.lease_token], MINUTE)
            .await
            .unwrap(),
        [false, true]
    );
    t.store
        .blame_for_crash(&[removed.lease_token], 100)
        .await
        .unwrap();
    t.advance(MINUTE);
    let again = t.claim_one().await;
    assert!(t.complete(&again, fetched()).await);
    assert_eq!(t.status(url).await, Status::Fetched);
    t.assert_counters_match().await;
}

async fn an_extended_lease_is_not_lost(t: Fixture) {
    t.submit(&["https://a.example/x"]).await;
    let claim = t.claim_one().await;
    t.advance(SECOND * 50);
    assert_eq!(
        t.store
            .extend_leases(&[claim.lease_token], MINUTE)
            .await
            .unwrap(),
        [true]
    );
    t.advance(SECOND * 50);
    assert_eq!(t.claim(1).await, []);
    assert!(t.complete(&claim, fetched()).await);
    assert_eq!(
        t.store
            .extend_leases(&[claim.lease_token], MINUTE)
            .await
            .unwrap(),
        [false]
    );
}

/// A lease expired, another URL of the host was claimed, and only then the first
/// worker completes. Its outcome counts, but it does not hold the host any more.
async fn a_late_completion_does_not_release_the_host_of_another(t: Fixture) {
    let ends = [
        fetched(),
        Outcome::Released,
        Outcome::Failed {
            error: "connection reset".to_owned(),
            retry_in: MINUTE * 60,
        },
    ];
    for (n, end) in ends.into_iter().enumerate() {
        let host = format!("https://h{n}.example");
        t.submit(&[&format!("{host}/first")]).await;
        let late = t.claim_one().await;
        t.advance(MINUTE * 2);
        assert_eq!(
            t.store
                .extend_leases(&[late.lease_token], MINUTE)
                .await
                .unwrap(),
            [false],
            "what has ended can't be extended"
        );
        let other = urgent(&format!("{host}/second"), 10);
        t.store.submit(&[other]).await.unwrap();
        let held = t.claim_one().await;
        assert!(held.url.as_str().ends_with("/second"), "{}", held.url);
        assert!(t.complete(&late, end).await, "nobody else has it");
        t.submit(&[&format!("{host}/third")]).await;
        t.advance(SECOND * 5);
        assert_eq!(t.claim(5).await, [], "the second is still in flight");
        assert!(t.complete(&held, fetched()).await);
        t.advance(SECOND * 5);
        for claim in t.claim(5).await {
            t.complete(&claim, fetched()).await;
            t.advance(SECOND * 5);
        }
        for claim in t.claim(5).await {
            t.complete(&claim, fetched()).await;
        }
    }
    t.assert_counters_match().await;
}

async fn a_released_url_is_claimable_again_without_a_retry(t: Fixture) {
    t.submit(&["https://a.example/x"]).await;
    let claim = t.claim_one().await;
    assert!(t.complete(&claim, Outcome::Released).await);
    let row = t
        .store
        .url(id("https://a.example/x"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (row.status, row.retry_count, row.fetch_count),
        (Status::Pending, 0, 0)
    );
    t.advance(SECOND);
    assert_eq!(t.claim_one().await.lease_token.attempt, 2);
    t.assert_counters_match().await;
}

async fn a_url_blamed_for_crashes_is_quarantined_sooner(t: Fixture) {
    t.submit(&["https://a.example/poison", "https://b.example/near"])
        .await;
    let mut request = ClaimRequest::new(WORKER, 2);
    request.quarantine_after = 30;
    for _ in 0..3 {
        let claimed = t.store.claim(&request).await.unwrap();
        assert_eq!(claimed.claims.len(), 2);
        let is_poison = |claim: &&Claim| claim.url.as_str().ends_with("poison");
        let poison = claimed.claims.iter().find(is_poison).unwrap();
        t.store
            .blame_for_crash(&[poison.lease_token], 9)
            .await
            .unwrap();
        t.advance(MINUTE);
    }
    let claimed = t.store.claim(&request).await.unwrap();
    assert_eq!((claimed.claims.len(), claimed.quarantined), (1, 1));
    // Blame for a lost lease has no effect.
    let late = LeaseToken {
        attempt: 1,
        ..claimed.claims[0].lease_token
    };
    t.store.blame_for_crash(&[late], 100).await.unwrap();
    t.advance(MINUTE);
    assert_eq!(t.store.claim(&request).await.unwrap().claims.len(), 1);
    t.assert_counters_match().await;
}

async fn three_crashes_mean_quarantine(t: Fixture) {
    t.submit(&["https://a.example/poison", "https://a.example/good"])
        .await;
    let request = ClaimRequest::new(WORKER, 1);
    let mut poisoned = 0;
    let mut quarantined = 0;
    for _ in 0..12 {
        t.advance(MINUTE);
        let claimed = t.store.claim(&request).await.unwrap();
        quarantined += claimed.quarantined;
        for claim in claimed.claims {
            if claim.url.as_str().ends_with("poison") {
                poisoned += 1; // the process crashes here
            } else {
                t.complete(&claim, fetched()).await;
            }
        }
    }
    assert_eq!((poisoned, quarantined), (3, 1));
    let row = t
        .store
        .url(id("https://a.example/poison"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (row.status, row.reason.as_deref()),
        (Status::Dead, Some("quarantined"))
    );
    assert_eq!(t.status("https://a.example/good").await, Status::Fetched);
    t.assert_counters_match().await;
}

async fn no_url_of_a_blocked_host_is_claimed(t: Fixture) {
    t.submit(&["https://a.example/x"]).await;
    let host = id("https://a.example/x").host;
    t.store
        .block_host(host, Moment::NEVER, "blocked by the operator")
        .await
        .unwrap();
    t.advance(MINUTE * 1000);
    assert_eq!(t.claim(1).await, []);
    let state = t.store.host(host).await.unwrap().unwrap();
    assert_eq!(
        state.block_reason.as_deref(),
        Some("blocked by the operator")
    );
    t.store.unblock_host(host).await.unwrap();
    t.claim_one().await;
}

async fn retry_after_blocks_the_host(t: Fixture) {
    t.submit(&["https://a.example/1", "https://a.example/2"])
        .await;
    let claim = t.claim_one().await;
    let outcome = Outcome::Deferred {
        reason: "429".to_owned(),
        retry_in: MINUTE,
    };
    let host = HostChange {
        delay: Some(SECOND * 2),
        block_for: Some(MINUTE),
        is_error: true,
        ..HostChange::default()
    };
    t.store
        .complete(&[Completion {
            host,
            ..Completion::new(claim.lease_token, outcome)
        }])
        .await
        .unwrap();
    t.advance(SECOND * 59);
    assert_eq!(
        t.claim(1).await,
        [],
        "the other URL of the host must wait too"
    );
    t.advance(SECOND);
    let other = t.claim_one().await;
    assert_eq!(other.host_delay, SECOND * 2);
    let state = t
        .store
        .host(claim.lease_token.id.host)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((state.errors, state.delay_ms), (1, 2000));
}

async fn an_idle_claim_reports_when_the_next_host_is_ready(t: Fixture) {
    let request = ClaimRequest::new(WORKER, 10);
    assert_eq!(t.store.claim(&request).await.unwrap().next_ready, None);
    t.submit(&["https://a.example/1", "https://a.example/2"])
        .await;
    let claim = t.claim_one().await;
    t.complete(&claim, fetched()).await;
    let idle = t.store.claim(&request).await.unwrap();
    assert_eq!((idle.claims.len(), idle.next_ready), (0, Some(SECOND)));
}

async fn a_future_retry_does_not_hide_what_is_due(t: Fixture) {
    t.store
        .submit(&[
            urgent("https://a.example/urgent", 10),
            urgent("https://a.example/plain", 2),
        ])
        .await
        .unwrap();
    let claim = t.claim_one().await;
    t.complete(&claim, crate::fixture::failed(MINUTE)).await;
    t.advance(SECOND);
    assert_eq!(t.claim_one().await.url.as_str(), "https://a.example/plain");
}

async fn slow_hosts_have_a_longer_cooldown(t: Fixture) {
    t.submit(&["https://a.example/1", "https://a.example/2"])
        .await;
    let claim = t.claim_one().await;
    t.advance(SECOND * 5);
    let host = HostChange {
        cooldown: SECOND * 10,
        ..HostChange::default()
    };
    t.store
        .complete(&[Completion {
            host,
            ..Completion::new(claim.lease_token, fetched())
        }])
        .await
        .unwrap();
    t.advance(SECOND * 9);
    assert_eq!(t.claim(1).await, []);
    t.advance(SECOND);
    t.claim_one().await;
}
