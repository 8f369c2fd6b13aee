//! What a run of all benchmarks gives, before it is Markdown, JSON or SVG: plain
//! values, and how numbers are written in them. Measures nothing, writes nothing.

use serde::Serialize;
use serde_json::Value as Json;

use super::chart::Chart;

/// The whole report.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) date: String,
    pub(super) command: String,
    /// Why its figures should not be taken for the real ones, if so.
    pub(super) warnings: Vec<&'static str>,
    pub(super) machine: Vec<Fact>,
    pub(super) versions: Vec<Fact>,
    pub(super) sections: Vec<Section>,
}

#[derive(Debug, Serialize)]
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) value: String,
}

/// One benchmark: its runs, and what is shown of them.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) limits: &'static str,
    pub(super) runs: Vec<Run>,
    /// Why nothing is shown of what was measured, if so.
    pub(super) unread: Option<String>,
    /// Made of the runs, which JSON has.
    #[serde(skip)]
    pub(super) shown: Shown,
}

/// One process that was started, or was not.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    pub(super) what: &'static str,
    pub(super) command: String,
    pub(super) load_before: String,
    pub(super) seconds: f64,
    #[serde(flatten)]
    pub(super) end: End,
}

/// How a run ended, with what it gave or with the reason.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    /// JSON of our own benchmarks, the text of others.
    Measured(Json),
    LeftOut(String),
    Failed(String),
}

impl Section {
    pub(super) fn has_failed(&self) -> bool {
        let failed = |run: &Run| matches!(run.end, End::Failed(_));
        self.unread.is_some() || self.runs.iter().any(failed)
    }
}

/// What the figures of a benchmark come to, the most telling first.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// Sentences; ratios against a peer or a baseline.
    pub(super) findings: Vec<String>,
    pub(super) tables: Vec<Table>,
    pub(super) charts: Vec<Chart>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) title: String,
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// One figure and where it belongs.
pub(super) struct Cell {
    pub(super) row: Vec<String>,
    pub(super) column: String,
    pub(super) text: String,
}

impl Table {
    pub(super) fn new(title: &str, header: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self {
            title: title.to_owned(),
            header: header.iter().map(|&name| name.to_owned()).collect(),
            rows,
        }
    }

    /// Rows and columns in the order in which they first come. `corner` names what
    /// distinguishes rows; a figure that is not there is a dash.
    pub(super) fn of(title: &str, corner: &[&str], cells: Vec<Cell>) -> Self {
        let mut header: Vec<String> = corner.iter().map(|&name| name.to_owned()).collect();
        let mut rows: Vec<Vec<String>> = Vec::new();
        for cell in &cells {
            if !header[corner.len()..].contains(&cell.column) {
                header.push(cell.column.clone());
            }
            if !rows.contains(&cell.row) {
                rows.push(cell.row.clone());
            }
        }
        for row in &mut rows {
            let text = |column: &String| {
                let is_it = |cell: &&Cell| cell.row == *row && cell.column == *column;
                let found = cells.iter().find(is_it);
                found.map_or("–".to_owned(), |cell| cell.text.clone())
            };
            let texts: Vec<String> = header[corner.len()..].iter().map(text).collect();
            row.extend(texts);
        }
        Self {
            title: title.to_owned(),
            header,
            rows,
        }
    }
}

/// The display name of an engine.
pub(super) fn engine(name: &str) -> &str {
    match name {
        "sqlite" => "SQLite",
        "postgres" => "PostgreSQL",
        "reference" => "join query",
        "scrapy" => "Scrapy",
        "+ trafilatura" => "Scrapy with trafilatura",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_the_order_and_shows_what_is_not_there() {
        let cell = |row: &str, column: &str, text: &str| Cell {
            row: vec![row.to_owned()],
            column: column.to_owned(),
            text: text.to_owned(),
        };
        let cells = vec![
            cell("b", "2", "b2"),
            cell("b", "1", "b1"),
            cell("a", "1", "a1"),
        ];
        let rows = vec![
            vec!["b".to_owned(), "b2".to_owned(), "b1".to_owned()],
            vec!["a".to_owned(), "–".to_owned(), "a1".to_owned()],
        ];
        let wanted = Table::new("t", &["what", "2", "1"], rows);
        assert_eq!(Table::of("t", &["what"], cells), wanted);
    }
}
