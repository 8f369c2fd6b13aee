//! `tidings url`: the identity of a URL. The first thing to check when two stories
//! became one, or one became two.

use std::io::{self, BufRead as _};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tidings_url::{FetchUrl, ProxyHosts, Rules, UrlError, legacy};

use crate::config::Config;
use crate::failure::Failure;
use crate::output;

/// Show the identity of URLs: fetch URL, canonical URL, keys
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings url 'HTTP://Example.com/a/?utm_source=x#top'
  tidings url --keep ref 'https://example.com/?ref=7'
  tidings url --json - < urls.txt")]
pub(crate) struct UrlArgs {
    /// URLs; - reads them from standard input, one per line
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,

    /// Query parameter to strip besides the tracking ones (a name, or a prefix and *)
    #[arg(long, value_name = "NAME")]
    strip: Vec<String>,

    /// Query parameter that is significant on this site
    #[arg(long, value_name = "NAME")]
    keep: Vec<String>,

    /// /a and /a/ are different pages on this site
    #[arg(long)]
    keep_trailing_slash: bool,

    /// Gateway that serves many sites (host or host:port), besides net.proxy_hosts
    #[arg(long, value_name = "HOST")]
    proxy_host: Vec<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Identity {
    Accepted {
        fetch_url: String,
        canonical_url: String,
        url_key: String,
        host_key: String,
        registrable_domain: String,
        flattened_url_id: String,
    },
    Refused {
        url: String,
        error: String,
    },
}

pub(crate) fn run(args: &UrlArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let rules = Rules {
        strip_params: args.strip.clone(),
        keep_params: args.keep.clone(),
        keep_trailing_slash: args.keep_trailing_slash,
    };
    let configured = config.net.proxy_hosts().map(ToString::to_string);
    let configured = configured.unwrap_or_default();
    let given = args.proxy_host.iter().map(String::as_str);
    let proxies = given.chain(configured.split(',')).collect();
    let mut refused = 0;
    let mut show = |text: &str| {
        let identity = identify(text, &rules, &proxies);
        refused += usize::from(matches!(identity, Identity::Refused { .. }));
        if json {
            output::json(&identity)
        } else {
            print(&identity)
        }
    };
    for url in &args.urls {
        if url != "-" {
            show(url)?;
            continue;
        }
        for line in io::stdin().lock().lines() {
            show(&line.context("standard input can't be read")?)?;
        }
    }
    if refused > 0 {
        Err(Failure::Reported)
    } else {
        Ok(())
    }
}

fn identify(text: &str, rules: &Rules, proxies: &ProxyHosts) -> Identity {
    match FetchUrl::parse(text) {
        Ok(url) => {
            let canonical = url.canonical(rules);
            Identity::Accepted {
                url_key: canonical.key().to_string(),
                canonical_url: canonical.into(),
                host_key: url.host_key(proxies).to_string(),
                registrable_domain: url.registrable_domain().to_owned(),
                flattened_url_id: legacy::flattened_url_id(url.as_str()),
                fetch_url: url.into(),
            }
        }
        Err(UrlError { url, rule }) => Identity::Refused {
            url,
            error: rule.to_string(),
        },
    }
}

fn print(identity: &Identity) -> anyhow::Result<()> {
    let rows = match identity {
        Identity::Accepted {
            fetch_url,
            canonical_url,
            url_key,
            host_key,
            registrable_domain,
            flattened_url_id: _,
        } => vec![
            ["fetch url", fetch_url],
            ["canonical url", canonical_url],
            ["url key", url_key],
            ["host key", host_key],
            ["site", registrable_domain],
        ],
        Identity::Refused { url, error } => vec![["refused", url], ["reason", error]],
    };
    let rows: Vec<_> = rows.into_iter().map(|row| row.map(str::to_owned)).collect();
    output::columns(&rows)
}
