//! schemathesis reads the OpenAPI document and fuzzes every operation. Requires a
//! Python with schemathesis (`scripts/test` installs one).

use std::process::Command;

use crate::fixture::{ADMIN, Served};

/// Streams never end, which it cannot know.
const ENDLESS: &str = "stream$|/events$";
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance";

#[tokio::test(flavor = "multi_thread")]
async fn schemathesis_finds_no_server_error_and_no_response_that_breaks_its_schema() {
    let Some(python) = std::env::var_os("TIDINGS_TEST_PYTHON") else {
        eprintln!("skipped: TIDINGS_TEST_PYTHON is not set; scripts/test sets it");
        return;
    };
    let has_it = Command::new(&python)
        .args(["-c", "import schemathesis"])
        .output();
    if !has_it.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {} has no schemathesis", python.display());
        return;
    }
    // The other tests are on SQLite.
    let (served, _) = Served::start_on_postgres().await;
    served.fetched("https://a.example/story", "A story").await;
    served.submitted("https://b.example/waits").await;
    served.with_dead_letter("index", "refused").await;
    let document = format!("http://{}/api/v1/openapi.json", served.address);
    // It writes its cache into the working directory.
    let folder = tempfile::tempdir().unwrap();
    let run = tokio::task::spawn_blocking(move || {
        Command::new(python)
            .current_dir(folder.path())
            .args(["-m", "schemathesis.cli", "run", &document])
            .args(["--header", &format!("Authorization: Bearer {ADMIN}")])
            .args(["--checks", CHECKS, "--exclude-path-regex", ENDLESS])
            .args([
                "--phases",
                "examples,coverage,fuzzing",
                "--max-examples",
                "5",
            ])
            .args(["--seed", "7", "--generation-database", "none", "--no-color"])
            .args(["--request-timeout", "30", "--warnings", "off"])
            .output()
    });
    let run = run.await.unwrap().unwrap();
    let output = String::from_utf8_lossy(&run.stdout);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{output}\n{errors}");
    // A run without requests finds nothing.
    let tested = output
        .lines()
        .find_map(|line| line.trim().strip_prefix("Tested: "));
    let tested: usize = tested
        .unwrap_or_else(|| panic!("{output}"))
        .parse()
        .unwrap();
    assert!(tested >= 45, "{output}");
}
