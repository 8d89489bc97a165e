//! Which parts of states are in a spill file already.

use everett_expr::ExprId;
use everett_sim::Received;
use std::collections::HashMap;
use std::sync::Arc;

use crate::trace::{TraceAnswer, TraceChoice, TraceInput};

/// Offsets of blocks by digest, so that equal blocks are written once. Its size is fixed: a new
/// block evicts the one in its slot.
pub(super) struct Known {
    /// Digests, and offsets plus one. An empty slot is all zeros, so that untouched pages use no
    /// memory. There are none before the first block: most runs spill nothing.
    slots: Vec<(u128, u64)>,
    count: usize,
}

impl Known {
    const NOTHING: (u128, u64) = (0, 0);
    const MOST_MEMORY: u64 = 64 << 20;

    pub(super) fn new(memory: u64) -> Known {
        let count = memory.min(Known::MOST_MEMORY) as usize / size_of::<(u128, u64)>();
        Known {
            slots: Vec::new(),
            count: count.max(1),
        }
    }

    fn slot(&self, digest: u128) -> usize {
        (digest % self.count as u128) as usize
    }

    pub(super) fn get(&self, digest: u128) -> Option<u64> {
        let slot = self.slots.get(self.slot(digest))?;
        let place = slot.1.checked_sub(1)?;
        (slot.0 == digest).then_some(place)
    }

    pub(super) fn set(&mut self, digest: u128, offset: u64) {
        if self.slots.is_empty() {
            self.slots = vec![Known::NOTHING; self.count];
        }
        let slot = self.slot(digest);
        self.slots[slot] = (digest, offset + 1);
    }

    pub(super) fn clear(&mut self) {
        self.slots.fill(Known::NOTHING);
    }
}

/// Offsets of blocks that are spilled together, by their address in memory. The map holds the
/// blocks, so their addresses stay valid.
pub(super) type Blocks<T> = HashMap<usize, (u64, Arc<Vec<T>>)>;

/// Offsets of the parts of spilled states. They are valid while neither the states nor the terms of
/// the arena change.
#[derive(Default)]
pub struct Places {
    pub(super) inputs: Blocks<TraceInput>,
    pub(super) choices: Blocks<TraceChoice>,
    pub(super) received: Blocks<Received>,
    pub(super) answers: Blocks<TraceAnswer>,
    pub(super) conditions: KnownConditions,
}

/// Offsets of parts of path conditions, by their terms.
#[derive(Default)]
pub(super) struct KnownConditions {
    pub(super) places: HashMap<Vec<ExprId>, u64>,
    terms: usize,
}

impl KnownConditions {
    /// Maximum number of terms in the map, for paths that share nothing.
    const MOST_TERMS: usize = 1 << 20;

    pub(super) fn add(&mut self, part: &[ExprId], offset: u64) {
        if self.terms + part.len() > KnownConditions::MOST_TERMS {
            *self = KnownConditions::default();
        }
        self.terms += part.len();
        self.places.insert(part.to_vec(), offset);
    }
}
