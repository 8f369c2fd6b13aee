//! The settings that hold, where each comes from, and what this program is.

use maud::html;

use super::page;
use crate::call::{Answer, Call};

pub(crate) async fn show(call: Call) -> Answer {
    let settings = &call.app.options.settings;
    let content = html! {
        h1 { "Settings" }
        section.card {
            dl {
                dt { "Version" } dd { (env!("CARGO_PKG_VERSION")) }
                dt { "Store" } dd { (call.app.store.location()) }
                dt { "Listens on" } dd { (call.app.address) }
                dt { "Live streams" } dd { (call.app.open_streams()) }
                dt { "API" } dd { a href="/api" { "documentation" } " · " a href="/metrics" { "metrics" } }
            }
        }
        @if !settings.is_empty() {
            section.card {
                h2 { "What is set" }
                p.soft { "Change them in " code { "tidings.toml" } ", by environment variables or by flags, and start again." }
                table.list {
                    tr { th { "Setting" } th { "Value" } th { "From" } }
                    @for setting in settings { tr { td { code { (setting.key) } } td.u { @if setting.value.is_empty() { span.soft { "not set" } } @else { (setting.value) } } td.t { (setting.origin) } } }
                }
            }
        }
    };
    page(&call, "/settings", "Settings", &content)
}
