//! Logging in with a token, and out.

use axum::response::Response;
use http::{HeaderValue, header};
use maud::{Markup, html};

use super::layout::{document, html_response, redirect};
use crate::access::COOKIE;
use crate::problem::Problem;
use crate::request::CheckedRequest;
use crate::response::HandlerResult;
use crate::sender::Sender;

pub(crate) async fn show(request: CheckedRequest) -> HandlerResult {
    let next = request.params.text("next").unwrap_or("/").to_owned();
    Ok(html_response(&document(
        None,
        "",
        "Log in",
        &form(&next, None),
    )))
}

fn form(next: &str, error: Option<&str>) -> Markup {
    html! {
        div.login {
            p.brand { img src="/icon.svg" alt=""; "Tidings" }
            form.card method="post" action="/login" {
                @if let Some(error) = error { p.notice.bad role="alert" { (error) } }
                label.field {
                    "Token"
                    input type="password" name="token" required autofocus autocomplete="current-password" placeholder="tdg_…";
                }
                input type="hidden" name="next" value=(next);
                p { button.main.wide { "Log in" } }
                p.soft {
                    "The first start prints a token. Create another one with "
                    code { "tidings token create NAME --role admin" } "."
                }
            }
        }
    }
}

pub(crate) async fn log_in(request: CheckedRequest) -> HandlerResult {
    let mut fields = request.form();
    let secret = fields.remove("token").unwrap_or_default();
    let next = fields.remove("next").unwrap_or_default();
    match request.app.access.log_in(&secret, request.sender).await {
        Ok(value) => {
            let response = redirect(own_path(&next))?;
            with_cookie(response, &value, 12 * 3600, request.sender)
        }
        Err(problem) => {
            let page = document(None, "", "Log in", &form(&next, Some(&problem.detail)));
            let mut response = html_response(&page);
            problem.apply_to(&mut response);
            Ok(response)
        }
    }
}

pub(crate) async fn log_out(request: CheckedRequest) -> HandlerResult {
    request.app.access.log_out(&request.headers);
    with_cookie(redirect("/login")?, "", 0, request.sender)
}

fn with_cookie(mut response: Response, value: &str, seconds: u32, sender: Sender) -> HandlerResult {
    let secure = if sender.is_https { "; Secure" } else { "" };
    let cookie =
        format!("{COOKIE}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    let value = HeaderValue::from_str(&cookie).map_err(Problem::internal)?;
    response.headers_mut().insert(header::SET_COOKIE, value);
    Ok(response)
}

/// Only a path of this server: one slash, then nothing that browsers read as another.
fn own_path(next: &str) -> &str {
    let is_own = next.starts_with('/')
        && !next[1..].starts_with(['/', '\\'])
        && next.bytes().all(|byte| byte.is_ascii_graphic());
    if is_own { next } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::own_path;

    #[test]
    fn redirects_stay_on_this_server() {
        for next in [
            "//evil.example",
            "/\\evil.example",
            "https:evil.example",
            "https://evil.example",
            "javascript:1",
            "",
            "evil",
            "/\t/evil",
            "/a\r\nb",
            "/é",
        ] {
            assert_eq!(own_path(next), "/", "{next:?}");
        }
        for next in ["/", "/frontier?status=dead", "/sources/12"] {
            assert_eq!(own_path(next), next);
        }
    }
}
