//! Results on standard output: JSON or aligned text. A closed pipe
//! (`tidings … | head`) ends the program quietly.

use std::io::{self, Write as _};

use anyhow::Context as _;
use serde::Serialize;

/// Prints one line of text.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    write(format!("{text}\n").as_bytes())
}

/// Prints one value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut bytes = serde_json::to_vec(value).context("a result can't be written as JSON")?;
    bytes.push(b'\n');
    write(&bytes)
}

/// Prints text as it is.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    bytes(text.as_bytes())
}

/// Prints bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) -> anyhow::Result<()> {
    write(bytes)
}

/// Prints rows with their columns aligned, the last one as long as it is.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> anyhow::Result<()> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<_> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn write(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        result => result.context("standard output can't be written"),
    }
}
