//! Submission of URLs.

use tidings_store::{
    ExpiringTable, Moment, Newness, Origin, Outcome, Result, Status, Submission, Verdict,
};

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
    a_guid_with_another_url_is_an_alias,
    a_guid_of_a_dead_url_is_taken_over,
    a_guid_follows_redirects,
    a_guid_that_is_listed_does_not_expire,
    a_submit_that_fails_records_no_guid,
    judging_is_what_submitting_says,
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
async fn submit_titled(t: &Fixture, items: &[(&str, u8)]) -> Result<Vec<Verdict>> {
    let of_source = |(url, title): &(&str, u8)| Submission {
        source_id: 1,
        title: Some([*title; 16]),
        ..submission(url)
    };
    let submissions: Vec<_> = items.iter().map(of_source).collect();
    t.store.submit(&submissions).await
}

async fn a_title_is_submitted_once(t: Fixture) {
    let (new, known) = (Verdict::New, Verdict::Known);
    // The first of a list wins, whatever the order of the ids.
    for n in 0..4 {
        let (one, two) = (
            format!("https://a{n}.example/"),
            format!("https://b{n}.example/"),
        );
        let items = [(&*one, n), (&*two, n), (&*one, n)];
        assert_eq!(
            submit_titled(&t, &items).await.unwrap(),
            [new, known, known],
            "{n}"
        );
        assert!(t.store.url(id(&two)).await.unwrap().is_none());
    }
    let items = [("https://c.example/", 0), ("https://a0.example/", 9)];
    assert_eq!(submit_titled(&t, &items).await.unwrap(), [known, known]);
    assert!(
        t.store
            .url(id("https://c.example/"))
            .await
            .unwrap()
            .is_none()
    );
    let other = Submission {
        source_id: 2,
        title: Some([0; 16]),
        ..submission("https://c.example/")
    };
    let untitled = submission("https://d.example/");
    let verdicts = t.store.submit(&[other, untitled]).await.unwrap();
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
    assert_eq!(submit_titled(&t, &items).await.unwrap(), [Verdict::New; 2]);
}

fn with_guid(url: &str, guid: u8) -> Submission {
    Submission {
        source_id: 1,
        guid: Some([guid; 16]),
        ..submission(url)
    }
}

/// Submits URLs of source 1, each with a guid.
async fn submit_guids(t: &Fixture, items: &[(&str, u8)]) -> Result<Vec<Verdict>> {
    let submissions: Vec<_> = items
        .iter()
        .map(|(url, guid)| with_guid(url, *guid))
        .collect();
    t.store.submit(&submissions).await
}

async fn a_guid_with_another_url_is_an_alias(t: Fixture) {
    let (new, known) = (Verdict::New, Verdict::Known);
    let items = [("https://a.example/1", 1), ("https://a.example/2", 2)];
    assert_eq!(submit_guids(&t, &items).await.unwrap(), [new, new]);
    assert_eq!(submit_guids(&t, &items).await.unwrap(), [known, known]);
    // The same items after the site has moved, and one that is new.
    let moved = [
        ("https://b.example/1", 1),
        ("https://b.example/2", 2),
        ("https://b.example/3", 3),
    ];
    for _ in 0..2 {
        let verdicts = submit_guids(&t, &moved).await.unwrap();
        assert_eq!(verdicts[..2], [known, known]);
    }
    let explained = t.store.explain(id("https://b.example/1")).await.unwrap();
    assert_eq!(explained.alias_of, Some(id("https://a.example/1")));
    assert!(explained.row.is_none());
    let events = t.events("https://a.example/1").await;
    assert_eq!(
        events.iter().filter(|kind| *kind == "alias").count(),
        1,
        "{events:?}"
    );
    assert_eq!(t.rows("urls").await, 3);
    // Without a guid the alias is known, too.
    assert_eq!(t.submit(&["https://b.example/2"]).await, [known]);
    // Guids belong to their source.
    let other = Submission {
        source_id: 2,
        ..with_guid("https://c.example/1", 1)
    };
    assert_eq!(t.store.submit(&[other]).await.unwrap(), [new]);
    // A URL that is known itself is no alias.
    t.submit(&["https://d.example/1"]).await;
    let items = [("https://d.example/1", 1)];
    assert_eq!(submit_guids(&t, &items).await.unwrap(), [known]);
    let explained = t.store.explain(id("https://d.example/1")).await.unwrap();
    assert_eq!(explained.alias_of, None);
    // Two URLs of one list with the same guid are one item.
    let twice = [("https://e.example/1", 9), ("https://e.example/2", 9)];
    let mut verdicts = submit_guids(&t, &twice).await.unwrap();
    verdicts.sort_by_key(|verdict| *verdict != new);
    assert_eq!(verdicts, [new, known]);
    t.assert_counters_match().await;
}

async fn a_guid_of_a_dead_url_is_taken_over(t: Fixture) {
    let first = [("https://a.example/1", 1)];
    let moved = [("https://b.example/1", 1)];
    submit_guids(&t, &first).await.unwrap();
    assert_eq!(submit_guids(&t, &moved).await.unwrap(), [Verdict::Known]);
    let claim = t.claim_one().await;
    let dead = Outcome::Dead {
        reason: "not_found".to_owned(),
        error: None,
    };
    assert!(t.complete(&claim, dead).await);
    // There is no document: the item is fetched where it is now.
    assert_eq!(submit_guids(&t, &moved).await.unwrap(), [Verdict::New]);
    assert_eq!(submit_guids(&t, &moved).await.unwrap(), [Verdict::Known]);
    assert_eq!(t.claim_one().await.url.as_str(), "https://b.example/1");
    t.assert_counters_match().await;
}

async fn a_guid_follows_redirects(t: Fixture) {
    submit_guids(&t, &[("https://a.example/1", 1)])
        .await
        .unwrap();
    let claim = t.claim_one().await;
    let redirected = Outcome::Redirected {
        to: Box::new(submission("https://www.a.example/1")),
        etag: None,
        last_modified: None,
        content_hash: None,
        document: None,
    };
    assert!(t.complete(&claim, redirected).await);
    let moved = [("https://b.example/1", 1), ("https://www.a.example/1", 1)];
    let verdicts = submit_guids(&t, &moved).await.unwrap();
    assert_eq!(verdicts, [Verdict::Known; 2]);
    let explained = t.store.explain(id("https://b.example/1")).await.unwrap();
    assert_eq!(explained.alias_of, Some(id("https://www.a.example/1")));
}

async fn a_guid_that_is_listed_does_not_expire(t: Fixture) {
    let day = MINUTE * 60 * 24;
    submit_guids(
        &t,
        &[("https://a.example/1", 1), ("https://a.example/2", 2)],
    )
    .await
    .unwrap();
    for _ in 0..3 {
        t.advance(day);
        submit_guids(&t, &[("https://a.example/1", 1)])
            .await
            .unwrap();
    }
    assert_eq!(t.prune(ExpiringTable::SeenGuids, day * 2).await, 1);
    let moved = [("https://b.example/1", 1), ("https://b.example/2", 2)];
    assert_eq!(
        submit_guids(&t, &moved).await.unwrap(),
        [Verdict::Known, Verdict::New]
    );
}

async fn a_submit_that_fails_records_no_guid(t: Fixture) {
    t.execute("ALTER TABLE hosts RENAME TO hidden").await;
    submit_guids(&t, &[("https://a.example/1", 1)])
        .await
        .unwrap_err();
    t.execute("ALTER TABLE hidden RENAME TO hosts").await;
    let items = [("https://b.example/1", 1)];
    assert_eq!(submit_guids(&t, &items).await.unwrap(), [Verdict::New]);
}

async fn judging_is_what_submitting_says(t: Fixture) {
    let item = |url: &str, guid: u8, title: u8| Submission {
        title: Some([title; 16]),
        ..with_guid(url, guid)
    };
    let known = [
        item("https://a.example/1", 1, 1),
        item("https://a.example/2", 2, 2),
    ];
    assert_eq!(t.store.judge(&known).await.unwrap(), [Newness::New; 2]);
    t.store.submit(&known).await.unwrap();
    let rows = [
        (item("https://a.example/1", 1, 1), Newness::Url),
        (item("https://b.example/1", 1, 9), Newness::Guid),
        (item("https://b.example/2", 8, 2), Newness::Title),
        (item("https://b.example/3", 3, 3), Newness::New),
        // The same as another of the list.
        (item("https://b.example/4", 3, 4), Newness::Guid),
        (item("https://b.example/5", 5, 3), Newness::Title),
        (submission("https://b.example/3"), Newness::Url),
        (submission("https://b.example/6"), Newness::New),
    ];
    let (listed, expected): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    assert_eq!(t.store.judge(&listed).await.unwrap(), expected);
    assert_eq!(t.rows("urls").await, 2, "nothing was written");
    let new = t.store.submit(&listed).await.unwrap().into_iter();
    let new = new.filter(|verdict| *verdict == Verdict::New).count();
    let judged = expected.iter().filter(|newness| **newness == Newness::New);
    assert_eq!(new, judged.count());
    let guids = [[1; 16], [7; 16]];
    assert_eq!(
        t.store.urls_of_guids(1, &guids).await.unwrap(),
        [Some(id("https://a.example/1")), None]
    );
}
