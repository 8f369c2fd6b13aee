//! `tidings bench`: measures what we claim, on this machine, beside a baseline
//! of the same run.

mod all;
mod api;
mod fetch;
mod frontier;
mod near;
pub(crate) mod process;
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
    All(all::AllArgs),
    Frontier(frontier::FrontierArgs),
    Fetch(fetch::FetchArgs),
    Api(api::ApiArgs),
    Near(near::NearArgs),
    /// The simulated web that the others are measured with
    #[command(hide = true)]
    ServePages(fetch::PagesArgs),
}

pub(crate) fn run(args: &BenchArgs, json: bool) -> Result<(), Failure> {
    match &args.what {
        What::All(args) => all::run(args, json),
        What::Frontier(args) => frontier::run(args, json),
        What::Fetch(args) => fetch::run(args, json),
        What::Api(args) => api::run(args, json),
        What::Near(args) => near::run(args, json),
        What::ServePages(args) => fetch::serve(args),
    }
}
