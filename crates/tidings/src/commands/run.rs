//! `tidings run`: everything in one process, on real sources or on a simulated
//! web, until it is asked to end.

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tidings_engine::{PollPolicy, SourceDraft, SourceSettings, add_source};
use tidings_net::NetOptions;
use tidings_sim::{SimClock, SimServer, WorldConfig};
use tidings_store::Store;

use crate::commands::sim::{self, WorldArgs};
use crate::config::Config;
use crate::demo::{self, Demo};
use crate::failure::Failure;
use crate::roles::{Role, Roles};
use crate::shutdown::Shutdown;
use crate::watch::Watch;
use crate::{output, stores};

/// Run Tidings until Ctrl-C: ask sources for news, fetch pages, keep documents
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings run                      all sources, on this machine
  tidings run --set server.bind=127.0.0.1:9000
  tidings run --demo               a simulated web, offline, to see it work
  tidings run --demo --faults      with trouble, and a ledger that still adds up
  tidings run --demo --sites 20 --pace 100 --faults 20")]
pub(crate) struct RunArgs {
    /// Run on a simulated web, offline, and compare with its ledger
    #[arg(long)]
    demo: bool,

    /// With --demo: publish nothing new, and end when everything is delivered
    #[arg(long, requires = "demo")]
    until_done: bool,

    /// Port of the simulated web; 0 takes any free one
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
    // A demo of last week is of no use: it has a folder of its own, and leaves none.
    let folder = tempfile::tempdir().context("there is no folder for temporary files")?;
    let world = args.world.world(&config.demo)?;
    let config = config.for_demo(folder.path());
    stores::with_store(&config, async |store| {
        demo(args, world, store, net, &config, json).await
    })
}

async fn sources(
    store: Store,
    net: NetOptions,
    config: &Config,
    json: bool,
) -> Result<(), Failure> {
    let shutdown = Shutdown::listen()?;
    let known = store.sources_after(i64::MIN, 1).await;
    let has_sources = !known.map_err(anyhow::Error::new)?.is_empty();
    if !json {
        output::line(&format!("Everything is kept in {}.", store.location()))?;
        if !has_sources {
            output::line(
                "There are no sources yet. Add some in another terminal: tidings add https://example.com/",
            )?;
        }
        output::line("Ctrl-C ends it.")?;
    }
    let roles = Roles::new(&Role::all(config), &store, net, config).await?;
    roles.announce(json)?;
    let watch = Watch::new(&store, roles.worker().cloned(), json);
    Ok(watch.during(&roles, shutdown.requested()).await?)
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
    // Where news go on appearing there is no end.
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
            "{} sites have published {} articles, which {feeds} feeds announce. Ctrl-C ends it.",
            sim.world().len(),
            sim.ledger().published()
        ))?;
    }
    let net = demo::allowed(net, &sim);
    let roles = Roles::new(&Role::all(config), &store, net, config).await?;
    roles.announce(json)?;
    let ledger = Demo::new(&store, &sim, config)?;
    let watch = Watch::new(&store, roles.worker().cloned(), json).with_demo(&ledger);
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
    watch.during(&roles, stop).await?;
    let sum = ledger.judge().await?;
    match json {
        true => output::json(&json!({ "ledger": sum }))?,
        false => output::line(&sum.to_string())?,
    }
    match sum.is_right() {
        true => Ok(()),
        false => Err(Failure::Command(anyhow::anyhow!(
            "the ledger does not add up: {} lost, {} duplicated, {} of nothing",
            sum.lost,
            sum.duplicated,
            sum.unknown
        ))),
    }
}

/// Every feed of every simulated site, each as a source. Feeds of a web with
/// faults are polled each minute: who fails is left alone for twice as long.
pub(crate) async fn follow_all(store: &Store, sim: &SimServer) -> anyhow::Result<usize> {
    let mut count = 0;
    let usual = match sim.world().config().fault_percent {
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
                    ..usual.clone()
                },
            };
            add_source(store, &draft).await?;
            count += 1;
        }
    }
    Ok(count)
}
