//! The frontier's commands as a user calls them, on both engines.

#![allow(clippy::unwrap_used)]

mod tidings;

use serde_json::Value;
use tidings::{Ended, Run};

/// A store that outlives single calls of the binary.
struct Place {
    address: String,
    _folder: Option<tempfile::TempDir>,
}

fn places() -> [Place; 2] {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = format!(
        "sqlite:{}",
        folder.path().join("deep/er/tidings.db").display()
    );
    [
        Place {
            address: sqlite,
            _folder: Some(folder),
        },
        Place {
            address: tidings_sim::postgres_database().unwrap(),
            _folder: None,
        },
    ]
}

impl Place {
    fn call(&self, args: &[&str], stdin: &str) -> Ended {
        Run::new(args)
            .env("TIDINGS_STORE", &self.address)
            .stdin(stdin)
            .run()
    }

    fn ok(&self, args: &[&str]) -> String {
        let ended = self.call(args, "");
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.stderr);
        ended.stdout
    }

    fn json(&self, args: &[&str]) -> Vec<Value> {
        let all = [args, &["--json"]].concat();
        self.ok(&all)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

#[test]
fn urls_are_added_listed_retried_and_removed() {
    for place in places() {
        let added = place.ok(&[
            "frontier",
            "add",
            "https://a.example/1",
            "https://a.example/2",
            "https://b.example/1",
        ]);
        assert_eq!(added, "3 new, 0 raised, 0 known, 0 invalid\n");
        let again = place.ok(&[
            "frontier",
            "add",
            "--priority",
            "9",
            "http://A.example/1?utm_source=x",
        ]);
        assert_eq!(again, "0 new, 1 raised, 0 known, 0 invalid\n");

        let stats = place.ok(&["frontier", "stats"]);
        assert!(stats.starts_with("pending   3\nfetching  0\n"), "{stats}");
        assert_eq!(
            place.json(&["frontier", "stats"])[0]["by_status"]["pending"],
            3
        );
        assert!(
            place
                .ok(&["frontier", "stats", "--by", "origin"])
                .contains("manual")
        );

        assert_eq!(
            place.json(&["frontier", "stats", "--host", "A.example"])[0]["by_status"]["pending"],
            2
        );

        let rows = place.json(&["frontier", "ls", "--host", "a.example"]);
        assert_eq!(rows.len(), 2);
        let raised = rows
            .iter()
            .find(|row| row["url"] == "https://a.example/1")
            .unwrap();
        assert_eq!(
            (&raised["priority"], &raised["status"]),
            (&Value::from(9), &Value::from("pending"))
        );
        let page = place.ok(&["frontier", "ls", "--sort", "priority", "--limit", "2"]);
        let next = page
            .lines()
            .last()
            .unwrap()
            .strip_prefix("… more: add --after ")
            .unwrap()
            .to_owned();
        assert!(page.starts_with("pending  p9"), "{page}");
        let rest = place.json(&["frontier", "ls", "--sort", "priority", "--after", &next]);
        assert_eq!(rest.len(), 1);
        assert_eq!(place.json(&["frontier", "ls", "--all"]).len(), 3);

        let preview = place.ok(&["frontier", "rm", "--host", "a.example", "--dry-run"]);
        assert_eq!(preview, "2 would be removed\n");
        assert_eq!(
            place.json(&["frontier", "rm", "--host", "a.example"])[0]["changed"],
            2
        );
        assert_eq!(
            place.ok(&["frontier", "retry", "https://b.example/1"]),
            "1 requeued\n"
        );
        assert_eq!(place.ok(&["frontier", "rm", "--all"]), "1 removed\n");
        assert_eq!(
            place.json(&["frontier", "stats"])[0]["by_status"]["pending"],
            0
        );
    }
}

#[test]
fn invalid_urls_are_named_and_the_others_are_stored() {
    for place in places() {
        let input = "https://a.example/1\n\nftp://a.example/\nhttps://a.example/2\n";
        let ended = place.call(&["frontier", "add", "-"], input);
        assert_eq!(ended.code, 1);
        assert!(
            ended
                .stdout
                .contains("URL \"ftp://a.example/\" is refused: only http and https"),
            "{}",
            ended.stdout
        );
        assert!(
            ended
                .stdout
                .ends_with("2 new, 0 raised, 0 known, 1 invalid\n"),
            "{}",
            ended.stdout
        );
        let ended = place.call(&["frontier", "add", "--json", "-"], input);
        let verdicts: Vec<Value> = ended
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let words: Vec<_> = verdicts
            .iter()
            .map(|line| line["verdict"].as_str().unwrap())
            .collect();
        assert_eq!(words, ["known", "invalid", "known"]);
    }
}

#[test]
fn explain_shows_the_history() {
    for place in places() {
        place.ok(&["frontier", "add", "https://a.example/1"]);
        place.ok(&["frontier", "retry", "https://a.example/1"]);
        let history = place.ok(&["explain", "https://a.example/1"]);
        assert!(history.contains("status      pending"), "{history}");
        let kinds: Vec<_> = history
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1))
            .collect();
        assert!(
            kinds.contains(&"discovered") && kinds.contains(&"retried"),
            "{history}"
        );
        assert_eq!(
            place.json(&["explain", "https://a.example/1"])[0]["events"][1]["kind"],
            "retried"
        );
        let unknown = place.call(&["explain", "https://b.example/"], "");
        assert_eq!(unknown.code, 1);
        assert!(
            unknown.stderr.contains("was never submitted; add it with"),
            "{}",
            unknown.stderr
        );
    }
}

#[test]
fn a_bulk_change_needs_a_selection() {
    for place in places() {
        let ended = place.call(&["frontier", "rm"], "");
        assert_eq!(ended.code, 1);
        assert!(
            ended
                .stderr
                .contains("nothing selected: give URLs, a filter such as --status dead, or --all"),
            "{}",
            ended.stderr
        );
        let ended = place.call(&["frontier", "rm", "https://nowhere.example/"], "");
        assert!(
            ended
                .stderr
                .contains("https://nowhere.example/ is not in the frontier"),
            "{}",
            ended.stderr
        );
        let ended = place.call(&["frontier", "ls", "--status", "lost"], "");
        assert_eq!(ended.code, 2);
        assert!(
            ended
                .stderr
                .contains("not one of pending, fetching, fetched, failed, dead"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn a_store_is_migrated_there_and_back() {
    let [sqlite, postgres] = places();
    let urls: String = (0..1500)
        .map(|n| format!("https://h{}.example/{n}\n", n % 50))
        .collect();
    assert_eq!(sqlite.call(&["frontier", "add", "-"], &urls).code, 0);
    let moved = sqlite.ok(&[
        "migrate-store",
        "--from",
        &sqlite.address,
        "--to",
        &postgres.address,
    ]);
    assert!(moved.contains("counts and checksums agree"), "{moved}");
    assert_eq!(
        postgres.json(&["frontier", "stats"])[0]["by_status"]["pending"],
        1500
    );
    let [back, _] = places();
    let report = &back.json(&[
        "migrate-store",
        "--from",
        &postgres.address,
        "--to",
        &back.address,
    ])[0];
    assert_eq!(
        (&report["tables"]["urls"], &report["verified"]),
        (&Value::from(1500), &Value::from(true))
    );
    let nowhere = back.call(
        &[
            "migrate-store",
            "--from",
            "sqlite:nowhere.db",
            "--to",
            &back.address,
        ],
        "",
    );
    assert!(
        nowhere.stderr.contains("nowhere.db does not exist"),
        "{}",
        nowhere.stderr
    );
}

#[test]
fn the_embedded_store_is_the_default_and_bad_addresses_are_explained() {
    let run = Run::new(&["frontier", "add", "https://a.example/"]);
    let folder = run.folder().to_owned();
    let kept = run.run_keeping();
    assert_eq!(kept.0.code, 0, "{}", kept.0.stderr);
    assert!(folder.join("tidings-data/tidings.db").exists());

    let ended = Run::new(&["frontier", "stats", "--store", "mysql://db"]).run();
    assert_eq!(ended.code, 78);
    assert!(
        ended.stderr.contains("use sqlite:FILE or postgres://"),
        "{}",
        ended.stderr
    );
    let ended = Run::new(&[
        "frontier",
        "stats",
        "--store",
        "postgres://nobody:pw@127.0.0.1:1/x",
    ])
    .run();
    assert_eq!(ended.code, 1);
    assert!(
        ended.stderr.contains("store unavailable") && !ended.stderr.contains("pw"),
        "{}",
        ended.stderr
    );
}
