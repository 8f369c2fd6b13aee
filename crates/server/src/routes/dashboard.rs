//! The pages, and the forms on them. They work without a script.

use super::{
    ADMIN, AFTER, AFTER_ID, FRONTIER_ID, ID, Kind, OPEN, OPERATOR, ORDERS, ORIGINS, Param, Q,
    Route, STATUSES, Surface, Takes, VIEWER, Verb, by, needed, param,
};
use crate::{assets, pages};

const fn page(path: &'static str, summary: &'static str, handler: super::Handler) -> Route {
    Route {
        surface: Surface::Page,
        gives: "text/html",
        ..Route::new(Verb::Get, path, VIEWER, summary, handler)
    }
}

const fn form(path: &'static str, summary: &'static str, handler: super::Handler) -> Route {
    Route {
        surface: Surface::Page,
        gives: "text/html",
        takes: Takes::Form,
        seconds: 120,
        ..Route::new(Verb::Post, path, OPERATOR, summary, handler)
    }
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

const DONE: Param = param("done", Kind::OneOf(pages::DONE), "what was just done");
const N: Param = param(
    "n",
    Kind::Number {
        least: 0,
        most: super::MOST_ID,
    },
    "how many",
);
const HOST: Param = needed("host", Kind::Text, "host key");
const SINK: Param = needed("sink", Kind::Text, "name of the sink");

#[rustfmt::skip]
pub(super) static ROUTES: &[Route] = &[
    for_all(page("/login", "Log in", by!(pages::login::show)).with(&[param("next", Kind::Text, "where to go then")])),
    for_all(form("/login", "Log in", by!(pages::login::log_in))),
    Route { role: VIEWER, ..form("/logout", "Log out", by!(pages::login::log_out)) },
    page("/", "Overview", by!(pages::overview::show)).with(&[DONE, N]),
    page("/frontier", "Frontier", by!(pages::frontier::show))
        .with(&[DONE, N, AFTER, param("order", Kind::OneOf(ORDERS), "what comes first"), param("status", Kind::OneOf(STATUSES), "where they stand"),
            param("source_id", Kind::Number { least: 0, most: super::MOST_ID }, "only of this source"), param("host", Kind::Text, "only of this host"),
            param("origin", Kind::OneOf(ORIGINS), "how they were found"), param("reason", Kind::Text, "why"), param("q", Kind::Text, "part of the URL")]),
    form("/frontier/submit", "Add URLs", by!(pages::frontier::submit)),
    Route { seconds: 600, ..form("/frontier/bulk", "Retry or delete all that match", by!(pages::frontier::bulk)) },
    page("/frontier/{id}", "One URL's timeline", by!(pages::timeline::show)).with(&[FRONTIER_ID, DONE, N]),
    form("/frontier/{id}/retry", "Make a URL due now", by!(pages::timeline::retry)).with(&[FRONTIER_ID]),
    form("/frontier/{id}/delete", "Take a URL out", by!(pages::timeline::delete)).with(&[FRONTIER_ID]),
    page("/explain", "Find a URL's timeline", by!(pages::timeline::find)).with(&[needed("url", Kind::Text, "the URL")]),
    page("/sources", "Sources", by!(pages::sources::show)).with(&[AFTER_ID, DONE, N]),
    form("/sources", "Add a source", by!(pages::source::add)),
    page("/sources/new", "New source", by!(pages::source::new)),
    form("/sources/discover", "Look for feeds of a site", by!(pages::source::discover)),
    form("/sources/import", "Add the sources of a list", by!(pages::sources::import)),
    page("/sources/{id}", "One source", by!(pages::source::show)).with(&[ID, DONE, N]),
    form("/sources/{id}", "Change a source", by!(pages::source::change)).with(&[ID]),
    form("/sources/{id}/fire", "Poll its feed now, or see what would be new", by!(pages::source::poll_source)).with(&[ID]),
    form("/sources/{id}/test", "Try its selectors on a page", by!(pages::selectors::test)).with(&[ID]),
    form("/sources/{id}/enable", "Go on with a source", by!(pages::source::enable)).with(&[ID]),
    form("/sources/{id}/disable", "Stop a source", by!(pages::source::disable)).with(&[ID]),
    form("/sources/{id}/delete", "Remove a source", by!(pages::source::delete)).with(&[ID]),
    page("/feeds", "Feeds", by!(pages::feeds::show)).with(&[AFTER_ID, DONE, N]),
    page("/feeds/{id}", "One feed", by!(pages::feeds::one)).with(&[ID, DONE, N]),
    form("/feeds/{id}/wake", "Make a feed due now", by!(pages::feeds::wake)).with(&[ID]),
    page("/hosts", "Hosts", by!(pages::hosts::show)).with(&[AFTER, DONE, N]),
    page("/hosts/{host}", "One host", by!(pages::hosts::one)).with(&[HOST, DONE, N]),
    form("/hosts/{host}", "How a host may be asked", by!(pages::hosts::change)).with(&[HOST]),
    form("/hosts/{host}/block", "Leave a host alone", by!(pages::hosts::block)).with(&[HOST]),
    form("/hosts/{host}/unblock", "Ask a host again", by!(pages::hosts::unblock)).with(&[HOST]),
    page("/documents", "Documents", by!(pages::documents::show)).with(&[Q, param("source", Kind::Text, "name of the source"),
        param("language", Kind::Text, "for example en"), param("offset", Kind::Number { least: 0, most: 10_000 }, "leave out so many")]),
    page("/documents/{id}", "One document", by!(pages::documents::one)).with(&[FRONTIER_ID]),
    page("/sinks", "Sinks", by!(pages::sinks::show)).with(&[DONE, N]),
    page("/sinks/{sink}", "One sink", by!(pages::sinks::one)).with(&[SINK, DONE, N]),
    form("/sinks/{sink}/retry", "Give its dead letters another try", by!(pages::sinks::retry)).with(&[SINK]),
    form("/sinks/{sink}/replay", "Send everything again", by!(pages::sinks::replay)).with(&[SINK]),
    for_admins(page("/tokens", "Tokens", by!(pages::tokens::show)).with(&[DONE, N])),
    for_admins(form("/tokens", "Make a token", by!(pages::tokens::add))),
    for_admins(form("/tokens/{id}/revoke", "Revoke a token", by!(pages::tokens::revoke)).with(&[ID])),
    for_admins(page("/audit", "Changes", by!(pages::audit::show)).with(&[AFTER_ID])),
    for_admins(page("/settings", "Settings", by!(pages::about::show))),
    page("/api", "The API, to read", by!(pages::reference::show)).with(&[Q]),
    for_all(page("/style.css", "The stylesheet", by!(assets::style))),
    for_all(page("/app.js", "The script", by!(assets::script))),
    for_all(page("/icon.svg", "The icon", by!(assets::icon))),
];
