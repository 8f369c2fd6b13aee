//! Charts as inline SVG: no script, no library, nothing to load. Pure.

use maud::{Markup, html};

use super::format;

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 100.0;
/// Width of a bar with the gap after it.
const BAR_WIDTH: usize = 6;
const BARS_HEIGHT: f64 = 22.0;

/// A line over time with an area below it. `from` says when it begins.
pub(super) fn line(points: &[f64], label: &str, from: &str, class: &str) -> Markup {
    if points.len() < 2 {
        return html! { p.empty { "Not enough data yet." } };
    }
    let max = points.iter().copied().fold(1.0, f64::max);
    let step = WIDTH / (points.len() - 1) as f64;
    let place = |(n, value): (usize, &f64)| {
        let y = HEIGHT - value.max(0.0) / max * HEIGHT;
        format!("{:.1},{y:.1}", n as f64 * step)
    };
    let path: Vec<String> = points.iter().enumerate().map(place).collect();
    let path = path.join(" ");
    let drawn = html! {
        polygon points={ "0," (HEIGHT) " " (path) " " (WIDTH) "," (HEIGHT) } {}
        polyline points=(path) {}
    };
    framed(&drawn, max, label, from, class)
}

/// A column for each value, the newest last.
pub(super) fn columns(values: &[i64], label: &str, from: &str) -> Markup {
    let max = values.iter().copied().max().unwrap_or(0).max(1) as f64;
    let width = WIDTH / values.len().max(1) as f64;
    let drawn = html! {
        @for (n, value) in values.iter().enumerate() {
            @let height = *value as f64 / max * HEIGHT;
            rect x=(format!("{:.1}", width * (n as f64 + 0.15))) y=(format!("{:.1}", HEIGHT - height)) width=(format!("{:.1}", width * 0.7)) height=(format!("{height:.1}")) {}
        }
    };
    framed(&drawn, max, label, from, "")
}

/// The axes of a chart, its maximum, and the start and end of its time.
fn framed(drawn: &Markup, max: f64, label: &str, from: &str, class: &str) -> Markup {
    html! {
        figure class={ "chart " (class) } {
            span.max { (format::number(max.ceil() as i64)) }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(label) {
                @for y in [0.0, HEIGHT / 2.0] { line.guide x1="0" y1=(y) x2=(WIDTH) y2=(y) {} }
                (drawn)
                line.base x1="0" y1=(HEIGHT) x2=(WIDTH) y2=(HEIGHT) {}
            }
            figcaption { span { (from) } span { "now" } }
        }
    }
}

/// A small row of bars, the newest last.
pub(super) fn bars(values: &[i64], label: &str) -> Markup {
    let max = values.iter().copied().max().unwrap_or(0).max(1) as f64;
    html! {
        svg.bars width=(values.len() * BAR_WIDTH) height=(BARS_HEIGHT) role="img" aria-label=(label) {
            title { (label) }
            @for (n, value) in values.iter().enumerate() {
                @let height = match value { 0 => 1.0, value => (*value as f64 / max * BARS_HEIGHT).max(3.0) };
                rect.none[*value == 0] x=(n * BAR_WIDTH) y=(format!("{:.1}", BARS_HEIGHT - height)) width=(BAR_WIDTH - 2) height=(format!("{height:.1}")) rx="1" {}
            }
        }
    }
}

/// At most `max` points, each the mean of its neighbours.
pub(super) fn thinned(values: &[f64], max: usize) -> Vec<f64> {
    let size = values.len().div_ceil(max.max(1)).max(1);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    values.chunks(size).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_their_share_and_none_is_a_line() {
        let drawn = bars(&[0, 1, 50, 100], "items per day").0;
        for height in ["\"1.0\"", "\"3.0\"", "\"11.0\"", "\"22.0\""] {
            assert!(drawn.contains(&format!("height={height}")), "{drawn}");
        }
        assert_eq!(drawn.matches("class=\"none\"").count(), 1);
    }

    #[test]
    fn a_line_needs_two_points_and_names_its_top() {
        assert!(line(&[1.0], "a", "then", "").0.contains("Not enough data"));
        let drawn = line(&[0.0, 1200.0], "a", "then", "").0;
        assert!(
            drawn.contains("1,200") && drawn.contains("600.0,0.0"),
            "{drawn}"
        );
    }
}
