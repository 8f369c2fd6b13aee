//! What can go wrong on purpose: wire-level faults, and the scripts that say
//! when and for which addresses it happens. Decides; [`crate::wire`] misbehaves.

use jiff::Timestamp;
use serde::Serialize;

use crate::rng::{Rng, fingerprint};

/// One fault of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Another status with an empty body, and `Retry-After` when given.
    Status {
        code: u16,
        retry_after: Option<String>,
    },
    /// Accepts the request and never responds.
    Hang,
    /// Sends the head one byte per second.
    SlowHead,
    /// Sends the body one byte per second.
    SlowBody,
    /// Sends chunks for ever.
    Endless,
    /// Closes the connection in the middle of the body.
    Truncated,
    /// Promises more bytes than it sends.
    LyingLength,
    /// Resets the connection in the middle of the body.
    Reset,
    /// Closes the connection without a response.
    Closed,
    /// Redirects to the same address.
    RedirectLoop,
    /// Redirects to an address of 100 KB.
    HugeLocation,
    /// Sends 128 KiB of headers.
    HugeHead,
    /// Responds 200 with a page that says that nothing was found.
    SoftNotFound,
}

/// What a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    Anything,
    Robots,
    Feeds,
    Sitemaps,
    Articles,
    Path(String),
}

/// When a rule holds, by the requests that the address has had, or by the clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    Always,
    /// The first requests of each address.
    First(u64),
    /// The first request of one in N addresses.
    FirstOfOneIn(u64),
    /// Every n-th request of each address.
    Every(u64),
    Between(Timestamp, Timestamp),
}

/// A line of a fault script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultRule {
    pub target: Target,
    pub when: When,
    pub fault: Fault,
}

impl FaultRule {
    pub fn new(target: Target, when: When, fault: Fault) -> Self {
        Self {
            target,
            when,
            fault,
        }
    }

    /// Faults that pass: a client that retries still gets everything.
    pub(crate) fn passing(rng: &mut Rng) -> Self {
        let busy = |code| Fault::Status {
            code,
            retry_after: Some("1".to_owned()),
        };
        let choices = [
            // Not of each: a client that gets this repeatedly must slow down more and more.
            Self::new(Target::Articles, When::FirstOfOneIn(20), busy(503)),
            Self::new(
                Target::Feeds,
                When::First(1),
                Fault::Status {
                    code: 500,
                    retry_after: None,
                },
            ),
            Self::new(Target::Articles, When::Every(3), busy(429)),
            Self::new(Target::Articles, When::First(1), Fault::Truncated),
            Self::new(Target::Feeds, When::Every(4), Fault::Reset),
            Self::new(Target::Articles, When::First(1), Fault::Closed),
            Self::new(Target::Robots, When::First(1), busy(503)),
        ];
        rng.pick(&choices).clone()
    }

    pub(crate) fn holds(&self, resource: &Target, path: &str, nth: u64, now: Timestamp) -> bool {
        let about = match &self.target {
            Target::Anything => true,
            Target::Path(wanted) => wanted == path,
            kind => kind == resource,
        };
        about && self.when.holds(path, nth, now)
    }
}

impl When {
    /// `nth` counts the requests of one address from 1.
    fn holds(&self, path: &str, nth: u64, now: Timestamp) -> bool {
        match self {
            Self::Always => true,
            Self::First(count) => nth <= *count,
            Self::FirstOfOneIn(many) => {
                nth == 1 && *many > 0 && fingerprint(path.as_bytes()).is_multiple_of(*many)
            }
            Self::Every(step) => *step > 0 && nth.is_multiple_of(*step),
            Self::Between(from, until) => (*from..*until).contains(&now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_holds_by_target_and_time() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let rows = [
            (Target::Anything, When::Always, 5, 0, true),
            (Target::Articles, When::First(2), 2, 0, true),
            (Target::Articles, When::First(2), 3, 0, false),
            (Target::Feeds, When::Always, 1, 0, false),
            (Target::Path("/a".to_owned()), When::Every(3), 6, 0, true),
            (Target::Path("/b".to_owned()), When::Every(3), 6, 0, false),
            (Target::Anything, When::Every(0), 6, 0, false),
            (Target::Anything, When::Between(at(10), at(20)), 1, 10, true),
            (
                Target::Anything,
                When::Between(at(10), at(20)),
                1,
                20,
                false,
            ),
        ];
        for (target, when, nth, now, expected) in rows {
            let rule = FaultRule::new(target, when, Fault::Hang);
            assert_eq!(
                rule.holds(&Target::Articles, "/a", nth, at(now)),
                expected,
                "{rule:?}"
            );
        }
    }

    #[test]
    fn one_in_five_addresses_fails_once() {
        let rule = FaultRule::new(Target::Articles, When::FirstOfOneIn(5), Fault::Hang);
        let holds = |n: u32, nth| {
            let path = format!("/story/{n}");
            rule.holds(&Target::Articles, &path, nth, Timestamp::UNIX_EPOCH)
        };
        let first = (0..1000).filter(|n| holds(*n, 1)).count();
        assert!((120..280).contains(&first), "{first}");
        assert!((0..1000).all(|n| !holds(n, 2)));
    }
}
