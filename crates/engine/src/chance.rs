//! Chance for the loops, which hand it to the pure functions as an argument.

/// In 0..1; the middle where the system has none to give.
pub(crate) fn random() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
}
