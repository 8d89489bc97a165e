//! Unfinished worlds as values: an explorer can name, store and send them, and
//! another one can continue them exactly.

use everett_sim::StoredReceived;

use super::stored::{StoredConditions, StoredNet, StoredWorldState};
use super::*;
use crate::path::Sharing;
use crate::world::stored::PendingWorld;

impl Explorer<'_> {
    /// Returns all unfinished feasible worlds, at most `most`. Spilled states are rematerialised.
    pub fn pending_worlds_up_to(&mut self, most: usize) -> Vec<PendingWorld> {
        while self.world.table.len() < most && self.begin_more_worlds() {}
        let mut worlds = Vec::new();
        for id in self.world.table.dstates() {
            let Some(dstate) = self.world.table.dstate(id) else {
                continue;
            };
            let lists = dstate.hosts().map(|(_, members)| members.to_vec());
            let lists: Vec<Vec<StateId>> = lists.collect();
            self.each_world(&lists, false, &mut |explorer, _, chosen| {
                if worlds.len() >= most {
                    return false;
                }
                let states = chosen.iter().filter_map(|id| explorer.frontier.live(*id));
                let hosts = states.map(|state| explorer.stored(state, &mut Sharing::default()));
                let hosts = hosts.collect();
                worlds.push(PendingWorld { hosts });
                true
            });
        }
        worlds
    }

    /// Returns a state with everything that determines it.
    pub(super) fn stored<'s>(
        &self,
        state: &'s State,
        sharing: &mut Sharing<'s>,
    ) -> StoredWorldState {
        let arena = &self.worker.arena;
        let received = state.net().received.blocks();
        StoredWorldState {
            trace: state.path.pending_trace(sharing),
            weight: state.path.weight,
            net: StoredNet::of(state),
            received: received
                .map(|items| StoredReceived::new(items, arena))
                .collect(),
            conditions: StoredConditions::of(&state.path, arena),
        }
    }

    /// Continues worlds; each becomes a separate dstate.
    pub(crate) fn take_up(&mut self, worlds: Vec<PendingWorld>) -> Result<(), SavedError> {
        for world in worlds {
            if world.hosts.len() != self.config.hosts.len() {
                return Err(SavedError::Other);
            }
            let mut states = Vec::new();
            for (host, stored) in (0..).map(HostIndex).zip(world.hosts) {
                if stored.net.host != host {
                    return Err(SavedError::Damaged);
                }
                let state = self.materialise(stored);
                let state = state.map_err(|_| SavedError::Damaged)?;
                states.push((host, self.add_root(*state)));
            }
            self.world.table.add_world(states.iter().copied());
            for (_, id) in states {
                self.enqueue(id);
            }
        }
        Ok(())
    }
}
