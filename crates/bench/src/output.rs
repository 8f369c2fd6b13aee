//! Results on standard output: JSON for programs, text for people. A closed pipe
//! (`tidings-bench … | head`) ends the program quietly.

use std::io::{self, Write as _};

use anyhow::Context as _;
use serde::Serialize;

/// Prints one line of text.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    write(format!("{text}\n").as_bytes())
}

/// Prints one value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut bytes = serde_json::to_vec(value).context("cannot serialize the result as JSON")?;
    bytes.push(b'\n');
    write(&bytes)
}

fn write(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        result => result.context("cannot write to standard output"),
    }
}

/// Prints an error and its causes to standard error.
#[allow(clippy::print_stderr)]
pub(crate) fn error(error: &anyhow::Error) {
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("  because: {cause}");
    }
}
