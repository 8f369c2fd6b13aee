//! `tidings init`: writes a configuration file for a new installation. Opens no
//! store and makes no request.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use crate::config::StarterFile;
use crate::failure::Failure;
use crate::output;

/// Write a commented configuration file for a new installation
#[derive(Debug, Args)]
#[command(
    after_help = "The file is tidings.toml, or the one that --config names; one that exists is never overwritten.
On a terminal it asks for what it needs; elsewhere, or with --yes, it asks nothing.
The starter sources are added by the first `tidings run`, each once: one that you remove stays removed.

Examples:
  tidings init
  tidings init --yes --contact https://example.org/our-crawler
  tidings init --yes --no-sources --config /etc/tidings.toml"
)]
pub(crate) struct InitArgs {
    /// Ask nothing
    #[arg(short, long)]
    yes: bool,

    /// URL or e-mail address for site owners; part of the User-Agent
    #[arg(long, value_name = "CONTACT")]
    contact: Option<String>,

    /// Do not add the starter sources at the first start
    #[arg(long)]
    no_sources: bool,
}

pub(crate) fn run(args: &InitArgs, config: Option<&Path>, json: bool) -> Result<(), Failure> {
    let path = config.unwrap_or(Path::new("tidings.toml"));
    if path.exists() {
        return Err(exists(path));
    }
    let is_asking = !args.yes && !json && io::stdin().is_terminal() && io::stdout().is_terminal();
    let contact = match &args.contact {
        None if is_asking => Some(ask(
            "Contact for site owners (a URL or an e-mail address):",
        )?),
        given => given.clone(),
    };
    let adds_starter_sources = match args.no_sources {
        false if is_asking => !ask("Add the starter sources at the first start? [Y/n]")?
            .to_lowercase()
            .starts_with('n'),
        no_sources => !no_sources,
    };
    let file = StarterFile {
        contact: contact.filter(|contact| !contact.trim().is_empty()),
        adds_starter_sources,
    };
    write(path, &file.text())?;
    let place = path.display();
    if json {
        let written = json!({ "config": place.to_string(), "contact": file.contact, "starter_sources": file.adds_starter_sources });
        return Ok(output::json(&written)?);
    }
    output::line(&format!("Wrote {place}."))?;
    if file.contact.is_none() {
        output::line("Set net.contact there: it tells site owners who you are.")?;
    }
    if !file.adds_starter_sources {
        output::line("Add a source: tidings add https://example.com/")?;
    }
    Ok(output::line("Start: tidings run")?)
}

fn ask(question: &str) -> anyhow::Result<String> {
    output::text(&format!("{question} "))?;
    let mut line = String::new();
    io::stdin()
        .read_line(&mut line)
        .context("standard input can't be read")?;
    Ok(line.trim().to_owned())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let place = || format!("cannot write {}", path.display());
    let created = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(exists(path)),
        created => created.with_context(place)?,
    };
    Ok(file.write_all(text.as_bytes()).with_context(place)?)
}

fn exists(path: &Path) -> Failure {
    Failure::Command(anyhow::anyhow!(
        "{} exists already, and is never overwritten; `tidings config` shows what it sets",
        path.display()
    ))
}
