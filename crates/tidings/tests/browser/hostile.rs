//! A hostile site: attacks in its feeds, stories, errors, redirects and robots.txt.
//! They arrive as text; nothing of it may ever run.

use std::io;

use tidings_sim::{Act, RawServer};

/// Known attacks: in texts, attributes, URLs and templates, and markup that browsers
/// repair into something that runs.
pub(crate) const CORPUS: [&str; 26] = [
    "<script>alert(1)</script>",
    "\"><script>alert(1)</script>",
    "'><img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "--><script>alert(1)</script><!--",
    "]]><script>alert(1)</script>",
    "<img src=\"x\" onerror=\"alert(1)\">",
    "<body onload=alert(1)>",
    "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
    "<a href=\"javascript:alert(1)\">click</a>",
    "javascript:alert(1)//",
    "JaVaScRiPt&colon;alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "\" onfocus=alert(1) autofocus x=\"",
    "' onmouseover='alert(1)",
    "<math><mi//xlink:href=\"data:x,<script>alert(1)</script>\">",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
    "<details open ontoggle=alert(1)>",
    "<meta http-equiv=refresh content=\"0;url=javascript:alert(1)\">",
    "<base href=//alert(1).example/>",
    "{{constructor.constructor('alert(1)')()}}",
    "${alert(1)}#{alert(1)}<%= alert(1) %>",
    "&lt;script&gt;alert(1)&lt;/script&gt;\u{202e}<scr\u{200b}ipt>alert(1)</script>",
];

pub(crate) async fn start() -> io::Result<RawServer> {
    RawServer::start(([127, 0, 0, 1], 0).into(), |head| {
        let path = head.split(' ').nth(1).unwrap_or("/");
        let host = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("host").then(|| value.trim())
        });
        respond(host.unwrap_or_default(), path)
    })
    .await
}

fn respond(host: &str, path: &str) -> Vec<Act> {
    let number = path
        .rsplit('/')
        .next()
        .and_then(|n| n.parse::<usize>().ok());
    let attack = number.map(|n| CORPUS[n % CORPUS.len()]);
    match (path.split('/').nth(1), attack) {
        (Some("robots.txt"), _) => Act::answer(
            "200 OK\r\nContent-Type: text/plain",
            format!("# {}\nUser-agent: *\nAllow: /\n", CORPUS.join("\n# ")).as_bytes(),
        ),
        // Every fifth is not a feed at all.
        (Some("feed"), Some(attack)) if number.is_some_and(|n| n % 5 == 4) => Act::answer(
            "200 OK\r\nContent-Type: text/<script>alert(1)</script>",
            attack.as_bytes(),
        ),
        (Some("feed"), Some(attack)) => Act::answer(
            "200 OK\r\nContent-Type: application/rss+xml",
            feed(host, attack).as_bytes(),
        ),
        (Some("story"), Some(attack)) => Act::answer(
            "200 OK\r\nContent-Type: text/html; charset=utf-8",
            story(attack).as_bytes(),
        ),
        (Some("moved"), _) => {
            Act::answer("302 Found\r\nLocation: javascript:alert(1)//<script>", b"")
        }
        _ => Act::answer(
            "404 <script>alert(1)</script>\r\nContent-Type: text/html",
            b"<script>alert(1)</script>",
        ),
    }
}

/// Each feed lists every story; only its name differs.
fn feed(host: &str, attack: &str) -> String {
    let name = escaped(attack);
    let items: String = CORPUS
        .iter()
        .enumerate()
        .map(|(n, title)| {
            let title = escaped(title);
            format!(
                "<item><title>{title}</title><link>http://{host}/story/{n}</link><author>{title}</author>\
                 <category>{title}</category><description>{title}</description></item>"
            )
        })
        .collect();
    format!(
        "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>{name}</title><description>{name}</description>\
         <item><title>{name}</title><link>http://{host}/gone/{name}</link></item>{items}</channel></rss>"
    )
}

/// The attack as title, author and visible text, and as raw markup.
fn story(attack: &str) -> String {
    let text = escaped(attack);
    let paragraph = format!(
        "<p>The harbour office was told of {text} this morning, and the pilots who had seen it said that they \
         would rather have stayed at home than meet it again on a day like this one.</p>"
    );
    format!(
        "<!doctype html><html lang=en><head><title>{text}</title><meta property=og:title content=\"{text}\">\
         <meta name=author content=\"{text}\"></head><body><article><h1>{text}</h1>{}{attack}</article></body></html>",
        paragraph.repeat(5)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
