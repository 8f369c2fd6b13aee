//! The sinks of the configuration file: one table each, `[sinks.NAME]`. The
//! embedded search exists without a table.

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

/// The variable by which the reference systems name a Gorse server.
pub(super) const GORSE_URL: &str = "GORSE_BASE_URL";
const GORSE: &str = "gorse";
/// The name of the embedded search, and of its folder.
pub(crate) const SEARCH: &str = "search";

/// Parses the tables; every problem with its place.
pub(super) fn read(
    tables: Option<&Value>,
    place: &str,
    has_search: bool,
    gorse_url: Option<&str>,
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
    let is_gorse = |sink: &NamedSink| matches!(sink.config, SinkConfig::Gorse(_));
    if let Some(url) = gorse_url
        && !sinks.iter().any(is_gorse)
        && !tables.contains_key(GORSE)
    {
        let table =
            [("kind", GORSE), ("url", url)].map(|(key, value)| (key.to_owned(), value.into()));
        match read_one(GORSE, &Value::Table(Table::from_iter(table))) {
            Ok(sink) => sinks.push(sink),
            Err(why) => problems.push(format!("environment {GORSE_URL}: {why}")),
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
        let sinks = read(table.get("sinks"), "tidings.toml", has_search, None)?;
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
    fn a_gorse_of_the_environment_is_a_sink_unless_one_is_configured() {
        let names = |text: &str| {
            let table: Table = text.parse().unwrap();
            let url = Some("http://127.0.0.1:8087");
            let sinks = read(table.get("sinks"), "tidings.toml", false, url).unwrap();
            sinks.into_iter().map(|sink| sink.name).collect::<Vec<_>>()
        };
        assert_eq!(names(""), ["gorse"]);
        let own = "[sinks.mine]\nkind = 'gorse'\nurl = 'http://127.0.0.1:9999'";
        assert_eq!(names(own), ["mine"]);
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
