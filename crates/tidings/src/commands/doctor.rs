//! `tidings doctor`: why is it slow, what is stuck, what is misconfigured, and
//! what to do next. Changes nothing.

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use crate::config::Config;
use crate::doctor::{self, Finding, Severity};
use crate::failure::Failure;
use crate::output;
use crate::words::one_line;

/// Say what is wrong or slow, why, and what to do about it
#[derive(Debug, Args)]
#[command(
    after_help = "It looks at the store, at what is late and why, at sources, sinks and tasks, at the
configuration and at this machine. The exit code is 1 when there is trouble.

Examples:
  tidings doctor
  tidings doctor --store postgres://me@db/tidings --json"
)]
pub(crate) struct DoctorArgs {
    /// Leave out what is fine
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &DoctorArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new().context("the runtime can't start")?;
    let facts = runtime.block_on(doctor::facts(config));
    let mut findings = doctor::findings(&facts);
    let has_trouble = findings
        .iter()
        .any(|finding| finding.severity == Severity::AdapterErrorKind);
    if args.quiet {
        findings.retain(|finding| finding.severity != Severity::Fine);
    }
    match json {
        true => output::json(&json!({ "ok": !has_trouble, "findings": findings }))?,
        false => findings.iter().try_for_each(tell)?,
    }
    match has_trouble {
        true => Err(Failure::Reported),
        false => Ok(()),
    }
}

fn tell(finding: &Finding) -> anyhow::Result<()> {
    let line = |word: &str, text: &str| output::line(&format!("{word:<13}  {}", one_line(text)));
    let what = format!("{}: {}", finding.about, finding.what);
    line(finding.severity.word(), &what)?;
    if let Some(why) = &finding.why {
        line("", why)?;
    }
    match &finding.next {
        Some(next) => line("", &format!("→ {next}")),
        None => Ok(()),
    }
}
