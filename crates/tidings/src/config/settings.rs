//! The four layers that set values: default < tidings.toml < environment < flags.
//! Pure but for reading the file; all problems are reported in one pass, each
//! with its place.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;
use toml::{Table, Value};

use super::table::{OTHER_VARIABLES, REFUSED_VARIABLES, SETTINGS, Setting, setting};
use crate::cli::Global;
use crate::config_error::ConfigError;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File(PathBuf),
    Environment(String),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The contents of a configuration file.
#[derive(Debug)]
pub(crate) struct File {
    path: PathBuf,
    table: Table,
}

impl File {
    /// The tables of the sinks, and the file that they are in.
    pub(super) fn sinks(&self) -> (Option<&Value>, String) {
        (self.table.get("sinks"), self.path.display().to_string())
    }

    /// The tables of the services, and the file that they are in.
    pub(super) fn adapters(&self) -> (Option<&Value>, String) {
        (self.table.get("adapters"), self.path.display().to_string())
    }
}

/// Reads the named file, or `tidings.toml` if there is one.
pub(crate) fn read_file(named: Option<&Path>) -> Result<Option<File>, ConfigError> {
    let path = named.unwrap_or(Path::new("tidings.toml"));
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
            return Ok(None);
        }
        Err(error) => {
            return Err(ConfigError::new(vec![format!(
                "{} can't be read: {error}",
                path.display()
            )]));
        }
    };
    parse_file(path, &text).map(Some)
}

fn parse_file(path: &Path, text: &str) -> Result<File, ConfigError> {
    let table = text.parse().map_err(|error: toml::de::Error| {
        ConfigError::new(vec![format!(
            "{}: {}",
            path.display(),
            error.to_string().trim_end()
        )])
    })?;
    Ok(File {
        path: path.to_owned(),
        table,
    })
}

/// A value set on the command line.
#[derive(Debug, Clone)]
pub(crate) struct Flag {
    name: &'static str,
    key: String,
    value: String,
}

/// The settings that the global flags set.
pub(crate) fn flags(global: &Global) -> Result<Vec<Flag>, ConfigError> {
    let named = [
        ("--store", "store", &global.store),
        ("--data-dir", "data_dir", &global.data_dir),
        ("--log-level", "log.level", &global.log_level),
        ("--log-format", "log.format", &global.log_format),
    ];
    let mut flags = Vec::new();
    for pair in &global.set {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(ConfigError::new(vec![format!(
                "--set {pair}: KEY=VALUE is expected"
            )]));
        };
        flags.push(Flag {
            name: "--set",
            key: key.trim().to_owned(),
            value: value.to_owned(),
        });
    }
    for (name, key, value) in named {
        if let Some(value) = value {
            flags.push(Flag {
                name,
                key: key.to_owned(),
                value: value.clone(),
            });
        }
    }
    Ok(flags)
}

/// One setting with its effective value.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) setting: &'static Setting,
    pub(crate) value: String,
    pub(crate) origin: Origin,
}

impl Resolved {
    /// The value with a password masked.
    pub(crate) fn masked(&self) -> String {
        let Some((start, rest)) = self.value.split_once("://") else {
            return self.value.clone();
        };
        match rest
            .rsplit_once('@')
            .map(|(user, host)| (user.split_once(':'), host))
        {
            Some((Some((user, _)), host)) => format!("{start}://{user}:***@{host}"),
            _ => self.value.clone(),
        }
    }
}

/// The value of every setting.
#[derive(Debug)]
pub(crate) struct Settings(Vec<Resolved>);

impl Settings {
    /// Merges the layers; the last one that sets a value wins.
    pub(crate) fn resolve(
        file: Option<&File>,
        environment: &BTreeMap<String, String>,
        flags: &[Flag],
    ) -> Result<Self, ConfigError> {
        let mut problems = Vec::new();
        let mut values: BTreeMap<&str, (String, Origin)> = BTreeMap::new();
        let mut set = |key: &str, value: String, origin: Origin, place: &str| match setting(key) {
            None => problems.push(unknown(
                place,
                "setting",
                key,
                SETTINGS.iter().map(|s| s.key.to_owned()),
            )),
            Some(setting) => match setting.check(&value) {
                Ok(()) => {
                    values.insert(setting.key, (value, origin));
                }
                Err(why) => problems.push(format!("{place}: {key}: {why}")),
            },
        };

        if let Some(file) = file {
            let place = file.path.display().to_string();
            // Sinks and services are tables of their own kind; `sinks` and `adapters`
            // read them.
            let mut table = file.table.clone();
            table.remove("sinks");
            table.remove("adapters");
            for (key, value) in flatten(&table) {
                // A file can't have both `store` and `[store]`.
                let key = match key.as_str() {
                    "store.address" => "store",
                    key => key,
                };
                set(key, value, Origin::File(file.path.clone()), &place);
            }
        }
        for setting in SETTINGS {
            let found = setting
                .variables()
                .find_map(|name| environment.get(&name).map(|value| (name, value)));
            if let Some((name, value)) = found {
                let place = format!("environment {name}");
                let value = setting.in_our_unit(&name, value);
                set(setting.key, value, Origin::Environment(name), &place);
            }
        }
        for flag in flags {
            set(
                &flag.key,
                flag.value.clone(),
                Origin::Flag(flag.name),
                flag.name,
            );
        }
        problems.extend(unknown_variables(environment));
        problems.extend(refused_variables(environment));
        if !problems.is_empty() {
            return Err(ConfigError::new(problems));
        }
        let resolved = |setting: &'static Setting| {
            let (value, origin) = values
                .remove(setting.key)
                .unwrap_or_else(|| (setting.default.to_owned(), Origin::Default));
            Resolved {
                setting,
                value,
                origin,
            }
        };
        Ok(Self(SETTINGS.iter().map(resolved).collect()))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Resolved> {
        self.0.iter()
    }

    /// Whether a layer sets it; false for its default.
    pub(super) fn is_set(&self, key: &str) -> bool {
        let mut found = self.0.iter();
        found.any(|resolved| resolved.setting.key == key && resolved.origin != Origin::Default)
    }

    /// The text of a setting that is in the table.
    pub(crate) fn text(&self, key: &str) -> &str {
        let found = self.0.iter().find(|resolved| resolved.setting.key == key);
        &found.expect("only keys of the table are read").value
    }

    /// A setting as its type. Values are checked against the table's kinds when
    /// the layers are merged, so a value that does not parse is a defect of the table.
    pub(crate) fn get<T: FromStr<Err: fmt::Debug>>(&self, key: &str) -> T {
        self.text(key)
            .parse()
            .expect("values are checked against the kind of their setting")
    }
}

/// `[log] level = "info"` becomes `log.level`.
fn flatten(table: &Table) -> Vec<(String, String)> {
    let mut flat = Vec::new();
    for (name, value) in table {
        match value {
            Value::Table(inner) => flat.extend(
                flatten(inner)
                    .into_iter()
                    .map(|(key, value)| (format!("{name}.{key}"), value)),
            ),
            value => flat.push((name.clone(), as_text(value))),
        }
    }
    flat
}

/// A value as a flag would spell it; the items of a list are comma separated.
fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(as_text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn unknown_variables(environment: &BTreeMap<String, String>) -> impl Iterator<Item = String> + '_ {
    let is_known = |name: &str| {
        OTHER_VARIABLES.contains(&name)
            || name.starts_with("TIDINGS_TEST_")
            || SETTINGS.iter().any(|s| s.variables().any(|v| v == name))
    };
    environment
        .keys()
        .filter(move |name| name.starts_with("TIDINGS_") && !is_known(name))
        .map(|name| {
            unknown(
                "environment",
                "variable",
                name,
                SETTINGS.iter().flat_map(Setting::variables),
            )
        })
}

fn refused_variables(environment: &BTreeMap<String, String>) -> impl Iterator<Item = String> + '_ {
    REFUSED_VARIABLES
        .iter()
        .filter(|(name, _)| environment.contains_key(*name))
        .map(|(name, instead)| format!("environment {name}: there is no such setting; {instead}"))
}

fn unknown(place: &str, what: &str, name: &str, known: impl Iterator<Item = String>) -> String {
    let nearest = known
        .map(|known| (strsim::damerau_levenshtein(name, &known), known))
        .min()
        .filter(|(distance, known)| *distance <= known.len() / 3 + 1);
    let hint = match nearest {
        Some((_, known)) => format!("did you mean {known:?}?"),
        None => "`tidings config` lists all settings".to_owned(),
    };
    format!("{place}: unknown {what} {name:?}; {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> File {
        parse_file(Path::new("tidings.toml"), text).unwrap()
    }

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn flag(key: &str, value: &str) -> Flag {
        Flag {
            name: "--set",
            key: key.to_owned(),
            value: value.to_owned(),
        }
    }

    fn problems(file_text: &str, pairs: &[(&str, &str)], flags: &[Flag]) -> String {
        let file = file(file_text);
        Settings::resolve(Some(&file), &environment(pairs), flags)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn every_default_is_a_value_of_its_kind() {
        for setting in SETTINGS {
            assert_eq!(setting.check(setting.default), Ok(()), "{}", setting.key);
        }
    }

    #[test]
    fn later_layers_win() {
        let file = file("[log]\nlevel = \"warn\"\nformat = \"json\"\n[demo]\nsites = 5\n");
        let environment = environment(&[("LOG_LEVEL", "error"), ("TIDINGS_LOG_LEVEL", "debug")]);
        let settings =
            Settings::resolve(Some(&file), &environment, &[flag("demo.sites", "6")]).unwrap();
        let rows: Vec<_> = settings
            .iter()
            .filter(|r| r.origin != Origin::Default)
            .map(|r| format!("{}={} from {}", r.setting.key, r.value, r.origin))
            .collect();
        assert_eq!(
            rows,
            [
                "log.level=debug from environment TIDINGS_LOG_LEVEL",
                "log.format=json from tidings.toml",
                "demo.sites=6 from flag --set",
            ]
        );
        assert_eq!(settings.text("demo.articles"), "100");
    }

    #[test]
    fn the_store_is_an_address_or_a_table_with_one() {
        let rows = [
            ("store = \"postgres://db/x\"", "6"),
            (
                "[store]\naddress = \"postgres://db/x\"\nconnections = 9\n",
                "9",
            ),
        ];
        for (text, connections) in rows {
            let settings = Settings::resolve(Some(&file(text)), &environment(&[]), &[]).unwrap();
            assert_eq!(settings.text("store"), "postgres://db/x");
            assert_eq!(settings.text("store.connections"), connections);
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let rows = [
            (
                "postgres://me:secret@db/tidings",
                "postgres://me:***@db/tidings",
            ),
            ("postgres://me@db/tidings", "postgres://me@db/tidings"),
            ("sqlite:a.db", "sqlite:a.db"),
        ];
        for (value, masked) in rows {
            let settings =
                Settings::resolve(None, &environment(&[("FRONTIER_DB_URL", value)]), &[]).unwrap();
            let store = settings.iter().find(|r| r.setting.key == "store").unwrap();
            assert_eq!(store.masked(), masked);
        }
    }

    #[test]
    fn a_name_of_another_system_works_alone() {
        let rows = [
            ("LOG_LEVEL", "error", "log.level", "error"),
            ("FETCH_CONCURRENCY", "20", "collect.concurrency", "20"),
            (
                "MAX_NEW_ITEMS_PER_RUN",
                "700",
                "collect.max_new_items",
                "700",
            ),
            ("FETCH_TIMEOUT_MS", "1500", "net.total_seconds", "2"),
            (
                "TIDINGS_NET_TOTAL_SECONDS",
                "1500",
                "net.total_seconds",
                "1500",
            ),
            ("REQUEST_TIMEOUT", "1m30s", "net.total_seconds", "90"),
            ("REQUEST_TIMEOUT", "500ms", "net.total_seconds", "1"),
            ("REQUEST_TIMEOUT", "20", "net.total_seconds", "20"),
            ("CLAIM_RETRY_DELAY", "5s", "fetch.claim_interval_ms", "5000"),
            ("CLAIM_RETRY_DELAY", "2", "fetch.claim_interval_ms", "2000"),
            ("WORKER_COUNT", "16", "fetch.concurrency", "16"),
            ("MAX_RETRIES", "3", "retry.max_attempts", "3"),
            (
                "USER_AGENT",
                "NorthCloud-Crawler/1.0",
                "net.user_agent",
                "NorthCloud-Crawler/1.0",
            ),
            (
                "AUTO_COLLECT_INTERVAL_MINUTES",
                "30",
                "collect.interval_minutes",
                "30",
            ),
        ];
        for (name, value, key, expected) in rows {
            let environment = environment(&[(name, value)]);
            let settings = Settings::resolve(None, &environment, &[]).unwrap();
            assert_eq!(settings.text(key), expected, "{name}");
        }
    }

    #[test]
    fn a_mistake_names_the_place_and_what_was_meant() {
        let rows = [
            (
                problems("[log]\nlevle = \"info\"", &[], &[]),
                "tidings.toml: unknown setting \"log.levle\"; did you mean \"log.level\"?",
            ),
            (
                problems("colour = 1", &[], &[]),
                "tidings.toml: unknown setting \"colour\"; `tidings config` lists all settings",
            ),
            (
                problems("", &[("TIDINGS_LOGLEVEL", "x")], &[]),
                "environment: unknown variable \"TIDINGS_LOGLEVEL\"; did you mean \"TIDINGS_LOG_LEVEL\"?",
            ),
            (
                problems("", &[("LOG_LEVEL", "loud")], &[]),
                "environment LOG_LEVEL: log.level: \"loud\" is not one of error, warn, info, debug, trace",
            ),
            (
                problems("", &[("SOURCE_MANAGER_URL", "http://x")], &[]),
                "environment SOURCE_MANAGER_URL: there is no such setting; sources are in the store, set by TIDINGS_STORE; import a list with: tidings source import FILE",
            ),
            (
                problems("", &[("REQUEST_TIMEOUT", "soon")], &[]),
                "environment REQUEST_TIMEOUT: net.total_seconds: \"soon\" is not a whole number from 1 to 3600",
            ),
            (
                problems("[net]\nproxy_hosts = [\"https://a.example/\"]", &[], &[]),
                "tidings.toml: net.proxy_hosts: \"https://a.example/\" is not a host or host:port such as rsshub.example:1200",
            ),
            (
                problems("[retry]\nhttp_minutes = \"1, 0\"", &[], &[]),
                "tidings.toml: retry.http_minutes: \"0\" is neither a number of minutes from 1 to 43200 nor none",
            ),
            (
                problems("", &[("USER_AGENT", "kräwler")], &[]),
                "environment USER_AGENT: net.user_agent: \"kräwler\" is not a name in printable ASCII such as MyCrawler/1.0",
            ),
            (
                problems("", &[], &[flag("demo.sites", "0")]),
                "--set: demo.sites: \"0\" is not a whole number from 1 to 1000000",
            ),
            (
                problems("[demo]\nsites = true", &[], &[]),
                "tidings.toml: demo.sites: \"true\" is not a whole number from 1 to 1000000",
            ),
        ];
        for (found, expected) in rows {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn all_mistakes_are_reported_together() {
        let all = problems("a = 1\nb = 2", &[("LOG_LEVEL", "x")], &[]);
        assert!(
            all.starts_with("the configuration has 3 problems\n"),
            "{all}"
        );
        assert_eq!(all.lines().count(), 4);
    }

    #[test]
    fn broken_toml_says_where() {
        let error = parse_file(Path::new("tidings.toml"), "[log\nlevel = 1")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("tidings.toml") && error.contains("line 1, column 5"),
            "{error}"
        );
    }
}
