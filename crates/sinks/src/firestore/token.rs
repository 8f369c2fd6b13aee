//! Who we are to Google: a service account signs a short statement and gets a
//! token for it, which is kept until shortly before it ends.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;
use serde_json::{Value, json};
use tidings_net::Client;
use tidings_net::http::Method;
use tokio::sync::Mutex;

use crate::config::BuildError;
use crate::endpoint::{Body, Endpoint};
use crate::secret::Secret;

const SCOPE: &str = "https://www.googleapis.com/auth/datastore";
/// A token is not used in its last minute.
const MARGIN: SignedDuration = SignedDuration::from_secs(60);

/// The parts of a service account's JSON that we need.
#[derive(Deserialize)]
struct Account {
    project_id: String,
    client_email: String,
    private_key: String,
    #[serde(default = "google")]
    token_uri: String,
}

fn google() -> String {
    "https://oauth2.googleapis.com/token".to_owned()
}

pub(crate) struct ServiceAccount {
    pub(crate) project: String,
    email: String,
    token_uri: String,
    endpoint: Endpoint,
    key: RsaKeyPair,
    token: Mutex<Option<(Secret, Timestamp)>>,
}

impl ServiceAccount {
    pub(crate) fn new(json: &Secret, client: &Client) -> Result<Self, BuildError> {
        // What serde says of a broken file could quote the key.
        let account: Account = serde_json::from_str(json.expose()).map_err(|_| {
            BuildError(
                "the service account is not JSON with project_id, client_email and private_key"
                    .to_owned(),
            )
        })?;
        let broken = |why: &str| BuildError(format!("the service account's private_key {why}"));
        let body: String = account
            .private_key
            .lines()
            .filter(|line| !line.starts_with("-----"))
            .collect();
        let der = STANDARD
            .decode(body.trim())
            .map_err(|_| broken("is not PEM"))?;
        let key = RsaKeyPair::from_pkcs8(&der).map_err(|_| broken("is no RSA key in PKCS#8"))?;
        Ok(Self {
            project: account.project_id,
            email: account.client_email,
            endpoint: Endpoint::new(client, &account.token_uri)?,
            token_uri: account.token_uri,
            key,
            token: Mutex::default(),
        })
    }

    /// A token that is good now.
    pub(crate) async fn token(&self, now: Timestamp) -> Result<Secret, String> {
        let mut known = self.token.lock().await;
        if let Some((token, until)) = known.as_ref()
            && now < *until
        {
            return Ok(token.clone());
        }
        let (token, seconds) = self.fetch(now).await?;
        let until = now
            .saturating_add(SignedDuration::from_secs(seconds) - MARGIN)
            .unwrap_or(now);
        *known = Some((token.clone(), until));
        Ok(token)
    }

    /// The server did not like it.
    pub(crate) async fn forget(&self) {
        *self.token.lock().await = None;
    }

    async fn fetch(&self, now: Timestamp) -> Result<(Secret, i64), String> {
        let assertion = Secret::from(self.assertion(now)?);
        let form = format!(
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={}",
            assertion.expose()
        );
        let body = Body {
            content_type: "application/x-www-form-urlencoded",
            bytes: form.into_bytes(),
            is_gzip: false,
        };
        let sent = self.endpoint.send(Method::POST, "", Some(body), &[]).await;
        let response = sent.map_err(|failure| format!("no token: {failure}"))?;
        if !response.is_success() {
            let why = self.endpoint.refusal(&response);
            return Err(format!("no token: {}", assertion.hide_in(&why)));
        }
        let said: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let token = said["access_token"]
            .as_str()
            .filter(|token| !token.is_empty());
        let token = token.ok_or("no token: the reply has none")?;
        let seconds = said["expires_in"].as_i64().unwrap_or(300);
        Ok((Secret::from(token.to_owned()), seconds))
    }

    /// A JWT (RFC 7519) that asks for the token (RFC 7523).
    fn assertion(&self, now: Timestamp) -> Result<String, String> {
        let issued = now.as_second();
        let header = json!({ "alg": "RS256", "typ": "JWT" });
        let claims = json!({
            "iss": self.email,
            "scope": SCOPE,
            "aud": self.token_uri,
            "iat": issued,
            "exp": issued + 3600,
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(&header), part(&claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key
            .sign(
                &RSA_PKCS1_SHA256,
                &SystemRandom::new(),
                message.as_bytes(),
                &mut signature,
            )
            .map_err(|_| "the service account's key can't sign".to_owned())?;
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
