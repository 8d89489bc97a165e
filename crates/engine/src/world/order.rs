//! Whose turn it is. As a rule that of the state with the least clock of all. A searcher picks a state, and one of its dstates is brought to
//! its end: of each of its states those go on before it from whom it may still hear something, and they are of its own dstates.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::frontier::StateInfo;
use crate::mapping::DstateId;
use crate::random::Random;
use crate::search::{Rank, UnknownSearcher, ranks};

/// Steps of one dstate before searchers are asked again: it may have no end.
const PATIENCE: u32 = 1 << 12;

/// Which states are wanted, by each of the searchers that take turns.
pub struct Wanted {
    rankings: Vec<Ranking>,
    turn: usize,
    /// The dstate that is brought to its end, and for how many steps.
    under_way: Option<(DstateId, u32)>,
    random: Random,
}

struct Ranking {
    rank: Rank,
    queue: BTreeSet<(u64, MemberId)>,
    ranks: BTreeMap<MemberId, u64>,
}

impl Wanted {
    /// By searchers of these names; where there are none nobody is wanted more than others.
    pub fn by(names: &[String], seed: u64) -> Result<Wanted, UnknownSearcher> {
        let ranking = |rank| Ranking {
            rank,
            queue: BTreeSet::new(),
            ranks: BTreeMap::new(),
        };
        Ok(Wanted {
            rankings: ranks(names)?.into_iter().map(ranking).collect(),
            turn: 0,
            under_way: None,
            random: Random::new(seed),
        })
    }

    /// Nobody is wanted more than others.
    pub fn is_nobody(&self) -> bool {
        self.rankings.is_empty()
    }

    fn place(&mut self, id: MemberId, info: &StateInfo) {
        for ranking in &mut self.rankings {
            let rank = (ranking.rank)(info, id.0, &mut self.random);
            ranking.ranks.insert(id, rank);
            ranking.queue.insert((rank, id));
        }
    }

    pub(super) fn unplace(&mut self, id: MemberId) {
        for ranking in &mut self.rankings {
            if let Some(rank) = ranking.ranks.remove(&id) {
                ranking.queue.remove(&(rank, id));
            }
        }
    }

    fn first(&mut self) -> Option<MemberId> {
        self.turn = (self.turn + 1) % self.rankings.len().max(1);
        let ranking = self.rankings.get(self.turn)?;
        ranking.queue.first().map(|(_, id)| *id)
    }
}

/// Where a state stands in the queue of all.
pub(super) type Place = (u64, HostIndex, MemberId);

impl Worlds<'_> {
    /// Notes how much a state is wanted that can go on.
    pub(super) fn want(&mut self, id: MemberId) {
        if self.wanted.is_nobody() {
            return;
        }
        self.wanted.unplace(id);
        let Some(member) = self.members.get(&id).filter(|one| one.next_ns() < u64::MAX) else {
            return;
        };
        let (state, counters) = (&member.state, &member.counters);
        let info = StateInfo {
            depth: state.path.depth,
            distance: 0,
            since_new: state.since_new,
            faults: state.path.faults + counters.total_used(),
            preemptions: state.path.preemptions,
        };
        self.wanted.place(id, &info);
    }

    /// The state that is to go on, and when something happens to it next.
    pub(super) fn turn(&mut self) -> Option<Place> {
        let first = self.queue.first().copied()?;
        if self.wanted.is_nobody() {
            return Some(first);
        }
        let Some(mut next) = self.first_under_way().or_else(|| self.pick()) else {
            return Some(first);
        };
        while let Some(earlier) = self.first_beside(next.2).filter(|other| *other < next) {
            next = earlier;
        }
        // Nobody goes beyond a time at which all are looked at or somebody starts, nor beyond the last one.
        let looked_at = self.times.first().copied();
        let last = [self.config.max_virtual_ns, looked_at, self.next_start_ns()];
        let is_beyond = last.iter().flatten().any(|last| next.0 > *last);
        Some(if is_beyond { first } else { next })
    }

    /// The first state of the dstate that is brought to its end, if that is not there yet.
    fn first_under_way(&mut self) -> Option<Place> {
        let (dstate, steps) = self.wanted.under_way?;
        self.wanted.under_way = steps.checked_sub(1).map(|left| (dstate, left));
        let members = self.table.members(dstate);
        let first = members.filter_map(|id| self.place_of(id)).min();
        first.filter(|(next_ns, _, _)| *next_ns < u64::MAX)
    }

    /// Asks a searcher which dstate is next.
    fn pick(&mut self) -> Option<Place> {
        let wanted = self.wanted.first()?;
        let newest = self.table.dstates_of(wanted).pop();
        self.wanted.under_way = newest.map(|dstate| (dstate, PATIENCE));
        self.first_under_way()
    }

    fn place_of(&self, id: MemberId) -> Option<Place> {
        let (next, host) = self.places.get(&id)?;
        Some((*next, *host, id))
    }

    /// The first one of those from whom a state may still hear something.
    pub(super) fn first_beside(&self, id: MemberId) -> Option<Place> {
        if self.wanted.is_nobody() {
            // With all clocks in one order nobody has to look for those who matter.
            let mut others = self.queue.iter().filter(|(_, _, other)| *other != id);
            return others.next().copied();
        }
        let others = self.table.beside(id);
        others.filter_map(|other| self.place_of(other)).min()
    }
}
