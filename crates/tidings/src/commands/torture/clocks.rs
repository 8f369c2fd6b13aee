//! Clocks that somebody sets while all are at work: those of the processes, and
//! that of the machine that keeps the store.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use tidings_sim::WorldConfig;

use super::books::Books;
use super::ground::{GAP, Ground, Process, aside, web};
use super::{Engine, Measured, Setting, can};

/// Answers for the clock of a process: the time, and what a file says more.
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
    int answer = real(id, now);
    if (id == CLOCK_REALTIME) now->tv_sec += offset();
    return answer;
}
int gettimeofday(struct timeval *now, void *zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
    int answer = real(now, zone);
    now->tv_sec += offset();
    return answer;
}
"#;

/// The seconds by which a clock is off, one after the other.
const JUMPS: [i32; 4] = [3600, 0, -3600, 0];

/// A place for clocks that can be set.
struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
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
            "the clock can't be compiled: {}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        Ok(Self { folder })
    }

    /// A clock that is right until it is set.
    fn clock(&self, name: &str) -> anyhow::Result<Offset> {
        let offset = Offset(self.folder.path().join(name));
        offset.set(0)?;
        Ok(offset)
    }

    /// What makes a process go by a clock.
    fn environment(&self, clock: &Offset) -> [(&'static str, PathBuf); 2] {
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
/// another one's is an hour off all the time; then the database's own jumps.
pub(super) async fn off(setting: Setting) -> anyhow::Result<Measured> {
    if !can("cc", &["--version"]) {
        return Ok(Measured::left_out("a C compiler (`cc`), to shift a clock"));
    }
    let world = WorldConfig {
        latency: true,
        ..web(setting.size(6, 20), setting.size(60, 300))
    };
    let workshop = aside(Workshop::new).await?;
    let (ours, theirs) = (workshop.clock("ours")?, workshop.clock("theirs")?);
    let database = workshop.clock("database")?;
    let start = |ground: &Ground, clock: &Offset| -> anyhow::Result<Process> {
        let set = ["fetch.at_once=8"];
        let mut command = ground.command(&ground.address, "poll,fetch,deliver", &set)?;
        command.envs(workshop.environment(clock));
        ground.spawn(command)
    };
    let (ground, _server, clocks) = match setting.engine {
        // The machine that keeps the store is the one that works.
        Engine::Sqlite => (Ground::new(setting, world).await?, None, vec![&ours]),
        Engine::Postgres => {
            let environment = workshop.environment(&database);
            let (ground, server) = Ground::on_server(setting, world, environment.to_vec()).await?;
            (ground, Some(server), vec![&ours, &database])
        }
    };
    let mut processes = vec![start(&ground, &ours)?];
    match setting.engine {
        Engine::Sqlite => processes.push(start(&ground, &ours)?),
        Engine::Postgres => {
            theirs.set(-3600)?;
            processes.push(start(&ground, &theirs)?);
        }
    }
    let (mut slowest, mut jumps) = (Duration::ZERO, 0);
    for clock in clocks {
        for seconds in JUMPS {
            ground.requests(15, setting.soon()).await?;
            clock.set(seconds)?;
            jumps += 1;
            slowest = slowest.max(ground.requests(5, setting.soon()).await?);
        }
    }
    ground.finish(setting.late()).await?;
    drop(processes);
    let books = Books::of(&ground);
    Ok(Measured::new(
        books.are_right(),
        format!(
            "{jumps} jumps of an hour ahead and back; never more than {:.1} s without a request (gap {} ms); {books}",
            slowest.as_secs_f64(),
            GAP.as_millis()
        ),
    )
    .in_time(slowest <= setting.lease()))
}
