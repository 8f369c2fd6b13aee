//! `tidings check` as a user calls it: probes that succeed, probes that fail, and
//! the exit code of each.

#![allow(clippy::unwrap_used)]

mod tidings;

use std::net::{IpAddr, Ipv4Addr};

use serde_json::Value;
use tidings::{Ended, Run};
use tidings_sim::{DnsAnswer, DnsServer};
use tidings_store::{SCHEMA_VERSION, Store, StoreOptions};

/// A name server that knows one name.
struct TestNetwork {
    runtime: tokio::runtime::Runtime,
    dns: DnsServer,
}

impl TestNetwork {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let known = |name: &str| name.trim_end_matches('.') == "known.example";
        let dns = runtime.block_on(DnsServer::start(move |name, _| match known(name) {
            true => DnsAnswer::Addresses(vec![IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7))]),
            false => DnsAnswer::NoSuchName,
        }));
        let dns = dns.unwrap();
        Self { runtime, dns }
    }

    fn check(&self, args: &[&str]) -> Run {
        self.check_name("known.example", args)
    }

    fn check_name(&self, name: &str, args: &[&str]) -> Run {
        let dns = format!("net.dns={}", self.dns.address());
        let usual = [
            "check",
            "--json",
            "--name",
            name,
            "--set",
            &dns,
            "--set",
            "server.bind=127.0.0.1:0",
        ];
        Run::new(&[&usual, args].concat())
    }
}

/// Whether a probe succeeded, and its message.
fn probe(ended: &Ended, what: &str) -> (bool, String) {
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["ok"], ended.code == 0, "{report}");
    let probes = report["probes"].as_array().unwrap();
    let found = probes.iter().find(|probe| probe["what"] == what);
    let found = found.unwrap_or_else(|| panic!("{what}: {report}"));
    (
        found["ok"].as_bool().unwrap(),
        found["said"].as_str().unwrap().to_owned(),
    )
}

#[test]
fn every_probe_that_succeeds_is_reported() {
    let network = TestNetwork::new();
    let run = network
        .check(&["--set", "demo.sites=3"])
        .file("tidings.toml", "net.auth_file = 'auth'\n")
        .file("auth", "a.example me:canary\n")
        .env("LOG_LEVEL", "warn");
    let ended = run.run();
    assert_eq!(ended.code, 0, "{} {}", ended.stdout, ended.stderr);
    let (_, set) = probe(&ended, "configuration");
    assert_eq!(
        set,
        "net.auth_file (tidings.toml), log.level (environment LOG_LEVEL), net.dns (flag --set), \
         server.bind (flag --set), demo.sites (flag --set); all others have their defaults"
    );
    for (what, said) in [
        ("data folder", "tidings-data can be created"),
        ("store", "does not exist yet; the first start creates it"),
        ("files", "auth read"),
        ("name servers", "known.example is 192.0.2.7"),
        ("server", "127.0.0.1:0 is free"),
        ("sink search, index", "holds 0 documents"),
    ] {
        let (is_ok, message) = probe(&ended, what);
        assert!(is_ok && message.contains(said), "{what}: {message}");
    }
    assert!(!ended.stdout.contains("canary"), "{}", ended.stdout);
}

#[test]
fn every_probe_that_fails_is_reported_with_the_next_step() {
    let network = TestNetwork::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap();
    // Connections are closed without a response.
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let bind = format!("server.bind={taken}");
    let sink = format!(
        "[sinks.hook]\nkind = 'webhook'\nurl = 'http://{taken}/'\nsecret_env = 'HOOK_SECRET'\n"
    );
    let ended = network
        .check_name(
            "unknown.example",
            &[
                "--set",
                &bind,
                "--set",
                "data_dir=/proc/none",
                "--set",
                "search.enabled=false",
                "--store",
                "postgres://nobody@127.0.0.1:9/none",
            ],
        )
        .file(
            "tidings.toml",
            &format!("net.proxy_file = 'proxies'\n{sink}"),
        )
        .file("proxies", "# none\nsocks5://me:canary@127.0.0.1:9\n")
        .env("HOOK_SECRET", "canary")
        .run();
    assert_eq!(ended.code, 1, "{} {}", ended.stdout, ended.stderr);
    for (what, said) in [
        ("data folder", "/proc/none is not writable"),
        ("store", "store unavailable"),
        ("name servers", "net.dns names other servers"),
        (
            "proxy socks5://127.0.0.1:9",
            "see its line in net.proxy_file",
        ),
        ("server", "is in use by another program; set server.bind"),
    ] {
        let (is_ok, message) = probe(&ended, what);
        assert!(!is_ok && message.contains(said), "{what}: {message}");
    }
    assert!(
        ended
            .stdout
            .contains("when it is fixed: tidings sink test hook"),
        "{}",
        ended.stdout
    );
    assert!(!ended.stdout.contains("canary"), "{}", ended.stdout);
}

#[test]
fn an_invalid_configuration_has_an_exit_code_of_its_own() {
    let network = TestNetwork::new();
    let missing = network.check(&["--set", "net.ca_file=missing.pem"]).run();
    assert_eq!(missing.code, 78, "{}", missing.stdout);
    let (is_ok, message) = probe(&missing, "files");
    assert!(
        !is_ok && message.contains("net.ca_file missing.pem"),
        "{message}"
    );

    let unknown = network.check(&["--set", "log.levle=warn"]).run();
    assert_eq!(unknown.code, 78);
    assert!(
        unknown.stderr.contains("did you mean \"log.level\"?"),
        "{}",
        unknown.stderr
    );

    let folder = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", folder.path().join("tidings.db").display());
    network.runtime.block_on(async {
        let store = Store::open(&address, &StoreOptions::default())
            .await
            .unwrap();
        let newer = SCHEMA_VERSION + 1;
        store.pretend_schema_version(newer).await.unwrap();
    });
    let newer = network.check(&["--store", &address]).run();
    assert_eq!(newer.code, 78, "{}", newer.stdout);
    let (is_ok, message) = probe(&newer, "store");
    assert!(!is_ok && message.contains("upgrade tidings"), "{message}");
}

#[test]
fn a_server_that_is_ours_is_no_error() {
    let network = TestNetwork::new();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    let bind = format!("server.bind={address}");
    drop(free);
    let args = ["run", "--data-dir", &data, "--set", &bind];
    let running = tidings::command(&args, folder.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while std::net::TcpStream::connect(address).is_err() {
        assert!(std::time::Instant::now() < deadline, "it does not start");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let ended = network.check(&["--data-dir", &data, "--set", &bind]).run();
    assert_eq!(tidings::terminate(running), Some(0));
    assert_eq!(ended.code, 0, "{}", ended.stdout);
    for (what, said) in [
        ("server", "is served by tidings"),
        ("store", "has schema version"),
    ] {
        let (_, message) = probe(&ended, what);
        assert!(message.contains(said), "{what}: {message}");
    }
}

#[test]
fn tls_files_of_the_server_are_checked() {
    let network = TestNetwork::new();
    let cert = ["--set", "server.tls_cert=cert.pem"];
    let half = network.check(&cert).run();
    assert_eq!(half.code, 78);
    assert!(half.stderr.contains("server.tls_key"), "{}", half.stderr);

    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (pem, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let both = [&cert[..], &["--set", "server.tls_key=key.pem"]].concat();
    let good = network.check(&both).file("cert.pem", &pem);
    let good = good.file("key.pem", &key).run();
    assert!(probe(&good, "server, TLS").0, "{}", good.stdout);
    let swapped = network.check(&both).file("cert.pem", &key);
    let swapped = swapped.file("key.pem", &pem).run();
    let (is_ok, said) = probe(&swapped, "server, TLS");
    assert!(!is_ok && said.contains("server.tls_cert"), "{said}");
    assert_eq!(swapped.code, 78, "the configuration has to change");
}

#[test]
fn a_blocked_sink_names_the_setting_of_sinks() {
    let network = TestNetwork::new();
    let sink =
        "[sinks.hook]\nkind = 'webhook'\nurl = 'http://127.0.0.1:9/'\nsecret_env = 'HOOK_SECRET'\n";
    let run = network.check(&[]).file("tidings.toml", sink);
    let run = run.env("HOOK_SECRET", "secret").run();
    assert!(run.stdout.contains("sink.allow opens"), "{}", run.stdout);
    assert!(!run.stdout.contains("egress.allow"), "{}", run.stdout);
}
