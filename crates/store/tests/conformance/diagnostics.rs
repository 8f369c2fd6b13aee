//! What a doctor asks of the store.

use std::time::Duration;

use tidings_store::{ClaimRequest, Completion, HostChange, Leases, Moment, Outcome, Overdue};

use crate::fixture::{Fixture, MINUTE, SECOND, WORKER, failed, id};

on_both_engines!(
    vitals_are_told,
    late_hosts_are_told_apart,
    ended_leases_are_counted,
    what_was_given_up_is_counted_by_reason,
);

async fn vitals_are_told(t: Fixture) {
    let diagnostics = t.store.diagnostics().await.unwrap();
    assert!(diagnostics.bytes > 10_000, "{diagnostics:?}");
    let is_server = t.address.starts_with("postgres");
    assert_eq!(diagnostics.connections.is_some(), is_server);
    if let Some((used, most)) = diagnostics.connections {
        assert!(used >= 1 && most >= used, "{diagnostics:?}");
    }
}

async fn late_hosts_are_told_apart(t: Fixture) {
    assert_eq!(t.store.overdue_hosts().await.unwrap(), []);
    t.submit(&[
        "https://a.example/1",
        "https://b.example/1",
        "https://b.example/2",
        "https://c.example/1",
        "https://d.example/1",
    ])
    .await;
    // b is being asked, c is blocked, a and d wait for somebody.
    let claims = t.claim(4).await;
    let of = |host: &str| {
        let named = |claim: &&tidings_store::Claim| claim.url.host() == host;
        claims.iter().find(named).unwrap().ticket
    };
    let given_back = ["a.example", "c.example", "d.example"];
    let released = given_back.map(|host| Completion::new(of(host), Outcome::Released));
    t.store.complete(&released).await.unwrap();
    let until = Moment(t.store.now().await.unwrap().0 + 3_600_000);
    let c = id("https://c.example/1").host;
    t.store.block_host(c, until, "it is ill").await.unwrap();
    t.pass(30 * SECOND);

    let late = t.store.overdue_hosts().await.unwrap();
    let told: Vec<_> = late.iter().map(|late| (late.late, late.hosts)).collect();
    assert_eq!(
        told,
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
        ("c.example", Some("it is ill"))
    );
    assert_eq!(blocked.blocked_until, Some(until));
}

async fn ended_leases_are_counted(t: Fixture) {
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
    t.pass(3 * MINUTE);
    let leases = t.store.leases().await.unwrap();
    assert_eq!((leases.live, leases.ended), (1, 1));
    assert_eq!(leases.longest_ended, 2 * MINUTE);
}

async fn what_was_given_up_is_counted_by_reason(t: Fixture) {
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
            ..Completion::new(claim.ticket, outcome)
        };
        t.store.complete(&[completion]).await.unwrap();
    }
    let told = t.store.permanent_failures(10).await.unwrap();
    let told: Vec<_> = told
        .iter()
        .map(|permanent_failures| (permanent_failures.reason.as_str(), permanent_failures.urls))
        .collect();
    assert_eq!(told, [("not_found", 2), ("gone", 1)]);
    let most = t.store.permanent_failures(1).await.unwrap();
    assert_eq!(most.len(), 1);
    assert!(most[0].example.starts_with("https://"), "{most:?}");
}
