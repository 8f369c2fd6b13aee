//! Diagnostics for `tidings doctor`.

use std::time::Duration;

use tidings_store::{ClaimRequest, Completion, HostChange, Leases, Moment, Outcome, Overdue};

use crate::fixture::{Fixture, MINUTE, SECOND, WORKER, failed, id};

on_both_engines!(
    size_and_connections_are_reported,
    overdue_hosts_are_grouped_by_reason,
    expired_leases_are_counted,
    permanent_failures_are_counted_by_reason,
);

async fn size_and_connections_are_reported(t: Fixture) {
    let diagnostics = t.store.diagnostics().await.unwrap();
    assert!(diagnostics.bytes > 10_000, "{diagnostics:?}");
    let is_server = t.address.starts_with("postgres");
    assert_eq!(diagnostics.connections.is_some(), is_server);
    if let Some((used, max)) = diagnostics.connections {
        assert!(used >= 1 && max >= used, "{diagnostics:?}");
    }
}

async fn overdue_hosts_are_grouped_by_reason(t: Fixture) {
    assert_eq!(t.store.overdue_hosts().await.unwrap(), []);
    t.submit(&[
        "https://a.example/1",
        "https://b.example/1",
        "https://b.example/2",
        "https://c.example/1",
        "https://d.example/1",
    ])
    .await;
    // b has a request in flight, c is blocked, a and d are ready for a worker.
    let claims = t.claim(4).await;
    let of = |host: &str| {
        let named = |claim: &&tidings_store::Claim| claim.url.host() == host;
        claims.iter().find(named).unwrap().lease_token
    };
    let unfetched = ["a.example", "c.example", "d.example"];
    let released = unfetched.map(|host| Completion::new(of(host), Outcome::Released));
    t.store.complete(&released).await.unwrap();
    let until = Moment(t.store.now().await.unwrap().0 + 3_600_000);
    let c = id("https://c.example/1").host;
    t.store.block_host(c, until, "maintenance").await.unwrap();
    t.advance(30 * SECOND);

    let late = t.store.overdue_hosts().await.unwrap();
    let reasons: Vec<_> = late.iter().map(|late| (late.late, late.hosts)).collect();
    assert_eq!(
        reasons,
        [
            (Overdue::Ready, 2),
            (Overdue::Gated, 1),
            (Overdue::Blocked, 1)
        ]
    );
    let [ready, gated, blocked] = &late[..] else {
        panic!("{late:?}");
    };
    assert_eq!(ready.overdue, 30 * SECOND);
    assert!(
        ready.ready_for <= 30 * SECOND && ready.ready_for >= 28 * SECOND,
        "{ready:?}"
    );
    assert_eq!(ready.delay, SECOND);
    assert_eq!(
        (gated.host.as_str(), gated.overdue),
        ("b.example", 30 * SECOND)
    );
    assert_eq!(
        (gated.ready_for, blocked.ready_for),
        (Duration::ZERO, Duration::ZERO)
    );
    assert_eq!(
        (blocked.host.as_str(), blocked.block_reason.as_deref()),
        ("c.example", Some("maintenance"))
    );
    assert_eq!(blocked.blocked_until, Some(until));
}

async fn expired_leases_are_counted(t: Fixture) {
    assert_eq!(t.store.leases().await.unwrap(), Leases::default());
    t.submit(&["https://a.example/1", "https://b.example/1"])
        .await;
    let request = |lease: Duration| ClaimRequest {
        lease,
        ..ClaimRequest::new(WORKER, 1)
    };
    t.store.claim(&request(MINUTE)).await.unwrap();
    t.store.claim(&request(5 * MINUTE)).await.unwrap();
    let leases = t.store.leases().await.unwrap();
    assert_eq!((leases.live, leases.ended), (2, 0));
    t.advance(3 * MINUTE);
    let leases = t.store.leases().await.unwrap();
    assert_eq!((leases.live, leases.ended), (1, 1));
    assert_eq!(leases.longest_ended, 2 * MINUTE);
}

async fn permanent_failures_are_counted_by_reason(t: Fixture) {
    let urls = [1, 2, 3, 4].map(|n| format!("https://{n}.example/"));
    t.submit(&urls.each_ref().map(String::as_str)).await;
    for claim in t.claim(4).await {
        let reason = match claim.url.host() {
            "1.example" | "2.example" => "not_found",
            "3.example" => "gone",
            _ => {
                t.complete(&claim, failed(MINUTE)).await;
                continue;
            }
        };
        let outcome = Outcome::Dead {
            reason: reason.to_owned(),
            error: None,
        };
        let completion = Completion {
            host: HostChange::default(),
            ..Completion::new(claim.lease_token, outcome)
        };
        t.store.complete(&[completion]).await.unwrap();
    }
    let failures = t.store.permanent_failures(10).await.unwrap();
    let counts: Vec<_> = failures
        .iter()
        .map(|failures| (failures.reason.as_str(), failures.urls))
        .collect();
    assert_eq!(counts, [("not_found", 2), ("gone", 1)]);
    let most = t.store.permanent_failures(1).await.unwrap();
    assert_eq!(most.len(), 1);
    assert!(most[0].example.starts_with("https://"), "{most:?}");
}
