//! Presets: the settings with which a source behaves as in an earlier system, for
//! users who come from one. What a source sets itself wins. Pure.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

/// The system whose polling, newness and retries a source has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    MediaCloud,
    NorthCloud,
    Sembr,
    Collection,
}

impl Preset {
    pub const ALL: [Self; 4] = [
        Self::MediaCloud,
        Self::NorthCloud,
        Self::Sembr,
        Self::Collection,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::MediaCloud => "media-cloud",
            Self::NorthCloud => "north-cloud",
            Self::Sembr => "sembr",
            Self::Collection => "collection",
        }
    }

    /// The preset that settings name, if they name a valid one.
    fn of(settings: &Map<String, Json>) -> Option<Self> {
        let name = settings.get("preset")?.as_str()?;
        Self::ALL.into_iter().find(|preset| preset.as_str() == name)
    }

    /// The settings that it sets; docs/SOURCES.md explains them.
    pub(super) fn settings(self) -> Map<String, Json> {
        let settings = match self {
            Self::MediaCloud => json!({
                "poll_policy": "doubling",
                "guid_is_identity": true,
                "title_week": true,
                "retries": { "max": 4, "first_seconds": 3600 },
            }),
            Self::NorthCloud => json!({
                "poll_policy": "fixed",
                "feed_poll_interval_minutes": 15,
                "guid_is_identity": false,
                "sitemap_interval_hours": 6,
                "sitemap_within_hours": 48,
                "sitemap_undated": "skip",
                "retries": { "max": 2, "first_seconds": 60 },
            }),
            Self::Sembr => json!({
                "poll_policy": "fixed",
                "feed_poll_interval_minutes": 30,
                "as_documents": true,
                "guid_is_identity": false,
            }),
            Self::Collection => json!({
                "poll_policy": "fixed",
                "feed_poll_interval_minutes": 360,
                "as_documents": true,
                "guid_is_identity": false,
                "retries": { "max": 3, "first_seconds": 1 },
            }),
        };
        settings.as_object().cloned().unwrap_or_default()
    }
}

/// The settings with those of their preset where they have none of their own.
pub(super) fn expanded(settings: &Json) -> Json {
    let Some(own) = settings.as_object() else {
        return settings.clone();
    };
    let mut expanded = Preset::of(own).map(Preset::settings).unwrap_or_default();
    expanded.extend(own.clone());
    Json::Object(expanded)
}

/// Changed settings, where the preset may be another one than before: what was not
/// changed with it follows the new one.
pub fn follow_preset(before: &Map<String, Json>, settings: &mut Map<String, Json>) {
    let (old, new) = (Preset::of(before), Preset::of(settings));
    let Some(new) = new.filter(|_| new != old) else {
        return;
    };
    let old = old.map(Preset::settings).unwrap_or_default();
    for key in new.settings().keys() {
        if !old.contains_key(key) && settings.get(key) == before.get(key) {
            settings.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(json: &Json) -> Map<String, Json> {
        json.as_object().unwrap().clone()
    }

    #[test]
    fn what_a_source_sets_itself_wins() {
        let own = json!({ "preset": "sembr", "feed_poll_interval_minutes": 5 });
        let expanded = expanded(&own);
        assert_eq!(expanded["feed_poll_interval_minutes"], 5);
        assert_eq!(expanded["poll_policy"], "fixed");
        assert_eq!(expanded["as_documents"], true);
    }

    #[test]
    fn a_new_preset_changes_what_was_not_changed_with_it() {
        let before = json!({ "poll_policy": "adaptive", "feed_poll_interval_minutes": 15 });
        let mut after = map(&json!({
            "preset": "sembr", "poll_policy": "adaptive", "feed_poll_interval_minutes": 20,
        }));
        follow_preset(&map(&before), &mut after);
        assert_eq!(
            Json::Object(after),
            json!({ "preset": "sembr", "feed_poll_interval_minutes": 20 })
        );
        // What was set against the old preset stays.
        let before = json!({ "preset": "sembr", "poll_policy": "adaptive" });
        let mut after = map(&json!({ "preset": "collection", "poll_policy": "adaptive" }));
        follow_preset(&map(&before), &mut after);
        assert_eq!(after["poll_policy"], "adaptive");
        let same = after.clone();
        follow_preset(&same, &mut after);
        assert_eq!(after, same);
    }
}
