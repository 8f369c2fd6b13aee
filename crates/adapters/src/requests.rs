//! The requests of one pull: counted, retried where that may help, and with keys
//! removed from every text of the service before it is shown.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use tidings_net::http::{HeaderName, HeaderValue};
use tidings_net::{Purpose, Request, Response, retry_after};
use tidings_url::FetchUrl;
use url::Url;

use crate::adapter::{AdapterError, AdapterErrorKind, HttpUnavailable, PullContext};
use crate::secret::Secret;

/// How much of a response is quoted in an error.
const EXCERPT_CHARS: usize = 200;

/// After a longer wait the next pull retries.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(10);

/// Factor of the time limit for large files.
const LARGE_FILE_FACTOR: u32 = 6;

#[derive(Debug)]
pub(crate) struct Session<'a> {
    context: &'a PullContext<'a>,
    /// Between two requests to this service.
    gap: Duration,
    headers: Vec<(HeaderName, HeaderValue)>,
    secrets: Vec<Secret>,
    pub(crate) requests: u32,
    pub(crate) bytes: u64,
}

impl<'a> Session<'a> {
    pub(crate) fn new(context: &'a PullContext<'a>, gap: Duration) -> Self {
        Self {
            context,
            gap,
            headers: Vec::new(),
            secrets: Vec::new(),
            requests: 0,
            bytes: 0,
        }
    }

    /// Removes this from every text of the service.
    pub(crate) fn hide(&mut self, secret: Secret) {
        self.secrets.push(secret);
    }

    /// Sends a header with every request. Its value is a secret.
    pub(crate) fn send_secret(
        &mut self,
        name: &'static str,
        prefix: &str,
        secret: Secret,
    ) -> Result<(), AdapterError> {
        let value = HeaderValue::from_str(&format!("{prefix}{}", secret.expose()));
        let mut value = value.map_err(|_| {
            AdapterError::new(
                AdapterErrorKind::Auth,
                "the key has characters that no header can carry",
            )
        })?;
        value.set_sensitive(true);
        self.headers.push((HeaderName::from_static(name), value));
        self.hide(secret);
        Ok(())
    }

    /// A URL below the service's, or below the one that is configured instead.
    pub(crate) fn address(
        &self,
        service: &str,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Url, AdapterError> {
        let base = self.context.service.base_url.as_deref().unwrap_or(service);
        let text = format!("{}{path}", base.trim_end_matches('/'));
        let mut url = Url::parse(&text).map_err(|error| {
            AdapterError::new(AdapterErrorKind::Config, format!("base_url: {error}"))
        })?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    /// The response, whatever its status.
    pub(crate) async fn get(&mut self, url: &Url) -> Result<Response, AdapterError> {
        let request = Request::get(fetchable(url)?, Purpose::Api);
        self.send(request).await
    }

    /// The same for files of megabytes.
    pub(crate) async fn get_large(&mut self, url: &Url) -> Result<Response, AdapterError> {
        let mut request = Request::get(fetchable(url)?, Purpose::File);
        request.time_limit = Some(self.context.time_limit * LARGE_FILE_FACTOR);
        self.send(request).await
    }

    pub(crate) async fn send(&mut self, mut request: Request) -> Result<Response, AdapterError> {
        request.headers.extend(self.headers.iter().cloned());
        request.time_limit = request.time_limit.or(Some(self.context.time_limit));
        let mut waits = self.context.retry_waits.iter();
        loop {
            self.requests += 1;
            let result = self.context.http.fetch(request.clone(), self.gap).await;
            let wait = waits.next().copied();
            let response = match result {
                Ok(response) => response,
                Err(HttpUnavailable::Busy(after)) => {
                    self.requests -= 1;
                    return Err(AdapterError::new(
                        AdapterErrorKind::Busy { after },
                        "no host permit for the service",
                    ));
                }
                Err(HttpUnavailable::Failed(failure)) => {
                    let message = self.readable(&failure.to_string());
                    return Err(AdapterError::new(AdapterErrorKind::Network, message));
                }
            };
            self.bytes += response.wire_bytes;
            let is_transient = response.status == 429 || response.status >= 500;
            let requested = self.retry_after(&response).unwrap_or_default();
            match wait {
                Some(wait) if is_transient && requested <= MAX_RETRY_WAIT => {
                    tokio::time::sleep(wait.max(requested)).await;
                }
                _ => return Ok(response),
            }
        }
    }

    /// The body of a successful response as JSON. Services do send pages and plain
    /// texts with status 200.
    pub(crate) fn json<T: DeserializeOwned>(&self, response: &Response) -> Result<T, AdapterError> {
        serde_json::from_slice(&response.body).map_err(|error| {
            let message = match is_json(&response.body) {
                true => format!("the response is not as documented: {error}"),
                false => format!("the response is not JSON: {}", self.excerpt(response)),
            };
            AdapterError::new(AdapterErrorKind::Malformed, self.readable(&message))
        })
    }

    /// The error for a status that is not a success. `reason` is what the service wrote.
    pub(crate) fn status_error(&self, response: &Response, reason: Option<&str>) -> AdapterError {
        let status = response.status;
        let reason = reason.map_or_else(|| self.excerpt(response), |reason| self.readable(reason));
        let message = match reason.as_str() {
            "" => format!("status {status}"),
            reason => format!("status {status}: {reason}"),
        };
        let kind = match status {
            401 | 403 => AdapterErrorKind::Auth,
            429 => AdapterErrorKind::RateLimited {
                after: self.retry_after(response),
            },
            500.. => AdapterErrorKind::Network,
            400..=499 => AdapterErrorKind::Config,
            _ => AdapterErrorKind::Malformed,
        };
        AdapterError::new(kind, message)
    }

    fn retry_after(&self, response: &Response) -> Option<Duration> {
        let header = response.header("retry-after")?;
        retry_after(header, self.context.now)
    }

    fn excerpt(&self, response: &Response) -> String {
        self.readable(&String::from_utf8_lossy(&response.body))
    }

    /// A text of the service, on one line, short, and without keys.
    pub(crate) fn readable(&self, text: &str) -> String {
        let hidden = self
            .secrets
            .iter()
            .fold(text.to_owned(), |text, secret| secret.hide_in(&text));
        let words: Vec<&str> = hidden.split_whitespace().collect();
        let line = words.join(" ");
        match line.char_indices().nth(EXCERPT_CHARS) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line,
        }
    }
}

pub(crate) fn fetchable(url: &Url) -> Result<FetchUrl, AdapterError> {
    FetchUrl::parse(url.as_str())
        .map_err(|error| AdapterError::new(AdapterErrorKind::Config, error.to_string()))
}

fn is_json(body: &[u8]) -> bool {
    let start = body.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(start, Some(b'{' | b'['))
}

/// A setting, or its default.
pub(crate) fn number(config: &Json, name: &str, default: u64) -> u64 {
    config[name].as_u64().unwrap_or(default)
}

pub(crate) fn days(config: &Json, default: u64) -> Duration {
    Duration::from_secs(number(config, "back_days", default) * 86_400)
}

pub(crate) fn overlap(config: &Json, default: u64) -> Duration {
    Duration::from_secs(number(config, "overlap_minutes", default) * 60)
}
