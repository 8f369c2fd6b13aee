//! The configuration as the program uses it: plain typed structs, passed down,
//! never global. Values come from [`settings`], which knows where each is from.

mod net;
mod settings;
mod table;

use std::path::PathBuf;

use tracing::Level;

pub(crate) use net::NetConfig;
pub(crate) use settings::{ConfigError, Origin, Settings};

use crate::cli::Cli;

/// Everything that can be configured.
#[derive(Debug)]
pub(crate) struct Config {
    store: String,
    data_dir: PathBuf,
    pub(crate) log: LogConfig,
    pub(crate) net: NetConfig,
    pub(crate) demo: DemoConfig,
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
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let settings = Settings::resolve(file.as_ref(), &environment, &flags)?;
        Ok((Self::from_settings(&settings), settings))
    }

    /// The configured store, or the embedded one in the data folder.
    pub(crate) fn store_address(&self) -> String {
        if self.store.is_empty() {
            return format!("sqlite:{}", self.data_dir.join("tidings.db").display());
        }
        self.store.clone()
    }

    fn from_settings(settings: &Settings) -> Self {
        Self {
            store: settings.text("store").to_owned(),
            data_dir: PathBuf::from(settings.text("data_dir")),
            log: LogConfig {
                level: settings.get("log.level"),
                format: match settings.text("log.format") {
                    "json" => LogFormat::Json,
                    _ => LogFormat::Pretty,
                },
            },
            net: NetConfig::from_settings(settings),
            demo: DemoConfig {
                sites: settings.get("demo.sites"),
                articles: settings.get("demo.articles"),
                seed: settings.get("demo.seed"),
            },
        }
    }
}
