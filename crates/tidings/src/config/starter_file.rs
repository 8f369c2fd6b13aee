//! The configuration file that `tidings init` writes: every setting of the table
//! with its default, as comments, under the few that a new installation sets. Pure.

use std::fmt::Write as _;

use toml::Value;

use super::table::{Kind, SETTINGS, Setting};

const HEADER: &str = "# The configuration of Tidings. A line without # in front sets a value; the others show defaults.
# Later wins: default < this file < environment (TIDINGS_NET_CONTACT) < flags (--set net.contact=…).
# `tidings config` prints every value and where it comes from; `tidings check` validates this file.
";

const SINKS: &str = "
# Sinks: where documents go besides the embedded search, one table each.
# [sinks.index]
# kind = \"elasticsearch\"
# url = \"https://es.example:9200\"
# api_key_env = \"ES_API_KEY\"
";

/// What a new installation sets itself.
#[derive(Debug)]
pub(crate) struct StarterFile {
    pub(crate) contact: Option<String>,
    pub(crate) adds_starter_sources: bool,
}

impl StarterFile {
    pub(crate) fn text(&self) -> String {
        let mut text = HEADER.to_owned();
        // A key outside of all tables is only possible before the first.
        let is_outside = |setting: &&Setting| place(setting).0.is_empty();
        for setting in SETTINGS.iter().filter(is_outside) {
            self.write(&mut text, setting);
        }
        let mut tables: Vec<&str> = Vec::new();
        for (table, _) in SETTINGS.iter().map(place) {
            if !table.is_empty() && !tables.contains(&table) {
                tables.push(table);
            }
        }
        for table in tables {
            let _ = write!(text, "\n[{table}]\n");
            for setting in SETTINGS.iter().filter(|setting| place(setting).0 == table) {
                self.write(&mut text, setting);
            }
        }
        text.push_str(SINKS);
        text
    }

    fn write(&self, text: &mut String, setting: &Setting) {
        let own = match setting.key {
            "net.contact" => self.contact.clone(),
            "source.starter" => self.adds_starter_sources.then(|| true.to_string()),
            _ => None,
        };
        let mark = if own.is_some() { "" } else { "# " };
        let value = own.unwrap_or_else(|| setting.default.to_owned());
        let _ = writeln!(text, "# {}", setting.about);
        let _ = writeln!(
            text,
            "{mark}{} = {}",
            place(setting).1,
            literal(setting, &value)
        );
    }
}

/// The table and the name of a setting in a file, which can't have both `store` and
/// `[store]`.
fn place(setting: &Setting) -> (&'static str, &'static str) {
    match setting.key {
        "store" => ("store", "address"),
        key => key.split_once('.').unwrap_or(("", key)),
    }
}

fn literal(setting: &Setting, value: &str) -> String {
    match setting.kind {
        Kind::Number { .. } | Kind::OneOf(&["false", "true"]) => value.to_owned(),
        _ => Value::from(value).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::*;

    fn values(text: &str) -> Table {
        text.parse()
            .unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn value<'t>(table: &'t Table, setting: &Setting) -> Option<&'t Value> {
        match place(setting) {
            ("", key) => table.get(key),
            (outer, key) => table.get(outer)?.get(key),
        }
    }

    #[test]
    fn a_new_file_sets_only_what_was_chosen() {
        let file = StarterFile {
            contact: Some("https://us.example/\"bot\"".to_owned()),
            adds_starter_sources: true,
        };
        let table = values(&file.text());
        for setting in SETTINGS {
            let expected = match setting.key {
                "net.contact" => Some(Value::from("https://us.example/\"bot\"")),
                "source.starter" => Some(Value::from(true)),
                _ => None,
            };
            assert_eq!(value(&table, setting), expected.as_ref(), "{}", setting.key);
        }
        let nothing = StarterFile {
            contact: None,
            adds_starter_sources: false,
        };
        let table = values(&nothing.text());
        assert!(
            SETTINGS
                .iter()
                .all(|setting| value(&table, setting).is_none())
        );
    }

    #[test]
    fn every_setting_is_there_with_its_default() {
        let file = StarterFile {
            contact: None,
            adds_starter_sources: false,
        };
        let is_setting = |line: &str| {
            let key = line.split(" = ").next().unwrap_or_default();
            let is_key = key
                .bytes()
                .all(|byte| byte == b'_' || byte.is_ascii_lowercase());
            line.contains(" = ") && is_key
        };
        let text = file.text();
        let text = text.split(SINKS).next().unwrap_or_default();
        let uncommented = text.lines().map(|line| match line.strip_prefix("# ") {
            Some(rest) if is_setting(rest) => rest,
            _ => line,
        });
        let table = values(&uncommented.collect::<Vec<_>>().join("\n"));
        for setting in SETTINGS {
            let found = value(&table, setting);
            let found = found.map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            assert_eq!(found.as_deref(), Some(setting.default), "{}", setting.key);
        }
    }
}
