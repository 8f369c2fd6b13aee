//! The embedded store: killed at any moment, and on a full disk.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tidings_store::{Filter, Store, StoreOptions};

use super::ask::{AdapterHttp, lines};
use super::child::BATCH;
use super::ground::{Ground, aside, this_program, web};
use super::{Measured, Setting, can};

/// A process submits and says what was acknowledged; it is killed, and another
/// goes on where it was.
pub(super) async fn killed_often(setting: Setting) -> anyhow::Result<Measured> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let deaths = setting.size(20, 1_000_u64);
    let there = (folder.path().to_owned(), address.clone());
    let acknowledged = aside(move || die_often(&there.0, &there.1, deaths)).await?;
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
    // One batch may have been committed without having been told of.
    Ok(Measured::new(
        rows >= acknowledged
            && rows <= acknowledged + BATCH
            && matches!(check.as_str(), "ok" | "not checked"),
        format!(
            "{deaths} deaths, opened {deaths} times; {acknowledged} acknowledged, {rows} there; integrity {check}"
        ),
    ))
}

/// How far the last of so many submitters had come when it was killed.
fn die_often(folder: &Path, address: &str, deaths: u64) -> anyhow::Result<u64> {
    let mut acknowledged = 0;
    for death in 0..deaths {
        let mut command = this_program()?;
        command
            .args(["torture", "--child", "submitter", "--store", address])
            .args(["--log-level", "error", "--from", &acknowledged.to_string()])
            .current_dir(folder);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let told = BufReader::new(child.stdout.take().context("its output")?);
        let mut told = told.lines();
        // At least one: that it opened is what is to be seen.
        let first = told
            .next()
            .with_context(|| format!("it did not open after {death} deaths"))?;
        acknowledged = first?.parse()?;
        std::thread::sleep(Duration::from_micros(death * death * 7919 % 20_000));
        child.kill()?;
        child.wait()?;
        for line in told {
            // The last one may be cut; then it was not acknowledged to anybody.
            acknowledged = line?.parse().unwrap_or(acknowledged);
        }
    }
    Ok(acknowledged)
}

/// A disk of a few megabytes, a server on it, and more URLs than it can take.
pub(super) async fn disk_full(setting: Setting) -> anyhow::Result<Measured> {
    if !can("unshare", &["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"])
        || !can("nsenter", &["--version"])
    {
        return Ok(Measured::left_out(
            "`unshare -rm` and `nsenter`, for a disk of its own",
        ));
    }
    let ground = Ground::new(setting, web(1, 0)).await?;
    let disk = ground.folder().join("disk");
    fs::create_dir(&disk)?;
    // A mount of its own, that nobody else sees and that ends with the process.
    let mut command = Command::new("unshare");
    let mounted = "mount -t tmpfs -o size=24m tmpfs disk && exec \"$0\" \"$@\"";
    command
        .args(["-rm", "sh", "-c", mounted])
        .arg(std::env::current_exe()?)
        .args(["work", "--roles", "serve"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let address = format!("sqlite:{}", disk.join("tidings.db").display());
    ground.configure(&mut command, &address, "disk", &[]);
    let mut process = ground.spawn(command)?;
    let inside = |path: &Path| -> PathBuf {
        let root = format!("/proc/{}/root", process.id());
        Path::new(&root).join(path.strip_prefix("/").unwrap_or(path))
    };
    let token = process.told("token").await?;
    let asker = AdapterHttp::new(&process.told("dashboard").await?, &token)?;
    let path = "/api/v1/frontier/submit/bulk";
    // Something else fills the disk, but for a little.
    let ballast = inside(&disk).join("ballast");
    fs::write(&ballast, vec![7; 14 << 20])?;
    let (mut taken, mut from) = (0, 0);
    let refused = loop {
        let (status, _) = asker
            .post(path, &format!("part-{from}"), &lines(from, 1000))
            .await?;
        match status {
            200 => taken += 1000,
            status => break status,
        }
        from += 1000;
        anyhow::ensure!(from < 1_000_000, "the disk was never full");
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    let is_alive = process.ended()?.is_none();
    fs::remove_file(&ballast)?;
    let room = Instant::now();
    while !matches!(
        asker
            .post(path, &format!("part-{from}"), &lines(from, 1000))
            .await,
        Ok((200, _))
    ) {
        anyhow::ensure!(
            room.elapsed() < setting.soon(),
            "it did not go on when there was room"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let back = room.elapsed();
    taken += 1000;
    let counted = count_inside(&process, &address)?;
    Ok(Measured::new(
        refused >= 500 && is_alive && counted == taken,
        format!(
            "refused with {refused} after {} URLs; on again after {:.1} s; {counted} rows",
            taken - 1000,
            back.as_secs_f64()
        ),
    )
    .in_time(back <= Duration::from_secs(30)))
}

/// How many rows there are, asked by a process that sees the same disk.
fn count_inside(process: &super::ground::Process, address: &str) -> anyhow::Result<usize> {
    let id = process.id().to_string();
    let output = Command::new("nsenter")
        .args(["-t", &id, "-U", "-m", "--preserve-credentials"])
        .arg(std::env::current_exe()?)
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
