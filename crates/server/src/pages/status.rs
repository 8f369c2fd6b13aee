//! The status of a URL as the dashboard shows it. The store has one status for every
//! URL that is not fetched again; its reason says whether that is a failure.

use maud::{Markup, html};
use tidings_store::Status;

/// The status of one URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ShownStatus {
    label: &'static str,
    class: &'static str,
}

impl ShownStatus {
    fn of(status: Status, reason: Option<&str>) -> Self {
        let (label, class) = match status {
            Status::Pending => ("pending", ""),
            Status::Fetching => ("fetching", ""),
            Status::Fetched => ("fetched", "good"),
            Status::Failed => ("retrying", "warn"),
            Status::Dead => dead(reason),
        };
        Self { label, class }
    }
}

/// A URL that is not fetched again, by its reason; a redirect is not a failure.
fn dead(reason: Option<&str>) -> (&'static str, &'static str) {
    match reason {
        Some("redirect") => ("redirected", ""),
        Some("canonical") => ("merged", ""),
        Some("robots_blocked") => ("blocked by robots", "warn"),
        Some("not_found" | "gone" | "soft_404") => ("not found", "bad"),
        _ => ("failed permanently", "bad"),
    }
}

/// The status as a badge.
pub(super) fn badge(status: Status, reason: Option<&str>) -> Markup {
    let shown = ShownStatus::of(status, reason);
    html! { span class={ "badge " (shown.class) } { (shown.label) } }
}

/// The label of a total: of all URLs with a status, whatever their reasons.
pub(super) fn total_label(status: Status) -> &'static str {
    match status {
        Status::Dead => "failed or redirected",
        status => ShownStatus::of(status, None).label,
    }
}

/// An event of a URL's history: its label and its class.
pub(super) fn event_label<'a>(kind: &'a str, reason: Option<&str>) -> (&'a str, &'static str) {
    match kind {
        "dead" => dead(reason),
        "fetched" => (kind, "good"),
        "not_modified" => ("not modified", "good"),
        "failed" | "quarantined" => (kind, "bad"),
        _ => (kind, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_shown_with_its_reason_and_a_redirect_is_not_a_failure() {
        let rows = [
            (Status::Pending, None, "pending"),
            (Status::Fetching, None, "fetching"),
            (Status::Fetched, None, "fetched"),
            (Status::Failed, None, "retrying"),
            (Status::Dead, Some("redirect"), "redirected"),
            (Status::Dead, Some("canonical"), "merged"),
            (Status::Dead, Some("robots_blocked"), "blocked by robots"),
            (Status::Dead, Some("not_found"), "not found"),
            (Status::Dead, Some("gone"), "not found"),
            (Status::Dead, Some("soft_404"), "not found"),
            (Status::Dead, Some("max_retries"), "failed permanently"),
            (Status::Dead, None, "failed permanently"),
        ];
        for (status, reason, label) in rows {
            assert_eq!(ShownStatus::of(status, reason).label, label, "{reason:?}");
        }
        assert_eq!(total_label(Status::Dead), "failed or redirected");
        assert_eq!(total_label(Status::Failed), "retrying");
    }
}
