//! Why a poll gave nothing, and how grave that is. Pure.

use std::time::Duration;

use jiff::Timestamp;
use tidings_net::{Class, Failure, Response, retry_after};
use tidings_polling::ErrorClass;

pub(super) struct AdapterErrorKind {
    pub(super) class: ErrorClass,
    /// The word of the taxonomy, for filters.
    pub(super) name: &'static str,
    pub(super) message: String,
    pub(super) retry_after: Option<Duration>,
    /// The server says that it will not come back.
    pub(super) is_gone: bool,
    /// Nothing went wrong, but people should know.
    pub(super) is_remark: bool,
}

impl AdapterErrorKind {
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

    /// Another try will not help.
    pub(super) fn is_lasting(&self) -> bool {
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
