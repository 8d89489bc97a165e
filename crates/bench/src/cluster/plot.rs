//! Curves as an SVG picture.

use std::fmt::Write;

/// A curve with its name.
pub struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// Curves over the same axes.
pub struct Panel {
    pub title: String,
    /// The unit of the horizontal axis.
    pub x: &'static str,
    pub curves: Vec<Curve>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 34.0;
const COLOURS: [&str; 6] = [
    "#1f4e9c", "#c0392b", "#d68910", "#1e8449", "#7d3c98", "#566573",
];

/// Returns the panels, one below the other.
pub fn svg(panels: &[Panel]) -> String {
    let height = HEIGHT * panels.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (number, panel) in panels.iter().enumerate() {
        draw(&mut text, panel, HEIGHT * number as f64);
    }
    text.push_str("</svg>\n");
    text
}

/// Returns a round number at or above this one.
fn round_up(most: f64) -> f64 {
    let power = 10f64.powf(most.max(1e-9).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter();
    let mut steps = steps.map(|step| step * power);
    steps.find(|step| *step >= most).unwrap_or(10.0 * power)
}

fn draw(text: &mut String, panel: &Panel, top: f64) {
    let points = || panel.curves.iter().flat_map(|curve| &curve.points);
    let right = points().map(|point| point.0).fold(1e-9, f64::max);
    let most = round_up(points().map(|point| point.1).fold(1e-9, f64::max));
    let (width, height) = (WIDTH - LEFT - 20.0, HEIGHT - TOP - BOTTOM);
    let x = |value: f64| LEFT + width * value / right;
    let y = |value: f64| top + TOP + height * (1.0 - value / most);
    let _ = writeln!(
        text,
        "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{}</text>",
        top + 18.0,
        panel.title
    );
    for part in 0..=4 {
        let part = f64::from(part) / 4.0;
        let (line, column) = (y(most * part), x(right * part));
        let _ = writeln!(
            text,
            "<path d=\"M{LEFT} {line:.1}H{:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <text x=\"{column:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{:.0} {}</text>",
            LEFT + width,
            LEFT - 6.0,
            line + 4.0,
            most * part,
            top + HEIGHT - 14.0,
            right * part,
            panel.x
        );
    }
    for (number, curve) in panel.curves.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let line = curve.points.iter();
        let line: Vec<String> = line
            .map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1)))
            .collect();
        let _ = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\" text-anchor=\"end\">{}</text>",
            line.join(" "),
            LEFT + width,
            top + TOP + 12.0 + 13.0 * number as f64,
            curve.name
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(round_up(0.9), 1.0);
        assert_eq!(round_up(11.0), 20.0);
        assert_eq!(round_up(499.0), 500.0);
    }
}
