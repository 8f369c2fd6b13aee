//! Opening, migrating up and down, and refusing a newer schema.

use tidings_store::{SCHEMA_VERSION, Store, StoreError};

use crate::fixture::Fixture;

on_both_engines!(
    many_processes_may_open_concurrently,
    the_schema_goes_down_and_up_again,
    every_step_goes_down_and_up_again,
    a_newer_schema_is_refused_with_advice,
    the_version_is_read_without_a_change,
);

async fn many_processes_may_open_concurrently(t: Fixture) {
    Store::open(&t.address, &t.options().at_schema_version(0))
        .await
        .unwrap();
    let opening: Vec<_> = (0..8)
        .map(|_| {
            let (address, options) = (t.address.clone(), t.options());
            tokio::spawn(async move { Store::open(&address, &options).await.map(drop) })
        })
        .collect();
    for open in opening {
        open.await.unwrap().unwrap();
    }
}

async fn the_schema_goes_down_and_up_again(t: Fixture) {
    t.submit(&["https://a.example/"]).await;
    let down = Store::open(&t.address, &t.options().at_schema_version(0))
        .await
        .unwrap();
    assert!(
        matches!(down.stats().await, Err(StoreError::Failed { .. })),
        "the tables are gone"
    );
    let up = t.reopen().await;
    assert_eq!(up.stats().await.unwrap().by_status["pending"], 0);
}

async fn every_step_goes_down_and_up_again(t: Fixture) {
    t.submit(&["https://a.example/"]).await;
    for version in (0..SCHEMA_VERSION).rev() {
        let options = t.options().at_schema_version(version);
        drop(Store::open(&t.address, &options).await.unwrap());
        // A step that leaves something behind fails here: it exists already.
        let up = Store::open(&t.address, &t.options()).await;
        let up = up.unwrap_or_else(|error| panic!("up from {version}: {error}"));
        let expected = i64::from(version > 0);
        let pending = up.stats().await.unwrap().by_status["pending"];
        assert_eq!(pending, expected, "after version {version}");
    }
}

async fn a_newer_schema_is_refused_with_advice(t: Fixture) {
    let newer = SCHEMA_VERSION + 1;
    t.store.pretend_schema_version(newer).await.unwrap();
    let error = Store::open(&t.address, &t.options()).await.unwrap_err();
    assert!(
        matches!(error, StoreError::TooNew { found, .. } if found == newer),
        "{error}"
    );
    assert!(error.to_string().contains("upgrade tidings"), "{error}");
}

async fn the_version_is_read_without_a_change(t: Fixture) {
    let found = async || Store::schema_version(&t.address).await.unwrap();
    assert_eq!(found().await, Some(SCHEMA_VERSION));
    for (version, expected) in [(3, Some(3)), (0, None)] {
        let options = t.options().at_schema_version(version);
        drop(Store::open(&t.address, &options).await.unwrap());
        assert_eq!(found().await, expected);
        assert_eq!(found().await, expected, "reading did not change it");
    }
    let error = Store::schema_version("mysql://db/x").await.unwrap_err();
    assert!(matches!(error, StoreError::Address { .. }), "{error}");
}
