//! Calls the binaries in an empty folder with a clean environment, so that what
//! is on the developer's machine can't change a result.

#![allow(dead_code)]

use std::path::Path;
use std::process::{Command, Stdio};

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Calls `tidings-chaos`. It starts shells, compilers, databases and network
/// namespaces, so it keeps the variables that lead to them.
pub(crate) fn chaos(args: &[&str]) -> Ended {
    let program = Path::new(env!("CARGO_BIN_EXE_tidings-chaos"));
    run(program, args, &["PATH", "TIDINGS_TEST_POSTGRES"])
}

/// Calls `tidings`, which was built into the same folder.
pub(crate) fn tidings(args: &[&str]) -> Ended {
    run(&tidings_sim::tidings_binary(None).unwrap(), args, &[])
}

fn run(program: &Path, args: &[&str], variables: &[&str]) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let variables = variables
        .iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)));
    let output = Command::new(program)
        .args(args)
        .current_dir(folder.path())
        .env_clear()
        .envs(variables)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ended {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
