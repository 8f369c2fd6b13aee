//! Documents to sinks and back by search, as a user does it.

#![allow(clippy::unwrap_used)]

mod tidings;

use serde_json::Value;
use tidings::{Ended, Run};
use tidings_sim::{FakeElasticsearch, FakeFirestore, FakeGorse, SimClock, SimServer, WorldConfig};

struct Setup {
    runtime: tokio::runtime::Runtime,
    sim: SimServer,
    folder: tempfile::TempDir,
    /// The environment of every process.
    environment: Vec<(&'static str, String)>,
}

impl Setup {
    /// With a configuration file of its own.
    fn new(sinks: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let config = WorldConfig {
            sites: 2,
            articles_per_site: 8,
            crawl_delay: std::time::Duration::from_millis(20),
            feed_window: Some(200),
            ..WorldConfig::new(5)
        };
        let start = SimServer::start(config, SimClock::real(), "127.0.0.1:0");
        let sim = runtime.block_on(start).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = format!(
            "data_dir = '{}'\n[server]\nbind = '127.0.0.1:0'\n[egress]\nallow = '127.0.0.0/8'\nports = '{}'\n[fetch]\nhost_delay_ms = 20\n[sink]\nallow = '127.0.0.0/8'\n{sinks}",
            folder.path().display(),
            sim.address().port()
        );
        std::fs::write(folder.path().join("tidings.toml"), file).unwrap();
        Self {
            runtime,
            sim,
            folder,
            environment: Vec::new(),
        }
    }

    fn run(&self, args: &[&str]) -> Ended {
        let config = self
            .folder
            .path()
            .join("tidings.toml")
            .display()
            .to_string();
        let run = Run::new(&[args, &["--config", &config]].concat());
        let environment = self.environment.iter();
        environment
            .fold(run, |run, (name, value)| run.env(name, value))
            .run()
    }

    fn ok(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert_eq!(ended.code, 0, "{args:?}: {}{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    fn json(&self, args: &[&str]) -> Value {
        let text = self.ok(&[args, &["--json"]].concat());
        serde_json::from_str(text.lines().next().unwrap()).unwrap()
    }

    /// Adds the sites and runs until all deliveries are completed.
    fn fetch_and_deliver(&self) -> i64 {
        self.fetch_and_deliver_until(|| true)
    }

    /// The same, and until something else has happened, too.
    fn fetch_and_deliver_until(&self, has_happened: impl Fn() -> bool) -> i64 {
        for site in self.sim.world().sites() {
            self.ok(&["add", &site.home(), "--delay", "0"]);
        }
        let config = self
            .folder
            .path()
            .join("tidings.toml")
            .display()
            .to_string();
        let running = tidings::command(&["run", "--config", &config], self.folder.path())
            .envs(self.environment.iter().cloned())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(90);
        let fetched = loop {
            assert!(std::time::Instant::now() < deadline, "it takes too long");
            std::thread::sleep(std::time::Duration::from_millis(300));
            let stats = self.json(&["frontier", "stats"]);
            let count = |status: &str| stats["by_status"][status].as_i64().unwrap();
            let is_done = count("pending") + count("fetching") == 0 && count("fetched") > 10;
            let states = self.ok(&["sink", "ls", "--json"]);
            let is_pending =
                |line: &str| serde_json::from_str::<Value>(line).unwrap()["waiting"] != 0;
            if is_done && !states.lines().any(is_pending) && has_happened() {
                break count("fetched");
            }
        };
        assert_eq!(tidings::terminate(running), Some(0));
        fetched
    }
}

#[test]
fn a_sink_is_disabled_enabled_moved_and_removed() {
    let setup = Setup::new("");
    let fetched = setup.fetch_and_deliver();
    let state = || setup.json(&["sink", "ls"]);
    let node = state()["node"].clone();
    let file = std::fs::read_to_string(setup.folder.path().join("node-id")).unwrap();
    assert_eq!(node, file.trim());
    setup.ok(&["sink", "disable", "search"]);
    assert_eq!(state()["enabled"], false);
    let refused = setup.run(&["sink", "replay", "search"]);
    assert!(
        refused.stderr.contains("tidings sink enable search"),
        "{}",
        refused.stderr
    );
    let doctor = setup.run(&["doctor"]);
    assert!(
        doctor
            .stdout
            .contains("search is configured here, but disabled"),
        "{}",
        doctor.stdout
    );
    // All were fetched within minutes before it was disabled.
    let enabled = setup.json(&["sink", "enable", "search"]);
    assert_eq!(enabled["queued"], fetched);
    assert_eq!(state()["enabled"], true);

    let refused = setup.run(&["sink", "move", "search"]);
    assert!(
        refused.stderr.contains("by this node already"),
        "{}",
        refused.stderr
    );
    std::fs::write(setup.folder.path().join("node-id"), "beta-1").unwrap();
    let refused = setup.run(&["sink", "rebuild", "search"]);
    assert!(
        refused.stderr.contains("is served by"),
        "{}",
        refused.stderr
    );
    assert_eq!(setup.json(&["sink", "move", "search"])["from"], node);
    assert_eq!(state()["node"], "beta-1");

    let refused = setup.run(&["sink", "rm", "search"]);
    assert!(refused.stderr.contains("--yes"), "{}", refused.stderr);
    setup.ok(&["sink", "rm", "search", "--yes"]);
    let gone = setup.run(&["sink", "enable", "search"]);
    assert!(
        gone.stderr.contains("no sink named \"search\""),
        "{}",
        gone.stderr
    );
    let log = setup.ok(&["token", "log"]);
    for action in ["Disable sink", "Enable sink", "Move sink", "Remove sink"] {
        assert!(log.contains(action), "{log}");
    }
}

#[test]
fn fetched_documents_can_be_searched() {
    let setup = Setup::new("");
    let fetched = setup.fetch_and_deliver();
    let state = setup.json(&["sink", "ls"]);
    assert_eq!(state["sink"], "search");
    let all = setup.json(&["search", "--limit", "1000"]);
    assert_eq!(all["total"].as_i64(), state["delivered"].as_i64());
    assert!(all["total"].as_i64().unwrap() <= fetched);
    let title = all["hits"][0]["title"].as_str().unwrap();
    let found = setup.ok(&["search", &format!("\"{title}\"")]);
    assert!(found.contains(title), "{found}");
    assert!(setup.ok(&["search", "zzzunheardof"]).ends_with("0 found\n"));
    assert_eq!(setup.json(&["search", "--language", "xx"])["total"], 0);

    // Deleted, it is rebuilt from the documents.
    std::fs::remove_dir_all(setup.folder.path().join("search")).unwrap();
    let ended = setup.run(&["search", "x"]);
    assert!(
        ended.stderr.contains("tidings sink rebuild search"),
        "{}",
        ended.stderr
    );
    assert_eq!(
        setup.json(&["sink", "rebuild", "search"])["rebuilt"],
        all["total"]
    );
    assert_eq!(setup.json(&["search"])["total"], all["total"]);
}

#[test]
fn a_sink_is_tested_replayed_and_explained() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let index = runtime.block_on(FakeElasticsearch::start()).unwrap();
    let setup = Setup::new(&format!(
        "[search]\nenabled = false\n[sinks.index]\nkind = 'elasticsearch'\nurl = '{}'\n",
        index.url()
    ));
    let report = setup.ok(&["sink", "test", "index"]);
    assert!(report.starts_with("ok "), "{report}");
    index.set_down(true);
    let report = setup.run(&["sink", "test", "index"]);
    assert_eq!(report.code, 1);
    assert!(report.stdout.contains("failed "), "{}", report.stdout);
    index.set_down(false);

    setup.fetch_and_deliver();
    let delivered = setup.json(&["sink", "ls"])["delivered"].as_i64().unwrap();
    assert_eq!(index.documents("raw_content").len() as i64, delivered);
    assert_eq!(
        setup.json(&["sink", "replay", "index"])["replayed"].as_i64(),
        Some(delivered)
    );
    assert_eq!(
        setup.json(&["sink", "replay", "index", "--since", "2100-01-01T00:00:00Z"])["replayed"],
        0
    );
    assert_eq!(setup.ok(&["sink", "dead", "index"]), "");
    let retried = setup.json(&["sink", "retry", "index"]);
    assert_eq!(retried["retried"], 0);
    assert_eq!(retried["missing_documents"], 0);

    let ended = setup.run(&["sink", "test", "indx"]);
    assert!(
        ended.stderr.contains("configured are: index"),
        "{}",
        ended.stderr
    );
    let _keep = &setup.runtime;
}

#[test]
fn gorse_and_firestore_share_ids_and_a_run_is_reported() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let gorse = runtime.block_on(FakeGorse::start()).unwrap();
    let firestore = runtime.block_on(FakeFirestore::start()).unwrap();
    let mut setup = Setup::new(&format!(
        "[search]\nenabled = false\n[collect]\ninterval_minutes = 600\n\
         [sinks.recommender]\nkind = 'gorse'\nurl = '{}'\n\
         [sinks.content]\nkind = 'firestore'\nproject = 'demo'\n",
        gorse.url()
    ));
    setup.environment = vec![("FIRESTORE_EMULATOR_HOST", firestore.host())];
    let state = || firestore.documents("last_collection_run").remove("state");
    setup.fetch_and_deliver_until(|| state().is_some());

    let items: Vec<String> = gorse.items().into_keys().collect();
    let documents: Vec<String> = firestore.documents("content").into_keys().collect();
    assert_eq!(items, documents);
    assert!(items.len() > 10 && items.iter().all(|id| id.len() == 20));

    let number = |fields: &Value, name: &str| -> u64 {
        let text = fields[name]["integerValue"].as_str();
        text.unwrap_or_else(|| panic!("{name}: {fields}"))
            .parse()
            .unwrap()
    };
    let latest = firestore
        .documents("collection_metrics")
        .remove("latest")
        .unwrap();
    let latest = Value::Object(latest);
    let sites = setup.sim.world().sites().count();
    assert_eq!(number(&latest, "feedsAttempted"), sites as u64);
    let state = Value::Object(state().unwrap());
    let stats = state["perSourceStats"]["mapValue"]["fields"].as_object();
    let stats = stats.unwrap();
    assert_eq!(stats.len(), sites);
    let (mut succeeded, mut items) = (0, 0);
    for source in stats.values() {
        let fields = &source["mapValue"]["fields"];
        assert_eq!(number(fields, "attempted"), 1);
        succeeded += number(fields, "succeeded");
        items += number(fields, "items");
    }
    assert_eq!(number(&latest, "feedsSucceeded"), succeeded);
    assert_eq!(number(&latest, "newItemsAdded"), items);
    assert_eq!(number(&state, "totalItems"), items);

    // A sink that was disabled is left alone, also by runs.
    setup.ok(&["sink", "disable", "content"]);
    let time = || firestore.documents("collection_metrics")["latest"]["timestamp"].clone();
    let before = time();
    setup.ok(&["collect"]);
    assert_eq!(time(), before);
    setup.ok(&["sink", "enable", "content"]);
    setup.ok(&["collect"]);
    assert_ne!(time(), before);
}

#[test]
fn a_check_changes_nothing_on_the_server_and_install_does() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let index = runtime.block_on(FakeElasticsearch::start()).unwrap();
    let setup = Setup::new(&format!(
        "[sinks.index]\nkind = 'elasticsearch'\nurl = '{}'\n",
        index.url()
    ));
    let checked = setup.run(&["check", "--json"]).stdout;
    assert!(checked.contains("tidings sink install index"), "{checked}");
    let tested = setup.ok(&["sink", "test", "index"]);
    assert!(tested.contains("raw_content will be created"), "{tested}");
    assert_eq!(index.changes(), [""; 0]);

    let installed = setup.json(&["sink", "install", "index"]);
    assert_eq!(installed["ok"], true, "{installed}");
    let expected = [
        "PUT /_index_template/tidings-raw_content",
        "PUT /raw_content-000001",
    ];
    assert_eq!(index.changes(), expected);
    setup.ok(&["sink", "install", "index"]);
    assert_eq!(index.changes().len(), 2, "what exists stays");
    let search = setup.ok(&["sink", "install", "search"]);
    assert_eq!(search, "search needs nothing on its server\n");
    index.set_down(true);
    assert_eq!(setup.run(&["sink", "install", "index"]).code, 1);
}

#[test]
fn a_run_installs_what_sinks_need_before_the_first_document() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let index = runtime.block_on(FakeElasticsearch::start()).unwrap();
    let setup = Setup::new(&format!(
        "[sinks.index]\nkind = 'elasticsearch'\nurl = '{}'\n",
        index.url()
    ));
    let config = setup.folder.path().join("tidings.toml");
    let config = config.display().to_string();
    let running = tidings::command(&["run", "--config", &config], setup.folder.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(90);
    while index.indices().is_empty() {
        assert!(std::time::Instant::now() < deadline, "it takes too long");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(tidings::terminate(running), Some(0));
    assert_eq!(index.indices(), ["raw_content-000001"]);
}

#[test]
fn a_wrong_sink_is_a_wrong_configuration() {
    let setup = Setup::new("[sinks.hook]\nkind = 'webhook'\nulr = 'x'\n");
    let ended = setup.run(&["sink", "ls"]);
    assert_eq!(ended.code, 78);
    assert!(
        ended.stderr.contains("sinks.hook: unknown field `ulr`"),
        "{}",
        ended.stderr
    );
}
