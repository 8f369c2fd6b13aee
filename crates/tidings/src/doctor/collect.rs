//! Reads the facts that findings are made of: from the store, the configuration
//! and this machine. Judges nothing and changes nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tidings_server::Health;
use tidings_store::{Feed, Moment, Overdue, SCHEMA_VERSION, Source, Store, StoreOptions};

use super::feeds::{FeedFacts, LATE, SILENT, Troubled};
use super::frontier::FrontierFacts;
use super::machine::MachineFacts;
use super::sinks::SinkFacts;
use super::store::StoreFacts;
use super::{Everything, Facts, Kept};
use crate::config::Config;
use crate::stores;

const PAGE: u32 = 1000;
/// Reasons for which URLs were given up.
const REASONS: u32 = 20;
/// Polls by which a source in trouble is judged, as the dashboard does.
const POLLS: u32 = 30;

pub(crate) async fn facts(config: &Config) -> Facts {
    Facts {
        machine: machine(config),
        kept: kept(config).await,
    }
}

async fn kept(config: &Config) -> Kept {
    let address = config.store_address();
    match Store::schema_version(&address).await {
        Ok(None) => return Kept::Nothing,
        Ok(Some(found)) if found < SCHEMA_VERSION => return Kept::Older { found },
        // Opening says why it can't be asked.
        Ok(Some(_)) | Err(_) => {}
    }
    let store = match stores::open(&address, config).await {
        Ok(store) => store,
        Err(failure) => {
            return Kept::Closed {
                place: "the store".to_owned(),
                why: failure.to_string(),
            };
        }
    };
    match everything(&store, config).await {
        Ok(all) => Kept::All(Box::new(all)),
        Err(error) => Kept::Closed {
            place: store.place().to_owned(),
            why: error.to_string(),
        },
    }
}

async fn everything(store: &Store, config: &Config) -> tidings_store::Result<Everything> {
    Ok(Everything {
        store: store_facts(store).await?,
        frontier: frontier(store, config).await?,
        feeds: feeds(store, config).await?,
        sinks: sinks(store, config).await?,
    })
}

async fn store_facts(store: &Store) -> tidings_store::Result<StoreFacts> {
    let diagnostics = store.diagnostics().await?;
    let before = Moment::from(Timestamp::now());
    let theirs = store.now().await?;
    let after = Moment::from(Timestamp::now());
    // Between the two the answer was given.
    let apart = before.since(theirs).max(theirs.since(after));
    Ok(StoreFacts {
        place: store.place().to_owned(),
        schema_version: SCHEMA_VERSION,
        bytes: diagnostics.bytes,
        connections: diagnostics.connections,
        pool: StoreOptions::default().connections as u64,
        clock: apart,
    })
}

async fn frontier(store: &Store, config: &Config) -> tidings_store::Result<FrontierFacts> {
    let stats = store.stats().await?;
    let count = |status: &str| stats.by_status.get(status).copied().unwrap_or(0);
    let late = store.overdue_hosts().await?;
    let slowest = late.iter().find(|hosts| hosts.late == Overdue::Gated);
    let queue_of_slowest = match slowest {
        Some(hosts) => {
            let of_host = store.host_stats(hosts.id).await?.by_status;
            let waiting = ["pending", "failed"].map(|status| of_host.get(status).copied());
            waiting.into_iter().flatten().sum::<i64>().unsigned_abs()
        }
        None => 0,
    };
    Ok(FrontierFacts {
        urls: stats.by_status.values().sum::<i64>().unsigned_abs(),
        dead: count("dead").unsigned_abs(),
        late,
        leases: store.leases().await?,
        permanent_failures: store.permanent_failures(REASONS).await?,
        queue_of_slowest,
        is_outbox_full: store.outbox_exceeds(config.outbox_bound).await?,
        at_once: config.fetch.at_once,
    })
}

async fn feeds(store: &Store, config: &Config) -> tidings_store::Result<FeedFacts> {
    let now = store.now().await?;
    let mut by_source = feeds_by_source(store).await?;
    let polled = by_source.values().flatten();
    let last_poll = polled.filter_map(|feed| feed.last_polled_at).max();
    let mut facts = FeedFacts {
        last_poll: last_poll.map(|last| now.since(last)),
        polls_at_once: config.polls_at_once,
        ..FeedFacts::default()
    };
    let mut after = i64::MIN;
    loop {
        let sources = store.sources_after(after, PAGE).await?;
        let Some(last) = sources.last() else { break };
        after = last.source_id;
        for source in sources.into_iter().filter(|source| source.enabled) {
            let feeds = by_source.remove(&source.source_id).unwrap_or_default();
            add_source(&mut facts, store, &source, &feeds, now).await?;
        }
    }
    let tasks = store.tasks(100).await?;
    let failed = tasks.iter().filter(|task| task.status == "error");
    facts.failed_tasks = failed
        .map(|task| format!("{} {}: {}", task.kind, task.subject, task.detail))
        .collect();
    Ok(facts)
}

async fn feeds_by_source(store: &Store) -> tidings_store::Result<HashMap<i64, Vec<Feed>>> {
    let mut by_source: HashMap<i64, Vec<Feed>> = HashMap::new();
    let mut after = i64::MIN;
    loop {
        let feeds = store.feeds_after(after, PAGE).await?;
        let Some(last) = feeds.last() else {
            return Ok(by_source);
        };
        after = last.feed_id;
        for feed in feeds {
            // What was learned of it is long, and not asked for here.
            let feed = Feed {
                policy: String::new(),
                ..feed
            };
            by_source.entry(feed.source_id).or_default().push(feed);
        }
    }
}

async fn add_source(
    facts: &mut FeedFacts,
    store: &Store,
    source: &Source,
    feeds: &[Feed],
    now: Moment,
) -> tidings_store::Result<()> {
    facts.sources += 1;
    facts.feeds += feeds.len() as u64;
    if feeds.is_empty() {
        facts.without_feed.push(source.name.clone());
        return Ok(());
    }
    for feed in feeds.iter().filter(|feed| feed.paused_reason.is_none()) {
        let late = now.since(feed.next_poll_at);
        if late >= LATE {
            facts.late += 1;
            facts.longest_late = facts.longest_late.max(late);
        }
    }
    let is_troubled = |feed: &Feed| feed.consecutive_errors > 0 || feed.paused_reason.is_some();
    let Some(troubled) = feeds.iter().find(|feed| is_troubled(feed)) else {
        let news = feeds.iter().filter_map(|feed| feed.last_new_at).max();
        let is_polled = feeds.iter().any(|feed| feed.last_polled_at.is_some());
        let quiet = now.since(news.unwrap_or(source.created_at));
        if is_polled && quiet >= SILENT {
            facts.silent.push((source.name.clone(), quiet));
        }
        return Ok(());
    };
    let polls = store.fetch_log(troubled.feed_id, POLLS).await?;
    let health = Health::of(source, feeds, &polls);
    let told = Troubled {
        name: source.name.clone(),
        why: match &troubled.last_error {
            Some(error) => format!("{} ({error})", health.why),
            None => health.why,
        },
    };
    match health.word {
        "feed paused" => facts.paused.push(told),
        "failing" => facts.failing.push(told),
        _ => {}
    }
    Ok(())
}

async fn sinks(store: &Store, config: &Config) -> tidings_store::Result<Vec<SinkFacts>> {
    let now = store.now().await?;
    let mut found = Vec::new();
    for state in store.outbox().await? {
        let due = store.next_delivery_due(&state.sink).await?;
        let deaths = store.dead_letters(&state.sink, None, 1).await?;
        found.push(SinkFacts {
            is_configured: config.sinks.iter().any(|sink| sink.name == state.sink),
            oldest: state.oldest.map(|oldest| now.since(oldest)),
            due: due.map(|due| now.since(due)).unwrap_or_default(),
            last_death: deaths.into_iter().next().map(|letter| letter.reason),
            bound: config.outbox_bound,
            state,
        });
    }
    Ok(found)
}

fn machine(config: &Config) -> MachineFacts {
    let egress = config.net.egress();
    MachineFacts {
        folder: config.data_dir().display().to_string(),
        disk: disk(config.data_dir()),
        open_files: open_files(),
        at_once: config.fetch.at_once as u64,
        contact: config.net.contact().to_owned(),
        allowed: egress.allow.clone(),
        ports: egress.ports.clone(),
        bind: config.server.is_enabled.then_some(config.server.bind),
        public_hosts: config.server.public_hosts.clone(),
    }
}

/// Free and all bytes of the disk that a folder is on, or will be.
fn disk(folder: &Path) -> Option<(u64, u64)> {
    let folder = std::path::absolute(folder).ok()?;
    let there: PathBuf = folder.ancestors().find(|path| path.exists())?.to_owned();
    let room = rustix::fs::statvfs(&there).ok()?;
    Some((room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize))
}

/// As the system says of this process; only Linux says it in a file.
fn open_files() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}
