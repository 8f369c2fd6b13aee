//! The server as `tidings` starts it: it prints its address and the first token,
//! others are created and revoked, and a port in use is named. Its connections leave
//! file descriptors for the crawler, it has TLS of its own, and denials are logged.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use tidings::{Run, command};

fn status(address: &str, path: &str, token: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn it_prints_its_address_and_tokens_are_created_and_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["run", "--json", "--set", "server.bind=127.0.0.1:0"];
    let mut running = command(&args, folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let said: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let url = said["dashboard"].as_str().unwrap();
    let address = url
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .to_owned();
    let first = said["token"].as_str().unwrap();
    assert_eq!(status(&address, "/api/v1/tokens", first), 200);
    assert_eq!(status(&address, "/api/v1/tokens", "wrong"), 401);

    let call = |args: &[&str]| {
        let output = command(args, folder.path()).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let secret = call(&["token", "create", "ci"]).trim().to_owned();
    assert_eq!(status(&address, "/api/v1/frontier", &secret), 200);
    assert_eq!(
        status(&address, "/api/v1/tokens", &secret),
        403,
        "a viewer by default"
    );
    let listed = call(&["token", "ls"]);
    assert!(
        listed.contains("ci") && !listed.contains("tdg_"),
        "{listed}"
    );
    let tokens: Value = serde_json::from_str(&call(&["token", "ls", "--json"])).unwrap();
    let token = tokens
        .as_array()
        .unwrap()
        .iter()
        .find(|token| token["name"] == "ci")
        .unwrap();
    call(&["token", "revoke", &token["token_id"].to_string()]);
    // The check of a token is cached for a second.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(status(&address, "/api/v1/frontier", &secret), 401);
    running.kill().unwrap();
    running.wait().unwrap();
}

#[test]
fn a_port_in_use_is_named_with_the_setting() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let bind = format!("server.bind={}", taken.local_addr().unwrap());
    let ended = Run::new(&["run", "--set", &bind]).run();
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("server.bind"), "{}", ended.stderr);
}

/// `tidings run` with its server on a port of its own.
struct Running {
    child: Child,
    /// With the scheme.
    url: String,
    address: String,
    token: String,
    stderr: ChildStderr,
    folder: tempfile::TempDir,
}

impl Running {
    /// `limit` is the shell's `ulimit` of the process.
    fn start(limit: &str, settings: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("{limit}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command
            .args([
                "-c",
                &script,
                env!("CARGO_BIN_EXE_tidings"),
                "run",
                "--json",
            ])
            .args(["--set", "server.bind=127.0.0.1:0"])
            .args(["--set", "log.format=json"])
            .current_dir(folder.path())
            .env_clear()
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for setting in settings {
            command.args(["--set", setting]);
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let url = said["dashboard"].as_str().unwrap().to_owned();
        let (_, address) = url.trim_end_matches('/').split_once("://").unwrap();
        Self {
            address: address.to_owned(),
            token: said["token"].as_str().unwrap().to_owned(),
            stderr: child.stderr.take().unwrap(),
            url,
            child,
            folder,
        }
    }

    fn post(&self, path: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    /// Stops it; what it logged.
    fn stop(mut self) -> String {
        tidings::terminate(self.child);
        let mut log = String::new();
        self.stderr.read_to_string(&mut log).unwrap();
        log
    }
}

#[test]
fn half_open_connections_leave_file_descriptors_for_the_crawler() {
    let site = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = site.local_addr().unwrap();
    let running = Running::start(
        "ulimit -n 256",
        &[
            "egress.allow=127.0.0.0/8".to_owned(),
            format!("egress.ports={}", at.port()),
        ],
    );
    let half_open = || {
        let mut stream = TcpStream::connect(&running.address).unwrap();
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: loc")
            .unwrap();
        stream
    };
    let open: Vec<TcpStream> = (0..400).map(|_| half_open()).collect();
    assert_eq!(status(&running.address, "/healthz", ""), 200);
    // A request to a site is made while they are open.
    let (asked, requests) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        while let Ok((_stream, _)) = site.accept() {
            if asked.send(()).is_err() {
                return;
            }
        }
    });
    let headers = format!(
        "authorization: Bearer {}\r\ncontent-type: application/json\r\n",
        running.token
    );
    let body = format!("{{\"url\":\"http://{at}/\"}}");
    let response = running.post("/api/v1/sources/discover", &headers, &body);
    let request = requests.recv_timeout(Duration::from_secs(60));
    assert!(request.is_ok(), "no socket for a request: {response}");
    drop(open);
    let log = running.stop();
    assert!(
        log.contains("server.max_connections lowered") && log.contains("\"max\":128"),
        "{log}"
    );
}

#[test]
fn it_serves_tls_with_a_certificate_and_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let cert = file("cert.pem", &made.cert.pem());
    let key = file("key.pem", &made.signing_key.serialize_pem());
    let running = Running::start(
        "true",
        &[
            format!("server.tls_cert={cert}"),
            format!("server.tls_key={key}"),
        ],
    );
    assert!(running.url.starts_with("https://"), "{}", running.url);
    let (_, port) = running.address.split_once(':').unwrap();
    let url = format!("{}healthz", running.url);
    let settings = [
        format!("net.ca_file={cert}"),
        "egress.allow=127.0.0.0/8".to_owned(),
        format!("egress.ports={port}"),
    ];
    let mut args = vec!["fetch", url.as_str()];
    args.extend(
        settings
            .iter()
            .flat_map(|setting| ["--set", setting.as_str()]),
    );
    let fetched = command(&args, running.folder.path()).output().unwrap();
    let shown = String::from_utf8_lossy(&fetched.stdout).into_owned();
    assert!(shown.contains("200 over HTTP/1.1"), "{shown}{fetched:?}");
    running.stop();
}

#[test]
fn a_form_without_a_login_is_logged_as_denied() {
    let running = Running::start("true", &[]);
    let response = running.post("/sources", "", "");
    assert!(response.starts_with("HTTP/1.1 303"), "{response}");
    let log = running.stop();
    let audit = log
        .lines()
        .find(|line| line.contains("\"path\":\"/sources\""));
    let audit = audit.unwrap_or_else(|| panic!("no audit entry: {log}"));
    assert!(
        audit.contains("\"outcome\":\"denied\"") && audit.contains("\"status\":401"),
        "{audit}"
    );
}

/// Overwrites the start of the last page of an index that has no rows, so that the
/// program still starts.
fn damage_empty_index(path: &std::path::Path) {
    const PAGE_BYTES: usize = 4096;
    const LEAF_OF_INDEX: u8 = 0x0a;
    let mut file = std::fs::read(path).unwrap();
    let is_empty_index = |page: &[u8]| page[0] == LEAF_OF_INDEX && page[3..5] == [0, 0];
    let last = file.chunks(PAGE_BYTES).rposition(is_empty_index).unwrap();
    let start = last * PAGE_BYTES;
    file[start..start + 64].fill(0xff);
    std::fs::write(path, file).unwrap();
}

#[test]
fn a_damaged_store_is_not_ready_and_check_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let call = |args: &[&str]| {
        let output = command(args, folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), said)
    };
    assert!(call(&["frontier", "add", "https://a.example/story"]).0);
    let bind = "server.bind=127.0.0.1:0";
    let (ok, said) = call(&["check", "--name", "localhost", "--set", bind]);
    assert!(ok && said.contains("is intact"), "{said}");

    let ready = || {
        let args = ["run", "--json", "--set", bind];
        let mut running = command(&args, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
        let said: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let url = said["dashboard"].as_str().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        // The check at the start may still be running.
        let mut last = 0;
        for _ in 0..100 {
            last = status(address, "/readyz", "");
            if last != 200 {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let alive = status(address, "/healthz", "");
        tidings::terminate(running);
        (last, alive)
    };
    assert_eq!(ready(), (200, 200));

    damage_empty_index(&folder.path().join("tidings-data/tidings.db"));
    let (ok, said) = call(&["check", "--name", "localhost", "--set", bind]);
    assert!(!ok && said.contains("corrupt file"), "{said}");
    assert!(said.contains("restore a backup"), "{said}");
    assert_eq!(ready(), (503, 200));
}
