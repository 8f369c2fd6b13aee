//! `tidings run`: all roles in one process, on real sources or on a simulated web,
//! until a shutdown is requested.

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tidings_engine::{PollPolicy, SourceDraft, SourceSettings, add_source, add_starter_sources};
use tidings_net::NetOptions;
use tidings_sim::{SimClock, SimServer, WorldConfig};
use tidings_store::Store;

use crate::commands::sim::{self, WorldArgs};
use crate::config::Config;
use crate::demo::{self, Demo};
use crate::failure::Failure;
use crate::roles::{Role, Roles};
use crate::run_status::StatusReporter;
use crate::shutdown::Shutdown;
use crate::{output, stores};

/// Run Tidings until Ctrl-C: poll sources, fetch pages, deliver documents
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings run                      all sources, on this machine
  tidings run --set server.bind=127.0.0.1:9000
  tidings run --demo               a simulated web, offline, to see it work
  tidings run --demo --faults      with injected faults, and nothing lost
  tidings run --demo --sites 20 --pace 100 --faults 20")]
pub(crate) struct RunArgs {
    /// Run on a simulated web, offline, and compare with its ledger
    #[arg(long)]
    demo: bool,

    /// With --demo: publish nothing new, and exit when everything is delivered
    #[arg(long, requires = "demo")]
    until_done: bool,

    /// Port of the simulated web; 0 for any free one
    #[arg(long, default_value_t = 0)]
    sim_port: u16,

    #[command(flatten)]
    world: WorldArgs,
}

pub(crate) fn run(args: &RunArgs, config: Config, json: bool) -> Result<(), Failure> {
    let net = config.net.options()?;
    if !args.demo {
        return stores::with_store(&config, async |store| {
            sources(store, net, &config, json).await
        });
    }
    // A demo starts empty: it has a temporary folder, which is removed at the end.
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let world = args.world.world(&config.demo)?;
    let config = config.for_demo(folder.path());
    stores::with_store(&config, async |store| {
        demo(args, world, store, net, &config, json).await
    })
}

async fn sources(
    mut store: Store,
    net: NetOptions,
    config: &Config,
    json: bool,
) -> Result<(), Failure> {
    let shutdown = Shutdown::listen()?;
    stores::share_proxy_hosts(&mut store, config).await?;
    let added = match config.adds_starter_sources {
        true => add_starter_sources(&store, false)
            .await
            .map_err(anyhow::Error::new)?
            .added
            .len(),
        false => 0,
    };
    let known = store.sources_after(i64::MIN, 1).await;
    let has_sources = !known.map_err(anyhow::Error::new)?.is_empty();
    if !json {
        output::line(&format!("Store: {}", store.location()))?;
        if added > 0 {
            output::line(&format!("Added {added} starter sources."))?;
        }
        if !has_sources {
            output::line(
                "No sources yet. Add one in another terminal: tidings add https://example.com/",
            )?;
        }
        output::line("Press Ctrl-C to stop.")?;
    }
    let roles = Roles::new(&Role::all(config), &store, net, config).await?;
    roles.announce(json)?;
    let reporter = StatusReporter::new(&store, roles.worker().cloned(), json);
    Ok(reporter.run(&roles, shutdown.requested()).await?)
}

async fn demo(
    args: &RunArgs,
    world: WorldConfig,
    store: Store,
    net: NetOptions,
    config: &Config,
    json: bool,
) -> Result<(), Failure> {
    let shutdown = Shutdown::listen()?;
    // With a running clock articles keep appearing, and there is no end.
    let clock = match args.until_done {
        true => SimClock::manual(world.start),
        false => SimClock::running(world.start, 1.0),
    };
    let sim = sim::start(world, clock, args.sim_port).await?;
    let feeds = follow_all(&store, &sim).await?;
    if json {
        output::json(
            &json!({ "sim": format!("http://{}/", sim.address()), "published": sim.ledger().published(), "feeds": feeds }),
        )?;
    } else {
        output::line(&format!("Simulated web: http://{}/", sim.address()))?;
        output::line(&format!(
            "{} sites have published {} articles, which {feeds} feeds announce. Press Ctrl-C to stop.",
            sim.world().len(),
            sim.ledger().published()
        ))?;
    }
    let net = demo::allowed(net, &sim);
    let roles = Roles::new(&Role::all(config), &store, net, config).await?;
    roles.announce(json)?;
    let ledger = Demo::new(&store, &sim, config)?;
    let reporter = StatusReporter::new(&store, roles.worker().cloned(), json).with_demo(&ledger);
    let done = async {
        match args.until_done {
            true => ledger.all_delivered().await,
            false => std::future::pending().await,
        }
    };
    let stop = async {
        tokio::select! {
            () = shutdown.requested() => {}
            () = done => {}
        }
    };
    reporter.run(&roles, stop).await?;
    let totals = ledger.final_totals().await?;
    match json {
        true => output::json(&json!({ "ledger": totals }))?,
        false => output::line(&totals.to_string())?,
    }
    match totals.is_consistent() {
        true => Ok(()),
        false => Err(Failure::Command(anyhow::anyhow!(
            "the ledger is inconsistent: {} lost, {} duplicated, {} unexpected",
            totals.lost,
            totals.duplicated,
            totals.unknown
        ))),
    }
}

/// Adds every feed of every simulated site as a source. Feeds of a web with faults
/// are polled once per minute: after a failure the interval doubles.
pub(crate) async fn follow_all(store: &Store, sim: &SimServer) -> anyhow::Result<usize> {
    let mut count = 0;
    let defaults = match sim.world().config().fault_percent {
        0 => SourceSettings::default(),
        _ => SourceSettings {
            poll_policy: PollPolicy::Fixed,
            feed_poll_interval_minutes: 1,
            ..SourceSettings::default()
        },
    };
    for site in sim.world().sites() {
        for feed in &site.feeds {
            let url = site.url(&feed.path);
            let draft = SourceDraft {
                name: url.as_str().to_owned(),
                url: site.url("/"),
                priority: 5,
                settings: SourceSettings {
                    feed_url: Some(url),
                    ..defaults.clone()
                },
            };
            add_source(store, &draft).await?;
            count += 1;
        }
    }
    Ok(count)
}
