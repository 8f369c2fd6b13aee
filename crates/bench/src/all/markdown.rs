//! The report as Markdown: ratios first, then figures, charts, what limits them,
//! and the commands that produced them. Pure.

use std::fmt::Write as _;

use super::report::{End, Fact, Report, Run, Section, Table};

/// `pictures` is the path from the page to the SVG files; empty, or with a slash
/// at its end.
pub(super) fn page(report: &Report, pictures: &str) -> String {
    let mut text = format!(
        "# Benchmarks\n\nWritten by `{}` on {}. Each part ran in processes of its own, one after the other, with its peers in\nthe same run. Rows are single runs: read differences below a fifth as noise. Ratios travel between machines, the\nrates do not, so run it on yours.\n\n",
        report.command, report.date
    );
    // Writing to a string can't fail.
    for warning in &report.warnings {
        let _ = writeln!(text, "> **{warning}**\n");
    }
    text.push_str(&facts("machine", &report.machine));
    text.push_str(&facts("version", &report.versions));
    for section in &report.sections {
        text.push_str(&one(section, pictures));
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn facts(what: &str, facts: &[Fact]) -> String {
    let rows = facts
        .iter()
        .map(|fact| vec![fact.name.to_owned(), fact.value.clone()]);
    table(&Table::new("", &[what, ""], rows.collect()))
}

fn one(section: &Section, pictures: &str) -> String {
    let mut text = format!("## {}\n\n{}\n\n", section.title, section.about);
    if let Some(reason) = &section.unread {
        let _ = writeln!(text, "**Its figures could not be read**: {reason}\n");
    }
    for finding in &section.shown.findings {
        let _ = writeln!(text, "- {finding}");
    }
    if !section.shown.findings.is_empty() {
        text.push('\n');
    }
    for one in &section.shown.tables {
        text.push_str(&table(one));
    }
    for chart in &section.shown.charts {
        let _ = writeln!(text, "![{}]({pictures}{})\n", chart.title, chart.file());
    }
    let _ = writeln!(text, "**What limits it.** {}\n", section.limits);
    let rows = section.runs.iter().map(run).collect();
    let header = ["run", "command", "load before", "taken"];
    text.push_str(&table(&Table::new("", &header, rows)));
    text
}

fn run(run: &Run) -> Vec<String> {
    let command = format!("`{}`", run.command);
    let (load, taken) = match &run.end {
        End::Measured(_) => (run.load_before.clone(), format!("{:.0} s", run.seconds)),
        End::LeftOut(reason) => (String::new(), format!("left out: {reason}")),
        End::Failed(reason) => (run.load_before.clone(), format!("**failed**: {reason}")),
    };
    vec![run.what.to_owned(), command, load, taken]
}

/// Nothing where there are no rows.
fn table(table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let mut text = match table.title.as_str() {
        "" => String::new(),
        title => format!("{title}:\n\n"),
    };
    let row = |cells: &[String]| {
        let cells = cells
            .iter()
            .map(|cell| cell.replace('|', "\\|").replace('\n', " "));
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    text.push_str(&row(&table.header));
    let _ = writeln!(text, "|{}", "---|".repeat(table.header.len()));
    for cells in &table.rows {
        text.push_str(&row(cells));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::super::chart::{Chart, Drawing};
    use super::super::report::Shown;
    use super::*;

    fn run(what: &'static str, end: End) -> Run {
        Run {
            what,
            command: format!("tidings-bench {what}"),
            load_before: "0.10 0.20 0.30".to_owned(),
            seconds: 12.4,
            end,
        }
    }

    #[test]
    fn ratios_come_first_and_nothing_is_hidden() {
        let rows = vec![vec!["a|b".to_owned(), "1".to_owned()]];
        let report = Report {
            date: "2026-11-15".to_owned(),
            command: "tidings-bench all".to_owned(),
            warnings: vec!["Only a try."],
            machine: vec![Fact {
                name: "cores",
                value: "2".to_owned(),
            }],
            versions: vec![Fact {
                name: "Tidings",
                value: "0.1.0".to_owned(),
            }],
            sections: vec![Section {
                name: "frontier",
                title: "Claims",
                about: "What is measured.",
                limits: "The disk.",
                runs: vec![
                    run("SQLite", End::Measured(serde_json::Value::Null)),
                    run("PostgreSQL", End::LeftOut("it is not installed".to_owned())),
                    run("worse", End::Failed("no room\nleft".to_owned())),
                ],
                unread: None,
                shown: Shown {
                    findings: vec!["6× the join query".to_owned()],
                    tables: vec![
                        Table::new("Per second", &["what", "n"], rows),
                        Table::new("Empty", &["what"], Vec::new()),
                    ],
                    charts: vec![Chart {
                        name: "claims".to_owned(),
                        title: "Claims per second".to_owned(),
                        drawing: Drawing::Bars {
                            unit: "per second",
                            bars: Vec::new(),
                        },
                    }],
                },
            }],
        };
        insta::assert_snapshot!(page(&report, "benchmarks/"), @r"
        # Benchmarks

        Written by `tidings-bench all` on 2026-11-15. Each part ran in processes of its own, one after the other, with its peers in
        the same run. Rows are single runs: read differences below a fifth as noise. Ratios travel between machines, the
        rates do not, so run it on yours.

        > **Only a try.**

        | machine |  |
        |---|---|
        | cores | 2 |

        | version |  |
        |---|---|
        | Tidings | 0.1.0 |

        ## Claims

        What is measured.

        - 6× the join query

        Per second:

        | what | n |
        |---|---|
        | a\|b | 1 |

        ![Claims per second](benchmarks/claims.svg)

        **What limits it.** The disk.

        | run | command | load before | taken |
        |---|---|---|---|
        | SQLite | `tidings-bench SQLite` | 0.10 0.20 0.30 | 12 s |
        | PostgreSQL | `tidings-bench PostgreSQL` |  | left out: it is not installed |
        | worse | `tidings-bench worse` | 0.10 0.20 0.30 | **failed**: no room left |
        ");
    }
}
