//! Several machines on one: network namespaces with links between them. One has
//! the database, the API and the poller, two have fetchers; a link goes down, a
//! fetcher is killed and restarted.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use crate::crashes::terminate;
use crate::environment::{Environment, Process, chaos_command, web};
use crate::ledger::LedgerSummary;
use crate::loopback;
use crate::scenario::Measured;
use crate::setting::{Setting, can_run};

/// How soon throughput must be as before.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// A network namespace, held open by a process that sleeps.
struct Machine {
    holder: Child,
}

impl Machine {
    /// A machine in the user namespace of another, or the first one.
    fn new(beside: Option<&Self>) -> anyhow::Result<Self> {
        let mut command = match beside {
            None => {
                let mut command = Command::new("unshare");
                command.arg("-rn");
                command
            }
            Some(other) => {
                let mut command = Command::new("nsenter");
                command.args(["-U", "--preserve-credentials", "-t", &other.id()]);
                command.args(["unshare", "-n"]);
                command
            }
        };
        let up = "ip link set lo up && echo up && exec sleep 100000";
        command.args(["sh", "-c", up]).stdout(Stdio::piped());
        let mut holder = command
            .spawn()
            .context("unshare and nsenter (util-linux) are needed")?;
        let stdout = holder.stdout.take().context("no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        anyhow::ensure!(line == "up\n", "cannot create a network namespace");
        Ok(Self { holder })
    }

    fn id(&self) -> String {
        self.holder.id().to_string()
    }

    /// The same command, on this machine.
    fn inside(&self, command: &Command) -> Command {
        let mut entered = Command::new("nsenter");
        entered.args(["-U", "-n", "--preserve-credentials", "-t", &self.id()]);
        entered
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear();
        if let Some(folder) = command.get_current_dir() {
            entered.current_dir(folder);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        entered.env("PATH", path);
        entered
    }

    fn ip(&self, words: &str) -> anyhow::Result<()> {
        let mut command = Command::new("ip");
        command.args(words.split(' '));
        let output = self.inside(&command).output()?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "ip {words}: {stderr}");
        Ok(())
    }

    /// A link to another machine; this end has address 1, the other 2.
    fn connect(&self, other: &Self, number: u8) -> anyhow::Result<()> {
        self.ip(&format!("link add c{number} type veth peer name d{number}"))?;
        self.ip(&format!("link set d{number} netns {}", other.id()))?;
        self.ip(&format!("addr add 10.77.{number}.1/30 dev c{number}"))?;
        self.ip(&format!("link set c{number} up"))?;
        other.ip(&format!("addr add 10.77.{number}.2/30 dev d{number}"))?;
        other.ip(&format!("link set d{number} up"))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// The simulated web as a Unix socket, which all machines can reach: links to the
/// database go down, never those to the web.
async fn web_socket(env: &Environment) -> anyhow::Result<(PathBuf, JoinHandle<()>)> {
    let path = env.folder().join("web");
    let listener = UnixListener::bind(&path)?;
    let address = env.sim.address();
    let client = loopback::client()?;
    let forwarding = tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let client = client.clone();
            tokio::spawn(async move {
                let host = address.ip().to_string();
                if let Ok(mut to) = client.connect(&host, address.port()).await {
                    // However it ends, both sides notice.
                    let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
                }
            });
        }
    });
    Ok((path, forwarding))
}

fn relay(env: &Environment, machine: &Machine, listen: &str, to: &Path) -> anyhow::Result<Process> {
    let mut command = chaos_command()?;
    command.args(["child", "relay", "--listen", listen, "--to"]);
    command.arg(to).current_dir(env.folder());
    env.spawn(machine.inside(&command))
}

/// Requests per second over a while.
async fn request_rate(env: &Environment, seconds: u64) -> f64 {
    let (before, begun) = (env.sim.log().total(), Instant::now());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    (env.sim.log().total() - before) as f64 / begun.elapsed().as_secs_f64()
}

pub(crate) async fn partition(setting: Setting) -> anyhow::Result<Measured> {
    let has_networks = can_run(
        "unshare",
        &["-rn", "ip", "link", "add", "c0", "type", "veth"],
    );
    if !has_networks || !can_run("nsenter", &["--version"]) {
        return Ok(Measured::skipped(
            "`unshare -rn`, `nsenter` and `ip`, for network namespaces",
        ));
    }
    let hub = Machine::new(None)?;
    // Five requests per second per host: neither this machine nor a lack of pages
    // is the limit.
    let slowly = ["fetch.host_delay_ms=200"];
    let world = web(setting.size(12, 40), setting.size(70, 1200));
    let (env, server) = Environment::on_own_server(setting, world).await?;
    let (web, forwarding) = web_socket(&env).await?;
    let local = format!("127.0.0.1:{}", env.sim.address().port());
    let (one, two) = (Machine::new(Some(&hub))?, Machine::new(Some(&hub))?);
    let mut running = vec![relay(&env, &hub, "0.0.0.0:5432", &server.socket())?];
    for machine in [&hub, &one, &two] {
        running.push(relay(&env, machine, &local, &web)?);
    }
    hub.connect(&one, 1)?;
    hub.connect(&two, 2)?;
    let database = env
        .address
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    // The index is reached from here; deliveries are not partitioned.
    running.push(env.start("deliver", &[])?);
    let work = |machine: &Machine, number: u8, roles: &str| -> anyhow::Result<Process> {
        let store = format!("postgres://tidings@10.77.{number}.1/{database}");
        env.spawn(machine.inside(&env.command(&store, roles, &slowly)?))
    };
    let control = work(&hub, 1, "poll,serve")?;
    let isolated = work(&one, 1, "fetch")?;
    let steady = work(&two, 2, "fetch")?;

    env.wait_for_requests(100, setting.step_timeout()).await?;
    let both = request_rate(&env, 2).await;
    hub.ip("link set c1 down")?;
    let alone = request_rate(&env, setting.size(5, 180)).await;
    // Terminated gracefully, so that it leaves no lease: all requests from now on
    // are made by the worker that was partitioned.
    terminate(setting, steady).await?;
    hub.ip("link set c1 up")?;
    let healed = Instant::now();
    let back = env.wait_for_requests(20, setting.step_timeout()).await?;
    // Its connections come back one after the other.
    let enough = alone * setting.size(0.4, 0.7);
    let mut after = request_rate(&env, 2).await;
    while after < enough && healed.elapsed() < RECOVERY_TIMEOUT {
        after = after.max(request_rate(&env, 2).await);
    }
    let killed = work(&two, 2, "fetch")?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    killed.kill()?;
    let again = work(&two, 2, "fetch")?;
    env.wait_until_delivered(setting.work_timeout()).await?;
    drop((isolated, again, control, running));
    forwarding.abort();
    let summary = LedgerSummary::of(&env);
    Ok(Measured::new(
        true,
        format!(
            "{both:.0} requests per second by two workers, {alone:.0} by one while the other was partitioned; that one resumed after {:.1} s with {after:.0}",
            back.as_secs_f64()
        ),
    )
    .with_ledger(&summary)
    .in_time(back <= RECOVERY_TIMEOUT && after >= enough))
}
