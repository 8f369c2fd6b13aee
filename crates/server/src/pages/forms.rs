//! Forms and buttons that change something: each carries the CSRF token, and is
//! shown only to users whose role allows the change.

use maud::{Markup, PreEscaped, html};
use tidings_store::Role;

use crate::access::Principal;
use crate::request::CheckedRequest;

/// The hidden CSRF field of a form.
pub(super) fn csrf_input(principal: &Principal) -> Markup {
    html! { input type="hidden" name="csrf" value=(principal.csrf.as_deref().unwrap_or_default()); }
}

/// The hidden CSRF field of a form on the page of this request.
pub(super) fn csrf_field(request: &CheckedRequest) -> Markup {
    let principal = request.principal.as_ref();
    principal.map_or(PreEscaped(String::new()), csrf_input)
}

pub(super) fn has_role(request: &CheckedRequest, role: Role) -> bool {
    let principal = request.principal.as_ref();
    principal.is_some_and(|principal| principal.role >= role)
}

/// A button that changes something, for operators.
pub(super) fn button(
    request: &CheckedRequest,
    action: &str,
    label: &str,
    class: &str,
    confirmation: Option<&str>,
) -> Markup {
    html! {
        @if has_role(request, Role::Operator) {
            form.inline method="post" action=(action) data-confirm=[confirmation] {
                (csrf_field(request)) button class={ "small " (class) } { (label) }
            }
        }
    }
}
