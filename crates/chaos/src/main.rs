//! `tidings-chaos`: fault scenarios on a simulated web, checked against its ledger.
//! Real processes are killed, paused and partitioned; databases die; sites and
//! indexes lie. Each scenario is one line: expected, measured, passed or failed.

mod api_client;
mod backup;
mod child;
mod clocks;
mod configurations;
mod connections;
mod crashes;
mod database;
mod embedded;
mod environment;
mod hostile_input;
mod hostile_sources;
mod index;
mod ledger;
mod loopback;
mod machines;
mod memory;
mod output;
mod peers;
mod queue;
mod scenario;
mod scenarios;
mod setting;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use serde::Serialize;
use tidings_sim::tidings_binary;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

use crate::scenario::{Measured, Scenario};
use crate::scenarios::SCENARIOS;
use crate::setting::{Engine, Setting};

/// Run fault scenarios against Tidings, on this machine
#[derive(Debug, Parser)]
#[command(
    version,
    disable_help_subcommand = true,
    after_help = "Everything is simulated or temporary: no data of yours is touched, and no request
leaves this machine. The scenarios on PostgreSQL need its server programs.

Examples:
  tidings-chaos run --quick                 every scenario in a small form
  tidings-chaos run                         with the leases and outages of the guarantees
  tidings-chaos run --only postgres killed  scenarios with this in their name
  tidings-chaos run --quick --json
  tidings-chaos list"
)]
struct Cli {
    /// Print JSON for programs instead of text for people
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run scenarios and report what was measured
    Run(RunArgs),
    /// List scenarios and what is expected of each
    List(Selection),
    /// A process that only scenarios need
    #[command(subcommand, hide = true)]
    Child(child::Child),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Short leases, small webs, few repetitions
    #[arg(long)]
    quick: bool,

    /// The tidings binary to test [default: next to this one]
    #[arg(long, value_name = "PATH", env = "TIDINGS_BIN")]
    tidings: Option<PathBuf>,

    #[command(flatten)]
    selection: Selection,
}

#[derive(Debug, Args)]
struct Selection {
    /// sqlite or postgres instead of both
    #[arg(long, value_name = "ENGINE", value_parser = ["sqlite", "postgres"])]
    only: Option<String>,

    /// Only scenarios whose name contains one of these
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

impl Selection {
    fn scenarios(&self) -> Vec<(&'static Scenario, Engine)> {
        let words: Vec<_> = self.words.iter().map(|word| word.to_lowercase()).collect();
        let is_named = |scenario: &Scenario| {
            let name = scenario.name.to_lowercase();
            words.is_empty() || words.iter().any(|word| name.contains(word))
        };
        let is_wanted = |engine: &Engine| {
            let only = self.only.as_deref();
            only.is_none_or(|only| only == engine.to_string())
        };
        SCENARIOS
            .iter()
            .filter(|scenario| is_named(scenario))
            .flat_map(|scenario| {
                let engines = scenario.engines.iter();
                engines.map(move |engine| (scenario, *engine))
            })
            .filter(|(_, engine)| is_wanted(engine))
            .collect()
    }
}

/// One line of the report.
#[derive(Debug, Serialize)]
struct Line {
    scenario: &'static str,
    engine: Engine,
    expected: &'static str,
    measured: String,
    pass: bool,
    skipped: bool,
    /// Articles lost or duplicated, politeness violations or SSRF connections.
    violation: bool,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    quick: bool,
    passed: usize,
    failed: usize,
    seconds: f64,
    lines: Vec<Line>,
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    match cli.command {
        Command::Run(args) => runtime.block_on(run_selected(&args, cli.json)),
        Command::List(selection) => list(&selection),
        Command::Child(child) => runtime.block_on(child.run()),
    }
}

fn list(selection: &Selection) -> anyhow::Result<()> {
    for (scenario, engine) in selection.scenarios() {
        output::line(&format!(
            "{engine:<8}  {}: {}",
            scenario.name, scenario.expected
        ))?;
    }
    Ok(())
}

async fn run_selected(args: &RunArgs, json: bool) -> anyhow::Result<()> {
    let binary = tidings_binary(args.tidings.as_deref())?;
    // Every scenario of this process runs the same one.
    let tidings: &'static Path = Box::leak(binary.into_boxed_path());
    let started = Instant::now();
    let settings = args.selection.scenarios().into_iter();
    let settings = settings.map(|(scenario, engine)| {
        let setting = Setting {
            engine,
            quick: args.quick,
            tidings,
        };
        (scenario, setting)
    });
    let lines = run_all(settings.collect(), args.quick, json).await?;
    let passed = lines.iter().filter(|line| line.pass).count();
    let report = Report {
        quick: args.quick,
        passed,
        failed: lines.len() - passed,
        seconds: started.elapsed().as_secs_f64(),
        lines,
    };
    if json {
        output::json(&report)?;
    } else {
        output::line(&format!(
            "{} of {} scenarios passed, in {:.0} s.",
            report.passed,
            report.lines.len(),
            report.seconds
        ))?;
    }
    anyhow::ensure!(
        report.failed == 0,
        "{} of {} scenarios failed",
        report.failed,
        report.lines.len()
    );
    Ok(())
}

async fn run_all(
    wanted: Vec<(&'static Scenario, Setting)>,
    quick: bool,
    json: bool,
) -> anyhow::Result<Vec<Line>> {
    // They mostly wait, so a few run concurrently, more when they are small.
    let permits = Rc::new(Semaphore::new(if quick { 5 } else { 3 }));
    let local = LocalSet::new();
    let running: Vec<_> = wanted
        .into_iter()
        .map(|(scenario, setting)| {
            let permits = Rc::clone(&permits);
            local.spawn_local(async move {
                let _permit = permits.acquire().await;
                run_one(scenario, setting).await
            })
        })
        .collect();
    local
        .run_until(async {
            let mut lines = Vec::new();
            for line in running {
                let line = line.await.context("a scenario panicked")?;
                if !json {
                    show(&line)?;
                }
                lines.push(line);
            }
            Ok(lines)
        })
        .await
}

async fn run_one(scenario: &'static Scenario, setting: Setting) -> Line {
    let started = Instant::now();
    if std::io::stderr().is_terminal() {
        // Progress that can't be shown is no reason to stop.
        let _ = write!(
            std::io::stderr(),
            "\r\x1b[K… {} ({})",
            scenario.name,
            setting.engine
        );
    }
    let timeout = setting.work_timeout() * 2;
    let measured = match tokio::time::timeout(timeout, (scenario.run)(setting)).await {
        Ok(Ok(measured)) => measured,
        Ok(Err(error)) => Measured::new(false, format!("aborted: {error:#}")),
        Err(_) => Measured::new(false, format!("timed out after {} s", timeout.as_secs())),
    };
    Line {
        scenario: scenario.name,
        engine: setting.engine,
        expected: scenario.expected,
        measured: measured.text,
        pass: measured.passed,
        skipped: measured.is_skipped,
        violation: measured.is_violation,
        seconds: (started.elapsed().as_secs_f64() * 10.0).round() / 10.0,
    }
}

fn show(line: &Line) -> anyhow::Result<()> {
    if std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    let verdict = match (line.pass, line.skipped) {
        (true, true) => "skipped",
        (true, false) => "passed ",
        (false, _) => "FAILED ",
    };
    output::line(&format!(
        "{verdict}  {:<8}  {:>5.1} s  {}\n          expected  {}\n          measured  {}",
        line.engine, line.seconds, line.scenario, line.expected, line.measured
    ))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
