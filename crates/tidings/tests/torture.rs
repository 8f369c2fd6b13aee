//! Every bad day of `tidings torture` in its small form: processes, databases,
//! networks and indexes fail, and the ledger adds up all the same.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod tidings;

use tidings::Run;

#[test]
fn bad_days_lose_and_double_nothing() {
    let mut run = Run::new(&["torture", "--quick", "--json"]);
    // It starts shells, compilers, databases and network namespaces.
    for name in ["PATH", "TIDINGS_TEST_POSTGRES"] {
        if let Ok(value) = std::env::var(name) {
            run = run.env(name, &value);
        }
    }
    let ended = run.run();
    let report: serde_json::Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", ended.stdout, ended.stderr));
    let lines = report["lines"].as_array().unwrap();
    assert!(lines.len() > 40, "{}", lines.len());
    for line in lines {
        eprintln!(
            "{:>6} s  {} ({}): {}",
            line["seconds"], line["scenario"], line["engine"], line["measured"]
        );
    }
    let broken: Vec<_> = lines.iter().filter(|line| line["pass"] != true).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    assert_eq!((ended.code, report["failed"].as_u64()), (0, Some(0)));
}
