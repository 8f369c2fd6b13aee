//! Feeds in every format that is met in the wild: RSS 0.90 to 2.0, RDF, Atom
//! 0.3 and 1.0, JSON Feed 1.0 and 1.1.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::json;

use super::{Document, escape, http_date};
use crate::article::Article;
use crate::feed_format::FeedFormat;
use crate::site::{FeedSpec, Site};

/// An item as it will stand in the feed, defects of its fields included.
#[derive(Clone)]
pub(super) struct Item {
    pub(super) link: Option<String>,
    pub(super) guid: String,
    pub(super) guid_is_link: bool,
    pub(super) title: String,
    pub(super) published: Option<String>,
    pub(super) authors: Vec<String>,
    pub(super) section: &'static str,
    pub(super) summary: String,
    pub(super) content: Option<String>,
}

/// The feed as it reads at `now`.
pub(crate) fn feed(site: &Site, spec: &FeedSpec, now: Timestamp) -> Document {
    let articles: Vec<_> = site.latest(now, spec.window).collect();
    let changed = articles.iter().map(|article| article.changed(now)).max();
    let mut items: Vec<_> = articles
        .iter()
        .map(|article| item(site, spec, article, now))
        .collect();
    if let Some(defect) = spec.defect {
        defect.spoil_items(&mut items);
    }
    let text = match spec.format {
        FeedFormat::Rss090 | FeedFormat::Rss1 => rdf(site, spec.format, &items),
        FeedFormat::Rss091 => rss(site, "0.91", &items),
        FeedFormat::Rss092 => rss(site, "0.92", &items),
        FeedFormat::Rss2 => rss(site, "2.0", &items),
        FeedFormat::Atom03 => atom(site, spec, &items, changed, "0.3"),
        FeedFormat::Atom1 => atom(site, spec, &items, changed, "1.0"),
        FeedFormat::Json1 => json_feed(site, spec, &items, "1"),
        FeedFormat::Json11 => json_feed(site, spec, &items, "1.1"),
    };
    let document = match spec.defect {
        Some(defect) => defect.spoil_document(spec.format, &text),
        None => Document::new(spec.format.content_type(), text),
    };
    document.modified(changed)
}

fn item(site: &Site, spec: &FeedSpec, article: &Article, now: Timestamp) -> Item {
    let mut link = site.absolute(article.announced_path());
    if site.tags_links {
        let joint = if link.contains('?') { '&' } else { '?' };
        let _ = write!(link, "{joint}utm_source=feed&utm_medium=rss");
    }
    let date = match spec.format {
        FeedFormat::Rss091 | FeedFormat::Rss092 | FeedFormat::Rss2 => http_date(article.published),
        _ => article.published.to_string(),
    };
    let paragraph = |text: &String| format!("<p>{}</p>", escape(text));
    Item {
        guid: site.absolute(&format!("/guid/{}", article.number)),
        guid_is_link: false,
        link: Some(link),
        title: article.title.clone(),
        published: Some(date),
        authors: article.authors.clone(),
        section: article.section,
        summary: article.summary(site),
        content: spec.full_text.then(|| {
            article
                .paragraphs(site, now)
                .iter()
                .map(paragraph)
                .collect()
        }),
    }
}

fn tag(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "      <{name}>{}</{name}>", escape(text));
}

fn rss(site: &Site, version: &str, items: &[Item]) -> String {
    let is_2 = version == "2.0";
    let namespaces = if is_2 {
        " xmlns:content=\"http://purl.org/rss/1.0/modules/content/\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\""
    } else {
        ""
    };
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rss version=\"{version}\"{namespaces}>\n  <channel>\n    <title>{}</title>\n    <link>{}</link>\n    <description>News of {0}</description>\n    <language>{}</language>\n",
        escape(&site.name),
        site.home(),
        site.language.code(),
    );
    for item in items {
        out.push_str("    <item>\n");
        tag(&mut out, "title", &item.title);
        if let Some(link) = &item.link {
            tag(&mut out, "link", link);
        }
        tag(&mut out, "description", &item.summary);
        if let Some(date) = &item.published {
            tag(&mut out, "pubDate", date);
        }
        if version != "0.91" {
            tag(&mut out, "category", item.section);
        }
        if is_2 {
            let _ = writeln!(
                out,
                "      <guid isPermaLink=\"{}\">{}</guid>",
                item.guid_is_link,
                escape(&item.guid)
            );
            for author in &item.authors {
                tag(&mut out, "dc:creator", author);
            }
            if let Some(content) = &item.content {
                let _ = writeln!(
                    out,
                    "      <content:encoded><![CDATA[{content}]]></content:encoded>"
                );
            }
        }
        out.push_str("    </item>\n");
    }
    out.push_str("  </channel>\n</rss>\n");
    out
}

fn rdf(site: &Site, format: FeedFormat, items: &[Item]) -> String {
    let namespace = match format {
        FeedFormat::Rss090 => "http://my.netscape.com/rdf/simple/0.9/",
        _ => "http://purl.org/rss/1.0/",
    };
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"{namespace}\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\n  <channel rdf:about=\"{home}\">\n    <title>{}</title>\n    <link>{home}</link>\n    <description>News</description>\n  </channel>\n",
        escape(&site.name),
        home = site.home(),
    );
    for item in items {
        let about = item.link.as_ref().unwrap_or(&item.guid);
        let _ = writeln!(out, "    <item rdf:about=\"{}\">", escape(about));
        tag(&mut out, "title", &item.title);
        if let Some(link) = &item.link {
            tag(&mut out, "link", link);
        }
        tag(&mut out, "description", &item.summary);
        if let Some(date) = &item.published {
            tag(&mut out, "dc:date", date);
        }
        for author in &item.authors {
            tag(&mut out, "dc:creator", author);
        }
        out.push_str("    </item>\n");
    }
    out.push_str("</rdf:RDF>\n");
    out
}

fn atom(
    site: &Site,
    spec: &FeedSpec,
    items: &[Item],
    changed: Option<Timestamp>,
    version: &str,
) -> String {
    let is_03 = version == "0.3";
    let root = if is_03 {
        "<feed version=\"0.3\" xmlns=\"http://purl.org/atom/ns#\">"
    } else {
        "<feed xmlns=\"http://www.w3.org/2005/Atom\">"
    };
    let (published_tag, updated_tag) = if is_03 {
        ("issued", "modified")
    } else {
        ("published", "updated")
    };
    let changed = changed.unwrap_or(Timestamp::UNIX_EPOCH);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{root}\n  <title>{}</title>\n  <id>{home}</id>\n  <link rel=\"alternate\" type=\"text/html\" href=\"{home}\"/>\n  <link rel=\"self\" href=\"{}\"/>\n  <{updated_tag}>{changed}</{updated_tag}>\n",
        escape(&site.name),
        site.absolute(&spec.path),
        home = site.home(),
    );
    for item in items {
        out.push_str("    <entry>\n");
        tag(&mut out, "title", &item.title);
        tag(&mut out, "id", &item.guid);
        if let Some(link) = &item.link {
            let _ = writeln!(
                out,
                "      <link rel=\"alternate\" type=\"text/html\" href=\"{}\"/>",
                escape(link)
            );
        }
        if let Some(date) = &item.published {
            tag(&mut out, published_tag, date);
            tag(&mut out, updated_tag, date);
        }
        for author in &item.authors {
            let _ = writeln!(
                out,
                "      <author><name>{}</name></author>",
                escape(author)
            );
        }
        tag(&mut out, "summary", &item.summary);
        if let Some(content) = &item.content {
            let kind = if is_03 {
                "text/html\" mode=\"escaped"
            } else {
                "html"
            };
            let _ = writeln!(
                out,
                "      <content type=\"{kind}\">{}</content>",
                escape(content)
            );
        }
        out.push_str("    </entry>\n");
    }
    out.push_str("</feed>\n");
    out
}

fn json_feed(site: &Site, spec: &FeedSpec, items: &[Item], version: &str) -> String {
    let entry = |item: &Item| {
        let mut entry = json!({
            "id": item.guid,
            "title": item.title,
            "summary": item.summary,
            "tags": [item.section],
        });
        if let Some(link) = &item.link {
            entry["url"] = json!(link);
        }
        if let Some(date) = &item.published {
            entry["date_published"] = json!(date);
        }
        if let Some(content) = &item.content {
            entry["content_html"] = json!(content);
        }
        let names: Vec<_> = item
            .authors
            .iter()
            .map(|name| json!({ "name": name }))
            .collect();
        if version == "1.1" {
            entry["authors"] = json!(names);
        } else {
            entry["author"] = names.into_iter().next().unwrap_or_default();
        }
        entry
    };
    let feed = json!({
        "version": format!("https://jsonfeed.org/version/{version}"),
        "title": site.name,
        "home_page_url": site.home(),
        "feed_url": site.absolute(&spec.path),
        "items": items.iter().map(entry).collect::<Vec<_>>(),
    });
    format!("{feed:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed_format::FeedDefect;
    use crate::world::World;
    use crate::world_config::WorldConfig;

    fn small(format: FeedFormat, defect: Option<FeedDefect>) -> Document {
        let start = "2026-11-15T12:00:00Z".parse().expect("a constant");
        let config = WorldConfig {
            start,
            ..WorldConfig::new(7)
        };
        let spec = FeedSpec {
            path: "/feed".to_owned(),
            format,
            window: 3,
            full_text: true,
            defect,
        };
        feed(&World::new(config, 8080).site(0), &spec, start)
    }

    #[test]
    fn every_format_reads_as_it_should() {
        for format in FeedFormat::ALL {
            let document = small(*format, None);
            let text = String::from_utf8(document.body).unwrap();
            insta::assert_snapshot!(
                format!("{format:?}"),
                format!("{}\n\n{text}", document.content_type)
            );
        }
    }

    #[test]
    fn every_defect_shows_in_every_format_that_can_have_it() {
        for format in FeedFormat::ALL {
            let clean = small(*format, None);
            for defect in FeedDefect::ALL.iter().filter(|defect| defect.fits(*format)) {
                let spoiled = small(*format, Some(*defect));
                let differs =
                    (spoiled.content_type, &spoiled.body) != (clean.content_type, &clean.body);
                // Headlines without special characters have nothing to escape twice.
                assert!(
                    differs || *defect == FeedDefect::DoubleEscapedTitles,
                    "{defect:?} in {format:?}"
                );
            }
        }
    }
}
