//! The HTTP endpoint of a sink: its URL, its authentication headers, and what
//! its error responses mean. Every request goes through the guarded HTTP client
//! (`tidings_net::Client`); no secret gets into an error.

use std::time::Duration;

use base64::Engine as _;
use jiff::Timestamp;
use tidings_net::http::{HeaderName, HeaderValue, Method, header};
use tidings_net::{
    Client, Denied, DenyReason, Failure, Purpose, Redirects, Request, Response, retry_after,
};
use tidings_url::FetchUrl;

use crate::context::BuildError;
use crate::secret::Secret;
use crate::sink::Verdict;

/// Characters of a response body that an error quotes.
const EXCERPT_CHARS: usize = 300;

#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    client: Client,
    url: FetchUrl,
    headers: Vec<(HeaderName, HeaderValue)>,
    secrets: Vec<Secret>,
    pub(crate) time_limit: Duration,
    pub(crate) read_at_most: Option<usize>,
}

/// A request body and its content type.
pub(crate) struct Body {
    pub(crate) content_type: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_gzip: bool,
}

impl Body {
    pub(crate) fn json(value: &serde_json::Value) -> Self {
        Self {
            content_type: "application/json",
            bytes: value.to_string().into_bytes(),
            is_gzip: false,
        }
    }
}

impl Endpoint {
    pub(crate) fn new(client: &Client, url: &str) -> Result<Self, BuildError> {
        let parsed = FetchUrl::parse(url).map_err(|error| BuildError(format!("url: {error}")))?;
        let rest = url.split_once("//").map_or(url, |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(BuildError(
                "url contains a user name or password; set them with the *_env or *_file settings"
                    .to_owned(),
            ));
        }
        Ok(Self {
            client: client.clone(),
            url: parsed,
            headers: Vec::new(),
            secrets: Vec::new(),
            time_limit: Duration::from_secs(30),
            read_at_most: None,
        })
    }

    /// Sends a header with every request. Its value is a secret.
    pub(crate) fn with_secret_header(
        mut self,
        name: &'static str,
        prefix: &str,
        secret: Secret,
    ) -> Result<Self, BuildError> {
        let value = HeaderValue::from_str(&format!("{prefix}{}", secret.expose()));
        let mut value = value.map_err(|_| {
            BuildError(format!(
                "the secret for {name} has characters that are invalid in an HTTP header"
            ))
        })?;
        value.set_sensitive(true);
        self.headers.push((HeaderName::from_static(name), value));
        self.secrets.push(secret);
        Ok(self)
    }

    pub(crate) fn with_password(self, user: &str, password: &Secret) -> Result<Self, BuildError> {
        if user.contains(':') {
            return Err(BuildError("user must not contain a colon".to_owned()));
        }
        let pair = format!("{user}:{}", password.expose());
        let pair = base64::engine::general_purpose::STANDARD.encode(pair);
        let mut endpoint =
            self.with_secret_header("authorization", "Basic ", Secret::from(pair))?;
        endpoint.secrets.push(password.clone());
        Ok(endpoint)
    }

    /// Redacts this secret from every text of the server.
    pub(crate) fn redacting(mut self, secret: Secret) -> Self {
        self.secrets.push(secret);
        self
    }

    /// Scheme, host and port. The path of a URL may be a secret, too.
    pub(crate) fn server(&self) -> &str {
        &self.url.as_url()[..url::Position::BeforePath]
    }

    fn url_of(&self, path: &str) -> Result<FetchUrl, Failure> {
        if path.is_empty() {
            return Ok(self.url.clone());
        }
        let base = self.url.as_str().trim_end_matches('/');
        FetchUrl::parse(&format!("{base}{path}")).map_err(|error| Failure::Protocol {
            why: error.to_string(),
        })
    }

    /// Sends a request to this path below the URL; to the URL itself if empty.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Body>,
        extra: &[(HeaderName, HeaderValue)],
    ) -> Result<Response, Failure> {
        let url = self.url_of(path)?;
        let mut request = Request::get(url, Purpose::Api);
        request.method = method;
        request.time_limit = Some(self.time_limit);
        request.read_at_most = self.read_at_most;
        let json = HeaderValue::from_static("application/json");
        request.headers.push((header::ACCEPT, json));
        request.headers.extend(self.headers.iter().cloned());
        if let Some(body) = body {
            let content_type = HeaderValue::from_static(body.content_type);
            request.headers.push((header::CONTENT_TYPE, content_type));
            if body.is_gzip {
                let gzip = HeaderValue::from_static("gzip");
                request.headers.push((header::CONTENT_ENCODING, gzip));
            }
            request.body = body.bytes.into();
        }
        request.headers.extend(extra.iter().cloned());
        self.client.fetch(request, Redirects::Report).await
    }

    /// The start of a response body, in one line, without our secrets.
    pub(crate) fn excerpt(&self, response: &Response) -> String {
        let text = String::from_utf8_lossy(&response.body);
        self.sanitize(&text)
    }

    /// A text of the server, shortened and redacted for an error message.
    pub(crate) fn sanitize(&self, text: &str) -> String {
        let hidden = self
            .secrets
            .iter()
            .fold(text.to_owned(), |text, secret| secret.redact(&text));
        let words: Vec<&str> = hidden
            .split(|c: char| c.is_whitespace() || c.is_control())
            .filter(|word| !word.is_empty())
            .collect();
        let line = words.join(" ");
        match line.char_indices().nth(EXCERPT_CHARS) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line,
        }
    }

    /// The verdict for all documents of a request that was rejected as a whole.
    pub(crate) fn retry_verdict(&self, response: &Response, now: Timestamp) -> Verdict {
        let after = response
            .header("retry-after")
            .and_then(|header| retry_after(header, now));
        Verdict::Retry {
            error: self.describe_error(response),
            after,
        }
    }

    /// The error response in words, with the next step where it is known.
    pub(crate) fn describe_error(&self, response: &Response) -> String {
        let status = response.status;
        let hint = match status {
            300..=399 => "; redirects are not followed: set url to the final address",
            401 => "; check the user and password or the key",
            403 => "; the credentials may not be allowed to do this",
            _ => "",
        };
        let excerpt = self.excerpt(response);
        match excerpt.as_str() {
            "" => format!("{} returned {status}{hint}", self.server()),
            _ => format!("{} returned {status}: {excerpt}{hint}", self.server()),
        }
    }
}

/// The verdict when no response arrived: the request may have been processed or not.
pub(crate) fn transport_error(failure: &Failure) -> Verdict {
    Verdict::retry(describe(failure))
}

/// A failure in words; what would open a blocked address is a setting of the sinks.
pub(crate) fn describe(failure: &Failure) -> String {
    let Failure::Egress(Denied { address, reason }) = failure else {
        return failure.to_string();
    };
    match reason {
        DenyReason::Range(name) => {
            format!("{address} may not be reached: it is {name}; sink.allow opens a range by name")
        }
        DenyReason::Port => {
            format!("{address} may not be reached: its port is not open; sink.ports opens more")
        }
    }
}
