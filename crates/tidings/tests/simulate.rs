//! `tidings simulate` as a user calls it: the table, the chart, the JSON, and the
//! error of an invalid trace.

#![allow(clippy::unwrap_used)]

mod tidings;

use tidings::{Run, tidings};

const SMALL: [&str; 6] = ["simulate", "polling", "--feeds", "20", "--days", "6"];

fn small(args: &[&str]) -> Vec<String> {
    let all = SMALL.iter().chain(args);
    all.map(|arg| (*arg).to_owned()).collect()
}

/// The output without its figures, which may differ in the last digit from one
/// machine's logarithms to another's.
fn shape(stdout: &str) -> String {
    let word = |word: &str| {
        if word.chars().all(|c| c.is_ascii_digit() || c == '.') {
            "N".to_owned()
        } else if word.contains('█') {
            "▁▄█".to_owned()
        } else {
            word.to_owned()
        }
    };
    let line = |line: &str| {
        line.split_whitespace()
            .map(word)
            .collect::<Vec<_>>()
            .join(" ")
    };
    stdout.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn polling_prints_a_table_and_a_chart() {
    let run = tidings(&SMALL);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(shape(&run.stdout));
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let figures = |seed: &str| {
        let args = small(&["--seed", seed, "--json"]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        tidings(&args).stdout
    };
    assert_eq!(figures("3"), figures("3"));
    assert_ne!(figures("3"), figures("4"));
    let comparison: serde_json::Value = serde_json::from_str(&figures("3")).unwrap();
    let rows = comparison["rows"].as_array().unwrap();
    let names: Vec<_> = rows
        .iter()
        .map(|row| row["policy"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["fixed", "adaptive", "doubling", "adaptive"]);
    for row in rows {
        for field in [
            "requests",
            "lost",
            "mean_minutes",
            "p50_minutes",
            "p90_minutes",
            "p99_minutes",
        ] {
            assert!(row[field].is_number(), "{field}");
        }
    }
}

#[test]
fn one_policy_can_be_selected() {
    for (policy, rows) in [
        ("fixed", 1),
        ("doubling", 1),
        ("adaptive", 1),
        ("doubling,adaptive", 2),
    ] {
        let args = small(&["--json", "--policy", policy]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let run = tidings(&args);
        let comparison: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(
            comparison["rows"].as_array().unwrap().len(),
            rows,
            "{policy}"
        );
    }
}

/// Two feeds over nine days: one item per hour, and one per day.
fn trace() -> String {
    let start = 1_767_571_200;
    let line = |feed: &str, at: i64| format!("{{\"feed\": \"{feed}\", \"published\": {at}}}\n");
    let hourly = (0..9 * 24).map(|hour| line("busy", start + hour * 3600 + 600));
    let daily = (0..9).map(|day| line("quiet", start + day * 86_400 + 40_000));
    hourly.chain(daily).collect()
}

#[test]
fn a_trace_is_simulated_and_drawn() {
    let args = [
        "simulate",
        "polling",
        "--trace",
        "items.jsonl",
        "--svg",
        "delays.svg",
        "--json",
    ];
    let (run, folder) = Run::new(&args).file("items.jsonl", &trace()).run_keeping();
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let comparison: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (&comparison["world"], &comparison["feeds"]),
        (&"trace".into(), &2.into())
    );
    assert_eq!(comparison["rows"][0]["items"], 6 * 24 + 6);
    let svg = std::fs::read_to_string(folder.path().join("delays.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("<polyline").count(), 4);
}

#[test]
fn an_invalid_trace_is_named_with_its_line() {
    let args = ["simulate", "polling", "--trace", "items.jsonl"];
    let run = Run::new(&args)
        .file("items.jsonl", "{\"feed\": 1, \"published\": \"soon\"}\n")
        .run();
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stderr, @r#"
    error: invalid trace items.jsonl
      because: line 1: "soon" is no time; a line is expected to be like {"feed": "bbc", "published": "2026-01-05T09:00:00Z"}
    "#);
    let run = tidings(&args);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.contains("the trace items.jsonl can't be read"),
        "{}",
        run.stderr
    );
    assert_eq!(tidings(&["simulate", "polling", "--feeds", "0"]).code, 2);
    assert_eq!(
        tidings(&["simulate", "polling", "--policy", "best"]).code,
        2
    );
}
