//! `tidings fetch`: one request, and everything that is known of it: the response,
//! its redirects and timings, or why it was refused.

use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde::Serialize;
use tidings_net::{
    Client, Decoded, Failure as NetFailure, Hop, Media, Permission, Protocol, Purpose, Redirects,
    Request, Response, RobotsGate, Timings,
};
use tidings_url::FetchUrl;

use super::article_preview;
use crate::config::Config;
use crate::failure::Failure;
use crate::output;

/// Fetch one URL, if robots.txt allows it, and show the response
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidings fetch https://example.com/story
  tidings fetch https://example.com/feed.xml --as feed --json
  tidings fetch https://example.com/story --extract
  tidings fetch https://example.com/story --body > story.html
  tidings fetch http://10.1.2.3/ --set egress.allow=10.1.2.0/24")]
pub(crate) struct FetchArgs {
    /// URL to fetch
    url: FetchUrl,

    /// Print the decoded body and nothing else
    #[arg(long, conflicts_with = "json")]
    body: bool,

    /// Print the article extracted from the page, and the origin of each field
    #[arg(long, conflicts_with = "body")]
    extract: bool,

    /// Expected kind: it sets the limits and the Accept header
    #[arg(long = "as", value_name = "KIND", default_value = "page")]
    kind: Kind,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Page,
    Feed,
    Sitemap,
}

impl Kind {
    fn purpose(self) -> Purpose {
        match self {
            Self::Page => Purpose::Page,
            Self::Feed => Purpose::Feed,
            Self::Sitemap => Purpose::Sitemap,
        }
    }
}

pub(crate) fn run(args: &FetchArgs, config: &Config, json: bool) -> Result<(), Failure> {
    let options = config.net.options()?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    runtime.block_on(async {
        let client = Client::new(options).context("cannot create the HTTP client")?;
        match fetch(&client, args).await {
            Ok((permission, response)) => Ok(show(args, permission, &response, json)?),
            Err(failure) if json => {
                output::json(&Refused::of(&failure))?;
                Err(Failure::Reported)
            }
            Err(failure) => {
                let context =
                    anyhow::Error::new(failure).context(format!("cannot fetch {}", args.url));
                Err(Failure::Command(context))
            }
        }
    })
}

async fn fetch(client: &Client, args: &FetchArgs) -> Result<(Permission, Response), NetFailure> {
    let robots = RobotsGate::new(client.clone(), None);
    let permission = robots.permit(&args.url).await?;
    let request = Request::get(args.url.clone(), args.kind.purpose());
    let response = client.fetch(request, Redirects::Check(&robots)).await?;
    Ok((permission, response))
}

/// A failed fetch, as JSON.
#[derive(Serialize)]
struct Refused {
    error: &'static str,
    class: &'static str,
    message: String,
}

impl Refused {
    fn of(failure: &NetFailure) -> Self {
        Self {
            error: failure.code(),
            class: failure.class().as_str(),
            message: failure.to_string(),
        }
    }
}

/// A completed fetch, as JSON.
#[derive(Serialize)]
struct Fetched<'a> {
    url: &'a FetchUrl,
    status: u16,
    protocol: Protocol,
    peer: String,
    redirects: &'a [Hop],
    robots: RobotsVerdict,
    media: Media,
    charset: Option<&'static str>,
    charset_from: Option<tidings_net::CharsetFrom>,
    wire_bytes: u64,
    decoded_bytes: usize,
    is_cut: bool,
    timings_ms: Milliseconds,
    headers: Vec<(&'a str, String)>,
}

#[derive(Serialize)]
struct RobotsVerdict {
    allowed: bool,
    crawl_delay_seconds: Option<f64>,
}

#[derive(Serialize)]
struct Milliseconds {
    dns: f64,
    connect: f64,
    tls: f64,
    first_byte: f64,
    total: f64,
}

impl From<Timings> for Milliseconds {
    fn from(timings: Timings) -> Self {
        let ms = |time: Duration| (time.as_secs_f64() * 10_000.0).round() / 10.0;
        Self {
            dns: ms(timings.dns),
            connect: ms(timings.connect),
            tls: ms(timings.tls),
            first_byte: ms(timings.first_byte),
            total: ms(timings.total),
        }
    }
}

fn show(
    args: &FetchArgs,
    permission: Permission,
    response: &Response,
    json: bool,
) -> anyhow::Result<()> {
    let decoded =
        (!response.media.is_binary() && response.media != Media::Archive).then(|| response.text());
    if args.body {
        return match decoded {
            Some(decoded) => output::text(&decoded.text),
            None => output::bytes(&response.body),
        };
    }
    if args.extract {
        let article = article_preview::article(response, None);
        return match json {
            true => output::json(&article),
            false => article_preview::show(&article),
        };
    }
    let headers = headers(response);
    if json {
        return output::json(&Fetched {
            url: &response.url,
            status: response.status,
            protocol: response.protocol,
            peer: response.peer.to_string(),
            redirects: &response.hops,
            robots: RobotsVerdict {
                allowed: true,
                crawl_delay_seconds: permission.crawl_delay.map(|delay| delay.as_secs_f64()),
            },
            media: response.media,
            charset: decoded.as_ref().map(|decoded| decoded.charset),
            charset_from: decoded.as_ref().map(|decoded| decoded.from),
            wire_bytes: response.wire_bytes,
            decoded_bytes: response.body.len(),
            is_cut: response.is_cut,
            timings_ms: response.timings.into(),
            headers,
        });
    }
    output::columns(&summary(permission, response, decoded.as_ref()))?;
    output::line("")?;
    headers
        .iter()
        .try_for_each(|(name, value)| output::line(&format!("{name}: {value}")))
}

/// Header values are untrusted: control characters are not printed.
fn headers(response: &Response) -> Vec<(&str, String)> {
    let shown = |value: &[u8]| {
        let text = String::from_utf8_lossy(value);
        text.chars()
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect()
    };
    let headers = response.headers.iter();
    headers
        .map(|(name, value)| (name.as_str(), shown(value.as_bytes())))
        .collect()
}

fn summary(
    permission: Permission,
    response: &Response,
    decoded: Option<&Decoded<'_>>,
) -> Vec<[String; 2]> {
    let row = |name: &str, value: String| [name.to_owned(), value];
    let protocol = match response.protocol {
        Protocol::Http1 => "HTTP/1.1",
        Protocol::Http2 => "HTTP/2",
    };
    let mut rows = vec![
        row("address", response.url.to_string()),
        row(
            "status",
            format!("{} over {protocol} from {}", response.status, response.peer),
        ),
    ];
    for hop in &response.hops {
        rows.push(row("redirect", format!("{} from {}", hop.status, hop.from)));
    }
    let delay = permission
        .crawl_delay
        .map(|delay| format!(", crawl delay {} s", delay.as_secs_f64()));
    rows.push(row(
        "robots",
        format!("allowed{}", delay.unwrap_or_default()),
    ));
    let declared = response.header("content-type").unwrap_or("no Content-Type");
    rows.push(row(
        "type",
        format!("{} ({declared})", media_name(response.media)),
    ));
    if let Some(decoded) = decoded {
        rows.push(row(
            "charset",
            format!("{} ({})", decoded.charset, from_name(decoded)),
        ));
    }
    let encoding = response
        .header("content-encoding")
        .unwrap_or("not compressed");
    let cut = if response.is_cut { "; truncated" } else { "" };
    let size = format!(
        "{} bytes, {} on the wire ({encoding}){cut}",
        response.body.len(),
        response.wire_bytes
    );
    rows.push(row("size", size));
    let ms: Milliseconds = response.timings.into();
    let time = format!(
        "{} ms: DNS {}, connect {}, TLS {}, first byte {}",
        ms.total, ms.dns, ms.connect, ms.tls, ms.first_byte
    );
    rows.push(row("time", time));
    rows
}

fn media_name(media: Media) -> &'static str {
    match media {
        Media::Html => "HTML",
        Media::Xml => "XML",
        Media::Json => "JSON",
        Media::Text => "text",
        Media::Pdf => "PDF",
        Media::Archive => "archive",
        Media::Image => "image",
        Media::Audio => "audio",
        Media::Video => "video",
        Media::Binary => "binary",
    }
}

fn from_name(decoded: &Decoded<'_>) -> &'static str {
    match decoded.from {
        tidings_net::CharsetFrom::Bom => "from the byte order mark",
        tidings_net::CharsetFrom::Header => "from the Content-Type header",
        tidings_net::CharsetFrom::Meta => "from the meta element",
        tidings_net::CharsetFrom::Detected => "detected",
    }
}
