//! The time of a store that is embedded: this machine's, but it never goes back.
//! When the machine's clock is set back, the store's goes on from where it was,
//! a little slower, until the other has caught up.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::store::Clock;

/// While it is ahead of the machine's it loses an eighth.
const SLOWER_BY: u32 = 8;

/// Shared by all that ask one store.
#[derive(Debug)]
pub(crate) struct LocalClock {
    source: Clock,
    /// The last reading at which the machine's clock was not behind, and when.
    anchor: Mutex<(i64, Instant)>,
}

impl LocalClock {
    pub(crate) fn new(source: Clock) -> Self {
        Self {
            source,
            anchor: Mutex::new((i64::MIN, Instant::now())),
        }
    }

    /// This moment has been: whatever the machine's clock says, it is later.
    pub(crate) fn has_been(&self, moment: i64) {
        let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        if anchor.0 < moment {
            *anchor = (moment, Instant::now());
        }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        if let Some(now) = self.source.manual() {
            return now;
        }
        let machine = Timestamp::now().as_millisecond();
        let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        let own = gone_on(anchor.0, anchor.1.elapsed());
        if machine >= own {
            *anchor = (machine, Instant::now());
        }
        machine.max(own)
    }
}

/// Where a clock is that was at `from` and is too fast.
fn gone_on(from: i64, passed: Duration) -> i64 {
    from.saturating_add(crate::moment::millis(passed - passed / SLOWER_BY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_the_machine_and_never_back() {
        let clock = LocalClock::new(Clock::Database);
        let machine = Timestamp::now().as_millisecond();
        assert!((machine..machine + 60_000).contains(&clock.now()));

        // As if the machine's clock had been set back by an hour.
        let ahead = machine + 3_600_000;
        clock.has_been(ahead);
        clock.has_been(machine);
        let first = clock.now();
        assert!((ahead..ahead + 60_000).contains(&first), "{first}");
        std::thread::sleep(Duration::from_millis(20));
        let then = clock.now();
        assert!(then > first, "it goes on");
        assert_eq!(gone_on(1000, Duration::from_secs(8)), 8000);
    }
}
