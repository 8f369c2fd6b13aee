//! Every scenario of `tidings-chaos` in its quick form, and the demo on a web with
//! faults: the ledger is consistent all the same. They mostly wait, so they are
//! together.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod binary;

use std::sync::{LazyLock, Mutex};
use std::thread::JoinHandle;

use binary::{Ended, chaos, tidings};
use serde_json::Value;

#[test]
fn fault_scenarios_lose_and_duplicate_nothing() {
    LazyLock::force(&DEMOS);
    let lines = run_scenarios(&[]);
    assert!(lines.len() > 40, "{}", lines.len());
    let failed: Vec<_> = lines.iter().filter(|line| line["pass"] != true).collect();
    // Articles lost or duplicated, politeness violations and SSRF connections are
    // final. Anything else may be the doing of a busy machine: once more, alone.
    let (violations, others): (Vec<_>, Vec<_>) = failed
        .into_iter()
        .partition(|line| line["violation"] == true);
    assert!(violations.is_empty(), "{violations:#?}");
    for line in others {
        let named = ["scenario", "engine"].map(|of| line[of].as_str().unwrap());
        let again = run_scenarios(&["--only", named[1], named[0]]);
        assert_eq!(again.len(), 1, "{named:?}");
        assert!(again[0]["pass"] == true, "{line:#?}, and again: {again:#?}");
    }
}

/// The lines of the report on these scenarios.
fn run_scenarios(which: &[&str]) -> Vec<Value> {
    let ended = chaos(&[&["run", "--quick", "--json"], which].concat());
    let mut report: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", ended.stdout, ended.stderr));
    assert_eq!(ended.code == 0, report["failed"] == 0, "{}", ended.stderr);
    let lines = report["lines"].as_array_mut().map(std::mem::take).unwrap();
    for line in &lines {
        eprintln!(
            "{:>6} s  {} ({}): {}",
            line["seconds"], line["scenario"], line["engine"], line["measured"]
        );
    }
    lines
}

/// All start with the first test that needs one: each of them mostly waits, and
/// there are fewer test threads than tests here.
static DEMOS: LazyLock<Demos> = LazyLock::new(|| Demos {
    plain: Demo::start(&["--sites", "6", "--articles", "5"]),
    // Articles that have moved fail permanently.
    losing: Demo::start(&[
        "--sites",
        "6",
        "--articles",
        "12",
        "--set",
        "net.redirects=0",
    ]),
    // Servers that are busy, that truncate responses, and that close connections.
    faulty: Demo::start(&[
        "--sites",
        "4",
        "--articles",
        "5",
        "--faults",
        "--seed",
        "42",
    ]),
});

struct Demos {
    plain: Demo,
    losing: Demo,
    faulty: Demo,
}

struct Demo(Mutex<Option<JoinHandle<Ended>>>);

impl Demo {
    fn start(args: &'static [&'static str]) -> Self {
        let run = || {
            let always = ["run", "--demo", "--until-done", "--json"];
            let set = [
                "--set",
                "server.bind=127.0.0.1:0",
                "--set",
                "fetch.host_delay_ms=20",
            ];
            tidings(&[&always[..], &set, args].concat())
        };
        Self(Mutex::new(Some(std::thread::spawn(run))))
    }

    /// How it ended; each is for one test.
    fn ended(&self) -> Ended {
        let running = self.0.lock().unwrap().take().unwrap();
        running.join().unwrap()
    }
}

#[test]
fn the_ledger_of_the_demo_is_consistent() {
    let run = DEMOS.plain.ended();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let sum = &ledgers(&run)[0];
    assert!(sum["published"].as_u64().unwrap() > 10, "{sum}");
    assert_consistent(sum);
}

/// The ledgers that were printed, the last first.
fn ledgers(run: &Ended) -> Vec<Value> {
    let lines = run.stdout.lines().rev();
    lines
        .filter_map(|line| {
            serde_json::from_str::<Value>(line)
                .unwrap()
                .get("ledger")
                .cloned()
        })
        .collect()
}

fn assert_consistent(sum: &Value) {
    for none in [
        "pending",
        "lost",
        "duplicated",
        "unknown",
        "politeness_violations",
    ] {
        assert_eq!(sum[none], 0, "{none}: {sum}");
    }
    for all in ["fetched", "delivered"] {
        assert_eq!(sum[all], sum["published"], "{all}: {sum}");
    }
}

#[test]
fn a_demo_that_loses_something_says_so_and_fails() {
    let run = DEMOS.losing.ended();
    let sum = &ledgers(&run)[0];
    assert_eq!(run.code, 1, "{sum}");
    let count = |of: &str| sum[of].as_u64().unwrap();
    assert!(count("lost") > 0, "{sum}");
    assert_eq!(
        count("fetched") + count("lost"),
        count("published"),
        "{sum}"
    );
    assert!(
        run.stderr.contains("the ledger is inconsistent"),
        "{}",
        run.stderr
    );
}

#[test]
fn the_ledger_of_a_demo_with_faults_is_consistent_and_shown_meanwhile() {
    let run = DEMOS.faulty.ended();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let printed = ledgers(&run);
    assert!(
        printed[0]["faults_injected"].as_u64().unwrap() > 0,
        "{}",
        printed[0]
    );
    assert_consistent(&printed[0]);
    // A failed fetch is retried after a minute; meanwhile the article is pending.
    let before = &printed[1..];
    assert!(
        before.iter().any(|sum| sum["pending"].as_u64() > Some(0)),
        "{before:?}"
    );
    for sum in before {
        assert_eq!((&sum["lost"], &sum["duplicated"]), (&0.into(), &0.into()));
    }
}
