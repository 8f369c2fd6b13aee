//! Clocks that jump while all processes work: those of the processes, and that of
//! the machine that runs the database.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use tidings_sim::WorldConfig;

use crate::environment::{Environment, HOST_DELAY, Process, blocking, web};
use crate::ledger::LedgerSummary;
use crate::scenario::Measured;
use crate::setting::{Engine, Setting, can_run};

/// Preloaded into a process: its clock is the real time plus the offset in a file.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long offset(void) {
    char text[32] = {0};
    const char *file = getenv("CLOCK_OFFSET");
    int from = file ? open(file, O_RDONLY) : -1;
    if (from >= 0) { if (read(from, text, 31) < 0) text[0] = 0; close(from); }
    return atol(text);
}
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, now);
    if (id == CLOCK_REALTIME) now->tv_sec += offset();
    return result;
}
int gettimeofday(struct timeval *now, void *zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
    int result = real(now, zone);
    now->tv_sec += offset();
    return result;
}
"#;

/// The offsets of a clock in seconds, one after the other.
const JUMPS: [i32; 4] = [3600, 0, -3600, 0];

/// Builds clocks with an offset.
struct ClockShim {
    folder: tempfile::TempDir,
}

impl ClockShim {
    fn new() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        // The database runs as another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let source = folder.path().join("clock.c");
        fs::write(&source, CLOCK)?;
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(folder.path().join("clock.so"))
            .arg(&source)
            .arg("-ldl")
            .output()?;
        anyhow::ensure!(
            compiled.status.success(),
            "cannot compile the clock shim: {}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        Ok(Self { folder })
    }

    /// A clock without an offset until it is set.
    fn clock(&self, name: &str) -> anyhow::Result<Offset> {
        let offset = Offset(self.folder.path().join(name));
        offset.set(0)?;
        Ok(offset)
    }

    /// The variables that make a process use a clock.
    fn variables(&self, clock: &Offset) -> [(&'static str, PathBuf); 2] {
        [
            ("LD_PRELOAD", self.folder.path().join("clock.so")),
            ("CLOCK_OFFSET", clock.0.clone()),
        ]
    }
}

struct Offset(PathBuf);

impl Offset {
    /// Never half written when it is read.
    fn set(&self, seconds: i32) -> anyhow::Result<()> {
        let new = self.0.with_extension("new");
        fs::write(&new, seconds.to_string())?;
        Ok(fs::rename(&new, &self.0)?)
    }
}

/// The clock of one process jumps an hour ahead and back, and an hour behind;
/// another's is an hour behind all the time; then the database's own jumps.
pub(crate) async fn jumps(setting: Setting) -> anyhow::Result<Measured> {
    if !can_run("cc", &["--version"]) {
        return Ok(Measured::skipped("a C compiler (`cc`), to shift a clock"));
    }
    let world = WorldConfig {
        latency: true,
        ..web(setting.size(6, 20), setting.size(60, 300))
    };
    let shim = blocking(ClockShim::new).await?;
    let (ours, theirs) = (shim.clock("ours")?, shim.clock("theirs")?);
    let database = shim.clock("database")?;
    let start = |env: &Environment, clock: &Offset| -> anyhow::Result<Process> {
        let set = ["fetch.concurrency=8"];
        let mut command = env.command(&env.address, "poll,fetch,deliver", &set)?;
        command.envs(shim.variables(clock));
        env.spawn(command)
    };
    let (env, _server, clocks) = match setting.engine {
        // The machine that holds the store is the one that works.
        Engine::Sqlite => (Environment::new(setting, world).await?, None, vec![&ours]),
        Engine::Postgres => {
            let variables = shim.variables(&database);
            let (env, server) = Environment::on_server(setting, world, variables.to_vec()).await?;
            (env, Some(server), vec![&ours, &database])
        }
    };
    let mut processes = vec![start(&env, &ours)?];
    match setting.engine {
        Engine::Sqlite => processes.push(start(&env, &ours)?),
        Engine::Postgres => {
            theirs.set(-3600)?;
            processes.push(start(&env, &theirs)?);
        }
    }
    let (mut slowest, mut jumps) = (Duration::ZERO, 0);
    for clock in clocks {
        for seconds in JUMPS {
            env.wait_for_requests(15, setting.step_timeout()).await?;
            clock.set(seconds)?;
            jumps += 1;
            slowest = slowest.max(env.wait_for_requests(5, setting.step_timeout()).await?);
        }
    }
    env.wait_until_delivered(setting.work_timeout()).await?;
    drop(processes);
    let summary = LedgerSummary::of(&env);
    Ok(Measured::new(
        true,
        format!(
            "{jumps} jumps of an hour ahead and back; at most {:.1} s without a request (host delay {} ms)",
            slowest.as_secs_f64(),
            HOST_DELAY.as_millis()
        ),
    )
    .with_ledger(&summary)
    .in_time(slowest <= setting.lease()))
}
