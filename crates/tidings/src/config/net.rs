//! The settings of the HTTP client, and the files that they name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tidings_net::{
    BodyMemory, Credentials, Egress, IpNet, Limits, NetOptions, Proxy, read_authorities,
};
use tidings_url::ProxyHosts;

use super::Settings;
use super::table::{items, port_range};
use crate::failure::Failure;

/// How the HTTP client connects, and what it may reach.
#[derive(Debug)]
pub(crate) struct NetConfig {
    options: NetOptions,
    ca_file: Option<PathBuf>,
    auth_file: Option<PathBuf>,
    proxy_file: Option<PathBuf>,
    sink_egress: Egress,
    /// The gateways, if a layer sets them.
    proxy_hosts: Option<ProxyHosts>,
}

const MIB: u64 = 1024 * 1024;

/// A response that finds no memory for so long is put back: its peer would not
/// wait much longer.
const MAX_MEMORY_WAIT: Duration = Duration::from_secs(10);

impl NetConfig {
    pub(super) fn from_settings(settings: &Settings) -> Self {
        let seconds = |key| Duration::from_secs(settings.get(key));
        let file = |key| {
            Some(settings.text(key))
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        let options = NetOptions {
            user_agent: settings.text("net.user_agent").to_owned(),
            contact: settings.text("net.contact").to_owned(),
            limits: Limits {
                connect: seconds("net.connect_seconds"),
                headers: seconds("net.headers_seconds"),
                total: seconds("net.total_seconds"),
                min_bytes_per_second: settings.get("net.min_bytes_per_second"),
                page_bytes: settings.get::<u64>("net.page_mib") * MIB,
                feed_bytes: settings.get::<u64>("net.feed_mib") * MIB,
                sitemap_bytes: settings.get::<u64>("net.sitemap_mib") * MIB,
                redirects: settings.get("net.redirects"),
                ..Limits::default()
            },
            memory: BodyMemory::new(
                settings.get::<u64>("memory.bodies_mib") * MIB,
                MAX_MEMORY_WAIT,
            ),
            egress: egress(settings.text("egress.allow"), settings.text("egress.ports")),
            addresses: items(settings.text("net.addresses"))
                .filter_map(|item| item.parse().ok())
                .collect(),
            dns: items(settings.text("net.dns"))
                .filter_map(|item| item.parse().ok())
                .collect(),
            max_per_domain: Some(settings.get("fetch.max_per_domain")),
            max_per_address: Some(settings.get("fetch.max_per_address")),
            ..NetOptions::default()
        };
        Self {
            options,
            ca_file: file("net.ca_file"),
            auth_file: file("net.auth_file"),
            proxy_file: file("net.proxy_file"),
            sink_egress: egress(settings.text("sink.allow"), settings.text("sink.ports")),
            proxy_hosts: settings
                .is_set("net.proxy_hosts")
                .then(|| items(settings.text("net.proxy_hosts")).collect()),
        }
    }

    /// The contact for site owners, part of the User-Agent.
    pub(crate) fn contact(&self) -> &str {
        match &self.options {
            // Names of crawlers often have it already.
            options if options.contact.is_empty() && options.user_agent.contains("://") => {
                &options.user_agent
            }
            options => &options.contact,
        }
    }

    /// The gateways that this machine is configured with, if it is.
    pub(crate) fn proxy_hosts(&self) -> Option<&ProxyHosts> {
        self.proxy_hosts.as_ref()
    }

    /// What may be reached for pages and feeds.
    pub(crate) fn egress(&self) -> &Egress {
        &self.options.egress
    }

    /// The ranges that are opened for pages, feeds or sinks.
    pub(super) fn allowed(&self) -> Vec<IpNet> {
        let egress = [&self.options.egress, &self.sink_egress];
        egress
            .into_iter()
            .flat_map(|egress| egress.allow.clone())
            .collect()
    }

    /// The files that the settings name, which `options` reads.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.ca_file, &self.auth_file, &self.proxy_file]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
    }

    /// For sinks: their own egress rules, and no credentials of sites.
    pub(crate) fn sink_options(&self) -> Result<NetOptions, Failure> {
        let options = self.options()?;
        Ok(NetOptions {
            egress: self.sink_egress.clone(),
            memory: BodyMemory::default(),
            credentials: Vec::new(),
            // A sink may not be reachable from every source address or proxy.
            addresses: Vec::new(),
            proxies: Vec::new(),
            // A sink is one server, and bounds its own requests.
            max_per_domain: None,
            max_per_address: None,
            ..options
        })
    }

    /// The options of a client, with the files read.
    pub(crate) fn options(&self) -> Result<NetOptions, Failure> {
        let mut options = self.options.clone();
        check_memory(&options)?;
        if let Some(path) = &self.ca_file {
            let read = read_authorities(path).map_err(|error| anyhow!(error));
            let place = || format!("net.ca_file {} can't be loaded", path.display());
            options.authorities = read.with_context(place).map_err(Failure::InvalidConfig)?;
        }
        if let Some(path) = &self.auth_file {
            options.credentials = read_lines("net.auth_file", path, credentials)?;
        }
        if let Some(path) = &self.proxy_file {
            options.proxies = read_lines("net.proxy_file", path, Proxy::parse)?;
        }
        Ok(options)
    }
}

/// A body that could never be read would be put back for ever.
fn check_memory(options: &NetOptions) -> Result<(), Failure> {
    let limit = options.memory.usage().limit;
    let least = BodyMemory::min_bytes(options.limits.largest_body());
    if limit >= least {
        return Ok(());
    }
    Err(Failure::InvalidConfig(anyhow!(
        "memory.bodies_mib = {} is too small for the largest of net.page_mib, net.feed_mib and net.sitemap_mib; set it to at least {}",
        limit / MIB,
        least.div_ceil(MIB)
    )))
}

fn egress(allow: &str, ports: &str) -> Egress {
    Egress {
        allow: items(allow).filter_map(|item| item.parse().ok()).collect(),
        ports: items(ports).filter_map(port_range).collect(),
    }
}

type Read<T> = fn(&str) -> Result<T, String>;

fn read_lines<T>(key: &str, path: &Path, read: Read<T>) -> Result<Vec<T>, Failure> {
    let place = format!("{key} {}", path.display());
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{place} can't be read"))
        .map_err(Failure::InvalidConfig)?;
    let parsed = parse_lines(&text, read).with_context(|| place);
    parsed.map_err(Failure::InvalidConfig)
}

/// One entry per line; `#` starts a comment. An invalid line is never shown: it
/// may hold a password.
fn parse_lines<T>(text: &str, read: Read<T>) -> anyhow::Result<Vec<T>> {
    let lines = text.lines().map(str::trim).enumerate();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(index, line)| read(line).map_err(|why| anyhow!("line {}: {why}", index + 1)))
        .collect()
}

fn credentials(line: &str) -> Result<Credentials, String> {
    let known = line
        .split_once(char::is_whitespace)
        .and_then(|(domain, pair)| Some((domain, pair.trim().split_once(':')?)))
        .and_then(|(domain, (user, password))| Credentials::new(domain, user, password));
    known.ok_or_else(|| "`domain user:password` is expected".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_line_is_named_without_its_password() {
        let good = parse_lines("# sites\n\na.example me:pw: x\n", credentials);
        assert_eq!(good.unwrap().len(), 1);
        let good = parse_lines("# proxies\n\nsocks5://me:pw@a.example\n", Proxy::parse);
        assert_eq!(good.unwrap().len(), 1);
        let wrong = [
            parse_lines("a.example me:pw\nb.example canary\n", credentials).map(drop),
            parse_lines("\nsocks4://me:canary@b.example\n", Proxy::parse).map(drop),
        ];
        for error in wrong {
            let text = format!("{:#}", error.unwrap_err());
            assert!(
                text.contains("line 2") && !text.contains("canary"),
                "{text}"
            );
        }
    }
}
