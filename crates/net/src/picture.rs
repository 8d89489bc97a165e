//! Drawings of a topology: DOT for Graphviz, and SVG with a simple layout.
//!
//! In the SVG, each network is a bar. The hosts whose first interface is on it are below the bar;
//! routers are beside it, with lines to their networks.

use std::fmt::Write as _;

use crate::topology::{HostIndex, Interface, RouterIndex, Topology, TopologyNode};

/// Draws the topology in DOT.
pub fn dot(topology: &Topology) -> String {
    let mut out = String::from("graph topology {\n  node [fontname=\"sans-serif\"];\n");
    for (at, network) in topology.networks().iter().enumerate() {
        let mut label = network.name.clone();
        for subnet in &network.subnets {
            let _ = write!(label, "\n{subnet}");
        }
        let label = dot_text(&label);
        let _ = writeln!(out, "  network{at} [shape=ellipse, label=\"{label}\"];");
    }
    for node in topology.nodes() {
        let (kind, at, shape) = match node {
            TopologyNode::Host(host) => ("host", host.0, "box"),
            TopologyNode::Router(router) => ("router", router.0, "diamond"),
            TopologyNode::Network(_) => continue,
        };
        let label = dot_text(topology.name_of(node));
        let _ = writeln!(out, "  {kind}{at} [shape={shape}, label=\"{label}\"];");
        for interface in topology.node_interfaces(node) {
            let label = dot_text(&addresses(interface, "\n"));
            let network = interface.network.0;
            let _ = writeln!(out, "  {kind}{at} -- network{network} [label=\"{label}\"];");
        }
    }
    out.push_str("}\n");
    out
}

fn addresses(interface: &Interface, between: &str) -> String {
    let addresses = interface.addresses.iter();
    let texts: Vec<String> = addresses.map(|a| a.address().to_string()).collect();
    texts.join(between)
}

fn dot_text(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}

fn xml_text(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

const BOX_WIDTH: usize = 140;
const BOX_HEIGHT: usize = 44;
const GAP: usize = 20;
/// Number of boxes per row.
const COLUMNS: usize = 6;
const MARGIN: usize = 20;
const BAR_HEIGHT: usize = 26;
/// Maximum length of a label; longer ones are shown as tooltips.
const MAX_LABEL_LENGTH: usize = 27;

/// The top left corner of a box.
#[derive(Clone, Copy)]
struct BoxPosition {
    x: usize,
    y: usize,
}

/// The positions of all boxes in the drawing.
struct Layout {
    /// Top left corner of the bar of each network.
    bars: Vec<BoxPosition>,
    bar_width: usize,
    hosts: Vec<BoxPosition>,
    routers: Vec<BoxPosition>,
    width: usize,
    height: usize,
}

impl Layout {
    /// Computes the layout of a topology.
    fn of(topology: &Topology) -> Layout {
        let mut at_home: Vec<Vec<usize>> = vec![Vec::new(); topology.networks().len()];
        let mut homeless = Vec::new();
        for (at, host) in topology.hosts().iter().enumerate() {
            match host.interfaces.first() {
                Some(interface) => at_home[interface.network.index()].push(at),
                None => homeless.push(at),
            }
        }
        let widest = at_home.iter().map(Vec::len).max().unwrap_or(0);
        let columns = widest.clamp(2, COLUMNS);
        let mut hosts = vec![BoxPosition { x: 0, y: 0 }; topology.hosts().len()];
        let mut y = MARGIN;
        let mut bars = Vec::new();
        let mut place = |members: &[usize], y: &mut usize| {
            for (at, host) in members.iter().enumerate() {
                hosts[*host] = BoxPosition {
                    x: MARGIN + at % columns * (BOX_WIDTH + GAP),
                    y: *y + at / columns * (BOX_HEIGHT + GAP),
                };
            }
            *y += members.len().div_ceil(columns) * (BOX_HEIGHT + GAP) + GAP;
        };
        for members in &at_home {
            bars.push(BoxPosition { x: MARGIN, y });
            y += BAR_HEIGHT + GAP;
            place(members, &mut y);
        }
        place(&homeless, &mut y);
        let bar_width = columns * (BOX_WIDTH + GAP) - GAP;
        let router_x = MARGIN + bar_width + 3 * GAP;
        let routers = topology.routers().iter().enumerate().map(|(at, router)| {
            let tops = router.interfaces.iter().map(|i| bars[i.network.index()].y);
            let count = router.interfaces.len().max(1);
            let mean = tops.sum::<usize>() / count;
            BoxPosition {
                // Shifted to the right, so that the lines of different routers do not coincide.
                x: router_x + at % 4 * (GAP + BOX_WIDTH),
                y: mean,
            }
        });
        let routers: Vec<BoxPosition> = routers.collect();
        let right = routers.iter().map(|corner| corner.x + BOX_WIDTH).max();
        Layout {
            width: right.unwrap_or(MARGIN + bar_width) + MARGIN,
            height: y,
            bars,
            bar_width,
            hosts,
            routers,
        }
    }
}

/// Draws the topology as SVG.
pub fn svg(topology: &Topology) -> String {
    let layout = Layout::of(topology);
    let (width, height) = (layout.width, layout.height);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">"
    );
    let _ = writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>");
    lines(topology, &layout, &mut out);
    for (network, corner) in topology.networks().iter().zip(&layout.bars) {
        let mut label = network.name.clone();
        for subnet in &network.subnets {
            let _ = write!(label, "  {subnet}");
        }
        bar(*corner, layout.bar_width, &label, &mut out);
    }
    for node in topology.nodes() {
        let (corner, fill) = match node {
            TopologyNode::Host(HostIndex(at)) => (layout.hosts[at as usize], "#eef4ff"),
            TopologyNode::Router(RouterIndex(at)) => (layout.routers[at as usize], "#fff2dd"),
            TopologyNode::Network(_) => continue,
        };
        let interfaces = topology.node_interfaces(node).iter();
        let below: Vec<String> = interfaces.map(|i| addresses(i, " ")).collect();
        let name = topology.name_of(node);
        labelled_box(corner, fill, name, &below.join(" "), &mut out);
    }
    out.push_str("</svg>\n");
    out
}

/// Draws the lines between nodes and networks.
fn lines(topology: &Topology, layout: &Layout, out: &mut String) {
    let mut line = |x1: usize, y1: usize, x2: usize, y2: usize| {
        let _ = writeln!(
            out,
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"#888\"/>"
        );
    };
    for (host, corner) in topology.hosts().iter().zip(&layout.hosts) {
        for (at, interface) in host.interfaces.iter().enumerate() {
            let bar = layout.bars[interface.network.index()];
            // Lines of further interfaces start beside that of the first.
            let x = corner.x + BOX_WIDTH / 2 + (at * 12).min(BOX_WIDTH / 2);
            line(x, corner.y, x, bar.y + BAR_HEIGHT);
        }
    }
    for (router, corner) in topology.routers().iter().zip(&layout.routers) {
        let (x, y) = (corner.x + BOX_WIDTH / 2, corner.y + BOX_HEIGHT / 2);
        for interface in &router.interfaces {
            let bar = layout.bars[interface.network.index()];
            let level = bar.y + BAR_HEIGHT / 2;
            line(x, y, x, level);
            line(x, level, bar.x + layout.bar_width, level);
        }
    }
}

/// Draws the bar of a network.
fn bar(corner: BoxPosition, width: usize, label: &str, out: &mut String) {
    let BoxPosition { x, y } = corner;
    let _ = writeln!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{BAR_HEIGHT}\" rx=\"6\" fill=\"#dff3df\" stroke=\"#555\"/>"
    );
    let (x, y, label) = (x + 10, y + 17, xml_text(label));
    let _ = writeln!(out, "<text x=\"{x}\" y=\"{y}\">{label}</text>");
}

/// Draws the box of a host or router with its name and addresses.
fn labelled_box(corner: BoxPosition, fill: &str, name: &str, below: &str, out: &mut String) {
    let BoxPosition { x, y } = corner;
    let _ = writeln!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"3\" fill=\"{fill}\" stroke=\"#555\"/>"
    );
    let (x, first, second) = (x + BOX_WIDTH / 2, y + 18, y + 34);
    let shown = match below.chars().count() {
        ..=MAX_LABEL_LENGTH => below.to_owned(),
        _ => below.chars().take(MAX_LABEL_LENGTH).chain(['…']).collect(),
    };
    let (name, below, shown) = (xml_text(name), xml_text(below), xml_text(&shown));
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{first}\" text-anchor=\"middle\" font-weight=\"bold\">{name}</text>"
    );
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{second}\" text-anchor=\"middle\" font-size=\"9\">{shown}<title>{below}</title></text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Host, Network, NetworkIndex, Router};

    fn world() -> Topology {
        let prefix = |text: &str| text.parse().expect("a prefix");
        let networks = ["10.0.0.0/24", "10.0.1.0/24"]
            .iter()
            .zip(["lan", "a \"b\" <c>"])
            .map(|(subnet, name)| Network::new(name, vec![prefix(subnet)]))
            .collect();
        let interface = |name: &str, network: u32, address: &str| Interface {
            name: name.to_owned(),
            network: NetworkIndex(network),
            addresses: vec![prefix(address)],
            mtu: None,
        };
        let routers = vec![Router {
            name: "r".to_owned(),
            interfaces: vec![
                interface("a", 0, "10.0.0.254/24"),
                interface("b", 1, "10.0.1.254/24"),
            ],
            routes: Vec::new(),
        }];
        let hosts = (1..=9).map(|at| Host {
            name: format!("h{at}"),
            aliases: Vec::new(),
            interfaces: vec![interface("a", at % 2, &format!("10.0.{}.{at}/24", at % 2))],
            routes: Vec::new(),
        });
        Topology::new(networks, routers, hosts.collect()).expect("a topology")
    }

    #[test]
    fn every_part_is_in_the_picture() {
        let (dot, svg) = (dot(&world()), svg(&world()));
        for part in ["h1", "h9", "10.0.1.254", "lan", "10.0.0.0/24"] {
            assert!(dot.contains(part) && svg.contains(part), "{part}");
        }
        assert_eq!(dot.matches(" -- ").count(), 11);
        assert_eq!(svg.matches("<rect").count(), 1 + 2 + 9 + 1);
        assert!(dot.contains("a \\\"b\\\" <c>"));
        assert!(svg.contains("a &quot;b&quot; &lt;c&gt;"));
    }

    #[test]
    fn boxes_do_not_lie_on_each_other() {
        let world = world();
        let layout = Layout::of(&world);
        let boxes: Vec<BoxPosition> = layout
            .hosts
            .iter()
            .chain(&layout.routers)
            .copied()
            .collect();
        for (at, a) in boxes.iter().enumerate() {
            assert!(a.x + BOX_WIDTH <= layout.width && a.y + BOX_HEIGHT <= layout.height);
            for b in &boxes[..at] {
                let apart = a.x.abs_diff(b.x) >= BOX_WIDTH || a.y.abs_diff(b.y) >= BOX_HEIGHT;
                assert!(apart);
            }
        }
    }
}
