//! The message log of a world that is followed along a trace.

use everett_linux::Packet;
use everett_net::HostIndex;
use everett_sim::{Arrival, Message, MessageLog, Step};

use super::*;

impl Explorer<'_> {
    /// Returns the messages between hosts in the order of their clocks, if one world is followed.
    pub fn messages(&self) -> Vec<Message> {
        let messages = self.world.messages.as_ref();
        messages.map_or_else(Vec::new, MessageLog::in_order)
    }

    /// Returns the payload of a packet under the model of a state.
    fn bytes_of(&mut self, packet: &Packet, state: &State) -> Option<Vec<u8>> {
        let bytes = packet.payload()?;
        let mut known = Vec::with_capacity(bytes.len());
        for at in 0..bytes.len() {
            let value = bytes.byte(&mut self.worker.arena, at);
            known.push(self.worker.value(state, value) as u8);
        }
        Some(known)
    }

    /// Logs a packet that is put in transit.
    pub(super) fn log_sent(&mut self, arrival: &Arrival, to: HostIndex, sender: &State) {
        if self.world.messages.is_none() {
            return;
        }
        let bytes = self.bytes_of(&arrival.packet, sender);
        if let Some(messages) = &mut self.world.messages {
            messages.log_sent(arrival, to, bytes);
        }
    }

    /// Logs what a step of a host did.
    pub(super) fn log_step<S>(&mut self, host: HostIndex, step: &Step<S>, state: &State) {
        if self.world.messages.is_none() {
            return;
        }
        let bytes = match step {
            Step::Delivered(_, delivery) => match delivery.delivered.clone() {
                Some(packet) => self.bytes_of(&packet, state),
                None => None,
            },
            _ => None,
        };
        let faults = &self.world.network.faults;
        let Some(messages) = &mut self.world.messages else {
            return;
        };
        messages.log_step(host, step, faults, bytes);
    }
}
