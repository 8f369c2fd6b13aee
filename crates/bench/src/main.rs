//! `tidings-bench`: measures what the docs claim, on this machine, beside a
//! baseline of the same run. For development; no part of what is shipped.

mod all;
mod api;
mod backlog;
mod deliver;
mod fetch;
mod frontier;
mod loopback;
mod near;
mod output;
mod reference;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measure Tidings on this machine
#[derive(Debug, Parser)]
#[command(version, disable_help_subcommand = true)]
struct Cli {
    /// Print JSON for programs instead of text for people
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    All(all::AllArgs),
    Frontier(frontier::FrontierArgs),
    Fetch(fetch::FetchArgs),
    Api(api::ApiArgs),
    Near(near::NearArgs),
    Deliver(deliver::DeliverArgs),
    /// The simulated web that the others are measured with
    #[command(hide = true)]
    ServePages(fetch::PagesArgs),
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            output::error(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<ExitCode> {
    let json = cli.json;
    match &cli.benchmark {
        // Its failures are in the report already.
        Benchmark::All(args) if !all::run(args, json)? => return Ok(ExitCode::FAILURE),
        Benchmark::All(_) => {}
        Benchmark::Frontier(args) => frontier::run(args, json)?,
        Benchmark::Fetch(args) => fetch::run(args, json)?,
        Benchmark::Api(args) => api::run(args, json)?,
        Benchmark::Near(args) => near::run(args, json)?,
        Benchmark::Deliver(args) => deliver::run(args, json)?,
        Benchmark::ServePages(args) => fetch::serve(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
