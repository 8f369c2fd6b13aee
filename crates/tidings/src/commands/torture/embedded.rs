//! The embedded store: killed at any moment, on a full disk, and with a clock
//! that somebody sets. The clocks are tried on the other engine too.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tidings_sim::WorldConfig;
use tidings_store::{Filter, Store, StoreOptions};

use super::ask::{Asker, lines};
use super::books::Books;
use super::child::BATCH;
use super::ground::{GAP, Ground, this_program, web};
use super::{Measured, Setting, can};

/// A process submits and says what was acknowledged; it is killed, and another
/// goes on where it was.
pub(super) async fn killed_often(setting: Setting) -> anyhow::Result<Measured> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    let deaths = setting.size(20, 1_000_u64);
    let mut acknowledged = 0;
    for death in 0..deaths {
        let mut command = this_program()?;
        command
            .args(["torture", "--child", "submitter", "--store", &address])
            .args(["--log-level", "error", "--from", &acknowledged.to_string()])
            .current_dir(folder.path());
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
    let asker = Asker::new(&process.told("dashboard").await?, &token)?;
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
        refused >= 500 && is_alive && counted == taken && back <= Duration::from_secs(30),
        format!(
            "refused with {refused} after {} URLs; on again after {:.1} s; {counted} rows",
            taken - 1000,
            back.as_secs_f64()
        ),
    ))
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

/// Answers for the clock of a process: the time, and what a file says more.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int answer = real(id, now);
    const char *file = getenv("CLOCK_OFFSET");
    if (id != CLOCK_REALTIME || !file) return answer;
    char text[32] = {0};
    int from = open(file, O_RDONLY);
    if (from >= 0) { read(from, text, 31); close(from); }
    now->tv_sec += atol(text);
    return answer;
}
"#;

/// The clock of one process jumps an hour ahead and back, and an hour behind;
/// another one's is an hour off all the time.
pub(super) async fn clocks_off(setting: Setting) -> anyhow::Result<Measured> {
    if !can("cc", &["--version"]) {
        return Ok(Measured::left_out("a C compiler (`cc`), to shift a clock"));
    }
    let world = WorldConfig {
        latency: true,
        ..web(setting.size(6, 20), setting.size(60, 300))
    };
    let ground = Ground::new(setting, world).await?;
    let source = ground.folder().join("clock.c");
    let library = ground.folder().join("clock.so");
    fs::write(&source, CLOCK)?;
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(&source)
        .arg("-ldl")
        .output();
    anyhow::ensure!(compiled?.status.success(), "the clock can't be compiled");
    let shifted = |name: &str, seconds: &str| -> anyhow::Result<_> {
        let offset = ground.folder().join(name);
        fs::write(&offset, seconds)?;
        let mut command =
            ground.command(&ground.address, "poll,fetch,deliver", &["fetch.at_once=8"])?;
        command
            .env("LD_PRELOAD", &library)
            .env("CLOCK_OFFSET", &offset);
        Ok((ground.spawn(command)?, offset))
    };
    // Two that share a file must agree on the time; two that share a server need not.
    let other = match setting.engine {
        super::Engine::Sqlite => None,
        super::Engine::Postgres => Some(shifted("behind", "-3600")?),
    };
    let (process, offset) = shifted("jumping", "0")?;
    let mut slowest = Duration::ZERO;
    for jump in ["3600", "0", "-3600", "0"] {
        ground.requests(20, setting.soon()).await?;
        fs::write(&offset, jump)?;
        slowest = slowest.max(ground.requests(5, setting.soon()).await?);
    }
    ground.finish(setting.late()).await?;
    drop((process, other));
    let books = Books::of(&ground);
    // A store that is embedded goes with its machine: what was to wait until a
    // moment that has passed waits no longer, once for each host.
    let hasty = match setting.engine {
        super::Engine::Sqlite => ground.sim.world().len() as usize,
        super::Engine::Postgres => 0,
    };
    Ok(Measured::new(
        (books.lost, books.doubled) == (0, 0)
            && books.impolite.len() <= hasty
            && slowest <= setting.lease(),
        format!(
            "jumps of +1 h, back, -1 h and back; never more than {:.1} s without a request (gap {} ms); {books}",
            slowest.as_secs_f64(),
            GAP.as_millis()
        ),
    ))
}
