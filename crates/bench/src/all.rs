//! `tidings-bench all`: every benchmark, one after the other, each run in a process
//! of its own, so that memory and caches of one don't touch another; then one
//! report of them. One that fails is reported there and does not end the others.

mod chart;
mod machine;
mod markdown;
mod numbers;
mod parts;
mod report;
mod surroundings;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use clap::builder::PossibleValuesParser;
use jiff::Timestamp;
use serde_json::Value as Json;
use tidings_sim::{load_average, tidings_binary};

use self::parts::{PARTS, Part, Planned, Size};
use self::report::{End, Report, Run, Section, Shown};
use self::surroundings::Surroundings;
use crate::output;

/// Measure everything, and write one report with pictures
#[derive(Debug, Args)]
#[command(
    after_help = "Writes report.md, report.json and the pictures into the folder, and updates them after each benchmark.
Inside a checkout with cargo it runs the benchmarks of the crates as well; what else is
left out, and how to have it, is in the report. The whole takes about an hour.

Examples:
  tidings-bench all --quick
  tidings-bench all --only frontier,near
  tidings-bench all --out docs/benchmarks --page docs/BENCHMARKS.md    as the docs have it"
)]
pub(crate) struct AllArgs {
    /// Small sizes, within three minutes: to try it out
    #[arg(long)]
    quick: bool,

    /// The least that can be measured, on SQLite only: for tests
    #[arg(long, hide = true, conflicts_with = "quick")]
    tiny: bool,

    /// Only these benchmarks
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    #[arg(value_parser = PossibleValuesParser::new(PARTS.iter().map(|part| part.name)))]
    only: Vec<String>,

    /// Where to write
    #[arg(long, value_name = "FOLDER", default_value = "tidings-bench")]
    out: PathBuf,

    /// Write the Markdown to this file instead of report.md; the folder must lie beside or below it
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,

    /// A Python that has the peers: scrapy, trafilatura
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    python: String,

    /// Pages with their truth, to compare extractors on
    #[arg(long, value_name = "FOLDER", env = "TIDINGS_BENCH_CORPUS")]
    corpus: Option<PathBuf>,

    /// The tidings binary, for benchmarks of its commands [default: next to this one]
    #[arg(long, value_name = "PATH", env = "TIDINGS_BIN")]
    tidings: Option<PathBuf>,
}

impl AllArgs {
    fn size(&self) -> Size {
        match (self.quick, self.tiny) {
            (_, true) => Size::Tiny,
            (true, _) => Size::Quick,
            _ => Size::Full,
        }
    }

    fn wants(&self, part: &Part) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == part.name)
    }

    /// As it would be typed again, without the places of this machine.
    fn command(&self) -> String {
        let mut command = "tidings-bench all".to_owned();
        command.push_str(self.size().choose("", " --quick", " --tiny"));
        if !self.only.is_empty() {
            command.push_str(" --only ");
            command.push_str(&self.only.join(","));
        }
        command
    }

    fn warnings(&self) -> Vec<&'static str> {
        let size = match self.size() {
            Size::Full => None,
            Size::Quick => Some(
                "Made with --quick: small sizes, measured for a moment. It shows the form; its figures are no claim.",
            ),
            Size::Tiny => Some("Made with --tiny, for a test: its figures mean nothing."),
        };
        let build = cfg!(debug_assertions)
            .then_some("Made with a debug build: its figures say nothing about a release.");
        size.into_iter().chain(build).collect()
    }
}

/// Whether every benchmark was measured or left out; those that failed say why in
/// the report.
pub(crate) fn run(args: &AllArgs, json: bool) -> anyhow::Result<bool> {
    let page = Page::of(args)?;
    let around = Surroundings::look(args);
    let mut report = Report {
        date: Timestamp::now().strftime("%Y-%m-%d").to_string(),
        command: args.command(),
        warnings: args.warnings(),
        machine: machine::facts(),
        versions: around.versions(),
        sections: Vec::new(),
    };
    let wanted = || PARTS.iter().filter(|part| args.wants(part));
    for part in wanted() {
        build(part, args.size(), &around);
    }
    for part in wanted() {
        report.sections.push(measure(part, args.size(), &around));
        // Whoever interrupts it has what was measured so far.
        page.write(&report)?;
    }
    match json {
        true => output::json(&report)?,
        false => output::line(&page.file.display().to_string())?,
    }
    Ok(!report.sections.iter().any(Section::has_failed))
}

/// Compiles before anything is measured, so that no figure suffers from it. What
/// can't be compiled will say so when it is run.
fn build(part: &Part, size: Size, around: &Surroundings) {
    let runs = (part.runs)(size).into_iter();
    for planned in runs.filter(|planned| around.lacks(planned.needs).is_none()) {
        if let Some(bench) = planned.command.strip_prefix("cargo bench ") {
            progress(&format!("{}: building", part.name));
            let _ = output_of(&format!("cargo bench --no-run {bench}"), around);
        }
    }
}

fn measure(part: &Part, size: Size, around: &Surroundings) -> Section {
    let planned = (part.runs)(size);
    let runs: Vec<Run> = planned
        .into_iter()
        .map(|planned| perform(part.name, planned, around))
        .collect();
    let measured = runs.iter().filter_map(|run| match &run.end {
        End::Measured(figures) => Some(figures.clone()),
        End::LeftOut(_) | End::Failed(_) => None,
    });
    let (mut shown, unread) = match (part.show)(&measured.collect::<Vec<_>>()) {
        Ok(shown) => (shown, None),
        Err(error) => (Shown::default(), Some(format!("{error:#}"))),
    };
    shown.charts.retain(|chart| !chart.is_empty());
    Section {
        name: part.name,
        title: part.title,
        about: part.about,
        limits: part.limits,
        runs,
        unread,
        shown,
    }
}

fn perform(part: &str, planned: Planned, around: &Surroundings) -> Run {
    let load = load_average();
    let load: Vec<&str> = load.split_whitespace().take(3).collect();
    let mut run = Run {
        what: planned.what,
        load_before: load.join(" "),
        seconds: 0.0,
        end: End::LeftOut(String::new()),
        command: planned.command,
    };
    let name = format!("{part}, {}", run.what);
    if let Some(reason) = around.lacks(planned.needs) {
        progress(&format!("{name}: left out: {reason}"));
        run.end = End::LeftOut(reason);
        return run;
    }
    progress(&format!(
        "{name}: started {}",
        Timestamp::now().strftime("%H:%M:%S UTC")
    ));
    let start = Instant::now();
    let ended = output_of(&run.command, around);
    run.seconds = start.elapsed().as_secs_f64();
    run.end = match ended.and_then(|text| figures(&run.command, text)) {
        Ok(figures) => {
            progress(&format!("{name}: measured in {:.1} s", run.seconds));
            End::Measured(figures)
        }
        Err(error) => {
            let reason = around.without_paths(&format!("{error:#}"));
            progress(&format!("{name}: failed: {reason}"));
            End::Failed(reason)
        }
    };
    run
}

/// JSON of our own benchmarks, the text of others.
fn figures(command: &str, text: String) -> anyhow::Result<Json> {
    match is_ours(command) {
        true => serde_json::from_str(&text).context("its output is not JSON"),
        false => Ok(Json::String(text)),
    }
}

/// Whether a command prints JSON when it is called with `--json`.
fn is_ours(command: &str) -> bool {
    command.starts_with("tidings ") || command.starts_with("tidings-bench ")
}

/// Runs a command as it is planned and gives what it printed.
fn output_of(command: &str, around: &Surroundings) -> anyhow::Result<String> {
    let mut words = command.split(' ');
    let program = words.next().unwrap_or_default();
    let checkout = around.checkout().unwrap_or(Path::new("."));
    let mut process = match program {
        "tidings-bench" => {
            Command::new(std::env::current_exe().context("cannot locate this executable")?)
        }
        "tidings" => Command::new(tidings_binary(around.tidings())?),
        "cargo" => Command::new(program),
        script => Command::new(checkout.join(script)),
    };
    if is_ours(command) {
        process.arg("--json");
    } else {
        process.current_dir(checkout).env("PYTHON", &around.python);
    }
    for word in words {
        match word {
            "python3" => process.arg(&around.python),
            "CORPUS" => process.arg(around.corpus().unwrap_or(Path::new("CORPUS"))),
            word => process.arg(word),
        };
    }
    let mut child = process
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let stdout = read_all(child.stdout.take());
    let stderr = read_all(child.stderr.take());
    let status = ended(&mut child, around.limit())?;
    let (stdout, stderr) = (stdout.join(), stderr.join());
    anyhow::ensure!(status.success(), "{}", reason(&stderr.unwrap_or_default()));
    Ok(stdout.unwrap_or_default())
}

/// Reads while the process runs, which would wait for room in its pipe otherwise.
fn read_all(pipe: Option<impl io::Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What came until it broke is all that there is.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The exit status; a process that exceeds the limit is killed.
fn ended(child: &mut Child, limit: Duration) -> anyhow::Result<ExitStatus> {
    const CHECK_INTERVAL: Duration = Duration::from_millis(50);
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
    child.kill()?;
    child.wait()?;
    anyhow::bail!("timed out after {} minutes", limit.as_secs() / 60)
}

/// The reason that a process printed: from its last error on, shortened.
fn reason(stderr: &str) -> String {
    const MAX_LENGTH: usize = 600;
    let lines: Vec<&str> = stderr
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let error = lines.iter().rposition(|line| line.starts_with("error"));
    let from = error.unwrap_or(lines.len().saturating_sub(3));
    let said = lines.get(from..).unwrap_or_default().join("; ");
    match said.is_empty() {
        true => "it exited without a message".to_owned(),
        false => said
            .trim_start_matches("error: ")
            .chars()
            .take(MAX_LENGTH)
            .collect(),
    }
}

/// Where the report goes.
struct Page<'a> {
    folder: &'a Path,
    file: PathBuf,
    /// The path from the file to the pictures.
    pictures: String,
}

impl<'a> Page<'a> {
    fn of(args: &'a AllArgs) -> anyhow::Result<Self> {
        let folder = args.out.as_path();
        let Some(file) = &args.page else {
            return Ok(Self {
                folder,
                file: folder.join("report.md"),
                pictures: String::new(),
            });
        };
        let above = file.parent().unwrap_or(Path::new(""));
        let below = folder.strip_prefix(above).with_context(|| {
            format!(
                "{} does not lie beside or below {}, so the page could not link its pictures",
                folder.display(),
                file.display()
            )
        })?;
        let pictures = match below.as_os_str().is_empty() {
            true => String::new(),
            false => format!("{}/", below.display()),
        };
        Ok(Self {
            folder,
            file: file.clone(),
            pictures,
        })
    }

    fn write(&self, report: &Report) -> anyhow::Result<()> {
        fs::create_dir_all(self.folder)
            .with_context(|| format!("the folder {} cannot be created", self.folder.display()))?;
        let charts = report
            .sections
            .iter()
            .flat_map(|section| &section.shown.charts);
        for chart in charts {
            write(&self.folder.join(chart.file()), &chart.svg())?;
        }
        let json =
            serde_json::to_string_pretty(report).context("cannot serialize the report as JSON")?;
        write(&self.folder.join("report.json"), &format!("{json}\n"))?;
        write(&self.file, &markdown::page(report, &self.pictures))
    }
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Progress; one that can't be shown is no reason to stop.
fn progress(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_last_error() {
        for (said, wanted) in [
            ("", "it exited without a message"),
            (
                "warning\nerror: no PostgreSQL to measure\n  because: it is not there\n",
                "no PostgreSQL to measure; because: it is not there",
            ),
            ("error: first\nerror: second", "second"),
            ("a\nb\n\nc\nd", "b; c; d"),
        ] {
            assert_eq!(reason(said), wanted);
        }
    }

    #[test]
    fn every_command_can_be_typed() {
        use clap::Parser as _;
        for (part, size) in PARTS
            .iter()
            .flat_map(|part| [Size::Full, Size::Quick, Size::Tiny].map(|size| (part, size)))
        {
            for planned in (part.runs)(size) {
                if planned.command.starts_with("tidings-bench ") {
                    let read = crate::Cli::try_parse_from(planned.command.split(' '));
                    assert!(read.is_ok(), "{}", planned.command);
                }
            }
        }
    }
}
