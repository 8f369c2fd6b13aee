//! What becomes of a URL after what its host answered: the table of responses.
//! Pure; a page that should be read is the only answer that is not decided here.

use std::time::Duration;

use jiff::Timestamp;
use tidings_extract::{Article, Method, Quality};
use tidings_net::{Class, Failure, Media, Response, retry_after};
use tidings_store::Outcome;

use super::retry;

/// Our own trouble is soon over, or somebody sees to it.
const AFTER_OURS: Duration = Duration::from_secs(30);
/// A page that our extractor breaks on.
const AFTER_BROKEN: Duration = Duration::from_secs(3600);

/// What counts for the next try of a URL.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tries {
    /// Retries that were used up before.
    pub(super) used: u16,
    /// In 0..1.
    pub(super) random: f64,
}

impl Tries {
    /// The web's fault: another try, or the end.
    fn failed(self, error: String) -> Outcome {
        self.failed_until(error, None)
    }

    fn failed_until(self, error: String, retry_after: Option<Duration>) -> Outcome {
        match retry::after_failure(self.used, self.random) {
            Some(wait) => Outcome::Failed {
                error,
                retry_in: retry::at_least(wait, retry_after),
            },
            None => dead("max_retries", Some(error)),
        }
    }

    /// We are not wanted there now.
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

/// Our own fault: tried again, and never counted.
pub(super) fn ours(why: impl std::fmt::Display) -> Outcome {
    Outcome::Deferred {
        reason: format!("our own fault: {why}"),
        retry_in: AFTER_OURS,
    }
}

/// The extractor broke on this page. That is ours too, but will not pass soon.
pub(super) fn broken(why: impl std::fmt::Display) -> Outcome {
    Outcome::Deferred {
        reason: format!("extraction broke: {why}"),
        retry_in: AFTER_BROKEN,
    }
}

/// There was no answer.
pub(super) fn of_failure(failure: &Failure, tries: Tries) -> Outcome {
    match failure {
        Failure::HostBusy { wait, .. } => Outcome::Deferred {
            reason: failure.to_string(),
            retry_in: *wait,
        },
        Failure::RobotsUnavailable { retry_in, .. } => Outcome::Deferred {
            reason: failure.to_string(),
            retry_in: *retry_in,
        },
        // The server is confused, not the page gone.
        Failure::UnaskedNotModified => tries.failed(failure.to_string()),
        _ => match failure.class() {
            Class::Network | Class::HttpTransient | Class::Blocked => {
                tries.failed(failure.to_string())
            }
            Class::Internal => ours(failure),
            Class::HttpPermanent | Class::Policy | Class::Content => {
                dead(failure.code(), Some(failure.to_string()))
            }
        },
    }
}

/// There was an answer; `None` when it is a page to be read.
pub(super) fn of_answer(
    response: &Response,
    again_in: Option<Duration>,
    tries: Tries,
    now: Timestamp,
) -> Option<Outcome> {
    let status = response.status;
    let error = || format!("status {status}");
    let waits = || {
        let header = response.header("retry-after")?;
        retry_after(header, now)
    };
    match status {
        304 => Some(Outcome::NotModified { again_in }),
        200..=299 => of_body(response),
        429 => Some(Outcome::Deferred {
            reason: "too many requests (429)".to_owned(),
            retry_in: retry::after_too_many(waits()),
        }),
        404 => Some(dead("not_found", Some(error()))),
        410 => Some(dead("gone", Some(error()))),
        _ => Some(match Class::of_status(status) {
            Some(Class::Blocked) => tries.refused("forbidden", error()),
            Some(Class::HttpTransient) => tries.failed_until(error(), waits()),
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

/// The page was read; `None` when it is an article to be kept.
pub(super) fn of_article(article: &Article, tries: Tries) -> Option<Outcome> {
    let flags = &article.flags;
    if flags.soft_404 {
        return Some(dead("soft_404", None));
    }
    if flags.captcha {
        return Some(tries.refused("captcha", "a CAPTCHA instead of the page".to_owned()));
    }
    if flags.consent_wall {
        return Some(tries.refused(
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

    const TRIES: Tries = Tries {
        used: 0,
        random: 0.5,
    };

    fn told(outcome: &Outcome) -> String {
        match outcome {
            Outcome::Failed { retry_in, .. } => format!("failed {}", retry_in.as_secs()),
            Outcome::Deferred { retry_in, .. } => format!("deferred {}", retry_in.as_secs()),
            Outcome::Dead { reason, .. } => format!("dead {reason}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn failures_are_sorted_by_whose_fault_they_are() {
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
        ];
        for (failure, expected) in rows {
            assert_eq!(told(&of_failure(&failure, TRIES)), expected, "{failure}");
        }
        let last = Tries { used: 5, ..TRIES };
        let failure = Failure::NoSuchName { host: host() };
        assert_eq!(told(&of_failure(&failure, last)), "dead max_retries");
    }

    #[test]
    fn pages_that_are_no_articles_are_not_kept() {
        let read = |html: &str| {
            let page = Page {
                html: html.as_bytes(),
                url: "https://a.example/story",
                charset: None,
                selectors: None,
                feed: None,
                now: "2026-11-15T00:00:00Z".parse().unwrap(),
            };
            of_article(&extract(&page, &Options::default()), TRIES).map(|outcome| told(&outcome))
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
