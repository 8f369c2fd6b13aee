//! Benchmarks outside of this program: `cargo bench` of the crates, and the
//! extractors side by side. Their figures are parsed from what they print.

use anyhow::Context as _;
use serde_json::Value as Json;

use super::super::chart::{Bar, Chart, Drawing, Line};
use super::super::numbers::{number, times};
use super::super::report::{Shown, Table};
use super::{Need, Part, Planned};

pub(super) const URL: Part = Part {
    name: "url",
    title: "URLs: from text to key",
    about: "Canonical URLs and their keys on one core, against a bare parse of the same strings with the `url` crate.",
    limits: "The CPU. A bare parse is a part of it: what the ratio has above 1 is the canonical form and its hash.",
    runs: |_| bench("tidings-url", "identity", ""),
    show: show_url,
};

pub(super) const FEED: Part = Part {
    name: "feed",
    title: "Feeds: reading them",
    about: "RSS, Atom and sitemaps on one core, in time on the processor, against feed-rs on the same bytes.",
    limits: "The CPU, for items more than for bytes: each has dates, links and names to be read, so that short ones are the slowest by
the megabyte.",
    runs: |_| bench("tidings-feed", "parsing", ""),
    show: show_feed,
};

pub(super) const NET: Part = Part {
    name: "net",
    title: "Net: pages through the HTTP client",
    about: "Pages per second from the simulated web, which runs in a process of its own on the same cores. The baseline is what the
server spends for the same pages.",
    limits: "The CPU, of which the server takes the larger part.",
    runs: |size| bench("tidings-net", "throughput", size.choose("", " -- quick", " -- quick")),
    show: show_net,
};

pub(super) const SEARCH: Part = Part {
    name: "search",
    title: "Embedded search",
    about: "Made-up news of 320 words: delivered in batches that are each committed, replaced, rebuilt, and searched. No peer runs
beside it.",
    limits: "Delivering commits each batch; rebuilding the index does not, and the ratio is what that costs.",
    runs: |size| bench("tidings-sinks", "search", size.choose("", " -- 5000", " -- 100")),
    show: show_search,
};

pub(super) const EXTRACT: Part = Part {
    name: "extract",
    title: "Extraction: the article of a page",
    about: "Extractors side by side on pages with reviewed truth: agreement of words on the half of the articles that our rules were not
tuned on, and pages per second of CPU of one thread. html5ever only parses.",
    limits: "The CPU of one thread; the row of html5ever is the price of a parse alone. `docs/EXTRACTION.md` lists what is left of the
errors.",
    runs: |_| vec![Planned::new("all extractors", Need::Corpus, "scripts/compare-extractors CORPUS".to_owned())],
    show: show_extract,
};

fn bench(package: &str, name: &str, more: &str) -> Vec<Planned> {
    let command = format!("cargo bench -p {package} --bench {name}{more}");
    vec![Planned::new("cargo bench", Need::Checkout, command)]
}

/// The lines of what was printed, if it was.
fn lines(measured: &[Json]) -> impl Iterator<Item = &str> {
    measured
        .iter()
        .filter_map(Json::as_str)
        .flat_map(str::lines)
}

/// The columns of a printed line: at least two spaces lie between them.
fn columns(line: &str) -> Vec<String> {
    let columns = line.split("  ").map(str::trim);
    columns
        .filter(|column| !column.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The number that a column begins with, whatever its unit.
fn figure(column: &str) -> Option<f64> {
    let end = column.find(|c: char| !c.is_ascii_digit() && c != '.');
    column[..end.unwrap_or(column.len())].parse().ok()
}

/// Fails unless something was read of what was printed, if anything was.
fn read<T>(rows: Vec<T>, measured: &[Json]) -> anyhow::Result<Vec<T>> {
    anyhow::ensure!(
        measured.is_empty() || !rows.is_empty(),
        "it printed no line with figures in their places"
    );
    Ok(rows)
}

fn show_url(measured: &[Json]) -> anyhow::Result<Shown> {
    let figures = |line: &str| -> Option<[f64; 4]> {
        let figures: Option<Vec<f64>> = columns(line).iter().map(|column| figure(column)).collect();
        figures?.try_into().ok()
    };
    let rows = read(lines(measured).filter_map(figures).collect(), measured)?;
    let finding = rows.last().map(|row: &[f64; 4]| {
        format!(
            "**{}** the time of a bare parse ({} URLs)",
            times(row[3]),
            number(row[0])
        )
    });
    let line = |name: &str, is_peer, column: usize| Line {
        name: name.to_owned(),
        is_peer,
        points: rows.iter().map(|row| (row[0], row[column])).collect(),
    };
    let cells = |row: &[f64; 4]| {
        let [urls, parse, keys, ratio] = *row;
        vec![number(urls), times(ratio), number(keys), number(parse)]
    };
    Ok(Shown {
        findings: finding.into_iter().collect(),
        tables: vec![Table::new(
            "Keys",
            &[
                "URLs",
                "time against a bare parse",
                "keys per second",
                "bare parses per second",
            ],
            rows.iter().map(cells).collect(),
        )],
        charts: vec![Chart {
            name: "url".to_owned(),
            title: "Keys of URLs, one core".to_owned(),
            drawing: Drawing::Lines {
                x: "URLs",
                y: "per second",
                lines: vec![line("keys", false, 2), line("bare parse", true, 1)],
            },
        }],
    })
}

/// One kind of feeds.
struct Feeds {
    what: String,
    megabytes: f64,
    ours: f64,
    theirs: f64,
    ratio: f64,
    streamed: f64,
}

fn show_feed(measured: &[Json]) -> anyhow::Result<Shown> {
    let row = |line: &str| {
        let columns = columns(line);
        let [what, megabytes, ours, theirs, ratio, streamed] = columns.as_slice() else {
            return None;
        };
        Some(Feeds {
            what: what.clone(),
            megabytes: figure(megabytes)?,
            ours: figure(ours)?,
            theirs: figure(theirs)?,
            ratio: figure(ratio)?,
            streamed: figure(streamed.strip_prefix("(item by item: ")?)?,
        })
    };
    let rows: Vec<Feeds> = read(lines(measured).filter_map(row).collect(), measured)?;
    let mut findings: Vec<String> = rows
        .iter()
        .map(|row| {
            format!(
                "**{}** the speed of feed-rs: {}",
                times(row.ratio),
                row.what
            )
        })
        .collect();
    // Its two sentences about sitemaps and memory, as they are.
    let sentences =
        lines(measured).filter(|line| line.starts_with("sitemap of") || line.contains(" items, "));
    findings.extend(sentences.map(str::to_owned));
    let cells = |row: &Feeds| {
        let rates = [row.megabytes, row.ours, row.streamed, row.theirs].map(number);
        [row.what.clone(), times(row.ratio)]
            .into_iter()
            .chain(rates)
            .collect()
    };
    let bars = rows.iter().flat_map(|row| {
        let bar = |who: &str, is_peer, value| Bar {
            name: format!("{}, {who}", row.what),
            is_peer,
            value,
        };
        [
            bar("Tidings", false, row.ours),
            bar("feed-rs", true, row.theirs),
        ]
    });
    Ok(Shown {
        findings,
        tables: vec![Table::new(
            "Feeds",
            &[
                "",
                "against feed-rs",
                "MB",
                "MB/s",
                "MB/s item by item",
                "feed-rs, MB/s",
            ],
            rows.iter().map(cells).collect(),
        )],
        charts: vec![Chart {
            name: "feed".to_owned(),
            title: "Reading feeds, one core".to_owned(),
            drawing: Drawing::Bars {
                unit: "MB per second",
                bars: bars.collect(),
            },
        }],
    })
}

fn show_net(measured: &[Json]) -> anyhow::Result<Shown> {
    let row = |line: &str| -> Option<[String; 7]> {
        let columns: [String; 7] = columns(line).try_into().ok()?;
        figure(&columns[0]).map(|_| columns)
    };
    let rows: Vec<[String; 7]> = read(lines(measured).filter_map(row).collect(), measured)?;
    let shares = rows
        .iter()
        .map(|row| Some((figure(&row[4])?, figure(&row[5])?)));
    let shares: Vec<(f64, f64)> = shares
        .collect::<Option<_>>()
        .context("the shares of the CPU")?;
    let sentence = |row: &[String; 7], share: &(f64, f64)| {
        format!(
            "**{}** the CPU time of the server: pages of {}, {} connections",
            times(share.0 / share.1),
            row[0],
            row[1]
        )
    };
    let findings = rows
        .iter()
        .zip(&shares)
        .map(|(row, share)| sentence(row, share));
    let bars = rows.iter().filter_map(|row| {
        Some(Bar {
            name: format!("{}, {} connections", row[0], row[1]),
            is_peer: false,
            value: figure(&row[2])?,
        })
    });
    Ok(Shown {
        findings: findings.collect(),
        tables: vec![Table::new(
            "Pages",
            &[
                "page",
                "connections",
                "pages per second",
                "MB/s",
                "our CPU",
                "the server's CPU",
                "µs per page, ours / the server's",
            ],
            rows.iter().map(|row| row.to_vec()).collect(),
        )],
        charts: vec![Chart {
            name: "net".to_owned(),
            title: "Pages through the HTTP client".to_owned(),
            drawing: Drawing::Bars {
                unit: "pages per second",
                bars: bars.collect(),
            },
        }],
    })
}

/// Its lines are sentences, each with its figures at the end.
fn show_search(measured: &[Json]) -> anyhow::Result<Shown> {
    let sentence = |line: &str| {
        let (what, figures) = line.split_once(": ")?;
        Some(vec![what.to_owned(), figures.to_owned()])
    };
    let rows = read(lines(measured).filter_map(sentence).collect(), measured)?;
    let rate = |row: &Vec<String>| Some((figure(&row[1])?, row[0].split(' ').next()?.to_owned()));
    // A number per second, not "for each second of one core".
    let is_rate = |figures: &str| {
        let unit = figures.split(' ').nth(2);
        unit.is_some_and(|unit| unit.starts_with("second"))
    };
    let rates: Vec<(f64, String)> = rows
        .iter()
        .filter(|row| is_rate(&row[1]))
        .filter_map(rate)
        .collect();
    let finding = match rates.as_slice() {
        [(delivered, _), (rebuilt, _), ..] => Some(format!(
            "**{}** the rate of delivering when the index is rebuilt",
            times(rebuilt / delivered)
        )),
        _ => None,
    };
    let bars = rates.into_iter().map(|(value, name)| Bar {
        name,
        is_peer: false,
        value,
    });
    Ok(Shown {
        findings: finding.into_iter().collect(),
        tables: vec![Table::new("Documents and queries", &["", ""], rows)],
        charts: vec![Chart {
            name: "search".to_owned(),
            title: "Documents into the embedded search".to_owned(),
            drawing: Drawing::Bars {
                unit: "documents per second",
                bars: bars.collect(),
            },
        }],
    })
}

const OURS: &str = "tidings";

fn show_extract(measured: &[Json]) -> anyhow::Result<Shown> {
    let speed = |line: &str| {
        let columns = columns(line);
        let [name, _, speed] = columns.as_slice() else {
            return None;
        };
        Some((name.clone(), figure(speed)?))
    };
    let speeds: Vec<(String, f64)> = read(lines(measured).filter_map(speed).collect(), measured)?;
    let score = |line: &str| -> Option<Vec<String>> {
        let cells = line.trim().trim_matches('|').split('|');
        let cells: Vec<String> = cells.map(|cell| cell.trim().to_owned()).collect();
        (cells.len() == 10 && cells[1] == "held out").then_some(cells)
    };
    let mut scores: Vec<Vec<String>> = lines(measured).filter_map(score).collect();
    scores.sort_by(|a, b| b[3].cmp(&a[3]));
    let of = |name: &str| {
        speeds
            .iter()
            .find(|speed| speed.0 == name)
            .map(|speed| speed.1)
    };
    let row = |score: &Vec<String>| {
        let mut cells = score.clone();
        cells.remove(1);
        cells.push(of(&score[0]).map_or("–".to_owned(), number));
        cells
    };
    let findings = of(OURS).into_iter().flat_map(|ours| {
        let others = speeds.iter().filter(|speed| speed.0 != OURS);
        others.map(move |(name, theirs)| {
            let ratio = times(ours / theirs);
            format!("**{ratio}** the pages per second of CPU of {name}")
        })
    });
    let bars = speeds.iter().map(|(name, value)| Bar {
        name: name.clone(),
        is_peer: name != OURS,
        value: *value,
    });
    Ok(Shown {
        findings: findings.collect(),
        tables: vec![Table::new(
            "Articles that the rules were not tuned on",
            &[
                "extractor",
                "pages",
                "word F1",
                "P",
                "R",
                "shingle F1",
                "title",
                "author",
                "date",
                "pages a CPU second (all pages)",
            ],
            scores.iter().map(row).collect(),
        )],
        charts: vec![Chart {
            name: "extract".to_owned(),
            title: "Extracting articles, one core".to_owned(),
            drawing: Drawing::Bars {
                unit: "pages per second of CPU",
                bars: bars.collect(),
            },
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(
        show: fn(&[Json]) -> anyhow::Result<Shown>,
        printed: &str,
    ) -> (Vec<String>, Vec<Vec<String>>) {
        let mut shown = show(&[Json::from(printed)]).expect("as the benchmark prints it");
        assert!(!shown.charts[0].is_empty());
        (shown.findings, shown.tables.remove(0).rows)
    }

    #[test]
    fn what_the_benchmarks_print_is_read() {
        let url = "     urls  bare parse/s        keys/s    ratio
     1000       2000000       1000000    2.00x
   100000       1900000       1000000    1.90x
";
        let (findings, rows) = shown(show_url, url);
        assert_eq!(
            findings,
            ["**1.90×** the time of a bare parse (100,000 URLs)"]
        );
        assert_eq!(rows[1], ["100,000", "1.90×", "1,000,000", "1,900,000"]);

        let feed = "feeds                                    MB      MB/s   feed-rs   ratio
mix of 200, shaped like real ones      40.1       501       211    2.4x   (item by item: 512 MB/s)
RSS, short items                       22.0       133        60    2.2x   (item by item: 140 MB/s)

sitemap of 50000 URLs, 14.1 MB: 670000 URLs/s, 189 MB/s
100,000 items, 65 MB: +0.0 MB item by item, +53 MB collected
";
        let (findings, rows) = shown(show_feed, feed);
        assert_eq!(findings.len(), 4);
        assert_eq!(
            rows[0],
            [
                "mix of 200, shaped like real ones",
                "2.40×",
                "40.1",
                "501",
                "512",
                "211"
            ]
        );

        let net = "page size  connections  pages/s  MB/s   our CPU  server's CPU   (µs per page)
   5.0 KB           16     6250   31.2  0.50 core  1.00 core         86 / 230
";
        let (findings, rows) = shown(show_net, net);
        assert_eq!(
            findings,
            ["**0.50×** the CPU time of the server: pages of 5.0 KB, 16 connections"]
        );
        assert_eq!(rows[0][6], "86 / 230");

        let search = "delivered 5000 documents of 320 words in 1.0s: 5000 per second, each batch of 2000 committed (slowest 400ms)
that took 1.2s of CPU: 4166 for each second of one core
replaced 1000 documents in 200ms
rebuilt in 400.0ms: 12500 per second
rebuilt: queries with 20 hits and snippets: median 1.40ms, p99 7.00ms, slowest 9.00ms (20000 hits)
";
        let (findings, rows) = shown(show_search, search);
        assert_eq!(
            findings,
            ["**2.50×** the rate of delivering when the index is rebuilt"]
        );
        assert_eq!(rows.len(), 4);

        let extract = "extractor                       pages  pages/CPU-s
tidings                           420          549
html5ever-parse-only              420          474
| extractor                    | half     | pages | word F1 | P      | R      | shingle F1 | title | author | date  |
| tidings                      | held out |   188 | 0.9510  | 0.9402 | 0.9765 | 0.9413     | 0.856 | 0.782  | 0.845 |
| tidings                      | tuned on |   172 | 0.9698  | 0.9626 | 0.9855 | 0.9614     | 0.913 | 0.713  | 0.881 |
";
        let (findings, rows) = shown(show_extract, extract);
        assert_eq!(
            findings,
            ["**1.16×** the pages per second of CPU of html5ever-parse-only"]
        );
        assert_eq!(
            rows,
            [[
                "tidings", "188", "0.9510", "0.9402", "0.9765", "0.9413", "0.856", "0.782",
                "0.845", "549"
            ]]
        );
    }

    #[test]
    fn what_can_not_be_read_is_no_result() {
        for show in [show_url, show_feed, show_net, show_search, show_extract] {
            assert!(show(&[Json::from("nothing like it")]).is_err());
            assert!(show(&[]).expect("nothing was measured").charts[0].is_empty());
        }
    }
}
