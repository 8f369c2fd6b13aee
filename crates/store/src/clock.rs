//! The time of a store: that of the machine that keeps it, but it never goes
//! back, and a leap ahead counts only when what is held has been carried along.
//! Readings and the moments of asking come in; it asks no clock itself.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::{Statement, Value};
use crate::moment::{Moment, millis};
use crate::store::Clock;

/// While it is ahead of the machine's it loses an eighth.
const SLOWER_BY: u32 = 8;

/// More than a clock gains between two looks while it is being set right.
const LEAP_MS: i64 = 100;

/// Shared by all of this process that ask one store.
#[derive(Debug)]
pub(crate) struct StoreClock {
    source: Clock,
    last: Mutex<Option<Reading>>,
}

/// What the machine's clock said, and between which moments of this process.
#[derive(Debug, Clone, Copy)]
struct Reading {
    time: i64,
    asked: Instant,
    told: Instant,
}

/// The machine's clock was set ahead, or slept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leap {
    /// The time that it would be without.
    pub(crate) from: Moment,
    by_ms: i64,
    landing: Reading,
}

impl StoreClock {
    pub(crate) fn new(source: Clock) -> Self {
        Self {
            source,
            last: Mutex::new(None),
        }
    }

    /// The time that a test has set.
    pub(crate) fn manual(&self) -> Option<i64> {
        self.source.manual()
    }

    fn last(&self) -> MutexGuard<'_, Option<Reading>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time, when the machine's clock says `time` to a question of `asked`.
    pub(crate) fn read(&self, time: i64, asked: Instant) -> Result<i64, Leap> {
        let told = Instant::now();
        let landing = Reading { time, asked, told };
        let mut last = self.last();
        let Some(before) = *last else {
            *last = Some(landing);
            return Ok(time);
        };
        // However long either answer was on its way, it can't be later than this.
        let latest = before.time.saturating_add(millis(told - before.asked));
        if time > latest.saturating_add(LEAP_MS) {
            return Err(Leap {
                from: Moment(latest),
                by_ms: time - latest,
                landing,
            });
        }
        let own = gone_on(before.time, asked.saturating_duration_since(before.told));
        if time >= own {
            *last = Some(landing);
        }
        Ok(time.max(own))
    }

    /// What is held was carried along: from here on it is later.
    pub(crate) fn land(&self, leap: &Leap) {
        let mut last = self.last();
        if last.is_none_or(|last| last.time < leap.landing.time) {
            *last = Some(leap.landing);
        }
    }

    /// This moment has been: whatever the machine's clock says, it is later.
    pub(crate) fn has_been(&self, moment: i64) {
        let mut last = self.last();
        if last.is_some_and(|last| last.time < moment) {
            let now = Instant::now();
            *last = Some(Reading {
                time: moment,
                asked: now,
                told: now,
            });
        }
    }
}

/// Where a clock is that was at `from` and is too fast.
fn gone_on(from: i64, passed: Duration) -> i64 {
    from.saturating_add(millis(passed - passed / SLOWER_BY))
}

impl Leap {
    /// Changes a row for the first process that notices, which is to carry.
    pub(crate) fn claim(&self) -> Statement {
        let sql = "INSERT INTO marks (name, value, n, at) VALUES ('leap', '', 0, $1)
            ON CONFLICT (name) DO UPDATE SET at = excluded.at WHERE marks.at <= $2";
        let landing = Value::Int(self.landing.time);
        Statement::new(sql, [landing, Value::from(self.from)])
    }

    /// What waits at a host and what is leased waits on for as long as it would
    /// have, but for what only a person ends.
    pub(crate) fn carry(&self, leases: &str) -> [Statement; 2] {
        let hosts = "UPDATE hosts SET
                gate_at = gate_at + CASE WHEN gate_at > $1 THEN CAST($2 AS BIGINT) ELSE 0 END,
                lease_until = lease_until + CASE WHEN lease_until > $1 THEN CAST($2 AS BIGINT) ELSE 0 END,
                blocked_until = blocked_until + CASE WHEN blocked_until > $1 AND blocked_until < $3 THEN CAST($2 AS BIGINT) ELSE 0 END
            WHERE gate_at > $1 OR lease_until > $1 OR (blocked_until > $1 AND blocked_until < $3)";
        let leases = format!(
            "UPDATE {leases} SET due_at = due_at + $2 WHERE owner IS NOT NULL AND due_at > $1"
        );
        let (from, by) = (Value::from(self.from), Value::Int(self.by_ms));
        [
            Statement::new(
                hosts,
                [from.clone(), by.clone(), Value::from(Moment::NEVER)],
            ),
            Statement::new(leases, [from, by]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    /// A clock that was read at 1,000,000 a while ago, and a way to read it.
    fn read_once() -> (StoreClock, Instant) {
        let (clock, begun) = (StoreClock::new(Clock::Database), Instant::now());
        assert_eq!(clock.read(1_000_000, begun).unwrap(), 1_000_000);
        (clock, begun)
    }

    #[test]
    fn it_goes_with_the_machine() {
        let (clock, _) = read_once();
        std::thread::sleep(Duration::from_millis(20));
        let now = clock.read(1_000_020, Instant::now()).unwrap();
        assert_eq!(now, 1_000_020);
    }

    #[test]
    fn a_leap_is_told_until_it_has_landed() {
        let (clock, _) = read_once();
        for _ in 0..2 {
            let leap = clock.read(1_000_000 + HOUR, Instant::now()).unwrap_err();
            assert!((1_000_000..1_060_000).contains(&leap.from.0));
            assert_eq!(leap.from.0 + leap.by_ms, 1_000_000 + HOUR);
        }
        let leap = clock.read(1_000_000 + HOUR, Instant::now()).unwrap_err();
        clock.land(&leap);
        let now = clock.read(1_000_001 + HOUR, Instant::now()).unwrap();
        assert!(now > HOUR);
    }

    #[test]
    fn an_answer_that_was_long_on_its_way_is_no_leap() {
        let (clock, begun) = read_once();
        std::thread::sleep(Duration::from_millis(150));
        // Asked at the beginning, and told now.
        assert_eq!(clock.read(1_000_150, begun).unwrap(), 1_000_150);
        // This answer may have been given right after the question.
        std::thread::sleep(Duration::from_millis(150));
        assert!(clock.read(1_000_450, Instant::now()).is_ok());
    }

    #[test]
    fn it_never_goes_back() {
        let (clock, _) = read_once();
        let first = clock.read(1_000_000 - HOUR, Instant::now()).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let then = clock.read(1_000_020 - HOUR, Instant::now()).unwrap();
        assert!((1_000_000..1_060_000).contains(&first), "{first}");
        assert!(then > first, "it goes on");
        assert_eq!(gone_on(1000, Duration::from_secs(8)), 8000);

        clock.has_been(1_000_000 + HOUR);
        clock.has_been(1_000_000);
        let now = clock.read(1_000_040, Instant::now()).unwrap();
        assert!(now >= 1_000_000 + HOUR, "{now}");
    }
}
