//! `tidings check`: probes everything that the configuration names before it is
//! relied on: the store, the data folder, name servers, sinks, the port of the
//! server, files. Errors of the configuration itself are reported before.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use tidings_net::{Client, Egress, NetOptions, Proxy, Purpose, Redirects, Request};
use tidings_server::TlsFiles;
use tidings_store::{SCHEMA_VERSION, Store};
use tidings_url::FetchUrl;

use crate::config::{Config, Origin, Settings};
use crate::failure::Failure;
use crate::format::one_line;
use crate::{output, sinks, stores};

/// Validate the configuration and probe everything it names
#[derive(Debug, Args)]
#[command(
    after_help = "The exit code is 0 when every probe succeeds, 1 when one fails, and 78 when the
configuration is invalid. Neither the store nor any server is changed.

Examples:
  tidings check
  tidings check --config /etc/tidings/tidings.toml --json
  tidings check --name news.example        resolve another name than example.com"
)]
pub(crate) struct CheckArgs {
    /// Host name to resolve
    #[arg(long, value_name = "HOST", default_value = "example.com")]
    name: String,
}

/// One probe and its result.
#[derive(Debug, Serialize)]
struct Probe {
    what: String,
    ok: bool,
    /// The result, or the error and the next step.
    said: String,
    /// It is the configuration that has to change.
    #[serde(skip)]
    is_configuration: bool,
}

impl Probe {
    fn of(what: impl Into<String>, result: Result<String, String>) -> Self {
        Self {
            what: what.into(),
            ok: result.is_ok(),
            said: result.unwrap_or_else(|error| error),
            is_configuration: false,
        }
    }

    fn failed(what: impl Into<String>, failure: &Failure) -> Self {
        Self {
            is_configuration: matches!(failure, Failure::Config(_) | Failure::InvalidConfig(_)),
            ..Self::of(what, Err(failure.to_string()))
        }
    }
}

pub(crate) fn run(
    args: &CheckArgs,
    config: &Config,
    settings: &Settings,
    json: bool,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    let probes = runtime.block_on(probes(args, config, settings));
    let is_ok = probes.iter().all(|probe| probe.ok);
    match json {
        true => output::json(&json!({ "ok": is_ok, "probes": probes }))?,
        false => probes.iter().try_for_each(|probe| {
            let label = if probe.ok { "ok" } else { "failed" };
            output::line(&format!(
                "{label:<6}  {}: {}",
                probe.what,
                one_line(&probe.said)
            ))
        })?,
    }
    match probes.iter().find(|probe| !probe.ok) {
        None => Ok(()),
        Some(_) if probes.iter().any(|probe| probe.is_configuration) => {
            Err(Failure::ReportedConfig)
        }
        Some(_) => Err(Failure::Reported),
    }
}

async fn probes(args: &CheckArgs, config: &Config, settings: &Settings) -> Vec<Probe> {
    let mut probes = vec![
        Probe::of("configuration", Ok(origins(settings))),
        folder(config.data_dir()),
        store(config).await,
    ];
    match config.net.options() {
        Err(failure) => probes.push(Probe::failed("files", &failure)),
        Ok(net) => {
            probes.extend(files(config));
            for proxy in &net.proxies {
                probes.push(proxy_probe(proxy).await);
            }
            probes.push(names(&args.name, net).await);
        }
    }
    if config.server.is_enabled {
        if let Some(files) = &config.server.tls {
            probes.push(tls(files));
        }
        probes.push(port(config).await);
    }
    probes.extend(all_sinks(config).await);
    probes
}

/// The settings that are set, and where.
fn origins(settings: &Settings) -> String {
    let (mut files, mut variables, mut flags) = (Vec::new(), Vec::new(), Vec::new());
    for resolved in settings.iter() {
        let (key, origin) = (resolved.setting.key, resolved.origin.to_string());
        match &resolved.origin {
            Origin::Default => {}
            Origin::File(_) => files.push((key, origin)),
            Origin::Environment(_) => variables.push((key, origin)),
            Origin::Flag(_) => flags.push((key, origin)),
        }
    }
    let set: Vec<_> = [files, variables, flags]
        .into_iter()
        .flatten()
        .map(|(key, origin)| format!("{key} ({origin})"))
        .collect();
    match set.is_empty() {
        true => "every setting has its default".to_owned(),
        false => format!("{}; all others have their defaults", set.join(", ")),
    }
}

/// Whether files can be created in the data folder, or where it will be.
fn folder(path: &Path) -> Probe {
    let write = || -> io::Result<String> {
        let path = std::path::absolute(path)?;
        let there = path.ancestors().find(|path| path.exists());
        let there = there.unwrap_or(Path::new("/"));
        tempfile::tempfile_in(there)?;
        Ok(match there == path {
            true => format!("{} is writable", path.display()),
            false => format!("{} can be created", path.display()),
        })
    };
    let wrong = |error: io::Error| {
        format!(
            "{} is not writable: {error}; change its owner to the user that runs Tidings, or set data_dir",
            path.display()
        )
    };
    Probe::of("data folder", write().map_err(wrong))
}

async fn store(config: &Config) -> Probe {
    let address = config.store_address();
    match Store::schema_version(&address).await {
        Ok(None) => {
            let missing = "does not exist yet; the first start creates it";
            return Probe::of("store", Ok(missing.to_owned()));
        }
        Ok(Some(found)) if found < SCHEMA_VERSION => {
            let outdated = format!(
                "it has schema version {found}; the first start migrates it to {SCHEMA_VERSION}"
            );
            return Probe::of("store", Ok(outdated));
        }
        // Opening reports the error.
        Ok(Some(_)) | Err(_) => {}
    }
    match stores::open(&address, config).await {
        Err(failure) => Probe::failed("store", &failure),
        Ok(store) => match store.check_integrity().await {
            Ok(()) => Probe::of(
                "store",
                Ok(format!(
                    "{} has schema version {SCHEMA_VERSION} and is intact",
                    store.location()
                )),
            ),
            Err(error) => Probe::of(
                "store",
                Err(format!(
                    "{error}; stop Tidings and restore a backup (docs/OPERATIONS.md)"
                )),
            ),
        },
    }
}

/// The files that the settings name; they have been read by now.
fn files(config: &Config) -> Option<Probe> {
    let named: Vec<_> = config
        .net
        .files()
        .map(|path| path.display().to_string())
        .collect();
    (!named.is_empty()).then(|| Probe::of("files", Ok(format!("{} read", named.join(" and ")))))
}

async fn proxy_probe(proxy: &Proxy) -> Probe {
    let probed = proxy.probe().await.map(|()| "reachable".to_owned());
    let wrong = |error: io::Error| format!("{error}; see its line in net.proxy_file");
    Probe::of(format!("proxy {proxy}"), probed.map_err(wrong))
}

async fn names(name: &str, net: NetOptions) -> Probe {
    let resolved = async {
        let client = Client::new(net).map_err(|failure| failure.to_string())?;
        let found = client.addresses(name).await.map_err(|failure| {
            format!("{failure}; is this machine online? net.dns names other servers")
        })?;
        Ok(match found.first() {
            Some(address) => format!("{name} is {address}"),
            None => format!("{name} has no address, but the name servers respond"),
        })
    };
    Probe::of("name servers", resolved.await)
}

/// The certificate of the server and its key.
fn tls(files: &TlsFiles) -> Probe {
    match files.check() {
        Ok(()) => Probe::of(
            "server, TLS",
            Ok(format!("{} and its key", files.cert.display())),
        ),
        Err(error) => Probe {
            is_configuration: true,
            ..Probe::of("server, TLS", Err(error.to_string()))
        },
    }
}

/// Free, or in use by Tidings itself.
async fn port(config: &Config) -> Probe {
    let bind = config.server.bind;
    let probed = match tokio::net::TcpListener::bind(bind).await {
        Ok(_) => Ok(format!("{bind} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && config.server.tls.is_some() => {
            Ok(format!(
                "{bind} is in use; with TLS it is not checked by whom"
            ))
        }
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => match version_at(bind).await {
            Some(version) => Ok(format!("{bind} is served by tidings {version}")),
            None => Err(format!(
                "{bind} is in use by another program; set server.bind"
            )),
        },
        Err(error) => Err(format!("cannot bind {bind}: {error}; set server.bind")),
    };
    Probe::of("server", probed)
}

/// The version of the Tidings that serves there, if it is one.
async fn version_at(bind: SocketAddr) -> Option<String> {
    let address = match bind.ip().is_unspecified() {
        true => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), bind.port()),
        false => bind,
    };
    let net = NetOptions {
        egress: Egress {
            allow: vec![address.ip().into()],
            ports: vec![address.port()..=address.port()],
        },
        ..NetOptions::default()
    };
    let url = FetchUrl::parse(&format!("http://{address}/healthz")).ok()?;
    let client = Client::new(net).ok()?;
    let request = Request::get(url, Purpose::Api);
    let response = client.fetch(request, Redirects::Report).await.ok()?;
    let health: Value = serde_json::from_slice(&response.body).ok()?;
    Some(health.get("version")?.as_str()?.to_owned())
}

async fn all_sinks(config: &Config) -> Vec<Probe> {
    let context = match sinks::context(config) {
        Ok(context) => context,
        // The files reported the error.
        Err(_) => return Vec::new(),
    };
    let mut probes = Vec::new();
    for sink in &config.sinks {
        let what = format!("sink {}", sink.name);
        let built = match sinks::build_one(sink, &context) {
            Ok(built) => built,
            Err(failure) => {
                probes.push(Probe::failed(what, &failure));
                continue;
            }
        };
        let report = built.check(Timestamp::now()).await;
        for line in report.lines {
            let said = line.result.map_err(|wrong| {
                format!("{wrong}; when it is fixed: tidings sink test {}", sink.name)
            });
            probes.push(Probe::of(format!("{what}, {}", line.what), said));
        }
    }
    probes
}
