//! The schemas of bodies and responses in the OpenAPI document.

use serde_json::{Map, Value as Json, json};
use tidings_engine::Preset;

use crate::params::{MAX_ID, ORIGINS, STATUSES};

pub(super) fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// An object: its fields, and those that are always present.
fn object(fields: Json, required: &[&str]) -> Json {
    json!({ "type": "object", "properties": fields, "required": required })
}

/// An object in a request: unknown fields are errors.
fn request(fields: Json, required: &[&str]) -> Json {
    let mut schema = object(fields, required);
    schema["additionalProperties"] = false.into();
    schema
}

fn list(item: Json) -> Json {
    object(
        json!({ "items": { "type": "array", "items": item }, "next": { "type": ["string", "null"] } }),
        &["items", "next"],
    )
}

fn text() -> Json {
    json!({ "type": "string" })
}

fn maybe_text() -> Json {
    json!({ "type": ["string", "null"] })
}

fn number() -> Json {
    json!({ "type": "integer" })
}

fn when() -> Json {
    json!({ "type": "string", "format": "date-time" })
}

fn maybe_when() -> Json {
    json!({ "type": ["string", "null"], "format": "date-time" })
}

fn anything() -> Json {
    json!({ "type": "object" })
}

#[rustfmt::skip]
pub(super) fn schemas() -> Json {
    let status = json!({ "type": "string", "enum": STATUSES });
    let origin = json!({ "type": "string", "enum": ORIGINS });
    let address = json!({ "type": "string", "minLength": 1 });
    let priority = json!({ "type": "integer", "minimum": 1, "maximum": 10 });
    let id = json!({ "type": "integer", "minimum": 0, "maximum": MAX_ID });
    let named = [
        ("Problem", object(json!({ "type": text(), "title": text(), "status": number(), "detail": text(), "field": text(), "request_id": text() }),
            &["type", "title", "status", "detail", "request_id"])),
        ("Done", anything()),
        ("Schema", anything()),
        ("Health", object(json!({ "status": text(), "version": text() }), &["status"])),
        ("Changed", object(json!({ "changed": number() }), &["changed"])),
        ("RetriedDeadLetters", object(json!({ "changed": number(), "missing_documents": number() }), &["changed", "missing_documents"])),
        ("Url", object(json!({ "id": text(), "url": text(), "url_key": text(), "host": text(), "source_id": number(), "origin": origin, "status": status,
            "parent_url": maybe_text(), "depth": number(), "priority": number(), "reason": maybe_text(), "next_fetch_at": maybe_when(), "last_fetched_at": maybe_when(),
            "fetch_count": number(), "retry_count": number(), "attempts": number(), "last_error": maybe_text(), "etag": maybe_text(), "last_modified": maybe_text(),
            "discovered_at": when(), "updated_at": when() }), &["id", "url", "status", "origin", "discovered_at"])),
        ("UrlList", list(reference("Url"))),
        ("Stats", object(json!({ "by_status": anything(), "by_origin": anything(), "rows": { "type": "array" }, "hosts": number(), "has_more": { "type": "boolean" } }), &["by_status"])),
        ("Submission", request(json!({ "url": address, "source_id": id, "priority": priority }), &["url"])),
        ("Submitted", object(json!({ "id": text(), "verdict": { "type": "string", "enum": ["new", "raised", "known"] } }), &["id", "verdict"])),
        ("BulkSubmitted", object(json!({ "total": number(), "new": number(), "raised": number(), "known": number(), "invalid": number(),
            "verdicts": { "type": "array", "items": object(json!({ "url": text(), "verdict": { "type": "string", "enum": ["new", "raised", "known", "invalid"] }, "error": text() }), &["url", "verdict"]) },
            "verdicts_omitted": { "type": "boolean" } }),
            &["total", "new", "raised", "known", "invalid", "verdicts"])),
        ("BulkChange", request(json!({ "action": { "type": "string", "enum": ["retry", "delete"] }, "preview": { "type": "boolean" }, "all": { "type": "boolean" },
            "filter": request(json!({ "status": status, "source_id": id, "host": text(), "origin": origin, "reason": text(), "q": text() }), &[]) }), &["action"])),
        ("BulkChanged", object(json!({ "matched": number(), "changed": number(), "preview": { "type": "boolean" } }), &["matched", "changed", "preview"])),
        ("Event", object(json!({ "event_id": number(), "at": when(), "id": text(), "kind": text(), "detail": {} }), &["event_id", "at", "kind"])),
        ("EventList", list(reference("Event"))),
        ("Explanation", object(json!({ "id": text(), "row": { "anyOf": [reference("Url"), { "type": "null" }] }, "alias_of": maybe_text(),
            "events": { "type": "array", "items": reference("Event") }, "deliveries": { "type": "array" } }), &["id", "events", "deliveries"])),
        ("Source", object(json!({ "source_id": number(), "name": text(), "url": text(), "kind": text(), "priority": number(), "enabled": { "type": "boolean" },
            "reason": maybe_text(), "config": anything(), "created_at": when(), "updated_at": when() }), &["source_id", "name", "url", "enabled", "config"])),
        ("SourceList", list(reference("Source"))),
        ("SourceWithFeeds", json!({ "allOf": [reference("Source"), object(json!({ "feeds": { "type": "array", "items": reference("Feed") } }), &["feeds"])] })),
        ("SourceDraft", source_schema()),
        ("ImportReport", object(json!({ "added": number(), "known": number(), "bad": { "type": "array", "items": object(json!({ "line": number(), "error": text() }), &["line", "error"]) } }), &["added", "known", "bad"])),
        ("Address", request(json!({ "url": address }), &["url"])),
        ("CandidateList", list(anything())),
        ("SelectorTest", request(json!({ "url": address, "selectors": anything() }), &["url"])),
        ("TestedPage", object(json!({ "url": text(), "status": number(), "title": maybe_text(), "text": text(), "excerpt": text() }), &["url", "status", "text"])),
        ("Reason", request(json!({ "reason": address }), &["reason"])),
        ("PolledSource", object(json!({ "result": { "type": "string", "enum": ["polled", "dry_run"] }, "task_id": number(), "poll": anything(), "items": { "type": "array" } }), &["result"])),
        ("Started", object(json!({ "task_id": number() }), &["task_id"])),
        ("FetchLog", list(object(json!({ "feed_id": number(), "url": text(), "log": { "type": "array", "items": reference("Poll") } }), &["feed_id", "url", "log"]))),
        ("Poll", object(json!({ "started_at": when(), "elapsed_ms": number(), "outcome": text(), "items_seen": number(), "items_new": number(),
            "error_class": maybe_text(), "error_message": maybe_text(), "bytes": number() }), &["started_at", "outcome"])),
        ("Host", object(json!({ "host": text(), "delay_ms": number(), "max_in_flight": number(), "in_flight": number(), "gate_at": maybe_when(),
            "blocked_until": maybe_when(), "block_reason": maybe_text(), "last_start_at": maybe_when(), "errors": number() }), &["host", "delay_ms", "max_in_flight"])),
        ("HostList", list(reference("Host"))),
        ("HostDetail", object(json!({ "host": reference("Host"), "robots": { "type": ["object", "null"] }, "urls": anything() }), &["host", "urls"])),
        ("HostLimits", request(json!({ "delay_ms": { "type": "integer", "minimum": 0, "maximum": 3_600_000 }, "max_in_flight": { "type": "integer", "minimum": 1, "maximum": 1000 } }), &[])),
        ("HostBlock", request(json!({ "reason": address, "seconds": { "type": "integer", "minimum": 1, "maximum": 315_360_000 } }), &["reason"])),
        ("Feed", object(json!({ "feed_id": number(), "source_id": number(), "kind": text(), "url": text(), "last_polled_at": maybe_when(), "next_poll_at": maybe_when(),
            "consecutive_errors": number(), "error_class": maybe_text(), "last_error": maybe_text(), "paused_reason": maybe_text() }), &["feed_id", "source_id", "kind", "url"])),
        ("FeedList", list(reference("Feed"))),
        ("FeedWithLog", object(json!({ "feed": reference("Feed"), "log": { "type": "array", "items": reference("Poll") } }), &["feed", "log"])),
        ("Document", object(json!({ "id": text(), "frontier_id": text(), "revision": number(), "url": text(), "title": text(), "source_id": number(), "origin": text(), "fetched_at": when(),
            "content_quality": { "type": "string", "enum": ["title_only", "stub", "summary", "full"] }, "feed_md5": text(), "tags": { "type": "array", "items": text() }, "important": { "type": "boolean" }, "cluster": text(), "near_duplicates": { "type": "array", "items": reference("NearDuplicate") } }), &["id", "frontier_id", "url", "title"])),
        ("NearDuplicate", object(json!({ "frontier_id": text(), "url": text(), "source_name": text(), "title": text(), "fetched_at": when() }), &["frontier_id", "url", "title"])),
        ("DocumentList", list(reference("Document"))),
        ("ChangeList", list(object(json!({ "cursor": text(), "document": reference("Document") }), &["cursor", "document"]))),
        ("SearchResults", object(json!({ "total": number(), "items": { "type": "array", "items": anything() }, "next": maybe_text() }), &["total", "items", "next"])),
        ("SinkList", list(object(json!({ "sink": text(), "enabled": { "type": "boolean" }, "delivered": number(), "waiting": number(), "dead": number(), "oldest": maybe_when(), "disabled_at": maybe_when(), "node": maybe_text(), "last_seen": maybe_when() }), &["sink", "waiting", "dead"]))),
        ("DeadLetterList", list(object(json!({ "id": text(), "revision": number(), "reason": text(), "died_at": when() }), &["id", "reason"]))),
        ("Replay", request(json!({ "since": when() }), &[])),
        ("Task", object(json!({ "task_id": number(), "kind": text(), "subject": text(), "status": { "type": "string", "enum": ["running", "done", "failed"] }, "detail": text(),
            "counts": { "anyOf": [object(json!({ "sources_attempted": number(), "sources_succeeded": number(), "items_seen": number(), "items_new": number() }),
            &["sources_attempted", "sources_succeeded", "items_seen", "items_new"]), { "type": "null" }] },
            "created_at": when(), "finished_at": maybe_when() }), &["task_id", "kind", "subject", "status", "detail", "counts", "created_at"])),
        ("TaskList", list(reference("Task"))),
        ("RunList", list(object(json!({ "run_id": number(), "started_at": when(), "finished_at": maybe_when(), "metrics": {} }), &["run_id", "started_at"]))),
        ("CollectRequest", request(json!({ "sources": { "type": "array", "items": text() }, "dry_run": { "type": "boolean" },
            "max_new_items": { "type": "integer", "minimum": 1, "maximum": 1_000_000 } }), &[])),
        ("Collected", object(json!({ "run_id": number(), "task_id": number(), "dry_run": { "type": "boolean" }, "attempted": number(), "succeeded": number(), "items_seen": number(),
            "items_new": number(), "items_left": number(), "elapsed_ms": number(), "sources": { "type": "array", "items": object(json!({ "name": text(), "kind": text(),
            "items_seen": number(), "items_new": number(), "items_left": number(), "elapsed_ms": number(), "error": text() }), &["name", "kind", "items_seen", "items_new"]) } }),
            &["dry_run", "attempted", "succeeded", "items_new", "sources"])),
        ("CheckedSource", object(json!({ "name": text(), "kind": text(), "service": text(), "items_seen": number(), "items_new": number(),
            "items": { "type": "array", "items": object(json!({ "url": text(), "title": maybe_text(), "published": maybe_when(), "is_new": { "type": "boolean" },
            "known_by": { "type": "string", "enum": ["url", "guid", "title"] }, "skipped": text() }), &["url", "is_new"]) },
            "error": text() }), &["name", "kind", "items_seen", "items_new", "items"])),
        ("TokenList", list(object(json!({ "token_id": number(), "name": text(), "role": text(), "created_at": when(), "last_used_at": maybe_when(), "revoked_at": maybe_when(), "expires_at": maybe_when() }), &["token_id", "name", "role"]))),
        ("TokenDraft", request(json!({ "name": { "type": "string", "minLength": 1, "maxLength": 100 }, "role": { "type": "string", "enum": ["viewer", "operator", "admin"] }, "days": { "type": "integer", "minimum": 1, "maximum": 3650 } }), &["name", "role"])),
        ("AuditList", list(object(json!({ "audit_id": number(), "at": when(), "who": text(), "role": text(), "action": text(), "method": text(), "path": text(), "status": number(),
            "request_id": text() }), &["audit_id", "at", "who", "method", "path", "status"]))),
        ("NewToken", object(json!({ "token_id": number(), "name": text(), "role": text(), "token": text() }), &["token_id", "token"])),
    ];
    named.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect::<Map<_, _>>().into()
}

/// The settings of a source.
#[rustfmt::skip]
pub(crate) fn source_schema() -> Json {
    let texts = json!({ "type": "array", "items": text() });
    let flag = json!({ "type": "boolean" });
    let listing = json!({
        "url": { "type": "string", "minLength": 1, "description": "any page of the site" },
        "name": { "type": "string", "maxLength": 200, "description": "the host by default" },
        "preset": { "type": "string", "enum": Preset::ALL.map(Preset::as_str), "description": "polling, newness and retries of an earlier system; other settings win" },
        "priority": { "type": "integer", "minimum": 1, "maximum": 10, "default": 5 },
        "feed_url": text(),
        "sitemap_url": text(),
        "ingestion_mode": { "type": "string", "enum": ["feed", "spider", "both"] },
        "article_url_patterns": texts,
        "max_depth": { "type": "integer", "minimum": 0, "maximum": 10, "default": 2, "description": "link depth from the home page to the last page that lists articles" },
        "pages_per_day": { "type": "integer", "minimum": 1, "default": 500, "description": "fetches per day of pages that list articles" },
        "external_per_day": { "type": "integer", "minimum": 0, "default": 0, "description": "articles of other sites per day" },
        "max_new_urls_per_day": { "type": "integer", "minimum": 0, "description": "new URLs per day; the rest waits for the next day" },
        "kind": { "type": "string", "description": "feed, or a service: newsapi, guardian, arxiv, gutenberg, gdelt, hackernews, reddit" },
        "config": { "type": "object", "description": "query of the service" },
        "as_documents": { "type": "boolean", "description": "items become documents with the text that they bring; no page is fetched" },
        "poll_policy": { "type": "string", "enum": ["fixed", "doubling", "adaptive"], "default": "adaptive" },
        "feed_poll_interval_minutes": { "type": "integer", "minimum": 1, "maximum": 10_080, "default": 15 },
        "feed_ignores_robots": flag,
        "title_week": { "type": "boolean", "description": "items with the same title within a calendar week are one" },
        "guid_is_identity": { "type": ["boolean", "null"], "description": "an item with a known guid and a new URL is the same item; by default unless the guids repeat" },
    });
    let documents = json!({
        "sitemap_interval_hours": { "type": "integer", "minimum": 1, "default": 6 },
        "sitemap_within_hours": { "type": "integer", "minimum": 0, "default": 48 },
        "sitemap_undated": { "type": "string", "enum": ["take", "skip"], "default": "take", "description": "entries without a date" },
        "tags": texts,
        "important": { "type": "boolean", "description": "all its documents are important" },
        "important_tags": { "type": "array", "items": text(), "description": "documents with one of these tags are important" },
        "license": { "type": "string", "enum": ["public-domain", "rss", "restricted", "api"] },
        "content_type": text(),
        "user_agent": text(),
        "strip_params": texts,
        "keep_params": texts,
        "keep_trailing_slash": flag,
        "rate_limit": { "type": "number", "minimum": 0.001, "maximum": 100 },
        "recrawl": request(json!({ "min_hours": { "type": "number" }, "max_hours": { "type": "number" } }), &["min_hours", "max_hours"]),
        "retries": request(json!({ "max": { "type": "integer", "minimum": 0, "maximum": 50 }, "first_seconds": { "type": "integer", "minimum": 1, "maximum": 604_800 } }), &["max", "first_seconds"]),
        "selectors": request(json!({ "article": request(json!({
            "title": text(), "body": text(), "author": text(), "published": text(), "image": text(), "important": text(), "exclude": texts,
        }), &[]) }), &[]),
    });
    let fields = [listing, documents].into_iter().filter_map(|part| part.as_object().cloned());
    request(fields.flatten().collect::<Map<_, _>>().into(), &["url"])
}
