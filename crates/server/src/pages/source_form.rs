//! The form of a source: its fields with their current values, and the settings that
//! a sent form describes.

use maud::{Markup, html};
use serde_json::{Map, Value as Json, json};
use tidings_engine::{Preset, SourceSettings, follow_preset};

use super::forms::csrf_field;
use super::selectors;
use crate::body_fields::BodyFields;
use crate::request::CheckedRequest;

/// The form of a source with its current values.
pub(super) fn form(
    request: &CheckedRequest,
    action: &str,
    values: &Map<String, Json>,
    label: &str,
) -> Markup {
    let text = |name: &str| match values.get(name) {
        Some(Json::String(text)) => text.clone(),
        Some(Json::Array(items)) => items
            .iter()
            .filter_map(Json::as_str)
            .collect::<Vec<_>>()
            .join(", "),
        Some(Json::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    let field = |name: &str, label: &str, hint: &str| html! { label { (label) input name=(name) value=(text(name)) placeholder=(hint); } };
    let choice = |name: &str, label: &str, words: &[&str]| {
        html! { label { (label) select name=(name) {
            option value="" { "default" }
            @for word in words { option value=(word) selected[text(name) == *word] { (word) } }
        } } }
    };
    let defaults = SourceSettings::default();
    let presets = Preset::ALL.map(Preset::as_str);
    let yes_or_no = ["true", "false"];
    // What is not set is the preset's.
    let preset = json!({ "preset": values.get("preset").unwrap_or(&Json::Null) });
    let preset = SourceSettings::parse("", &preset).unwrap_or_default();
    let patterns = match values.get("article_url_patterns") {
        Some(Json::Array(patterns)) => lines(patterns),
        _ => String::new(),
    };
    html! {
        form.card method="post" action=(action) {
            (csrf_field(request))
            div.fields {
                label { "Site URL" input name="url" value=(text("url")) required placeholder="https://example.com/"; }
                (field("name", "Name", "the host"))
                (field("feed_url", "Feed", "auto-detected"))
                (field("sitemap_url", "Sitemap", "none"))
                (choice("preset", "Preset: as an earlier system", &presets))
                (choice("ingestion_mode", "Ingestion mode", &["feed", "spider", "both"]))
                (choice("poll_policy", "Polling policy", &["adaptive", "fixed", "doubling"]))
                (field("feed_poll_interval_minutes", "Poll interval in minutes (fixed policy)", &preset.feed_poll_interval_minutes.to_string()))
                (field("priority", "Priority, 1 to 10", "5"))
                (field("rate_limit", "Max requests per second", "from robots.txt"))
                (choice("license", "Licence", &["rss", "public-domain", "restricted", "api"]))
                (field("tags", "Tags (comma separated)", "news, local"))
            }
            details {
                summary { "Items: what is new, what is fetched, what is important" }
                div.fields {
                    (choice("as_documents", "Items are the documents; no page is fetched", &yes_or_no))
                    (choice("guid_is_identity", "Same guid, other URL: the same item", &yes_or_no))
                    (choice("title_week", "Same title within a week: the same item", &yes_or_no))
                    (choice("sitemap_undated", "Sitemap entries without a date", &["take", "skip"]))
                    (choice("important", "All documents are important", &yes_or_no))
                    (field("important_tags", "Documents with one of these are important", "breaking-news"))
                }
            }
            details open[matches!(text("ingestion_mode").as_str(), "spider" | "both")] {
                summary { "Spider: find articles by crawling pages" }
                div.fields {
                    (field("max_depth", "Max link depth, 0 to 10", &defaults.max_depth.to_string()))
                    (field("pages_per_day", "List pages per day", &defaults.pages_per_day.to_string()))
                    (field("external_per_day", "Max external articles per day", &defaults.external_per_day.to_string()))
                }
                p { label { "Article URL patterns: regular expressions, one per line (default: auto-detected)"
                    textarea name="article_url_patterns" rows="2" placeholder="/20[0-9]{2}/[0-9]{2}/" { (patterns) } } }
            }
            details open[values.get("selectors").is_some_and(|all| all["article"].is_object())] {
                summary { "Selectors (CSS) for pages where automatic extraction fails" }
                (selectors::fields(values.get("selectors").unwrap_or(&Json::Null)))
            }
            p { button.main { (label) } }
        }
    }
}

fn lines(texts: &[Json]) -> String {
    let texts: Vec<_> = texts.iter().filter_map(Json::as_str).collect();
    texts.join("\n")
}

/// The settings of a sent form as the API takes them. `base` has the settings that
/// the form has no field for.
pub(super) fn from_form(request: &CheckedRequest, mut base: Map<String, Json>) -> BodyFields {
    let form = request.form();
    let before = base.clone();
    for (name, value) in &form {
        let value = value.trim();
        let json = match name.as_str() {
            "csrf" | "page" => continue,
            name if name.starts_with("selector_") => continue,
            "tags" | "important_tags" => value
                .split(',')
                .map(str::trim)
                .filter(|tag| !tag.is_empty())
                .map(Json::from)
                .collect(),
            "article_url_patterns" => value
                .lines()
                .map(str::trim)
                .filter(|pattern| !pattern.is_empty())
                .map(Json::from)
                .collect(),
            "feed_poll_interval_minutes"
            | "priority"
            | "max_depth"
            | "pages_per_day"
            | "external_per_day" => value.parse::<i64>().map_or(Json::from(value), Json::from),
            "as_documents" | "guid_is_identity" | "title_week" | "important" => {
                value.parse::<bool>().map_or(Json::from(value), Json::from)
            }
            "rate_limit" => value.parse::<f64>().map_or(Json::from(value), Json::from),
            _ => Json::from(value),
        };
        match value.is_empty() {
            true => base.remove(name),
            false => base.insert(name.clone(), json),
        };
    }
    match selectors::from_form(&form) {
        None => base.remove("selectors"),
        Some(selectors) => base.insert("selectors".to_owned(), selectors),
    };
    follow_preset(&before, &mut base);
    BodyFields::new(base, "")
}
