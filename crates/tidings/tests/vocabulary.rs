//! The words of docs/GLOSSARY.md are used everywhere: a list of banned phrases is
//! checked in the docs, every help page, the table of routes, and all strings and
//! comments of the sources (labels, log messages and errors are among them).

#![allow(clippy::unwrap_used)]

#[path = "vocabulary/literals.rs"]
mod literals;
mod tidings;

use std::path::{Path, PathBuf};

use literals::prose_of;

/// What is banned, and what is said instead.
const BANNED: &[(&str, &str)] = &[
    ("manners", "politeness"),
    ("the one door", "the HTTP client, the request guard"),
    ("the door", "the HTTP client, the request guard"),
    ("behind the door", "behind the request guard"),
    ("bad day", "fault scenario"),
    ("bad days", "fault scenarios"),
    ("torture", "chaos tests"),
    ("the books", "counters, ledger"),
    ("the books add up", "the counters are consistent"),
    ("needs a person", "Problems"),
    ("all is well", "No problems"),
    ("what waits", "backlog"),
    ("oldest that is due", "oldest overdue URL"),
    ("failed and dead", "retrying, failed permanently"),
    ("found in all", "total"),
    ("where it stands", "status"),
    ("another name of this page", "redirects to"),
    ("bring a list", "import"),
    ("last news", "last new item"),
    ("behind commas", "comma separated"),
    ("found by itself", "auto-detected"),
    ("how it is asked", "politeness"),
    ("how a host may be asked", "host limits"),
    ("leave it alone", "block host"),
    ("ask it again", "unblock"),
    ("also told by", "near-duplicates"),
    ("tellings", "near-duplicates"),
    ("same text as", "duplicate of"),
    ("no sink waits for it", "delivered to all sinks"),
    ("what the policy has learned", "polling model"),
    ("send again", "replay"),
    ("behind by", "lag"),
    ("let through", "allowed"),
    ("nothing at this address", "not found"),
    ("did not answer as hoped", "the actual reason"),
    ("take a url out", "delete URL"),
    ("go on with a source", "resume source"),
    ("ask sources for news", "poll sources"),
    ("asks for news", "polls"),
    ("bring the store to another version", "migrate the schema"),
    ("make anew", "rebuild"),
    ("made anew", "rebuilt"),
    ("worth knowing", "warning"),
    ("faults met", "faults injected"),
    ("given up", "failed permanently"),
    ("impolite", "politeness violations"),
    ("our own fault", "store unavailable, …"),
    ("our own faults", "errors of this process"),
    ("broke off", "panicked, closed the connection"),
    ("nothing can be claimed", "store unavailable"),
    ("so many", "N"),
    ("a turn at", "a host permit"),
    ("its turn", "its permit"),
    ("turns at", "host permits"),
    ("host turn", "host permit"),
    ("host turns", "host permits"),
    ("under way", "in flight"),
    ("strangers", "untrusted, external"),
    ("the dice", "the random numbers"),
    ("accuse", "blame for a crash"),
    ("accused", "blamed for a crash"),
    ("what speaks against", "crash count"),
    ("carried along", "shifted"),
    ("leaps ahead", "jumps ahead"),
    ("clock leap", "clock jump"),
    ("put to rest", "cooldown"),
    ("at_once", "concurrency"),
    ("source fire", "source poll"),
    ("source wake", "source resume"),
    ("fetch.cores", "extract.threads"),
    ("outbox.bound", "outbox.max_pending"),
    ("tidings bench", "tidings-bench"),
    ("tidings torture", "tidings-chaos"),
];

/// Rates are "per day", not "a day".
const RATE_UNITS: &[&str] = &["second", "minute", "hour", "day", "week"];
const COUNTED: &[&str] = &[
    "items",
    "requests",
    "pages",
    "urls",
    "articles",
    "documents",
    "polls",
    "times",
    "bytes",
    "events",
    "claims",
    "visits",
    "stories",
    "rows",
    "keys",
    "feeds",
    "tries",
    "once",
    "fetched",
];

/// The banned phrases of a text, with what to say instead.
fn violations(text: &str) -> Vec<String> {
    let words = normalized(text);
    let mut found = Vec::new();
    for (phrase, instead) in BANNED {
        if words.contains(&format!(" {} ", normalized(phrase).trim())) {
            found.push(format!("\"{phrase}\": say {instead}"));
        }
    }
    for unit in RATE_UNITS {
        for counted in COUNTED {
            if words.contains(&format!(" {counted} a {unit} ")) {
                found.push(format!("\"{counted} a {unit}\": say {counted} per {unit}"));
            }
        }
    }
    found
}

/// Lower case words between single blanks, with a blank at both ends.
fn normalized(text: &str) -> String {
    let mut out = String::from(" ");
    for word in text
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '\'' | '.' | '-')))
        .map(|word| word.trim_matches(|c| matches!(c, '.' | '\'' | '-')))
        .filter(|word| !word.is_empty())
    {
        out.push_str(&word.to_lowercase());
        out.push(' ');
    }
    out
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files with an extension below a folder, without what is built.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().is_none_or(|name| name != "target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn check(problems: &mut Vec<String>, place: &str, text: &str) {
    for (number, line) in text.lines().enumerate() {
        for found in violations(line) {
            problems.push(format!("{place}:{}: {found}", number + 1));
        }
    }
}

fn assert_none(problems: &[String]) {
    assert!(
        problems.is_empty(),
        "{} places use banned words (docs/GLOSSARY.md):\n{}",
        problems.len(),
        problems.join("\n")
    );
}

#[test]
fn docs_use_the_words_of_the_glossary() {
    let mut problems = Vec::new();
    let mut pages = files(&root().join("docs"), "md");
    for name in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        pages.push(root().join(name));
    }
    assert!(pages.len() > 10);
    for page in pages {
        // It lists the old words.
        if page.ends_with("docs/GLOSSARY.md") {
            continue;
        }
        let text = std::fs::read_to_string(&page).unwrap();
        check(&mut problems, &page.display().to_string(), &text);
    }
    assert_none(&problems);
}

/// The help of a command and of all commands below it.
fn help_pages(command: &[String], problems: &mut Vec<String>) -> usize {
    let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
    arguments.push("--help");
    let help = tidings::tidings(&arguments).stdout;
    check(problems, &format!("tidings {}", arguments.join(" ")), &help);
    let below = help
        .split("Commands:\n")
        .nth(1)
        .map(|part| part.split("\n\n").next().unwrap())
        .unwrap_or_default();
    let mut pages = 1;
    for line in below.lines() {
        let Some(name) = line
            .strip_prefix("  ")
            .and_then(|line| line.split(' ').next())
        else {
            continue;
        };
        if !name.is_empty() && name != "help" {
            let mut deeper = command.to_vec();
            deeper.push(name.to_owned());
            pages += help_pages(&deeper, problems);
        }
    }
    pages
}

#[test]
fn every_help_page_uses_the_words_of_the_glossary() {
    let mut problems = Vec::new();
    let pages = help_pages(&[], &mut problems);
    assert!(pages > 40, "{pages}");
    assert_none(&problems);
}

#[test]
fn the_table_of_routes_uses_the_words_of_the_glossary() {
    let mut problems = Vec::new();
    let routes = tidings_server::described_routes();
    assert!(routes.len() > 50);
    for route in routes {
        assert!(!route.summary.is_empty(), "{}", route.path);
        check(&mut problems, route.path, route.summary);
    }
    assert_none(&problems);
}

#[test]
fn strings_and_comments_of_the_sources_use_the_words_of_the_glossary() {
    let mut problems = Vec::new();
    let sources: Vec<PathBuf> = files(&root().join("crates"), "rs")
        .into_iter()
        .filter(|path| path.components().any(|part| part.as_os_str() == "src"))
        .collect();
    assert!(sources.len() > 300);
    for path in sources {
        let code = std::fs::read_to_string(&path).unwrap();
        for (line, text) in prose_of(&code) {
            for found in violations(&text) {
                problems.push(format!("{}:{line}: {found}", path.display()));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn old_words_are_found_in_a_label_a_help_text_and_a_log_message() {
    let label = r#"html! { h2 { "Also told by" } }"#;
    let help = "/// Ask sources for news\nPoll(PollArgs),";
    let log = r#"warn!(%error, "the sink broke off");"#;
    let rate = r#"html! { th { "Items a day" } }"#;
    for code in [label, help, log, rate] {
        let found: Vec<String> = prose_of(code)
            .iter()
            .flat_map(|(_, text)| violations(text))
            .collect();
        assert_eq!(found.len(), 1, "{code}: {found:?}");
    }
    assert!(violations("Items per day, Near-duplicates, poll sources").is_empty());
}
