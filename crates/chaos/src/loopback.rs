//! An HTTP client that reaches this machine and nothing else, for scenarios with
//! servers of their own.

use anyhow::Context as _;
use tidings_net::{Client, Egress, NetOptions};

pub(crate) fn client() -> anyhow::Result<Client> {
    Client::new(NetOptions {
        egress: Egress {
            allow: vec!["127.0.0.0/8".parse().context("the loopback network")?],
            ports: vec![1..=u16::MAX],
        },
        ..NetOptions::default()
    })
    .context("cannot set up the HTTP client")
}
