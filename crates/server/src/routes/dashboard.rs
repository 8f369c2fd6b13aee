//! The routes of the dashboard: pages, and the forms on them. They work without a
//! script.

use tidings_store::Role;

use super::common::{AFTER, AFTER_ID, FRONTIER_ID, HOST, ID, QUERY, SINK, SOURCE_ID};
use crate::expensive::Expensive;
use crate::params::{ORIGINS, Param, ParamKind, SORT_ORDERS, STATUSES};
use crate::route::{Handler, Method, OPERATOR, RequestBody, Route, Surface, VIEWER, handler};
use crate::{assets, pages};

const fn page(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route {
        surface: Surface::Page,
        response: "text/html",
        ..Route::new(Method::Get, path, VIEWER, summary, handler)
    }
}

const fn form(path: &'static str, summary: &'static str, handler: Handler) -> Route {
    Route {
        surface: Surface::Page,
        response: "text/html",
        body: RequestBody::Form,
        timeout_seconds: 120,
        ..Route::new(Method::Post, path, OPERATOR, summary, handler)
    }
}

const NOTICE: Param = Param::optional(
    "done",
    ParamKind::OneOf(pages::NOTICES),
    "the change that was just made",
);
const NOTICE_COUNT: Param = Param::optional("n", ParamKind::ID, "number of changed rows");

#[rustfmt::skip]
pub(super) static ROUTES: &[Route] = &[
    page("/login", "Log in", handler!(pages::login::show)).params(&[Param::optional("next", ParamKind::Text, "page to open after the login")]).public(),
    form("/login", "Log in", handler!(pages::login::log_in)).public(),
    form("/logout", "Log out", handler!(pages::login::log_out)).role(Role::Viewer),
    page("/", "Overview", handler!(pages::overview::show)).params(&[NOTICE, NOTICE_COUNT]),
    page("/frontier", "Frontier", handler!(pages::frontier::show))
        .params(&[NOTICE, NOTICE_COUNT, AFTER, Param::optional("order", ParamKind::OneOf(SORT_ORDERS), "sort order"), Param::optional("status", ParamKind::OneOf(STATUSES), "only with this status"),
            SOURCE_ID, Param::optional("host", ParamKind::Text, "only of this host"),
            Param::optional("origin", ParamKind::OneOf(ORIGINS), "only of this origin"), Param::optional("reason", ParamKind::Text, "only with this reason code"), Param::optional("q", ParamKind::Text, "substring of the URL")]),
    form("/frontier/submit", "Submit URLs", handler!(pages::frontier::submit)),
    form("/frontier/bulk", "Retry or delete all matching URLs", handler!(pages::frontier::bulk)).timeout(600),
    page("/frontier/{id}", "Show URL", handler!(pages::timeline::show)).params(&[FRONTIER_ID, NOTICE, NOTICE_COUNT]),
    form("/frontier/{id}/retry", "Retry URL now", handler!(pages::timeline::retry)).params(&[FRONTIER_ID]),
    form("/frontier/{id}/delete", "Delete URL", handler!(pages::timeline::delete)).params(&[FRONTIER_ID]),
    page("/explain", "Find URL", handler!(pages::timeline::find)).params(&[Param::required("url", ParamKind::Text, "the URL")]),
    page("/sources", "Sources", handler!(pages::sources::show)).params(&[AFTER_ID, NOTICE, NOTICE_COUNT]),
    form("/sources", "Add source", handler!(pages::source::add)),
    page("/sources/new", "New source", handler!(pages::source::new)),
    form("/sources/discover", "Discover the feeds of a site", handler!(pages::source::discover)).expensive(Expensive::Discover),
    form("/sources/import", "Import sources", handler!(pages::sources::import)),
    page("/sources/{id}", "Show source", handler!(pages::source::show)).params(&[ID, NOTICE, NOTICE_COUNT]),
    form("/sources/{id}", "Change source settings", handler!(pages::source::change)).params(&[ID]),
    form("/sources/{id}/poll", "Poll source now, or preview its items", handler!(pages::source::poll)).params(&[ID]),
    form("/sources/{id}/test", "Test selectors on a page", handler!(pages::selectors::test)).params(&[ID]).expensive(Expensive::Test),
    form("/sources/{id}/enable", "Resume source", handler!(pages::source::resume)).params(&[ID]),
    form("/sources/{id}/disable", "Pause source", handler!(pages::source::pause)).params(&[ID]),
    form("/sources/{id}/delete", "Delete source", handler!(pages::source::delete)).params(&[ID]),
    page("/feeds", "Feeds", handler!(pages::feeds::show)).params(&[AFTER_ID, NOTICE, NOTICE_COUNT]),
    page("/feeds/{id}", "Show feed", handler!(pages::feeds::detail)).params(&[ID, NOTICE, NOTICE_COUNT]),
    form("/feeds/{id}/resume", "Resume feed and poll it now", handler!(pages::feeds::resume)).params(&[ID]),
    page("/hosts", "Hosts", handler!(pages::hosts::show)).params(&[AFTER, NOTICE, NOTICE_COUNT]),
    page("/hosts/{host}", "Show host", handler!(pages::hosts::detail)).params(&[HOST, NOTICE, NOTICE_COUNT]),
    form("/hosts/{host}", "Set host limits", handler!(pages::hosts::change)).params(&[HOST]),
    form("/hosts/{host}/block", "Block host", handler!(pages::hosts::block)).params(&[HOST]),
    form("/hosts/{host}/unblock", "Unblock host", handler!(pages::hosts::unblock)).params(&[HOST]),
    page("/documents", "Documents", handler!(pages::documents::show)).params(&[QUERY, Param::optional("source", ParamKind::Text, "name of the source"),
        Param::optional("language", ParamKind::Text, "for example en"), Param::optional("offset", ParamKind::Number { min: 0, max: 10_000 }, "number of hits to skip")]),
    page("/documents/{id}", "Show document", handler!(pages::documents::detail)).params(&[FRONTIER_ID]),
    page("/sinks", "Sinks", handler!(pages::sinks::show)).params(&[NOTICE, NOTICE_COUNT]),
    page("/sinks/{sink}", "Show sink", handler!(pages::sinks::detail)).params(&[SINK, NOTICE, NOTICE_COUNT]),
    form("/sinks/{sink}/disable", "Disable sink", handler!(pages::sinks::disable)).params(&[SINK]),
    form("/sinks/{sink}/enable", "Enable sink", handler!(pages::sinks::enable)).params(&[SINK]),
    form("/sinks/{sink}/delete", "Remove sink", handler!(pages::sinks::remove)).params(&[SINK]),
    form("/sinks/{sink}/retry", "Retry dead letters", handler!(pages::sinks::retry)).params(&[SINK]),
    form("/sinks/{sink}/replay", "Replay documents", handler!(pages::sinks::replay)).params(&[SINK]),
    page("/tokens", "Tokens", handler!(pages::tokens::show)).params(&[NOTICE, NOTICE_COUNT]).role(Role::Admin),
    form("/tokens", "Create token", handler!(pages::tokens::add)).role(Role::Admin),
    form("/tokens/{id}/revoke", "Revoke token", handler!(pages::tokens::revoke)).params(&[ID]).role(Role::Admin),
    page("/audit", "Audit log", handler!(pages::audit::show)).params(&[AFTER_ID]).role(Role::Admin),
    page("/settings", "Settings", handler!(pages::settings::show)).role(Role::Admin),
    page("/api", "API reference", handler!(pages::reference::show)).params(&[QUERY]),
    page("/style.css", "Stylesheet", handler!(assets::style)).public(),
    page("/app.js", "Script", handler!(assets::script)).public(),
    page("/icon.svg", "Icon", handler!(assets::icon)).public(),
];
