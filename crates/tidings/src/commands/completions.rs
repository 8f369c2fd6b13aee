//! `tidings completions`: the completion script of a shell.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Failure;

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings completions bash > ~/.local/share/bash-completion/completions/tidings
  tidings completions fish > ~/.config/fish/completions/tidings.fish")]
pub(crate) struct CompletionsArgs {
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    clap_complete::generate(
        args.shell,
        &mut Cli::command(),
        "tidings",
        &mut std::io::stdout(),
    );
    Ok(())
}
