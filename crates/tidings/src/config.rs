//! The configuration as the program uses it: plain typed structs, passed down,
//! never global. Values come from [`settings`], which knows where each is from.

mod adapters;
mod net;
mod settings;
mod sinks;
mod starter_file;
mod table;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidings_adapters::ServiceOptions;
use tidings_engine::{PollOptions, Retention, RetryPolicy};
use tidings_net::IpNet;
use tidings_server::TlsFiles;
use tracing::Level;

pub(crate) use net::NetConfig;
pub(crate) use settings::{Origin, Settings};
pub(crate) use sinks::NamedSink;
pub(crate) use starter_file::StarterFile;

use crate::cli::Cli;
use crate::config_error::ConfigError;

/// Everything that can be configured.
#[derive(Debug)]
pub(crate) struct Config {
    store: String,
    /// Connections of this process to PostgreSQL.
    pub(crate) store_connections: usize,
    /// A pooler in transaction mode is in front of PostgreSQL.
    pub(crate) has_pooler: bool,
    data_dir: PathBuf,
    pub(crate) log: LogConfig,
    pub(crate) net: NetConfig,
    pub(crate) fetch: FetchConfig,
    pub(crate) retries: RetryPolicy,
    pub(crate) sinks: Vec<NamedSink>,
    /// Fetching stops while a sink has more documents pending.
    pub(crate) outbox_max_pending: u64,
    /// How long a URL stays leased to a process that does not extend the lease.
    pub(crate) lease: Duration,
    pub(crate) poll_concurrency: usize,
    max_new_urls_per_day: u64,
    /// Starter sources that were never added before are added at a start.
    pub(crate) adds_starter_sources: bool,
    /// Services with an adapter, by its kind.
    services: BTreeMap<String, ServiceOptions>,
    /// Between two scheduled runs over all sources, if there are any.
    pub(crate) collect_interval: Option<Duration>,
    collect_concurrency: usize,
    collect_max_new: usize,
    pub(crate) retention: Retention,
    pub(crate) server: ServerConfig,
    pub(crate) demo: DemoConfig,
}

/// How pages are fetched.
#[derive(Debug)]
pub(crate) struct FetchConfig {
    pub(crate) concurrency: usize,
    /// The longest pause between two claims.
    pub(crate) claim_interval: Duration,
    /// Threads that extract articles from pages; one per core if unset.
    pub(crate) extract_threads: Option<usize>,
    pub(crate) host_delay: Duration,
    pub(crate) max_per_host: u16,
    pub(crate) archive_html: bool,
}

#[derive(Debug)]
pub(crate) struct LogConfig {
    pub(crate) level: Level,
    pub(crate) format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Pretty,
    Json,
}

/// Where the API and the dashboard are served.
#[derive(Debug)]
pub(crate) struct ServerConfig {
    pub(crate) is_enabled: bool,
    pub(crate) bind: SocketAddr,
    pub(crate) public_hosts: Vec<String>,
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) max_connections: usize,
    /// Every setting with secrets masked, for the page of settings.
    pub(crate) settings: Vec<tidings_server::Setting>,
}

/// The simulated web that `run --demo` and `sim` serve.
#[derive(Debug)]
pub(crate) struct DemoConfig {
    pub(crate) sites: u32,
    pub(crate) articles: u32,
    pub(crate) seed: u64,
}

impl Config {
    /// Defaults, then the file, then the environment, then the flags.
    pub(crate) fn load(cli: &Cli) -> Result<(Self, Settings), ConfigError> {
        let flags = settings::flags(&cli.global)?;
        let file = settings::read_file(cli.global.config.as_deref())?;
        let environment: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let settings = Settings::resolve(file.as_ref(), &environment, &flags)?;
        let (tables, place) = file
            .as_ref()
            .map_or((None, String::new()), settings::File::sinks);
        if settings.text("server.tls_cert").is_empty() != settings.text("server.tls_key").is_empty()
        {
            let half = "server.tls_cert and server.tls_key must be set together";
            return Err(ConfigError::new(vec![half.to_owned()]));
        }
        let has_search = settings.get("search.enabled");
        let sinks = sinks::read(tables, &place, has_search, &environment);
        let sinks = sinks.map_err(ConfigError::new)?;
        let config = Self {
            sinks,
            ..Self::from_settings(&settings)
        };
        let (tables, place) = file
            .as_ref()
            .map_or((None, String::new()), settings::File::adapters);
        let allowed = config.net.allowed();
        let services = adapters::read(tables, &place, &allowed).map_err(ConfigError::new)?;
        let config = Self { services, ..config };
        Ok((config, settings))
    }

    /// The configured store, or the embedded one in the data folder.
    pub(crate) fn store_address(&self) -> String {
        if self.store.is_empty() {
            return format!("sqlite:{}", self.data_dir.join("tidings.db").display());
        }
        self.store.clone()
    }

    /// The same for a demo: its own data folder, and no sink but the embedded
    /// search, so that simulated stories are delivered nowhere else.
    pub(crate) fn for_demo(self, folder: &Path) -> Self {
        let is_search =
            |sink: &NamedSink| matches!(sink.config, tidings_sinks::SinkConfig::Search(_));
        Self {
            data_dir: folder.to_owned(),
            sinks: self.sinks.into_iter().filter(is_search).collect(),
            ..self
        }
    }

    /// The options of a poller; its loop has more of its own.
    pub(crate) fn poll_options(&self) -> PollOptions {
        PollOptions {
            max_new_urls_per_day: self.max_new_urls_per_day,
            services: self.services.clone(),
            collect_concurrency: self.collect_concurrency,
            collect_max_new: self.collect_max_new,
            ..PollOptions::default()
        }
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    fn from_settings(settings: &Settings) -> Self {
        Self {
            store: settings.text("store").to_owned(),
            store_connections: settings.get("store.connections"),
            has_pooler: settings.get("store.pooler"),
            data_dir: PathBuf::from(settings.text("data_dir")),
            log: LogConfig {
                level: settings.get("log.level"),
                format: match settings.text("log.format") {
                    "json" => LogFormat::Json,
                    _ => LogFormat::Pretty,
                },
            },
            net: NetConfig::from_settings(settings),
            fetch: FetchConfig {
                concurrency: settings.get("fetch.concurrency"),
                claim_interval: Duration::from_millis(settings.get("fetch.claim_interval_ms")),
                extract_threads: Some(settings.get("extract.threads"))
                    .filter(|threads| *threads > 0),
                host_delay: Duration::from_millis(settings.get("fetch.host_delay_ms")),
                max_per_host: settings.get("fetch.max_per_host"),
                archive_html: settings.get("fetch.archive_html"),
            },
            retries: retries(settings),
            lease: Duration::from_secs(settings.get("work.lease_seconds")),
            poll_concurrency: settings.get("poll.concurrency"),
            collect_interval: Some(settings.get("collect.interval_minutes"))
                .filter(|minutes| *minutes > 0)
                .map(|minutes: u64| Duration::from_secs(minutes * 60)),
            collect_concurrency: settings.get("collect.concurrency"),
            collect_max_new: settings.get("collect.max_new_items"),
            retention: retention(settings),
            server: ServerConfig {
                is_enabled: settings.get("server.enabled"),
                bind: settings.get("server.bind"),
                public_hosts: table::items(settings.text("server.public_hosts"))
                    .map(str::to_owned)
                    .collect(),
                trusted_proxies: table::items(settings.text("server.trusted_proxies"))
                    .filter_map(|item| item.parse().ok())
                    .collect(),
                tls: tls_files(settings),
                max_connections: settings.get("server.max_connections"),
                settings: settings.iter().map(masked).collect(),
            },
            max_new_urls_per_day: settings.get("source.max_new_urls_per_day"),
            adds_starter_sources: settings.get("source.starter"),
            services: BTreeMap::new(),
            sinks: Vec::new(),
            outbox_max_pending: settings.get("outbox.max_pending"),
            demo: DemoConfig {
                sites: settings.get("demo.sites"),
                articles: settings.get("demo.articles"),
                seed: settings.get("demo.seed"),
            },
        }
    }
}

/// `None` without a certificate; a certificate needs a key.
fn tls_files(settings: &Settings) -> Option<TlsFiles> {
    let file = |key| PathBuf::from(settings.text(key));
    let files = TlsFiles {
        cert: file("server.tls_cert"),
        key: file("server.tls_key"),
    };
    (!files.cert.as_os_str().is_empty()).then_some(files)
}

/// The delays of the preset, and those that are set instead.
fn retries(settings: &Settings) -> RetryPolicy {
    let preset = match settings.text("retry.preset") {
        "media-cloud" => RetryPolicy::media_cloud(),
        "north-cloud" => RetryPolicy::north_cloud(),
        _ => RetryPolicy::default(),
    };
    let delays = |key| {
        let text = settings.text(key);
        let minutes = table::items(text).filter_map(|item| item.parse::<u64>().ok());
        let delays = minutes.map(|minutes| Duration::from_secs(minutes * 60));
        (!text.trim().is_empty()).then(|| delays.collect::<Vec<_>>())
    };
    RetryPolicy {
        network: delays("retry.network_minutes").unwrap_or(preset.network),
        http: delays("retry.http_minutes").unwrap_or(preset.http),
        unavailable: delays("retry.unavailable_minutes").or(preset.unavailable),
        blocked: delays("retry.blocked_minutes").unwrap_or(preset.blocked),
        max_attempts: Some(settings.get("retry.max_attempts")).filter(|attempts| *attempts > 0),
    }
}

fn retention(settings: &Settings) -> Retention {
    let hours = |key| Duration::from_secs(settings.get::<u64>(key) * 3600);
    let days = |key| hours(key) * 24;
    Retention {
        events: days("retention.events_days"),
        fetch_log: days("retention.fetch_log_days"),
        seen_titles: days("retention.seen_titles_days"),
        seen_guids: days("retention.seen_guids_days"),
        tasks: hours("retention.tasks_hours"),
        idempotency: hours("retention.idempotency_hours"),
        audit: days("retention.audit_days"),
        runs: days("retention.runs_days"),
        pages: Some(days("retention.pages_days")).filter(|ttl| !ttl.is_zero()),
    }
}

fn masked(resolved: &settings::Resolved) -> tidings_server::Setting {
    tidings_server::Setting {
        key: resolved.setting.key.to_owned(),
        value: resolved.masked(),
        origin: resolved.origin.to_string(),
    }
}
