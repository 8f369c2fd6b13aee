//! Real PostgreSQL servers for tests and benchmarks: throwaway clusters on a
//! unix socket, started from the installed server binaries as a user that is
//! not root, and gone when the process that started them is.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Says how to get a server when there is none.
const INSTALL: &str = "PostgreSQL's server binaries are needed and were not found; install them with: \
     apt-get install postgresql (or name a server with TIDINGS_TEST_POSTGRES=postgres://…)";

/// Waits for its standard input to end, which it does when the process that
/// holds the other side dies, however it dies; then stops the server.
const WATCHDOG: &str = "\"$0\" \"$@\" & server=$!; cat > /dev/null; kill -QUIT $server 2>/dev/null; wait $server; \
     if [ -n \"$REMOVE\" ]; then rm -rf \"$REMOVE\"; fi";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A throwaway PostgreSQL server.
#[derive(Debug)]
pub struct PostgresServer {
    folder: PathBuf,
    binaries: PathBuf,
    settings: Vec<&'static str>,
    environment: Vec<(&'static str, PathBuf)>,
    watchdog: Option<Child>,
}

impl PostgresServer {
    /// Creates a cluster and starts it. `settings` are `name=value` pairs.
    pub fn start(settings: &[&'static str]) -> io::Result<Self> {
        Self::start_with(settings, &[])
    }

    /// The same, with variables in the server's environment.
    pub fn start_with(
        settings: &[&'static str],
        environment: &[(&'static str, PathBuf)],
    ) -> io::Result<Self> {
        let binaries =
            find_binaries().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, INSTALL))?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("tidings-postgres-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let mut server = Self {
            folder,
            binaries,
            settings: settings.to_vec(),
            environment: environment.to_vec(),
            watchdog: None,
        };
        if let Some((user, group)) = server.other_user() {
            chown(&server.folder, Some(user), Some(group))?;
        }
        let mut initdb = server.command("initdb");
        initdb.args([
            "--username=tidings",
            "--auth=trust",
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "-D",
        ]);
        finished(initdb.arg(server.data()))?;
        server.start_process(false)?;
        Ok(server)
    }

    /// Which server would be started, as its binary says: "15.4 (Debian …)".
    pub fn version() -> io::Result<String> {
        let binaries =
            find_binaries().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, INSTALL))?;
        let output = Command::new(binaries.join("postgres"))
            .arg("--version")
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let version = said.trim().trim_start_matches("postgres (PostgreSQL) ");
        Ok(version.to_owned())
    }

    /// The address of a database on this server.
    pub fn address(&self, database: &str) -> String {
        let host = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://tidings@{host}/{database}")
    }

    /// The socket on which it listens, and its only one.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    /// Creates an empty database and returns its address.
    pub fn create_database(&self) -> io::Result<String> {
        let name = fresh_name();
        let mut createdb = self.command("createdb");
        finished(
            createdb
                .arg("-h")
                .arg(&self.folder)
                .args(["-U", "tidings", &name]),
        )?;
        Ok(self.address(&name))
    }

    /// Kills the server as a crash would: no shutdown.
    pub fn kill(&mut self) -> io::Result<()> {
        let lines = fs::read_to_string(self.data().join("postmaster.pid"))?;
        let pid = lines.lines().next().unwrap_or_default().to_owned();
        let children = children_of(&pid);
        finished(Command::new("sh").args(["-c", &format!("kill -9 {pid}")]))?;
        self.end_watchdog();
        // They notice by themselves, and no server starts beside them.
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline && children.iter().any(|child| child.exists()) {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Starts the server again after [`PostgresServer::kill`].
    pub fn restart(&mut self) -> io::Result<()> {
        self.start_process(false)
    }

    fn start_process(&mut self, remove_at_end: bool) -> io::Result<()> {
        let mut watchdog = Command::new("sh");
        watchdog
            .args(["-c", WATCHDOG])
            .arg(self.binaries.join("postgres"))
            .arg("-D")
            .arg(self.data());
        watchdog.arg("-k").arg(&self.folder).args([
            "-c",
            "listen_addresses=",
            "-c",
            "max_connections=200",
        ]);
        for setting in &self.settings {
            watchdog.args(["-c", setting]);
        }
        watchdog.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if remove_at_end {
            watchdog.env("REMOVE", &self.folder);
        }
        let log = fs::File::create(
            self.folder
                .join(format!("log-{}", NEXT.fetch_add(1, Ordering::Relaxed))),
        )?;
        watchdog
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .current_dir("/");
        if let Some((user, group)) = self.other_user() {
            watchdog.uid(user).gid(group);
        }
        self.watchdog = Some(watchdog.spawn()?);
        self.wait_until_ready()
    }

    fn wait_until_ready(&self) -> io::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let mut ready = self.command("pg_isready");
            ready
                .arg("-h")
                .arg(&self.folder)
                .args(["-U", "tidings", "-q"]);
            if ready.status()?.success() {
                return Ok(());
            }
            if Instant::now() > deadline {
                let why = format!(
                    "PostgreSQL did not start; its log is in {}",
                    self.folder.display()
                );
                return Err(io::Error::other(why));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.binaries.join(program));
        command
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if let Some((user, group)) = self.other_user() {
            command.uid(user).gid(group);
        }
        command
    }

    /// PostgreSQL refuses to run as root: then it runs as its own user, or as
    /// nobody.
    fn other_user(&self) -> Option<(u32, u32)> {
        let me = fs::metadata("/proc/self").ok()?;
        if me.uid() != 0 {
            return None;
        }
        let users = fs::read_to_string("/etc/passwd").ok()?;
        let user = |name: &str| {
            let line = users
                .lines()
                .find(|line| line.split(':').next() == Some(name))?;
            let mut fields = line.split(':').skip(2);
            Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
        };
        user("postgres").or_else(|| user("nobody"))
    }

    fn end_watchdog(&mut self) {
        if let Some(mut watchdog) = self.watchdog.take() {
            drop(watchdog.stdin.take());
            // It ends by itself now; how it ends does not matter.
            let _ = watchdog.wait();
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.end_watchdog();
        // A folder that stays behind is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The address of a fresh database: on the server that `TIDINGS_TEST_POSTGRES`
/// names, else on one that all tests of this process share.
pub fn postgres_database() -> io::Result<String> {
    if let Ok(address) = std::env::var("TIDINGS_TEST_POSTGRES") {
        let name = fresh_name();
        let createdb = find_binaries().map_or_else(
            || PathBuf::from("createdb"),
            |folder| folder.join("createdb"),
        );
        finished(
            Command::new(createdb)
                .arg(format!("--maintenance-db={address}"))
                .arg(&name),
        )?;
        let server = address
            .split('?')
            .next()
            .unwrap_or(&address)
            .trim_end_matches('/');
        let server = server
            .rsplit_once('/')
            .filter(|(start, _)| !start.ends_with('/'))
            .map_or(server, |(start, _)| start);
        return Ok(format!("{server}/{name}"));
    }
    static SHARED: OnceLock<Result<PostgresServer, String>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| {
        let server = PostgresServer::start(&["fsync=off", "synchronous_commit=off"]);
        server
            .and_then(PostgresServer::until_the_process_ends)
            .map_err(|error| error.to_string())
    });
    match shared {
        Ok(server) => server.create_database(),
        Err(error) => Err(io::Error::other(error.as_str())),
    }
}

impl PostgresServer {
    /// A server in a static is never dropped: its watchdog cleans up instead.
    fn until_the_process_ends(mut self) -> io::Result<Self> {
        self.end_watchdog();
        self.start_process(true)?;
        Ok(self)
    }
}

fn fresh_name() -> String {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("tidings_{}_{number}", std::process::id())
}

/// Where a program of PostgreSQL is, its clients included.
pub fn postgres_program(name: &str) -> Option<PathBuf> {
    find_binaries()
        .map(|folder| folder.join(name))
        .filter(|program| program.exists())
}

/// Where the server's programs are: `pg_config` knows, else Debian's folder by
/// version, else the PATH.
fn find_binaries() -> Option<PathBuf> {
    let is_complete =
        |folder: &Path| folder.join("initdb").exists() && folder.join("postgres").exists();
    let config = Command::new("pg_config")
        .arg("--bindir")
        .stderr(Stdio::null())
        .output()
        .ok();
    let configured =
        config.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|entries| {
            entries
                .flatten()
                .map(|entry| entry.path().join("bin"))
                .collect()
        })
        .unwrap_or_default();
    versions.sort();
    versions.reverse();
    let on_path =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    configured
        .into_iter()
        .chain(versions)
        .chain(on_path.unwrap_or_default())
        .find(|folder| is_complete(folder))
}

/// The processes that a process has started, as folders that go with them.
fn children_of(pid: &str) -> Vec<PathBuf> {
    let list = format!("/proc/{pid}/task/{pid}/children");
    let list = fs::read_to_string(list).unwrap_or_default();
    let folder = |child: &str| Path::new("/proc").join(child);
    list.split_whitespace().map(folder).collect()
}

fn finished(command: &mut Command) -> io::Result<()> {
    let output = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "{command:?} failed: {}",
        why.trim()
    )))
}
