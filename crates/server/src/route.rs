//! What a route is: method, path, the role it requires, its parameters, body and
//! response, and its handler. The tables of routes are built from it.

use std::pin::Pin;

use tidings_store::Role;

use crate::expensive::Expensive;
use crate::params::Param;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

pub(crate) type Handler = fn(CheckedRequest) -> Pin<Box<dyn Future<Output = HandlerResult> + Send>>;

pub(crate) const VIEWER: Option<Role> = Some(Role::Viewer);
pub(crate) const OPERATOR: Option<Role> = Some(Role::Operator);

/// The methods that are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Put,
    Delete,
}

impl Method {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// `None`: public.
    pub(crate) role: Option<Role>,
    pub(crate) summary: &'static str,
    pub(crate) params: &'static [Param],
    pub(crate) body: RequestBody,
    /// The schema of a successful JSON response, or the media type of any other.
    pub(crate) response: &'static str,
    pub(crate) surface: Surface,
    /// What a token may do only so often.
    pub(crate) expensive: Option<Expensive>,
    /// Until the response begins; a stream may last longer.
    pub(crate) timeout_seconds: u64,
    pub(crate) handler: Handler,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    Api,
    Page,
}

/// What the body of a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestBody {
    Empty,
    /// A JSON object of this schema.
    Json(&'static str),
    Form,
    /// URLs: JSON array, JSON lines or CSV.
    UrlList,
    /// Sources: OPML, CSV or JSON lines.
    SourceList,
}

impl RequestBody {
    pub(crate) fn max_bytes(self) -> usize {
        match self {
            Self::Empty => 16 << 10,
            Self::Json(_) | Self::Form => 256 << 10,
            Self::SourceList => 16 << 20,
            Self::UrlList => 32 << 20,
        }
    }
}

impl Route {
    pub(crate) const fn new(
        method: Method,
        path: &'static str,
        role: Option<Role>,
        summary: &'static str,
        handler: Handler,
    ) -> Self {
        Self {
            method,
            path,
            role,
            summary,
            params: &[],
            body: RequestBody::Empty,
            response: "Done",
            surface: Surface::Api,
            expensive: None,
            timeout_seconds: 30,
            handler,
        }
    }

    pub(crate) const fn params(self, params: &'static [Param]) -> Self {
        Self { params, ..self }
    }

    pub(crate) const fn body(self, body: RequestBody) -> Self {
        Self { body, ..self }
    }

    pub(crate) const fn response(self, response: &'static str) -> Self {
        Self { response, ..self }
    }

    pub(crate) const fn timeout(self, timeout_seconds: u64) -> Self {
        Self {
            timeout_seconds,
            ..self
        }
    }

    pub(crate) const fn expensive(self, operation: Expensive) -> Self {
        Self {
            expensive: Some(operation),
            ..self
        }
    }

    pub(crate) const fn role(self, role: Role) -> Self {
        Self {
            role: Some(role),
            ..self
        }
    }

    /// Served without a token.
    pub(crate) const fn public(self) -> Self {
        Self { role: None, ..self }
    }

    /// Whether the path has a place for this parameter.
    pub(crate) fn has_in_path(&self, param: &str) -> bool {
        self.path.contains(&format!("{{{param}}}"))
    }

    /// Whether a successful response is something else than JSON.
    pub(crate) fn has_media_type(&self) -> bool {
        self.response.contains('/')
    }
}

/// A handler as the tables hold it.
macro_rules! handler {
    ($handler:path) => {
        |request| Box::pin($handler(request))
    };
}
pub(crate) use handler;
