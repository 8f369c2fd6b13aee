//! The sinks of the configuration file: one table each, `[sinks.NAME]`. The
//! embedded search exists without a table.

use std::collections::BTreeMap;

use tidings_sinks::SinkConfig;
use toml::{Table, Value};

/// A sink, and whether the outbox queues duplicates for it.
#[derive(Debug, Clone)]
pub(crate) struct NamedSink {
    pub(crate) name: String,
    pub(crate) config: SinkConfig,
    /// Whether it receives documents that duplicate the text of another.
    pub(crate) wants_duplicates: bool,
}

/// A variable by which the reference systems name a server, and the sink that it is
/// here unless one of its kind is configured.
struct NamedServer {
    variable: &'static str,
    kind: &'static str,
    options: &'static [(&'static str, bool)],
    is_kind: fn(&SinkConfig) -> bool,
}

const SERVERS: [NamedServer; 2] = [
    NamedServer {
        variable: "GORSE_BASE_URL",
        kind: "gorse",
        options: &[],
        is_kind: |config| matches!(config, SinkConfig::Gorse(_)),
    },
    NamedServer {
        variable: "ELASTICSEARCH_URL",
        kind: "elasticsearch",
        // The reader of that system expects one index per source.
        options: &[("per_source", true)],
        is_kind: |config| matches!(config, SinkConfig::Elasticsearch(_)),
    },
];
/// The name of the embedded search, and of its folder.
pub(crate) const SEARCH: &str = "search";

/// Parses the tables; every problem with its place.
pub(super) fn read(
    tables: Option<&Value>,
    place: &str,
    has_search: bool,
    environment: &BTreeMap<String, String>,
) -> Result<Vec<NamedSink>, Vec<String>> {
    let mut sinks = Vec::new();
    let mut problems = Vec::new();
    let empty = Table::new();
    let tables = match tables {
        None => &empty,
        Some(Value::Table(tables)) => tables,
        Some(_) => {
            return Err(vec![format!(
                "{place}: sinks: tables are expected, such as [sinks.main]"
            )]);
        }
    };
    for (name, table) in tables {
        match read_one(name, table) {
            Ok(sink) => sinks.push(sink),
            Err(why) => problems.push(format!("{place}: sinks.{name}: {why}")),
        }
    }
    let is_search = |sink: &NamedSink| matches!(sink.config, SinkConfig::Search(_));
    if has_search && !sinks.iter().any(is_search) {
        match read_one(SEARCH, &Value::Table(search_table())) {
            Ok(sink) if !tables.contains_key(SEARCH) => sinks.push(sink),
            Ok(_) => {}
            Err(why) => problems.push(format!("the embedded search: {why}")),
        }
    }
    for server in SERVERS {
        let is_configured = sinks.iter().any(|sink| (server.is_kind)(&sink.config));
        let Some(url) = environment.get(server.variable) else {
            continue;
        };
        if is_configured || tables.contains_key(server.kind) {
            continue;
        }
        let texts = [("kind", server.kind), ("url", url)].map(|(key, text)| (key, text.into()));
        let options = server.options.iter().map(|(key, on)| (*key, (*on).into()));
        let table: Table = texts
            .into_iter()
            .chain(options)
            .map(|(key, value): (&str, Value)| (key.to_owned(), value))
            .collect();
        match read_one(server.kind, &Value::Table(table)) {
            Ok(sink) => sinks.push(sink),
            Err(why) => problems.push(format!("environment {}: {why}", server.variable)),
        }
    }
    match problems.is_empty() {
        true => Ok(sinks),
        false => Err(problems),
    }
}

fn search_table() -> Table {
    Table::from_iter([("kind".to_owned(), Value::from(SEARCH))])
}

fn read_one(name: &str, table: &Value) -> Result<NamedSink, String> {
    let Value::Table(table) = table else {
        return Err("a table is expected".to_owned());
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 60 || !name.chars().all(is_name) {
        return Err("a name has letters, digits, - and _, at most 60".to_owned());
    }
    let mut table = table.clone();
    let wants_duplicates = match table.remove("duplicates") {
        None => false,
        Some(Value::Boolean(wants)) => wants,
        Some(other) => return Err(format!("duplicates: {other} is neither true nor false")),
    };
    let config = Value::Table(table)
        .try_into()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    Ok(NamedSink {
        name: name.to_owned(),
        config,
        wants_duplicates,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str, has_search: bool) -> Result<Vec<String>, Vec<String>> {
        let table: Table = text.parse().unwrap();
        let environment = BTreeMap::new();
        let sinks = read(table.get("sinks"), "tidings.toml", has_search, &environment)?;
        Ok(sinks.into_iter().map(|sink| sink.name).collect())
    }

    #[test]
    fn search_is_there_unless_it_is_switched_off_or_configured() {
        assert_eq!(names("", true).unwrap(), ["search"]);
        assert!(names("", false).unwrap().is_empty());
        let own = "[sinks.mine]\nkind = 'search'\npath = 'elsewhere'";
        assert_eq!(names(own, true).unwrap(), ["mine"]);
        let hook = "[sinks.hook]\nkind = 'webhook'\nurl = 'https://a.example/'\nsecret_env = 'S'\nduplicates = true";
        assert_eq!(names(hook, true).unwrap(), ["hook", "search"]);
    }

    #[test]
    fn a_server_of_the_environment_is_a_sink_unless_one_is_configured() {
        let read = |text: &str| {
            let table: Table = text.parse().unwrap();
            let environment = [
                ("GORSE_BASE_URL", "http://127.0.0.1:8087"),
                ("ELASTICSEARCH_URL", "http://127.0.0.1:9200"),
            ]
            .map(|(name, url)| (name.to_owned(), url.to_owned()));
            let environment = BTreeMap::from(environment);
            read(table.get("sinks"), "tidings.toml", false, &environment).unwrap()
        };
        let names = |text: &str| {
            let sinks = read(text).into_iter().map(|sink| sink.name);
            sinks.collect::<Vec<_>>()
        };
        assert_eq!(names(""), ["gorse", "elasticsearch"]);
        let own = "[sinks.mine]\nkind = 'gorse'\nurl = 'http://127.0.0.1:9999'";
        assert_eq!(names(own), ["mine", "elasticsearch"]);
        let own = "[sinks.mine]\nkind = 'opensearch'\nurl = 'http://127.0.0.1:9999'";
        assert_eq!(names(own), ["mine", "gorse"]);
        match &read("")[1].config {
            SinkConfig::Elasticsearch(config) => assert!(config.per_source),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_problem_is_named_with_its_place() {
        let rows = [
            (
                "[sinks.a]\nkind = 'webhok'",
                "sinks.a: unknown variant `webhok`",
            ),
            (
                "[sinks.a]\nkind = 'gorse'\nulr = 'x'",
                "sinks.a: unknown field `ulr`",
            ),
            (
                "[sinks.a]\nkind = 'search'\nduplicates = 1",
                "sinks.a: duplicates: 1 is neither",
            ),
            (
                "[sinks.'a b']\nkind = 'search'",
                "sinks.a b: a name has letters",
            ),
            ("sinks = 1", "sinks: tables are expected"),
        ];
        for (text, part) in rows {
            let problems = names(text, true).unwrap_err();
            assert!(problems[0].contains(part), "{problems:?}");
        }
    }
}
