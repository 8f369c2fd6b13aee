//! The services of the configuration file: one table each, `[adapters.KIND]`. Where
//! a service is and which variable has its key is decided here alone, so that no
//! source can send a secret anywhere.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use tidings_adapters::{ServiceOptions, adapter, adapters};
use tidings_net::IpNet;
use toml::{Table, Value};
use url::{Host, Url};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceTable {
    base_url: Option<String>,
    key_env: Option<String>,
}

/// Parses the tables; every problem with its place. `allowed` are the address ranges
/// that were opened: only there may a key be sent without TLS.
pub(super) fn read(
    tables: Option<&Value>,
    place: &str,
    allowed: &[IpNet],
) -> Result<BTreeMap<String, ServiceOptions>, Vec<String>> {
    let none = Table::new();
    let tables = match tables {
        None => &none,
        Some(Value::Table(tables)) => tables,
        Some(_) => {
            return Err(vec![format!(
                "{place}: adapters: tables are expected, such as [adapters.newsapi]"
            )]);
        }
    };
    let mut services = BTreeMap::new();
    let mut problems = Vec::new();
    for (kind, table) in tables {
        match read_one(kind, table, allowed) {
            Ok(service) => drop(services.insert(kind.clone(), service)),
            Err(why) => problems.push(format!("{place}: adapters.{kind}: {why}")),
        }
    }
    match problems.is_empty() {
        true => Ok(services),
        false => Err(problems),
    }
}

fn read_one(kind: &str, table: &Value, allowed: &[IpNet]) -> Result<ServiceOptions, String> {
    let Some(adapter) = adapter(kind) else {
        let kinds: Vec<_> = adapters().iter().map(|known| known.kind()).collect();
        return Err(format!("no such adapter; valid: {}", kinds.join(", ")));
    };
    let ServiceTable { base_url, key_env } = table
        .clone()
        .try_into()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    if key_env.is_some() && adapter.key_variable().is_none() {
        return Err("key_env: this service has no key of its own".to_owned());
    }
    if let Some(text) = &base_url {
        check_url(text, allowed).map_err(|why| format!("base_url: {why}"))?;
    }
    Ok(ServiceOptions { base_url, key_env })
}

/// A name may resolve to anything, so plain http needs an address.
fn check_url(text: &str, allowed: &[IpNet]) -> Result<(), String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let address = match url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        Some(Host::Domain(_)) | None => None,
    };
    let is_allowed =
        address.is_some_and(|address| allowed.iter().any(|range| range.contains(&address)));
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_allowed => Ok(()),
        _ => Err(
            "keys are sent over https only; http needs an IP address in egress.allow or sink.allow"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_sent_over_https_or_to_an_address_that_was_allowed() {
        let allowed: IpNet = "127.0.0.0/8".parse().unwrap();
        let rows = [
            ("[adapters.newsapi]\nbase_url = 'https://a.example'", None),
            (
                "[adapters.newsapi]\nbase_url = 'http://127.0.0.1:81'\nkey_env = 'K'",
                None,
            ),
            (
                "[adapters.newsapi]\nbase_url = 'http://a.example'",
                Some("adapters.newsapi: base_url: keys are sent over https only"),
            ),
            (
                "[adapters.newsapi]\nbase_url = 'http://10.0.0.1'",
                Some("adapters.newsapi: base_url: keys are sent over https only"),
            ),
            (
                "[adapters.newsapi]\nbase_url = 'ftp://127.0.0.1'",
                Some("adapters.newsapi: base_url: keys are sent over https only"),
            ),
            (
                "[adapters.newspi]",
                Some("adapters.newspi: no such adapter; valid: newsapi"),
            ),
            (
                "[adapters.reddit]\nkey_env = 'K'",
                Some("adapters.reddit: key_env: this service has no key"),
            ),
            (
                "[adapters.newsapi]\nkey = 'K'",
                Some("adapters.newsapi: unknown field `key`"),
            ),
            ("adapters = 1", Some("adapters: tables are expected")),
        ];
        for (text, part) in rows {
            let table: Table = text.parse().unwrap();
            let problem = read(table.get("adapters"), "tidings.toml", &[allowed]).err();
            match part {
                None => assert_eq!(problem, None, "{text}"),
                Some(part) => {
                    let problem = problem.unwrap_or_default().join("");
                    assert!(problem.contains(part), "{text}: {problem}");
                }
            }
        }
    }
}
