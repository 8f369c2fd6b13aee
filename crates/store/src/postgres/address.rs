//! The address of a PostgreSQL store: its hosts, in the order in which they are
//! tried, and the parameters of TLS, which mean what they mean to libpq.

use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls::{self, TlsParameters, Verification};
use crate::error::{Result, StoreError};

/// A parsed address.
pub(super) struct Address {
    /// One for each host, tried in this order.
    pub(super) hosts: Vec<Config>,
    pub(super) tls: MakeRustlsConnect,
    /// The address without its password.
    pub(super) location: String,
}

impl Address {
    pub(super) fn parse(address: &str) -> Result<Self> {
        let location = without_password(address);
        let wrong = |why: String| StoreError::Address {
            address: location.clone(),
            why,
        };
        let (rest, parameters) = take_tls_parameters(address).map_err(wrong)?;
        let hosts: Vec<Config> = each_host(&rest)
            .map_err(|error| wrong(describe(&error)))?
            .into_iter()
            .map(|config| with_modes(config, &parameters))
            .collect();
        let tls = tls::connector(&parameters).map_err(wrong)?;
        Ok(Self {
            hosts,
            tls,
            location,
        })
    }
}

fn describe(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// One configuration for each host, so that a host that hangs costs its own time
/// limit and not that of the next.
fn each_host(address: &str) -> std::result::Result<Vec<Config>, tokio_postgres::Error> {
    let whole: Config = address.parse()?;
    let Some((scheme, rest)) = address.split_once("://") else {
        return Ok(vec![whole]);
    };
    let (user, rest) = match rest.split_once('@') {
        Some((user, rest)) => (format!("{user}@"), rest),
        None => (String::new(), rest),
    };
    let (hosts, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if !hosts.contains(',') || whole.get_load_balance_hosts() == LoadBalanceHosts::Random {
        return Ok(vec![whole]);
    }
    hosts
        .split(',')
        .map(|host| format!("{scheme}://{user}{host}{rest}").parse())
        .map(|config| {
            let mut config: Config = config?;
            // A store is written to: a replica is of no use.
            if config.get_target_session_attrs() == TargetSessionAttrs::Any {
                config.target_session_attrs(TargetSessionAttrs::ReadWrite);
            }
            Ok(config)
        })
        .collect()
}

fn with_modes(mut config: Config, parameters: &TlsParameters) -> Config {
    let is_socket = |host: &Host| matches!(host, Host::Unix(_));
    let needs_no_tls = !config.get_hosts().is_empty() && config.get_hosts().iter().all(is_socket);
    config.ssl_mode(match parameters.verification {
        _ if needs_no_tls => SslMode::Disable,
        Verification::Disabled => SslMode::Disable,
        Verification::Preferred => SslMode::Prefer,
        Verification::None | Verification::Authority | Verification::Full => SslMode::Require,
    });
    config
}

/// Takes the parameters of TLS out of an address.
fn take_tls_parameters(address: &str) -> std::result::Result<(String, TlsParameters), String> {
    let mut parameters = TlsParameters::default();
    let Some((start, query)) = address.split_once('?') else {
        return Ok((address.to_owned(), parameters));
    };
    let mut others = Vec::new();
    let mut mode = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        // Only forms have a plus for a space.
        let escaped = pair.replace('+', "%2B");
        let decoded = url::form_urlencoded::parse(escaped.as_bytes()).next();
        let (name, value) = decoded.unwrap_or_default();
        let value = value.into_owned();
        match name.as_ref() {
            "sslmode" => mode = Some(value),
            "sslrootcert" => parameters.root = Some(value),
            "sslcert" => parameters.certificate = Some(value),
            "sslkey" => parameters.key = Some(value),
            _ => others.push(pair),
        }
    }
    parameters.verification = match mode.as_deref() {
        None | Some("prefer") => Verification::Preferred,
        Some("disable") => Verification::Disabled,
        // As libpq does.
        Some("require") if parameters.root.is_some() => Verification::Authority,
        Some("require") => Verification::None,
        Some("verify-ca") => Verification::Authority,
        Some("verify-full") => Verification::Full,
        Some(_) => {
            return Err(
                "sslmode must be disable, prefer, require, verify-ca or verify-full".to_owned(),
            );
        }
    };
    let rest = match others.is_empty() {
        true => start.to_owned(),
        false => format!("{start}?{}", others.join("&")),
    };
    Ok((rest, parameters))
}

/// The address without its password, for messages.
fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let shown = match rest.rsplit_once('@') {
        Some((user, host)) => {
            let name = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}@{host}")
        }
        None => format!("{scheme}://{rest}"),
    };
    let parameters: Vec<&str> = query
        .into_iter()
        .flat_map(|query| query.split('&'))
        .filter(|pair| !pair.is_empty() && !pair.starts_with("password="))
        .collect();
    match parameters.is_empty() {
        true => shown,
        false => format!("{shown}?{}", parameters.join("&")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let rows = [
            (
                "postgres://me:secret@db/tidings",
                "postgres://me@db/tidings",
            ),
            ("postgres://me@db/tidings", "postgres://me@db/tidings"),
            ("postgres://db/tidings", "postgres://db/tidings"),
            (
                "postgres://db/tidings?user=me&password=secret&sslmode=require",
                "postgres://db/tidings?user=me&sslmode=require",
            ),
        ];
        for (address, shown) in rows {
            assert_eq!(without_password(address), shown);
        }
    }

    #[test]
    fn several_hosts_are_tried_in_order_and_must_be_writable() {
        let address = "postgres://me:secret@a:1,b,[::1]:3/tidings?application_name=x";
        let address = Address::parse(address).unwrap();
        let hosts: Vec<_> = address
            .hosts
            .iter()
            .map(|host| (host.get_hosts()[0].clone(), host.get_ports()[0]))
            .collect();
        let host = |name: &str, port| (Host::Tcp(name.to_owned()), port);
        assert_eq!(hosts, [host("a", 1), host("b", 5432), host("::1", 3)]);
        for host in &address.hosts {
            assert_eq!(host.get_password(), Some(b"secret".as_slice()));
            let needed = host.get_target_session_attrs();
            assert_eq!(needed, TargetSessionAttrs::ReadWrite);
        }
    }

    #[test]
    fn the_parameters_of_tls_are_taken_out_of_the_address() {
        let address = "postgres://db/tidings?sslmode=verify-full&connect_timeout=3&sslrootcert=%2Fa+b%2Fca.pem";
        let (rest, parameters) = take_tls_parameters(address).unwrap();
        assert_eq!(rest, "postgres://db/tidings?connect_timeout=3");
        assert_eq!(parameters.verification, Verification::Full);
        assert_eq!(parameters.root.as_deref(), Some("/a+b/ca.pem"));
    }
}
