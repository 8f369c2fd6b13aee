//! Sources that are legal and hostile beside honest ones: an endless index of sitemaps,
//! and a feed of a million items. The honest ones hardly notice, and the hostile ones
//! are named.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidings_engine::{SourceDraft, SourceSettings, add_source};
use tidings_sim::{Act, RawServer, WorldConfig};
use tidings_url::FetchUrl;

use crate::environment::{CONFIG, Environment, wait_until, web};
use crate::ledger::LedgerSummary;
use crate::scenario::Measured;
use crate::setting::Setting;

const ANY_PORT: &str = "egress.ports=1-65535";
/// What honest sources may take beside hostile ones, as a multiple of the time alone.
const MAX_RATIO: f64 = 1.1;
/// Sitemaps that each page of the endless index lists.
const LISTED: usize = 2000;
const ITEMS: usize = 1_000_000;

pub(crate) async fn beside_honest_ones(setting: Setting) -> anyhow::Result<Measured> {
    let alone = Run::new(setting).await?.measure().await?;
    let run = Run::new(setting).await?;
    let _servers = run.add_hostile_sources().await?;
    let beside = run.measure().await?;
    let doctor = run.doctor()?;
    let named = ["endless", "flood"].map(|name| doctor.contains(name));
    let ratio = beside.as_secs_f64() / alone.as_secs_f64();
    let summary = LedgerSummary::of(&run.env);
    let measured = Measured::new(
        named == [true; 2],
        format!(
            "honest articles delivered after {:.1} s alone, {:.1} s beside hostile sources ({ratio:.2} times); doctor names them: {named:?}",
            alone.as_secs_f64(),
            beside.as_secs_f64(),
        ),
    );
    // The quick form is over so soon that the start of a process counts.
    Ok(measured
        .in_time(setting.quick || ratio <= MAX_RATIO)
        .and(summary.lost == 0, format!("{} lost", summary.lost)))
}

struct Run {
    setting: Setting,
    env: Environment,
}

impl Run {
    async fn new(setting: Setting) -> anyhow::Result<Self> {
        let world = WorldConfig {
            plain_fates: true,
            ..web(setting.size(20, 200), setting.size(5, 100))
        };
        let env = Environment::new(setting, world).await?;
        Ok(Self { setting, env })
    }

    async fn add_hostile_sources(&self) -> anyhow::Result<[RawServer; 2]> {
        let local = "127.0.0.1:0".parse()?;
        let next = Arc::new(AtomicUsize::new(0));
        let endless = RawServer::start(local, move |request| {
            if request.starts_with("GET /robots.txt") {
                return robots();
            }
            let first = next.fetch_add(LISTED, Ordering::Relaxed);
            let sitemap = |n| format!("<sitemap><loc>/{n}.xml</loc></sitemap>");
            let listed: String = (first..first + LISTED).map(sitemap).collect();
            xml(&format!("<sitemapindex>{listed}</sitemapindex>"))
        })
        .await?;
        let items: String = (0..ITEMS)
            .map(|n| format!("<item><link>/{n}</link></item>"))
            .collect();
        let feed = format!("<rss version='2.0'><channel>{items}</channel></rss>");
        let flood = RawServer::start(local, move |request| match request.split(' ').nth(1) {
            Some("/feed") => xml(&feed),
            Some("/robots.txt") => robots(),
            _ => Act::answer("404 Not Found", b""),
        })
        .await?;
        let url = |server: &RawServer, path: &str| -> anyhow::Result<FetchUrl> {
            Ok(FetchUrl::parse(&format!(
                "http://{}{path}",
                server.address()
            ))?)
        };
        let index = url(&endless, "/index.xml")?;
        let settings = SourceSettings {
            sitemap_url: Some(index.clone()),
            ..SourceSettings::default()
        };
        self.add("endless", index, settings).await?;
        let feed = url(&flood, "/feed")?;
        let settings = SourceSettings {
            feed_url: Some(feed.clone()),
            ..SourceSettings::default()
        };
        self.add("flood", feed, settings).await?;
        Ok([endless, flood])
    }

    async fn add(&self, name: &str, url: FetchUrl, settings: SourceSettings) -> anyhow::Result<()> {
        let draft = SourceDraft {
            name: name.to_owned(),
            url,
            priority: 5,
            settings,
        };
        add_source(&self.env.store, &draft).await?;
        Ok(())
    }

    /// How long it takes until all honest articles are in the index, and the hostile
    /// sources were polled.
    async fn measure(&self) -> anyhow::Result<Duration> {
        let _process = self.env.start("poll,fetch,deliver", &[ANY_PORT])?;
        let timeout = self.setting.work_timeout();
        let taken = wait_until(timeout, "the honest articles", async || {
            Ok(LedgerSummary::of(&self.env).lost == 0)
        })
        .await?;
        wait_until(timeout, "polls of the hostile sources", async || {
            let feeds = self.env.store.feeds_after(i64::MIN, 100_000).await?;
            let hostile = |url: &str| url.ends_with("/index.xml") || url.ends_with("/feed");
            let mut hostile = feeds.iter().filter(|feed| hostile(&feed.url));
            Ok(hostile.all(|feed| feed.last_polled_at.is_some()))
        })
        .await?;
        Ok(taken)
    }

    fn doctor(&self) -> anyhow::Result<String> {
        let mut command = Command::new(self.setting.tidings);
        command.env_clear().arg("doctor");
        let env = &self.env;
        env.configure(&mut command, CONFIG, &env.address, "doctor", &[]);
        let output = command.output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The delay that a host has by default, where the simulated sites have less.
fn robots() -> Vec<Act> {
    let text = b"User-agent: *\nCrawl-delay: 1\n";
    Act::answer("200 OK\r\nContent-Type: text/plain", text)
}

fn xml(body: &str) -> Vec<Act> {
    Act::answer("200 OK\r\nContent-Type: application/xml", body.as_bytes())
}
