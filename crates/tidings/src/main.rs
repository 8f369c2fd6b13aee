//! The `tidings` binary: reads the command line and the configuration, starts
//! logging, runs one command, and turns its result into an exit code. Holds no
//! logic of its own.

mod cli;
mod commands;
mod config;
mod config_error;
mod demo;
mod doctor;
mod failure;
mod format;
mod logging;
mod node;
mod open_files;
mod output;
mod progress;
mod roles;
mod run_status;
mod shutdown;
mod sinks;
mod stores;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};
use crate::config::Config;
use crate::failure::Failure;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let json = cli.json;
    // These must work when the configuration does not.
    if let Command::Completions(args) = &cli.command {
        return commands::completions::run(args);
    }
    if let Command::Init(args) = &cli.command {
        return commands::init::run(args, cli.global.config.as_deref(), json);
    }
    let (config, settings) = Config::load(&cli)?;
    logging::start(&config.log);
    match cli.command {
        Command::Completions(_) | Command::Init(_) => {
            unreachable!("handled before the configuration is read")
        }
        Command::Add(args) => commands::add::run(&args, &config, json),
        Command::Apply(args) => commands::apply::run(&args, &config, json),
        Command::Check(args) => commands::check::run(&args, &config, &settings, json),
        Command::Config(args) => commands::config::run(&args, &settings, json),
        Command::Discover(args) => commands::discover::run(&args, &config, json),
        Command::Doctor(args) => commands::doctor::run(&args, &config, json),
        Command::Doc(args) => commands::doc::run(&args, &config, json),
        Command::Explain(args) => commands::explain::run(&args, &config, json),
        Command::Fetch(args) => commands::fetch::run(&args, &config, json),
        Command::Feed(args) => commands::feed::run(&args, &config, json),
        Command::Extract(args) => commands::extract::run(&args),
        Command::Frontier(args) => commands::frontier::run(&args, &config, json),
        Command::MigrateSchema(args) => commands::migrate_schema::run(&args, &config, json),
        Command::MigrateStore(args) => commands::migrate_store::run(&args, &config, json),
        Command::Collect(args) => commands::collect::run(&args, &config, json),
        Command::Poll(args) => commands::poll::run(&args, &config, json),
        Command::Run(args) => commands::run::run(&args, config, json),
        Command::Search(args) => commands::search::run(&args, &config, json),
        Command::Sink(args) => commands::sink::run(&args, &config, json),
        Command::Sim(args) => commands::sim::run(&args, &config),
        Command::Simulate(args) => commands::simulate::run(&args, json),
        Command::Source(args) => commands::source::run(&args, &config, json),
        Command::Tail(args) => commands::tail::run(&args, &config, json),
        Command::Token(args) => commands::token::run(&args, &config, json),
        Command::Work(args) => commands::work::run(&args, &config, json),
        Command::Url(args) => commands::url::run(&args, &config, json),
    }
}
