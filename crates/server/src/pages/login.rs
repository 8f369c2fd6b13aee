//! Logging in with a token, and out.

use axum::response::Response;
use http::{HeaderValue, header};
use maud::{Markup, html};

use super::{respond, see, whole};
use crate::access::COOKIE;
use crate::call::{Answer, Call};
use crate::problem::Problem;

pub(crate) async fn show(call: Call) -> Answer {
    let next = call.text("next").unwrap_or("/").to_owned();
    Ok(respond(&whole(None, "", "Log in", &form(&next, None))))
}

fn form(next: &str, wrong: Option<&str>) -> Markup {
    html! {
        div.login {
            p.brand { img src="/icon.svg" alt=""; "Tidings" }
            form.card method="post" action="/login" {
                @if let Some(wrong) = wrong { p.notice.bad role="alert" { (wrong) } }
                label.field {
                    "Token"
                    input type="password" name="token" required autofocus autocomplete="current-password" placeholder="tdg_…";
                }
                input type="hidden" name="next" value=(next);
                p { button.main.wide { "Log in" } }
                p.soft {
                    "The first start prints a token. Make another one with "
                    code { "tidings token create NAME --role admin" } "."
                }
            }
        }
    }
}

pub(crate) async fn log_in(call: Call) -> Answer {
    let mut fields = call.form();
    let secret = fields.remove("token").unwrap_or_default();
    let next = fields.remove("next").unwrap_or_default();
    match call.app.access.log_in(&secret, call.peer).await {
        Ok(value) => {
            let cookie = format!("{COOKIE}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=43200");
            with_cookie(see(own_path(&next))?, &cookie)
        }
        Err(problem) => {
            let page = whole(None, "", "Log in", &form(&next, Some(&problem.detail)));
            let mut response = respond(&page);
            problem.mark(&mut response);
            Ok(response)
        }
    }
}

pub(crate) async fn log_out(call: Call) -> Answer {
    call.app.access.log_out(&call.headers);
    let cookie = format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0");
    with_cookie(see("/login")?, &cookie)
}

fn with_cookie(mut response: Response, cookie: &str) -> Answer {
    let value = HeaderValue::from_str(cookie).map_err(Problem::internal)?;
    response.headers_mut().insert(header::SET_COOKIE, value);
    Ok(response)
}

/// Only a path of this server: one slash, then none of what browsers take for one.
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
    fn nobody_is_sent_elsewhere() {
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
