//! Sources, feeds, tasks, runs, tokens, robots and idempotency keys.

use std::time::Duration;

use serde_json::json;
use tidings_store::{
    ExpiringTable, Feed, FeedClaim, FetchLogRow, NewAuditEntry, NewSource, PollResult, Replay,
    Robots, Role, StartedTask, Store, Task, TaskCounts, TaskResult,
};
use tidings_url::ProxyHosts;

use crate::fixture::{Fixture, MINUTE, SECOND, id};

on_both_engines!(
    sources_can_be_added_changed_and_removed,
    settings_are_replaced_only_if_nobody_changed_them,
    starter_sources_are_offered_once,
    a_due_feed_is_polled_by_one_poller,
    a_late_poller_is_refused,
    ten_thousand_due_feeds_are_claimed_once_each,
    a_source_with_many_due_feeds_leaves_room_for_the_others,
    new_urls_are_counted_per_source_and_day,
    a_disabled_source_is_not_polled,
    a_feed_can_be_claimed_resumed_and_removed,
    polls_of_a_source_are_counted_by_kind,
    a_shared_value_is_replaced_by_compare_and_swap,
    all_handles_that_open_later_use_the_shared_gateways,
    an_unchanged_feed_and_a_failed_one_are_different,
    the_same_task_starts_once_per_interval,
    runs_are_recorded,
    tokens_are_known_by_their_hash,
    a_token_may_expire,
    audit_entries_are_listed_newest_first_and_kept_for_a_year,
    ids_that_another_process_has_drawn_are_drawn_again,
    robots_are_cached,
    a_request_with_an_idempotency_key_is_executed_once,
);

fn source(name: &str) -> NewSource {
    NewSource {
        name: name.to_owned(),
        url: format!("https://{name}.example/"),
        kind: "feed".to_owned(),
        priority: 5,
        config: json!({ "tags": ["a", "b"] }),
    }
}

async fn sources_can_be_added_changed_and_removed(t: Fixture) {
    let added = t.store.add_source(&source("paper")).await.unwrap();
    assert_eq!(added.config["tags"][1], "b");
    assert!(added.enabled);
    let twice = t.store.add_source(&source("paper")).await.unwrap_err();
    assert!(
        twice
            .to_string()
            .contains("already a source named \"paper\""),
        "{twice}"
    );
    let other = t.store.add_source(&source("other")).await.unwrap();
    assert!(
        t.store
            .update_source(other.source_id, &source("paper"))
            .await
            .is_err()
    );
    t.store
        .update_source(
            added.source_id,
            &NewSource {
                priority: 9,
                ..source("paper")
            },
        )
        .await
        .unwrap();
    t.store
        .set_source_enabled(added.source_id, Some("too loud"))
        .await
        .unwrap();
    let found = t.store.source_named("paper").await.unwrap().unwrap();
    assert_eq!(
        (found.priority, found.enabled, found.reason.as_deref()),
        (9, false, Some("too loud"))
    );
    t.store
        .set_source_enabled(added.source_id, None)
        .await
        .unwrap();
    assert!(
        t.store
            .source(added.source_id)
            .await
            .unwrap()
            .unwrap()
            .enabled
    );
    assert_eq!(t.store.sources_after(0, 10).await.unwrap().len(), 2);
    t.store
        .add_feed(added.source_id, "feed", "https://paper.example/feed")
        .await
        .unwrap();
    t.store.remove_source(added.source_id).await.unwrap();
    assert!(t.store.source(added.source_id).await.unwrap().is_none());
    assert_eq!(t.store.feeds_after(0, 10).await.unwrap().len(), 0);
    assert!(t.store.remove_source(added.source_id).await.is_err());
}

async fn settings_are_replaced_only_if_nobody_changed_them(t: Fixture) {
    let seen = t.store.add_source(&source("paper")).await.unwrap();
    let edited = NewSource {
        name: "gazette".to_owned(),
        priority: 9,
        ..source("paper")
    };
    t.store
        .update_source(seen.source_id, &edited)
        .await
        .unwrap();
    let replace = async |config| t.store.replace_source_config(&seen, &config).await.unwrap();
    // Other fields than the settings may have changed, and stay.
    assert!(replace(json!({ "tags": ["c"] })).await);
    assert!(
        !replace(json!({ "tags": ["d"] })).await,
        "others were first"
    );
    let found = t.store.source(seen.source_id).await.unwrap().unwrap();
    assert_eq!((found.name.as_str(), found.priority), ("gazette", 9));
    assert_eq!(found.config, json!({ "tags": ["c"] }));
}

async fn starter_sources_are_offered_once(t: Fixture) {
    assert!(
        t.store
            .record_starter_source("https://a.example/feed")
            .await
            .unwrap()
    );
    assert!(
        !t.store
            .record_starter_source("https://a.example/feed")
            .await
            .unwrap()
    );
}

fn result(feed: &Feed, outcome: &str, next: Duration, now: tidings_store::Moment) -> PollResult {
    PollResult {
        feed: feed.clone(),
        next_poll_in: next,
        log: FetchLogRow {
            started_at: now,
            elapsed_ms: 12,
            outcome: outcome.to_owned(),
            items_seen: 20,
            items_new: 2,
            error_class: None,
            error_message: None,
            bytes: 1000,
        },
    }
}

async fn a_due_feed_is_polled_by_one_poller(t: Fixture) {
    for n in 0..10 {
        t.store
            .add_feed(n, "feed", &format!("https://h{n}.example/feed"))
            .await
            .unwrap();
    }
    let again = t
        .store
        .add_feed(0, "feed", "https://h0.example/feed")
        .await
        .unwrap();
    assert_eq!(again.url, "https://h0.example/feed");
    let other = t.reopen().await;
    let (one, two) = tokio::join!(t.store.claim_feeds(6, MINUTE), other.claim_feeds(6, MINUTE));
    let mut ids: Vec<_> = one
        .unwrap()
        .into_iter()
        .chain(two.unwrap())
        .map(|claim| claim.feed.feed_id)
        .collect();
    let claimed = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), claimed, "no feed twice");
    let rest = t.store.claim_feeds(20, MINUTE).await.unwrap().len();
    assert_eq!(claimed + rest, 10);
    assert_eq!(t.store.claim_feeds(20, MINUTE).await.unwrap().len(), 0);
}

async fn ten_thousand_due_feeds_are_claimed_once_each(t: Fixture) {
    let feed = |n: usize| vec![("feed", format!("https://h{n}.example/feed"))];
    let sources: Vec<_> = (0..10_000)
        .map(|n| (source(&format!("s{n}")), feed(n)))
        .collect();
    for batch in sources.chunks(500) {
        t.store.add_sources(batch).await.unwrap();
    }
    let claimers = (0..8).map(|_| {
        let store = t.store.clone();
        tokio::spawn(async move {
            let mut mine = Vec::new();
            loop {
                let claims = store.claim_feeds(100, MINUTE).await.unwrap();
                if claims.is_empty() {
                    return mine;
                }
                mine.extend(claims.into_iter().map(|claim| claim.feed.feed_id));
            }
        })
    });
    let mut claimed = Vec::new();
    for claimer in claimers.collect::<Vec<_>>() {
        claimed.extend(claimer.await.unwrap());
    }
    let count = claimed.len();
    claimed.sort_unstable();
    claimed.dedup();
    assert_eq!((claimed.len(), count), (10_000, 10_000));
}

/// One source with thousands of feeds that are due, all longer than those of others.
async fn a_source_with_many_due_feeds_leaves_room_for_the_others(t: Fixture) {
    let greedy = t.store.add_source(&source("greedy")).await.unwrap();
    let id = greedy.source_id;
    let child = |n| (format!("https://greedy.example/{n}"), "{}".to_owned());
    let children: Vec<_> = (0..5000).map(child).collect();
    t.store
        .add_child_feeds(id, "sitemap", &children)
        .await
        .unwrap();
    t.store
        .add_child_feeds(id, "sitemap", &children)
        .await
        .unwrap();
    assert_eq!(t.store.feeds_of_source(id).await.unwrap().len(), 5000);
    t.advance(Duration::from_secs(1));
    for n in 0..7 {
        let url = format!("https://honest{n}.example/feed");
        t.store.add_feed(id + 1 + n, "feed", &url).await.unwrap();
    }
    let of = |claims: &[FeedClaim]| {
        let is_greedy = |claim: &&FeedClaim| claim.feed.source_id == id;
        claims.iter().filter(is_greedy).count()
    };
    let first = t.store.claim_feeds(10, MINUTE).await.unwrap();
    assert_eq!((of(&first), first.len()), (2, 9));
    let other = t.reopen().await;
    assert_eq!(other.claim_feeds(10, MINUTE).await.unwrap().len(), 0);
    // Its own polls go on, one for each that ends, and none of its feeds is lost.
    let mut polled = 0;
    for claim in first.iter().filter(|claim| claim.feed.source_id == id) {
        let end = result(
            &claim.feed,
            "ok",
            MINUTE * 600,
            t.store.now().await.unwrap(),
        );
        assert!(t.store.complete_poll(claim, &end).await.unwrap());
        let next = t.store.claim_feeds(10, MINUTE).await.unwrap();
        assert_eq!((of(&next), next.len()), (1, 1));
        polled += 1;
    }
    assert_eq!(polled, 2);
    t.advance(MINUTE * 10);
    let due = t.store.feeds_of_source(id).await.unwrap();
    let now = t.store.now().await.unwrap();
    let due = due.iter().filter(|feed| feed.next_poll_at <= now);
    assert_eq!(due.count(), 4998);
}

async fn new_urls_are_counted_per_source_and_day(t: Fixture) {
    let paper = t.store.add_source(&source("paper")).await.unwrap();
    let id = paper.source_id;
    let other = t.reopen().await;
    let (one, two) = tokio::join!(t.store.count_new_urls(id, 3), other.count_new_urls(id, 4));
    one.unwrap();
    two.unwrap();
    t.store.count_new_urls(id + 1, 9).await.unwrap();
    let today = other.new_urls_today(id).await.unwrap();
    assert_eq!(today.count, 7);
    assert!(today.resets_in <= MINUTE * 60 * 24 && today.resets_in > Duration::ZERO);
    t.advance(today.resets_in);
    assert_eq!(t.store.new_urls_today(id).await.unwrap().count, 0);
    t.store.count_new_urls(id, 5).await.unwrap();
    assert_eq!(t.store.new_urls_today(id).await.unwrap().count, 5);
    t.store.remove_source(id).await.unwrap();
    assert_eq!(t.store.new_urls_today(id).await.unwrap().count, 0);
}

async fn polls_of_a_source_are_counted_by_kind(t: Fixture) {
    let paper = t.store.add_source(&source("paper")).await.unwrap();
    let id = paper.source_id;
    for (kind, url) in [
        ("listing", "https://paper.example/world"),
        ("listing", "https://paper.example/sport"),
        ("feed", "https://paper.example/feed"),
    ] {
        let feed = [(url.to_owned(), "{\"depth\":1}".to_owned())];
        t.store.add_child_feeds(id, kind, &feed).await.unwrap();
    }
    let start = t.store.now().await.unwrap();
    let count = async |since| t.store.polls_since(id, "listing", since).await.unwrap();
    assert_eq!(count(start).await, 0);
    for _ in 0..3 {
        let claim = t.store.claim_feeds(1, MINUTE).await.unwrap().remove(0);
        assert!(claim.feed.policy.contains("depth"));
        let end = result(&claim.feed, "ok", MINUTE, t.store.now().await.unwrap());
        assert!(t.store.complete_poll(&claim, &end).await.unwrap());
    }
    assert_eq!(count(start).await, 2);
    assert_eq!(count(start.plus(MINUTE)).await, 0);
    assert_eq!(
        t.store.polls_since(id + 1, "listing", start).await.unwrap(),
        0
    );
}

async fn a_disabled_source_is_not_polled(t: Fixture) {
    let paper = t.store.add_source(&source("paper")).await.unwrap();
    let feed = "https://paper.example/feed";
    t.store
        .add_feed(paper.source_id, "feed", feed)
        .await
        .unwrap();
    t.store
        .set_source_enabled(paper.source_id, Some("stopped by the operator"))
        .await
        .unwrap();
    assert!(t.store.claim_feeds(9, MINUTE).await.unwrap().is_empty());
    assert_eq!(t.store.next_feed_due().await.unwrap(), None);
    t.store
        .set_source_enabled(paper.source_id, None)
        .await
        .unwrap();
    assert!(t.store.next_feed_due().await.unwrap().is_some());
    assert_eq!(t.store.claim_feeds(9, MINUTE).await.unwrap().len(), 1);
}

async fn a_feed_can_be_claimed_resumed_and_removed(t: Fixture) {
    let feed = t
        .store
        .add_feed(1, "feed", "https://a.example/feed")
        .await
        .unwrap();
    let claim = t
        .store
        .claim_feed(feed.feed_id, MINUTE)
        .await
        .unwrap()
        .unwrap();
    assert!(
        t.store
            .claim_feed(feed.feed_id, MINUTE)
            .await
            .unwrap()
            .is_none()
    );
    assert!(t.store.extend_feed_lease(&claim, MINUTE * 3).await.unwrap());
    t.advance(MINUTE * 2);
    assert!(
        t.store
            .claim_feed(feed.feed_id, MINUTE)
            .await
            .unwrap()
            .is_none()
    );
    let log = FetchLogRow {
        started_at: t.store.now().await.unwrap(),
        elapsed_ms: 1,
        outcome: "ok".to_owned(),
        items_seen: 0,
        items_new: 0,
        error_class: None,
        error_message: None,
        bytes: 0,
    };
    let paused = Feed {
        paused_reason: Some("gone".to_owned()),
        ..feed.clone()
    };
    let result = PollResult {
        feed: paused,
        next_poll_in: MINUTE * 60,
        log,
    };
    assert!(t.store.complete_poll(&claim, &result).await.unwrap());
    t.advance(MINUTE * 90);
    assert!(
        t.store.claim_feeds(9, MINUTE).await.unwrap().is_empty(),
        "it is paused"
    );
    let now = t.store.now().await.unwrap();
    t.store.resume_feed(feed.feed_id, now).await.unwrap();
    assert_eq!(t.store.claim_feeds(9, MINUTE).await.unwrap().len(), 1);
    assert_eq!(t.store.feeds_of_source(1).await.unwrap().len(), 1);
    t.store.remove_feeds(&[feed.feed_id]).await.unwrap();
    assert!(t.store.feeds_of_source(1).await.unwrap().is_empty());
    assert!(t.store.fetch_log(feed.feed_id, 9).await.unwrap().is_empty());
    assert!(t.store.resume_feed(feed.feed_id, now).await.is_err());
}

async fn a_shared_value_is_replaced_by_compare_and_swap(t: Fixture) {
    let at = t.store.now().await.unwrap();
    let value = |n| tidings_store::SharedValue {
        value: format!("v{n}"),
        n,
        at,
    };
    assert_eq!(t.store.shared_value("price").await.unwrap(), None);
    assert!(
        t.store
            .replace_shared_value("price", None, &value(1))
            .await
            .unwrap()
    );
    assert!(
        !t.store
            .replace_shared_value("price", None, &value(2))
            .await
            .unwrap()
    );
    assert!(
        t.store
            .replace_shared_value("price", Some(&value(1)), &value(2))
            .await
            .unwrap()
    );
    assert!(
        !t.store
            .replace_shared_value("price", Some(&value(1)), &value(3))
            .await
            .unwrap()
    );
    assert_eq!(t.store.shared_value("price").await.unwrap(), Some(value(2)));
    assert_eq!(t.store.feed_demand().await.unwrap(), (0, 0.0));
    assert_eq!(t.store.polls().await.unwrap(), 0);
}

async fn a_late_poller_is_refused(t: Fixture) {
    t.store
        .add_feed(1, "feed", "https://a.example/feed")
        .await
        .unwrap();
    let late = t.store.claim_feeds(1, MINUTE).await.unwrap().remove(0);
    t.advance(MINUTE);
    let now = t.store.now().await.unwrap();
    let prompt = t.store.claim_feeds(1, MINUTE).await.unwrap().remove(0);
    assert!(
        !t.store
            .complete_poll(&late, &result(&late.feed, "ok", MINUTE, now))
            .await
            .unwrap()
    );
    assert!(
        t.store
            .complete_poll(&prompt, &result(&prompt.feed, "ok", MINUTE, now))
            .await
            .unwrap()
    );
    assert_eq!(
        t.store
            .fetch_log(prompt.feed.feed_id, 10)
            .await
            .unwrap()
            .len(),
        1
    );
    t.advance(SECOND * 59);
    assert_eq!(t.store.claim_feeds(1, MINUTE).await.unwrap().len(), 0);
    t.advance(SECOND);
    assert_eq!(t.store.claim_feeds(1, MINUTE).await.unwrap().len(), 1);
}

async fn an_unchanged_feed_and_a_failed_one_are_different(t: Fixture) {
    t.store
        .add_feed(1, "feed", "https://a.example/feed")
        .await
        .unwrap();
    let claim = t.store.claim_feeds(1, MINUTE).await.unwrap().remove(0);
    let now = t.store.now().await.unwrap();
    let mut failed = result(&claim.feed, "failed", MINUTE, now);
    failed.feed.consecutive_errors = 1;
    failed.feed.last_error = Some("é".repeat(900));
    failed.log.error_message = Some("é".repeat(900));
    failed.log.error_class = Some("network".to_owned());
    t.store.complete_poll(&claim, &failed).await.unwrap();
    let line = t
        .store
        .fetch_log(claim.feed.feed_id, 1)
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        (line.outcome.as_str(), line.error_class.as_deref()),
        ("failed", Some("network"))
    );
    assert_eq!(line.error_message.unwrap().chars().count(), 500);
    let feed = t.store.feed(claim.feed.feed_id).await.unwrap().unwrap();
    assert_eq!(
        (feed.consecutive_errors, feed.last_polled_at),
        (1, Some(now))
    );
    assert_eq!(t.store.failing_feeds(1).await.unwrap(), (1, 1));
    assert_eq!(t.store.failing_feeds(2).await.unwrap(), (1, 0));

    t.advance(MINUTE);
    let claim = t.store.claim_feeds(1, MINUTE).await.unwrap().remove(0);
    let mut gone = result(
        &claim.feed,
        "not_modified",
        MINUTE,
        t.store.now().await.unwrap(),
    );
    gone.feed.paused_reason = Some("410 Gone".to_owned());
    t.store.complete_poll(&claim, &gone).await.unwrap();
    t.advance(MINUTE * 60);
    assert_eq!(
        t.store.claim_feeds(1, MINUTE).await.unwrap().len(),
        0,
        "paused, with a reason"
    );
    assert_eq!(
        t.store
            .fetch_log(claim.feed.feed_id, 9)
            .await
            .unwrap()
            .len(),
        2
    );
    assert_eq!(t.prune(ExpiringTable::FetchLog, MINUTE * 60).await, 1);
}

async fn the_same_task_starts_once_per_interval(t: Fixture) {
    let other = t.reopen().await;
    let (one, two) = tokio::join!(
        t.store.start_task("poll", "source:1", MINUTE),
        other.start_task("poll", "source:1", MINUTE)
    );
    let started = [one.unwrap(), two.unwrap()];
    let count = started
        .iter()
        .filter(|task| matches!(task, StartedTask::Started(_)))
        .count();
    assert_eq!(count, 1, "{started:?}");
    let StartedTask::Started(other) = t
        .store
        .start_task("poll", "source:2", MINUTE)
        .await
        .unwrap()
    else {
        panic!("another source may be polled");
    };
    assert_eq!(other.counts, None);
    let counts = TaskCounts {
        sources_attempted: 3,
        sources_succeeded: 2,
        items_seen: 9,
        items_new: 4,
    };
    for (has_failed, status, counts) in [(true, "failed", None), (false, "done", Some(counts))] {
        let result = TaskResult {
            has_failed,
            detail: "{\"quoted\"}, \0 and all".to_owned(),
            counts,
        };
        t.store.finish_task(other.task_id, &result).await.unwrap();
        let task = t.store.task(other.task_id).await.unwrap().unwrap();
        assert_eq!(task.status, status);
        assert_eq!(task.detail, "{\"quoted\"},  and all");
        assert_eq!(task.counts, counts);
        assert!(task.finished_at.is_some());
    }
    let ids = |tasks: Vec<Task>| -> Vec<i64> { tasks.iter().map(|task| task.task_id).collect() };
    let all = ids(t.store.tasks(None, 9).await.unwrap());
    assert_eq!((all.len(), all[0]), (2, other.task_id), "the newest first");
    assert_eq!(ids(t.store.tasks(None, 1).await.unwrap()), all[..1]);
    assert_eq!(ids(t.store.tasks(Some(all[0]), 9).await.unwrap()), all[1..]);
    t.advance(MINUTE);
    assert!(matches!(
        t.store
            .start_task("poll", "source:1", MINUTE)
            .await
            .unwrap(),
        StartedTask::Started(_)
    ));
    assert_eq!(t.prune(ExpiringTable::Tasks, SECOND).await, 2);
}

async fn runs_are_recorded(t: Fixture) {
    let run = t.store.start_run().await.unwrap();
    t.advance(SECOND);
    t.store.finish_run(run, "{\"new\":3}").await.unwrap();
    let runs = t.store.runs(None, 5).await.unwrap();
    assert_eq!((runs.len(), runs[0].metrics.as_str()), (1, "{\"new\":3}"));
    assert!(runs[0].finished_at > Some(runs[0].started_at));
}

async fn tokens_are_known_by_their_hash(t: Fixture) {
    let token = t
        .store
        .add_token("ci", Role::Operator, "s3cret", None)
        .await
        .unwrap();
    assert!(t.store.use_token("wrong").await.unwrap().is_none());
    let found = t.store.use_token("s3cret").await.unwrap().unwrap();
    assert_eq!(
        (found.token_id, found.role, found.last_used_at.is_some()),
        (token, Role::Operator, true)
    );
    t.store.revoke_token(token).await.unwrap();
    assert!(t.store.use_token("s3cret").await.unwrap().is_none());
    assert!(t.store.revoke_token(token).await.is_err());
    assert_eq!(t.store.tokens().await.unwrap().len(), 1);
}

async fn a_token_may_expire(t: Fixture) {
    let ttl = Some(10 * MINUTE);
    t.store
        .add_token("ci", Role::Viewer, "s3cret", ttl)
        .await
        .unwrap();
    let found = t.store.use_token("s3cret").await.unwrap().unwrap();
    assert_eq!(found.expires_at, Some(found.created_at.plus(10 * MINUTE)));
    t.advance(9 * MINUTE);
    assert!(t.store.use_token("s3cret").await.unwrap().is_some());
    t.advance(MINUTE);
    assert!(t.store.use_token("s3cret").await.unwrap().is_none());
    let listed = t.store.tokens().await.unwrap().remove(0);
    assert!(!listed.is_valid(t.store.now().await.unwrap()));
    assert!(listed.last_used_at.unwrap() < listed.expires_at.unwrap());
}

async fn audit_entries_are_listed_newest_first_and_kept_for_a_year(t: Fixture) {
    for (path, status) in [("/a", 200), ("/b", 403), ("/c", 201)] {
        let entry = NewAuditEntry {
            who: "ci",
            role: Role::Operator,
            action: "Try it",
            method: "POST",
            path,
            status,
            request_id: "7",
        };
        t.store.add_audit_entry(&entry).await.unwrap();
        t.advance(MINUTE);
    }
    let page = t.store.audit_entries(None, 2).await.unwrap();
    let seen: Vec<_> = page
        .iter()
        .map(|one| (one.path.as_str(), one.status))
        .collect();
    assert_eq!(seen, [("/c", 201), ("/b", 403)]);
    assert_eq!((page[0].who.as_str(), page[0].role), ("ci", Role::Operator));
    let rest = t
        .store
        .audit_entries(Some(page[1].audit_id), 2)
        .await
        .unwrap();
    assert_eq!((rest.len(), rest[0].path.as_str()), (1, "/a"));
    assert_eq!(t.prune(ExpiringTable::Audit, MINUTE * 2).await, 1);
    assert_eq!(t.store.audit_entries(None, 9).await.unwrap().len(), 2);
}

async fn robots_are_cached(t: Fixture) {
    t.submit(&["https://a.example/"]).await;
    let host = id("https://a.example/").host;
    assert_eq!(t.store.robots(host).await.unwrap(), None);
    let now = t.store.now().await.unwrap();
    for body in ["User-agent: *\nDisallow: /", "changed\0"] {
        let robots = Robots {
            status: 200,
            body: body.to_owned(),
            fetched_at: now,
            expires_at: now.plus(MINUTE),
        };
        t.store.put_robots(host, &robots).await.unwrap();
        assert_eq!(
            t.store.robots(host).await.unwrap().unwrap().body,
            body.replace('\0', "")
        );
    }
}

async fn a_request_with_an_idempotency_key_is_executed_once(t: Fixture) {
    assert_eq!(
        t.store.begin_idempotent("k1", b"body").await.unwrap(),
        Replay::First
    );
    assert_eq!(
        t.store.begin_idempotent("k1", b"body").await.unwrap(),
        Replay::First,
        "the first never finished"
    );
    t.store.finish_idempotent("k1", "[\"new\"]").await.unwrap();
    assert_eq!(
        t.store.begin_idempotent("k1", b"body").await.unwrap(),
        Replay::Done("[\"new\"]".to_owned())
    );
    let error = t.store.begin_idempotent("k1", b"other").await.unwrap_err();
    assert!(
        error.to_string().contains("used for another request"),
        "{error}"
    );
    t.advance(MINUTE);
    assert_eq!(t.prune(ExpiringTable::Idempotency, SECOND).await, 1);
}

/// Takes the ids that the store would draw next for a table, as another process may.
async fn take_ids(t: &Fixture, columns: &str, values: &str) {
    let last = t.store.start_run().await.unwrap();
    let ids = format!(
        "WITH RECURSIVE n(i) AS (SELECT {last} + 1 UNION ALL SELECT i + 1 FROM n WHERE i < {last} + 2000)"
    );
    t.sql(&format!(
        "INSERT INTO {columns} {ids} SELECT i, {values} FROM n"
    ))
    .await;
}

async fn ids_that_another_process_has_drawn_are_drawn_again(t: Fixture) {
    take_ids(&t, "runs (run_id, started_at, metrics)", "0, '{}'").await;
    t.store.start_run().await.unwrap();

    let tasks = "tasks (task_id, kind, subject, status, detail, created_at)";
    take_ids(&t, tasks, "'', '', '', '', 0").await;
    let task = t.store.start_task("k", "s", MINUTE).await.unwrap();
    assert!(matches!(task, StartedTask::Started(_)));

    let tokens = "tokens (token_id, name, role, token_hash, created_at)";
    let hash = "'', 'viewer', CAST(CAST(i AS TEXT) AS BYTEA), 0";
    take_ids(&t, tokens, hash).await;
    let token = t.store.add_token("ci", Role::Viewer, "secret", None).await;
    token.unwrap();

    let audit = "audit (audit_id, at, who, role, action, method, path, status, request_id)";
    take_ids(&t, audit, "0, '', 'viewer', '', '', '', 0, ''").await;
    let entry = NewAuditEntry {
        who: "ci",
        role: Role::Operator,
        action: "Try it",
        method: "POST",
        path: "/",
        status: 200,
        request_id: "7",
    };
    t.store.add_audit_entry(&entry).await.unwrap();

    let sources =
        "sources (source_id, name, url, kind, priority, enabled, config, created_at, updated_at)";
    let named = "CAST(i AS TEXT), '', '', 5, 1, '{}', 0, 0";
    take_ids(&t, sources, named).await;
    let added = t.store.add_source(&source("paper")).await.unwrap();
    let feeds = "feeds (feed_id, source_id, kind, url, item_count, next_poll_at, lease_until, attempt, consecutive_errors, policy)";
    let unpolled = "i, '', '', 0, 0, 0, 0, 0, '{}'";
    take_ids(&t, feeds, unpolled).await;
    let url = "https://a.example/";
    let feed = t.store.add_feed(added.source_id, "rss", url).await.unwrap();
    assert_eq!(feed.source_id, added.source_id);
    take_ids(&t, feeds, unpolled).await;
    let child = [(url.to_owned(), "{}".to_owned())];
    let added_child = t.store.add_child_feeds(added.source_id, "sitemap", &child);
    added_child.await.unwrap();
    take_ids(&t, feeds, unpolled).await;
    let many = [(source("other"), vec![("rss", url.to_owned())])];
    t.store.add_sources(&many).await.unwrap();
    let other = t.store.source_named("other").await.unwrap().unwrap();
    let feeds = t.store.feeds_of_source(other.source_id).await.unwrap();
    assert_eq!(feeds.len(), 1);
}

async fn all_handles_that_open_later_use_the_shared_gateways(t: Fixture) {
    let list = |hosts: &[&str]| -> ProxyHosts { hosts.iter().collect() };
    let (one, two) = (list(&["a.example"]), list(&["a.example", "b.example:1200"]));
    // Nobody shares one yet: each machine uses what it is configured with.
    let mut options = t.options();
    options.proxy_hosts = one.clone();
    let mut first = Store::open(&t.address, &options).await.unwrap();
    assert_eq!(first.proxy_hosts(), &one);
    assert_eq!(t.reopen().await.proxy_hosts(), &ProxyHosts::default());

    assert_eq!(first.share_proxy_hosts(one.clone()).await.unwrap(), None);
    assert_eq!(t.reopen().await.proxy_hosts(), &one);
    let mut second = t.reopen().await;
    let replaced = second.share_proxy_hosts(two.clone()).await.unwrap();
    assert_eq!(replaced, Some(one.clone()));
    assert_eq!(second.clone().proxy_hosts(), &two);
    assert_eq!(second.share_proxy_hosts(two.clone()).await.unwrap(), None);
    // The configuration of a machine does not hide the shared list.
    let third = Store::open(&t.address, &options).await.unwrap();
    assert_eq!(third.proxy_hosts(), &two);
    // A list without gateways is a list, too.
    let replaced = second.share_proxy_hosts(ProxyHosts::default()).await;
    assert_eq!(replaced.unwrap(), Some(two));
    let fourth = Store::open(&t.address, &options).await.unwrap();
    assert_eq!(fourth.proxy_hosts(), &ProxyHosts::default());
}
