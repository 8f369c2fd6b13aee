//! Reads the facts that findings are derived from: the store, the configuration
//! and this machine. Diagnoses nothing and changes nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tidings_engine::{LIMITED, SourceSettings};
use tidings_server::Health;
use tidings_store::{Feed, Moment, Overdue, SCHEMA_VERSION, Source, Store};

use super::feeds::{FailingSource, FeedFacts, OVERDUE_AFTER, SILENT_AFTER};
use super::frontier::FrontierFacts;
use super::machine::MachineFacts;
use super::sinks::SinkFacts;
use super::store::StoreFacts;
use super::{Facts, StoreContents, StoreState};
use crate::config::Config;
use crate::{open_files, stores};

const PAGE: u32 = 1000;
/// Reasons of permanent failures that are read.
const MAX_REASONS: u32 = 20;
/// Polls by which the health of a failing source is derived, as the dashboard does.
const HEALTH_POLLS: u32 = 30;

pub(crate) async fn facts(config: &Config) -> Facts {
    let mut machine = machine(config);
    let store = store_state(config, &mut machine).await;
    Facts { machine, store }
}

async fn store_state(config: &Config, machine: &mut MachineFacts) -> StoreState {
    let address = config.store_address();
    match Store::schema_version(&address).await {
        Ok(None) => return StoreState::Missing,
        Ok(Some(found)) if found < SCHEMA_VERSION => return StoreState::Outdated { found },
        // Opening says why it can't be read.
        Ok(Some(_)) | Err(_) => {}
    }
    let store = match stores::open(&address, config).await {
        Ok(store) => store,
        Err(failure) => {
            return StoreState::Unavailable {
                place: "the store".to_owned(),
                why: failure.to_string(),
            };
        }
    };
    let configured = config.net.proxy_hosts();
    machine.proxy_hosts = configured
        .filter(|configured| *configured != store.proxy_hosts())
        .map(|configured| (configured.to_string(), store.proxy_hosts().to_string()));
    match contents(&store, config).await {
        Ok(contents) => StoreState::Open(Box::new(contents)),
        Err(error) => StoreState::Unavailable {
            place: store.location().to_owned(),
            why: error.to_string(),
        },
    }
}

async fn contents(store: &Store, config: &Config) -> tidings_store::Result<StoreContents> {
    Ok(StoreContents {
        store: store_facts(store, config).await?,
        frontier: frontier(store, config).await?,
        feeds: feeds(store, config).await?,
        sinks: sinks(store, config).await?,
    })
}

async fn store_facts(store: &Store, config: &Config) -> tidings_store::Result<StoreFacts> {
    let diagnostics = store.diagnostics().await?;
    let before = Moment::from(Timestamp::now());
    let store_time = store.now().await?;
    let after = Moment::from(Timestamp::now());
    // The store read its clock between the two.
    let offset = before.since(store_time).max(store_time.since(after));
    let report = store.maintenance_report().await?;
    let maintenance = report.map(|report| (store_time.since(report.at), report.removed));
    Ok(StoreFacts {
        maintenance,
        place: store.location().to_owned(),
        schema_version: SCHEMA_VERSION,
        bytes: diagnostics.bytes,
        connections: diagnostics.connections,
        pool_size: config.store_connections as u64,
        clock_offset: offset,
    })
}

async fn frontier(store: &Store, config: &Config) -> tidings_store::Result<FrontierFacts> {
    let stats = store.stats().await?;
    let count = |status: &str| stats.by_status.get(status).copied().unwrap_or(0);
    let overdue = store.overdue_hosts().await?;
    let slowest = overdue.iter().find(|hosts| hosts.late == Overdue::Gated);
    let slowest_host_queue = match slowest {
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
        overdue,
        leases: store.leases().await?,
        permanent_failures: store.permanent_failures(MAX_REASONS).await?,
        slowest_host_queue,
        is_outbox_full: store.outbox_exceeds(config.outbox_max_pending).await?,
        concurrency: config.fetch.concurrency,
    })
}

async fn feeds(store: &Store, config: &Config) -> tidings_store::Result<FeedFacts> {
    let now = store.now().await?;
    let mut by_source = feeds_by_source(store).await?;
    let polled = by_source.values().flatten();
    let last_poll = polled.filter_map(|feed| feed.last_polled_at).max();
    let mut facts = FeedFacts {
        last_poll: last_poll.map(|last| now.since(last)),
        poll_concurrency: config.poll_concurrency,
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
    let tasks = store.tasks(None, 100).await?;
    let failed = tasks.iter().filter(|task| task.status == "failed");
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
            // The polling model is long, and not needed here.
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
    if SourceSettings::has_ignored(source) {
        facts.with_ignored.push(source.name.clone());
    }
    facts.feeds += feeds.len() as u64;
    if feeds.is_empty() {
        facts.without_feed.push(source.name.clone());
        return Ok(());
    }
    let is_limited = |feed: &&Feed| feed.error_class.as_deref() == Some(LIMITED);
    if let Some(feed) = feeds.iter().find(is_limited) {
        facts.limited.push(FailingSource {
            name: source.name.clone(),
            why: feed.last_error.clone().unwrap_or_default(),
        });
    }
    for feed in feeds.iter().filter(|feed| feed.paused_reason.is_none()) {
        let overdue = now.since(feed.next_poll_at);
        if overdue >= OVERDUE_AFTER {
            facts.overdue += 1;
            facts.longest_overdue = facts.longest_overdue.max(overdue);
        }
    }
    let is_failing = |feed: &Feed| feed.consecutive_errors > 0 || feed.paused_reason.is_some();
    let Some(failing) = feeds.iter().find(|feed| is_failing(feed)) else {
        let last_new = feeds.iter().filter_map(|feed| feed.last_new_at).max();
        let is_polled = feeds.iter().any(|feed| feed.last_polled_at.is_some());
        let quiet = now.since(last_new.unwrap_or(source.created_at));
        if is_polled && quiet >= SILENT_AFTER {
            facts.silent.push((source.name.clone(), quiet));
        }
        return Ok(());
    };
    let polls = store.fetch_log(failing.feed_id, HEALTH_POLLS).await?;
    let health = Health::of(source, feeds, &polls);
    let failing = FailingSource {
        name: source.name.clone(),
        why: match &failing.last_error {
            Some(error) => format!("{} ({error})", health.why),
            None => health.why,
        },
    };
    match health.word {
        "feed paused" => facts.paused.push(failing),
        "failing" => facts.failing.push(failing),
        _ => {}
    }
    Ok(())
}

async fn sinks(store: &Store, config: &Config) -> tidings_store::Result<Vec<SinkFacts>> {
    let now = store.now().await?;
    let mut found = Vec::new();
    for state in store.outbox().await? {
        let due = store.next_delivery_due(&state.sink).await?;
        let dead_letters = store.dead_letters(&state.sink, None, 1).await?;
        found.push(SinkFacts {
            is_configured: config.sinks.iter().any(|sink| sink.name == state.sink),
            is_unserved: state.is_unserved(now),
            oldest: state.oldest.map(|oldest| now.since(oldest)),
            overdue: due.map(|due| now.since(due)).unwrap_or_default(),
            last_dead_letter: dead_letters.into_iter().next().map(|letter| letter.reason),
            max_pending: config.outbox_max_pending,
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
        open_files: open_files::limit(),
        concurrency: config.fetch.concurrency as u64,
        contact: config.net.contact().to_owned(),
        proxy_hosts: None,
        allowed: egress.allow.clone(),
        ports: egress.ports.clone(),
        bind: config.server.is_enabled.then_some(config.server.bind),
        public_hosts: config.server.public_hosts.clone(),
    }
}

/// Free and total bytes of the disk that a folder is on, or will be.
fn disk(folder: &Path) -> Option<(u64, u64)> {
    let folder = std::path::absolute(folder).ok()?;
    let there: PathBuf = folder.ancestors().find(|path| path.exists())?.to_owned();
    let disk = rustix::fs::statvfs(&there).ok()?;
    Some((disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize))
}
