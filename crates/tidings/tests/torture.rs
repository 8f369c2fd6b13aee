//! Every bad day of `tidings torture` in its small form, and the demo on a web with
//! faults: the ledger adds up all the same. They mostly wait, so they are together.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod tidings;

use std::sync::{LazyLock, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;
use tidings::{Ended, Run};

#[test]
fn bad_days_lose_and_double_nothing() {
    LazyLock::force(&DEMOS);
    let lines = endured(&[]);
    assert!(lines.len() > 40, "{}", lines.len());
    let broken: Vec<_> = lines.iter().filter(|line| line["pass"] != true).collect();
    // A day that only took too long, on a machine that may be busy, is tried once
    // more, by itself. Whatever is lost, doubled or impolite is so for good.
    let (late, wrong): (Vec<_>, Vec<_>) = broken.into_iter().partition(|line| line["late"] == true);
    assert!(wrong.is_empty(), "{wrong:#?}");
    for line in late {
        let named = ["scenario", "engine"].map(|of| line[of].as_str().unwrap());
        let again = endured(&["--only", named[1], named[0]]);
        assert_eq!(again.len(), 1, "{named:?}");
        assert!(again[0]["pass"] == true, "{line:#?}, and again: {again:#?}");
    }
}

/// The lines of the report on these days.
fn endured(which: &[&str]) -> Vec<Value> {
    let mut run = Run::new(&[&["torture", "--quick", "--json"], which].concat());
    // It starts shells, compilers, databases and network namespaces.
    for name in ["PATH", "TIDINGS_TEST_POSTGRES"] {
        if let Ok(value) = std::env::var(name) {
            run = run.env(name, &value);
        }
    }
    let ended = run.run();
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

/// All begin with the first test that wants one: each of them mostly waits, and
/// there are fewer threads for tests than there are tests here.
static DEMOS: LazyLock<Demos> = LazyLock::new(|| Demos {
    plain: Demo::start(&["--sites", "6", "--articles", "5"]),
    // Articles that have moved are given up.
    losing: Demo::start(&[
        "--sites",
        "6",
        "--articles",
        "12",
        "--set",
        "net.redirects=0",
    ]),
    // Servers that are busy, that break off, and that close without a word.
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
            tidings::tidings(&[&always[..], &set, args].concat())
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
fn the_demo_adds_up() {
    let run = DEMOS.plain.ended();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let sum = &ledgers(&run)[0];
    assert!(sum["published"].as_u64().unwrap() > 10, "{sum}");
    adds_up(sum);
}

/// The sums that were told, the last first.
fn ledgers(run: &Ended) -> Vec<Value> {
    let told = run.stdout.lines().rev();
    told.filter_map(|line| {
        serde_json::from_str::<Value>(line)
            .unwrap()
            .get("ledger")
            .cloned()
    })
    .collect()
}

fn adds_up(sum: &Value) {
    for none in ["to_come", "lost", "duplicated", "unknown", "impolite"] {
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
        run.stderr.contains("the ledger does not add up"),
        "{}",
        run.stderr
    );
}

#[test]
fn the_demo_adds_up_in_spite_of_faults_and_shows_it_meanwhile() {
    let run = DEMOS.faulty.ended();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let told = ledgers(&run);
    assert!(told[0]["faults"].as_u64().unwrap() > 0, "{}", told[0]);
    adds_up(&told[0]);
    // It waits a minute before it asks again; meanwhile what is missing is to come.
    let before = &told[1..];
    assert!(
        before.iter().any(|sum| sum["to_come"].as_u64() > Some(0)),
        "{before:?}"
    );
    for sum in before {
        assert_eq!((&sum["lost"], &sum["duplicated"]), (&0.into(), &0.into()));
    }
}
