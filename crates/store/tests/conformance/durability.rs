//! What survives a power cut: the `synchronous` level of SQLite's writer, seen by
//! triggers inside its transactions. FULL syncs the log before a commit is
//! acknowledged, NORMAL does not.

use tidings_store::{NewDocument, NewSource, Outcome};

use crate::fixture::{Fixture, id, target};

const NORMAL: i64 = 1;
const FULL: i64 = 2;

/// Records the level of every write to these tables.
fn record_levels(t: &Fixture) -> rusqlite::Connection {
    let path = t.address.strip_prefix("sqlite:").unwrap();
    let connection = rusqlite::Connection::open(path).unwrap();
    connection
        .execute_batch("CREATE TABLE levels (name TEXT, level INTEGER)")
        .unwrap();
    for (table, change) in [
        ("urls", "INSERT"),
        ("urls", "DELETE"),
        ("leases", "INSERT"),
        ("documents", "INSERT"),
        ("sources", "INSERT"),
    ] {
        let trigger = format!(
            "CREATE TRIGGER {change}_of_{table} AFTER {change} ON {table} BEGIN
             INSERT INTO levels SELECT '{change} {table}', synchronous FROM pragma_synchronous; END"
        );
        connection.execute_batch(&trigger).unwrap();
    }
    connection
}

#[tokio::test]
async fn what_is_acknowledged_is_synced_on_sqlite() {
    const URL: &str = "https://a.example/";
    let t = Fixture::sqlite().await;
    let levels = record_levels(&t);
    let level = |name: &str| -> Vec<i64> {
        let mut query = levels
            .prepare("SELECT DISTINCT level FROM levels WHERE name = ?1")
            .unwrap();
        let rows = query.query_map([name], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    t.submit(&[URL]).await;
    assert_eq!(level("INSERT urls"), [FULL], "a submit");
    let claim = t.claim_one().await;
    assert_eq!(level("INSERT leases"), [NORMAL], "a lease may be lost");
    let document = NewDocument {
        key: target(URL).key,
        source_id: 0,
        title: "t".to_owned(),
        content_hash: None,
        sketch: None,
        body: "{}".to_owned(),
    };
    let outcome = Outcome::Fetched {
        etag: None,
        last_modified: None,
        content_hash: None,
        document: Some(Box::new(document)),
        again_in: None,
    };
    assert!(t.complete(&claim, outcome).await);
    assert_eq!(level("INSERT documents"), [FULL], "a document");
    t.store.remove(&[id(URL)]).await.unwrap();
    assert_eq!(level("DELETE urls"), [FULL], "a bulk change");
    let source = NewSource {
        name: "paper".to_owned(),
        url: URL.to_owned(),
        kind: "feed".to_owned(),
        priority: 5,
        config: Default::default(),
    };
    t.store.add_source(&source).await.unwrap();
    assert_eq!(level("INSERT sources"), [FULL], "a source");
}
