//! Authentication with Google: a service account signs a JWT and exchanges it for
//! an access token, which is cached until shortly before it expires.
//!
//! The JWT is signed here: jsonwebtoken 11 needs aws-lc or the rust_crypto packages
//! (about 50) for what is twenty lines over ring.

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

use crate::context::BuildError;
use crate::endpoint::{Body, Endpoint, describe};
use crate::secret::Secret;

const SCOPE: &str = "https://www.googleapis.com/auth/datastore";
/// A token is not used in its last minute.
const EXPIRY_MARGIN: SignedDuration = SignedDuration::from_secs(60);

/// The parts of a service account's JSON that we need.
#[derive(Deserialize)]
struct Account {
    project_id: String,
    client_email: String,
    private_key: String,
    #[serde(default = "google_token_uri")]
    token_uri: String,
}

fn google_token_uri() -> String {
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
        // A serde error could quote the key.
        let account: Account = serde_json::from_str(json.expose()).map_err(|_| {
            BuildError(
                "the service account is not JSON with project_id, client_email and private_key"
                    .to_owned(),
            )
        })?;
        let invalid = |why: &str| BuildError(format!("the service account's private_key {why}"));
        let body: String = account
            .private_key
            .lines()
            .filter(|line| !line.starts_with("-----"))
            .collect();
        let der = STANDARD
            .decode(body.trim())
            .map_err(|_| invalid("is not PEM"))?;
        let key =
            RsaKeyPair::from_pkcs8(&der).map_err(|_| invalid("is not an RSA key in PKCS#8"))?;
        Ok(Self {
            project: account.project_id,
            email: account.client_email,
            endpoint: Endpoint::new(client, &account.token_uri)?,
            token_uri: account.token_uri,
            key,
            token: Mutex::default(),
        })
    }

    /// A token that is valid now, cached or new.
    pub(crate) async fn token(&self, now: Timestamp) -> Result<Secret, String> {
        let mut cached = self.token.lock().await;
        if let Some((token, until)) = cached.as_ref()
            && now < *until
        {
            return Ok(token.clone());
        }
        let (token, seconds) = self.request_token(now).await?;
        let until = now
            .saturating_add(SignedDuration::from_secs(seconds) - EXPIRY_MARGIN)
            .unwrap_or(now);
        *cached = Some((token.clone(), until));
        Ok(token)
    }

    /// Drops the cached token after the server rejected it.
    pub(crate) async fn invalidate_token(&self) {
        *self.token.lock().await = None;
    }

    async fn request_token(&self, now: Timestamp) -> Result<(Secret, i64), String> {
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
        let response =
            sent.map_err(|failure| format!("cannot get an access token: {}", describe(&failure)))?;
        if !response.is_success() {
            let error = self.endpoint.describe_error(&response);
            return Err(format!(
                "cannot get an access token: {}",
                assertion.redact(&error)
            ));
        }
        let reply: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let token = reply["access_token"]
            .as_str()
            .filter(|token| !token.is_empty());
        let token = token.ok_or("cannot get an access token: the response has none")?;
        let seconds = reply["expires_in"].as_i64().unwrap_or(300);
        Ok((Secret::from(token.to_owned()), seconds))
    }

    /// The JWT (RFC 7519) that is exchanged for the token (RFC 7523).
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
            .map_err(|_| "cannot sign with the service account's private_key".to_owned())?;
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
