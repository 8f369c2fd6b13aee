//! What every page of a site has around its main part: head, menu, footer, and the
//! links of sites for readers that lead to no article.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::{Document, escape};
use crate::site::{Site, host_name};
use crate::text::SECTIONS;

/// Articles on one listing page.
pub(super) const PER_LISTING: u64 = 30;

pub(super) fn html(site: &Site, title: &str, head: &str, main: &str, now: Timestamp) -> Document {
    let junk = match site.is_for_readers {
        true => junk(site, now),
        false => String::new(),
    };
    let mut nav = String::new();
    for section in SECTIONS {
        let _ = write!(nav, "<a href=\"/section/{section}\">{section}</a> ");
    }
    let text = format!(
        "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n{head}<style>{STYLE}</style>\n</head>\n<body>\n<header><a class=\"brand\" href=\"/\">{}</a><nav>{nav}<a href=\"/members/\">members</a></nav></header>\n{junk}{main}<footer><p>We use cookies to make this site better. <a href=\"/privacy\">Privacy</a></p><p>&copy; {2}</p></footer>\n</body>\n</html>\n",
        site.language.code(),
        escape(title),
        escape(&site.name),
    );
    Document::new("text/html; charset=utf-8", text)
}

const STYLE: &str = "body{font:17px/1.6 Georgia,serif;max-width:44rem;margin:2rem auto;padding:0 1rem;color:#222}\
header{border-bottom:2px solid #222;margin-bottom:2rem}nav a{font:13px sans-serif;margin-right:.6rem;color:#666}\
.brand{font-size:1.6rem;font-weight:bold;color:inherit;text-decoration:none;display:block}\
.card{border-bottom:1px solid #ddd}.card h2{font-size:1.1rem;margin:.6rem 0 0}.card a{color:inherit}\
time,.byline,footer,aside{font:13px sans-serif;color:#777}";

/// Links of every page that lead to no article.
pub(super) const JUNK: [&str; 11] = [
    "/login",
    "/register",
    "/search",
    "/cart",
    "/about",
    "/contact",
    "/newsletter",
    "/tag/harbour",
    "/author/jo-ann-van-der-berg",
    "/privacy",
    "/print/1",
];

/// The rest of the menu, and the foot, of every page.
fn junk(site: &Site, now: Timestamp) -> String {
    let mut out = String::from("<nav>");
    for path in JUNK {
        let _ = write!(out, "<a href=\"{path}\">{}</a> ", path.trim_matches('/'));
    }
    if let Some(entry) = site.trap.and_then(|trap| trap.entry(now)) {
        let _ = write!(out, "<a href=\"{entry}\">What else</a> ");
    }
    let neighbour = host_name(site.seed, u32::from(site.index == 0));
    let port = site.authority.split(':').nth(1).unwrap_or_default();
    let _ = writeln!(
        out,
        "<a href=\"http://{neighbour}:{port}/section/world\">Our friends</a> \
         <a href=\"/media/front.jpg\">Picture</a> <a href=\"/report-of-the-year.pdf\">Report</a></nav>\
         <h4><a href=\"http://{neighbour}:{port}/2026/11/01/what-our-friends-have-to-say\">What our friends have to say</a></h4>"
    );
    out
}
