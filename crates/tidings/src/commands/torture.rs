//! `tidings torture`: bad days on a simulated web, with a ledger. Real processes
//! are killed, stopped and cut off; databases die; sites and indexes lie. Each
//! scenario is one line: what was expected, what was measured, whether it holds.

mod ask;
mod backup;
mod books;
mod child;
mod clocks;
mod crashes;
mod database;
mod embedded;
mod ground;
mod index;
mod machines;
mod pages;
mod peers;
mod queue;

use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::pin::Pin;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

use crate::config::Config;
use crate::failure::Failure;
use crate::output;

/// Put Tidings through bad days, on this machine, and see that nothing is lost
#[derive(Debug, Args)]
#[command(
    after_help = "Everything is simulated or thrown away afterwards; nothing of yours is touched, and
nothing outside of this machine is asked. PostgreSQL's server programs are needed
for the half of it that runs on PostgreSQL.

Examples:
  tidings torture --quick                 every scenario in a small form
  tidings torture                         as long as the promises say
  tidings torture --list
  tidings torture --only postgres killed  scenarios with this in their name
  tidings torture --quick --json"
)]
pub(crate) struct TortureArgs {
    /// Short leases, small webs, few repetitions
    #[arg(long)]
    quick: bool,

    /// sqlite or postgres instead of both
    #[arg(long, value_name = "ENGINE", value_parser = ["sqlite", "postgres"])]
    only: Option<String>,

    /// Only say which scenarios there are
    #[arg(long)]
    list: bool,

    /// Only scenarios whose name contains one of these
    #[arg(value_name = "WORD")]
    words: Vec<String>,

    /// What a process of a scenario is, when it is no usual one
    #[command(flatten)]
    child: child::ChildArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        })
    }
}

/// How hard, and on what.
#[derive(Debug, Clone, Copy)]
struct Setting {
    engine: Engine,
    quick: bool,
}

impl Setting {
    /// One of two figures: of the quick form, or of the whole.
    fn size<T>(self, quick: T, whole: T) -> T {
        if self.quick { quick } else { whole }
    }

    /// For anything that should happen soon, and for all of it.
    fn soon(self) -> Duration {
        Duration::from_secs(self.size(30, 120))
    }

    fn late(self) -> Duration {
        Duration::from_secs(self.size(60, 1800))
    }

    /// How long a URL belongs to a process that gives no sign of life.
    fn lease(self) -> Duration {
        self.size(Duration::from_secs(3), Duration::from_secs(60))
    }
}

/// What a scenario found.
#[derive(Debug)]
struct Measured {
    holds: bool,
    /// This machine has not what it needs; nothing was tried.
    is_left_out: bool,
    /// Nothing is wrong but the time that it took: a busy machine may do that.
    is_late: bool,
    text: String,
}

impl Measured {
    fn new(holds: bool, text: impl Into<String>) -> Self {
        Self {
            holds,
            is_left_out: false,
            is_late: false,
            text: text.into(),
        }
    }

    fn left_out(needs: &str) -> Self {
        Self {
            is_left_out: true,
            ..Self::new(true, format!("left out: it needs {needs}"))
        }
    }

    /// It must not have taken longer than it may.
    fn in_time(self, is_in_time: bool) -> Self {
        Self {
            holds: self.holds && is_in_time,
            is_late: self.is_late || (self.holds && !is_in_time),
            ..self
        }
    }

    /// Also this must hold.
    fn and(self, holds: bool, text: impl fmt::Display) -> Self {
        Self {
            holds: self.holds && holds,
            is_late: self.is_late && holds,
            is_left_out: self.is_left_out,
            text: match self.text.is_empty() {
                true => text.to_string(),
                false => format!("{}; {text}", self.text),
            },
        }
    }
}

type Running = Pin<Box<dyn Future<Output = anyhow::Result<Measured>>>>;

/// Whether a program is there and does this much.
fn can(program: &str, args: &[&str]) -> bool {
    let tried = Command::new(program).args(args).output();
    tried.is_ok_and(|output| output.status.success())
}

/// A bad day.
struct Scenario {
    name: &'static str,
    expected: &'static str,
    engines: &'static [Engine],
    run: fn(Setting) -> Running,
}

const BOTH: &[Engine] = &[Engine::Sqlite, Engine::Postgres];
const SQLITE: &[Engine] = &[Engine::Sqlite];
const POSTGRES: &[Engine] = &[Engine::Postgres];

macro_rules! scenario {
    ($name:literal, $engines:ident, $run:path, $expected:literal) => {
        Scenario {
            name: $name,
            expected: $expected,
            engines: $engines,
            run: |setting| Box::pin($run(setting)),
        }
    };
}

/// In the order in which they run; those that need no store run once.
static SCENARIOS: &[Scenario] = &[
    scenario!(
        "worker killed after claim",
        BOTH,
        crashes::killed_after_claim,
        "its URLs are with another within the lease and 5 s; nothing lost or doubled"
    ),
    scenario!(
        "worker killed after fetch",
        BOTH,
        crashes::killed_after_fetch,
        "nothing lost or doubled; no page asked for more than once a death"
    ),
    scenario!(
        "deliverer killed after the index took it",
        BOTH,
        crashes::killed_after_delivery,
        "each document once in the index, and as often as it should be"
    ),
    scenario!(
        "worker stopped beyond its lease",
        BOTH,
        crashes::stopped_beyond_its_lease,
        "what it writes when it wakes is refused; nothing doubled, nobody impolite"
    ),
    scenario!(
        "worker asked to end",
        BOTH,
        crashes::asked_to_end,
        "ends with 0 within 30 s and leaves no lease"
    ),
    scenario!(
        "page that kills or breaks its reader",
        BOTH,
        crashes::poison,
        "put aside after three deaths; what only breaks is never lost; all others are documents"
    ),
    scenario!(
        "database killed while it is claimed from",
        POSTGRES,
        database::killed_mid_claim,
        "no process ends, work goes on within 10 s, nothing lost or doubled"
    ),
    scenario!(
        "database killed in a bulk submit",
        POSTGRES,
        database::killed_mid_submit,
        "the same request with the same key, sent again, ends with every URL there once"
    ),
    scenario!(
        "database restarting again and again",
        POSTGRES,
        database::restarting,
        "no process ends, nothing lost or doubled"
    ),
    scenario!(
        "database that swallows every byte",
        POSTGRES,
        database::black_hole,
        "work goes on within 10 s of the end, nothing lost or doubled"
    ),
    scenario!(
        "database that only reads",
        POSTGRES,
        database::read_only,
        "submits are refused with 503 and never taken; all is well afterwards"
    ),
    scenario!(
        "machine cut off, another killed",
        POSTGRES,
        machines::cut_off,
        "work is as fast as before within 10 s of the end; nothing lost or doubled"
    ),
    scenario!(
        "embedded store killed at any moment",
        SQLITE,
        embedded::killed_often,
        "opens every time, and has everything that was acknowledged"
    ),
    scenario!(
        "disk full",
        SQLITE,
        embedded::disk_full,
        "refused with 5xx and never taken; goes on by itself within 30 s of room"
    ),
    scenario!(
        "store restored from an older backup",
        BOTH,
        backup::restored,
        "what happened since is found again, and is no second document anywhere"
    ),
    scenario!(
        "clocks an hour off",
        BOTH,
        clocks::off,
        "nothing lost or doubled, nobody impolite, and no stall beyond the lease"
    ),
    scenario!(
        "index that refuses some, all and garbles",
        BOTH,
        index::troubled,
        "each document once in the index"
    ),
    scenario!(
        "index away",
        BOTH,
        index::away,
        "fetching goes on; the index catches up when it is back"
    ),
    scenario!(
        "index that only reads",
        BOTH,
        index::read_only,
        "nothing is given up; the index catches up when it is writable"
    ),
    scenario!(
        "eight submitters of the same URLs",
        BOTH,
        queue::eight_submitters,
        "each URL once, no error to anybody"
    ),
    scenario!(
        "two processes on one host",
        BOTH,
        queue::one_host,
        "one request at a time, and never sooner than the delay"
    ),
    scenario!(
        "one host with nearly everything",
        BOTH,
        queue::one_huge_host,
        "the others wait no longer than twice their delay (99 of 100)"
    ),
    scenario!(
        "sites that lie, drip and never end",
        BOTH,
        peers::hostile_sites,
        "no document of them, all of the healthy ones; under 256 MB"
    ),
    scenario!(
        "answers made to hurt",
        SQLITE,
        peers::hostile_responses,
        "each ends with its own reason, within its limits; under 256 MB"
    ),
    scenario!(
        "names and handshakes that fail",
        SQLITE,
        peers::names_and_handshakes,
        "each ends with its own reason"
    ),
    scenario!(
        "ways into this network",
        SQLITE,
        peers::ways_inside,
        "all refused, no canary visited"
    ),
    scenario!(
        "pages without end",
        SQLITE,
        peers::traps,
        "every article found, and a bounded number of requests"
    ),
    scenario!(
        "pages made to hurt",
        SQLITE,
        pages::hostile_pages,
        "each within 2 s of CPU time"
    ),
    scenario!(
        "feeds made to hurt",
        SQLITE,
        pages::hostile_feeds,
        "each within 2 s of CPU time"
    ),
];

/// One line of the report.
#[derive(Debug, Serialize)]
struct Line {
    scenario: &'static str,
    engine: Engine,
    expected: &'static str,
    measured: String,
    pass: bool,
    left_out: bool,
    /// It took too long, or did not come to its end, and nothing else is wrong.
    late: bool,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    quick: bool,
    passed: usize,
    failed: usize,
    seconds: f64,
    lines: Vec<Line>,
}

pub(crate) fn run(args: &TortureArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("the runtime can't start")?;
    if args.child.is_wanted() {
        return runtime.block_on(child::run(&args.child, config));
    }
    let wanted = wanted(args);
    if args.list {
        for (scenario, engine) in &wanted {
            output::line(&format!(
                "{engine:<8}  {}: {}",
                scenario.name, scenario.expected
            ))?;
        }
        return Ok(());
    }
    let started = Instant::now();
    let lines = runtime.block_on(endure_all(wanted, args.quick, json))?;
    let passed = lines.iter().filter(|line| line.pass).count();
    let report = Report {
        quick: args.quick,
        passed,
        failed: lines.len() - passed,
        seconds: started.elapsed().as_secs_f64(),
        lines,
    };
    if json {
        output::json(&report)?;
    } else {
        output::line(&format!(
            "{} of {} hold, in {:.0} s.",
            report.passed,
            report.lines.len(),
            report.seconds
        ))?;
    }
    match report.failed {
        0 => Ok(()),
        failed => Err(Failure::Command(anyhow::anyhow!(
            "{failed} of {} scenarios did not hold",
            report.lines.len()
        ))),
    }
}

fn wanted(args: &TortureArgs) -> Vec<(&'static Scenario, Engine)> {
    let is_named = |scenario: &Scenario| {
        args.words.is_empty() || args.words.iter().any(|word| scenario.name.contains(word))
    };
    let is_asked = |engine: &Engine| {
        args.only
            .as_deref()
            .is_none_or(|only| only == engine.to_string())
    };
    SCENARIOS
        .iter()
        .filter(|scenario| is_named(scenario))
        .flat_map(|scenario| {
            scenario
                .engines
                .iter()
                .map(move |engine| (scenario, *engine))
        })
        .filter(|(_, engine)| is_asked(engine))
        .collect()
}

async fn endure_all(
    wanted: Vec<(&'static Scenario, Engine)>,
    quick: bool,
    json: bool,
) -> anyhow::Result<Vec<Line>> {
    // They mostly wait; a few do so together, more when they are small.
    let room = Rc::new(Semaphore::new(if quick { 5 } else { 3 }));
    let local = LocalSet::new();
    let running: Vec<_> = wanted
        .into_iter()
        .map(|(scenario, engine)| {
            let room = Rc::clone(&room);
            local.spawn_local(async move {
                let _turn = room.acquire().await;
                endure(scenario, Setting { engine, quick }).await
            })
        })
        .collect();
    local
        .run_until(async {
            let mut lines = Vec::new();
            for line in running {
                let line = line.await.context("a scenario broke off")?;
                if !json {
                    show(&line)?;
                }
                lines.push(line);
            }
            Ok(lines)
        })
        .await
}

async fn endure(scenario: &'static Scenario, setting: Setting) -> Line {
    let started = Instant::now();
    if std::io::stderr().is_terminal() {
        // What can't be shown is no reason to stop.
        let _ = write!(
            std::io::stderr(),
            "\r\x1b[K… {} ({})",
            scenario.name,
            setting.engine
        );
    }
    // However it goes wrong.
    let patience = setting.late() * 2;
    let running = tokio::time::timeout(patience, (scenario.run)(setting)).await;
    let measured = match running {
        Ok(Ok(measured)) => measured,
        Ok(Err(error)) => Measured::new(true, format!("broke off: {error:#}")).in_time(false),
        Err(_) => Measured::new(true, "did not end").in_time(false),
    };
    Line {
        scenario: scenario.name,
        engine: setting.engine,
        expected: scenario.expected,
        measured: measured.text,
        pass: measured.holds,
        left_out: measured.is_left_out,
        late: measured.is_late,
        seconds: (started.elapsed().as_secs_f64() * 10.0).round() / 10.0,
    }
}

fn show(line: &Line) -> anyhow::Result<()> {
    if std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    let verdict = match (line.pass, line.left_out) {
        (true, true) => "none  ",
        (true, false) => "holds ",
        (false, _) => "BROKEN",
    };
    output::line(&format!(
        "{verdict}  {:<8}  {:>5.1} s  {}\n          expected  {}\n          measured  {}",
        line.engine, line.seconds, line.scenario, line.expected, line.measured
    ))
}
