//! Tests that random scenarios survive a round trip, that damaged ones are rejected without a
//! panic, and that the examples in the documentation are valid.

mod common;

use everett_net::{HostIndex, Protocol};
use everett_scenario::{Argument, NameContext, OptionKey, Scenario, Start, parse, show};
use proptest::prelude::*;
use std::path::Path;

struct Anything;

impl NameContext for Anything {
    fn is_file(&self, _: &Path) -> bool {
        true
    }

    fn is_folder(&self, _: &Path) -> bool {
        false
    }

    fn options(&self) -> Vec<OptionKey> {
        common::options()
    }
}

fn read(text: &str) -> Result<Scenario, String> {
    let scenario = parse(text, Path::new("s.toml"), &[], &Anything);
    scenario.map_err(|problems| {
        // The error can be printed and contains a location.
        let text = problems.to_string();
        assert!(problems.list.iter().all(|p| p.line > 0 && p.column > 0));
        assert!(!text.is_empty());
        text
    })
}

/// Returns the TOML code blocks of a document.
fn examples(document: &str) -> Vec<String> {
    let parts = document.split("```toml\n").skip(1);
    let blocks = parts.filter_map(|part| part.split_once("```"));
    blocks.map(|(block, _)| block.to_owned()).collect()
}

const DOCUMENT: &str = include_str!("../../../docs/scenarios.md");

#[test]
fn examples_of_the_documentation_are_in_order() {
    let examples = examples(DOCUMENT);
    assert!(examples.len() >= 6);
    for example in examples {
        if let Err(problems) = read(&example) {
            panic!("{problems}\nin\n{example}");
        }
    }
}

#[test]
fn the_documentation_has_all_kinds_of_faults() {
    for kind in everett_net::KINDS {
        let row = format!("| `{}` |", kind.name);
        let line = DOCUMENT.lines().find(|line| line.starts_with(&row));
        assert!(line.is_some(), "{row} is missing");
        for parameter in kind.parameters {
            let key = format!("`{}`", parameter.name);
            assert!(DOCUMENT.contains(&key), "{key} of {} is missing", kind.name);
        }
    }
}

#[test]
fn the_documentation_says_which_kinds_are_about_udp() {
    let line = "- Without `protocol`, ";
    let rest = DOCUMENT.split_once(line).expect("a line").1;
    let (names, _) = rest.split_once(" are about UDP").expect("their names");
    let names: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
    let kinds = everett_net::KINDS.iter();
    let about_udp = kinds.filter(|kind| !kind.protocols.is_empty());
    assert!(
        about_udp
            .clone()
            .all(|kind| *kind.protocols == [Protocol::Udp])
    );
    let expected: Vec<&str> = about_udp.map(|kind| kind.name).collect();
    assert_eq!(names, expected);
}

#[derive(Clone, Debug)]
struct Plan {
    latency_us: u64,
    bandwidth: Option<u64>,
    hosts: Vec<(Vec<String>, Option<u64>, u32)>,
    loss: Option<u32>,
}

fn plans() -> impl Strategy<Value = Plan> {
    let host = (
        proptest::collection::vec("[ -~]{0,8}", 0..3),
        proptest::option::of(0u64..10_000),
        1u32..4,
    );
    let loss = proptest::option::of(0u32..5);
    let bandwidth = proptest::option::of(1u64..1_000_000_000);
    let hosts = proptest::collection::vec(host, 1..5);
    (1u64..1_000_000, bandwidth, hosts, loss).prop_map(|(latency_us, bandwidth, hosts, loss)| {
        Plan {
            latency_us,
            bandwidth,
            hosts,
            loss,
        }
    })
}

fn written(plan: &Plan) -> String {
    let mut text = format!(
        "[network.n]\nsubnet = \"10.0.0.0/24\"\nlatency = \"{}us\"\n",
        plan.latency_us
    );
    if let Some(bandwidth) = plan.bandwidth {
        text += &format!("bandwidth = {bandwidth}\n");
    }
    for (at, (args, start, count)) in plan.hosts.iter().enumerate() {
        let quoted: Vec<String> = args
            .iter()
            .map(|arg| {
                let doubled = match count {
                    1 => arg.clone(),
                    _ => arg.replace('{', "{{").replace('}', "}}"),
                };
                format!("\"{}\"", doubled.replace('\\', "\\\\").replace('"', "\\\""))
            })
            .collect();
        text += &format!(
            "[host.h{at}x]\nprogram = \"p{at}\"\nargs = [{}]\n",
            quoted.join(",")
        );
        if let Some(start) = start {
            text += &format!("start = \"{start}ns\"\n");
        }
        if *count > 1 {
            text += &format!("count = {count}\n");
        }
    }
    if let Some(most) = plan.loss {
        text += &format!("[fault.loss]\nmost = {most}\n");
    }
    text
}

proptest! {
    #[test]
    fn scenarios_mean_what_they_say(plan in plans()) {
        let text = written(&plan);
        let scenario = read(&text).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
        let network = &scenario.topology.networks()[0];
        prop_assert_eq!(network.latency_ns, plan.latency_us * 1000);
        prop_assert_eq!(network.bandwidth_bits_per_s, plan.bandwidth);
        let count: u32 = plan.hosts.iter().map(|host| host.2).sum();
        prop_assert_eq!(scenario.hosts.len(), count as usize);
        let mut hosts = scenario.hosts.iter();
        for (at, (args, start, count)) in plan.hosts.iter().enumerate() {
            for number in 0..*count {
                let host = hosts.next().expect("a host");
                let name = match count {
                    1 => format!("h{at}x"),
                    _ => format!("h{at}x{number}"),
                };
                prop_assert_eq!(&host.name, &name);
                prop_assert_eq!(&scenario.topology.host(host.index).name, &name);
                let wanted: Vec<Argument> = args.iter().cloned().map(Argument::Text).collect();
                prop_assert_eq!(&host.processes[0].args, &wanted);
                prop_assert_eq!(host.start, start.map_or(Start::InTurn, Start::At));
            }
        }
        prop_assert_eq!(scenario.faults.list().first().map(|fault| fault.max_count), plan.loss);
        prop_assert_eq!(scenario.topology.addresses(HostIndex(0)).count(), 1);
        prop_assert_eq!(show(&scenario), show(&read(&text).expect("read before")));
    }

    #[test]
    fn damaged_scenarios_are_refused(which in 0usize..32, at in any::<usize>(), length in 0usize..12, put in "[\\PC\n]{0,6}") {
        let examples = examples(DOCUMENT);
        let mut text = examples[which % examples.len()].clone();
        let floor = |text: &str, mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = floor(&text, at % (text.len() + 1));
        let end = floor(&text, start + length).max(start);
        text.replace_range(start..end, &put);
        let _ = read(&text);
        let overrides = [(put.clone(), put)];
        if let Err(problems) = parse(&text, Path::new("s.toml"), &overrides, &Anything) {
            prop_assert!(!problems.to_string().is_empty());
        }
    }
}
