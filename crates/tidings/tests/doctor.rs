//! `tidings doctor` as a user calls it: a store without any running process, on
//! both engines, and a machine without a store.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use serde_json::{Value, json};
use tidings::{Ended, Run, tidings};
use tidings_store::{
    Claim, ClaimRequest, Completion, DeliveryVerdict, NewDocument, NewSource, Origin, Outcome,
    Store, StoreOptions, Submission, Target,
};
use tidings_url::{FetchUrl, ProxyHosts, Rules};

const MINUTE: Duration = Duration::from_secs(60);

fn target(url: &str) -> Target {
    let url = FetchUrl::parse(url).unwrap();
    Target {
        key: url.canonical(&Rules::default()).key(),
        host: url.host_key(&ProxyHosts::default()),
        url,
    }
}

/// A store without a process for hours: an overdue URL, a quarantined page, a
/// pending delivery, a dead letter, an overdue feed, a source without a feed.
async fn create_idle_store(address: &str) {
    let hours_ago = jiff::Timestamp::now().as_millisecond() - 7 * 1_800_000;
    let clock = Arc::new(AtomicI64::new(hours_ago));
    let options = StoreOptions::default().with_manual_clock(clock);
    let store = Store::open(address, &options).await.unwrap();
    store.register_sink("search", false).await.unwrap();
    let urls = ["late", "poison", "exhausted", "stored", "refused"]
        .map(|name| target(&format!("https://{name}.example/")));
    let submissions = urls.map(|target| Submission::new(target, Origin::Manual));
    store.submit(&submissions).await.unwrap();
    let claimed = store.claim(&ClaimRequest::new(1, 5)).await.unwrap();
    let completions: Vec<_> = claimed
        .claims
        .iter()
        .map(|claim| Completion::new(claim.lease_token, outcome(claim)))
        .collect();
    store.complete(&completions).await.unwrap();

    let deliveries = store
        .claim_deliveries("search", 2, u64::MAX, MINUTE)
        .await
        .unwrap();
    let refused = DeliveryVerdict::Dead {
        reason: "it is too long".to_owned(),
    };
    let later = DeliveryVerdict::Retry {
        error: "busy".to_owned(),
        after: MINUTE,
    };
    let verdicts = [
        (deliveries[0].clone(), refused),
        (deliveries[1].clone(), later),
    ];
    store
        .complete_deliveries("search", &verdicts)
        .await
        .unwrap();

    for name in ["paper", "empty"] {
        let new = NewSource {
            name: name.to_owned(),
            url: format!("https://{name}.example/"),
            kind: "feed".to_owned(),
            priority: 5,
            config: json!({}),
        };
        let source = store.add_source(&new).await.unwrap();
        if name == "paper" {
            let url = "https://paper.example/feed";
            store.add_feed(source.source_id, "feed", url).await.unwrap();
        }
    }
}

fn outcome(claim: &Claim) -> Outcome {
    let dead = |reason: &str| Outcome::Dead {
        reason: reason.to_owned(),
        error: None,
    };
    match claim.url.host() {
        "late.example" => Outcome::Released,
        "poison.example" => dead("quarantined"),
        "exhausted.example" => dead("max_retries"),
        host => Outcome::Fetched {
            etag: None,
            last_modified: None,
            content_hash: None,
            document: Some(Box::new(NewDocument {
                key: claim.key,
                source_id: 0,
                title: host.to_owned(),
                content_hash: None,
                sketch: None,
                body: json!({ "id": claim.key.to_string(), "title": host }).to_string(),
            })),
            again_in: None,
        },
    }
}

fn doctor(address: &str) -> Ended {
    Run::new(&["doctor", "--json", "--store", address]).run()
}

fn findings(ended: &Ended) -> Vec<Value> {
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["ok"], ended.code == 0, "{report}");
    report["findings"].as_array().unwrap().clone()
}

/// The command that a finding begins its advice with, without what follows it.
fn command(next: &str) -> Option<Vec<&str>> {
    let words = next.split(" (").next()?.split(", ").next()?;
    let words = words.strip_prefix("tidings ")?;
    Some(words.split(' ').collect())
}

async fn every_problem_is_found(address: &str) {
    create_idle_store(address).await;
    let ended = doctor(address);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let found = findings(&ended);
    for (severity, what) in [
        (
            "error",
            "1 host ready and not claimed, the oldest (late.example) for 3 h",
        ),
        (
            "error",
            "1 URL quarantined, such as https://poison.example/",
        ),
        ("error", "1 feed overdue, the oldest for 3 h"),
        (
            "error",
            "1 source is without a feed, sitemap or page to poll, such as empty",
        ),
        (
            "error",
            "not claimed: 1 document pending for search, the oldest for 3 h",
        ),
        (
            "error",
            "1 document in the dead letters of search, the latest because: it is too long",
        ),
        ("warning", "2 of 5 URLs failed permanently: 1 max_retries"),
        ("warning", "net.contact is not set"),
        ("ok", "has schema version"),
    ] {
        let is_match = |finding: &&Value| finding["what"].as_str().unwrap().contains(what);
        let finding = found.iter().find(is_match);
        let finding = finding.unwrap_or_else(|| panic!("{what}: {found:#?}"));
        assert_eq!(finding["severity"], severity, "{what}");
        assert_eq!(finding["next"].is_string(), severity != "ok", "{what}");
    }
    let severities: Vec<_> = found.iter().map(|finding| &finding["severity"]).collect();
    assert!(
        severities.is_sorted_by_key(|severity| ["error", "warning", "ok"]
            .iter()
            .position(|known| severity == known)),
        "the most severe first: {severities:?}"
    );
    for finding in &found {
        let Some(mut args) = finding["next"].as_str().and_then(command) else {
            continue;
        };
        args.push("--help");
        assert_eq!(tidings(&args).code, 0, "{finding}");
    }
}

#[tokio::test]
async fn an_embedded_store_without_any_running_process() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    every_problem_is_found(&address).await;
}

#[tokio::test]
async fn a_shared_store_without_any_running_process() {
    every_problem_is_found(&tidings_sim::postgres_database().unwrap()).await;
}

#[test]
fn a_new_machine_gets_the_first_steps() {
    let (ended, folder) = Run::new(&["doctor"]).run_keeping();
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(
        ended.stdout.contains("store: it does not exist yet"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("→ tidings run\n"), "{}", ended.stdout);
    let created = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(created, 0, "a doctor creates nothing");
    let quiet = tidings(&["doctor", "--quiet", "--set", "net.contact=me@us.example"]);
    assert!(
        !quiet.stdout.lines().any(|line| line.starts_with("ok ")),
        "{}",
        quiet.stdout
    );
    assert!(!quiet.stdout.contains("net.contact"), "{}", quiet.stdout);
}

#[test]
fn a_store_that_can_not_be_opened_is_an_error() {
    let ended = doctor("postgres://nobody@127.0.0.1:9/none");
    assert_eq!(ended.code, 1);
    let found = findings(&ended);
    assert_eq!(
        (&found[0]["severity"], &found[0]["next"]),
        (&json!("error"), &json!("tidings check"))
    );
}

#[tokio::test]
async fn an_older_store_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let older = StoreOptions::default().at_schema_version(4);
    drop(Store::open(&address, &older).await.unwrap());
    let ended = doctor(&address);
    assert_eq!(ended.code, 0, "{}", ended.stdout);
    let what = findings(&ended)[0]["what"].as_str().unwrap().to_owned();
    assert!(
        what.starts_with("it has schema version 4, and this program"),
        "{what}"
    );
    let checked = Run::new(&["check", "--json", "--store", &address]).run();
    assert!(
        checked
            .stdout
            .contains("it has schema version 4; the first start migrates it to"),
        "{}",
        checked.stdout
    );
    assert_eq!(Store::schema_version(&address).await.unwrap(), Some(4));
}
