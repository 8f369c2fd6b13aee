//! The outcome of a claimed URL by failure, response or article: the response
//! table. Pure; only a page that has to be read is not decided here.

use std::time::Duration;

use jiff::Timestamp;
use tidings_extract::{Article, Method, Quality};
use tidings_net::{Class, Failure, Media, Response, retry_after};
use tidings_store::Outcome;

use super::retry;
use crate::sources::Retries;

/// Retry delay after an internal error.
const INTERNAL_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Retry delay of a page that the extractor or the store fails on.
const PAGE_RETRY_DELAY: Duration = Duration::from_secs(3600);

/// The attempts of a URL, which decide its next one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempts {
    /// Retries that were used up before.
    pub(super) used: u16,
    /// In 0..1.
    pub(super) random: f64,
    /// Of the source, if it has one.
    pub(super) schedule: Option<Retries>,
}

impl Attempts {
    /// An error of the web: retried, or failed permanently.
    fn failed(self, error: String) -> Outcome {
        self.failed_until(error, None)
    }

    fn failed_until(self, error: String, retry_after: Option<Duration>) -> Outcome {
        let wait = match self.schedule {
            Some(schedule) => retry::after_failure_of(schedule, self.used, self.random),
            None => retry::after_failure(self.used, self.random),
        };
        match wait {
            Some(wait) => Outcome::Failed {
                error,
                retry_in: retry::at_least(wait, retry_after),
            },
            None => dead("max_retries", Some(error)),
        }
    }

    /// The site denies access: retried after hours, or failed permanently.
    fn refused(self, reason: &str, error: String) -> Outcome {
        match retry::after_refusal(self.used, self.random) {
            Some(retry_in) => Outcome::Failed { error, retry_in },
            None => dead(reason, Some(error)),
        }
    }
}

pub(super) fn dead(reason: &str, error: Option<String>) -> Outcome {
    Outcome::Dead {
        reason: reason.to_owned(),
        error,
    }
}

/// An internal error: retried, and not counted as an attempt.
pub(super) fn internal(why: impl std::fmt::Display) -> Outcome {
    Outcome::Deferred {
        reason: format!("internal error: {why}"),
        retry_in: INTERNAL_RETRY_DELAY,
    }
}

/// The extractor failed on this page: internal too, but not soon over.
pub(super) fn extraction_failed(why: impl std::fmt::Display) -> Outcome {
    Outcome::Deferred {
        reason: format!("extraction failed: {why}"),
        retry_in: PAGE_RETRY_DELAY,
    }
}

/// The store rejects the document of this page: internal too.
pub(super) fn storage_failed(why: impl std::fmt::Display) -> Outcome {
    Outcome::Deferred {
        reason: format!("cannot store the page: {why}"),
        retry_in: PAGE_RETRY_DELAY,
    }
}

/// There was no response.
pub(super) fn of_failure(failure: &Failure, attempts: Attempts) -> Outcome {
    match failure {
        Failure::HostBusy { wait, .. } => Outcome::Deferred {
            reason: failure.to_string(),
            retry_in: *wait,
        },
        Failure::RobotsUnavailable { retry_in, .. } => Outcome::Deferred {
            reason: failure.to_string(),
            retry_in: *retry_in,
        },
        // An error of the server; the page still exists.
        Failure::UnaskedNotModified => attempts.failed(failure.to_string()),
        _ => match failure.class() {
            Class::Network | Class::HttpTransient | Class::Blocked => {
                attempts.failed(failure.to_string())
            }
            Class::Internal => internal(failure),
            Class::HttpPermanent | Class::Policy | Class::Content => {
                dead(failure.code(), Some(failure.to_string()))
            }
        },
    }
}

/// There was a response; `None` when it is a page to be read.
pub(super) fn of_response(
    response: &Response,
    again_in: Option<Duration>,
    attempts: Attempts,
    now: Timestamp,
) -> Option<Outcome> {
    let status = response.status;
    let error = || format!("status {status}");
    let retry_after_header = || {
        let header = response.header("retry-after")?;
        retry_after(header, now)
    };
    match status {
        304 => Some(Outcome::NotModified { again_in }),
        200..=299 => of_body(response),
        429 => Some(Outcome::Deferred {
            reason: "too many requests (429)".to_owned(),
            retry_in: retry::after_too_many_requests(retry_after_header()),
        }),
        404 => Some(dead("not_found", Some(error()))),
        410 => Some(dead("gone", Some(error()))),
        _ => Some(match Class::of_status(status) {
            Some(Class::Blocked) => attempts.refused("forbidden", error()),
            Some(Class::HttpTransient) => attempts.failed_until(error(), retry_after_header()),
            _ => dead(&format!("http_{status}"), Some(error())),
        }),
    }
}

fn of_body(response: &Response) -> Option<Outcome> {
    if response.body.iter().all(u8::is_ascii_whitespace) {
        return Some(dead("empty", None));
    }
    (response.media != Media::Html).then(|| {
        let kind = response.header("content-type").unwrap_or("no type");
        dead("not_html", Some(kind.to_owned()))
    })
}

/// The page was read; `None` when it is an article.
pub(super) fn of_article(article: &Article, attempts: Attempts) -> Option<Outcome> {
    let flags = &article.flags;
    if flags.soft_404 {
        return Some(dead("soft_404", None));
    }
    if flags.captcha {
        return Some(attempts.refused("captcha", "a CAPTCHA instead of the page".to_owned()));
    }
    if flags.consent_wall {
        return Some(attempts.refused(
            "consent_page",
            "a consent page instead of the article".to_owned(),
        ));
    }
    if flags.paywall && article.quality == Quality::TitleOnly {
        return Some(dead("login_wall", None));
    }
    let has_nothing = article.text.is_empty() && article.title.is_none();
    (article.method == Method::Nothing && has_nothing).then(|| dead("empty", None))
}

#[cfg(test)]
mod tests {
    use tidings_extract::{Options, Page, extract};

    use super::*;

    const FIRST: Attempts = Attempts {
        used: 0,
        random: 0.5,
        schedule: None,
    };

    fn summary(outcome: &Outcome) -> String {
        match outcome {
            Outcome::Failed { retry_in, .. } => format!("failed {}", retry_in.as_secs()),
            Outcome::Deferred { retry_in, .. } => format!("deferred {}", retry_in.as_secs()),
            Outcome::Dead { reason, .. } => format!("dead {reason}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn failures_are_classified_by_who_can_fix_them() {
        let host = || "a.example".to_owned();
        let why = String::new;
        let rows = [
            (Failure::NoSuchName { host: host() }, "failed 60"),
            (Failure::Disconnected { why: why() }, "failed 60"),
            (Failure::Truncated { why: why() }, "failed 60"),
            (Failure::UnaskedNotModified, "failed 60"),
            (Failure::BodyTooLarge { limit: 1 }, "dead too_large"),
            (Failure::BadEncoding { why: why() }, "dead bad_encoding"),
            (
                Failure::CompressionBomb { ratio: 200 },
                "dead compression_bomb",
            ),
            (Failure::RedirectLoop { url: why() }, "dead redirect_loop"),
            (
                Failure::RobotsDisallowed {
                    host: host(),
                    rule: why(),
                },
                "dead robots_blocked",
            ),
            (
                Failure::RobotsUnavailable {
                    host: host(),
                    why: why(),
                    retry_in: Duration::from_secs(90),
                },
                "deferred 90",
            ),
            (
                Failure::HostBusy {
                    host: host(),
                    wait: Duration::from_secs(7),
                },
                "deferred 7",
            ),
            (Failure::Store { why: why() }, "deferred 30"),
            (
                Failure::NoMemory {
                    waited: Duration::ZERO,
                },
                "deferred 30",
            ),
        ];
        for (failure, expected) in rows {
            assert_eq!(summary(&of_failure(&failure, FIRST)), expected, "{failure}");
        }
        let last = Attempts { used: 5, ..FIRST };
        let failure = Failure::NoSuchName { host: host() };
        assert_eq!(summary(&of_failure(&failure, last)), "dead max_retries");
        let hourly = Attempts {
            used: 1,
            schedule: Some(Retries {
                max: 5,
                first_seconds: 3600,
            }),
            ..FIRST
        };
        assert_eq!(summary(&of_failure(&failure, hourly)), "failed 7200");
    }

    #[test]
    fn pages_that_are_no_articles_become_no_documents() {
        let read = |html: &str| {
            let page = Page {
                html: html.as_bytes(),
                url: "https://a.example/story",
                charset: None,
                selectors: None,
                feed: None,
                now: "2026-11-15T00:00:00Z".parse().unwrap(),
            };
            of_article(&extract(&page, &Options::default()), FIRST).map(|outcome| summary(&outcome))
        };
        let rows = [
            (
                "<title>Page not found</title><h1>404</h1><p>The page you are looking for does not exist.</p>",
                Some("dead soft_404"),
            ),
            (
                "<title>Just a moment...</title><h1>Checking your browser</h1><div class=cf-challenge><p>Please complete the CAPTCHA to continue.</p></div>",
                Some("failed 21600"),
            ),
            ("<html><body></body></html>", Some("dead empty")),
            (
                "<title>Bread</title><article><h1>Bread</h1><p>Bread has been baked for some fourteen thousand years, and every year in new ways, by people who knew what they did.</p></article>",
                None,
            ),
        ];
        for (html, expected) in rows {
            assert_eq!(read(html).as_deref(), expected, "{html}");
        }
    }
}
