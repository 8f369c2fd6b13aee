//! A store that is restored to an older state, with the commands that
//! `docs/OPERATIONS.md` gives to operators.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use tidings_sim::postgres_program;

use crate::environment::{Environment, INDEX, blocking, web};
use crate::ledger::LedgerSummary;
use crate::scenario::Measured;
use crate::setting::{Engine, Setting, can_run};

const ALL: &str = "poll,fetch,deliver";

/// A backup is taken in the middle of the work, and restored when all is done.
pub(crate) async fn restored(setting: Setting) -> anyhow::Result<Measured> {
    if setting.engine == Engine::Sqlite && !can_run("sqlite3", &["--version"]) {
        return Ok(Measured::skipped("`sqlite3`, to take a backup"));
    }
    let mut env = Environment::new(setting, web(8, setting.size(25, 100))).await?;
    let backup = env.folder().join("backup");
    let process = env.start(ALL, &[])?;
    env.wait_for_requests(80, setting.step_timeout()).await?;
    back_up(&env, setting.engine, &backup).await?;
    env.wait_until_delivered(setting.work_timeout()).await?;
    drop(process);
    let before = env.index.documents(INDEX);
    env.release_store().await?;
    restore(&env, setting.engine, &backup).await?;
    env.reopen().await?;
    let restored = env.store.stats().await?.by_status.get("fetched").copied();
    let restored = restored.unwrap_or(0);
    let process = env.start(ALL, &[])?;
    env.wait_until_delivered(setting.work_timeout()).await?;
    drop(process);
    let summary = LedgerSummary::of(&env);
    let is_same = env.index.documents(INDEX).len() == before.len();
    Ok(Measured::new(
        is_same && (restored as usize) < before.len(),
        format!(
            "restored from {} documents to {restored} pages",
            before.len()
        ),
    )
    .with_ledger(&summary))
}

async fn run(mut command: Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = blocking(move || Ok(command.output()))
        .await?
        .with_context(|| format!("cannot run {name}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{name}: {}", stderr.trim());
    Ok(())
}

fn database_file(env: &Environment) -> PathBuf {
    env.folder().join("tidings.db")
}

fn program(name: &str) -> PathBuf {
    postgres_program(name).unwrap_or_else(|| name.into())
}

async fn back_up(env: &Environment, engine: Engine, backup: &Path) -> anyhow::Result<()> {
    let command = match engine {
        Engine::Sqlite => {
            let mut command = Command::new("sqlite3");
            let into = format!("VACUUM INTO '{}'", backup.display());
            command.arg(database_file(env)).arg(into);
            command
        }
        Engine::Postgres => {
            let mut command = Command::new(program("pg_dump"));
            command
                .arg("--format=custom")
                .arg(format!("--file={}", backup.display()))
                .arg(&env.address);
            command
        }
    };
    run(command).await
}

async fn restore(env: &Environment, engine: Engine, backup: &Path) -> anyhow::Result<()> {
    match engine {
        Engine::Sqlite => {
            let file = database_file(env);
            for end in ["-wal", "-shm"] {
                // They may not exist.
                let _ = fs::remove_file(format!("{}{end}", file.display()));
            }
            fs::copy(backup, file)
                .map(drop)
                .context("cannot restore the backup")
        }
        Engine::Postgres => {
            let mut command = Command::new(program("pg_restore"));
            command
                .args(["--clean", "--if-exists"])
                .arg(format!("--dbname={}", env.address))
                .arg(backup);
            run(command).await
        }
    }
}
