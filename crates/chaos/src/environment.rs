//! The environment of a scenario: a simulated web, a fake index, a store on one of
//! the engines, and `tidings` processes that work on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use tidings_engine::{SourceDraft, SourceSettings, add_source};
use tidings_sim::{
    FakeElasticsearch, PostgresServer, SimClock, SimServer, WorldConfig, postgres_database,
};
use tidings_store::{Status, Store, StoreOptions};

use crate::setting::{Engine, Setting};

/// The delay between two requests to one host.
pub(crate) const HOST_DELAY: Duration = Duration::from_millis(20);
/// The name of the index in the fake.
pub(crate) const INDEX: &str = "raw_content";
/// The configuration file of processes, unless they have another.
pub(crate) const CONFIG: &str = "tidings.toml";

pub(crate) struct Environment {
    pub(crate) sim: SimServer,
    pub(crate) index: FakeElasticsearch,
    pub(crate) store: Store,
    /// Of the store, as it is configured in processes.
    pub(crate) address: String,
    setting: Setting,
    folder: tempfile::TempDir,
    started: AtomicU32,
}

/// A web without faults.
pub(crate) fn web(sites: u32, articles: u32) -> WorldConfig {
    WorldConfig {
        sites,
        articles_per_site: articles,
        feed_window: Some(u64::from(articles) * 10 + 100),
        crawl_delay: HOST_DELAY,
        start: Timestamp::from_second(1_793_600_000).unwrap_or_default(),
        ..WorldConfig::new(12)
    }
}

impl Environment {
    /// With a new store, which lives as long as this process.
    pub(crate) async fn new(setting: Setting, world: WorldConfig) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let address = match setting.engine {
            Engine::Sqlite => format!("sqlite:{}", folder.path().join("tidings.db").display()),
            Engine::Postgres => {
                blocking(|| postgres_database().context("PostgreSQL is not available")).await?
            }
        };
        Self::in_folder(setting, world, address, folder).await
    }

    /// With the store at this address.
    pub(crate) async fn at(
        setting: Setting,
        world: WorldConfig,
        address: String,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        Self::in_folder(setting, world, address, folder).await
    }

    /// With a PostgreSQL server of its own, which may be killed.
    pub(crate) async fn on_own_server(
        setting: Setting,
        world: WorldConfig,
    ) -> anyhow::Result<(Self, PostgresServer)> {
        Self::on_server(setting, world, Vec::new()).await
    }

    /// The same, with environment variables for the server.
    pub(crate) async fn on_server(
        setting: Setting,
        world: WorldConfig,
        variables: Vec<(&'static str, PathBuf)>,
    ) -> anyhow::Result<(Self, PostgresServer)> {
        let (server, address) = blocking(move || {
            let server = PostgresServer::start_with(&[], &variables)
                .context("PostgreSQL is not available")?;
            let address = server.create_database().context("no database")?;
            Ok((server, address))
        })
        .await?;
        Ok((Self::at(setting, world, address).await?, server))
    }

    async fn in_folder(
        setting: Setting,
        world: WorldConfig,
        address: String,
        folder: tempfile::TempDir,
    ) -> anyhow::Result<Self> {
        let clock = SimClock::manual(world.start);
        let sim = SimServer::start(world, clock, "127.0.0.1:0").await?;
        let index = FakeElasticsearch::start().await?;
        let store = open(&address).await?;
        store.register_sink("index", true).await?;
        add_feeds(&store, &sim).await?;
        let config = index_sink("index", &index);
        fs::write(folder.path().join(CONFIG), config)?;
        Ok(Self {
            sim,
            index,
            store,
            address,
            setting,
            folder,
            started: AtomicU32::new(0),
        })
    }

    /// Closes the store, so that its file can be replaced. Threads of its own close
    /// it: a file that is replaced under them is corrupted.
    pub(crate) async fn release_store(&mut self) -> anyhow::Result<()> {
        let other = self.folder().join("other.db");
        self.store = open(&format!("sqlite:{}", other.display())).await?;
        let file = self.folder().join("tidings.db");
        wait_until(
            self.setting.step_timeout(),
            "the store to be closed",
            async || Ok(!is_open(&file)),
        )
        .await
        .map(drop)
    }

    pub(crate) async fn reopen(&mut self) -> anyhow::Result<()> {
        self.store = open(&self.address).await?;
        Ok(())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a process with these roles and settings.
    pub(crate) fn start(&self, roles: &str, set: &[&str]) -> anyhow::Result<Process> {
        self.start_at(&self.address, roles, set)
    }

    /// The same, with another address of the store.
    pub(crate) fn start_at(
        &self,
        store: &str,
        roles: &str,
        set: &[&str],
    ) -> anyhow::Result<Process> {
        self.spawn(self.command(store, roles, set)?)
    }

    /// The command that [`Environment::start_at`] spawns.
    pub(crate) fn command(
        &self,
        store: &str,
        roles: &str,
        set: &[&str],
    ) -> anyhow::Result<Command> {
        let mut command = Command::new(self.setting.tidings);
        command.env_clear();
        command.args(["work", "--roles", roles]);
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let data = format!("process-{number}");
        self.configure(&mut command, CONFIG, store, &data, set);
        Ok(command)
    }

    /// Adds a configuration file, and the settings that every process of a scenario
    /// has.
    pub(crate) fn configure(
        &self,
        command: &mut Command,
        config: &str,
        store: &str,
        data: &str,
        set: &[&str],
    ) {
        let port = self.sim.address().port();
        command
            .args(["--config", config, "--log-level", "warn", "--json"])
            .args(["--store", store, "--data-dir", data])
            .current_dir(self.folder());
        let common = [
            format!("fetch.host_delay_ms={}", HOST_DELAY.as_millis()),
            format!("work.lease_seconds={}", self.setting.lease().as_secs()),
            "egress.allow=127.0.0.0/8".to_owned(),
            format!("egress.ports={port}"),
            "sink.allow=127.0.0.0/8".to_owned(),
            "search.enabled=false".to_owned(),
            "server.bind=127.0.0.1:0".to_owned(),
        ];
        let more = set.iter().map(|set| (*set).to_owned());
        for set in common.into_iter().chain(more) {
            command.args(["--set", &set]);
        }
    }

    pub(crate) fn spawn(&self, mut command: Command) -> anyhow::Result<Process> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let log = self.folder().join(format!("log-{number}"));
        let stdout = self.folder().join(format!("stdout-{number}"));
        let child = command
            .stdin(Stdio::null())
            .stdout(fs::File::create(&stdout)?)
            .stderr(fs::File::create(&log)?)
            .spawn()
            .context("cannot start a process")?;
        Ok(Process { child, log, stdout })
    }

    /// Waits until all feeds were polled, nothing is left to fetch, and all
    /// deliveries are complete.
    pub(crate) async fn wait_until_delivered(&self, timeout: Duration) -> anyhow::Result<()> {
        wait_until(
            timeout,
            "everything to be fetched and delivered",
            async || self.is_finished().await,
        )
        .await
        .map(drop)
    }

    /// Whether everything is fetched and delivered.
    pub(crate) async fn is_finished(&self) -> tidings_store::Result<bool> {
        Ok(self.is_polled().await? && self.is_idle().await? && self.is_delivered().await?)
    }

    /// Waits until all feeds were polled and nothing is left to fetch.
    pub(crate) async fn wait_until_fetched(&self, timeout: Duration) -> anyhow::Result<()> {
        wait_until(timeout, "everything to be fetched", async || {
            Ok(self.is_polled().await? && self.is_idle().await?)
        })
        .await
        .map(drop)
    }

    async fn is_polled(&self) -> tidings_store::Result<bool> {
        let feeds = self.store.feeds_after(i64::MIN, 100_000).await?;
        Ok(feeds.iter().all(|feed| feed.last_polled_at.is_some()))
    }

    async fn is_idle(&self) -> tidings_store::Result<bool> {
        let stats = self.store.stats().await?;
        let waiting = [Status::Pending, Status::Fetching, Status::Failed];
        Ok(waiting
            .iter()
            .all(|status| stats.by_status.get(status.as_str()).copied().unwrap_or(0) == 0))
    }

    pub(crate) async fn is_delivered(&self) -> tidings_store::Result<bool> {
        let outbox = self.store.outbox().await?;
        Ok(outbox.iter().all(|sink| sink.waiting == 0))
    }

    pub(crate) async fn count(&self, status: Status) -> tidings_store::Result<i64> {
        let stats = self.store.stats().await?;
        Ok(stats.by_status.get(status.as_str()).copied().unwrap_or(0))
    }

    /// Waits for this many more requests; returns how long that took.
    pub(crate) async fn wait_for_requests(
        &self,
        more: u64,
        timeout: Duration,
    ) -> anyhow::Result<Duration> {
        let wanted = self.sim.log().total() + more;
        wait_until(timeout, "requests", async || {
            Ok(self.sim.log().total() >= wanted)
        })
        .await
    }
}

/// The configuration of an index as a sink.
pub(crate) fn index_sink(name: &str, index: &FakeElasticsearch) -> String {
    let url = index.url();
    format!(
        "[sinks.{name}]\nkind = 'elasticsearch'\nurl = '{url}'\nmax_docs = 50\nduplicates = true\n"
    )
}

/// Whether this process has a file open.
fn is_open(file: &Path) -> bool {
    let Ok(open) = fs::read_dir("/proc/self/fd") else {
        return false;
    };
    open.flatten()
        .any(|link| fs::read_link(link.path()).is_ok_and(|target| target == file))
}

/// Runs blocking work on a thread of its own, so that other scenarios continue.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await?
}

/// Kills a server, or restarts it.
pub(crate) async fn act_on_server(
    mut server: PostgresServer,
    act: fn(&mut PostgresServer) -> std::io::Result<()>,
) -> anyhow::Result<PostgresServer> {
    blocking(move || {
        act(&mut server).context("cannot kill or restart PostgreSQL")?;
        Ok(server)
    })
    .await
}

async fn open(address: &str) -> tidings_store::Result<Store> {
    let mut options = StoreOptions::default();
    options.host_delay = HOST_DELAY;
    let begun = Instant::now();
    loop {
        match Store::open(address, &options).await {
            // A server that has just been started on a busy machine.
            Err(error) if error.is_transient() && begun.elapsed() < Duration::from_secs(60) => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            opened => return opened,
        }
    }
}

/// Every feed of every simulated site, each as a source.
async fn add_feeds(store: &Store, sim: &SimServer) -> anyhow::Result<()> {
    for site in sim.world().sites() {
        for feed in &site.feeds {
            let url = site.url(&feed.path);
            let draft = SourceDraft {
                name: url.as_str().to_owned(),
                url: site.url("/"),
                priority: 5,
                settings: SourceSettings {
                    feed_url: Some(url),
                    ..SourceSettings::default()
                },
            };
            add_source(store, &draft).await?;
        }
    }
    Ok(())
}

/// A call of this program (see `child`), without environment variables.
pub(crate) fn chaos_command() -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("cannot locate this executable")?;
    let mut command = Command::new(program);
    command.env_clear();
    Ok(command)
}

/// Polls until it is so; returns how long that took. While the store is
/// unavailable it is not so.
pub(crate) async fn wait_until(
    timeout: Duration,
    what: &str,
    mut is_so: impl AsyncFnMut() -> tidings_store::Result<bool>,
) -> anyhow::Result<Duration> {
    let started = Instant::now();
    loop {
        match is_so().await {
            Ok(true) => return Ok(started.elapsed()),
            Err(error) if !error.is_transient() => return Err(error.into()),
            _ if started.elapsed() > timeout => {
                bail!("timed out after {} s waiting for {what}", timeout.as_secs())
            }
            _ => tokio::time::sleep(Duration::from_millis(25)).await,
        }
    }
}

/// A child process; killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
    stdout: PathBuf,
}

impl Process {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL: it can't clean up.
    pub(crate) fn kill(mut self) -> anyhow::Result<()> {
        self.kill_now()
    }

    /// The same, for one that is replaced.
    pub(crate) fn kill_now(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub(crate) fn signal(&self, name: &str) -> anyhow::Result<()> {
        // The shell's own `kill`: the program of that name is not everywhere.
        let kill = format!("kill -{name} {}", self.id());
        let sent = Command::new("sh").args(["-c", &kill]).status()?;
        anyhow::ensure!(sent.success(), "cannot send signal {name}");
        Ok(())
    }

    /// The exit code, if it has exited.
    pub(crate) fn exit_code(&mut self) -> anyhow::Result<Option<i32>> {
        Ok(self
            .child
            .try_wait()?
            .map(|status| status.code().unwrap_or(-1)))
    }

    /// Its peak memory, in MB.
    pub(crate) fn peak_mb(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024 / 1_000_000
    }

    /// Its first line on standard output that has this key, as JSON.
    pub(crate) async fn announced(&self, key: &str) -> anyhow::Result<String> {
        let mut found = None;
        wait_until(
            Duration::from_secs(30),
            "a process to announce its address",
            async || {
                let stdout = fs::read_to_string(&self.stdout).unwrap_or_default();
                found = stdout
                    .lines()
                    .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
                    .find_map(|line| Some(line.get(key)?.as_str()?.to_owned()));
                Ok(found.is_some())
            },
        )
        .await
        .with_context(|| self.log_tail())?;
        found.context("no such line")
    }

    /// The end of its log.
    pub(crate) fn log_tail(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().rev().take(3).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
