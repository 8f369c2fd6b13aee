//! What is at hand for the benchmarks beside this program: a checkout with cargo,
//! PostgreSQL, Scrapy, a corpus; which versions they are, and what to do where
//! one is missing. Looks once, before anything is measured.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tidings_sim::PostgresServer;

use super::AllArgs;
use super::parts::{Need, Size};
use super::report::Fact;

pub(super) struct Surroundings {
    size: Size,
    /// Each with the reason why it is unavailable.
    checkout: Result<PathBuf, String>,
    postgres: Result<String, String>,
    scrapy: Result<String, String>,
    corpus: Result<PathBuf, String>,
    pub(super) python: String,
    /// The tidings binary, if it is named.
    tidings: Option<PathBuf>,
}

impl Surroundings {
    pub(super) fn look(args: &AllArgs) -> Self {
        let python = args.python.as_str();
        Self {
            size: args.size(),
            checkout: checkout(),
            postgres: PostgresServer::version().map_err(|error| error.to_string()),
            scrapy: module(python, "scrapy").ok_or_else(|| {
                format!("Scrapy is not installed; have it with: {} -m pip install scrapy trafilatura", name(python))
            }),
            corpus: match args.corpus.as_deref() {
                Some(folder) if folder.join("truth.jsonl").exists() => {
                    folder.canonicalize().map_err(|error| error.to_string())
                }
                Some(_) => Err("the folder of the corpus has no truth.jsonl".to_owned()),
                None => Err("no corpus is named; name one with --corpus FOLDER or TIDINGS_BENCH_CORPUS (docs/EXTRACTION.md says what is in it)".to_owned()),
            },
            python: python.to_owned(),
            tidings: args.tidings.clone(),
        }
    }

    pub(super) fn checkout(&self) -> Option<&Path> {
        self.checkout.as_deref().ok()
    }

    pub(super) fn tidings(&self) -> Option<&Path> {
        self.tidings.as_deref()
    }

    pub(super) fn corpus(&self) -> Option<&Path> {
        self.corpus.as_deref().ok()
    }

    /// How long a run may take at most: far longer than any should.
    pub(super) fn limit(&self) -> Duration {
        let minutes = self.size.choose(120, 10, 1);
        Duration::from_secs(minutes * 60)
    }

    /// Why a run with this need is left out, if it is.
    pub(super) fn lacks(&self, need: Need) -> Option<String> {
        let reason = |found: Option<&String>| found.cloned();
        match need {
            Need::Nothing => None,
            _ if self.size == Size::Tiny => {
                Some("the smallest run has neither servers nor peers".to_owned())
            }
            Need::Postgres => reason(self.postgres.as_ref().err()),
            Need::Scrapy => reason(self.scrapy.as_ref().err()),
            Need::Checkout => reason(self.checkout.as_ref().err()),
            Need::Corpus if self.size == Size::Quick => {
                Some("it takes minutes; run without --quick".to_owned())
            }
            Need::Corpus => reason(self.checkout.as_ref().err().or(self.corpus.as_ref().err())),
        }
    }

    pub(super) fn versions(&self) -> Vec<Fact> {
        let said =
            |program: &str, args: &[&str]| self.checkout().and_then(|at| said(program, args, at));
        let build = match cfg!(debug_assertions) {
            true => "debug build",
            false => "release build",
        };
        let tidings = format!("{}, {build}", env!("CARGO_PKG_VERSION"));
        let all = [
            ("Tidings", Some(tidings)),
            (
                "git commit of the checkout",
                said("git", &["describe", "--always", "--dirty"]),
            ),
            ("rustc", said("rustc", &["--version"])),
            ("SQLite", Some(tidings_store::sqlite_version().to_owned())),
            ("PostgreSQL", self.postgres.clone().ok()),
            ("Scrapy", self.scrapy.clone().ok()),
            ("trafilatura (PyPI)", module(&self.python, "trafilatura")),
            ("feed-rs", self.locked("feed-rs")),
        ];
        let fact = |(name, value): (_, Option<String>)| value.map(|value| Fact { name, value });
        all.into_iter().filter_map(fact).collect()
    }

    /// The version of a crate that the checkout is built with.
    fn locked(&self, name: &str) -> Option<String> {
        let lock = std::fs::read_to_string(self.checkout()?.join("Cargo.lock")).ok()?;
        let (_, after) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
        Some(after.split('"').next()?.to_owned())
    }

    /// A reason that names no path of this machine.
    pub(super) fn without_paths(&self, reason: &str) -> String {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let places = [
            (self.checkout().map(Path::to_path_buf), "."),
            (self.corpus().map(Path::to_path_buf), "CORPUS"),
            (Some(std::env::temp_dir()), "TEMP"),
            (home, "~"),
        ];
        let mut reason = reason.to_owned();
        for (place, word) in places {
            let place = place.map(|place| place.display().to_string());
            // The root of everything would replace every slash.
            if let Some(place) = place.filter(|place| place.len() > 1) {
                reason = reason.replace(&place, word);
            }
        }
        reason
    }
}

/// The folder at or above this one that has the sources, if cargo is there too.
fn checkout() -> Result<PathBuf, String> {
    const HOW: &str = "run it inside a checkout of Tidings, with cargo installed";
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let is_checkout = |folder: &&Path| folder.join("crates/url/benches/identity.rs").exists();
    let found = here.ancestors().find(is_checkout);
    let found = found.ok_or(format!("it is no part of the program; {HOW}"))?;
    match said("cargo", &["--version"], found) {
        Some(_) => Ok(found.to_owned()),
        None => Err(format!("there is no cargo; {HOW}")),
    }
}

/// The version of a Python module, if it is installed.
fn module(python: &str, module: &str) -> Option<String> {
    let script = format!("import importlib.metadata as m; print(m.version('{module}'))");
    said(python, &["-c", &script], Path::new("."))
}

/// What a program prints, if it does so with success.
fn said(program: &str, args: &[&str], folder: &Path) -> Option<String> {
    let output = Command::new(program)
        .args(args)
        .current_dir(folder)
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// A program without the folder it is in.
pub(super) fn name(program: &str) -> String {
    let name = Path::new(program).file_name();
    name.map_or_else(
        || program.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}
