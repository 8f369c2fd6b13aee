//! Why a poll failed, and the class of the error for the polling policy. Pure.

use std::time::Duration;

use jiff::Timestamp;
use tidings_net::{Class, Failure, Response, retry_after};
use tidings_polling::ErrorClass;

/// The class of a remark on a source that has reached a limit.
pub const LIMITED: &str = "limited";

/// The class of a remark on items that cannot be submitted.
pub(super) const SKIPPED: &str = "skipped";

/// The class of a sitemap below an index that failed again and again or has nothing
/// recent.
pub(super) const RETIRED: &str = "retired";

pub(super) struct PollError {
    pub(super) class: ErrorClass,
    /// The error class of the feed and the fetch log, for filters.
    pub(super) name: &'static str,
    pub(super) message: String,
    pub(super) retry_after: Option<Duration>,
    /// The server says that the feed is gone (410).
    pub(super) is_gone: bool,
    /// The poll succeeded; this is only a remark.
    pub(super) is_remark: bool,
}

impl PollError {
    pub(super) fn hard(name: &'static str, message: String) -> Self {
        Self {
            class: ErrorClass::Hard,
            name,
            message,
            retry_after: None,
            is_gone: false,
            is_remark: false,
        }
    }

    pub(super) fn invalid_url(url: &str) -> Self {
        Self::hard("content", format!("{url:?} is not a valid URL"))
    }

    /// A retry will not help.
    pub(super) fn is_permanent(&self) -> bool {
        self.class == ErrorClass::Hard
    }

    pub(super) fn remark((name, message): (&'static str, String)) -> Self {
        Self {
            is_remark: true,
            ..Self::hard(name, message)
        }
    }

    pub(super) fn of_failure(failure: &Failure) -> Self {
        let class = match failure.class() {
            Class::Network | Class::Internal => ErrorClass::Temporary,
            Class::HttpTransient => ErrorClass::Soft,
            Class::Policy if failure.code() == "robots_unavailable" => ErrorClass::Temporary,
            Class::HttpPermanent | Class::Blocked | Class::Policy | Class::Content => {
                ErrorClass::Hard
            }
        };
        Self {
            class,
            ..Self::hard(failure.class().as_str(), failure.to_string())
        }
    }

    pub(super) fn of_status(response: &Response) -> Self {
        let status = response.status;
        let class = Class::of_status(status).unwrap_or(Class::HttpPermanent);
        let header = response.header("retry-after");
        Self {
            class: match class {
                _ if status == 429 => ErrorClass::TooManyRequests,
                Class::HttpTransient => ErrorClass::Soft,
                _ if status == 404 => ErrorClass::Soft,
                _ => ErrorClass::Hard,
            },
            retry_after: header.and_then(|text| retry_after(text, Timestamp::now())),
            is_gone: status == 410,
            ..Self::hard(class.as_str(), format!("status {status}"))
        }
    }
}
