//! `tidings token`: who may use the API and the dashboard.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use tidings_server::new_secret;
use tidings_store::{Role, Store};

use crate::config::Config;
use crate::failure::Failure;
use crate::{output, stores};

/// Make, list and revoke tokens for the API and the dashboard
#[derive(Debug, Args)]
#[command(
    after_help = "A viewer sees everything but tokens, an operator changes things, an admin
makes tokens. A revoked token is refused within a second.

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
    /// Make a token; its secret is shown this once
    Create {
        /// What it is for
        name: String,

        /// viewer, operator or admin
        #[arg(long, default_value = "viewer")]
        role: Role,

        /// How many days it lasts; without, until it is revoked
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..=3650))]
        days: Option<u16>,
    },
    /// Who changed what through the API and the dashboard, the newest first
    Log {
        /// How many at most
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// All tokens, without their secrets
    Ls,
    /// Lock out whoever uses a token
    Revoke {
        /// Its id, as `ls` shows it
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
    let lasts = days.map(|days| Duration::from_secs(u64::from(days) * 24 * 3600));
    let id = store.add_token(name, role, &secret, lasts).await?;
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
            let ends = token
                .expires_at
                .map_or_else(String::new, |at| format!("ends {at}"));
            [
                token.token_id.to_string(),
                token.name.clone(),
                token.role.to_string(),
                state,
                ends,
            ]
        })
        .collect();
    output::columns(&rows)
}

async fn log(store: &Store, limit: u32, json: bool) -> anyhow::Result<()> {
    let changes = store.audit_entries(None, limit).await?;
    if json {
        return output::json(&changes);
    }
    let rows: Vec<[String; 5]> = changes
        .iter()
        .map(|one| {
            [
                one.at.to_string(),
                one.who.clone(),
                one.action.clone(),
                format!("{} {}", one.method, one.path),
                one.status.to_string(),
            ]
        })
        .collect();
    output::columns(&rows)
}

async fn revoke(store: &Store, id: i64, json: bool) -> anyhow::Result<()> {
    store.revoke_token(id).await?;
    match json {
        true => output::json(&json!({ "revoked": id })),
        false => output::line("It is revoked."),
    }
}
