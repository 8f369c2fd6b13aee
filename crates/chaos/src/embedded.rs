//! The embedded store: killed at random moments, and on a full disk.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tidings_store::{Filter, Store, StoreOptions};

use crate::api_client::{ApiClient, lines};
use crate::child::BATCH;
use crate::environment::{CONFIG, Environment, Process, blocking, chaos_command, web};
use crate::scenario::Measured;
use crate::setting::{Setting, can_run};

/// A process submits and prints what was acknowledged; it is killed, and another
/// continues from there.
pub(crate) async fn killed_repeatedly(setting: Setting) -> anyhow::Result<Measured> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let kills = setting.size(20, 1_000_u64);
    let there = (folder.path().to_owned(), address.clone());
    let acknowledged = blocking(move || kill_submitters(&there.0, &there.1, kills)).await?;
    let store = Store::open(&address, &StoreOptions::default()).await?;
    let rows = store.count(&Filter::default()).await?;
    let check = Command::new("sqlite3")
        .arg(folder.path().join("tidings.db"))
        .arg("PRAGMA integrity_check")
        .output();
    let check = check.map_or_else(
        |_| "not checked".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    );
    // One batch may have been committed and not acknowledged.
    Ok(Measured::new(
        rows >= acknowledged
            && rows <= acknowledged + BATCH
            && matches!(check.as_str(), "ok" | "not checked"),
        format!(
            "killed {kills} times, opened {kills} times; {acknowledged} acknowledged, {rows} stored; integrity {check}"
        ),
    ))
}

/// Starts and kills submitters; returns how many URLs were acknowledged in all.
fn kill_submitters(folder: &Path, address: &str, kills: u64) -> anyhow::Result<u64> {
    let mut acknowledged = 0;
    for kill in 0..kills {
        let mut command = chaos_command()?;
        command
            .args(["child", "submitter", "--store", address])
            .args(["--from", &acknowledged.to_string()])
            .current_dir(folder);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        // At least one line: it shows that the store could be opened.
        let first = lines
            .next()
            .with_context(|| format!("the store did not open after {kill} kills"))?;
        acknowledged = first?.parse()?;
        std::thread::sleep(Duration::from_micros(kill * kill * 7919 % 20_000));
        child.kill()?;
        child.wait()?;
        for line in lines {
            // The last line may be cut; then nothing was acknowledged.
            acknowledged = line?.parse().unwrap_or(acknowledged);
        }
    }
    Ok(acknowledged)
}

/// A disk of a few megabytes, a server on it, and more URLs than fit.
pub(crate) async fn disk_full(setting: Setting) -> anyhow::Result<Measured> {
    if !can_run("unshare", &["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"])
        || !can_run("nsenter", &["--version"])
    {
        return Ok(Measured::skipped(
            "`unshare -rm` and `nsenter`, for a private disk",
        ));
    }
    let env = Environment::new(setting, web(1, 0)).await?;
    let disk = env.folder().join("disk");
    fs::create_dir(&disk)?;
    // A private mount that ends with the process.
    let mut command = Command::new("unshare");
    let mounted = "mount -t tmpfs -o size=24m tmpfs disk && exec \"$0\" \"$@\"";
    command
        .args(["-rm", "sh", "-c", mounted])
        .arg(setting.tidings)
        .args(["work", "--roles", "serve"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let address = format!("sqlite:{}", disk.join("tidings.db").display());
    env.configure(&mut command, CONFIG, &address, "disk", &[]);
    let mut process = env.spawn(command)?;
    let inside = |path: &Path| -> PathBuf {
        let root = format!("/proc/{}/root", process.id());
        Path::new(&root).join(path.strip_prefix("/").unwrap_or(path))
    };
    let token = process.announced("token").await?;
    let api = ApiClient::new(&process.announced("dashboard").await?, &token)?;
    let path = "/api/v1/frontier/submit/bulk";
    // A ballast file fills most of the disk.
    let ballast = inside(&disk).join("ballast");
    fs::write(&ballast, vec![7; 14 << 20])?;
    let (mut stored, mut from) = (0, 0);
    let rejected = loop {
        let (status, _) = api
            .post(path, &format!("part-{from}"), &lines(from, 1000))
            .await?;
        match status {
            200 => stored += 1000,
            status => break status,
        }
        from += 1000;
        anyhow::ensure!(from < 1_000_000, "the disk was never full");
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    let is_alive = process.exit_code()?.is_none();
    fs::remove_file(&ballast)?;
    let freed = Instant::now();
    while !matches!(
        api.post(path, &format!("part-{from}"), &lines(from, 1000))
            .await,
        Ok((200, _))
    ) {
        anyhow::ensure!(
            freed.elapsed() < setting.step_timeout(),
            "submits are still rejected with free space"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let back = freed.elapsed();
    stored += 1000;
    let counted = count_inside(setting, &process, &address)?;
    Ok(Measured::new(
        rejected >= 500 && is_alive && counted == stored,
        format!(
            "rejected with {rejected} after {} URLs; accepted again after {:.1} s; {counted} rows",
            stored - 1000,
            back.as_secs_f64()
        ),
    )
    .in_time(back <= Duration::from_secs(30)))
}

/// The number of rows, queried by a process that sees the same disk.
fn count_inside(setting: Setting, process: &Process, address: &str) -> anyhow::Result<usize> {
    let id = process.id().to_string();
    let output = Command::new("nsenter")
        .args(["-t", &id, "-U", "-m", "--preserve-credentials"])
        .arg(setting.tidings)
        .args(["frontier", "stats", "--json", "--store", address])
        .output()?;
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let by_status = stats["by_status"].as_object().context("no by_status")?;
    Ok(by_status
        .values()
        .filter_map(serde_json::Value::as_u64)
        .sum::<u64>() as usize)
}
