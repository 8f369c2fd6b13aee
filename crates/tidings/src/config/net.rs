//! The settings of the door to the outside, and the files that they name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tidings_net::{Credentials, Egress, Limits, NetOptions, read_authorities};

use super::Settings;
use super::table::{items, port_range};
use crate::failure::Failure;

/// How the outside may be asked.
#[derive(Debug)]
pub(crate) struct NetConfig {
    options: NetOptions,
    ca_file: Option<PathBuf>,
    auth_file: Option<PathBuf>,
    sink_egress: Egress,
}

const MIB: u64 = 1024 * 1024;

impl NetConfig {
    pub(super) fn from_settings(settings: &Settings) -> Self {
        let seconds = |key| Duration::from_secs(settings.get(key));
        let file = |key| {
            Some(settings.text(key))
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        let options = NetOptions {
            contact: settings.text("net.contact").to_owned(),
            limits: Limits {
                connect: seconds("net.connect_seconds"),
                headers: seconds("net.headers_seconds"),
                total: seconds("net.total_seconds"),
                bytes_per_second: settings.get("net.bytes_per_second"),
                page_bytes: settings.get::<u64>("net.page_mib") * MIB,
                feed_bytes: settings.get::<u64>("net.feed_mib") * MIB,
                sitemap_bytes: settings.get::<u64>("net.sitemap_mib") * MIB,
                redirects: settings.get("net.redirects"),
                ..Limits::default()
            },
            egress: egress(settings, "egress"),
            addresses: items(settings.text("net.addresses"))
                .filter_map(|item| item.parse().ok())
                .collect(),
            dns: items(settings.text("net.dns"))
                .filter_map(|item| item.parse().ok())
                .collect(),
            ..NetOptions::default()
        };
        Self {
            options,
            ca_file: file("net.ca_file"),
            auth_file: file("net.auth_file"),
            sink_egress: egress(settings, "sink"),
        }
    }

    /// What a site owner is told of who asks.
    pub(crate) fn contact(&self) -> &str {
        &self.options.contact
    }

    /// What may be reached for pages and feeds.
    pub(crate) fn egress(&self) -> &Egress {
        &self.options.egress
    }

    /// The files that are named, which `options` reads.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.ca_file, &self.auth_file]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
    }

    /// For sinks: other addresses, and no passwords of sites.
    pub(crate) fn sink_options(&self) -> Result<NetOptions, Failure> {
        let options = self.options()?;
        Ok(NetOptions {
            egress: self.sink_egress.clone(),
            credentials: Vec::new(),
            // They may be where only some of our addresses lead.
            addresses: Vec::new(),
            ..options
        })
    }

    /// What a client is built from, with the files read.
    pub(crate) fn options(&self) -> Result<NetOptions, Failure> {
        let mut options = self.options.clone();
        if let Some(path) = &self.ca_file {
            let read = read_authorities(path).map_err(|error| anyhow!(error));
            let place = || format!("net.ca_file {} can't be used", path.display());
            options.authorities = read.with_context(place).map_err(Failure::Unusable)?;
        }
        if let Some(path) = &self.auth_file {
            options.credentials = read_credentials(path).map_err(Failure::Unusable)?;
        }
        Ok(options)
    }
}

/// `NAME.allow` and `NAME.ports`.
fn egress(settings: &Settings, name: &str) -> Egress {
    Egress {
        allow: items(settings.text(&format!("{name}.allow")))
            .filter_map(|item| item.parse().ok())
            .collect(),
        ports: items(settings.text(&format!("{name}.ports")))
            .filter_map(port_range)
            .collect(),
    }
}

fn read_credentials(path: &Path) -> anyhow::Result<Vec<Credentials>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("net.auth_file {} can't be read", path.display()))?;
    parse_credentials(&text).with_context(|| format!("net.auth_file {}", path.display()))
}

/// Lines of `domain user:password`; `#` starts a comment.
fn parse_credentials(text: &str) -> anyhow::Result<Vec<Credentials>> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // The line itself is never shown: it holds a password.
        let known = line
            .split_once(char::is_whitespace)
            .and_then(|(domain, pair)| Some((domain, pair.trim().split_once(':')?)))
            .and_then(|(domain, (user, password))| Credentials::new(domain, user, password));
        let wrong = || anyhow!("line {}: `domain user:password` is expected", number + 1);
        found.push(known.ok_or_else(wrong)?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_line_is_named_without_its_password() {
        assert_eq!(
            parse_credentials("# sites\n\na.example me:pw: x\n")
                .unwrap()
                .len(),
            1
        );
        let error = parse_credentials("a.example me:pw\nb.example canary\n").unwrap_err();
        let text = format!("{error:#}");
        assert!(
            text.contains("line 2") && !text.contains("canary"),
            "{text}"
        );
    }
}
