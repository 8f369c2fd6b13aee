//! Where a scenario plays: a simulated web, a fake index, a store on one of the
//! engines, and processes of this very program that work on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use tidings_sim::{
    FakeElasticsearch, PostgresServer, SimClock, SimServer, WorldConfig, postgres_database,
};
use tidings_store::{Status, Store, StoreOptions};

use super::{Engine, Setting};
use crate::commands::run::follow_all;

/// Between two requests to one host.
pub(super) const GAP: Duration = Duration::from_millis(20);
/// What the index is called in the fake.
pub(super) const INDEX: &str = "raw_content";

pub(super) struct Ground {
    pub(super) sim: SimServer,
    pub(super) index: FakeElasticsearch,
    pub(super) store: Store,
    /// Where the store is, as processes are told.
    pub(super) address: String,
    setting: Setting,
    folder: tempfile::TempDir,
    started: AtomicU32,
}

/// A quiet web of so many sites with so many articles each.
pub(super) fn web(sites: u32, articles: u32) -> WorldConfig {
    WorldConfig {
        sites,
        articles_per_site: articles,
        feed_window: Some(u64::from(articles) * 10 + 100),
        crawl_delay: GAP,
        start: Timestamp::from_second(1_793_600_000).unwrap_or_default(),
        ..WorldConfig::new(12)
    }
}

impl Ground {
    /// On a store of its own, which lives as long as this process.
    pub(super) async fn new(setting: Setting, world: WorldConfig) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder")?;
        let address = match setting.engine {
            Engine::Sqlite => format!("sqlite:{}", folder.path().join("tidings.db").display()),
            Engine::Postgres => {
                aside(|| postgres_database().context("no PostgreSQL to torture")).await?
            }
        };
        Self::at(setting, world, address, folder).await
    }

    /// On a PostgreSQL server that may be killed.
    pub(super) async fn on_own_server(
        setting: Setting,
        world: WorldConfig,
    ) -> anyhow::Result<(Self, PostgresServer)> {
        Self::on_server(setting, world, Vec::new()).await
    }

    /// On one with variables in its environment.
    pub(super) async fn on_server(
        setting: Setting,
        world: WorldConfig,
        environment: Vec<(&'static str, PathBuf)>,
    ) -> anyhow::Result<(Self, PostgresServer)> {
        let (server, address) = aside(move || {
            let server = PostgresServer::start_with(&[], &environment)
                .context("no PostgreSQL to torture")?;
            let address = server.create_database().context("no database")?;
            Ok((server, address))
        })
        .await?;
        let folder = tempfile::tempdir().context("no temporary folder")?;
        Ok((Self::at(setting, world, address, folder).await?, server))
    }

    async fn at(
        setting: Setting,
        world: WorldConfig,
        address: String,
        folder: tempfile::TempDir,
    ) -> anyhow::Result<Self> {
        let clock = SimClock::manual(world.start);
        let sim = SimServer::start(world, clock, "127.0.0.1:0").await?;
        let index = FakeElasticsearch::start().await?;
        let store = open(&address).await?;
        store.put_sink("index", true, true).await?;
        follow_all(&store, &sim).await?;
        let config = format!(
            "[sinks.index]\nkind = 'elasticsearch'\nurl = '{}'\nmax_docs = 50\nduplicates = true\n",
            index.url()
        );
        fs::write(folder.path().join("tidings.toml"), config)?;
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

    /// Lets go of the store, so that it can be replaced. It is closed by threads of
    /// its own: whoever replaces a file under them gets a broken one.
    pub(super) async fn forget_store(&mut self) -> anyhow::Result<()> {
        let elsewhere = self.folder().join("elsewhere.db");
        self.store = open(&format!("sqlite:{}", elsewhere.display())).await?;
        let file = self.folder().join("tidings.db");
        until(self.setting.soon(), "the store to be closed", async || {
            Ok(!is_open(&file))
        })
        .await
        .map(drop)
    }

    pub(super) async fn reopen(&mut self) -> anyhow::Result<()> {
        self.store = open(&self.address).await?;
        Ok(())
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A process with these loops, and whatever else is set.
    pub(super) fn start(&self, roles: &str, set: &[&str]) -> anyhow::Result<Process> {
        self.start_at(&self.address, roles, set)
    }

    /// The same, with another way to the store.
    pub(super) fn start_at(
        &self,
        store: &str,
        roles: &str,
        set: &[&str],
    ) -> anyhow::Result<Process> {
        self.spawn(self.command(store, roles, set)?)
    }

    /// What [`Ground::start_at`] would start.
    pub(super) fn command(
        &self,
        store: &str,
        roles: &str,
        set: &[&str],
    ) -> anyhow::Result<Command> {
        let mut command = this_program()?;
        command.args(["work", "--roles", roles]);
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        self.configure(&mut command, store, &format!("process-{number}"), set);
        Ok(command)
    }

    /// Tells a process where it is.
    pub(super) fn configure(&self, command: &mut Command, store: &str, data: &str, set: &[&str]) {
        let port = self.sim.address().port();
        command
            .args(["--config", "tidings.toml", "--log-level", "warn", "--json"])
            .args(["--store", store, "--data-dir", data])
            .current_dir(self.folder());
        let ours = [
            format!("fetch.host_delay_ms={}", GAP.as_millis()),
            format!("work.lease_seconds={}", self.setting.lease().as_secs()),
            "egress.allow=127.0.0.0/8".to_owned(),
            format!("egress.ports={port}"),
            "sink.allow=127.0.0.0/8".to_owned(),
            "search.enabled=false".to_owned(),
            "server.bind=127.0.0.1:0".to_owned(),
        ];
        let theirs = set.iter().map(|set| (*set).to_owned());
        for set in ours.into_iter().chain(theirs) {
            command.args(["--set", &set]);
        }
    }

    pub(super) fn spawn(&self, mut command: Command) -> anyhow::Result<Process> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let log = self.folder().join(format!("log-{number}"));
        let told = self.folder().join(format!("told-{number}"));
        let child = command
            .stdin(Stdio::null())
            .stdout(fs::File::create(&told)?)
            .stderr(fs::File::create(&log)?)
            .spawn()
            .context("this program can't be started again")?;
        Ok(Process { child, log, told })
    }

    /// Until all feeds were read, nothing waits, and the index has what is for it.
    pub(super) async fn finish(&self, patience: Duration) -> anyhow::Result<()> {
        until(
            patience,
            "everything to be fetched and delivered",
            async || {
                Ok(self.is_read().await? && self.is_idle().await? && self.is_delivered().await?)
            },
        )
        .await
        .map(drop)
    }

    /// Until all feeds were read and nothing waits to be fetched.
    pub(super) async fn fetched(&self, patience: Duration) -> anyhow::Result<()> {
        until(patience, "everything to be fetched", async || {
            Ok(self.is_read().await? && self.is_idle().await?)
        })
        .await
        .map(drop)
    }

    async fn is_read(&self) -> tidings_store::Result<bool> {
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

    pub(super) async fn is_delivered(&self) -> tidings_store::Result<bool> {
        let outbox = self.store.outbox().await?;
        Ok(outbox.iter().all(|sink| sink.waiting == 0))
    }

    pub(super) async fn count(&self, status: Status) -> tidings_store::Result<i64> {
        let stats = self.store.stats().await?;
        Ok(stats.by_status.get(status.as_str()).copied().unwrap_or(0))
    }

    /// Until so many more requests were made, and how long that took.
    pub(super) async fn requests(&self, more: u64, patience: Duration) -> anyhow::Result<Duration> {
        let wanted = self.sim.log().total() + more;
        until(patience, "requests", async || {
            Ok(self.sim.log().total() >= wanted)
        })
        .await
    }
}

/// Whether this process has a file open.
fn is_open(file: &Path) -> bool {
    let Ok(open) = fs::read_dir("/proc/self/fd") else {
        return false;
    };
    open.flatten()
        .any(|link| fs::read_link(link.path()).is_ok_and(|target| target == file))
}

/// What takes long and waits for nobody, while the scenarios beside it go on.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await?
}

/// Kills a server, or starts it again.
pub(super) async fn done_to(
    mut server: PostgresServer,
    act: fn(&mut PostgresServer) -> std::io::Result<()>,
) -> anyhow::Result<PostgresServer> {
    aside(move || {
        act(&mut server).context("the server can't be killed, or does not come back")?;
        Ok(server)
    })
    .await
}

async fn open(address: &str) -> tidings_store::Result<Store> {
    let mut options = StoreOptions::default();
    options.host_delay = GAP;
    let begun = Instant::now();
    loop {
        match Store::open(address, &options).await {
            // A server that has just been started, on a machine that is busy.
            Err(error) if error.is_transient() && begun.elapsed() < Duration::from_secs(60) => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            opened => return opened,
        }
    }
}

/// A call of this program, with nothing of the environment.
pub(super) fn this_program() -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("where is this program?")?);
    command.env_clear();
    Ok(command)
}

/// Looks again and again, and says how long it took. A store that is away is
/// looked for again.
pub(super) async fn until(
    patience: Duration,
    what: &str,
    mut is_so: impl AsyncFnMut() -> tidings_store::Result<bool>,
) -> anyhow::Result<Duration> {
    let started = Instant::now();
    loop {
        match is_so().await {
            Ok(true) => return Ok(started.elapsed()),
            Err(error) if !error.is_transient() => return Err(error.into()),
            _ if started.elapsed() > patience => {
                bail!("waited {} s in vain for {what}", patience.as_secs())
            }
            _ => tokio::time::sleep(Duration::from_millis(25)).await,
        }
    }
}

/// A process of this program; killed when it is dropped.
pub(super) struct Process {
    child: Child,
    log: PathBuf,
    told: PathBuf,
}

impl Process {
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL: it has no chance to clean up.
    pub(super) fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub(super) fn signal(&self, name: &str) -> anyhow::Result<()> {
        // The shell's own `kill`: the program of that name is not everywhere.
        let kill = format!("kill -{name} {}", self.id());
        let sent = Command::new("sh").args(["-c", &kill]).status()?;
        anyhow::ensure!(sent.success(), "signal {name} could not be sent");
        Ok(())
    }

    /// The exit code, when it has ended.
    pub(super) fn ended(&mut self) -> anyhow::Result<Option<i32>> {
        Ok(self
            .child
            .try_wait()?
            .map(|status| status.code().unwrap_or(-1)))
    }

    /// The most memory that it has had, in MB.
    pub(super) fn peak_mb(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024 / 1_000_000
    }

    /// Its first line on standard output that has this key, as JSON.
    pub(super) async fn told(&self, key: &str) -> anyhow::Result<String> {
        let mut found = None;
        until(
            Duration::from_secs(30),
            "a process to say where it is",
            async || {
                let told = fs::read_to_string(&self.told).unwrap_or_default();
                found = told
                    .lines()
                    .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
                    .find_map(|line| Some(line.get(key)?.as_str()?.to_owned()));
                Ok(found.is_some())
            },
        )
        .await
        .with_context(|| self.last_words())?;
        found.context("it was just found")
    }

    /// The end of its log, for whoever wants to know why.
    pub(super) fn last_words(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().rev().take(3).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
