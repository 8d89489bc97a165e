//! Message sequence charts as SVG: hosts as vertical lines, messages as arrows.

use std::fmt::Write;

use crate::junit::escape as xml_text;

/// A message from one host to another or, if both are the same, an event on a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrow {
    /// Index of the sender.
    pub from: usize,
    /// Index of the receiver.
    pub to: usize,
    /// The time at which it was sent.
    pub sent_ns: u64,
    /// The time of its last arrival, if it arrived.
    pub arrived_ns: Option<u64>,
    /// Whether it was lost in transit.
    pub is_lost: bool,
    /// The label of the arrow.
    pub label: String,
    /// The delivery outcome, if it did not simply arrive.
    pub note: Option<String>,
}

/// Maximum number of messages drawn.
const MAX_ARROWS: usize = 2000;
/// Maximum length of a label; the full text is a tooltip.
const MAX_LABEL_LENGTH: usize = 46;
/// Approximate width of a character.
const CHARACTER: usize = 6;
const MARGIN: usize = 20;
/// Width of the time column at the left.
const TIMES: usize = 100;
const ROW: usize = 40;
const HEAD: usize = 70;
const LEAST_GAP: usize = 150;

/// Draws a chart. Hosts without messages are omitted.
pub fn sequence_chart(hosts: &[String], arrows: &[Arrow]) -> String {
    let takes_part = |host: &usize| {
        arrows
            .iter()
            .any(|arrow| [arrow.from, arrow.to].contains(host))
    };
    let columns: Vec<usize> = (0..hosts.len()).filter(takes_part).collect();
    let shown = &arrows[..arrows.len().min(MAX_ARROWS)];
    let chart = Chart::of(hosts, columns, shown);
    let mut out = chart.head(hosts);
    for (row, arrow) in shown.iter().enumerate() {
        if arrow.from == arrow.to {
            chart.event(row, arrow, &mut out);
        } else {
            chart.arrow(row, arrow, &mut out);
        }
    }
    if arrows.len() > shown.len() {
        let (y, more) = (
            HEAD + ROW * shown.len() + ROW / 2,
            arrows.len() - shown.len(),
        );
        let _ = writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{y}\">… and {more} more messages</text>"
        );
    }
    out.push_str("</svg>\n");
    out
}

struct Chart {
    /// Hosts, from the left.
    columns: Vec<usize>,
    gap: usize,
    width: usize,
    height: usize,
}

impl Chart {
    fn of(hosts: &[String], columns: Vec<usize>, arrows: &[Arrow]) -> Chart {
        let labels = arrows
            .iter()
            .map(|arrow| arrow.label.chars().count().min(MAX_LABEL_LENGTH) + 4);
        let names = columns.iter().map(|host| hosts[*host].chars().count() + 4);
        let longest = labels.chain(names).max().unwrap_or(0);
        let gap = (longest * CHARACTER).max(LEAST_GAP);
        // Lost messages and notes may need room to the right of the last line.
        let width = MARGIN + TIMES + gap * columns.len().max(1) + MARGIN;
        Chart {
            gap,
            width,
            height: HEAD + ROW * (arrows.len() + 1) + MARGIN,
            columns,
        }
    }

    /// Returns the position of a host's line.
    fn x(&self, host: usize) -> usize {
        let column = self.columns.iter().position(|other| *other == host);
        MARGIN + TIMES + self.gap / 2 + self.gap * column.unwrap_or(0)
    }

    fn head(&self, hosts: &[String]) -> String {
        let (width, height) = (self.width, self.height);
        let mut out = String::new();
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">"
        );
        out.push_str("<defs>\n");
        for (name, colour) in [("arrives", ARRIVES), ("late", IS_ODD)] {
            let _ = writeln!(
                out,
                "<marker id=\"{name}\" markerWidth=\"9\" markerHeight=\"8\" refX=\"8\" refY=\"4\" orient=\"auto\">\
                 <path d=\"M0,0 L9,4 L0,8 z\" fill=\"{colour}\"/></marker>"
            );
        }
        out.push_str("</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
        let bottom = height - MARGIN;
        for host in &self.columns {
            let (x, name) = (self.x(*host), xml_text(&hosts[*host]));
            let half = (name.chars().count() * CHARACTER / 2 + 12).max(30);
            let _ = writeln!(
                out,
                "<line x1=\"{x}\" y1=\"42\" x2=\"{x}\" y2=\"{bottom}\" stroke=\"#999\"/>\n\
                 <rect x=\"{}\" y=\"16\" width=\"{}\" height=\"26\" rx=\"3\" fill=\"#eef4ff\" stroke=\"#555\"/>\n\
                 <text x=\"{x}\" y=\"33\" text-anchor=\"middle\" font-weight=\"bold\">{name}</text>",
                x - half,
                2 * half
            );
        }
        out
    }

    fn time(&self, y: usize, time_ns: u64, out: &mut String) {
        let (x, y, time) = (MARGIN + TIMES - 10, y + 4, seconds(time_ns));
        let _ = writeln!(
            out,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\" fill=\"#666\">{time}</text>"
        );
    }

    /// Draws an event on a host: a box on its line.
    fn event(&self, row: usize, event: &Arrow, out: &mut String) {
        let y = HEAD + ROW * row + ROW / 2;
        self.time(y, event.sent_ns, out);
        let mut whole = event.label.clone();
        if let Some(note) = &event.note {
            whole.push_str(&format!(" ({note})"));
        }
        let label = short(&whole);
        let half = label.chars().count() * CHARACTER / 2 + 8;
        let (x, whole, label) = (self.x(event.from), xml_text(&whole), xml_text(&label));
        let _ = writeln!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"22\" rx=\"3\" fill=\"#fdeaea\" stroke=\"{IS_LOST}\"/>\n\
             <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{label}<title>{whole}</title></text>",
            x.saturating_sub(half),
            y - 11,
            2 * half,
            y + 4
        );
    }

    fn arrow(&self, row: usize, arrow: &Arrow, out: &mut String) {
        let y = HEAD + ROW * row + ROW / 2;
        let (from, to) = (self.x(arrow.from), self.x(arrow.to));
        let never = arrow.arrived_ns.is_none();
        // The arrow of a lost message ends two thirds of the way.
        let end = if never { (from + 2 * to) / 3 } else { to };
        let (colour, dashes, head) = match (never, arrow.is_lost, &arrow.note) {
            (true, true, _) => (IS_LOST, " stroke-dasharray=\"6 4\"", ""),
            (true, false, _) => (ARRIVES, " stroke-dasharray=\"2 3\"", ""),
            (false, _, Some(_)) => (IS_ODD, "", " marker-end=\"url(#late)\""),
            (false, _, None) => (ARRIVES, "", " marker-end=\"url(#arrives)\""),
        };
        self.time(y, arrow.sent_ns, out);
        let _ = writeln!(
            out,
            "<line x1=\"{from}\" y1=\"{y}\" x2=\"{end}\" y2=\"{y}\" stroke=\"{colour}\"{dashes}{head}/>"
        );
        if never && arrow.is_lost {
            let (left, right, top, bottom) = (end - 5, end + 5, y - 5, y + 5);
            let _ = writeln!(
                out,
                "<path d=\"M{left},{top} L{right},{bottom} M{left},{bottom} L{right},{top}\" \
                 stroke=\"{IS_LOST}\" stroke-width=\"2\"/>"
            );
        }
        let middle = from.midpoint(to);
        label(middle, y - 6, "font-size=\"11\"", &arrow.label, out);
        let mut notes: Vec<String> = Vec::new();
        notes.extend(arrow.note.clone());
        match arrow.arrived_ns {
            Some(time) => notes.push(format!("there at {}", seconds(time))),
            None if !arrow.is_lost => notes.push("on its way".to_owned()),
            None => {}
        }
        let style = format!("font-size=\"9\" fill=\"{colour}\"");
        label(middle, y + 13, &style, &notes.join(", "), out);
    }
}

const ARRIVES: &str = "#335";
const IS_ODD: &str = "#a60";
const IS_LOST: &str = "#c00";
/// Draws a text with a background that covers the lines behind it.
fn label(x: usize, y: usize, style: &str, text: &str, out: &mut String) {
    let (whole, shown) = (xml_text(text), xml_text(&short(text)));
    let place = format!("x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" {style}");
    let _ = writeln!(
        out,
        "<text {place} stroke=\"white\" stroke-width=\"4\">{shown}</text>\n\
         <text {place}>{shown}<title>{whole}</title></text>"
    );
}

fn seconds(time_ns: u64) -> String {
    format!("{:.6} s", time_ns as f64 / 1e9)
}

fn short(label: &str) -> String {
    match label.chars().count() {
        ..=MAX_LABEL_LENGTH => label.to_owned(),
        _ => label.chars().take(MAX_LABEL_LENGTH).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrow(from: usize, to: usize, arrived_ns: Option<u64>) -> Arrow {
        Arrow {
            from,
            to,
            sent_ns: 1_500_000_000,
            arrived_ns,
            is_lost: arrived_ns.is_none(),
            label: "\"<hello>\" & more".to_owned(),
            note: None,
        }
    }

    #[test]
    fn messages_are_arrows_and_losses_are_crossed_out() {
        let hosts = ["a", "silent", "b"].map(str::to_owned);
        let chart = sequence_chart(
            &hosts,
            &[arrow(0, 2, Some(2_000_000_000)), arrow(2, 0, None)],
        );
        assert_eq!(chart.matches("marker-end").count(), 1);
        assert_eq!(
            chart.matches("<path d=\"M").count(),
            2 + 1,
            "two heads and a cross"
        );
        assert!(chart.contains("1.500000 s") && chart.contains("there at 2.000000 s"));
        assert!(chart.contains("&lt;hello&gt;") && !chart.contains("<hello>"));
        assert!(!chart.contains("silent"), "who takes no part is left out");
    }

    #[test]
    fn what_becomes_of_a_host_stands_on_its_line() {
        let hosts = ["a", "b"].map(str::to_owned);
        let chart = sequence_chart(&hosts, &[arrow(0, 1, Some(1)), arrow(1, 1, Some(1))]);
        assert_eq!(chart.matches("marker-end").count(), 1);
        assert_eq!(chart.matches("#fdeaea").count(), 1);
    }

    #[test]
    fn arrows_go_from_line_to_line() {
        let hosts = ["a", "b"].map(str::to_owned);
        let right = sequence_chart(&hosts, &[arrow(0, 1, Some(1))]);
        let left = sequence_chart(&hosts, &[arrow(1, 0, Some(1))]);
        let ends = |chart: &str| {
            let line = chart
                .lines()
                .find(|line| line.contains("marker-end"))
                .expect("an arrow");
            let number = |name: &str| {
                let rest = line
                    .split(&format!(" {name}=\""))
                    .nth(1)
                    .expect("it is there");
                rest.split('"')
                    .next()
                    .and_then(|text| text.parse::<usize>().ok())
                    .expect("a number")
            };
            (number("x1"), number("x2"))
        };
        let (from, to) = ends(&right);
        assert!(from < to);
        assert_eq!(ends(&left), (to, from));
    }
}
