//! Text that both databases accept. Pure.

/// PostgreSQL rejects NUL in text; no stored value needs it.
pub(crate) fn storable(text: &str) -> String {
    text.replace('\0', "")
}
