//! The clock of a store: that of the machine that hosts it, but monotonic, and a
//! jump ahead takes effect only after all leases and deadlines were shifted by it.
//! Readings of the machine's clock come in; their latency is measured here.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::{Statement, Value};
use crate::moment::{Moment, millis};
use crate::options::Clock;

/// While the store clock is ahead of the machine's it runs slower by an eighth.
const SLEW_DIVISOR: u32 = 8;

/// A larger difference between two readings is a jump: more than a clock gains
/// between them while it is being slewed.
const JUMP_THRESHOLD_MS: i64 = 100;

/// Shared by all handles of this process on one store.
#[derive(Debug)]
pub(crate) struct StoreClock {
    source: Clock,
    last: Mutex<Option<Reading>>,
}

/// A reading of the machine's clock, and when this process requested and received
/// it.
#[derive(Debug, Clone, Copy)]
struct Reading {
    time: i64,
    requested: Instant,
    received: Instant,
    /// Whether the machine's clock was set back since: the store clock is ahead.
    is_ahead: bool,
}

impl Reading {
    /// The store clock after `passed`.
    fn after(&self, passed: Duration) -> i64 {
        match self.is_ahead {
            true => slew(self.time, passed),
            false => self.time.saturating_add(millis(passed)),
        }
    }
}

/// The machine's clock was set ahead, or the machine was suspended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockJump {
    /// The time that it would be without the jump.
    pub(crate) from: Moment,
    /// The last reading of this process before it.
    since: Moment,
    by_ms: i64,
    reading: Reading,
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

    /// The store time, given that the machine's clock returned `time` to a request
    /// made at `requested`.
    pub(crate) fn read(&self, time: i64, requested: Instant) -> Result<i64, ClockJump> {
        let received = Instant::now();
        let reading = Reading {
            time,
            requested,
            received,
            is_ahead: false,
        };
        let mut last = self.last();
        let Some(before) = last.as_mut() else {
            *last = Some(reading);
            return Ok(time);
        };
        // Whatever the latency of either reading, it can't be later than this.
        let latest = before.after(received - before.requested);
        if time > latest.saturating_add(JUMP_THRESHOLD_MS) {
            return Err(ClockJump {
                from: Moment(latest),
                since: Moment(before.time),
                by_ms: time - latest,
                reading,
            });
        }
        let slewed = slew(
            before.time,
            requested.saturating_duration_since(before.received),
        );
        if time >= slewed {
            *before = reading;
        } else if requested >= before.received && time < slewed - JUMP_THRESHOLD_MS {
            // Not a reading that arrived out of order, and more than jitter.
            before.is_ahead = true;
        }
        Ok(time.max(slewed))
    }

    /// Leases and deadlines were shifted: the jump takes effect.
    pub(crate) fn apply(&self, jump: &ClockJump) {
        let mut last = self.last();
        if last.is_none_or(|last| last.time < jump.reading.time) {
            *last = Some(jump.reading);
        }
    }

    /// Never reads earlier than `moment` again, whatever the machine's clock reads.
    pub(crate) fn advance_to(&self, moment: i64) {
        let mut last = self.last();
        if last.is_some_and(|last| last.time < moment) {
            let now = Instant::now();
            *last = Some(Reading {
                time: moment,
                requested: now,
                received: now,
                is_ahead: true,
            });
        }
    }
}

/// A clock that was at `from` and is ahead, slowed down until it is right.
fn slew(from: i64, passed: Duration) -> i64 {
    from.saturating_add(millis(passed - passed / SLEW_DIVISOR))
}

impl ClockJump {
    /// Changes a row unless another process has shifted deadlines since the last
    /// reading of this one.
    pub(crate) fn claim(&self) -> Statement {
        let sql = "INSERT INTO marks (name, value, n, at) VALUES ('leap', '', 0, $1)
            ON CONFLICT (name) DO UPDATE SET at = excluded.at WHERE marks.at <= $2";
        let at = Value::Int(self.reading.time);
        Statement::new(sql, [at, Value::from(self.since)])
    }

    /// Leases, host delays and retries keep the time that they had left. Blocks
    /// that only an operator ends stay as they are.
    pub(crate) fn shift_deadlines(&self, leases: &str) -> [Statement; 4] {
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

    /// A clock that read 1,000,000 `passed` ago.
    fn read_before(passed: Duration) -> (StoreClock, Instant) {
        let now = Instant::now();
        let clock = StoreClock::new(Clock::Database);
        *clock.last() = Some(Reading {
            time: 1_000_000,
            requested: now - passed,
            received: now - passed,
            is_ahead: false,
        });
        (clock, now)
    }

    #[test]
    fn it_follows_the_machine() {
        let (clock, now) = read_before(Duration::from_secs(100));
        assert_eq!(clock.read(1_100_000, now).unwrap(), 1_100_000);
    }

    #[test]
    fn a_jump_is_reported_until_it_is_applied() {
        let (clock, now) = read_before(Duration::from_secs(100));
        for _ in 0..2 {
            let jump = clock.read(1_100_000 + HOUR, now).unwrap_err();
            assert!((1_100_000..1_160_000).contains(&jump.from.0));
            assert_eq!(jump.from.0 + jump.by_ms, 1_100_000 + HOUR);
            assert_eq!(jump.since.0, 1_000_000);
        }
        let jump = clock.read(1_100_000 + HOUR, now).unwrap_err();
        clock.apply(&jump);
        let then = clock.read(1_100_001 + HOUR, Instant::now()).unwrap();
        assert!(then > 1_100_000 + HOUR);
    }

    #[test]
    fn a_slow_reading_is_no_jump() {
        let (clock, now) = read_before(Duration::from_secs(100));
        // Requested with the last reading, received now.
        let long_ago = now - Duration::from_secs(100);
        assert_eq!(clock.read(1_100_000, long_ago).unwrap(), 1_100_000);
        // The last one may have been read right after its request.
        assert!(clock.read(1_199_000, now).is_ok());
    }

    #[test]
    fn readings_may_arrive_out_of_order() {
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
        // An eighth slower, until the machine's clock has caught up.
        assert!((1_700_000..1_760_000).contains(&first), "{first}");
        let then = clock.read(1_000_800 - HOUR, now + Duration::from_secs(8));
        assert_eq!(then.unwrap(), 1_707_000);

        clock.advance_to(1_000_000 + HOUR);
        clock.advance_to(1_000_000);
        let now = clock.read(1_000_040, Instant::now()).unwrap();
        assert!(now >= 1_000_000 + HOUR, "{now}");
    }

    #[test]
    fn a_jump_out_of_the_past_is_one_too() {
        let (clock, now) = read_before(Duration::from_secs(800));
        assert!(clock.read(1_000_000 - HOUR, now).is_ok());
        // Correct would be 1,800,000; the store clock is at 1,700,000.
        assert!(clock.read(1_790_000, now).is_err());
    }
}
