//! The comparison as a picture: which share of the items was found within which
//! time, as lines of text for a terminal or as SVG.

use std::fmt::Write as _;

use crate::simulate::compare::{Comparison, Row};
use crate::simulate::measure::Measured;

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Minutes that are marked on the axis, and what they are called.
const MARKS: [(f64, &str); 7] = [
    (1.0, "1 min"),
    (5.0, "5"),
    (15.0, "15"),
    (60.0, "1 h"),
    (360.0, "6 h"),
    (1440.0, "1 d"),
    (10_080.0, "1 w"),
];
/// Safe for colour-blind readers (Okabe and Ito).
const COLOURS: [&str; 4] = ["#999999", "#0072b2", "#d55e00", "#009e73"];

/// One line for each row: the higher the block, the larger the share of items
/// that were found by then.
pub fn chart(comparison: &Comparison) -> String {
    let mut text = String::from("Share of the items found within\n");
    for row in &comparison.rows {
        let blocks = row.measured.found_within.iter().map(|share| {
            let height = (share * 8.0).round().clamp(0.0, 8.0) as usize;
            BLOCKS[height]
        });
        let blocks: String = blocks.collect();
        // Writing to a string can't fail.
        let _ = writeln!(text, "{:<24}{}", label(row), blocks.trim_end());
    }
    let mut axis = String::new();
    for (minutes, name) in MARKS {
        let column = Measured::within()
            .take_while(|within| *within < minutes)
            .count();
        let _ = write!(
            axis,
            "{:1$}{name}",
            "",
            column.saturating_sub(axis.chars().count())
        );
    }
    let _ = writeln!(text, "{:24}{axis}", "");
    text
}

fn label(row: &Row) -> String {
    format!("{}, {}", row.policy, row.spends)
}

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 50.0;

/// A picture that stands alone.
pub fn svg(comparison: &Comparison) -> String {
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>
<text x="{LEFT}" y="24" font-size="15">Items found within a time after publication: {}, {} feeds, {:.0} days, seed {}</text>
"##,
        comparison.world, comparison.feeds, comparison.judged_days, comparison.seed
    );
    for percent in [0, 25, 50, 75, 100] {
        let y = y(f64::from(percent) / 100.0);
        let _ = writeln!(
            svg,
            r##"<path d="M{LEFT} {y:.1}H{:.1}" stroke="#dddddd"/><text x="{:.1}" y="{:.1}" text-anchor="end">{percent} %</text>"##,
            WIDTH - RIGHT,
            LEFT - 8.0,
            y + 4.0
        );
    }
    for (minutes, name) in MARKS {
        let x = x(minutes);
        let _ = writeln!(
            svg,
            r##"<path d="M{x:.1} {TOP}V{:.1}" stroke="#eeeeee"/><text x="{x:.1}" y="{:.1}" text-anchor="middle">{name}</text>"##,
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 18.0
        );
    }
    for (number, row) in comparison.rows.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let points = Measured::within().zip(&row.measured.found_within);
        let points = points.map(|(minutes, share)| format!("{:.1},{:.1}", x(minutes), y(*share)));
        let points = points.collect::<Vec<_>>().join(" ");
        let legend = TOP + 150.0 + 18.0 * number as f64;
        let _ = writeln!(
            svg,
            r#"<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>
<path d="M430 {:.1}H450" stroke="{colour}" stroke-width="3"/><text x="456" y="{legend:.1}">{}: mean {:.1} min, p90 {:.1} min</text>"#,
            legend - 4.0,
            label(row),
            row.measured.mean,
            row.measured.p90
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Logarithmic, from a minute to just over a week.
fn x(minutes: f64) -> f64 {
    let last = Measured::within().last().unwrap_or(1.0);
    LEFT + (WIDTH - LEFT - RIGHT) * minutes.ln() / last.ln()
}

fn y(share: f64) -> f64 {
    HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share
}
