//! The routes of the API, of health checks and of metrics.

use tidings_store::Role;

use super::common::{AFTER, AFTER_ID, FRONTIER_ID, HOST, ID, QUERY, SINK, SOURCE_ID};
use crate::api;
use crate::expensive::Expensive;
use crate::params::{ORIGINS, Param, ParamKind, SORT_ORDERS, STATUSES};
use crate::route::{Handler, Method, OPERATOR, RequestBody, Route, VIEWER, handler};

const LIMIT: Param = Param::optional(
    "limit",
    ParamKind::Number { min: 1, max: 1000 },
    "page size, 50 by default",
);
const FORMAT: Param = Param::required(
    "format",
    ParamKind::OneOf(&["opml", "csv", "jsonl"]),
    "format of the list",
);
const DRY_RUN: Param = Param::optional(
    "dry_run",
    ParamKind::Flag,
    "report the result, write nothing",
);

const DRY: Param = Param::optional(
    "dry",
    ParamKind::Flag,
    "report the result, write nothing; as `dry_run` of the body",
);
const WAIT: Param = Param::optional(
    "wait",
    ParamKind::Flag,
    "false: respond with 202 and the id of the task at once",
);

const fn get(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route::new(Method::Get, path, VIEWER, summary, handler)
}

const fn post(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route::new(Method::Post, path, OPERATOR, summary, handler)
}

const fn put(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route::new(Method::Put, path, OPERATOR, summary, handler)
}

const fn delete(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route::new(Method::Delete, path, OPERATOR, summary, handler)
}

#[rustfmt::skip]
pub(super) static ROUTES: &[Route] = &[
    get("/api/v1/frontier", "List URLs", handler!(api::frontier::list))
        .params(&[LIMIT, AFTER, Param::optional("order", ParamKind::OneOf(SORT_ORDERS), "sort order"), Param::optional("status", ParamKind::OneOf(STATUSES), "only with this status"),
            SOURCE_ID, Param::optional("host", ParamKind::Text, "only of this host"), Param::optional("origin", ParamKind::OneOf(ORIGINS), "only of this origin"),
            Param::optional("reason", ParamKind::Text, "only with this reason code"), Param::optional("q", ParamKind::Text, "substring of the URL")]).response("UrlList"),
    get("/api/v1/frontier/stats", "URL totals by status and origin", handler!(api::frontier::stats))
        .params(&[Param::optional("host", ParamKind::Text, "only of this host")]).response("Stats"),
    post("/api/v1/frontier/submit", "Submit URL", handler!(api::frontier::submit)).body(RequestBody::Json("Submission")).response("Submitted"),
    post("/api/v1/frontier/submit/bulk", "Submit up to 100,000 URLs, with a verdict on each", handler!(api::bulk::submit))
        .body(RequestBody::UrlList).response("BulkSubmitted").timeout(120),
    post("/api/v1/frontier/bulk", "Retry or delete all matching URLs; `preview` only counts them", handler!(api::bulk::change))
        .body(RequestBody::Json("BulkChange")).response("BulkChanged").timeout(600),
    get("/api/v1/frontier/{id}", "Show URL", handler!(api::frontier::get)).params(&[FRONTIER_ID]).response("Url"),
    post("/api/v1/frontier/{id}/retry", "Retry URL now", handler!(api::frontier::retry)).params(&[FRONTIER_ID]).response("Changed"),
    delete("/api/v1/frontier/{id}", "Delete URL", handler!(api::frontier::remove)).params(&[FRONTIER_ID]).response("Changed"),
    get("/api/v1/frontier/{id}/events", "URL history", handler!(api::frontier::events)).params(&[FRONTIER_ID]).response("EventList"),
    get("/api/v1/explain", "Explain URL: status, history, deliveries", handler!(api::frontier::explain)).params(&[Param::required("url", ParamKind::Text, "the URL")]).response("Explanation"),

    get("/api/v1/sources", "List sources", handler!(api::sources::list)).params(&[LIMIT, AFTER_ID]).response("SourceList"),
    post("/api/v1/sources", "Add source", handler!(api::sources::add)).body(RequestBody::Json("SourceDraft")).response("Source"),
    get("/api/v1/sources/export", "Export sources", handler!(api::sources::export)).params(&[FORMAT]).response("text/x-opml"),
    post("/api/v1/sources/import", "Import sources", handler!(api::sources::import))
        .params(&[FORMAT, DRY_RUN]).body(RequestBody::SourceList).response("ImportReport").timeout(120),
    post("/api/v1/sources/discover", "Discover the feeds and sitemaps of a site, best first", handler!(api::sources::discover))
        .body(RequestBody::Json("Address")).response("CandidateList").timeout(120).expensive(Expensive::Discover),
    post("/api/v1/sources/test", "Test selectors on a page; stores nothing", handler!(api::sources::test_selectors))
        .body(RequestBody::Json("SelectorTest")).response("TestedPage").timeout(60).expensive(Expensive::Test),
    get("/api/v1/sources/schemas", "Schema of source settings", handler!(api::sources::schema)).response("Schema"),
    get("/api/v1/sources/{id}", "Show source with its feeds", handler!(api::sources::get)).params(&[ID]).response("SourceWithFeeds"),
    put("/api/v1/sources/{id}", "Replace source settings", handler!(api::sources::change)).params(&[ID]).body(RequestBody::Json("SourceDraft")).response("Source"),
    delete("/api/v1/sources/{id}", "Delete source; its documents stay", handler!(api::sources::remove)).params(&[ID]).response("Changed"),
    post("/api/v1/sources/{id}/enable", "Resume source", handler!(api::sources::enable)).params(&[ID]).response("Source"),
    post("/api/v1/sources/{id}/disable", "Pause source, with a reason", handler!(api::sources::disable)).params(&[ID]).body(RequestBody::Json("Reason")).response("Source"),
    post("/api/v1/sources/{id}/poll", "Poll source now, at most once per minute", handler!(api::sources::poll_source)).params(&[ID, DRY_RUN, WAIT]).response("PolledSource").timeout(120),
    get("/api/v1/sources/{id}/fetch-log", "Fetch log of its feeds", handler!(api::sources::fetch_log)).params(&[ID, LIMIT]).response("FetchLog"),

    get("/api/v1/hosts", "List hosts", handler!(api::hosts::list)).params(&[LIMIT, AFTER]).response("HostList"),
    get("/api/v1/hosts/{host}", "Show host with its robots.txt and URL totals", handler!(api::hosts::get)).params(&[HOST]).response("HostDetail"),
    put("/api/v1/hosts/{host}", "Set host limits", handler!(api::hosts::change)).params(&[HOST]).body(RequestBody::Json("HostLimits")).response("Host"),
    post("/api/v1/hosts/{host}/block", "Block host", handler!(api::hosts::block)).params(&[HOST]).body(RequestBody::Json("HostBlock")).response("Host"),
    post("/api/v1/hosts/{host}/unblock", "Unblock host", handler!(api::hosts::unblock)).params(&[HOST]).response("Host"),

    get("/api/v1/feeds", "List feeds and sitemaps with their health", handler!(api::feeds::list)).params(&[LIMIT, AFTER_ID]).response("FeedList"),
    get("/api/v1/feeds/{id}", "Show feed with its fetch log", handler!(api::feeds::get)).params(&[ID, LIMIT]).response("FeedWithLog"),
    post("/api/v1/feeds/{id}/resume", "Resume feed and poll it now", handler!(api::feeds::resume)).params(&[ID]).response("Changed"),

    get("/api/v1/documents", "List documents in id order", handler!(api::documents::list)).params(&[LIMIT, AFTER]).response("DocumentList"),
    get("/api/v1/documents/changes", "List new and changed documents after a cursor", handler!(api::documents::changes)).params(&[LIMIT, AFTER]).response("ChangeList"),
    get("/api/v1/documents/stream", "Stream new and changed documents (SSE); Last-Event-ID resumes", handler!(api::stream::documents))
        .params(&[AFTER]).response("text/event-stream"),
    get("/api/v1/documents/search", "Search documents", handler!(api::documents::search))
        .params(&[QUERY, Param::optional("source", ParamKind::Text, "name of the source"), Param::optional("tag", ParamKind::Text, "only with this tag"),
            Param::optional("language", ParamKind::Text, "for example en"), Param::optional("since", ParamKind::Time, "published at or after this time"), Param::optional("until", ParamKind::Time, "published before this time"),
            LIMIT, Param::optional("offset", ParamKind::Number { min: 0, max: 10_000 }, "number of hits to skip")]).response("SearchResults"),
    get("/api/v1/documents/{id}", "Show document", handler!(api::documents::get)).params(&[FRONTIER_ID]).response("Document"),

    get("/api/v1/sinks", "List sinks with backlog and lag", handler!(api::sinks::list)).response("SinkList"),
    get("/api/v1/sinks/{sink}/dead", "List dead letters of a sink", handler!(api::sinks::dead)).params(&[SINK, LIMIT, AFTER]).response("DeadLetterList"),
    post("/api/v1/sinks/{sink}/disable", "Disable sink until it is enabled", handler!(api::sinks::disable)).params(&[SINK]).response("Changed"),
    post("/api/v1/sinks/{sink}/enable", "Enable sink and queue documents that it missed", handler!(api::sinks::enable)).params(&[SINK]).response("Changed").timeout(300),
    delete("/api/v1/sinks/{sink}", "Remove sink with its deliveries and dead letters", handler!(api::sinks::remove)).params(&[SINK]).response("Changed").timeout(300),
    post("/api/v1/sinks/{sink}/retry", "Retry dead letters", handler!(api::sinks::retry)).params(&[SINK]).response("RetriedDeadLetters"),
    post("/api/v1/sinks/{sink}/replay", "Replay all documents, or those fetched since a time", handler!(api::sinks::replay)).params(&[SINK]).body(RequestBody::Json("Replay")).response("Changed").timeout(300),

    get("/api/v1/tasks", "List tasks, the newest first", handler!(api::tasks::list)).params(&[LIMIT, AFTER_ID]).response("TaskList"),
    get("/api/v1/tasks/{id}", "Show task with its status and counts", handler!(api::tasks::task)).params(&[ID]).response("Task"),
    get("/api/v1/runs", "List collection runs", handler!(api::tasks::runs)).params(&[LIMIT, AFTER_ID]).response("RunList"),
    get("/api/v1/events", "Stream URL events (SSE); Last-Event-ID resumes", handler!(api::stream::events))
        .params(&[AFTER_ID]).response("text/event-stream"),

    post("/collect", "Poll all or some sources once and submit new items", handler!(api::collect::run))
        .params(&[DRY, WAIT]).body(RequestBody::Json("CollectRequest")).response("Collected").timeout(1800).expensive(Expensive::Collect),
    get("/collect/test", "Preview one source; writes nothing", handler!(api::collect::preview)).role(Role::Operator)
        .params(&[Param::required("source", ParamKind::Text, "name of the source")]).response("CheckedSource").timeout(180).expensive(Expensive::Test),

    get("/api/v1/tokens", "List tokens, without their secrets", handler!(api::tokens::list)).response("TokenList").role(Role::Admin),
    post("/api/v1/tokens", "Create token; its secret is shown once", handler!(api::tokens::add)).body(RequestBody::Json("TokenDraft")).response("NewToken").role(Role::Admin),
    delete("/api/v1/tokens/{id}", "Revoke token", handler!(api::tokens::revoke)).params(&[ID]).response("Changed").role(Role::Admin),

    get("/api/v1/audit", "Audit log: who changed what, allowed or denied", handler!(api::audit::list)).params(&[LIMIT, AFTER_ID]).response("AuditList").role(Role::Admin),

    get("/api/v1/openapi.json", "OpenAPI document", handler!(api::openapi::document)).response("Schema"),
    get("/metrics", "Metrics for Prometheus (OpenMetrics)", handler!(api::metrics::show)).response("application/openmetrics-text"),
    get("/healthz", "Liveness", handler!(api::health::alive)).response("Health").public(),
    get("/health", "Liveness (alias of /healthz)", handler!(api::health::alive)).response("Health").public(),
    get("/readyz", "Readiness: the store is available, and no file of this node is damaged", handler!(api::health::ready)).response("Health").public(),
];
