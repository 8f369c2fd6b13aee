//! `tidings url`: how Tidings sees a URL. The first thing to ask when two
//! stories became one, or one became two.

use std::io::{self, BufRead as _};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tidings_url::{FetchUrl, ProxyHosts, Rules, UrlError, legacy};

use crate::failure::Failure;
use crate::output;

/// Show the identity of URLs: what is fetched, what is compared, and the key
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings url 'HTTP://Example.com/a/?utm_source=x#top'
  tidings url --keep ref 'https://example.com/?ref=7'
  tidings url --json - < urls.txt")]
pub(crate) struct UrlArgs {
    /// URLs to look at; - reads them from standard input, one a line
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,

    /// Parameter to strip besides the tracking ones (a name, or a prefix and *)
    #[arg(long, value_name = "NAME")]
    strip: Vec<String>,

    /// Parameter that means something on this site
    #[arg(long, value_name = "NAME")]
    keep: Vec<String>,

    /// /a and /a/ are two pages on this site
    #[arg(long)]
    keep_trailing_slash: bool,

    /// Gateway that answers for many sites (host or host:port)
    #[arg(long, value_name = "HOST")]
    proxy_host: Vec<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Seen {
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

pub(crate) fn run(args: &UrlArgs, json: bool) -> Result<(), Failure> {
    let rules = Rules {
        strip_params: args.strip.clone(),
        keep_params: args.keep.clone(),
        keep_trailing_slash: args.keep_trailing_slash,
    };
    let proxies = args.proxy_host.iter().collect();
    let mut refused = 0;
    let mut show = |text: &str| {
        let seen = look_at(text, &rules, &proxies);
        refused += usize::from(matches!(seen, Seen::Refused { .. }));
        if json {
            output::json(&seen)
        } else {
            print(&seen)
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

fn look_at(text: &str, rules: &Rules, proxies: &ProxyHosts) -> Seen {
    match FetchUrl::parse(text) {
        Ok(url) => {
            let canonical = url.canonical(rules);
            Seen::Accepted {
                url_key: canonical.key().to_string(),
                canonical_url: canonical.into(),
                host_key: url.host_key(proxies).to_string(),
                registrable_domain: url.registrable_domain().to_owned(),
                flattened_url_id: legacy::flattened_url_id(url.as_str()),
                fetch_url: url.into(),
            }
        }
        Err(UrlError { url, rule }) => Seen::Refused {
            url,
            error: rule.to_string(),
        },
    }
}

fn print(seen: &Seen) -> anyhow::Result<()> {
    let rows = match seen {
        Seen::Accepted {
            fetch_url,
            canonical_url,
            url_key,
            host_key,
            registrable_domain,
            flattened_url_id: _,
        } => vec![
            ["fetched", fetch_url],
            ["compared", canonical_url],
            ["url key", url_key],
            ["host key", host_key],
            ["site", registrable_domain],
        ],
        Seen::Refused { url, error } => vec![["refused", url], ["because", error]],
    };
    let rows: Vec<_> = rows.into_iter().map(|row| row.map(str::to_owned)).collect();
    output::columns(&rows)
}
