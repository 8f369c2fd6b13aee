//! `tidings token`: the tokens of the API and the dashboard, and the audit log.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use tidings_server::new_secret;
use tidings_store::{Role, Store};

use crate::config::Config;
use crate::failure::Failure;
use crate::{output, stores};

/// Create, list and revoke tokens for the API and the dashboard
#[derive(Debug, Args)]
#[command(
    after_help = "A viewer reads everything but tokens, an operator makes changes too, an admin manages
tokens. A revoked token is refused within a second.

Examples:
  tidings token create me --role admin
  tidings token create prometheus
  tidings token create guest --days 7
  tidings token ls
  tidings token revoke 884739502018560
  tidings token log"
)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Create a token; its secret is shown only once
    Create {
        /// Name of the token
        name: String,

        /// viewer, operator or admin
        #[arg(long, default_value = "viewer")]
        role: Role,

        /// Days until it expires; without, it never expires
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..=3650))]
        days: Option<u16>,
    },
    /// Audit log: changes through the API and the dashboard, the newest first
    Log {
        /// Max number of entries
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// List tokens, without their secrets
    Ls,
    /// Revoke a token
    Revoke {
        /// Id of the token, as `ls` shows it
        id: i64,
    },
}

pub(crate) fn run(args: &TokenArgs, config: &Config, json: bool) -> Result<(), Failure> {
    stores::with_store(config, async |store| {
        let done = match &args.what {
            What::Create { name, role, days } => create(&store, name, *role, *days, json).await,
            What::Log { limit } => log(&store, *limit, json).await,
            What::Ls => ls(&store, json).await,
            What::Revoke { id } => revoke(&store, *id, json).await,
        };
        done.map_err(Failure::Command)
    })
}

async fn create(
    store: &Store,
    name: &str,
    role: Role,
    days: Option<u16>,
    json: bool,
) -> anyhow::Result<()> {
    let secret = new_secret().map_err(anyhow::Error::msg)?;
    let ttl = days.map(|days| Duration::from_secs(u64::from(days) * 24 * 3600));
    let id = store.add_token(name, role, &secret, ttl).await?;
    match json {
        true => {
            output::json(&json!({ "token_id": id, "name": name, "role": role, "token": secret }))
        }
        false => output::line(&secret),
    }
}

async fn ls(store: &Store, json: bool) -> anyhow::Result<()> {
    let tokens = store.tokens().await?;
    if json {
        return output::json(&tokens);
    }
    let rows: Vec<[String; 5]> = tokens
        .iter()
        .map(|token| {
            let state = match (token.revoked_at, token.last_used_at) {
                (Some(at), _) => format!("revoked {at}"),
                (None, Some(at)) => format!("last used {at}"),
                (None, None) => "never used".to_owned(),
            };
            let expires = token
                .expires_at
                .map_or_else(String::new, |at| format!("expires {at}"));
            [
                token.token_id.to_string(),
                token.name.clone(),
                token.role.to_string(),
                state,
                expires,
            ]
        })
        .collect();
    output::columns(&rows)
}

async fn log(store: &Store, limit: u32, json: bool) -> anyhow::Result<()> {
    let entries = store.audit_entries(None, limit).await?;
    if json {
        return output::json(&entries);
    }
    let rows: Vec<[String; 5]> = entries
        .iter()
        .map(|entry| {
            [
                entry.at.to_string(),
                entry.who.clone(),
                entry.action.clone(),
                format!("{} {}", entry.method, entry.path),
                entry.status.to_string(),
            ]
        })
        .collect();
    output::columns(&rows)
}

async fn revoke(store: &Store, id: i64, json: bool) -> anyhow::Result<()> {
    store.revoke_token(id).await?;
    match json {
        true => output::json(&json!({ "revoked": id })),
        false => output::line("Token revoked."),
    }
}
