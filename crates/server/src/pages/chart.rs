//! Charts as SVG, drawn here: no script, no library, nothing to load. Pure.

use maud::{Markup, html};

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 100.0;

/// A line over time with an area below it.
pub(super) fn line(points: &[f64], label: &str) -> Markup {
    if points.len() < 2 {
        return html! { p.empty { "There is too little to draw yet." } };
    }
    let most = points.iter().copied().fold(1.0, f64::max);
    let step = WIDTH / (points.len() - 1) as f64;
    let place = |(n, value): (usize, &f64)| {
        let y = HEIGHT - 4.0 - value.max(0.0) / most * (HEIGHT - 12.0);
        format!("{:.1},{y:.1}", n as f64 * step)
    };
    let path: Vec<String> = points.iter().enumerate().map(place).collect();
    let path = path.join(" ");
    html! {
        svg.chart viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(label) {
            line.base x1="0" y1=(HEIGHT - 4.0) x2=(WIDTH) y2=(HEIGHT - 4.0) {}
            polygon points={ "0," (HEIGHT - 4.0) " " (path) " " (WIDTH) "," (HEIGHT - 4.0) } {}
            polyline points=(path) {}
        }
    }
}

/// At most so many points, each the mean of its neighbours.
pub(super) fn thinned(values: &[f64], most: usize) -> Vec<f64> {
    let size = values.len().div_ceil(most.max(1)).max(1);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    values.chunks(size).map(mean).collect()
}
