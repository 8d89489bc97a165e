//! Packets of a native replay, for Wireshark.

use everett_linux::PacketKind;
use everett_native::{NativeConfig, NativeRun, SentPacket};
use everett_report::{CapturedPacket, PacketContent};

/// The packets between the internet sockets of one host.
pub(crate) fn packets_of(config: &NativeConfig, seen: &NativeRun) -> Vec<CapturedPacket> {
    let start = config.host.start_time_ns;
    let captured = |(packet, bytes): &SentPacket| {
        let content = match packet.kind {
            PacketKind::Established | PacketKind::SynAck { .. } => PacketContent::Opened,
            PacketKind::Refused => PacketContent::Refused,
            PacketKind::Data(_) => PacketContent::Data(bytes.clone()),
            PacketKind::Fin => PacketContent::End,
            PacketKind::Reset => PacketContent::Reset,
            PacketKind::Datagram(_) => PacketContent::Datagram(bytes.clone()),
            PacketKind::Syn { .. }
            | PacketKind::WindowUpdate { .. }
            | PacketKind::Unreachable(_) => {
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
