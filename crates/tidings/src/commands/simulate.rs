//! `tidings simulate`: compares policies in simulated time, before they are used on
//! real publishers.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use tidings_polling::simulate::{
    self, Comparison, Contestants, Dating, Population, Row, World, read_trace,
};

use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;

/// Compare policies in simulated time
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings simulate polling --population small-web --seed 7
  tidings simulate polling --trace items.jsonl --svg delays.svg")]
pub(crate) struct SimulateArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Polling(PollingArgs),
}

/// Compare the discovery delay of polling policies at equal numbers of requests
#[derive(Debug, Args)]
#[command(
    after_help = "The adaptive policy runs once for each other policy, with a budget of as many
requests as the other one sent. The first third of the time is for training and
is not measured. Delays are minutes from publication to discovery; lost items had left
the feed before it was polled. A trace is a file with one line per item:
  {\"feed\": \"bbc\", \"published\": \"2026-01-05T09:00:00Z\"}

Examples:
  tidings simulate polling
  tidings simulate polling --policy fixed,adaptive --population small-web --seed 7
  tidings simulate polling --population all-news --dates none --json
  tidings simulate polling --trace items.jsonl --svg delays.svg"
)]
struct PollingArgs {
    /// Policies to compare
    #[arg(long, value_enum, value_delimiter = ',', value_name = "POLICY", default_values_t = [PolicyName::All])]
    policy: Vec<PolicyName>,

    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Population of generated feeds
    #[arg(long, value_enum, value_name = "NAME", default_value_t = PopulationName::Mixed)]
    population: PopulationName,

    /// Poll recorded feeds instead: a file of feed ids and publication times
    #[arg(long, value_name = "FILE", conflicts_with_all = ["population", "feeds"])]
    trace: Option<PathBuf>,

    /// Days to simulate [default: 42, or all of the trace]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: Option<u32>,

    /// Number of feeds to generate
    #[arg(long, value_name = "N", default_value_t = 150, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    feeds: u32,

    /// How the feeds date their items
    #[arg(long, value_enum, value_name = "HOW", default_value_t = DatingName::Exact)]
    dates: DatingName,

    /// Interval of the fixed policy, in minutes
    #[arg(long, value_name = "MINUTES", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_080))]
    interval: u32,

    /// Items that a feed of a trace lists, where the trace has no number
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    window: u32,

    /// Write the chart as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PolicyName {
    Fixed,
    Doubling,
    Adaptive,
    All,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PopulationName {
    /// Two fifths newsrooms, the rest small sites
    Mixed,
    /// Hardly any newsrooms
    SmallWeb,
    /// Nearly only newsrooms
    AllNews,
    /// Mixed, and most items come in bursts
    Bursty,
    /// Mixed, and feeds change their rate every week or two
    Changing,
    /// Mixed, and half of the feeds are or fall silent
    Dying,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DatingName {
    /// The moment of publication
    Exact,
    /// The day only
    Day,
    /// All the same
    Equal,
    /// In the future
    Future,
    /// Not at all
    None,
}

pub(crate) fn run(args: &SimulateArgs, json: bool) -> Result<(), Failure> {
    match &args.what {
        What::Polling(args) => Ok(polling(args, json)?),
    }
}

fn polling(args: &PollingArgs, json: bool) -> anyhow::Result<()> {
    let world = args.world()?;
    let contestants = args.contestants();
    let days = (world.end - world.start) as u64 / 86_400_000 + 1;
    let mut progress = Progress::new("simulated days", Some(contestants.runs() * days));
    let mut tick = || progress.advance(1);
    let comparison = simulate::compare(&world, contestants, args.seed, &mut tick);
    progress.finish();
    if let Some(path) = &args.svg {
        fs::write(path, simulate::svg(&comparison))
            .with_context(|| format!("{} can't be written", path.display()))?;
    }
    if json {
        output::json(&comparison)
    } else {
        print(&comparison)
    }
}

impl PollingArgs {
    fn world(&self) -> anyhow::Result<World> {
        let mut world = match &self.trace {
            Some(path) => {
                let text = fs::read_to_string(path)
                    .with_context(|| format!("the trace {} can't be read", path.display()))?;
                read_trace(&text, self.window as usize)
                    .with_context(|| format!("invalid trace {}", path.display()))?
            }
            None => self
                .population()
                .world(self.feeds, self.days.unwrap_or(42), self.seed),
        };
        if let Some(days) = self.days {
            world = world.first_days(days);
        }
        Ok(world.dated(self.dating()))
    }

    fn contestants(&self) -> Contestants {
        let has = |name| self.policy.contains(&name) || self.policy.contains(&PolicyName::All);
        Contestants {
            every: Duration::from_secs(u64::from(self.interval) * 60),
            fixed: has(PolicyName::Fixed),
            doubling: has(PolicyName::Doubling),
            adaptive: has(PolicyName::Adaptive),
        }
    }

    fn population(&self) -> Population {
        match self.population {
            PopulationName::Mixed => Population::Mixed,
            PopulationName::SmallWeb => Population::SmallWeb,
            PopulationName::AllNews => Population::AllNews,
            PopulationName::Bursty => Population::Bursty,
            PopulationName::Changing => Population::Changing,
            PopulationName::Dying => Population::Dying,
        }
    }

    fn dating(&self) -> Dating {
        match self.dates {
            DatingName::Exact => Dating::Exact,
            DatingName::Day => Dating::Day,
            DatingName::Equal => Dating::Equal,
            DatingName::Future => Dating::Future,
            DatingName::None => Dating::None,
        }
    }
}

const HEADER: [&str; 11] = [
    "POLICY",
    "SPENDS",
    "REQUESTS",
    "PER FEED AND DAY",
    "NOTHING NEW",
    "MEAN",
    "P50",
    "P90",
    "P99",
    "LOST",
    "MEAN VS",
];

fn print(comparison: &Comparison) -> anyhow::Result<()> {
    let items = comparison.rows.first().map_or(0, |row| row.measured.items);
    output::line(&format!(
        "{}: {} feeds, {items} items in {:.0} measured days, seed {}; delays in minutes",
        comparison.world, comparison.feeds, comparison.judged_days, comparison.seed
    ))?;
    output::line("")?;
    let header = [HEADER.map(str::to_owned)];
    let rows: Vec<_> = header
        .into_iter()
        .chain(comparison.rows.iter().map(cells))
        .collect();
    output::columns(&rows)?;
    output::line("")?;
    output::line(simulate::chart(comparison).trim_end())
}

fn cells(row: &Row) -> [String; 11] {
    let measured = &row.measured;
    let against = match (row.mean_ratio, row.spends.strip_prefix("as ")) {
        (Some(ratio), Some(baseline)) => format!("{ratio:.2} x {baseline}"),
        _ => String::new(),
    };
    [
        row.policy.to_owned(),
        row.spends.clone(),
        measured.requests.to_string(),
        format!("{:.1}", measured.requests_per_feed_day),
        format!("{:.0} %", 100.0 * measured.without_news),
        format!("{:.1}", measured.mean),
        format!("{:.1}", measured.p50),
        format!("{:.1}", measured.p90),
        format!("{:.1}", measured.p99),
        measured.lost.to_string(),
        against,
    ]
}
