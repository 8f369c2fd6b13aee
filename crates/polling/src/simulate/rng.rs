//! The random number generator of the simulation (SplitMix64): the same seed and
//! name give the same numbers on every machine. Never for secrets.

#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn of(seed: u64, what: &str, number: u64) -> Self {
        let name = what.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut rng = Self(seed ^ name);
        let mixed = rng.next() ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mixed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In `0.0..1.0`.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn bernoulli(&mut self, share: f64) -> bool {
        self.fraction() < share
    }

    pub(crate) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[(self.next() % list.len() as u64) as usize]
    }

    /// Exponential with this mean.
    pub(crate) fn wait(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.fraction()).ln()
    }

    /// Standard normal (Box–Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.fraction()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.fraction()).cos()
    }

    /// Lognormal with this median.
    pub(crate) fn lognormal(&mut self, median: f64, sigma: f64) -> f64 {
        median * (sigma * self.normal()).exp()
    }

    /// Poisson; means here are small enough to count waits.
    pub(crate) fn poisson(&mut self, mean: f64) -> usize {
        let (mut at, mut count) = (self.wait(1.0), 0);
        while at < mean {
            count += 1;
            at += self.wait(1.0);
        }
        count
    }

    /// Geometric with this mean, from 0.
    pub(crate) fn geometric(&mut self, mean: f64) -> usize {
        let goes_on = mean / (1.0 + mean);
        let mut count = 0;
        while self.bernoulli(goes_on) && count < 1000 {
            count += 1;
        }
        count
    }
}
