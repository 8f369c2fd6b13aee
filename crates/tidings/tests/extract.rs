//! `tidings extract` as a user calls it: pages in, lines of JSON out.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::io::Write as _;

use tidings::{Run, tidings};

const STORY: &str = "<!doctype html><html lang=en><head><title>Council votes to rebuild the bridge | The Daily</title>
<meta property='article:published_time' content='2026-03-02T18:30:00Z'><meta name=author content='Ines Okafor'></head>
<body><nav><a href=/>Home</a></nav><article><h1>Council votes to rebuild the bridge</h1>
<p>After eleven years of debate, the council voted on Monday to tear down the old bridge and to build a new one.</p>
<h2>What changes</h2><ul><li>Buses stop at the northern crossing.</li></ul>
<p>The bridge will close in May and reopen two years later, when the trains run again.</p></article></body></html>";

/// Timings differ on every run.
fn without_times(lines: &str) -> String {
    let rows = lines.lines().map(|line| {
        let mut row: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(row["ms"].as_f64().unwrap() >= 0.0);
        row.as_object_mut().unwrap().remove("ms");
        serde_json::to_string_pretty(&row).unwrap()
    });
    rows.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_page_becomes_a_line_of_json() {
    let run = Run::new(&[
        "extract",
        "story.html",
        "--url",
        "https://daily.example/bridge",
        "--markdown",
    ])
    .file("story.html", STORY)
    .run();
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(without_times(&run.stdout));
}

#[test]
fn a_folder_becomes_a_line_per_page_in_order() {
    let run = Run::new(&["extract", ".", "--urls", "urls.txt", "--threads", "3"]);
    let folder = run.folder().join("more");
    std::fs::create_dir(&folder).unwrap();
    let mut packed = flate2::write::GzEncoder::new(
        std::fs::File::create(folder.join("c.html.gz")).unwrap(),
        flate2::Compression::fast(),
    );
    packed.write_all(STORY.as_bytes()).unwrap();
    packed.finish().unwrap();
    let run = run
        .file("a.html", STORY)
        .file("b.htm", "")
        .file("notes.txt", "not a page")
        .file(
            "urls.txt",
            "{\"id\": \"c\", \"url\": \"https://daily.example/2026/03/02/bridge\"}\n",
        )
        .run();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let rows: Vec<serde_json::Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<_> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(rows[0]["text"], rows[2]["text"]);
    assert_eq!(
        (rows[1]["text"].as_str(), rows[1]["method"].as_str()),
        (Some(""), Some("nothing"))
    );
}

#[test]
fn explain_shows_the_verdict_of_each_block() {
    let run = Run::new(&["extract", "story.html", "--explain"])
        .file("story.html", STORY)
        .run();
    let row: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let verdicts: Vec<_> = row["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| {
            format!(
                "{}: {}",
                block["verdict"].as_str().unwrap(),
                block["text"].as_str().unwrap()
            )
        })
        .collect();
    insta::assert_snapshot!(verdicts.join("\n"));
}

#[test]
fn a_path_without_pages_is_named() {
    let run = tidings(&["extract", "nowhere.html"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(
        run.stderr.contains("nowhere.html can't be read"),
        "{}",
        run.stderr
    );
    let run = tidings(&["extract", "."]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.stderr);
    // A page that can't be decompressed is a line too, and does not stop the others.
    let run = Run::new(&["extract", "."])
        .file("a.html", STORY)
        .file("b.html.gz", "not packed")
        .run();
    assert_eq!((run.code, run.stdout.lines().count()), (1, 2));
    assert!(
        run.stdout
            .lines()
            .nth(1)
            .unwrap()
            .contains("b.html.gz can't be read"),
        "{}",
        run.stdout
    );
}
