//! The configuration as users write it: every kind, and unknown keys.

use std::collections::BTreeMap;

use tidings_sinks::SinkConfig;

#[test]
fn every_kind_can_be_written_and_unknown_keys_are_named() {
    let rows = [
        ("elasticsearch", "url = \"http://127.0.0.1:9200\""),
        (
            "opensearch",
            "url = \"http://127.0.0.1:9200\"\nper_source = true",
        ),
        ("search", ""),
        ("jsonl", "path = \"out\""),
        ("warc", "path = \"out\""),
        (
            "webhook",
            "url = \"https://hook.example\"\nsecret_env = \"S\"",
        ),
        ("gorse", "url = \"http://127.0.0.1:8087\""),
        ("firestore", ""),
        ("nats", "url = \"nats://127.0.0.1\""),
    ];
    for (kind, settings) in rows {
        let toml = format!("kind = \"{kind}\"\n{settings}");
        toml::from_str::<SinkConfig>(&toml).unwrap_or_else(|error| panic!("{kind}: {error}"));
        let misspelt = format!("{toml}\npassword = \"inline\"");
        let error = toml::from_str::<SinkConfig>(&misspelt)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("unknown field `password`"),
            "{kind}: {error}"
        );
        assert!(error.contains("expected"), "{kind}: {error}");
    }
    let error = toml::from_str::<SinkConfig>("kind = \"kafka\"").unwrap_err();
    assert!(
        error.to_string().contains("unknown variant `kafka`"),
        "{error}"
    );
}

#[test]
fn a_file_holds_a_table_for_each_sink() {
    let toml = "
        [main]
        kind = \"search\"
        [archive]
        kind = \"warc\"
        path = \"archive\"
    ";
    let sinks: BTreeMap<String, SinkConfig> = toml::from_str(toml).unwrap();
    assert_eq!(sinks.keys().collect::<Vec<_>>(), ["archive", "main"]);
}
