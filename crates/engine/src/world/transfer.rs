//! Moves worlds to another worker: dstates with all of their states. Dstates are disjoint sets of
//! worlds, so no other worker explores what one worker gives away. A state that is also in dstates
//! that stay is copied.
//!
//! Between threads, a state moves itself if it refers to no term: terms belong to the arena of a
//! worker. All other states are rematerialised where they arrive.

use everett_expr::{ExprId, VisitTerms};
use everett_net::HostIndex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::PathBuf;

use super::stored::StoredWorldState;
use crate::explorer::Explorer;
use crate::frontier::{Spilled, StateId, Stored};
use crate::mapping::{DstateId, MemberId, StoredTable, weight_of};
use crate::path::Sharing;
use crate::saved::{SavedState, StateFacts};
use crate::spill::{BUNDLE, SpillFile, SpillWriter};
use crate::state::State;
use crate::weight::WeightSum;

/// Memory for the index of a file that is only read.
const INDEX_MEMORY: u64 = 1 << 10;

/// Dstates in transit, with their states.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WorldPart<S = StoredWorldState> {
    pub(super) states: Vec<(S, StateFacts)>,
    pub(super) table: StoredTable,
    /// Whether the giving worker has unanswered questions about invariants.
    pub(super) has_open_questions: bool,
}

impl<S> Default for WorldPart<S> {
    fn default() -> WorldPart<S> {
        WorldPart {
            states: Vec::new(),
            table: StoredTable::default(),
            has_open_questions: false,
        }
    }
}

/// A state that moves from one thread to another.
#[derive(Clone)]
pub(crate) enum MovedState {
    /// As plain data.
    Stored(Box<StoredWorldState>),
    /// Itself.
    Live(Box<State>),
}

impl From<StoredWorldState> for MovedState {
    fn from(stored: StoredWorldState) -> MovedState {
        MovedState::Stored(Box::new(stored))
    }
}

/// Decides which states can move themselves to another thread.
#[derive(Default)]
struct Movable {
    /// The parts of states that refer to no term.
    without_terms: HashSet<usize>,
}

/// A visit of the terms of one state.
struct Visit<'m> {
    known: &'m HashSet<usize>,
    parts: HashSet<usize>,
    has_terms: bool,
}

impl VisitTerms for Visit<'_> {
    fn term(&mut self, _: ExprId) {
        self.has_terms = true;
    }

    fn is_new(&mut self, address: usize) -> bool {
        !self.known.contains(&address) && self.parts.insert(address)
    }
}

impl Movable {
    /// Returns whether a state refers to nothing of its worker. States must not move meanwhile:
    /// their parts are identified by their addresses.
    fn contains(&mut self, state: &State) -> bool {
        if !state.seems_movable() || state.path.model.iter().next().is_some() {
            return false;
        }
        let mut visit = Visit {
            known: &self.without_terms,
            parts: HashSet::new(),
            has_terms: false,
        };
        state.for_each_term(&mut visit);
        let (parts, has_terms) = (visit.parts, visit.has_terms);
        if !has_terms {
            self.without_terms.extend(parts);
        }
        !has_terms
    }
}

/// The worlds of a paused worker: their positions in its spill file.
pub(crate) struct WorldSnapshot {
    spill: PathBuf,
    pub(crate) states: Vec<SavedState>,
    pub(crate) table: StoredTable,
}

impl Explorer<'_> {
    /// Returns whether several workers can explore the worlds. They cannot with invariants at fixed
    /// times, because all worlds pass such a time together, nor if one world is followed, because
    /// its messages are logged in order.
    pub(crate) fn can_divide_worlds(&self) -> bool {
        let limits = &self.config.limits;
        let is_limited = limits.max_paths.is_some() || limits.max_forks.is_some();
        self.spill.is_some()
            && !is_limited
            && self.world.messages.is_none()
            && self
                .world
                .invariants
                .iter()
                .all(|file| file.times().next().is_none())
    }

    /// Removes dstates from the search, to give them to another machine.
    pub(super) fn give_worlds(&mut self, dstates: &[DstateId]) -> Option<WorldPart> {
        let part = self.part_of(dstates, |state, sharing| self.stored(state, sharing));
        self.leave_worlds(dstates, part)
    }

    /// Removes dstates from the search, to give them to another thread.
    pub(crate) fn move_worlds(&mut self, dstates: &[DstateId]) -> Option<WorldPart<MovedState>> {
        let mut movable = Movable::default();
        let part = self.part_of(dstates, |state, sharing| match movable.contains(state) {
            true => MovedState::Live(Box::new(state.clone())),
            false => self.stored(state, sharing).into(),
        });
        self.leave_worlds(dstates, part)
    }

    /// Removes all dstates from the search, to give them to another thread as plain data, which
    /// need not stay in memory.
    pub(crate) fn give_all_worlds(&mut self) -> Option<WorldPart<MovedState>> {
        let all = self.world.table.dstates();
        if all.is_empty() {
            return None;
        }
        let part = self.part_of(&all, |state, sharing| self.stored(state, sharing).into());
        self.leave_worlds(&all, part)
    }

    /// Removes dstates from the search, if they could be packed.
    fn leave_worlds<S>(
        &mut self,
        dstates: &[DstateId],
        part: io::Result<WorldPart<S>>,
    ) -> Option<WorldPart<S>> {
        let part = match part {
            Ok(part) => part,
            Err(error) => {
                self.warn(format!("worlds cannot be given to another worker: {error}"));
                return None;
            }
        };
        for id in dstates {
            let gone = self.world.table.remove_dstate(*id);
            self.drop_states(&gone);
        }
        Some(part)
    }

    /// Packs dstates with their states; states in the spill file are read from it.
    fn part_of<'s, S: From<StoredWorldState>>(
        &'s self,
        dstates: &[DstateId],
        mut pack: impl FnMut(&'s State, &mut Sharing<'s>) -> S,
    ) -> io::Result<WorldPart<S>> {
        let table = &self.world.table;
        let members = dstates.iter().flat_map(|id| table.members(*id));
        let members: BTreeSet<StateId> = members.collect();
        let (mut states, mut numbers) = (Vec::new(), BTreeMap::new());
        let mut sharing = Sharing::default();
        for id in members {
            let (packed, net) = match (self.frontier.get(id), &self.spill) {
                (Some(Stored::Live(state)), _) => {
                    (pack(state, &mut sharing), Spilled::net_of(state))
                }
                (Some(Stored::Spilled(spilled)), Some(spill)) => {
                    let stored = spill.get_of_world(spilled.at)?;
                    (stored.into(), spilled.net.clone())
                }
                _ => return Err(io::ErrorKind::NotFound.into()),
            };
            let facts = net.and_then(|net| self.facts(id, &net));
            let facts = facts.ok_or(io::ErrorKind::NotFound)?;
            numbers.insert(id, MemberId(states.len() as u32));
            states.push((packed, facts));
        }
        Ok(WorldPart {
            states,
            table: table.store(dstates, &numbers),
            has_open_questions: self.world.has_open_questions,
        })
    }

    /// Adds dstates of another worker. States that are plain data are rematerialised when they run.
    pub(crate) fn take_worlds(&mut self, part: &WorldPart<MovedState>) {
        let count = part.states.len() as u64;
        self.world.has_open_questions |= part.has_open_questions;
        let Some(spill) = &mut self.spill else {
            return self.note_lost(count, "there is no spill file");
        };
        let stored = part.states.iter().filter_map(|(state, _)| match state {
            MovedState::Stored(stored) => Some(&**stored),
            MovedState::Live(_) => None,
        });
        let places = match spill.writer().put_stored(stored) {
            Ok(places) => places,
            Err(error) => return self.note_lost(count, &error.to_string()),
        };
        let mut places = places.into_iter();
        let states = part.states.iter().filter_map(|(state, facts)| match state {
            MovedState::Stored(_) => Some(Stored::Spilled(facts.spilled_at(places.next()?))),
            MovedState::Live(state) => Some(Stored::Live(state.clone())),
        });
        let facts: Vec<&StateFacts> = part.states.iter().map(|(_, facts)| facts).collect();
        if let Err(error) = self.add_worlds(states.collect(), &facts, &part.table) {
            self.note_lost(count, &error.to_string());
        }
    }

    /// Writes worlds in transit between threads for a checkpoint.
    pub(crate) fn save_moved<'p>(
        &self,
        part: &'p WorldPart<MovedState>,
        writer: &mut SpillWriter,
    ) -> io::Result<(Vec<SavedState>, &'p StoredTable)> {
        let mut sharing = Sharing::default();
        let states = part.states.iter().map(|(state, facts)| match state {
            MovedState::Stored(stored) => ((**stored).clone(), facts.clone()),
            MovedState::Live(state) => (self.stored(state, &mut sharing), facts.clone()),
        });
        let states: Vec<(StoredWorldState, StateFacts)> = states.collect();
        Ok((write_states(writer, &states)?, &part.table))
    }

    /// Writes all states to the spill file and returns their positions; the search can continue.
    pub(crate) fn snapshot_worlds(&mut self) -> Option<WorldSnapshot> {
        let path = self.config.spill.clone()?;
        let mut spill = self.spill.take()?;
        let saved = self.save_world(spill.writer(), &|| true);
        self.spill = Some(spill);
        match saved {
            Ok(saved) => {
                let (states, table) = saved?.into_states();
                let spill = path;
                Some(WorldSnapshot {
                    spill,
                    states,
                    table,
                })
            }
            Err(error) => {
                self.note_lost(self.frontier.len() as u64, &error.to_string());
                None
            }
        }
    }
}

/// Writes states that are in transit to a file.
pub(crate) fn write_states(
    writer: &mut SpillWriter,
    states: &[(StoredWorldState, StateFacts)],
) -> io::Result<Vec<SavedState>> {
    let places = writer.put_stored(states.iter().map(|(stored, _)| stored))?;
    let facts = states.iter().map(|(_, facts)| facts.clone());
    let saved = places.into_iter().zip(facts);
    Ok(saved.map(|(at, facts)| SavedState { at, facts }).collect())
}

impl<S> WorldPart<S> {
    /// Returns the number of states.
    pub(crate) fn states(&self) -> usize {
        self.states.len()
    }
}

impl WorldPart {
    /// Returns the host of each state and the halvings of its weight; `None` if states, hosts and
    /// table do not match.
    pub(super) fn checked_weights(&self, hosts: usize) -> Option<Vec<(HostIndex, u32)>> {
        self.table.check(self.states.len(), hosts).ok()?;
        let states = self.states.iter().map(|(stored, facts)| {
            let host = facts.host;
            let is_one = host == stored.net.host && host.index() < hosts;
            is_one.then_some((host, stored.weight.halvings))
        });
        states.collect()
    }

    /// Returns the weight of all combinations of states; `None` if it exceeds 1.
    pub(super) fn weight(&self) -> Option<WeightSum> {
        let mut sum = WeightSum::default();
        for sets in self.table.dstates() {
            let sets: Vec<Vec<MemberId>> = sets.collect();
            let hosts = (0..).map(HostIndex).zip(sets.iter().map(Vec::as_slice));
            let of_state = |id: MemberId| {
                let state = self.states.get(id.0 as usize);
                state.map_or_else(Default::default, |(stored, _)| stored.weight)
            };
            if !sum.add_sum_checked(&weight_of(hosts, of_state)) {
                return None;
            }
        }
        Some(sum)
    }
}

impl WorldSnapshot {
    /// Copies the states from the worker's spill file to a checkpoint.
    pub(crate) fn save(
        &self,
        writer: &mut SpillWriter,
    ) -> io::Result<(Vec<SavedState>, &StoredTable)> {
        let spill = SpillFile::open(&self.spill, &[], INDEX_MEMORY)?;
        let mut saved = Vec::with_capacity(self.states.len());
        for part in self.states.chunks(BUNDLE) {
            let states = part.iter().map(|state| {
                let stored = spill.get_of_world(state.at)?;
                Ok((stored, state.facts.clone()))
            });
            let states = states.collect::<io::Result<Vec<_>>>()?;
            saved.extend(write_states(writer, &states)?);
        }
        Ok((saved, &self.table))
    }
}
