//! Randomness for the loops, which pass it to the pure policies as an argument.

/// Uniform in 0..1; 0.5 where the system has no random source.
pub(crate) fn random() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
}
