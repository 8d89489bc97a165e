//! Curves as an SVG picture, and as CSV.

use std::fmt::Write;

/// A curve with its name.
pub struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// Curves over the same axes.
pub struct Panel {
    /// The name of the file with the data.
    pub name: &'static str,
    pub title: String,
    /// The unit of the horizontal axis.
    pub x: &'static str,
    /// Whether both axes are logarithmic. All values are 1 or more then.
    pub is_log: bool,
    pub curves: Vec<Curve>,
}

impl Panel {
    fn scale(&self, value: f64) -> f64 {
        match self.is_log {
            true => value.max(1.0).log10(),
            false => value,
        }
    }

    /// Returns the value at a place of an axis.
    fn value(&self, scaled: f64) -> f64 {
        match self.is_log {
            true => 10f64.powf(scaled),
            false => scaled,
        }
    }

    /// Returns the points of all curves as CSV: a line for each place of the horizontal axis, with
    /// a column for each curve.
    pub fn csv(&self) -> String {
        let mut places: Vec<f64> = Vec::new();
        let mut text = self.x.to_owned();
        for curve in &self.curves {
            let _ = write!(text, ",{}", curve.name);
            places.extend(curve.points.iter().map(|point| point.0));
        }
        places.sort_by(f64::total_cmp);
        places.dedup();
        for place in places {
            let _ = write!(text, "\n{place}");
            for curve in &self.curves {
                let at = curve.points.iter().find(|point| point.0 == place);
                let value = at.map_or(String::new(), |point| format!("{:.3}", point.1));
                let _ = write!(text, ",{value}");
            }
        }
        text.push('\n');
        text
    }
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
    let right = points().map(|point| panel.scale(point.0));
    let right = right.fold(1e-9, f64::max);
    let most = points().map(|point| panel.scale(point.1));
    let most = most.fold(1e-9, f64::max);
    let most = match panel.is_log {
        true => most.ceil(),
        false => round_up(most),
    };
    let (width, height) = (WIDTH - LEFT - 20.0, HEIGHT - TOP - BOTTOM);
    let x = |scaled: f64| LEFT + width * scaled / right;
    let y = |scaled: f64| top + TOP + height * (1.0 - scaled / most);
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
            (100.0 * panel.value(most * part)).round() / 100.0,
            top + HEIGHT - 14.0,
            panel.value(right * part),
            panel.x
        );
    }
    for (number, curve) in panel.curves.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let line = curve.points.iter();
        let line: Vec<String> = line
            .map(|point| (x(panel.scale(point.0)), y(panel.scale(point.1))))
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
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
    fn data_has_a_line_for_each_place() {
        let curve = |name: &str, points: &[(f64, f64)]| Curve {
            name: name.to_owned(),
            points: points.to_vec(),
        };
        let panel = Panel {
            name: "data",
            title: String::new(),
            x: "s",
            is_log: false,
            curves: vec![
                curve("one", &[(0.0, 1.0), (1.0, 2.5)]),
                curve("two", &[(1.0, 4.0)]),
            ],
        };
        assert_eq!(panel.csv(), "s,one,two\n0,1.000,\n1,2.500,4.000\n");
    }

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(round_up(0.9), 1.0);
        assert_eq!(round_up(11.0), 20.0);
        assert_eq!(round_up(499.0), 500.0);
    }
}
