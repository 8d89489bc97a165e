//! Converts the packets of hosts to pcap records, for Wireshark.

use everett_linux::{HostConfig, PacketKind};
use everett_native::{NativeConfig, NativeRun, SentPacket};
use everett_report::{CapturedPacket, PacketContent};
use everett_sim::Message;

/// Returns the packets between the internet sockets of a program, which has no other hosts.
pub(crate) fn packets_of(config: &NativeConfig, seen: &NativeRun) -> Vec<CapturedPacket> {
    let start = config.host.start_time_ns;
    let captured = |(packet, bytes): &SentPacket| {
        let content = match &packet.kind {
            PacketKind::Established | PacketKind::SynAck { .. } => PacketContent::Opened,
            PacketKind::Refused => PacketContent::Refused,
            PacketKind::Data(_) => PacketContent::Data(bytes.clone()),
            PacketKind::Fin => PacketContent::End,
            PacketKind::Reset => PacketContent::Reset,
            PacketKind::Datagram(_) => PacketContent::Datagram(bytes.clone()),
            PacketKind::Frame(frame) => PacketContent::Frame(frame.encode(bytes)),
            PacketKind::Syn { .. }
            | PacketKind::WindowUpdate { .. }
            | PacketKind::Urgent { .. }
            | PacketKind::Unreachable { .. } => {
                return None;
            }
        };
        Some(CapturedPacket {
            time_ns: start.saturating_add(packet.clock_ns),
            from: packet.from,
            to: packet.to,
            content,
        })
    };
    seen.packets.iter().filter_map(captured).collect()
}

/// Returns the packets that a host sends and receives, for Wireshark.
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
        PacketKind::Datagram(sent) => PacketContent::Datagram(
            received.map_or_else(|| sent.bytes.bytes().to_vec(), Clone::clone),
        ),
        PacketKind::Frame(sent) => {
            let payload = received.map_or(sent.payload.bytes(), Vec::as_slice);
            PacketContent::Frame(sent.encode(payload))
        }
        // These are not packets on the wire, or were not recorded.
        PacketKind::WindowUpdate { .. }
        | PacketKind::Urgent { .. }
        | PacketKind::Unreachable { .. } => return None,
    })
}
