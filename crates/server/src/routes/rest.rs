//! The routes of the API, and those that machines ask for: health and metrics.

use super::{
    ADMIN, AFTER, AFTER_ID, FRONTIER_ID, ID, Kind, LIMIT, OPEN, OPERATOR, ORDERS, ORIGINS, Param,
    Q, Route, STATUSES, Takes, VIEWER, Verb, by, needed, param,
};
use crate::{api, openapi};

const SOURCE: Param = param(
    "source_id",
    Kind::Number {
        least: 0,
        most: super::MOST_ID,
    },
    "only of this source",
);
const HOST: Param = needed("host", Kind::Text, "host key, for example example.com");
const SINK: Param = needed("sink", Kind::Text, "name of the sink");
const FORMAT: Param = needed(
    "format",
    Kind::OneOf(&["opml", "csv", "jsonl"]),
    "how the list is written",
);
const DRY_RUN: Param = param(
    "dry_run",
    Kind::Flag,
    "say what would happen, write nothing",
);

const fn get(path: &'static str, summary: &'static str, handler: super::Handler) -> Route {
    Route::new(Verb::Get, path, VIEWER, summary, handler)
}

const fn post(path: &'static str, summary: &'static str, handler: super::Handler) -> Route {
    Route::new(Verb::Post, path, OPERATOR, summary, handler)
}

const fn put(path: &'static str, summary: &'static str, handler: super::Handler) -> Route {
    Route::new(Verb::Put, path, OPERATOR, summary, handler)
}

const fn delete(path: &'static str, summary: &'static str, handler: super::Handler) -> Route {
    Route::new(Verb::Delete, path, OPERATOR, summary, handler)
}

const fn for_admins(route: Route) -> Route {
    Route {
        role: ADMIN,
        ..route
    }
}

const fn for_all(route: Route) -> Route {
    Route {
        role: OPEN,
        ..route
    }
}

#[rustfmt::skip]
pub(super) static ROUTES: &[Route] = &[
    get("/api/v1/frontier", "URLs that match, page by page", by!(api::frontier::list))
        .with(&[LIMIT, AFTER, param("order", Kind::OneOf(ORDERS), "what comes first"), param("status", Kind::OneOf(STATUSES), "where they stand"),
            SOURCE, param("host", Kind::Text, "only of this host"), param("origin", Kind::OneOf(ORIGINS), "how they were found"),
            param("reason", Kind::Text, "why they are dead or wait"), param("q", Kind::Text, "part of the URL")]).gives("UrlList"),
    get("/api/v1/frontier/stats", "How many URLs are where", by!(api::frontier::stats))
        .with(&[param("host", Kind::Text, "only of this host")]).gives("Stats"),
    post("/api/v1/frontier/submit", "Add one URL", by!(api::frontier::submit)).takes(Takes::Json("Submission")).gives("Submitted"),
    post("/api/v1/frontier/submit/bulk", "Add up to 100,000 URLs, with a verdict on each", by!(api::bulk::submit))
        .takes(Takes::Bulk).gives("BulkSubmitted").within(120),
    post("/api/v1/frontier/bulk", "Retry or delete all that match, after a preview", by!(api::bulk::change))
        .takes(Takes::Json("BulkChange")).gives("BulkChanged").within(600),
    get("/api/v1/frontier/{id}", "One URL", by!(api::frontier::one)).with(&[FRONTIER_ID]).gives("Url"),
    post("/api/v1/frontier/{id}/retry", "Make a URL due now", by!(api::frontier::retry)).with(&[FRONTIER_ID]).gives("Changed"),
    delete("/api/v1/frontier/{id}", "Take a URL out", by!(api::frontier::remove)).with(&[FRONTIER_ID]).gives("Changed"),
    get("/api/v1/frontier/{id}/events", "What happened to a URL", by!(api::frontier::events)).with(&[FRONTIER_ID]).gives("EventList"),
    get("/api/v1/explain", "The whole story of a URL", by!(api::frontier::explain)).with(&[needed("url", Kind::Text, "the URL")]).gives("Explanation"),

    get("/api/v1/sources", "All sources, page by page", by!(api::sources::list)).with(&[LIMIT, AFTER_ID]).gives("SourceList"),
    post("/api/v1/sources", "Add a source", by!(api::sources::add)).takes(Takes::Json("SourceDraft")).gives("Source"),
    get("/api/v1/sources/export", "All sources as a list to take away", by!(api::sources::export)).with(&[FORMAT]).gives("text/x-opml"),
    post("/api/v1/sources/import", "Add the sources of a list", by!(api::sources::import))
        .with(&[FORMAT, DRY_RUN]).takes(Takes::List).gives("ImportReport").within(120),
    post("/api/v1/sources/discover", "The feeds and sitemaps of a site, the best first", by!(api::sources::discover))
        .takes(Takes::Json("Address")).gives("CandidateList").within(120),
    post("/api/v1/sources/test", "Try selectors on a page; keeps nothing", by!(api::sources::test))
        .takes(Takes::Json("SelectorTest")).gives("TestedPage").within(60),
    get("/api/v1/sources/schemas", "What can be set of a source", by!(api::sources::schemas)).gives("Schema"),
    get("/api/v1/sources/{id}", "One source with its feeds", by!(api::sources::one)).with(&[ID]).gives("SourceWithFeeds"),
    put("/api/v1/sources/{id}", "Replace what is set of a source", by!(api::sources::change)).with(&[ID]).takes(Takes::Json("SourceDraft")).gives("Source"),
    delete("/api/v1/sources/{id}", "Remove a source; its documents stay", by!(api::sources::remove)).with(&[ID]).gives("Changed"),
    post("/api/v1/sources/{id}/enable", "Go on with a source", by!(api::sources::enable)).with(&[ID]).gives("Source"),
    post("/api/v1/sources/{id}/disable", "Stop a source, for a reason", by!(api::sources::disable)).with(&[ID]).takes(Takes::Json("Reason")).gives("Source"),
    post("/api/v1/sources/{id}/fire", "Poll its feed now, once a minute at most", by!(api::sources::poll_source)).with(&[ID, DRY_RUN]).gives("Fired").within(120),
    get("/api/v1/sources/{id}/fetch-log", "The last polls of its feeds", by!(api::sources::fetch_log)).with(&[ID, LIMIT]).gives("FetchLog"),

    get("/api/v1/hosts", "All hosts, page by page", by!(api::hosts::list)).with(&[LIMIT, AFTER]).gives("HostList"),
    get("/api/v1/hosts/{host}", "One host with its robots.txt and URLs in numbers", by!(api::hosts::one)).with(&[HOST]).gives("HostDetail"),
    put("/api/v1/hosts/{host}", "How a host may be asked", by!(api::hosts::change)).with(&[HOST]).takes(Takes::Json("HostLimits")).gives("Host"),
    post("/api/v1/hosts/{host}/block", "Leave a host alone for a while", by!(api::hosts::block)).with(&[HOST]).takes(Takes::Json("HostBlock")).gives("Host"),
    post("/api/v1/hosts/{host}/unblock", "Ask a host again", by!(api::hosts::unblock)).with(&[HOST]).gives("Host"),

    get("/api/v1/feeds", "Feeds and sitemaps with their health", by!(api::feeds::list)).with(&[LIMIT, AFTER_ID]).gives("FeedList"),
    get("/api/v1/feeds/{id}", "One feed with its last polls", by!(api::feeds::one)).with(&[ID, LIMIT]).gives("FeedWithLog"),
    post("/api/v1/feeds/{id}/wake", "Make a feed due now; a paused one goes on", by!(api::feeds::wake)).with(&[ID]).gives("Changed"),

    get("/api/v1/documents", "All documents in the order of their ids", by!(api::documents::list)).with(&[LIMIT, AFTER]).gives("DocumentList"),
    get("/api/v1/documents/changes", "New and changed documents after a cursor", by!(api::documents::changes)).with(&[LIMIT, AFTER]).gives("ChangeList"),
    get("/api/v1/documents/stream", "New and changed documents as they come; Last-Event-ID resumes", by!(api::stream::documents))
        .with(&[AFTER]).gives("text/event-stream"),
    get("/api/v1/documents/search", "Full-text search", by!(api::documents::search))
        .with(&[Q, param("source", Kind::Text, "name of the source"), param("tag", Kind::Text, "only with this tag"),
            param("language", Kind::Text, "for example en"), param("since", Kind::Time, "published then or later"), param("until", Kind::Time, "published before then"),
            LIMIT, param("offset", Kind::Number { least: 0, most: 10_000 }, "leave out so many of the best")]).gives("SearchResults"),
    get("/api/v1/documents/{id}", "One document", by!(api::documents::one)).with(&[FRONTIER_ID]).gives("Document"),

    get("/api/v1/sinks", "How every sink stands", by!(api::sinks::list)).gives("SinkList"),
    get("/api/v1/sinks/{sink}/dead", "What a sink could not take, and why", by!(api::sinks::dead)).with(&[SINK, LIMIT, AFTER]).gives("DeadLetterList"),
    post("/api/v1/sinks/{sink}/retry", "Give its dead letters another try", by!(api::sinks::retry)).with(&[SINK]).gives("Changed"),
    post("/api/v1/sinks/{sink}/replay", "Send everything again, or what changed since", by!(api::sinks::replay)).with(&[SINK]).takes(Takes::Json("Replay")).gives("Changed").within(300),

    get("/api/v1/tasks/{id}", "Something that was asked for, and how it stands", by!(api::tasks::task)).with(&[ID]).gives("Task"),
    get("/api/v1/runs", "The last collection runs", by!(api::tasks::runs)).with(&[LIMIT, AFTER_ID]).gives("RunList"),
    get("/api/v1/events", "What happens to URLs, as it happens; Last-Event-ID resumes", by!(api::stream::events))
        .with(&[AFTER_ID]).gives("text/event-stream"),

    post("/collect", "Ask all sources, or some, once: what is new is submitted", by!(api::collect::run))
        .takes(Takes::Json("CollectOrder")).gives("Collected").within(1800),
    Route { role: OPERATOR, ..get("/collect/test", "What one source would bring; writes nothing", by!(api::collect::test)) }
        .with(&[needed("source", Kind::Text, "name of the source")]).gives("CheckedSource").within(180),

    for_admins(get("/api/v1/tokens", "All tokens, without their secrets", by!(api::tokens::list)).gives("TokenList")),
    for_admins(post("/api/v1/tokens", "Make a token; its secret is shown once", by!(api::tokens::add)).takes(Takes::Json("TokenDraft")).gives("NewToken")),
    for_admins(delete("/api/v1/tokens/{id}", "Revoke a token", by!(api::tokens::revoke)).with(&[ID]).gives("Changed")),

    for_admins(get("/api/v1/audit", "Who changed what, and whether it was let through", by!(api::audit::list)).with(&[LIMIT, AFTER_ID]).gives("AuditList")),

    get("/api/v1/openapi.json", "This API", by!(openapi::document)).gives("Schema"),
    get("/metrics", "Numbers for Prometheus", by!(api::health::metrics)).gives("text/plain"),
    for_all(get("/healthz", "Whether the process lives", by!(api::health::alive)).gives("Health")),
    for_all(get("/health", "The same under another name", by!(api::health::alive)).gives("Health")),
    for_all(get("/readyz", "Whether the store answers", by!(api::health::ready)).gives("Health")),
];
