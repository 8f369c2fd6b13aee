//! The backlogs that claims are measured on, and one measured row: shared by the
//! frontier and the reference design.

use serde::Serialize;

/// Distribution of the URLs over hosts and priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Backlog {
    /// All hosts have the same share and all URLs the same priority: the
    /// best case for any design.
    Uniform,
    /// As on the web: a few hosts have most of the URLs (one has a twentieth),
    /// and there are ten priorities.
    Skewed,
    /// Half of the URLs, most urgent, are on one blocked host.
    Adversarial,
}

impl Backlog {
    pub(crate) const ALL: [Self; 3] = [Self::Uniform, Self::Skewed, Self::Adversarial];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Skewed => "skewed",
            Self::Adversarial => "adversarial",
        }
    }
}

impl std::fmt::Display for Backlog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One measured row.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    pub(crate) engine: &'static str,
    pub(crate) what: &'static str,
    pub(crate) urls: usize,
    pub(crate) backlog: &'static str,
    pub(crate) workers: usize,
    pub(crate) per_second: f64,
    /// Of one claim, where there are claims.
    pub(crate) p99_ms: Option<f64>,
    pub(crate) violations: Option<usize>,
}
