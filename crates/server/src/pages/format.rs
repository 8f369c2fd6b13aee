//! Numbers and times as text. Pure.

use std::time::Duration;

use maud::{Markup, html};
use tidings_store::Moment;

/// Digits in groups of three.
pub(super) fn number(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let groups: Vec<_> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(String::from_utf8_lossy)
        .collect();
    format!("{}{}", if n < 0 { "−" } else { "" }, groups.join(","))
}

pub(super) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=59 => format!("{seconds} s"),
        60..=3599 => format!("{} min", seconds / 60),
        3600..=172_799 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A moment relative to now, with the exact one in its tooltip.
pub(super) fn when(moment: Moment, now: Moment) -> Markup {
    let text = if moment == Moment::NEVER {
        "never".to_owned()
    } else if moment > now {
        format!("in {}", duration(moment.since(now)))
    } else if now.since(moment) < Duration::from_secs(2) {
        "now".to_owned()
    } else {
        format!("{} ago", duration(now.since(moment)))
    };
    html! { time datetime=(moment) title=(moment) { (text) } }
}

/// How long a block still lasts.
pub(super) fn until(end: Moment, now: Moment) -> Markup {
    let text = match end == Moment::NEVER {
        true => "until unblocked".to_owned(),
        false => format!("for {}", duration(end.since(now))),
    };
    html! { time datetime=(end) title=(end) { (text) } }
}

pub(super) fn maybe_when(moment: Option<Moment>, now: Moment) -> Markup {
    match moment {
        Some(moment) => when(moment, now),
        None => html! { "–" },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative_to_now() {
        let now = Moment(1_800_000_000_000);
        let rows = [
            (now, "now"),
            (Moment(now.0 - 90_000), "1 min ago"),
            (Moment(now.0 + 7_200_000), "in 2 h"),
            (Moment::NEVER, "never"),
        ];
        for (moment, text) in rows {
            assert!(when(moment, now).0.contains(&format!(">{text}<")), "{text}");
        }
        assert_eq!(number(-1_234_567), "−1,234,567");
    }
}
