//! Spreading polls over time: a phase that follows from the feed alone, so that
//! restarts and many machines don't synchronise, and a jitter on top of it.

use std::time::Duration;

use jiff::Timestamp;
use md5::{Digest as _, Md5};

use crate::units::after;

const MIN_JITTER: Duration = Duration::from_secs(60);
const MAX_JITTER: Duration = Duration::from_secs(600);

/// Where in its period a feed is polled: the first 8 hex digits of
/// MD5("feed-{id}"), as seconds, modulo the period.
pub fn phase(feed_id: i64, period: Duration) -> Duration {
    let digest = Md5::digest(format!("feed-{feed_id}"));
    let seconds = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    Duration::from_secs(u64::from(seconds) % period.as_secs().max(1))
}

/// How far a poll may move, for a given period: a thirtieth of it, between one
/// and ten minutes.
pub fn jitter(period: Duration) -> Duration {
    (period / 30).clamp(MIN_JITTER, MAX_JITTER)
}

/// The first moment of the feed's grid (phase + n × period) after `earliest`.
/// Missed polls coalesce: however many were missed, there is one next.
pub fn next_on_grid(feed_id: i64, period: Duration, earliest: Timestamp) -> Timestamp {
    let step = i64::try_from(period.as_secs().max(1)).unwrap_or(i64::MAX);
    let phase = i64::try_from(phase(feed_id, period).as_secs()).unwrap_or(0);
    let since = earliest.as_second().saturating_sub(phase);
    let next = since
        .div_euclid(step)
        .saturating_add(1)
        .saturating_mul(step)
        .saturating_add(phase);
    Timestamp::from_second(next).unwrap_or(Timestamp::MAX)
}

/// A grid moment plus a random part of the jitter; `random` is in 0..1.
pub(crate) fn jittered(at: Timestamp, period: Duration, random: f64) -> Timestamp {
    after(at, jitter(period).mul_f64(fraction(random)))
}

/// An interval, moved by up to half the jitter in either direction so that its
/// mean stays, and never below `floor`.
pub(crate) fn jittered_interval(interval: Duration, floor: Duration, random: f64) -> Duration {
    let jitter = jitter(interval);
    (interval + jitter.mul_f64(fraction(random)))
        .saturating_sub(jitter / 2)
        .max(floor)
}

/// A random number of a caller, made safe to multiply with.
pub(crate) fn fraction(random: f64) -> f64 {
    if random.is_finite() {
        random.clamp(0.0, 1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    // Digests from `printf %s feed-1 | md5sum`.
    #[test]
    fn the_phase_is_the_head_of_the_digest() {
        let rows = [(1, 0x51a3_cda8_u64), (42, 0x17d0_5f49), (-7, 0xff6d_f007)];
        for (feed_id, head) in rows {
            let long = Duration::from_secs(u64::from(u32::MAX) + 1);
            assert_eq!(phase(feed_id, long).as_secs(), head, "feed-{feed_id}");
            assert_eq!(phase(feed_id, 15 * MINUTE).as_secs(), head % 900);
        }
    }

    #[test]
    fn the_jitter_is_a_thirtieth_within_bounds() {
        let rows = [(5, 60), (15, 60), (60, 120), (180, 360), (1440, 600)];
        for (minutes, seconds) in rows {
            let jitter = jitter(minutes * MINUTE).as_secs();
            assert_eq!(jitter, seconds, "period of {minutes} min");
        }
    }

    #[test]
    fn the_grid_does_not_depend_on_when_it_is_computed() {
        let period = 15 * MINUTE;
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let next = next_on_grid(9, period, now);
        assert!(next > now && next.as_second() - now.as_second() <= 900);
        let phase = phase(9, period).as_secs() as i64;
        assert_eq!((next.as_second() - phase).rem_euclid(900), 0);
        // A little later, or after a week of silence: one poll, same grid.
        assert_eq!(
            next_on_grid(9, period, after(next, Duration::ZERO)).as_second(),
            next.as_second() + 900
        );
        let week = next_on_grid(9, period, after(now, 7 * 1440 * MINUTE));
        assert_eq!((week.as_second() - next.as_second()) % 900, 0);
    }

    #[test]
    fn feeds_of_one_period_are_spread_over_it() {
        let mut slots = [0; 15];
        for feed_id in 0..1500 {
            slots[phase(feed_id, 15 * MINUTE).as_secs() as usize / 60] += 1;
        }
        assert!(
            slots.iter().all(|slot| (60..140).contains(slot)),
            "{slots:?}"
        );
    }

    #[test]
    fn interval_jitter_preserves_the_mean_and_the_floor() {
        let interval = 60 * MINUTE;
        let at = |random| jittered_interval(interval, 5 * MINUTE, random);
        assert_eq!(at(0.5), interval);
        assert_eq!(at(0.0) + MINUTE, interval);
        assert_eq!(at(1.0), interval + MINUTE);
        assert_eq!(jittered_interval(5 * MINUTE, 5 * MINUTE, 0.0), 5 * MINUTE);
        assert_eq!(
            jittered_interval(5 * MINUTE, 5 * MINUTE, f64::NAN),
            5 * MINUTE
        );
    }
}
