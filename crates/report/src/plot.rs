//! Plots over time as SVG: panels below each other, each with its own scale.

use std::fmt::Write;

use crate::junit::escape;

/// A curve.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// The label of the curve.
    pub name: String,
    /// The values of the curve, one per time.
    pub values: Vec<f64>,
}

/// Curves with a common scale.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// The title of the panel.
    pub title: String,
    /// The curves.
    pub curves: Vec<Curve>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 34.0;
/// Distance between panels.
const BETWEEN: f64 = 62.0;
const COLOURS: [&str; 4] = ["#2456b8", "#c05a00", "#2a8a3a", "#8a2a8a"];
/// Maximum number of points drawn per curve; more are indistinguishable.
const MAX_POINTS: usize = 2000;

/// Draws panels over the same times, in seconds.
pub fn plot(seconds: &[f64], panels: &[Panel]) -> String {
    let height = TOP + (HEIGHT + BETWEEN) * panels.len() as f64;
    let width = LEFT + WIDTH + 30.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let last = largest(seconds.iter().copied());
    for (number, panel) in panels.iter().enumerate() {
        let top = TOP + (HEIGHT + BETWEEN) * number as f64;
        draw(panel, seconds, last, top, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

fn largest(values: impl Iterator<Item = f64>) -> f64 {
    let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
    if most > 0.0 { most } else { 1.0 }
}

fn draw(panel: &Panel, seconds: &[f64], last: f64, top: f64, out: &mut String) {
    let values = panel
        .curves
        .iter()
        .flat_map(|curve| curve.values.iter().copied());
    let most = round_up(largest(values));
    let (right, bottom) = (LEFT + WIDTH, top + HEIGHT);
    let title = escape(&panel.title);
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{:.0}\" font-weight=\"bold\">{title}</text>",
        top - 8.0
    );
    const STEPS: u32 = 4;
    for step in 0..=STEPS {
        let part = f64::from(step) / f64::from(STEPS);
        let (x, y) = (LEFT + WIDTH * part, bottom - HEIGHT * part);
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\n\
             <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n\
             <text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{} s</text>",
            LEFT - 6.0,
            y + 4.0,
            short(most * part),
            bottom + 15.0,
            short(last * part),
        );
    }
    let _ = writeln!(
        out,
        "<path d=\"M{LEFT},{top} V{bottom} H{right}\" fill=\"none\" stroke=\"#555\"/>"
    );
    for (number, curve) in panel.curves.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let points: Vec<String> = thinned(seconds, &curve.values)
            .map(|(time, value)| {
                let (x, y) = (LEFT + WIDTH * time / last, bottom - HEIGHT * value / most);
                format!("{x:.1},{y:.1}")
            })
            .collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
            points.join(" ")
        );
        let (x, name) = (LEFT + 220.0 + 170.0 * number as f64, escape(&curve.name));
        let _ = writeln!(
            out,
            "<text x=\"{x}\" y=\"{:.0}\" fill=\"{colour}\">{name}</text>",
            top - 8.0
        );
    }
}

/// Thins the points to a distinguishable number, keeping the first and the last.
fn thinned<'v>(seconds: &'v [f64], values: &'v [f64]) -> impl Iterator<Item = (f64, f64)> + 'v {
    let count = seconds.len().min(values.len());
    let step = count.div_ceil(MAX_POINTS).max(1);
    let is_kept = move |at: &usize| at.is_multiple_of(step) || at + 1 == count;
    let kept = (0..count).filter(is_kept);
    kept.map(|at| (seconds[at], values[at]))
}

/// Rounds up to 1, 2 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

fn short(value: f64) -> String {
    let (value, unit) = match value {
        _ if value >= 1e9 => (value / 1e9, "G"),
        _ if value >= 1e6 => (value / 1e6, "M"),
        _ if value >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = format!("{value:.3}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(values: &[f64]) -> Panel {
        Panel {
            title: "states <now>".to_owned(),
            curves: vec![Curve {
                name: "states".to_owned(),
                values: values.to_vec(),
            }],
        }
    }

    #[test]
    fn curves_go_from_the_first_to_the_last_time() {
        let picture = plot(&[0.0, 1.0, 2.0], &[panel(&[0.0, 5.0, 10.0])]);
        let bottom = TOP + HEIGHT;
        let expected = format!(
            "{LEFT:.1},{bottom:.1} {:.1},{:.1} {:.1},{TOP:.1}",
            LEFT + WIDTH / 2.0,
            TOP + HEIGHT / 2.0,
            LEFT + WIDTH
        );
        assert!(picture.contains(&expected), "{picture}");
        assert!(picture.contains("states &lt;now&gt;"));
    }

    #[test]
    fn nothing_and_zeros_can_be_drawn() {
        for picture in [plot(&[], &[panel(&[])]), plot(&[0.0], &[panel(&[0.0])])] {
            assert!(
                picture.ends_with("</svg>\n") && !picture.contains("NaN"),
                "{picture}"
            );
        }
    }

    #[test]
    fn long_curves_keep_their_ends() {
        let times: Vec<f64> = (0..10_001).map(f64::from).collect();
        let kept: Vec<_> = thinned(&times, &times).collect();
        assert!(kept.len() <= MAX_POINTS + 2);
        assert_eq!(kept.first(), Some(&(0.0, 0.0)));
        assert_eq!(kept.last(), Some(&(10_000.0, 10_000.0)));
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.025, 2.5, 100.0, 37.5e6, 2e9].map(short);
        assert_eq!(shown, ["0", "0.025", "2.5", "100", "37.5M", "2G"]);
    }

    #[test]
    fn scales_end_at_round_numbers() {
        let rounded = [0.3, 1.0, 1.2, 4.0, 7.0, 1234.0].map(round_up);
        for (seen, expected) in rounded.iter().zip([0.5, 1.0, 2.0, 5.0, 10.0, 2000.0]) {
            assert!(
                (seen - expected).abs() < 1e-9 * expected,
                "{seen} {expected}"
            );
        }
    }
}
