//! Files beside a finding that show the messages between hosts and the final state of each host.

use everett_engine::HostStatus;
use everett_net::Topology;
use everett_report::{Arrow, NamedFile, pcap, sequence_chart};
use everett_sim::Message;
use std::fmt::Write;

use crate::capture::capture;
use crate::finding::stack_text;

/// Returns all files about messages: a text, a sequence chart, and a packet capture for each host.
pub(crate) fn messages_files(topology: &Topology, messages: &[Message]) -> Vec<NamedFile> {
    let names: Vec<String> = topology
        .hosts()
        .iter()
        .map(|host| host.name.clone())
        .collect();
    let mut files = vec![
        ("messages.txt".to_owned(), text(messages).into_bytes()),
        (
            "messages.svg".to_owned(),
            picture(&names, messages).into_bytes(),
        ),
    ];
    for name in &names {
        files.push((format!("{name}.pcap"), pcap(&capture(name, messages))));
    }
    files
}

/// Formats the messages as text, one line each.
fn text(messages: &[Message]) -> String {
    let widths = messages.iter();
    let width = widths.map(|one| one.from.len().max(one.to.len())).max();
    let width = width.unwrap_or(0);
    let mut text = String::new();
    for message in messages {
        let note = message.note();
        let note = note.map_or_else(String::new, |note| format!("  ({note})"));
        let ends = match message.packet {
            Some(_) => format!("{:>width$} → {:<width$}", message.from, message.to),
            None => format!("{:>width$}   {:<width$}", message.from, ""),
        };
        let (time, what) = (message.sent_ns as f64 / 1e9, &message.what);
        let _ = writeln!(text, "{time:>12.6} s  {ends}  {what}{note}");
    }
    text
}

fn picture(names: &[String], messages: &[Message]) -> String {
    let number = |name: &String| names.iter().position(|other| other == name);
    let arrow = |message: &Message| {
        Some(Arrow {
            from: number(&message.from)?,
            to: number(&message.to)?,
            sent_ns: message.sent_ns,
            arrived_ns: message.arrived_ns.last().copied(),
            is_lost: message.is_lost,
            label: message.what.clone(),
            note: message.note(),
        })
    };
    let arrows: Vec<Arrow> = messages.iter().filter_map(arrow).collect();
    sequence_chart(names, &arrows)
}

/// Formats the final state of each host as text. Injected failures of the host of the finding are
/// omitted, because the finding itself contains them.
pub(crate) fn host_status_text(host_status: &[HostStatus], own: &str) -> String {
    let mut text = String::new();
    for host in host_status {
        let time = host.clock_ns as f64 / 1e9;
        let _ = writeln!(text, "\nhost {} at {time:.6} s: {}", host.name, host.doing);
        for (who, frames) in &host.threads {
            let _ = writeln!(text, "    {who}");
            text.push_str(&stack_text(frames, "        "));
        }
        for (what, frames) in host.failures.iter().filter(|_| host.name != own) {
            let _ = writeln!(text, "    {what}");
            text.push_str(&stack_text(frames, "        "));
        }
    }
    text
}
