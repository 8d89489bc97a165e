//! What those who watch a native run are shown.

use everett_linux::PacketKind;

use super::{SentPacket, World};
use crate::watch::{Standing, StandingThread};

impl World<'_> {
    /// Tells who watches what happened; `false` if the run is to stop.
    pub(super) fn tell(&mut self) -> bool {
        let clock = self.host.clock_ns();
        let mut goes_on = true;
        for line in self.host.log().iter().skip(self.told) {
            self.told += 1;
            goes_on &= self.watcher.event(self.told, line, clock);
        }
        goes_on
    }

    /// Shows the processes to who watches, now that all stand still.
    pub(super) fn stand(&mut self) {
        self.tell();
        let programs = &self.config.programs;
        let threads = self
            .threads
            .iter_mut()
            .map(|(name, native)| StandingThread {
                name: *name,
                tracee: &mut native.tracee,
                program: programs[usize::from(native.image.0)].clone(),
                wants: native.pending.map(|call| call.number),
            });
        self.watcher.stands(&mut Standing {
            running: self.host.running(),
            threads: threads.collect(),
        });
    }

    /// The packets so far.
    pub(super) fn packets(&mut self) -> Vec<SentPacket> {
        let mut packets = Vec::new();
        for packet in self.host.packets() {
            let bytes = match &packet.kind {
                PacketKind::Data(buffer) | PacketKind::Datagram(buffer) => {
                    self.oracle.inputs.bytes(buffer, &mut self.arena)
                }
                _ => Vec::new(),
            };
            packets.push((packet.clone(), bytes));
        }
        packets
    }
}
