//! The time on the simulated web: the real time, the real time made faster, or
//! a time that a test sets by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// What time it is on the simulated web. Clones share the same time.
#[derive(Debug, Clone)]
pub struct SimClock(Mode);

#[derive(Debug, Clone)]
enum Mode {
    Running {
        start: Timestamp,
        since: Instant,
        speed: f64,
    },
    Manual(Arc<AtomicI64>),
}

impl SimClock {
    /// The wall clock.
    pub fn real() -> Self {
        Self::running(Timestamp::now(), 1.0)
    }

    /// Starts at `start` and runs `speed` times as fast as the wall clock.
    pub fn running(start: Timestamp, speed: f64) -> Self {
        Self(Mode::Running {
            start,
            since: Instant::now(),
            speed: speed.clamp(0.0, 1e6),
        })
    }

    /// Stands still until it is moved.
    pub fn manual(start: Timestamp) -> Self {
        Self(Mode::Manual(Arc::new(AtomicI64::new(start.as_second()))))
    }

    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Mode::Running {
                start,
                since,
                speed,
            } => {
                let passed = since.elapsed().mul_f64(*speed);
                start.saturating_add(passed).unwrap_or(*start)
            }
            Mode::Manual(seconds) => {
                Timestamp::from_second(seconds.load(Ordering::SeqCst)).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// Moves a manual clock forward; the others move by themselves.
    pub fn advance(&self, by: Duration) {
        if let Mode::Manual(seconds) = &self.0 {
            let by = i64::try_from(by.as_secs()).unwrap_or(i64::MAX);
            seconds.fetch_add(by, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_by_hand_and_clones_share_it() {
        let clock = SimClock::manual(Timestamp::UNIX_EPOCH);
        let other = clock.clone();
        clock.advance(Duration::from_secs(90));
        assert_eq!(other.now().as_second(), 90);
    }
}
