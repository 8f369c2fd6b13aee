//! The settings in effect, where each comes from, and the version.

use maud::html;

use super::layout::page;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;

pub(crate) async fn show(request: CheckedRequest) -> HandlerResult {
    let settings = &request.app.options.settings;
    let content = html! {
        h1 { "Settings" }
        section.card {
            dl {
                dt { "Version" } dd { (env!("CARGO_PKG_VERSION")) }
                dt { "Store" } dd { (request.app.store.location()) }
                dt { "Listening on" } dd { (request.app.address) }
                dt { "Live streams" } dd { (request.app.streams.count()) }
                dt { "API" } dd { a href="/api" { "documentation" } " · " a href="/metrics" { "metrics" } }
            }
        }
        @if !settings.is_empty() {
            section.card {
                h2 { "Effective settings" }
                p.soft { "Change them in " code { "tidings.toml" } ", by environment variables or by flags, then restart." }
                table.list {
                    tr { th { "Setting" } th { "Value" } th { "Origin" } }
                    @for setting in settings { tr { td { code { (setting.key) } } td.u { @if setting.value.is_empty() { span.soft { "not set" } } @else { (setting.value) } } td.t { (setting.origin) } } }
                }
            }
        }
    };
    page(&request, "/settings", "Settings", &content)
}
