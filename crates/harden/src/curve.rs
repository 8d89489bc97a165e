//! The trade-off curve of benefit and overhead, after each step of a greedy selection.

use std::fmt::Write;

use crate::select::{Item, by_ratio};

/// A point of the curve.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Point {
    /// The fraction of all benefit.
    pub benefit: f64,
    /// The overhead, including the residual overhead without any check.
    pub overhead: f64,
    /// The number of atoms that are kept.
    pub atoms: usize,
}

/// Maximum number of points; more are indistinguishable.
const MOST_POINTS: usize = 400;

/// Returns the curve from no check to all of them.
pub fn curve(items: &[Item], residual: f64) -> Vec<Point> {
    let all: f64 = items.iter().map(|item| item.benefit).sum();
    let all = if all > 0.0 { all } else { 1.0 };
    let mut at = Point {
        benefit: 0.0,
        overhead: residual,
        atoms: 0,
    };
    let mut points = vec![at];
    for number in by_ratio(items) {
        at.benefit += items[number].benefit / all;
        at.overhead += items[number].cost.max(0.0);
        at.atoms += 1;
        points.push(at);
    }
    let last = points.len() - 1;
    let step = points.len().div_ceil(MOST_POINTS);
    let kept = points.into_iter().enumerate();
    kept.filter(|(number, _)| number % step == 0 || *number == last)
        .map(|(_, point)| point)
        .collect()
}

/// Formats the curve as CSV.
pub fn csv(points: &[Point]) -> String {
    let mut text = String::from("benefit,overhead,atoms\n");
    for point in points {
        let _ = writeln!(
            text,
            "{:.6},{:.6},{}",
            point.benefit, point.overhead, point.atoms
        );
    }
    text
}

/// Returns the beginning of an SVG image with a white background.
pub(crate) fn svg_head(width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    )
}

/// Draws the curve, with the chosen point.
pub fn svg(points: &[Point], chosen: Point) -> String {
    const LEFT: f64 = 70.0;
    const TOP: f64 = 20.0;
    const WIDTH: f64 = 560.0;
    const HEIGHT: f64 = 320.0;
    let most = points.iter().map(|point| point.overhead);
    let most = most.fold(0.01, f64::max);
    let x = |benefit: f64| LEFT + WIDTH * benefit;
    let y = |overhead: f64| TOP + HEIGHT * (1.0 - overhead.max(0.0) / most);
    let mut out = svg_head(LEFT + WIDTH + 30.0, TOP + HEIGHT + 50.0);
    for step in 0..=4_u8 {
        let part = f64::from(step) / 4.0;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{:.0}%</text>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{:.1}%</text>\n\
             <line x1=\"{LEFT}\" y1=\"{2:.1}\" x2=\"{6:.1}\" y2=\"{2:.1}\" stroke=\"#ddd\"/>",
            x(part),
            TOP + HEIGHT + 16.0,
            part * 100.0,
            LEFT - 6.0,
            y(most * part) + 4.0,
            most * part * 100.0,
            LEFT + WIDTH,
        );
    }
    let line: Vec<String> = points
        .iter()
        .map(|point| format!("{:.1},{:.1}", x(point.benefit), y(point.overhead)))
        .collect();
    let _ = writeln!(
        out,
        "<polyline fill=\"none\" stroke=\"#2456b8\" stroke-width=\"2\" points=\"{}\"/>\n\
         <circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\" fill=\"#c05a00\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">benefit</text>\n\
         <text x=\"16\" y=\"{:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {4:.1})\">overhead</text>\n</svg>",
        line.join(" "),
        x(chosen.benefit),
        y(chosen.overhead),
        LEFT + WIDTH / 2.0,
        TOP + HEIGHT + 36.0,
        TOP + HEIGHT / 2.0,
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_rises_ever_steeper() {
        let items: Vec<Item> = (0..1000)
            .map(|number| Item {
                cost: f64::from(number % 37) / 1000.0,
                benefit: f64::from(1 + number % 5),
            })
            .collect();
        let points = curve(&items, 0.02);
        assert!(points.len() <= MOST_POINTS + 1);
        assert_eq!(points[0].overhead, 0.02);
        let last = points.last().unwrap();
        assert!((last.benefit - 1.0).abs() < 1e-9 && last.atoms == 1000);
        let slopes: Vec<f64> = points
            .windows(2)
            .filter(|pair| pair[1].benefit > pair[0].benefit)
            .map(|pair| (pair[1].overhead - pair[0].overhead) / (pair[1].benefit - pair[0].benefit))
            .collect();
        assert!(slopes.windows(2).all(|pair| pair[0] <= pair[1] + 1e-9));
        assert_eq!(csv(&points).lines().count(), points.len() + 1);
        assert!(svg(&points, *last).ends_with("</svg>\n"));
        assert!(curve(&[], 0.0).len() == 1);
    }
}
