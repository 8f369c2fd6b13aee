//! The command line: commands, options and help. What each command does is in `commands`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands;

/// The feed-first content ingestion engine.
#[derive(Debug, Parser)]
#[command(
    version,
    propagate_version = true,
    disable_help_subcommand = true,
    after_help = "Examples:
  tidings run --demo              see it work on a simulated web, offline
  tidings init                    write a configuration file for a new installation
  tidings add https://example.com/    follow a site
  tidings run                     poll sources, fetch pages, deliver documents
  tidings search 'harbour council'
  tidings frontier add https://example.com/story
  tidings explain https://example.com/story
  tidings fetch https://example.com/story
  tidings config                  every setting, and where its value comes from
  tidings check                   validate the configuration and everything it names
  tidings doctor                  diagnose errors and delays, with the next step

Exit codes:
  0   done
  1   the command failed; the message says why
  2   the command line is wrong
  78  the configuration is wrong"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,

    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags that override settings, before or after any command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Configuration file [default: tidings.toml, if it exists]
    #[arg(long, global = true, value_name = "FILE", env = "TIDINGS_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// Store address: sqlite:FILE or postgres://USER@HOST/DATABASE
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub(crate) store: Option<String>,

    /// Folder of the embedded store, the search index and the page archive
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) data_dir: Option<String>,

    /// Log level: error, warn, info, debug or trace
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,

    /// Log format: pretty or json
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,

    /// Override any setting, for example --set demo.sites=50
    #[arg(long = "set", global = true, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(commands::init::InitArgs),
    Run(commands::run::RunArgs),
    Add(commands::add::AddArgs),
    Apply(commands::apply::ApplyArgs),
    Source(commands::source::SourceArgs),
    Poll(commands::poll::PollArgs),
    Collect(commands::collect::CollectArgs),
    Work(commands::work::WorkArgs),
    Tail(commands::tail::TailArgs),
    Doc(commands::doc::DocArgs),
    Search(commands::search::SearchArgs),
    Sink(commands::sink::SinkArgs),
    Token(commands::token::TokenArgs),
    Frontier(commands::frontier::FrontierArgs),
    Explain(commands::explain::ExplainArgs),
    Extract(commands::extract::ExtractArgs),
    MigrateSchema(commands::migrate_schema::MigrateSchemaArgs),
    MigrateStore(commands::migrate_store::MigrateStoreArgs),
    Fetch(commands::fetch::FetchArgs),
    Discover(commands::discover::DiscoverArgs),
    Sim(commands::sim::SimArgs),
    Simulate(commands::simulate::SimulateArgs),
    Url(commands::url::UrlArgs),
    Feed(commands::feed::FeedArgs),
    Check(commands::check::CheckArgs),
    Doctor(commands::doctor::DoctorArgs),
    Config(commands::config::ConfigArgs),
    Completions(commands::completions::CompletionsArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
