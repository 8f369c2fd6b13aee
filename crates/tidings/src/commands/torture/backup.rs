//! A store that is put back to an older state, by the commands that operators are
//! told in `docs/OPERATIONS.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use tidings_sim::postgres_program;

use super::books::Books;
use super::ground::{Ground, INDEX, aside, web};
use super::{Engine, Measured, Setting, can};

const ALL: &str = "poll,fetch,deliver";

/// In the middle of the work a copy is made; when all is done it is put back.
pub(super) async fn restored(setting: Setting) -> anyhow::Result<Measured> {
    if setting.engine == Engine::Sqlite && !can("sqlite3", &["--version"]) {
        return Ok(Measured::left_out("`sqlite3`, to make a copy"));
    }
    let mut ground = Ground::new(setting, web(8, setting.size(25, 100))).await?;
    let copy = ground.folder().join("copy");
    let process = ground.start(ALL, &[])?;
    ground.requests(80, setting.soon()).await?;
    back_up(&ground, setting.engine, &copy).await?;
    ground.finish(setting.late()).await?;
    drop(process);
    let before = ground.index.documents(INDEX);
    ground.forget_store().await?;
    put_back(&ground, setting.engine, &copy).await?;
    ground.reopen().await?;
    let kept = ground
        .store
        .stats()
        .await?
        .by_status
        .get("fetched")
        .copied();
    let kept = kept.unwrap_or(0);
    let process = ground.start(ALL, &[])?;
    ground.finish(setting.late()).await?;
    drop(process);
    let books = Books::of(&ground);
    let is_same = ground.index.documents(INDEX).len() == before.len();
    Ok(Measured::new(
        books.are_right() && is_same && (kept as usize) < before.len(),
        format!(
            "back from {} documents to {kept} pages; {books}",
            before.len()
        ),
    ))
}

async fn done(mut command: Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = aside(move || Ok(command.output()))
        .await?
        .with_context(|| format!("{name} is needed"))?;
    let why = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{name}: {}", why.trim());
    Ok(())
}

fn database_file(ground: &Ground) -> PathBuf {
    ground.folder().join("tidings.db")
}

fn program(name: &str) -> PathBuf {
    postgres_program(name).unwrap_or_else(|| name.into())
}

async fn back_up(ground: &Ground, engine: Engine, copy: &Path) -> anyhow::Result<()> {
    let command = match engine {
        Engine::Sqlite => {
            let mut command = Command::new("sqlite3");
            let into = format!("VACUUM INTO '{}'", copy.display());
            command.arg(database_file(ground)).arg(into);
            command
        }
        Engine::Postgres => {
            let mut command = Command::new(program("pg_dump"));
            command
                .arg("--format=custom")
                .arg(format!("--file={}", copy.display()))
                .arg(&ground.address);
            command
        }
    };
    done(command).await
}

async fn put_back(ground: &Ground, engine: Engine, copy: &Path) -> anyhow::Result<()> {
    match engine {
        Engine::Sqlite => {
            let file = database_file(ground);
            for end in ["-wal", "-shm"] {
                // They may not be there.
                let _ = fs::remove_file(format!("{}{end}", file.display()));
            }
            fs::copy(copy, file)
                .map(drop)
                .context("the copy can't be put back")
        }
        Engine::Postgres => {
            let mut command = Command::new(program("pg_restore"));
            command
                .args(["--clean", "--if-exists"])
                .arg(format!("--dbname={}", ground.address))
                .arg(copy);
            done(command).await
        }
    }
}
