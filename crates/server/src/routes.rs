//! Every route, in one table: method, path, the role it needs, what it takes and
//! gives, who answers. The router, the checks of the door, the OpenAPI document
//! and the role matrix of the tests are all made of it.

mod dashboard;
mod rest;

use std::pin::Pin;

use tidings_store::{FrontierId, Role};

use crate::call::{Answer, Call};
use crate::problem::Problem;

pub(crate) type Handler = fn(Call) -> Pin<Box<dyn Future<Output = Answer> + Send>>;

/// The methods that there are here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

impl Verb {
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
    pub(crate) method: Verb,
    pub(crate) path: &'static str,
    /// None: open to all.
    pub(crate) role: Option<Role>,
    pub(crate) summary: &'static str,
    pub(crate) params: &'static [Param],
    pub(crate) takes: Takes,
    /// The schema of a good answer; or its media type, when that is no JSON.
    pub(crate) gives: &'static str,
    pub(crate) surface: Surface,
    /// How long it may take; streams say when they begin.
    pub(crate) seconds: u64,
    pub(crate) handler: Handler,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    Api,
    Page,
}

/// What the body of a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    /// A JSON object of this schema.
    Json(&'static str),
    Form,
    /// URLs: JSON array, JSON lines or CSV.
    Bulk,
    /// Sources: OPML, CSV or JSON lines.
    List,
}

impl Takes {
    pub(crate) fn most_bytes(self) -> usize {
        match self {
            Self::Nothing => 16 << 10,
            Self::Json(_) | Self::Form => 256 << 10,
            Self::List => 16 << 20,
            Self::Bulk => 32 << 20,
        }
    }
}

/// A parameter in the path or the query.
#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) is_needed: bool,
    pub(crate) about: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    /// 48 hex digits.
    FrontierId,
    Number {
        least: i64,
        most: i64,
    },
    OneOf(&'static [&'static str]),
    Flag,
    Time,
}

/// Numbers that JSON keeps exactly.
pub(crate) const MOST_ID: i64 = (1 << 53) - 1;

impl Kind {
    pub(crate) fn check(self, name: &str, value: &str) -> Result<(), Problem> {
        let wrong = |why: String| Err(Problem::field(name, format!("{name} {why}")));
        match self {
            Self::Text if value.len() > 4096 => wrong("is longer than 4096 bytes".to_owned()),
            Self::Text if value.contains('\0') => wrong("holds a zero byte".to_owned()),
            Self::Text => Ok(()),
            Self::FrontierId => match value.parse::<FrontierId>() {
                Ok(_) => Ok(()),
                Err(_) => wrong("is not 48 hex digits".to_owned()),
            },
            Self::Number { least, most } => match value.parse::<i64>() {
                Ok(number) if (least..=most).contains(&number) => Ok(()),
                _ => wrong(format!("is not a whole number from {least} to {most}")),
            },
            Self::OneOf(words) if words.contains(&value) => Ok(()),
            Self::OneOf(words) => wrong(format!("is not one of {}", words.join(", "))),
            Self::Flag if matches!(value, "true" | "false" | "1" | "0" | "on") => Ok(()),
            Self::Flag => wrong("is neither true nor false".to_owned()),
            Self::Time => match value.parse::<jiff::Timestamp>() {
                Ok(_) => Ok(()),
                Err(_) => wrong("is not a time such as 2026-11-01T00:00:00Z".to_owned()),
            },
        }
    }
}

pub(crate) const STATUSES: &[&str] = &["pending", "fetching", "fetched", "failed", "dead"];
pub(crate) const ORIGINS: &[&str] = &["feed", "sitemap", "spider", "manual", "api", "agent"];
pub(crate) const ORDERS: &[&str] = &["id", "newest", "recent", "due", "priority"];

const fn param(name: &'static str, kind: Kind, about: &'static str) -> Param {
    Param {
        name,
        kind,
        is_needed: false,
        about,
    }
}

const fn needed(name: &'static str, kind: Kind, about: &'static str) -> Param {
    Param {
        is_needed: true,
        ..param(name, kind, about)
    }
}

const LIMIT: Param = param(
    "limit",
    Kind::Number {
        least: 1,
        most: 1000,
    },
    "how many at most; 50 when nothing is said",
);
const AFTER: Param = param("after", Kind::Text, "`next` of the page before");
const AFTER_ID: Param = param(
    "after",
    Kind::Number {
        least: 0,
        most: MOST_ID,
    },
    "`next` of the page before",
);
const ID: Param = needed(
    "id",
    Kind::Number {
        least: 0,
        most: MOST_ID,
    },
    "its id",
);
const FRONTIER_ID: Param = needed("id", Kind::FrontierId, "frontier id, 48 hex digits");
const Q: Param = param("q", Kind::Text, "words to look for");

const VIEWER: Option<Role> = Some(Role::Viewer);
const OPERATOR: Option<Role> = Some(Role::Operator);
const ADMIN: Option<Role> = Some(Role::Admin);
const OPEN: Option<Role> = None;

impl Route {
    const fn new(
        method: Verb,
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
            takes: Takes::Nothing,
            gives: "Done",
            surface: Surface::Api,
            seconds: 30,
            handler,
        }
    }

    const fn with(self, params: &'static [Param]) -> Self {
        Self { params, ..self }
    }

    const fn takes(self, takes: Takes) -> Self {
        Self { takes, ..self }
    }

    const fn gives(self, gives: &'static str) -> Self {
        Self { gives, ..self }
    }

    const fn within(self, seconds: u64) -> Self {
        Self { seconds, ..self }
    }
}

/// A handler as the table holds it.
macro_rules! by {
    ($handler:path) => {
        |call| Box::pin($handler(call))
    };
}
use by;

pub(crate) fn all() -> impl Iterator<Item = &'static Route> {
    rest::ROUTES.iter().chain(dashboard::ROUTES)
}

pub(crate) fn api() -> &'static [Route] {
    rest::ROUTES
}

/// The path of the table that is spelled like this; a label for metrics.
pub(crate) fn path_named(path: &str) -> &'static str {
    all()
        .find(|route| route.path == path)
        .map_or("other", |route| route.path)
}

/// What is public of a route: for tests that walk all of them.
#[derive(Debug, Clone)]
pub struct Described {
    pub method: &'static str,
    pub path: &'static str,
    pub role: Option<Role>,
    pub is_page: bool,
    pub takes_form: bool,
    pub is_stream: bool,
    /// Parameters of the query that can be wrong, with a wrong value.
    pub wrong: Vec<(&'static str, &'static str)>,
}

/// Every route there is.
pub fn described_routes() -> Vec<Described> {
    let described = |route: &'static Route| Described {
        method: route.method.as_str(),
        path: route.path,
        role: route.role,
        is_page: route.surface == Surface::Page,
        takes_form: route.takes == Takes::Form,
        is_stream: route.gives == "text/event-stream",
        wrong: route
            .params
            .iter()
            .filter(|param| !matches!(param.kind, Kind::Text))
            .map(|param| (param.name, "%21wrong"))
            .collect(),
    };
    all().map(described).collect()
}
