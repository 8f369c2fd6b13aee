//! Submission of URLs.

use tidings_store::{ExpiringTable, Moment, Origin, Result, Status, Submission, Verdict};

use crate::fixture::{Fixture, MINUTE, SECOND, failed, fetched, id, submission, urgent};

on_both_engines!(
    each_url_gets_its_verdict_in_order,
    the_same_url_twice_in_a_batch_is_one_row,
    more_than_one_statement_keeps_the_order,
    a_waiting_url_can_become_more_urgent,
    a_retry_keeps_its_backoff,
    a_fetched_url_is_known,
    not_before_is_respected,
    an_earlier_time_counts_only_for_the_first_fetch,
    the_feed_item_is_passed_on,
    control_characters_are_accepted,
    submissions_survive_a_restart,
    an_alias_of_a_page_is_known,
    a_title_is_submitted_once,
    a_submit_that_fails_records_no_title,
);

async fn each_url_gets_its_verdict_in_order(t: Fixture) {
    let first = t
        .submit(&["https://b.example/1", "https://a.example/1"])
        .await;
    assert_eq!(first, [Verdict::New, Verdict::New]);
    let second = t
        .submit(&[
            "https://a.example/2",
            "https://b.example/1",
            "https://c.example/",
        ])
        .await;
    assert_eq!(second, [Verdict::New, Verdict::Known, Verdict::New]);
    t.assert_counters_match().await;
}

async fn the_same_url_twice_in_a_batch_is_one_row(t: Fixture) {
    let verdicts = t
        .submit(&[
            "https://a.example/x",
            "http://a.example/x?utm_source=y",
            "https://a.example/y",
        ])
        .await;
    assert_eq!(verdicts, [Verdict::New, Verdict::Known, Verdict::New]);
    assert_eq!(t.store.stats().await.unwrap().by_status["pending"], 2);
}

async fn more_than_one_statement_keeps_the_order(t: Fixture) {
    let urls: Vec<String> = (0..2500)
        .map(|n| format!("https://h{}.example/{n}", n % 40))
        .collect();
    let half: Vec<_> = urls.iter().step_by(2).map(|url| submission(url)).collect();
    t.store.submit(&half).await.unwrap();
    let all: Vec<_> = urls.iter().map(|url| submission(url)).collect();
    let verdicts = t.store.submit(&all).await.unwrap();
    for (n, verdict) in verdicts.iter().enumerate() {
        let expected = if n % 2 == 0 {
            Verdict::Known
        } else {
            Verdict::New
        };
        assert_eq!(*verdict, expected, "{n}");
    }
    t.assert_counters_match().await;
}

async fn a_waiting_url_can_become_more_urgent(t: Fixture) {
    t.store
        .submit(&[
            urgent("https://a.example/low", 3),
            urgent("https://a.example/high", 5),
        ])
        .await
        .unwrap();
    let verdicts = t
        .store
        .submit(&[
            urgent("https://a.example/low", 9),
            urgent("https://a.example/high", 4),
        ])
        .await
        .unwrap();
    assert_eq!(verdicts, [Verdict::Raised, Verdict::Known]);
    assert_eq!(t.claim_one().await.url.as_str(), "https://a.example/low");
    assert!(
        t.events("https://a.example/low")
            .await
            .contains(&"raised".to_owned())
    );
}

async fn a_retry_keeps_its_backoff(t: Fixture) {
    t.submit(&["https://a.example/x"]).await;
    let claim = t.claim_one().await;
    assert!(t.complete(&claim, failed(MINUTE)).await);
    let verdicts = t
        .store
        .submit(&[urgent("https://a.example/x", 10)])
        .await
        .unwrap();
    assert_eq!(verdicts, [Verdict::Known]);
    t.advance(SECOND * 59);
    assert_eq!(t.claim(1).await, []);
    t.advance(SECOND);
    assert_eq!(t.claim_one().await.retry_count, 1);
}

async fn a_fetched_url_is_known(t: Fixture) {
    t.submit(&["https://a.example/x"]).await;
    let claim = t.claim_one().await;
    t.complete(&claim, fetched()).await;
    assert_eq!(t.submit(&["https://a.example/x"]).await, [Verdict::Known]);
    t.advance(MINUTE);
    assert_eq!(t.claim(1).await, []);
    assert_eq!(t.status("https://a.example/x").await, Status::Fetched);
}

async fn not_before_is_respected(t: Fixture) {
    let now = t.store.now().await.unwrap();
    let later = Submission {
        not_before: Some(now.plus(MINUTE)),
        ..submission("https://a.example/later")
    };
    t.store.submit(&[later]).await.unwrap();
    assert_eq!(t.claim(1).await, []);
    t.submit(&["https://a.example/now"]).await;
    assert_eq!(t.claim_one().await.url.as_str(), "https://a.example/now");
}

async fn an_earlier_time_counts_only_for_the_first_fetch(t: Fixture) {
    let later = Submission {
        not_before: Some(Moment(i64::MAX / 2)),
        ..submission("https://a.example/x")
    };
    t.store.submit(&[later]).await.unwrap();
    assert_eq!(t.submit(&["https://a.example/x"]).await, [Verdict::Raised]);
    t.claim_one().await;
}

async fn the_feed_item_is_passed_on(t: Fixture) {
    let full = Submission {
        source_id: 42,
        origin: Origin::Feed,
        priority: 99,
        depth: 3,
        parent_url: Some("https://a.example/feed".to_owned()),
        item: Some("{\"title\":\"Hé\"}".to_owned()),
        ..submission("https://a.example/x")
    };
    t.store.submit(&[full]).await.unwrap();
    let row = t
        .store
        .url(id("https://a.example/x"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (row.source_id, row.origin, row.priority, row.depth),
        (42, Origin::Feed, 10, 3)
    );
    assert_eq!(row.parent_url.as_deref(), Some("https://a.example/feed"));
    let claim = t.claim_one().await;
    assert_eq!(claim.item.as_deref(), Some("{\"title\":\"Hé\"}"));
    assert_eq!(
        (claim.source_id, claim.origin, claim.depth),
        (42, Origin::Feed, 3)
    );
    assert_eq!(claim.key, row.url_key);
}

async fn control_characters_are_accepted(t: Fixture) {
    let odd = Submission {
        parent_url: Some("a\0b".to_owned()),
        item: Some("{\"title\":\"\u{1}\0\u{feff}\"}".to_owned()),
        ..submission("https://a.example/%00")
    };
    assert_eq!(t.store.submit(&[odd]).await.unwrap(), [Verdict::New]);
    let claim = t.claim_one().await;
    let outcome = tidings_store::Outcome::Dead {
        reason: "x\0y".to_owned(),
        error: Some("\0".to_owned()),
    };
    assert!(t.complete(&claim, outcome).await);
}

async fn submissions_survive_a_restart(t: Fixture) {
    t.submit(&["https://a.example/x"]).await;
    let again = t.reopen().await;
    assert!(
        again
            .url(id("https://a.example/x"))
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(again.stats().await.unwrap().by_status["pending"], 1);
}

async fn an_alias_of_a_page_is_known(t: Fixture) {
    let (page, name) = ("https://a.example/story", "https://a.example/story?print=1");
    t.submit(&[page]).await;
    t.store
        .add_alias(id(name), id(page), "canonical")
        .await
        .unwrap();
    assert_eq!(
        t.submit(&[name, "https://a.example/other"]).await,
        [Verdict::Known, Verdict::New]
    );
    assert_eq!(
        t.store.explain(id(name)).await.unwrap().alias_of,
        Some(id(page))
    );
    let host = t.store.host_stats(id(page).host).await.unwrap();
    assert_eq!((host.by_status["pending"], host.by_status["dead"]), (2, 0));
    assert!(!host.has_more);
}

/// Submits URLs of source 1, each with a title.
async fn submit_titled(t: &Fixture, items: &[(&str, u8)]) -> Result<Vec<Option<Verdict>>> {
    let of_source = |(url, _): &(&str, u8)| Submission {
        source_id: 1,
        ..submission(url)
    };
    let submissions: Vec<_> = items.iter().map(of_source).collect();
    let titles: Vec<_> = items.iter().map(|(_, title)| Some([*title; 16])).collect();
    t.store.submit_titled(&submissions, &titles).await
}

async fn a_title_is_submitted_once(t: Fixture) {
    let (new, known) = (Some(Verdict::New), Some(Verdict::Known));
    // The first of a list wins, whatever the order of the ids.
    for n in 0..4 {
        let (one, two) = (
            format!("https://a{n}.example/"),
            format!("https://b{n}.example/"),
        );
        let items = [(&*one, n), (&*two, n), (&*one, n)];
        assert_eq!(
            submit_titled(&t, &items).await.unwrap(),
            [new, None, known],
            "{n}"
        );
        assert!(t.store.url(id(&two)).await.unwrap().is_none());
    }
    let items = [("https://c.example/", 0), ("https://a0.example/", 9)];
    assert_eq!(submit_titled(&t, &items).await.unwrap(), [None, known]);
    let other = Submission {
        source_id: 2,
        ..submission("https://c.example/")
    };
    let untitled = submission("https://d.example/");
    let (both, titles) = ([other, untitled], [Some([0; 16]), None]);
    let verdicts = t.store.submit_titled(&both, &titles).await.unwrap();
    assert_eq!(verdicts, [new, new], "another source");
    t.advance(MINUTE);
    assert_eq!(t.prune(ExpiringTable::SeenTitles, SECOND).await, 6);
    let items = [("https://e.example/", 0)];
    assert_eq!(submit_titled(&t, &items).await.unwrap(), [new]);
    t.assert_counters_match().await;
}

async fn a_submit_that_fails_records_no_title(t: Fixture) {
    let items = [("https://a.example/", 1), ("https://b.example/", 2)];
    t.execute("ALTER TABLE urls RENAME TO hidden").await;
    submit_titled(&t, &items).await.unwrap_err();
    t.execute("ALTER TABLE hidden RENAME TO urls").await;
    assert_eq!(
        submit_titled(&t, &items).await.unwrap(),
        [Some(Verdict::New); 2]
    );
}
