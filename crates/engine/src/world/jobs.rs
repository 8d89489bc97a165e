//! Worlds for another machine to explore, as plain data: dstates with their states, and worlds that
//! have not begun. The explorer that continues them does not trust the data, but validates it
//! first.

use serde::{Deserialize, Serialize};

use super::transfer::write_states;
use super::*;
use crate::config::ExplorerConfig;
use crate::mapping::DstateId;
use crate::weight::Weight;

/// Maximum number of halvings of a state's weight. A sum of weights has as many digits.
const MOST_HALVINGS: u32 = 1 << 20;
/// Maximum number of halvings of the states of a world together.
const MOST_HALVINGS_TOGETHER: u64 = 1 << 22;

/// Unfinished worlds.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Worlds {
    /// Dstates with their states.
    part: WorldPart,
    /// Times at which invariants are still to be evaluated in these worlds. All of them have passed
    /// the other times.
    times: Vec<u64>,
    /// Worlds that have not begun, if there are any.
    not_begun: Option<NotBegun>,
}

/// The worlds that have not begun: all but the first ones.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct NotBegun {
    /// The number of the next world.
    next: u64,
    /// How many worlds have begun.
    begun: u64,
}

impl Worlds {
    /// Creates all worlds of a scenario, before they begin.
    pub fn beginning() -> Worlds {
        Worlds {
            not_begun: Some(NotBegun { next: 0, begun: 0 }),
            ..Worlds::default()
        }
    }

    /// Returns the number of states.
    pub fn states(&self) -> usize {
        self.part.states()
    }

    /// Returns the weight of the worlds under this configuration; `None` if they do not fit it,
    /// because the data is not trusted.
    pub fn weight(&self, config: &ExplorerConfig) -> Option<WeightSum> {
        let weights = self.part.checked_weights(config.hosts.len())?;
        let is_deep = |halvings: &u32| *halvings > MOST_HALVINGS;
        let mut deepest = vec![0u64; config.hosts.len()];
        for (host, halvings) in &weights {
            if is_deep(halvings) {
                return None;
            }
            let most = &mut deepest[host.index()];
            *most = u64::from(*halvings).max(*most);
        }
        if deepest.iter().sum::<u64>() > MOST_HALVINGS_TOGETHER {
            return None;
        }
        let mut sum = self.part.weight()?;
        if let Some(not_begun) = &self.not_begun {
            let world = config.world.as_ref()?;
            let faults = world.network.faults.world_faults().len() as u32;
            let all = 1u64.checked_shl(faults)?;
            if not_begun.begun >= all || not_begun.next >= all {
                return None;
            }
            let fits = sum.add_sum_checked(&weight_of_rest(faults, not_begun.begun));
            return fits.then_some(sum);
        }
        Some(sum)
    }

    /// Returns whether one search can continue all of these worlds: none has passed a time at which
    /// invariants of others are still to be evaluated.
    pub fn can_be_together(all: &[Worlds]) -> bool {
        let mut with_states = all.iter().filter(|worlds| worlds.states() > 0);
        let first = with_states.next().map(|worlds| &worlds.times);
        let mut not_begun = all.iter().filter(|worlds| worlds.not_begun.is_some());
        with_states.all(|worlds| Some(&worlds.times) == first)
            && (not_begun.next().is_none() || not_begun.next().is_none())
    }
}

/// Returns the weight of all worlds but those that have begun.
pub(super) fn weight_of_rest(faults: u32, begun: u64) -> WeightSum {
    let mut sum = WeightSum::default();
    let left = (1u64 << faults) - begun;
    for bit in (0..64).filter(|bit| left >> bit & 1 == 1) {
        let halvings = faults - bit;
        sum.add(Weight { halvings });
    }
    sum
}

impl Explorer<'_> {
    /// Removes all worlds from the search, in at most `most` parts. The search is empty afterwards.
    pub fn take_worlds_in_parts(&mut self, most: usize) -> Vec<Worlds> {
        let times: Vec<u64> = self.world.times.iter().copied().collect();
        let dstates = self.world.table.dstates();
        let size = dstates.len().div_ceil(most.max(1)).max(1);
        let chunks: Vec<&[DstateId]> = dstates.chunks(size).collect();
        let mut all = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let part = self.give_worlds(chunk);
            all.extend(part.map(|part| Worlds {
                part,
                times: times.clone(),
                not_begun: None,
            }));
        }
        let begun = self.world.begun;
        if let Some(next) = self.world.next_world.take() {
            let not_begun = Some(NotBegun { next, begun });
            match all.first_mut() {
                Some(first) => first.not_begun = not_begun,
                None => all.push(Worlds {
                    not_begun,
                    ..Worlds::default()
                }),
            }
        }
        all
    }

    /// Continues worlds from an untrusted source, after validating them.
    pub(crate) fn take_up_worlds(&mut self, all: Vec<Worlds>) -> Result<(), SavedError> {
        let are_ours = all.iter().all(|one| one.weight(&self.config).is_some());
        if !are_ours || !Worlds::can_be_together(&all) {
            return Err(SavedError::Damaged);
        }
        for worlds in all {
            self.world.has_open_questions |= worlds.part.has_open_questions;
            if worlds.states() > 0 {
                let spill = self.spill.as_mut().ok_or(SavedError::Damaged)?;
                let states = write_states(spill.writer(), &worlds.part.states);
                let states = states.map_err(|_| SavedError::Damaged)?;
                self.add_spilled_worlds(&states, &worlds.part.table)?;
                self.world.times = worlds.times.into_iter().collect();
            }
            if let Some(not_begun) = worlds.not_begun {
                (self.world.next_world, self.world.begun) = (Some(not_begun.next), not_begun.begun);
            }
        }
        if self.frontier.is_empty() {
            self.begin_more_worlds();
        }
        Ok(())
    }
}
