//! Lists, filters and bulk actions.

use std::collections::BTreeSet;
use std::time::Duration;

use tidings_store::{
    Cursor, Filter, Order, Origin, Outcome, Status, Submission, UrlRow, copy_store,
};

use crate::fixture::{Fixture, MINUTE, SECOND, failed, fetched, id, submission, urgent};

on_both_engines!(
    pages_cover_everything_once,
    every_order_pages_without_gaps,
    filters_hold_together,
    a_list_in_slices_misses_nothing,
    dead_urls_can_be_requeued,
    what_is_being_fetched_is_not_requeued,
    removal_ends_the_lease,
    the_counters_match_after_random_operations,
    all_data_is_copied_to_another_store,
);

async fn pages_cover_everything_once(t: Fixture) {
    let urls: Vec<_> = (0..250)
        .map(|n| submission(&format!("https://h{}.example/{n}", n % 7)))
        .collect();
    t.store.submit(&urls).await.unwrap();
    let mut seen = BTreeSet::new();
    let mut after = None;
    loop {
        let page = t
            .store
            .list(&Filter::default(), Order::Id, after, 100)
            .await
            .unwrap();
        for row in &page.rows {
            assert!(seen.insert(row.url.clone()), "{} twice", row.url);
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!(seen.len(), 250);
}

/// Rows that differ in every sort key, read three at a time, compared with the same
/// rows sorted here.
async fn every_order_pages_without_gaps(t: Fixture) {
    for n in 0..5_u8 {
        for (host, priority) in [("a", 1 + n), ("b", 9 - n), ("c", 5)] {
            let url = format!("https://{host}.example/{n}");
            t.store.submit(&[urgent(&url, priority)]).await.unwrap();
        }
        t.advance(SECOND);
    }
    let claims = t.claim(3).await;
    t.advance(SECOND);
    t.complete(&claims[0], fetched()).await;
    t.complete(&claims[1], failed(MINUTE)).await;

    for (name, order) in Order::ALL {
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let page = t
                .store
                .list(&Filter::default(), order, after, 3)
                .await
                .unwrap();
            rows.extend(page.rows);
            match page.next {
                // Formatted and parsed, as clients do.
                Some(next) => after = Some(next.to_string().parse::<Cursor>().unwrap()),
                None => break,
            }
        }
        let mut sorted = rows.clone();
        sorted.sort_by_key(|row| {
            let position = match order {
                Order::Id => 0,
                Order::Newest => -row.discovered_at.0,
                Order::Recent => -row.updated_at.0,
                Order::Due => row.next_fetch_at.map_or(i64::MAX, |at| at.0),
                Order::Priority => -row.priority,
            };
            (position, row.id)
        });
        let ids = |rows: &[UrlRow]| rows.iter().map(|row| row.id).collect::<Vec<_>>();
        assert_eq!(rows.len(), 15, "{name}");
        assert_eq!(ids(&rows), ids(&sorted), "{name}");
    }
    assert!("17".parse::<Cursor>().is_err());
}

async fn filters_hold_together(t: Fixture) {
    let from = |source_id, origin, url: &str| Submission {
        source_id,
        origin,
        ..submission(url)
    };
    t.store
        .submit(&[
            from(1, Origin::Feed, "https://a.example/100%_sure"),
            from(1, Origin::Sitemap, "https://b.example/Other"),
            from(2, Origin::Feed, "https://c.example/third"),
        ])
        .await
        .unwrap();
    let claim = t
        .store
        .claim(&tidings_store::ClaimRequest::new(1, 3))
        .await
        .unwrap()
        .claims;
    let dead = claim
        .iter()
        .find(|claim| claim.url.host() == "c.example")
        .unwrap();
    t.complete(
        dead,
        Outcome::Dead {
            reason: "gone".to_owned(),
            error: None,
        },
    )
    .await;
    let filter = Filter::default;
    let rows = [
        ("all", filter(), 3),
        (
            "source",
            Filter {
                source_id: Some(1),
                ..filter()
            },
            2,
        ),
        (
            "origin",
            Filter {
                origin: Some(Origin::Feed),
                ..filter()
            },
            2,
        ),
        (
            "both",
            Filter {
                source_id: Some(1),
                origin: Some(Origin::Feed),
                ..filter()
            },
            1,
        ),
        (
            "host",
            Filter {
                host: Some(id("https://b.example/").host),
                ..filter()
            },
            1,
        ),
        (
            "fetching",
            Filter {
                status: Some(Status::Fetching),
                ..filter()
            },
            2,
        ),
        (
            "dead",
            Filter {
                status: Some(Status::Dead),
                ..filter()
            },
            1,
        ),
        (
            "pending",
            Filter {
                status: Some(Status::Pending),
                ..filter()
            },
            0,
        ),
        (
            "reason",
            Filter {
                reason: Some("gone".to_owned()),
                ..filter()
            },
            1,
        ),
        (
            "text in any case",
            Filter {
                text: Some("oTHER".to_owned()),
                ..filter()
            },
            1,
        ),
        (
            "text with wildcards",
            Filter {
                text: Some("100%25_s".to_owned()),
                ..filter()
            },
            0,
        ),
        (
            "text is not a pattern",
            Filter {
                text: Some("%".to_owned()),
                ..filter()
            },
            1,
        ),
    ];
    for (name, filter, expected) in rows {
        assert_eq!(t.store.count(&filter).await.unwrap(), expected, "{name}");
        assert_eq!(
            t.store
                .list(&filter, Order::Id, None, 10)
                .await
                .unwrap()
                .rows
                .len() as u64,
            expected,
            "{name}"
        );
    }
}

/// Without time to scan pages are short, but together they have the same rows:
/// compared with all rows, filtered and sorted here.
async fn a_list_in_slices_misses_nothing(t: Fixture) {
    for n in 0..40_i64 {
        let submission = Submission {
            source_id: n % 3,
            origin: [Origin::Feed, Origin::Manual][(n % 2) as usize],
            ..submission(&format!("https://h{}.example/{n}", n % 9))
        };
        t.store.submit(&[submission]).await.unwrap();
        t.advance(SECOND / 4);
    }
    for round in 0..2 {
        for (n, claim) in t.claim(9).await.iter().enumerate() {
            let outcome = match n % 4 {
                0 => fetched(),
                1 => failed(MINUTE),
                2 => Outcome::Dead {
                    reason: ["gone", "robots"][round].to_owned(),
                    error: None,
                },
                _ => continue,
            };
            t.complete(claim, outcome).await;
        }
        t.advance(SECOND);
    }
    let all = t.store.list(&Filter::default(), Order::Id, None, 100).await;
    let all = all.unwrap().rows;
    assert_eq!(all.len(), 40);
    let host = id("https://h4.example/4").host;
    let some = |text: &str| Some(text.to_owned());
    let mut filters = vec![Filter::default()];
    for status in Status::ALL {
        let status = Some(*status);
        filters.push(Filter {
            status,
            ..Filter::default()
        });
        filters.push(Filter {
            status,
            source_id: Some(1),
            ..Filter::default()
        });
        filters.push(Filter {
            status,
            host: Some(host),
            ..Filter::default()
        });
    }
    filters.push(Filter {
        source_id: Some(2),
        origin: Some(Origin::Manual),
        ..Filter::default()
    });
    filters.push(Filter {
        source_id: Some(77),
        ..Filter::default()
    });
    filters.push(Filter {
        reason: some("gone"),
        ..Filter::default()
    });
    filters.push(Filter {
        text: some("/3"),
        ..Filter::default()
    });
    filters.push(Filter {
        host: Some(host),
        text: some("3"),
        ..Filter::default()
    });
    for filter in &filters {
        for (order, slice) in [
            (Order::Id, 1),
            (Order::Id, 7),
            (Order::Newest, 1),
            (Order::Newest, 7),
        ] {
            let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
            loop {
                let timeout = Duration::ZERO;
                let page = t
                    .store
                    .list_in_slices(filter, order, after, 4, slice, timeout);
                let page = page.await.unwrap();
                assert!(page.rows.len() <= 4);
                found.extend(page.rows.iter().map(|row| row.id));
                match page.next {
                    Some(next) => after = Some(next.to_string().parse::<Cursor>().unwrap()),
                    None => break,
                }
                pages += 1;
                assert!(pages <= 41, "it never ends: {filter:?}");
            }
            let mut expected: Vec<&UrlRow> =
                all.iter().filter(|row| matches(filter, row)).collect();
            if order == Order::Newest {
                expected.sort_by_key(|row| (-row.discovered_at.0, row.id));
            }
            let expected: Vec<_> = expected.iter().map(|row| row.id).collect();
            assert_eq!(found, expected, "{filter:?} {order:?} in slices of {slice}");
        }
    }
}

fn matches(filter: &Filter, row: &UrlRow) -> bool {
    filter.status.is_none_or(|status| status == row.status)
        && filter
            .source_id
            .is_none_or(|source| source == row.source_id)
        && filter.host.is_none_or(|host| host == row.id.host)
        && filter.origin.is_none_or(|origin| origin == row.origin)
        && filter.reason.is_none() | (filter.reason == row.reason)
        && filter
            .text
            .as_ref()
            .is_none_or(|text| row.url.contains(text))
}

async fn dead_urls_can_be_requeued(t: Fixture) {
    let urls = [
        "https://a.example/dead",
        "https://b.example/failed",
        "https://c.example/fetched",
    ];
    t.submit(&urls).await;
    for claim in t.claim(3).await {
        let outcome = match claim.url.host() {
            "a.example" => Outcome::Dead {
                reason: "gone".to_owned(),
                error: None,
            },
            "b.example" => failed(MINUTE * 60),
            _ => fetched(),
        };
        t.complete(&claim, outcome).await;
    }
    t.advance(SECOND);
    assert_eq!(t.claim(5).await, []);
    assert_eq!(t.store.requeue(&urls.map(id)).await.unwrap(), 3);
    t.assert_counters_match().await;
    let claims = t.claim(5).await;
    assert_eq!(claims.len(), 3);
    assert!(
        claims
            .iter()
            .all(|claim| claim.lease_token.attempt == 2 && claim.retry_count == 0)
    );
    assert_eq!(
        t.store
            .requeue(&[id("https://unknown.example/")])
            .await
            .unwrap(),
        0
    );
}

async fn what_is_being_fetched_is_not_requeued(t: Fixture) {
    t.submit(&["https://a.example/x"]).await;
    let claim = t.claim_one().await;
    assert_eq!(t.store.requeue(&[claim.lease_token.id]).await.unwrap(), 0);
    assert!(t.complete(&claim, fetched()).await);
}

async fn removal_ends_the_lease(t: Fixture) {
    t.submit(&[
        "https://a.example/x",
        "https://a.example/y",
        "https://b.example/z",
    ])
    .await;
    let claims = t.claim(5).await;
    assert_eq!(
        t.store
            .remove(&["https://a.example/x", "https://a.example/y"].map(id))
            .await
            .unwrap(),
        2
    );
    for claim in &claims {
        let expected = claim.url.host() == "b.example";
        assert_eq!(
            t.complete(claim, fetched()).await,
            expected,
            "{}",
            claim.url
        );
    }
    t.advance(MINUTE * 2);
    assert_eq!(t.claim(5).await, []);
    assert!(
        t.store
            .url(id("https://a.example/x"))
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(
        t.events("https://a.example/x")
            .await
            .last()
            .map(String::as_str),
        Some("removed")
    );
    assert_eq!(
        t.store.remove(&[id("https://a.example/x")]).await.unwrap(),
        0
    );
    t.assert_counters_match().await;
}

/// Random operations on the frontier, from a seed.
async fn the_counters_match_after_random_operations(t: Fixture) {
    let mut state: u64 = 0x5eed;
    let mut random = |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for _ in 0..60 {
        let mut batch = Vec::new();
        for _ in 0..random(20) {
            let one = urgent(
                &format!("https://h{}.example/{}", random(9), random(60)),
                random(10) as u8 + 1,
            );
            batch.push(Submission {
                source_id: random(3) as i64,
                ..one
            });
        }
        t.store.submit(&batch).await.unwrap();
        for claim in t.claim(4).await {
            let outcome = match random(7) {
                0 => failed(SECOND * 5),
                1 => Outcome::Dead {
                    reason: "gone".to_owned(),
                    error: None,
                },
                2 => Outcome::Released,
                3 => Outcome::Deferred {
                    reason: "429".to_owned(),
                    retry_in: SECOND,
                },
                4 => Outcome::Redirected {
                    to: Box::new(submission(&format!(
                        "https://h{}.example/{}",
                        random(9),
                        random(60)
                    ))),
                    etag: None,
                    last_modified: None,
                    content_hash: None,
                    document: None,
                },
                5 => continue, // the worker crashes
                _ => fetched(),
            };
            t.complete(&claim, outcome).await;
        }
        let some = id(&format!("https://h{}.example/{}", random(9), random(60)));
        match random(6) {
            0 => drop(t.store.remove(&[some]).await.unwrap()),
            1 => drop(t.store.requeue(&[some]).await.unwrap()),
            2 => drop(t.store.fold_counts().await.unwrap()),
            _ => {}
        }
        t.advance(SECOND * random(40) as u32);
        t.assert_counters_match().await;
    }
    // Every pending URL can still be fetched: no queue head was lost.
    let mut rounds = 0;
    loop {
        t.advance(MINUTE * 2);
        let claims = t.claim(50).await;
        for claim in &claims {
            t.complete(claim, fetched()).await;
        }
        let stats = t.store.stats().await.unwrap();
        if stats.by_status["pending"] + stats.by_status["failed"] + stats.by_status["fetching"] == 0
        {
            break;
        }
        rounds += 1;
        assert!(rounds < 200, "stuck with {:?}", stats.by_status);
    }
}

async fn all_data_is_copied_to_another_store(t: Fixture) {
    let urls: Vec<_> = (0..1200)
        .map(|n| submission(&format!("https://h{}.example/{n}", n % 30)))
        .collect();
    t.store.submit(&urls).await.unwrap();
    for claim in t.claim(20).await {
        t.complete(&claim, failed(MINUTE)).await;
    }
    t.claim(5).await;
    t.store
        .record_starter_source("https://Zürich.example/")
        .await
        .unwrap();
    t.store
        .record_starter_source("https://a.example/")
        .await
        .unwrap();
    for other in [Fixture::sqlite().await, Fixture::postgres().await] {
        let mut tables = BTreeSet::new();
        copy_store(&t.store, &other.store, |progress| {
            tables.insert(progress.table);
        })
        .await
        .unwrap();
        assert!(
            tables.contains("urls") && tables.contains("seeds"),
            "{tables:?}"
        );
        // Copying again changes nothing, so an interrupted copy can resume.
        copy_store(&t.store, &other.store, |_| {}).await.unwrap();
        let (ours, theirs) = (
            t.store.stats().await.unwrap(),
            other.store.stats().await.unwrap(),
        );
        assert_eq!(ours.by_status, theirs.by_status);
        other.assert_counters_match().await;
        assert_eq!(
            other.submit(&["https://h1.example/1"]).await,
            [tidings_store::Verdict::Known]
        );
        assert!(!other.claim(10).await.is_empty());
        // A store with other data is not overwritten silently.
        other.submit(&["https://extra.example/"]).await;
        let error = copy_store(&t.store, &other.store, |_| {})
            .await
            .unwrap_err();
        assert!(error.to_string().contains("differs"), "{error}");
    }
}
