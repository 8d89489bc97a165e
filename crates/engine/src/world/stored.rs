//! The stored form of a state of a world: its position, what it received, and its path condition.
//! Its own inputs and choices are in its trace.

use everett_expr::{Arena, ExprId, codec};
use everett_net::HostIndex;
use everett_sim::{InboxClock, RunState, StoredReceived};
use everett_solver::{Constraints, Model};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::io;

use crate::history::HistoryDigest;
use crate::path::Path;
use crate::state::{Identity, State};
use crate::trace::Trace;
use crate::weight::Weight;

/// The position of a state on its path. The run of a host does not depend on its horizons, so these
/// counters identify the position.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Position {
    /// The number of questions that were answered.
    pub answered: u64,
    /// How often the host was powered off to restart.
    pub restarts: u32,
    /// Whether the host is on.
    pub is_on: bool,
    /// The number of instructions since the last boot.
    pub instructions: u64,
    /// The host's clock.
    pub clock_ns: u64,
    /// The host's run state.
    pub run_state: RunState,
    /// The position of the host's inbox.
    pub inbox: InboxClock,
    /// The number of packets that the host has sent.
    pub sent: u64,
    /// The number of sent packets that are not in transit yet.
    pub unsent: usize,
    /// How often the host's exposed data has changed.
    pub exposures: u64,
    /// The sum of the host's fault counters.
    pub faults: u64,
}

impl Position {
    /// Returns the position of a state.
    pub fn of(state: &State) -> Position {
        let sim = state.sim();
        let host = state.host.as_ref();
        let untaken = host.map_or(0, everett_linux::Host::sent_count);
        Position {
            answered: state.path.answered,
            restarts: sim.restarts,
            is_on: host.is_some(),
            instructions: state.instructions(),
            clock_ns: state.clock_ns(),
            run_state: sim.run_state,
            inbox: sim.inbox.clock(),
            sent: sim.sent,
            unsent: sim.unsent.len() + sim.errors.len() + untaken,
            exposures: sim.exposures,
            faults: sim.counters.total(),
        }
    }
}

/// The stored form of a state of a world, besides its trace. Data that many states share is stored
/// separately.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredNet {
    /// The host.
    pub host: HostIndex,
    /// The number of the world in which the state began.
    pub world: u64,
    /// The position of the state.
    pub position: Position,
    /// The inbox's count of timeouts that the host waited for.
    pub waits: u64,
    /// The digest of the state's history.
    pub history: HistoryDigest,
    /// The identity that the rematerialised state must have.
    pub identity: Identity,
    /// The number of forks on the path.
    pub depth: u32,
    /// The number of instructions that are counted.
    pub counted: u64,
    /// Answers to the next question that other states have taken.
    pub excluded: Vec<u64>,
    /// The number of instructions since the state covered something new.
    pub since_new: u64,
}

impl StoredNet {
    /// Returns the stored form of a state.
    pub fn of(state: &State) -> StoredNet {
        let net = state.net();
        StoredNet {
            host: net.host,
            world: net.world,
            position: Position::of(state),
            waits: net.sim.inbox.waits(),
            history: net.history,
            identity: Identity::of(state),
            depth: state.path.depth,
            counted: state.path.counted,
            excluded: state.path.excluded.to_vec(),
            since_new: state.since_new,
        }
    }
}

/// A path condition, and the values that its model gives to inputs of other hosts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StoredConditions {
    /// The conditions in order, in parts.
    pub(crate) parts: Vec<ConditionPart>,
    pub(crate) foreign: ForeignInputs,
}

/// Consecutive conditions, encoded with [`codec`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConditionPart(#[serde(with = "everett_sim::hex")] pub Vec<u8>);

impl ConditionPart {
    /// Encodes conditions and all terms in them.
    pub fn of(conditions: &[ExprId], arena: &Arena) -> ConditionPart {
        ConditionPart(codec::encode(arena, conditions))
    }
}

/// Divides a path condition into parts. Their sizes are the powers of two that add up to its
/// length, so a path has few parts, and most of them in common with paths that forked off it.
pub fn condition_parts(conditions: &[ExprId]) -> impl Iterator<Item = &[ExprId]> {
    let mut rest = conditions;
    std::iter::from_fn(move || {
        let size = 1 << rest.len().checked_ilog2()?;
        let (part, after) = rest.split_at(size);
        rest = after;
        Some(part)
    })
}

/// The values that a model gives to inputs of other hosts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ForeignInputs(Vec<ForeignInput>);

impl ForeignInputs {
    /// Returns the values that the model of a path gives to inputs of other hosts.
    pub fn of(path: &Path, arena: &Arena) -> ForeignInputs {
        let own: HashSet<_> = path.inputs.iter().map(|input| input.array).collect();
        let mut foreign = BTreeSet::new();
        let mut last = None;
        for (array, _, _) in path.model.iter() {
            if last != Some(array) && !own.contains(&array) {
                foreign.insert(array);
            }
            last = Some(array);
        }
        let foreign = foreign.into_iter().map(|array| {
            let info = arena.array_info(array);
            ForeignInput {
                ordinal: info.ordinal,
                name: info.name.to_string(),
                bytes: path.model.bytes(array, info.size),
            }
        });
        ForeignInputs(foreign.collect())
    }
}

/// An input of another host.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ForeignInput {
    ordinal: u32,
    name: String,
    #[serde(with = "everett_sim::hex")]
    bytes: Vec<u8>,
}

impl StoredConditions {
    /// Encodes the path condition of a path, and the values of inputs of other hosts.
    pub fn of(path: &Path, arena: &Arena) -> StoredConditions {
        let conditions: Vec<_> = path.constraints.iter().collect();
        let parts = condition_parts(&conditions);
        StoredConditions {
            parts: parts.map(|part| ConditionPart::of(part, arena)).collect(),
            foreign: ForeignInputs::of(path, arena),
        }
    }

    /// Returns a model with the values of inputs of other hosts.
    pub fn model(&self, arena: &mut Arena) -> Model {
        let mut model = Model::new();
        for input in &self.foreign.0 {
            let array = arena.array(input.ordinal, &input.name, input.bytes.len() as u32);
            for (byte, at) in input.bytes.iter().zip(0..) {
                model.set(array, at, *byte);
            }
        }
        model
    }

    /// Decodes the path condition.
    pub fn constraints(&self, arena: &mut Arena) -> io::Result<Constraints> {
        let mut constraints = Constraints::new();
        for part in &self.parts {
            let terms = codec::decode(arena, &part.0);
            let terms = terms.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            for term in terms {
                constraints.add(arena, term);
            }
        }
        Ok(constraints)
    }
}

/// A state of a world with everything that determines it.
#[derive(Clone, Serialize, Deserialize)]
pub struct StoredWorldState {
    /// The inputs and choices of the state.
    pub trace: Trace,
    /// The weight of the state.
    pub weight: Weight,
    /// The position of the state.
    pub net: StoredNet,
    /// The log of what the state received, in parts.
    pub received: Vec<StoredReceived>,
    /// The path condition of the state.
    pub conditions: StoredConditions,
}

/// An unfinished world: the state of each host with everything that determines it. It is
/// self-contained.
#[derive(Serialize, Deserialize)]
pub struct PendingWorld {
    /// The states, in the order of the hosts.
    pub(super) hosts: Vec<StoredWorldState>,
}

impl PendingWorld {
    /// Returns the pending traces of the hosts.
    pub fn traces(&self) -> impl Iterator<Item = &Trace> {
        self.hosts.iter().map(|host| &host.trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_powers_of_two_and_shared_with_longer_paths() {
        let mut arena = Arena::new();
        let conditions: Vec<ExprId> = (0..13).map(|bits| arena.constant(64, bits)).collect();
        let lengths = |count: usize| -> Vec<usize> {
            let parts = condition_parts(&conditions[..count]);
            parts.map(<[ExprId]>::len).collect()
        };
        assert_eq!(lengths(0), [0; 0]);
        assert_eq!(lengths(12), [8, 4]);
        assert_eq!(lengths(13), [8, 4, 1]);
        let all: Vec<ExprId> = condition_parts(&conditions).flatten().copied().collect();
        assert_eq!(all, conditions);
    }
}
