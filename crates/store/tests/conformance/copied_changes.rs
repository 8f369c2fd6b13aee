//! Cursors of document changes in a copy of their store: what a reader has seen is
//! not repeated, and what comes later is not missed.

use tidings_store::{ChangeCursor, copy_store};

use crate::fixture::Fixture;
use crate::outbox::{Change, changes, fetch, titles};

on_both_engines!(a_cursor_of_changes_is_valid_in_a_copy);

/// Three documents in another order than that of their ids; one of them changed.
async fn three_documents(t: &Fixture) {
    fetch(t, "https://b.example/1", "x").await;
    fetch(t, "https://a.example/2", "xx").await;
    fetch(t, "https://c.example/3", "xxx").await;
    fetch(t, "https://b.example/1", "changed").await;
}

fn cursors(changes: &[Change]) -> Vec<ChangeCursor> {
    changes.iter().map(|(cursor, _)| *cursor).collect()
}

/// The copy has the changes of its original, and one that comes later is after them.
async fn assert_continues(before: &[Change], copy: &Fixture) {
    let copied = changes(copy, None, before.len()).await;
    assert_eq!(titles(&copied), titles(before));
    assert_eq!(cursors(&copied), cursors(before));
    let last = cursors(before).last().copied();
    fetch(copy, "https://later.example/", "later").await;
    let later = changes(copy, last, 1).await;
    assert_eq!(titles(&later), ["later"], "after {last:?}");
}

async fn a_cursor_of_changes_is_valid_in_a_copy(t: Fixture) {
    three_documents(&t).await;
    let before = changes(&t, None, 3).await;
    assert_eq!(titles(&before), ["xx", "xxx", "changed"]);
    for other in [Fixture::sqlite().await, Fixture::postgres().await] {
        copy_store(&t.store, &other.store, |_| {}).await.unwrap();
        // Copying again changes nothing.
        copy_store(&t.store, &other.store, |_| {}).await.unwrap();
        assert_continues(&before, &other).await;
    }
}

/// A store that saw more changes than the server it is copied to had transactions,
/// and back again, and to a second server.
#[tokio::test]
async fn change_ids_that_the_server_has_not_reached_are_continued() {
    let t = Fixture::sqlite().await;
    three_documents(&t).await;
    let path = t.address.strip_prefix("sqlite:").unwrap();
    rusqlite::Connection::open(path)
        .unwrap()
        .execute_batch("UPDATE documents SET change_id = change_id + 7000000000")
        .unwrap();
    let mut before = changes(&t, None, 3).await;
    let mut from = t;
    for to in [
        Fixture::postgres().await,
        Fixture::sqlite().await,
        Fixture::postgres().await,
        Fixture::postgres().await,
    ] {
        copy_store(&from.store, &to.store, |_| {}).await.unwrap();
        copy_store(&from.store, &to.store, |_| {}).await.unwrap();
        let copied = changes(&to, None, before.len()).await;
        assert_eq!(cursors(&copied), cursors(&before));
        let last = cursors(&before).last().copied();
        // Two changes, so that their order is seen as well.
        let url = |n: usize| format!("https://later{n}-{}.example/", before.len());
        fetch(&to, &url(1), "later").await;
        fetch(&to, &url(2), "last").await;
        let later = changes(&to, last, 2).await;
        assert_eq!(titles(&later), ["later", "last"], "after {last:?}");
        before.extend(later);
        from = to;
    }
}

/// As after `pg_restore` on a new server, which has had few transactions.
#[tokio::test]
async fn changes_go_on_after_a_restore_on_another_server() {
    let mut t = Fixture::postgres().await;
    three_documents(&t).await;
    t.execute("UPDATE documents SET change_id = change_id + 7000000000")
        .await;
    t.store = t.reopen().await;
    let before = changes(&t, None, 3).await;
    assert_continues(&before, &t).await;
}

#[tokio::test]
async fn a_copy_with_other_change_ids_is_not_called_equal() {
    let (t, other) = (Fixture::sqlite().await, Fixture::sqlite().await);
    three_documents(&t).await;
    copy_store(&t.store, &other.store, |_| {}).await.unwrap();
    let path = other.address.strip_prefix("sqlite:").unwrap();
    rusqlite::Connection::open(path)
        .unwrap()
        .execute_batch("UPDATE documents SET change_id = 9 - change_id")
        .unwrap();
    let error = copy_store(&t.store, &other.store, |_| {})
        .await
        .unwrap_err();
    assert!(error.to_string().contains("documents differs"), "{error}");
}
