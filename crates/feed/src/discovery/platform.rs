//! Where known platforms keep the feeds of a page, by its address or by the
//! generator that the page names. A table of rules, one platform each.

use url::Url;

use super::page::Page;

/// Addresses to try, absolute or relative to the page.
pub(super) fn feeds(url: &Url, page: &Page) -> Vec<String> {
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host);
    let parts: Vec<&str> = url
        .path_segments()
        .map(|parts| parts.filter(|part| !part.is_empty()).collect())
        .unwrap_or_default();
    let mut found = by_host(host, &parts, url, page);
    found.extend(by_generator(&page.generator, &parts));
    found
}

fn by_host(host: &str, parts: &[&str], url: &Url, page: &Page) -> Vec<String> {
    let one = |address: String| vec![address];
    match (host, parts) {
        ("youtube.com" | "m.youtube.com", ["channel", id, ..]) => one(format!(
            "https://www.youtube.com/feeds/videos.xml?channel_id={id}"
        )),
        ("youtube.com" | "m.youtube.com", ["playlist"]) => {
            let list = url.query_pairs().find(|(key, _)| key == "list");
            list.map(|(_, id)| format!("https://www.youtube.com/feeds/videos.xml?playlist_id={id}"))
                .into_iter()
                .collect()
        }
        ("youtube.com" | "m.youtube.com", parts) => {
            let mut found = Vec::new();
            if let Some(id) = &page.youtube_channel {
                found.push(format!(
                    "https://www.youtube.com/feeds/videos.xml?channel_id={id}"
                ));
            } else if let ["user", name, ..] = parts {
                found.push(format!(
                    "https://www.youtube.com/feeds/videos.xml?user={name}"
                ));
            }
            found
        }
        (
            "reddit.com" | "old.reddit.com" | "new.reddit.com",
            [kind @ ("r" | "user" | "u"), name, ..],
        ) => {
            let kind = if *kind == "u" { "user" } else { kind };
            one(format!("https://www.reddit.com/{kind}/{name}/.rss"))
        }
        ("reddit.com", []) => one("https://www.reddit.com/.rss".to_owned()),
        ("github.com", [user]) => one(format!("https://github.com/{user}.atom")),
        ("github.com", [user, repository, ..]) => ["releases", "tags", "commits"]
            .iter()
            .map(|kind| format!("https://github.com/{user}/{repository}/{kind}.atom"))
            .collect(),
        ("gitlab.com", [user, project, ..]) => one(format!(
            "https://gitlab.com/{user}/{project}/-/tags?format=atom"
        )),
        ("medium.com", [name, ..]) => one(format!("https://medium.com/feed/{name}")),
        ("vimeo.com", [name, ..]) => one(format!("https://vimeo.com/{name}/videos/rss")),
        ("bsky.app", ["profile", name, ..]) => one(format!("https://bsky.app/profile/{name}/rss")),
        ("dev.to", [name, ..]) => one(format!("https://dev.to/feed/{name}")),
        ("news.ycombinator.com", _) => one("https://news.ycombinator.com/rss".to_owned()),
        ("arxiv.org", ["list", category, ..]) => {
            one(format!("https://rss.arxiv.org/rss/{category}"))
        }
        ("stackoverflow.com", ["questions", "tagged", tag, ..]) => {
            one(format!("https://stackoverflow.com/feeds/tag/{tag}"))
        }
        (host, ["questions", "tagged", tag, ..]) if host.ends_with(".stackexchange.com") => {
            one(format!("https://{host}/feeds/tag/{tag}"))
        }
        (host, _) if host == "stackoverflow.com" || host.ends_with(".stackexchange.com") => {
            one("/feeds".to_owned())
        }
        (host, _) if host.ends_with(".medium.com") || host.ends_with(".substack.com") => {
            one("/feed".to_owned())
        }
        (host, _) if host.contains(".blogspot.") => one("/feeds/posts/default".to_owned()),
        (host, _) if host.ends_with(".tumblr.com") => one("/rss".to_owned()),
        (host, parts) if host.ends_with(".wordpress.com") => wordpress(parts),
        // Mastodon and its relatives, on any host.
        (_, [name]) if name.starts_with('@') && name.len() > 1 => one(format!("/{name}.rss")),
        _ => Vec::new(),
    }
}

fn by_generator(generator: &str, parts: &[&str]) -> Vec<String> {
    let rules: &[(&str, &[&str])] = &[
        ("ghost", &["/rss/"]),
        ("hugo", &["/index.xml"]),
        ("jekyll", &["/feed.xml"]),
        ("eleventy", &["/feed.xml", "/feed/feed.xml"]),
        ("drupal", &["/rss.xml"]),
        ("joomla", &["/?format=feed&type=rss"]),
        ("typo3", &["/?type=100"]),
        ("blogger", &["/feeds/posts/default"]),
        ("squarespace", &["?format=rss", "/blog?format=rss"]),
        ("wix.com", &["/blog-feed.xml", "/feed.xml"]),
        ("discourse", &["/latest.rss"]),
        (
            "mediawiki",
            &["/index.php?title=Special:RecentChanges&feed=atom"],
        ),
        ("shopify", &["/blogs/news.atom"]),
        ("substack", &["/feed"]),
        ("movable type", &["/atom.xml", "/index.xml"]),
        ("pelican", &["/feeds/all.atom.xml"]),
        ("nikola", &["/rss.xml"]),
        ("serendipity", &["/index.php?/feeds/index.rss2"]),
    ];
    if generator.contains("wordpress") {
        return wordpress(parts);
    }
    let found = rules.iter().find(|(name, _)| generator.contains(name));
    let paths = found.map_or(&[][..], |(_, paths)| paths);
    paths.iter().map(|path| (*path).to_owned()).collect()
}

/// Every list of posts has a feed below it.
fn wordpress(parts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    if let [kind @ ("category" | "tag" | "author"), name, ..] = parts {
        found.push(format!("/{kind}/{name}/feed/"));
    }
    found.push("/feed/".to_owned());
    found.push("/?feed=rss2".to_owned());
    found
}
