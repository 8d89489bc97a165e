//! Files beside a finding that show the messages between hosts and the final state of each host.

use everett_engine::HostStanding;
use everett_linux::{HostConfig, PacketKind};
use everett_net::Topology;
use everett_report::{Arrow, CapturedPacket, NamedFile, PacketContent, pcap, sequence_chart};
use everett_sim::Message;
use std::fmt::Write;

/// All files about messages: a text, a sequence chart, and a packet capture for each host.
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

/// The messages as text, one line each.
fn text(messages: &[Message]) -> String {
    let widths = messages.iter();
    let width = widths.map(|one| one.from.len().max(one.to.len())).max();
    let width = width.unwrap_or(0);
    let mut text = String::new();
    for message in messages {
        let fate = message.note();
        let fate = fate.map_or_else(String::new, |fate| format!("  ({fate})"));
        let ends = match message.packet {
            Some(_) => format!("{:>width$} → {:<width$}", message.from, message.to),
            None => format!("{:>width$}   {:<width$}", message.from, ""),
        };
        let (time, what) = (message.sent_ns as f64 / 1e9, &message.what);
        let _ = writeln!(text, "{time:>12.6} s  {ends}  {what}{fate}");
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

/// The packets that a host sends and receives, for Wireshark.
pub(crate) fn capture(host: &str, messages: &[Message]) -> Vec<CapturedPacket> {
    let start = HostConfig::default().start_time_ns;
    let mut packets: Vec<CapturedPacket> = Vec::new();
    for message in messages {
        let Some(packet) = &message.packet else {
            continue;
        };
        let mut add = |time_ns: u64, content: Option<PacketContent>| {
            packets.extend(content.map(|content| CapturedPacket {
                time_ns: start.saturating_add(time_ns),
                from: packet.from,
                to: packet.to,
                content,
            }));
        };
        if message.from == host {
            add(message.sent_ns, content(&packet.kind, None));
        }
        if message.to == host {
            for time in &message.arrived_ns {
                add(*time, content(&packet.kind, message.received.as_ref()));
            }
        }
    }
    packets.sort_by_key(|packet| packet.time_ns);
    packets
}

fn content(kind: &PacketKind, received: Option<&Vec<u8>>) -> Option<PacketContent> {
    Some(match kind {
        PacketKind::Syn { .. } => PacketContent::Request,
        PacketKind::SynAck { .. } | PacketKind::Established => PacketContent::Accepted,
        PacketKind::Refused => PacketContent::Rejected,
        PacketKind::Fin => PacketContent::End,
        PacketKind::Reset => PacketContent::Reset,
        PacketKind::Data(sent) => {
            PacketContent::Data(received.map_or_else(|| sent.bytes().to_vec(), Clone::clone))
        }
        PacketKind::Datagram(sent) => {
            PacketContent::Datagram(received.map_or_else(|| sent.bytes().to_vec(), Clone::clone))
        }
        // These are not packets on the wire, or nothing recorded them.
        PacketKind::WindowUpdate { .. } | PacketKind::Unreachable(_) => return None,
    })
}

/// The final state of each host, as text.
pub(crate) fn standing_text(standing: &[HostStanding]) -> String {
    let mut text = String::new();
    for host in standing {
        let time = host.clock_ns as f64 / 1e9;
        let _ = writeln!(text, "\nhost {} at {time:.6} s: {}", host.name, host.doing);
        for (who, frames) in &host.threads {
            let _ = writeln!(text, "    {who}");
            for (number, frame) in frames.iter().enumerate() {
                let place = match frame.line {
                    0 => String::new(),
                    line => format!(" at {}:{line}", frame.file),
                };
                let _ = writeln!(text, "        #{number} {}{place}", frame.function);
            }
        }
    }
    text
}
