//! What is remembered of a feed between polls, stored as JSON in the `policy`
//! column of the store. Every policy learns, so a change of policy takes effect
//! at the next poll. Decides nothing.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::beat::Beat;
use crate::burst::Burst;
use crate::dates;
use crate::price::Demand;
use crate::rate::Rate;
use crate::rhythm::Rhythm;
use crate::units::{DAY, epoch};

/// The learned state of one feed; [`State::default`] for a feed never polled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// When it was last read without an error, in milliseconds since 1970.
    read_at: Option<i64>,
    /// When it last had new items, in milliseconds since 1970.
    new_at: Option<i64>,
    /// Items that its document holds.
    window: u32,
    /// Polls without new items since the last ones.
    quiet_polls: u32,
    /// Errors in a row.
    errors: u32,
    /// The same, weighted by class.
    failure: f32,
    /// The last document had only new items: some may have been missed.
    is_overrun: bool,
    rate: Rate,
    rhythm: Rhythm,
    beat: Beat,
    burst: Burst,
}

/// The dates of the items of a document: of all that it lists, and of those
/// that were not known before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting<'a> {
    pub listed: &'a [Option<Timestamp>],
    pub new: &'a [Option<Timestamp>],
}

impl State {
    /// Reads a state back. One that can't be read or makes no sense is a feed to
    /// learn afresh, never an error: nothing but a little time is lost.
    pub fn from_json(text: &str) -> Self {
        let state: Self = serde_json::from_str(text).unwrap_or_default();
        let is_sound = state.rate.is_sound()
            && state.rhythm.is_sound()
            && state.beat.is_sound()
            && state.burst.is_sound()
            && state.failure.is_finite();
        if is_sound { state } else { Self::default() }
    }

    pub fn to_json(&self) -> String {
        // Strings, numbers and arrays only: there is nothing that could fail.
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }

    /// Items per day, as expected now.
    pub fn items_per_day(&self) -> f64 {
        self.rate.per_day()
    }

    /// The feed's part in the sum from which the price follows.
    pub fn demand(&self, weight: f64) -> Demand {
        Demand((weight.max(0.0) * self.items_per_day() / DAY / 2.0).sqrt())
    }

    /// Errors since the last successful poll.
    pub fn errors(&self) -> u32 {
        self.errors
    }

    pub(crate) fn failure(&self) -> f32 {
        self.failure
    }

    pub(crate) fn quiet_polls(&self) -> u32 {
        self.quiet_polls
    }

    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    pub(crate) fn is_overrun(&self) -> bool {
        self.is_overrun
    }

    pub(crate) fn learned(&self) -> (&Rate, &Rhythm, &Beat, &Burst) {
        (&self.rate, &self.rhythm, &self.beat, &self.burst)
    }

    /// Seconds since the feed had new items, as far as that is known.
    pub(crate) fn silence(&self, now: Timestamp) -> Option<f64> {
        let since = |at: i64| now.as_millisecond().saturating_sub(at).max(0) as f64 / 1000.0;
        self.new_at.map(since)
    }

    /// Learns from a response without a document, or with the same as before.
    pub(crate) fn unchanged(&mut self, now: Timestamp) {
        self.succeeded();
        self.quiet_polls = self.quiet_polls.saturating_add(1);
        self.is_overrun = false;
        if self.read_at.is_some() {
            let nothing = Sighting {
                listed: &[],
                new: &[],
            };
            self.learn(nothing, now);
        }
        self.read_at = Some(now.as_millisecond());
    }

    /// Learns from a document.
    pub(crate) fn read(&mut self, sighting: Sighting<'_>, now: Timestamp) {
        self.succeeded();
        self.window = u32::try_from(sighting.listed.len()).unwrap_or(u32::MAX);
        let is_first = self.read_at.is_none();
        if is_first {
            self.start(sighting, now);
        } else {
            self.learn(sighting, now);
        }
        let has_new = !sighting.new.is_empty();
        self.quiet_polls = if has_new {
            0
        } else {
            self.quiet_polls.saturating_add(1)
        };
        if has_new && !is_first {
            self.new_at = Some(now.as_millisecond());
        }
        let is_all_new = sighting.new.len() >= sighting.listed.len();
        self.is_overrun = has_new && !is_first && is_all_new;
        self.read_at = Some(now.as_millisecond());
    }

    pub(crate) fn failed(&mut self, weight: f32) {
        self.errors = self.errors.saturating_add(1);
        self.failure += weight;
    }

    fn succeeded(&mut self) {
        self.errors = 0;
        self.failure = 0.0;
    }

    /// The first document: its items do not count as new, but their dates show
    /// the time before.
    fn start(&mut self, sighting: Sighting<'_>, now: Timestamp) {
        let past = dates::past(sighting.listed, now);
        self.rate.seed(&past.ages);
        if past.has_hours {
            let oldest = past.ages.iter().copied().fold(0.0, f64::max);
            self.rhythm.watch(epoch(now) - oldest, epoch(now));
            for age in past.ages.iter().filter(|age| **age < oldest) {
                self.rhythm.add(epoch(now) - age);
                self.beat.add(epoch(now) - age, 1.0);
            }
        }
        let newest = past.ages.first().map(|age| (age * 1000.0) as i64);
        self.new_at = Some(now.as_millisecond() - newest.unwrap_or(0));
    }

    /// The stretch since the last reading, and the items that came in it.
    fn learn(&mut self, sighting: Sighting<'_>, now: Timestamp) {
        let Sighting { listed, new } = sighting;
        let to = epoch(now);
        let from = self.read_at.map_or(to, |at| at as f64 / 1000.0);
        let elapsed = (to - from).max(0.0);
        let exposure = self.rhythm.factors().exposure(from, to);
        let steady = self.rate.per_day() * exposure;
        self.burst.observe(new.len(), steady, elapsed);
        self.rate.observe(new.len(), exposure, elapsed);
        self.rhythm.watch(from, to);
        let has_hours = !new.is_empty() && dates::past(listed, now).has_hours;
        let mut undated = 0.0;
        for date in new {
            match date {
                Some(date) if has_hours && dates::fits(*date, from, to) => {
                    // It appeared between the polls, whatever its date says.
                    let at = epoch(*date).clamp(from, to);
                    self.rhythm.add(at);
                    self.beat.add(at, 1.0);
                }
                _ => undated += 1.0,
            }
        }
        self.rhythm.spread(from, to, undated);
        self.beat.spread(from, to, undated);
    }
}
