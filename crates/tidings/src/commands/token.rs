//! `tidings token`: who may use the API and the dashboard.

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
  tidings token ls
  tidings token revoke 884739502018560"
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
            What::Create { name, role } => create(&store, name, *role, json).await,
            What::Ls => ls(&store, json).await,
            What::Revoke { id } => revoke(&store, *id, json).await,
        };
        done.map_err(Failure::Command)
    })
}

async fn create(store: &Store, name: &str, role: Role, json: bool) -> anyhow::Result<()> {
    let secret = new_secret().map_err(anyhow::Error::msg)?;
    let id = store.add_token(name, role, &secret).await?;
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
    let rows: Vec<[String; 4]> = tokens
        .iter()
        .map(|token| {
            let state = match (token.revoked_at, token.last_used_at) {
                (Some(at), _) => format!("revoked {at}"),
                (None, Some(at)) => format!("last used {at}"),
                (None, None) => "never used".to_owned(),
            };
            [
                token.token_id.to_string(),
                token.name.clone(),
                token.role.to_string(),
                state,
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
