//! `tidings-bench all` as a user calls it, at its smallest: every benchmark is
//! measured or named with a reason, and what is written is well-formed.

#![allow(clippy::unwrap_used)]

mod binary;

use std::fs;
use std::path::Path;

use binary::Run;
use quick_xml::events::Event;
use serde_json::Value as Json;

const OURS: [&str; 5] = ["frontier", "fetch", "near", "api", "polling"];
const OF_A_CHECKOUT: [&str; 5] = ["url", "feed", "net", "search", "extract"];

fn sections(report: &Json) -> &[Json] {
    report["sections"].as_array().unwrap()
}

fn runs(section: &Json) -> &[Json] {
    section["runs"].as_array().unwrap()
}

fn is_measured(run: &Json) -> bool {
    !run["measured"].is_null()
}

/// How many elements it has; fails unless it is well-formed and one picture.
fn elements(svg: &str) -> usize {
    let mut reader = quick_xml::Reader::from_str(svg);
    reader.config_mut().check_end_names = true;
    let (mut depth, mut elements) = (0, 0);
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) => {
                start
                    .attributes()
                    .for_each(|attribute| drop(attribute.unwrap()));
                depth += 1;
                elements += 1;
            }
            Event::Empty(empty) => {
                empty
                    .attributes()
                    .for_each(|attribute| drop(attribute.unwrap()));
                elements += 1;
            }
            Event::End(_) => depth -= 1,
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(depth, 0, "{svg}");
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    elements
}

/// The pictures that a page shows, by the way that leads to them.
fn pictures(page: &str) -> Vec<&str> {
    let shown = page.split("](").skip(1);
    let ways = shown.filter_map(|rest| rest.split(')').next());
    ways.filter(|way| way.ends_with(".svg")).collect()
}

#[test]
fn every_benchmark_is_measured_or_named_with_a_reason() {
    let (run, folder) = Run::new(&["all", "--tiny", "--json"]).run();
    assert_eq!(run.code, 0, "{}", run.stderr);
    let out = folder.path().join("tidings-bench");
    let report: Json = serde_json::from_str(&run.stdout).unwrap();
    let kept = fs::read_to_string(out.join("report.json")).unwrap();
    assert_eq!(serde_json::from_str::<Json>(&kept).unwrap(), report);

    let names: Vec<&str> = sections(&report)
        .iter()
        .map(|section| section["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, [OURS, OF_A_CHECKOUT].concat());
    let page = fs::read_to_string(out.join("report.md")).unwrap();
    for section in sections(&report) {
        let is_ours = OURS.contains(&section["name"].as_str().unwrap());
        assert_eq!(runs(section).iter().any(is_measured), is_ours, "{section}");
        assert!(page.contains(&format!("## {}\n", section["title"].as_str().unwrap())));
        for run in runs(section) {
            let command = run["command"].as_str().unwrap();
            assert!(page.contains(&format!("`{command}`")), "{command}");
            if !is_measured(run) {
                let reason = run["left_out"].as_str().unwrap();
                assert!(!reason.is_empty() && page.contains(reason), "{run}");
            }
        }
    }

    let api = &sections(&report)[3]["runs"][1]["measured"];
    assert_eq!(api["streams"][0]["streams"], 2);
    assert!(api["streams"][0]["mib"].is_number(), "{api}");
    let bulk = |n: usize| (&api["bulk"][n]["format"], &api["bulk"][n]["urls"]);
    assert_eq!(bulk(0), (&"JSON lines".into(), &50.into()));
    assert_eq!(bulk(1), (&"CSV".into(), &50.into()));

    let shown = pictures(&page);
    for name in ["frontier-uniform", "fetch", "near", "api-sqlite", "polling"] {
        assert!(shown.contains(&format!("{name}.svg").as_str()), "{shown:?}");
    }
    for picture in &shown {
        let svg = fs::read_to_string(out.join(picture)).unwrap();
        assert!(elements(&svg) > 8, "{svg}");
        assert!(svg.contains("prefers-color-scheme: dark"), "{svg}");
    }

    // It may be shown to everybody.
    let machine = folder.path().display().to_string();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    for text in [&page, &kept] {
        assert!(!text.contains(&machine), "{text}");
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '-');
        let has_host = words.filter(|word| *word == host.trim()).count() > 0;
        assert!(host.trim().len() < 8 || !has_host, "{text}");
    }
}

#[test]
fn a_failed_benchmark_is_reported_and_ends_no_other() {
    let args = ["all", "--tiny", "--only", "near,polling", "--json"];
    // Nothing can be written to a folder that is not there.
    let (run, folder) = Run::new(&args).env("TMPDIR", "/nowhere").run();
    assert_eq!(run.code, 1);
    let report: Json = serde_json::from_str(&run.stdout).unwrap();
    let [near, polling] = sections(&report) else {
        panic!("{report}");
    };
    let reason = runs(near)[0]["failed"].as_str().unwrap();
    assert!(
        reason.starts_with("no temporary folder; because: "),
        "{reason}"
    );
    assert!(!reason.contains("/nowhere"), "{reason}");
    assert!(is_measured(&runs(polling)[0]));
    let page = fs::read_to_string(folder.path().join("tidings-bench/report.md")).unwrap();
    assert!(page.contains(&format!("**failed**: {reason}")), "{page}");
    assert!(
        run.stderr.contains("near, SQLite: failed: "),
        "{}",
        run.stderr
    );
}

#[test]
fn the_page_may_lie_above_its_pictures() {
    let all = ["all", "--tiny", "--only", "polling"];
    let args = |more: &[&'static str]| [&all[..], more].concat();
    let there = args(&["--out", "docs/benchmarks", "--page", "docs/BENCHMARKS.md"]);
    let (run, folder) = Run::new(&there).run();
    assert_eq!((run.code, run.stdout.as_str()), (0, "docs/BENCHMARKS.md\n"));
    let docs = folder.path().join("docs");
    let page = fs::read_to_string(docs.join("BENCHMARKS.md")).unwrap();
    assert_eq!(pictures(&page), ["benchmarks/polling.svg"]);
    assert!(docs.join("benchmarks/polling.svg").exists());
    assert!(!Path::new(&docs.join("benchmarks/report.md")).exists());

    let elsewhere = args(&["--out", "here", "--page", "docs/BENCHMARKS.md"]);
    let run = Run::new(&elsewhere).run().0;
    assert_eq!(run.code, 1);
    assert!(
        run.stderr
            .starts_with("error: here does not lie beside or below docs/BENCHMARKS.md"),
        "{}",
        run.stderr
    );
    let unknown = Run::new(&["all", "--only", "nothing"]).run().0;
    assert_eq!(unknown.code, 2);
}

#[test]
fn the_benchmark_measures_and_reports() {
    let args = [
        "frontier",
        "--engine",
        "sqlite",
        "--sizes",
        "500",
        "--workers",
        "2",
        "--seconds",
        "1",
        "--json",
    ];
    let ended = Run::new(&args).run().0;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let report: Json = serde_json::from_str(&ended.stdout).unwrap();
    let figures = report["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 5);
    assert!(
        figures
            .iter()
            .all(|figure| figure["per_second"].as_f64().unwrap() > 0.0)
    );
    assert!(
        figures
            .iter()
            .all(|figure| figure["violations"].as_u64().unwrap_or(0) == 0)
    );
}

#[test]
fn the_benchmark_of_copies_finds_them() {
    let args = [
        "near",
        "--engine",
        "sqlite",
        "--documents",
        "500",
        "--lookups",
        "200",
        "--json",
    ];
    let ended = Run::new(&args).run().0;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let report: Json = serde_json::from_str(&ended.stdout).unwrap();
    let figure = &report["figures"][0];
    assert!(figure["found"].as_f64().unwrap() > 0.9, "{figure}");
    assert!(figure["mistaken"].as_f64().unwrap() < 0.05, "{figure}");
    assert!(figure["bytes_per_document"].as_u64().unwrap() > 500);
}
