//! `tidings doctor`: diagnoses errors, delays and misconfiguration, with the next
//! step. Changes nothing.

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use crate::config::Config;
use crate::doctor::{self, Finding, Severity};
use crate::failure::Failure;
use crate::format::one_line;
use crate::output;

/// Diagnose errors, delays and misconfiguration, with the next step
#[derive(Debug, Args)]
#[command(
    after_help = "It checks the store, overdue URLs and feeds, sources, sinks and tasks, politeness, the
configuration and this machine. The exit code is 1 when there is an error.

Examples:
  tidings doctor
  tidings doctor --store postgres://me@db/tidings --json"
)]
pub(crate) struct DoctorArgs {
    /// Print only errors and warnings
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &DoctorArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    let facts = runtime.block_on(doctor::facts(config));
    let mut findings = doctor::findings(&facts);
    let has_error = findings
        .iter()
        .any(|finding| finding.severity == Severity::Error);
    if args.quiet {
        findings.retain(|finding| finding.severity != Severity::Ok);
    }
    match json {
        true => output::json(&json!({ "ok": !has_error, "findings": findings }))?,
        false => findings.iter().try_for_each(print)?,
    }
    match has_error {
        true => Err(Failure::Reported),
        false => Ok(()),
    }
}

fn print(finding: &Finding) -> anyhow::Result<()> {
    let line = |label: &str, text: &str| output::line(&format!("{label:<7}  {}", one_line(text)));
    let what = format!("{}: {}", finding.about, finding.what);
    line(finding.severity.label(), &what)?;
    if let Some(why) = &finding.why {
        line("", why)?;
    }
    match &finding.next {
        Some(next) => line("", &format!("→ {next}")),
        None => Ok(()),
    }
}
