//! Distributed tests (`.dtest`): one test in KLEE's format per host, the network between them, and
//! their start order.

use std::fmt::Write;
use std::net::IpAddr;

use crate::junit::escape;

/// An address and its prefix length.
pub type Address = (IpAddr, u8);

/// An interface of a host or router.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestInterface {
    /// Name of the network.
    pub network: String,
    /// The addresses of the interface.
    pub addresses: Vec<Address>,
}

/// A host or router.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestNode {
    /// The name of the host or router.
    pub name: String,
    /// The interfaces of the host or router.
    pub interfaces: Vec<TestInterface>,
    /// The routes: destination and gateway.
    pub routes: Vec<(Address, IpAddr)>,
}

/// A host and its part of the test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestHost {
    /// The host.
    pub node: TestNode,
    /// The file of the host's own test.
    pub file: String,
    /// Whether the host does not end by itself in this test.
    pub is_server: bool,
}

/// A test of several hosts, in start order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DTest {
    /// Names of the networks.
    pub networks: Vec<String>,
    /// The routers.
    pub routers: Vec<TestNode>,
    /// The hosts.
    pub hosts: Vec<TestHost>,
}

impl DTest {
    /// Returns the text of the file.
    pub fn to_xml(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<test>\n");
        for network in &self.networks {
            let _ = writeln!(out, "  <network name=\"{}\"/>", escape(network));
        }
        for router in &self.routers {
            let _ = writeln!(out, "  <router hostname=\"{}\">", escape(&router.name));
            inside(router, &mut out);
            out.push_str("  </router>\n");
        }
        for (sequence, host) in self.hosts.iter().enumerate() {
            let _ = writeln!(
                out,
                "  <node filename=\"{}\" hostname=\"{}\" filesystem=\"\" server=\"{}\" sequence=\"{sequence}\">",
                escape(&host.file),
                escape(&host.node.name),
                host.is_server
            );
            inside(&host.node, &mut out);
            out.push_str("  </node>\n");
        }
        out.push_str("</test>\n");
        out
    }
}

/// Returns the names of the hosts of a `.dtest`, each with the file of its own test.
pub fn dtest_files(xml: &str) -> Vec<(String, String)> {
    let nodes = xml.split("<node ").skip(1);
    let nodes = nodes.filter_map(|node| {
        let tag = node.split('>').next()?;
        Some((attribute(tag, "hostname")?, attribute(tag, "filename")?))
    });
    nodes.collect()
}

/// Returns the value of an attribute of a tag.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let value = tag.split(&format!("{name}=\"")).nth(1)?.split('"').next()?;
    let marks = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&amp;", "&"),
    ];
    let plain = |text: String, (mark, sign): (&str, &str)| text.replace(mark, sign);
    Some(marks.into_iter().fold(value.to_owned(), plain))
}

fn inside(node: &TestNode, out: &mut String) {
    let mut primary = true;
    for (number, interface) in (1..).zip(&node.interfaces) {
        let network = escape(&interface.network);
        let _ = writeln!(
            out,
            "    <interface identifier=\"{number}\" network=\"{network}\">"
        );
        for (address, mask) in &interface.addresses {
            let _ = writeln!(
                out,
                "      <address ip=\"{address}\" mask=\"{mask}\" primary=\"{primary}\"/>"
            );
            primary = false;
        }
        out.push_str("    </interface>\n");
    }
    for ((destination, mask), gateway) in &node.routes {
        // The default route has no destination.
        let destination = match mask {
            0 => "null".to_owned(),
            _ => destination.to_string(),
        };
        let _ = writeln!(
            out,
            "    <route destination=\"{destination}\" mask=\"{mask}\" gateway=\"{gateway}\"/>"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, places: &[(&str, &str)], gateway: Option<&str>) -> TestNode {
        let interface = |(network, address): &(&str, &str)| TestInterface {
            network: (*network).to_owned(),
            addresses: vec![(address.parse().unwrap(), 24)],
        };
        let default = ("0.0.0.0".parse().unwrap(), 0);
        TestNode {
            name: name.to_owned(),
            interfaces: places.iter().map(interface).collect(),
            routes: gateway
                .map(|gateway| (default, gateway.parse().unwrap()))
                .into_iter()
                .collect(),
        }
    }

    #[test]
    fn the_form_is_that_of_the_paper() {
        let client = node("client", &[("net1", "10.0.1.1")], Some("10.0.1.2"));
        let test = DTest {
            networks: vec!["net0".to_owned(), "net1".to_owned()],
            routers: vec![node(
                "router",
                &[("net0", "10.0.0.2"), ("net1", "10.0.1.2")],
                None,
            )],
            hosts: vec![TestHost {
                node: client,
                file: "test000002.ktest".to_owned(),
                is_server: false,
            }],
        };
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<test>
  <network name="net0"/>
  <network name="net1"/>
  <router hostname="router">
    <interface identifier="1" network="net0">
      <address ip="10.0.0.2" mask="24" primary="true"/>
    </interface>
    <interface identifier="2" network="net1">
      <address ip="10.0.1.2" mask="24" primary="false"/>
    </interface>
  </router>
  <node filename="test000002.ktest" hostname="client" filesystem="" server="false" sequence="0">
    <interface identifier="1" network="net1">
      <address ip="10.0.1.1" mask="24" primary="true"/>
    </interface>
    <route destination="null" mask="0" gateway="10.0.1.2"/>
  </node>
</test>
"#;
        assert_eq!(test.to_xml(), expected);
        let files = [("client".to_owned(), "test000002.ktest".to_owned())];
        assert_eq!(dtest_files(expected), files);
    }
}
