//! `tidings bench`: measures what we claim, on this machine, beside a baseline
//! of the same run.

mod frontier;
mod reference;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Measure Tidings on this machine
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Frontier(frontier::FrontierArgs),
}

pub(crate) fn run(args: &BenchArgs, json: bool) -> Result<(), Failure> {
    match &args.what {
        What::Frontier(args) => frontier::run(args, json),
    }
}
