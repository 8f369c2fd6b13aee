//! A real NATS server with JetStream for tests: a throwaway process on a port of
//! its own choice, which is gone when the process that started it is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Waits for its standard input to end, which it does when the process that
/// holds the other side dies, however it dies; then ends the server.
const WATCHDOG: &str =
    "\"$0\" \"$@\" & server=$!; cat > /dev/null; kill -9 $server 2>/dev/null; wait $server";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A throwaway NATS server.
#[derive(Debug)]
pub struct NatsServer {
    folder: PathBuf,
    options: Vec<String>,
    watchdog: Option<Child>,
    port: u16,
}

impl NatsServer {
    /// Starts one, with further options of `nats-server`. An error of the kind
    /// `NotFound` says how to install it.
    pub fn start(options: &[&str]) -> io::Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("tidings-nats-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let mut server = Self {
            folder,
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            watchdog: None,
            port: 0,
        };
        server.restart()?;
        Ok(server)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends it as a crash would. What it stored stays.
    pub fn kill(&mut self) {
        if let Some(mut watchdog) = self.watchdog.take() {
            drop(watchdog.stdin.take());
            // It ends by itself now; how it ends does not matter.
            let _ = watchdog.wait();
        }
    }

    /// Starts it again after [`NatsServer::kill`], on another port.
    pub fn restart(&mut self) -> io::Result<()> {
        let binary = find_binary().ok_or_else(|| {
            let why = "nats-server was not found; install it with: apt-get install nats-server";
            io::Error::new(io::ErrorKind::NotFound, why)
        })?;
        let ports = self.folder.join("ports");
        let _ = fs::remove_dir_all(&ports);
        fs::create_dir_all(&ports)?;
        let log = fs::File::create(self.folder.join("log"))?;
        let child = Command::new("sh")
            .args(["-c", WATCHDOG])
            .arg(binary)
            .args([
                "--addr",
                "127.0.0.1",
                "--port",
                "-1",
                "--jetstream",
                "--store_dir",
            ])
            .arg(self.folder.join("data"))
            .arg("--ports_file_dir")
            .arg(&ports)
            .args(&self.options)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        self.watchdog = Some(child);
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if let Some(port) = port_in(&ports) {
                self.port = port;
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        Err(io::Error::other(format!(
            "nats-server did not start: {log}"
        )))
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
        // A folder that stays behind is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The server writes down where it listens when it does.
fn port_in(folder: &Path) -> Option<u16> {
    let file = fs::read_dir(folder).ok()?.flatten().next()?;
    let text = fs::read_to_string(file.path()).ok()?;
    let ports: Value = serde_json::from_str(&text).ok()?;
    let url = ports["nats"][0].as_str()?;
    url.rsplit(':').next()?.parse().ok()
}

fn find_binary() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).collect::<Vec<_>>();
    // Debian puts it where only root's PATH goes.
    let usual = ["/usr/sbin", "/usr/local/bin"].map(PathBuf::from);
    folders
        .into_iter()
        .chain(usual)
        .map(|folder| folder.join("nats-server"))
        .find(|binary| binary.exists())
}
