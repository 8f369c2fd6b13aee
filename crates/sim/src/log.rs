//! Every request that the simulated web has served, with start and end, so
//! that tests can prove politeness. Bounded: the oldest records make room.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::fault::Fault;

const MAX_RECORDS: usize = 2_000_000;

/// One request and its response. Times count from the server's start.
#[derive(Debug, Clone, Serialize)]
pub struct RequestRecord {
    pub host: String,
    pub method: String,
    pub path: String,
    pub status: u16,
    #[serde(rename = "start_us", serialize_with = "micros")]
    pub start: Duration,
    #[serde(rename = "end_us", serialize_with = "micros")]
    pub end: Duration,
    /// Body bytes on the wire.
    pub bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

fn micros<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

/// The records of one server.
#[derive(Debug)]
pub struct RequestLog {
    since: Instant,
    records: Mutex<Records>,
}

#[derive(Debug, Default)]
struct Records {
    kept: VecDeque<RequestRecord>,
    total: u64,
}

impl RequestLog {
    pub(crate) fn new() -> Self {
        Self {
            since: Instant::now(),
            records: Mutex::default(),
        }
    }

    /// The time that a record made now would carry.
    pub(crate) fn now(&self) -> Duration {
        self.since.elapsed()
    }

    pub(crate) fn push(&self, record: RequestRecord) {
        let mut records = self.lock();
        if records.kept.len() == MAX_RECORDS {
            records.kept.pop_front();
        }
        records.kept.push_back(record);
        records.total += 1;
    }

    /// How many requests were served, recorded still or not.
    pub fn total(&self) -> u64 {
        self.lock().total
    }

    /// The records still held, in the sequence in which the responses ended.
    pub fn snapshot(&self) -> Vec<RequestRecord> {
        self.lock().kept.iter().cloned().collect()
    }

    /// Reads the records without a copy of them; the log is locked meanwhile.
    pub fn read<T>(&self, look: impl FnOnce(&VecDeque<RequestRecord>) -> T) -> T {
        look(&self.lock().kept)
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        // A record is pushed whole, so a poisoned lock still guards good data.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request to a host that came too soon, or with too many in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub host: String,
    /// When the offending request started.
    pub start: Duration,
    /// Time since the start of the request before it.
    pub gap: Duration,
    /// Requests in flight when it started, itself included.
    pub in_flight: usize,
}

/// The requests that started less than `gap` after another to the same host,
/// or while `max_in_flight` others were in flight. One that was closed without a
/// response may be retried immediately: its client can't know that it was read
/// (RFC 9112 §9.3.1).
pub fn politeness_violations<'a>(
    records: impl IntoIterator<Item = &'a RequestRecord>,
    gap: Duration,
    max_in_flight: usize,
) -> Vec<Violation> {
    let mut by_host: BTreeMap<&str, Vec<&RequestRecord>> = BTreeMap::new();
    for record in records {
        by_host.entry(&record.host).or_default().push(record);
    }
    by_host
        .into_values()
        .flat_map(|records| violations_of_host(records, gap, max_in_flight))
        .collect()
}

fn violations_of_host(
    mut records: Vec<&RequestRecord>,
    gap: Duration,
    max_in_flight: usize,
) -> Vec<Violation> {
    records.sort_by_key(|record| record.start);
    let mut running: Vec<Duration> = Vec::new();
    let mut previous: Option<&RequestRecord> = None;
    let mut violations = Vec::new();
    for record in records {
        running.retain(|end| *end > record.start);
        running.push(record.end);
        let since = previous.map_or(Duration::MAX, |previous| record.start - previous.start);
        let is_repeat = previous.is_some_and(|previous| {
            previous.fault == Some(Fault::Closed) && previous.path == record.path
        });
        let is_too_soon = since < gap && !is_repeat;
        if is_too_soon || running.len() > max_in_flight {
            violations.push(Violation {
                host: record.host.clone(),
                start: record.start,
                gap: since,
                in_flight: running.len(),
            });
        }
        previous = Some(record);
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(host: &str, start: u64, end: u64) -> RequestRecord {
        RequestRecord {
            host: host.to_owned(),
            method: "GET".to_owned(),
            path: "/".to_owned(),
            status: 200,
            start: Duration::from_millis(start),
            end: Duration::from_millis(end),
            bytes: 0,
            fault: None,
        }
    }

    #[test]
    fn politeness_is_judged_host_by_host() {
        let second = Duration::from_secs(1);
        let polite = [
            record("a", 0, 500),
            record("b", 10, 500),
            record("a", 1000, 1500),
        ];
        assert_eq!(politeness_violations(&polite, second, 1), []);

        let hasty = [record("a", 0, 100), record("a", 900, 950)];
        let found = politeness_violations(&hasty, second, 1);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].gap, Duration::from_millis(900));

        let crowded = [
            record("a", 0, 5000),
            record("a", 2000, 2100),
            record("a", 4000, 4100),
        ];
        let found = politeness_violations(&crowded, second, 1);
        assert_eq!(
            found.iter().map(|v| v.in_flight).collect::<Vec<_>>(),
            [2, 2]
        );
        assert_eq!(politeness_violations(&crowded, second, 2), []);

        let closed = RequestRecord {
            fault: Some(Fault::Closed),
            ..record("a", 0, 10)
        };
        let again = record("a", 20, 30);
        assert_eq!(politeness_violations([&closed, &again], second, 1), []);
        let other = RequestRecord {
            path: "/other".to_owned(),
            ..again
        };
        assert_eq!(politeness_violations([&closed, &other], second, 1).len(), 1);
    }
}
