//! Numbers to pictures that stand alone: lines on logarithmic axes where sizes
//! grow tenfold, bars elsewhere; light and dark as the reader has it. Pure.

use std::fmt::Write as _;

use super::numbers::number;

#[derive(Debug)]
pub(super) struct Chart {
    /// Of its file, without the ending.
    pub(super) name: String,
    pub(super) title: String,
    pub(super) drawing: Drawing,
}

#[derive(Debug)]
pub(super) enum Drawing {
    Lines {
        x: &'static str,
        y: &'static str,
        lines: Vec<Line>,
    },
    Bars {
        /// What is measured, with its unit.
        unit: &'static str,
        bars: Vec<Bar>,
    },
}

#[derive(Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) is_peer: bool,
    pub(super) points: Vec<(f64, f64)>,
}

#[derive(Debug)]
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) is_peer: bool,
    pub(super) value: f64,
}

const WIDTH: f64 = 760.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 54.0;
/// Space of a line of text.
const ROW: f64 = 24.0;

/// Colours that are distinct with colour blindness too (after Okabe and
/// Ito), each with its brighter sister for dark pages.
const COLOURS: [(&str, &str); 6] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff9248"),
    ("#00785a", "#2ecc9b"),
    ("#8a4f9e", "#cf9fe0"),
    ("#7a6200", "#e6c229"),
    ("#5f6670", "#a9b1ba"),
];
const PEER: usize = COLOURS.len() - 1;

impl Chart {
    /// Nothing was measured that could be drawn.
    pub(super) fn is_empty(&self) -> bool {
        match &self.drawing {
            Drawing::Lines { lines, .. } => lines.iter().all(|line| line.points.is_empty()),
            Drawing::Bars { bars, .. } => bars.is_empty(),
        }
    }

    pub(super) fn file(&self) -> String {
        format!("{}.svg", self.name)
    }

    pub(super) fn svg(&self) -> String {
        match &self.drawing {
            Drawing::Lines { x, y, lines } => self.lines(x, y, lines),
            Drawing::Bars { unit, bars } => self.bars(unit, bars),
        }
    }

    fn lines(&self, x_label: &str, y_label: &str, lines: &[Line]) -> String {
        const HEIGHT: f64 = 400.0;
        const LEFT: f64 = 84.0;
        const RIGHT: f64 = 200.0;
        let points = || lines.iter().flat_map(|line| &line.points);
        let mut sizes: Vec<f64> = points().map(|point| point.0).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        let steps = steps(points().map(|point| point.1));
        let x = |value| LEFT + (WIDTH - LEFT - RIGHT) * share(value, &sizes);
        let y = |value| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share(value, &steps);
        let (right, floor) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let mut svg = self.begun(HEIGHT);
        // Writing to a string can't fail.
        for step in &steps {
            let (at, text) = (y(*step), number_short(*step));
            let _ = writeln!(
                svg,
                r#"<path class="grid" d="M{LEFT} {at:.1}H{right}"/><text class="quiet" x="{:.1}" y="{:.1}" text-anchor="end">{text}</text>"#,
                LEFT - 8.0,
                at + 4.0,
            );
        }
        for size in &sizes {
            let (at, text) = (x(*size), number_short(*size));
            let _ = writeln!(
                svg,
                r#"<path class="grid" d="M{at:.1} {TOP}V{floor}"/><text class="quiet" x="{at:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
                floor + 18.0,
            );
        }
        let _ = writeln!(
            svg,
            r#"<text class="quiet" x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>
<text class="quiet" transform="translate(16 {:.1}) rotate(-90)" text-anchor="middle">{}</text>"#,
            f64::midpoint(LEFT, right),
            HEIGHT - 12.0,
            escaped(x_label),
            f64::midpoint(TOP, floor),
            escaped(y_label),
        );
        let ends: Vec<f64> = lines
            .iter()
            .map(|line| line.points.last().map_or(TOP, |point| y(point.1)))
            .collect();
        let labels = spread(&ends, 18.0, floor);
        let mut colours = 0..PEER;
        for (line, label) in lines.iter().zip(labels) {
            let colour = match line.is_peer {
                true => PEER,
                false => colours.next().unwrap_or(0),
            };
            let dashes = match line.is_peer {
                true => r#" stroke-dasharray="6 4""#,
                false => "",
            };
            let path: Vec<String> = line
                .points
                .iter()
                .map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1)))
                .collect();
            let _ = writeln!(
                svg,
                r#"<polyline class="line c{colour}"{dashes} points="{}"/>"#,
                path.join(" ")
            );
            for point in &line.points {
                let _ = writeln!(
                    svg,
                    r#"<circle class="dot c{colour}" cx="{:.1}" cy="{:.1}" r="3.5"><title>{}: {}</title></circle>"#,
                    x(point.0),
                    y(point.1),
                    escaped(&line.name),
                    number(point.1),
                );
            }
            let last = line.points.last().map(|point| number(point.1));
            let _ = writeln!(
                svg,
                r#"<text class="t{colour}" x="{:.1}" y="{:.1}">{} {}</text>"#,
                right + 10.0,
                label + 4.0,
                escaped(&line.name),
                last.unwrap_or_default(),
            );
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn bars(&self, unit: &str, bars: &[Bar]) -> String {
        const RIGHT: f64 = 80.0;
        /// Wide enough for most letters of 13 pixels.
        const LETTER: f64 = 7.0;
        let longest = bars.iter().map(|bar| bar.name.chars().count()).max();
        let left = (longest.unwrap_or(0) as f64 * LETTER + 20.0).clamp(80.0, 420.0);
        let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
        let scale = match most > 0.0 {
            true => (WIDTH - left - RIGHT) / most,
            false => 0.0,
        };
        let height = TOP + ROW * bars.len() as f64 + 30.0;
        let mut svg = self.begun(height);
        for (number_of, bar) in bars.iter().enumerate() {
            let y = TOP + ROW * number_of as f64;
            let width = bar.value.max(0.0) * scale;
            let colour = if bar.is_peer { PEER } else { 0 };
            let _ = writeln!(
                svg,
                r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{}</text><rect class="bar c{colour}" x="{left:.1}" y="{:.1}" width="{width:.1}" height="{:.1}"/><text class="quiet" x="{:.1}" y="{:.1}">{}</text>"#,
                left - 8.0,
                y + 16.0,
                escaped(&bar.name),
                y + 3.0,
                ROW - 6.0,
                left + width + 6.0,
                y + 16.0,
                number(bar.value),
            );
        }
        let _ = writeln!(
            svg,
            r#"<path class="grid" d="M{left:.1} {:.1}V{:.1}"/><text class="quiet" x="{left:.1}" y="{:.1}">{}</text>"#,
            TOP - 2.0,
            height - 28.0,
            height - 10.0,
            escaped(unit),
        );
        svg.push_str("</svg>\n");
        svg
    }

    fn begun(&self, height: f64) -> String {
        let title = escaped(&self.title);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n<title>{title}</title>\n<style>\n"
        );
        svg.push_str("text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif}\n.title{font-size:15px;font-weight:600}\n.line{fill:none;stroke-width:2.5}\n");
        svg.push_str(&colours(
            |colour| colour.0,
            "#ffffff",
            "#1f2328",
            "#59636e",
            "#d8dee4",
        ));
        svg.push_str("@media (prefers-color-scheme: dark){\n");
        svg.push_str(&colours(
            |colour| colour.1,
            "#0d1117",
            "#e6edf3",
            "#a3adb8",
            "#30363d",
        ));
        let _ = write!(
            svg,
            "}}\n</style>\n<rect class=\"back\" width=\"{WIDTH}\" height=\"{height}\"/>\n<text class=\"title\" x=\"16\" y=\"26\">{title}</text>\n"
        );
        svg
    }
}

type Colours = (&'static str, &'static str);

fn colours(
    one: fn(&Colours) -> &'static str,
    back: &str,
    ink: &str,
    quiet: &str,
    grid: &str,
) -> String {
    let mut css = format!(
        ".back{{fill:{back}}}\ntext{{fill:{ink}}}\n.quiet{{fill:{quiet}}}\n.grid{{stroke:{grid}}}\n"
    );
    for (number, colour) in COLOURS.iter().map(one).enumerate() {
        let _ = writeln!(
            css,
            ".line.c{number}{{stroke:{colour}}}.dot.c{number},.bar.c{number},.t{number}{{fill:{colour}}}"
        );
    }
    css
}

/// Where a value lies between the first and the last, logarithmically.
fn share(value: f64, sorted: &[f64]) -> f64 {
    match (sorted.first(), sorted.last()) {
        (Some(first), Some(last)) if last > first => {
            let share = (value / first).ln() / (last / first).ln();
            // Nothing at all lies infinitely deep; it is drawn on the floor.
            share.clamp(0.0, 1.0)
        }
        _ => 0.5,
    }
}

/// What is marked on a logarithmic axis, from just below the least to just above
/// the greatest: 1, 2, 5, 10 and so on, or tens only where that is enough.
fn steps(values: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let values = values.filter(|value| *value > 0.0);
    let least = values.clone().fold(f64::INFINITY, f64::min);
    let greatest = values.fold(0.0, f64::max);
    if greatest == 0.0 {
        return Vec::new();
    }
    let (from, to) = (least.log10().floor() as i32, greatest.log10().ceil() as i32);
    if to - from > 2 {
        return (from..=to).map(|power| 10_f64.powi(power)).collect();
    }
    let all: Vec<f64> = (from..=to)
        .flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10_f64.powi(power)))
        .collect();
    let first = all.iter().rposition(|step| *step <= least).unwrap_or(0);
    let last = all.iter().position(|step| *step >= greatest);
    let last = last.unwrap_or(all.len() - 1).max(first + 1);
    all.get(first..=last).unwrap_or(&all).to_vec()
}

/// Heights of labels near where they belong, none upon another, none below `floor`.
fn spread(wanted: &[f64], gap: f64, floor: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut placed = wanted.to_vec();
    let mut free = f64::NEG_INFINITY;
    for label in &order {
        placed[*label] = placed[*label].max(free);
        free = placed[*label] + gap;
    }
    let mut free = floor;
    for label in order.iter().rev() {
        placed[*label] = placed[*label].min(free);
        free = placed[*label] - gap;
    }
    placed
}

/// For an axis: 1,000,000 is 1M, 0.20 is 0.2.
fn number_short(value: f64) -> String {
    let (value, unit) = match value {
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e4 => (value / 1e3, "k"),
        value => (value, ""),
    };
    // As short as it can be without lying: steps have one digit, sizes few.
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{unit}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_enclose_the_values() {
        for (values, wanted) in [
            (
                vec![3.0, 400.0, 70_000.0],
                vec![1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0],
            ),
            (vec![3.0, 40.0], vec![2.0, 5.0, 10.0, 20.0, 50.0]),
            (vec![7.0], vec![5.0, 10.0]),
            (vec![10.0], vec![10.0, 20.0]),
            (vec![0.0], vec![]),
        ] {
            assert_eq!(steps(values.into_iter()), wanted);
        }
    }

    #[test]
    fn labels_keep_apart_and_above_the_floor() {
        assert_eq!(
            spread(&[100.0, 50.0, 101.0], 18.0, 300.0),
            [100.0, 50.0, 118.0]
        );
        assert_eq!(spread(&[299.0, 298.0], 18.0, 300.0), [300.0, 282.0]);
    }

    #[test]
    fn a_line_ends_where_its_value_is() {
        let chart = Chart {
            name: "claims".to_owned(),
            title: "Claims <per second>".to_owned(),
            drawing: Drawing::Lines {
                x: "URLs",
                y: "per second",
                lines: vec![Line {
                    name: "ours".to_owned(),
                    is_peer: false,
                    points: vec![(10.0, 100.0), (1_000.0, 10_000.0)],
                }],
            },
        };
        let svg = chart.svg();
        // The corners of the plot: sizes and values both grow a hundredfold.
        assert!(svg.contains(r#"points="84.0,346.0 560.0,50.0""#), "{svg}");
        assert!(svg.contains("Claims &lt;per second&gt;"), "{svg}");
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        let bar = |name: &str, value, is_peer| Bar {
            name: name.to_owned(),
            is_peer,
            value,
        };
        let chart = Chart {
            name: "pages".to_owned(),
            title: "Pages".to_owned(),
            drawing: Drawing::Bars {
                unit: "pages per second",
                bars: vec![bar("ours", 1_200.0, false), bar("theirs", 120.0, true)],
            },
        };
        let svg = chart.svg();
        assert!(
            svg.contains(r#"class="bar c0" x="80.0" y="53.0" width="600.0""#),
            "{svg}"
        );
        assert!(
            svg.contains(r#"class="bar c5" x="80.0" y="77.0" width="60.0""#),
            "{svg}"
        );
    }

    #[test]
    fn axes_are_short() {
        for (value, text) in [
            (1e6, "1M"),
            (2.5e6, "2.5M"),
            (50_000.0, "50k"),
            (1_000.0, "1000"),
            (0.2, "0.2"),
        ] {
            assert_eq!(number_short(value), text);
        }
    }
}
