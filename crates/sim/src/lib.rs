//! A simulated web: thousands of news sites on one loopback port, each with a
//! home page, feeds, sitemaps, articles, robots.txt, a publication schedule,
//! latency and a fault script.
//!
//! Everything that is published follows from the seed and the time, so tests
//! know the truth: the [`Ledger`] says what was published, the [`RequestLog`]
//! which requests were made and when. Serves loopback only; never a client.
//!
//! ```no_run
//! # async fn demo() -> std::io::Result<()> {
//! use tidings_sim::{SimClock, SimServer, WorldConfig};
//!
//! let config = WorldConfig { sites: 200, ..WorldConfig::new(7) };
//! let sim = SimServer::start(config, SimClock::real(), "127.0.0.1:0").await?;
//! println!("{} is one of {} sites", sim.world().site(0).home(), sim.world().len());
//! println!("{} articles so far", sim.ledger().entries().count());
//! # Ok(()) }
//! ```

mod article;
mod clock;
mod dns;
mod fakes;
mod fault;
mod feed_format;
mod hostile_responses;
mod index_page;
mod ledger;
mod log;
mod nats;
mod postgres;
mod raw;
mod render;
mod resource_usage;
mod respond;
mod rng;
mod schedule;
mod server;
mod shared;
mod site;
mod tcp_relay;
mod text;
mod tidings_binary;
mod trap;
mod wire;
mod world;
mod world_config;

pub use article::{Article, Fate};
pub use clock::SimClock;
pub use dns::{DnsAnswer, DnsServer};
pub use fakes::{
    ApiFault, ElasticsearchFault, FakeApi, FakeElasticsearch, FakeFirestore, FakeGorse,
    FakeWebhook, FirestoreFault, GorseFault, Story, WebhookCall, WebhookFault,
};
pub use fault::{Fault, FaultRule, Target, When};
pub use feed_format::{FeedDefect, FeedFormat};
pub use hostile_responses::{
    BROTLI_GIBIBYTE, HostileResponse, LOOPBACK_SPELLINGS, hostile_responses, zstd_gibibyte,
};
pub use ledger::{Entry, Expected, Ledger};
pub use log::{RequestLog, RequestRecord, Violation, politeness_violations};
pub use nats::NatsServer;
pub use postgres::{PgBouncer, PostgresServer, postgres_database, postgres_program};
pub use raw::{Act, RawServer};
pub use resource_usage::{cpu_seconds, load_average, peak_mib, reset_peak};
pub use server::SimServer;
pub use site::{FeedSpec, RobotsKind, Site, SitemapKind, Template};
pub use tcp_relay::{RelayMode, TcpRelay};
pub use tidings_binary::tidings_binary;
pub use trap::SiteTrap;
pub use world::World;
pub use world_config::WorldConfig;
