//! The time of a store: that of the machine that keeps it, but it never goes
//! back, and a leap ahead counts only when what is held has been carried along.
//! What the machine's clock says comes in; how long that took to come is measured.

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
    /// Whether the machine's clock has been set back since: ours is ahead of it.
    is_ahead: bool,
}

impl Reading {
    /// Where the store's clock is after so long.
    fn after(&self, passed: Duration) -> i64 {
        match self.is_ahead {
            true => gone_on(self.time, passed),
            false => self.time.saturating_add(millis(passed)),
        }
    }
}

/// The machine's clock was set ahead, or slept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leap {
    /// The time that it would be without.
    pub(crate) from: Moment,
    /// When this process looked last.
    since: Moment,
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
        let landing = Reading {
            time,
            asked,
            told,
            is_ahead: false,
        };
        let mut last = self.last();
        let Some(before) = last.as_mut() else {
            *last = Some(landing);
            return Ok(time);
        };
        // However long either answer was on its way, it can't be later than this.
        let latest = before.after(told - before.asked);
        if time > latest.saturating_add(LEAP_MS) {
            return Err(Leap {
                from: Moment(latest),
                since: Moment(before.time),
                by_ms: time - latest,
                landing,
            });
        }
        let own = gone_on(before.time, asked.saturating_duration_since(before.told));
        if time >= own {
            *before = landing;
        } else if asked >= before.told && time < own - LEAP_MS {
            // No answer that another one has overtaken, and more than a tremor.
            before.is_ahead = true;
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
                is_ahead: true,
            });
        }
    }
}

/// Where a clock is that was at `from` and is too fast.
fn gone_on(from: i64, passed: Duration) -> i64 {
    from.saturating_add(millis(passed - passed / SLOWER_BY))
}

impl Leap {
    /// Changes a row if nobody has carried since this process looked last.
    pub(crate) fn claim(&self) -> Statement {
        let sql = "INSERT INTO marks (name, value, n, at) VALUES ('leap', '', 0, $1)
            ON CONFLICT (name) DO UPDATE SET at = excluded.at WHERE marks.at <= $2";
        let landing = Value::Int(self.landing.time);
        Statement::new(sql, [landing, Value::from(self.since)])
    }

    /// What waits at a host and what is leased waits on for as long as it would
    /// have, but for what only a person ends.
    pub(crate) fn carry(&self, leases: &str) -> [Statement; 4] {
        let hosts = "UPDATE hosts SET
                gate_at = gate_at + CASE WHEN gate_at > $1 THEN CAST($2 AS BIGINT) ELSE 0 END,
                lease_until = lease_until + CASE WHEN lease_until > $1 THEN CAST($2 AS BIGINT) ELSE 0 END,
                blocked_until = blocked_until + CASE WHEN blocked_until > $1 AND blocked_until < $3 THEN CAST($2 AS BIGINT) ELSE 0 END
            WHERE gate_at > $1 OR lease_until > $1 OR (blocked_until > $1 AND blocked_until < $3)";
        let leases = format!(
            "UPDATE {leases} SET due_at = due_at + $2 WHERE owner IS NOT NULL AND due_at > $1"
        );
        let feeds = "UPDATE feeds SET lease_until = lease_until + $2 WHERE lease_until > $1";
        let deliveries = "UPDATE deliveries SET next_attempt_at = next_attempt_at + $2 WHERE next_attempt_at > $1";
        let values = [Value::from(self.from), Value::Int(self.by_ms)];
        let never = [Value::from(Moment::NEVER)];
        [
            Statement::new(hosts, [&values[..], &never].concat()),
            Statement::new(leases, values.clone()),
            Statement::new(feeds, values.clone()),
            Statement::new(deliveries, values),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    /// A clock that was read as 1,000,000 so long ago.
    fn read_before(passed: Duration) -> (StoreClock, Instant) {
        let now = Instant::now();
        let clock = StoreClock::new(Clock::Database);
        *clock.last() = Some(Reading {
            time: 1_000_000,
            asked: now - passed,
            told: now - passed,
            is_ahead: false,
        });
        (clock, now)
    }

    #[test]
    fn it_goes_with_the_machine() {
        let (clock, now) = read_before(Duration::from_secs(100));
        assert_eq!(clock.read(1_100_000, now).unwrap(), 1_100_000);
    }

    #[test]
    fn a_leap_is_told_until_it_has_landed() {
        let (clock, now) = read_before(Duration::from_secs(100));
        for _ in 0..2 {
            let leap = clock.read(1_100_000 + HOUR, now).unwrap_err();
            assert!((1_100_000..1_160_000).contains(&leap.from.0));
            assert_eq!(leap.from.0 + leap.by_ms, 1_100_000 + HOUR);
            assert_eq!(leap.since.0, 1_000_000);
        }
        let leap = clock.read(1_100_000 + HOUR, now).unwrap_err();
        clock.land(&leap);
        let then = clock.read(1_100_001 + HOUR, Instant::now()).unwrap();
        assert!(then > 1_100_000 + HOUR);
    }

    #[test]
    fn an_answer_that_was_long_on_its_way_is_no_leap() {
        let (clock, now) = read_before(Duration::from_secs(100));
        // The question is as old as the last reading; the answer is of now.
        let long_ago = now - Duration::from_secs(100);
        assert_eq!(clock.read(1_100_000, long_ago).unwrap(), 1_100_000);
        // That may have been told right after the question.
        assert!(clock.read(1_199_000, now).is_ok());
    }

    #[test]
    fn answers_may_overtake_each_other() {
        let (clock, now) = read_before(Duration::from_secs(100));
        assert_eq!(clock.read(1_100_000, now).unwrap(), 1_100_000);
        let long_ago = now - Duration::from_secs(90);
        assert_eq!(clock.read(1_010_000, long_ago).unwrap(), 1_100_000);
        assert!(clock.last().is_some_and(|last| !last.is_ahead));
    }

    #[test]
    fn it_never_goes_back() {
        let (clock, now) = read_before(Duration::from_secs(800));
        let first = clock.read(1_000_000 - HOUR, now).unwrap();
        // An eighth slower, until the machine has caught up.
        assert!((1_700_000..1_760_000).contains(&first), "{first}");
        let then = clock.read(1_000_800 - HOUR, now + Duration::from_secs(8));
        assert_eq!(then.unwrap(), 1_707_000);

        clock.has_been(1_000_000 + HOUR);
        clock.has_been(1_000_000);
        let now = clock.read(1_000_040, Instant::now()).unwrap();
        assert!(now >= 1_000_000 + HOUR, "{now}");
    }

    #[test]
    fn a_leap_out_of_the_past_is_one_too() {
        let (clock, now) = read_before(Duration::from_secs(800));
        assert!(clock.read(1_000_000 - HOUR, now).is_ok());
        // Set right, it would be 1,800,000; with us it is 1,700,000.
        assert!(clock.read(1_790_000, now).is_err());
    }
}
