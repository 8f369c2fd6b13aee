//! Real PostgreSQL servers for tests and benchmarks: throwaway clusters on a
//! unix socket, started from the installed server binaries as a user that is
//! not root, and gone when the process that started them is.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::UnixStream;
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
    /// Listens on loopback too, if it has one.
    port: Option<u16>,
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
        let mut server = Self::new(settings)?;
        server.environment = environment.to_vec();
        server.create_cluster()?;
        server.start_process(false)?;
        Ok(server)
    }

    /// The same on a port of 127.0.0.1 too, with files such as `pg_hba.conf` and
    /// `server.key` in its data folder.
    pub fn start_on_tcp(
        settings: &[&'static str],
        files: &[(&'static str, &str)],
    ) -> io::Result<Self> {
        let mut server = Self::new(settings)?;
        let free = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        server.port = Some(free.local_addr()?.port());
        server.create_cluster()?;
        for (name, content) in files {
            let path = server.data().join(name);
            fs::write(&path, content)?;
            // The server refuses a key that others can read.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
            server.give_away(&path)?;
        }
        drop(free);
        server.start_process(false)?;
        Ok(server)
    }

    /// A second server that follows this one, and that each commit waits for.
    pub fn start_synchronous_replica(&self) -> io::Result<Self> {
        let mut replica = Self::new(&self.settings)?;
        let mut copy = self.command("pg_basebackup");
        copy.arg("-h").arg(&self.folder);
        copy.args(["-U", "tidings", "-X", "stream", "-R", "--no-sync"]);
        finished(copy.args(["--checkpoint=fast", "-D"]).arg(replica.data()))?;
        replica.start_process(false)?;
        self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")?;
        self.execute("SELECT pg_reload_conf()")?;
        Ok(replica)
    }

    /// Makes a replica the primary.
    pub fn promote(&self) -> io::Result<()> {
        let mut promote = self.command("pg_ctl");
        finished(promote.args(["promote", "-w", "-D"]).arg(self.data()))
    }

    /// Executes a statement as the superuser `tidings`.
    pub fn execute(&self, sql: &str) -> io::Result<()> {
        let mut psql = self.command("psql");
        psql.arg("-h").arg(&self.folder);
        psql.args(["-U", "tidings", "-d", "postgres", "-X", "-q"]);
        psql.args(["-v", "ON_ERROR_STOP=1", "-p"]);
        finished(psql.arg(self.port_number()).args(["-c", sql]))
    }

    fn new(settings: &[&'static str]) -> io::Result<Self> {
        let binaries =
            find_binaries().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, INSTALL))?;
        let server = Self {
            folder: fresh_folder("postgres")?,
            binaries,
            settings: settings.to_vec(),
            environment: Vec::new(),
            port: None,
            watchdog: None,
        };
        server.give_away(&server.folder)?;
        Ok(server)
    }

    fn create_cluster(&self) -> io::Result<()> {
        let mut initdb = self.command("initdb");
        initdb.args([
            "--username=tidings",
            "--auth=trust",
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "-D",
        ]);
        finished(initdb.arg(self.data()))
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
        let host = socket_host(&self.folder);
        match self.port {
            Some(port) => format!("postgres://tidings@{host}:{port}/{database}"),
            None => format!("postgres://tidings@{host}/{database}"),
        }
    }

    /// The folder of its socket, as a host in an address.
    pub fn host(&self) -> String {
        socket_host(&self.folder)
    }

    /// The port of a server that listens on loopback.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    fn port_number(&self) -> String {
        self.port.unwrap_or(5432).to_string()
    }

    /// The socket on which it listens.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port_number()))
    }

    /// Creates an empty database and returns its address.
    pub fn create_database(&self) -> io::Result<String> {
        let name = fresh_name();
        let mut createdb = self.command("createdb");
        finished(
            createdb
                .arg("-h")
                .arg(&self.folder)
                .args(["-p", &self.port_number()])
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
        let listen = match self.port {
            Some(_) => "listen_addresses=127.0.0.1",
            None => "listen_addresses=",
        };
        watchdog.arg("-k").arg(&self.folder).args([
            "-p",
            &self.port_number(),
            "-c",
            listen,
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
        if let Some((user, group)) = other_user() {
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
                .args(["-p", &self.port_number()])
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
        if let Some((user, group)) = other_user() {
            command.uid(user).gid(group);
        }
        command
    }

    fn give_away(&self, path: &Path) -> io::Result<()> {
        match other_user() {
            Some((user, group)) => chown(path, Some(user), Some(group)),
            None => Ok(()),
        }
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

/// PgBouncer in transaction mode in front of a server. Each transaction goes to the
/// server connection that has waited longest, so that two in a row rarely share one.
#[derive(Debug)]
pub struct PgBouncer {
    folder: PathBuf,
    watchdog: Child,
}

impl PgBouncer {
    /// Starts it with two server connections; `None` where it is not installed.
    pub fn start(server: &PostgresServer) -> io::Result<Option<Self>> {
        let found = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"];
        let Some(program) = found.iter().find(|path| Path::new(path).exists()) else {
            return Ok(None);
        };
        let folder = fresh_folder("pgbouncer")?;
        let (path, to) = (folder.display(), server.folder.display());
        let port = server.port_number();
        fs::write(folder.join("users"), "\"tidings\" \"\"\n")?;
        fs::write(
            folder.join("pgbouncer.ini"),
            format!(
                "[databases]\n* = host={to} port={port}\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n\
                 unix_socket_dir = {path}\nauth_type = trust\nauth_file = {path}/users\npool_mode = transaction\n\
                 default_pool_size = 2\nmin_pool_size = 2\nserver_round_robin = 1\nmax_client_conn = 100\n"
            ),
        )?;
        let log = fs::File::create(folder.join("log"))?;
        let mut watchdog = Command::new("sh");
        // A shell starts it deaf to QUIT.
        watchdog.args(["-c", &WATCHDOG.replace("QUIT", "TERM"), program]);
        watchdog.arg(folder.join("pgbouncer.ini")).current_dir("/");
        watchdog.stdin(Stdio::piped()).stdout(log.try_clone()?);
        if let Some((user, group)) = other_user() {
            for path in [
                &folder,
                &folder.join("users"),
                &folder.join("pgbouncer.ini"),
            ] {
                chown(path, Some(user), Some(group))?;
            }
            watchdog.uid(user).gid(group);
        }
        let watchdog = watchdog.stderr(log).spawn()?;
        let bouncer = Self { folder, watchdog };
        let deadline = Instant::now() + Duration::from_secs(30);
        // The file of the socket is there before it accepts connections.
        while UnixStream::connect(bouncer.folder.join(".s.PGSQL.6432")).is_err() {
            if Instant::now() > deadline {
                let log = fs::read_to_string(bouncer.folder.join("log"))?;
                return Err(io::Error::other(format!("PgBouncer did not start: {log}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(bouncer))
    }

    /// The address of a database of the server behind it.
    pub fn address(&self, database: &str) -> String {
        let host = socket_host(&self.folder);
        format!("postgres://tidings@{host}:6432/{database}")
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        // It ends by itself now; how it ends does not matter.
        let _ = self.watchdog.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// PostgreSQL refuses to run as root: then it runs as its own user, or as nobody.
fn other_user() -> Option<(u32, u32)> {
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

/// The folder of a socket, as a host in an address.
fn socket_host(folder: &Path) -> String {
    folder.display().to_string().replace('/', "%2F")
}

fn fresh_folder(of: &str) -> io::Result<PathBuf> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("tidings-{of}-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder)?;
    Ok(folder)
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
