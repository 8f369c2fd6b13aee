//! What a fault scenario is, and what it reports.

use std::fmt;
use std::pin::Pin;

use crate::ledger::LedgerSummary;
use crate::setting::{Engine, Setting};

/// What a scenario found.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) passed: bool,
    /// This machine lacks what it needs; nothing was tried.
    pub(crate) is_skipped: bool,
    /// Articles lost or duplicated, politeness violations or SSRF connections:
    /// no busy machine excuses these, and no rerun either.
    pub(crate) is_violation: bool,
    pub(crate) text: String,
}

impl Measured {
    pub(crate) fn new(passed: bool, text: impl Into<String>) -> Self {
        Self {
            passed,
            is_skipped: false,
            is_violation: false,
            text: text.into(),
        }
    }

    pub(crate) fn skipped(needs: &str) -> Self {
        Self {
            is_skipped: true,
            ..Self::new(true, format!("skipped: it needs {needs}"))
        }
    }

    /// Also this must hold.
    pub(crate) fn and(self, holds: bool, text: impl fmt::Display) -> Self {
        Self {
            passed: self.passed && holds,
            text: match self.text.is_empty() {
                true => text.to_string(),
                false => format!("{}; {text}", self.text),
            },
            ..self
        }
    }

    /// It must not have taken longer than its limit.
    pub(crate) fn in_time(self, is_in_time: bool) -> Self {
        Self {
            passed: self.passed && is_in_time,
            ..self
        }
    }

    /// Nothing may be lost or duplicated, and no request may violate politeness.
    pub(crate) fn with_ledger(self, ledger: &LedgerSummary) -> Self {
        self.and(ledger.is_consistent(), ledger)
            .violated(ledger.has_violations())
    }

    /// A violation fails the scenario for good.
    pub(crate) fn violated(self, is_violation: bool) -> Self {
        Self {
            passed: self.passed && !is_violation,
            is_violation: self.is_violation || is_violation,
            ..self
        }
    }
}

pub(crate) type Running = Pin<Box<dyn Future<Output = anyhow::Result<Measured>>>>;

/// One fault, or several, and what is expected of Tidings meanwhile.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) expected: &'static str,
    pub(crate) engines: &'static [Engine],
    pub(crate) run: fn(Setting) -> Running,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_violations_are_final() {
        let late = Measured::new(true, "").in_time(false);
        assert_eq!((late.passed, late.is_violation), (false, false));
        let failed = Measured::new(true, "").and(false, "exited");
        assert_eq!((failed.passed, failed.is_violation), (false, false));
        let lost = LedgerSummary {
            expected: 3,
            lost: 1,
            duplicated: 0,
            politeness_violations: Vec::new(),
            requests: 9,
        };
        let lost = Measured::new(true, "").with_ledger(&lost);
        assert_eq!((lost.passed, lost.is_violation), (false, true));
    }
}
