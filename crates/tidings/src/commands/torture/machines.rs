//! Several machines on one: network namespaces with cables between them. One has
//! the database, the API and the poller, two have fetchers; a cable is pulled, a
//! fetcher is killed and brought back.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use super::books::Books;
use super::crashes::end;
use super::ground::{Ground, Process, this_program, web};
use super::{Measured, Setting, can};
use crate::loopback;

/// How soon work must be as fast as before.
const BACK: Duration = Duration::from_secs(10);

/// A network of its own, held open by a process that sleeps.
struct Machine {
    keeper: Child,
}

impl Machine {
    /// A machine in the world of another, or the first one.
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
        let mut keeper = command
            .spawn()
            .context("unshare and nsenter (util-linux) are needed")?;
        let told = keeper.stdout.take().context("its output")?;
        let mut line = String::new();
        BufReader::new(told).read_line(&mut line)?;
        anyhow::ensure!(line == "up\n", "no network of its own can be had");
        Ok(Self { keeper })
    }

    fn id(&self) -> String {
        self.keeper.id().to_string()
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
        let why = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "ip {words}: {why}");
        Ok(())
    }

    /// A cable to another machine; this end has address 1, the other 2.
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
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// The simulated web as a socket in a folder, which all machines can reach: what
/// is cut are cables to the database, never the way to the web.
async fn web_socket(ground: &Ground) -> anyhow::Result<(PathBuf, JoinHandle<()>)> {
    let path = ground.folder().join("web");
    let listener = UnixListener::bind(&path)?;
    let address = ground.sim.address();
    let client = loopback::client()?;
    let carrying = tokio::spawn(async move {
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
    Ok((path, carrying))
}

fn relay(ground: &Ground, machine: &Machine, listen: &str, to: &Path) -> anyhow::Result<Process> {
    let mut command = this_program()?;
    command.args(["torture", "--child", "relay", "--listen", listen, "--to"]);
    command.arg(to).current_dir(ground.folder());
    ground.spawn(machine.inside(&command))
}

/// Requests a second over a while.
async fn pace(ground: &Ground, seconds: u64) -> f64 {
    let (before, begun) = (ground.sim.log().total(), Instant::now());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    (ground.sim.log().total() - before) as f64 / begun.elapsed().as_secs_f64()
}

pub(super) async fn cut_off(setting: Setting) -> anyhow::Result<Measured> {
    let has_networks = can(
        "unshare",
        &["-rn", "ip", "link", "add", "c0", "type", "veth"],
    );
    if !has_networks || !can("nsenter", &["--version"]) {
        return Ok(Measured::left_out(
            "`unshare -rn`, `nsenter` and `ip`, for networks of its own",
        ));
    }
    let hub = Machine::new(None)?;
    // Five requests a second and host: neither this machine nor a lack of pages
    // is what limits it.
    let slowly = ["fetch.host_delay_ms=200"];
    let world = web(setting.size(12, 40), setting.size(70, 1200));
    let (ground, server) = Ground::on_own_server(setting, world).await?;
    let (web, carrying) = web_socket(&ground).await?;
    let local = format!("127.0.0.1:{}", ground.sim.address().port());
    let (one, two) = (Machine::new(Some(&hub))?, Machine::new(Some(&hub))?);
    let mut running = vec![relay(&ground, &hub, "0.0.0.0:5432", &server.socket())?];
    for machine in [&hub, &one, &two] {
        running.push(relay(&ground, machine, &local, &web)?);
    }
    hub.connect(&one, 1)?;
    hub.connect(&two, 2)?;
    let database = ground
        .address
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    // The index is reached from here; deliveries are no part of this.
    running.push(ground.start("deliver", &[])?);
    let work = |machine: &Machine, number: u8, roles: &str| -> anyhow::Result<Process> {
        let store = format!("postgres://tidings@10.77.{number}.1/{database}");
        ground.spawn(machine.inside(&ground.command(&store, roles, &slowly)?))
    };
    let control = work(&hub, 1, "poll,serve")?;
    let isolated = work(&one, 1, "fetch")?;
    let steady = work(&two, 2, "fetch")?;

    ground.requests(100, setting.soon()).await?;
    let both = pace(&ground, 2).await;
    hub.ip("link set c1 down")?;
    let alone = pace(&ground, setting.size(5, 180)).await;
    // Ends in order, so that it leaves no lease: whatever is asked for now is the
    // doing of the one that was cut off.
    end(setting, steady).await?;
    hub.ip("link set c1 up")?;
    let healed = Instant::now();
    let back = ground.requests(20, setting.soon()).await?;
    // Its connections come back one after the other.
    let enough = alone * setting.size(0.4, 0.7);
    let mut after = pace(&ground, 2).await;
    while after < enough && healed.elapsed() < BACK {
        after = after.max(pace(&ground, 2).await);
    }
    let killed = work(&two, 2, "fetch")?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    killed.kill()?;
    let again = work(&two, 2, "fetch")?;
    ground.finish(setting.late()).await?;
    drop((isolated, again, control, running));
    carrying.abort();
    let books = Books::of(&ground);
    Ok(Measured::new(
        books.are_right(),
        format!(
            "{both:.0} requests a second of two, {alone:.0} of one while the other was cut off; that one back after {:.1} s with {after:.0}; {books}",
            back.as_secs_f64()
        ),
    )
    .in_time(back <= BACK && after >= enough))
}
