//! What a page says after a change: a code in its address, and the sentence for it.

/// The codes that a page accepts.
pub(crate) const NOTICES: &[&str] = &[
    "submitted",
    "retried",
    "missing_documents",
    "deleted",
    "added",
    "changed",
    "polled",
    "resumed",
    "enabled",
    "disabled",
    "blocked",
    "unblocked",
    "replayed",
    "revoked",
    "imported",
    "sink-enabled",
    "sink-disabled",
    "sink-removed",
];

pub(super) fn text(notice: &str, count: Option<&str>) -> String {
    let n = count.unwrap_or("0");
    let urls = |verb: &str| match count {
        Some("1") => format!("1 URL {verb}."),
        Some(count) => format!("{count} URLs {verb}."),
        None => format!("URL {verb}."),
    };
    match notice {
        "submitted" => urls("submitted"),
        "retried" => match count {
            Some(count) => format!("{count} queued for retry."),
            None => "Queued for retry.".to_owned(),
        },
        "missing_documents" => format!(
            "{n} dead letters deleted, because their documents are not stored any more; all others queued for retry."
        ),
        "deleted" => match count {
            Some(_) => urls("deleted"),
            None => "Deleted.".to_owned(),
        },
        "added" => "Source was added; its feed is polled now.".to_owned(),
        "changed" => "Changes saved.".to_owned(),
        "polled" => format!("The feed was polled: {n} new items."),
        "resumed" => "Feed resumed; it is polled now.".to_owned(),
        "enabled" => "Source resumed.".to_owned(),
        "disabled" => "Source paused.".to_owned(),
        "blocked" => "Host blocked.".to_owned(),
        "unblocked" => "Host unblocked.".to_owned(),
        "replayed" => format!("{n} documents queued for replay."),
        "revoked" => "Token revoked.".to_owned(),
        "imported" => format!("{n} sources imported."),
        "sink-enabled" => format!("Sink enabled; {n} documents that it missed are queued."),
        "sink-disabled" => "Sink disabled.".to_owned(),
        "sink-removed" => "Sink removed.".to_owned(),
        _ => "Done.".to_owned(),
    }
}
