//! Work sharing: which states of a program, or which worlds, a worker gives to idle workers.

use super::member::{ROUNDS_A_LOOK, WORTH};
use super::*;
use crate::state::State;

/// The work of moving a state, except for rematerialising it, in instructions.
const MOVE_WORK: u64 = 1000;
/// Maximum number of states given away at a time.
const MOST_GIVEN: usize = 256;
/// Maximum number of bytes of inputs of the states given away at a time.
const MOST_BYTES: usize = 1 << 22;
/// Maximum number of spilled states given away at a time: they are in memory while they are packed.
const MOST_SPILLED: usize = 1 << 12;
/// A worker looks for states that it can give to idle workers for at most one part in this many of
/// its time.
const LOOKING_PART: u32 = 50;
/// Maximum number of dstates considered for giving away, and given at a time.
const MOST_DSTATES: usize = 1024;
/// States may be given away, whatever is expected of them, while rematerialising them takes at most
/// one part in this many of the instructions so far.
const REPLAY_PART: u64 = 20;
/// Number of states that are handed over to the lead at a time.
const HANDED_TOGETHER: usize = 64;

/// The instructions that may be spent on rematerialising states that are not expected to be worth
/// it.
struct ReplayBudget {
    free: u64,
    /// The instructions of the states that were given within this budget.
    used: u64,
}

impl ReplayBudget {
    /// Returns the budget after a number of explored instructions, part of which is spent already.
    fn new(explored: u64, spent: u64) -> ReplayBudget {
        ReplayBudget {
            free: (explored / REPLAY_PART).saturating_sub(spent),
            used: 0,
        }
    }

    /// Spends this number of instructions, if they are left.
    fn take(&mut self, replay: u64) -> bool {
        let is_free = replay <= self.free;
        if is_free {
            self.free -= replay;
            self.used += replay;
        }
        is_free
    }
}

/// Returns how many states to give away if `asked` are requested: the heaviest ones, up to the
/// fraction of the weight that `asked` is of all states, and at least one stays. `halvings` are
/// those of all states, the heaviest first.
pub fn share_of(halvings: impl ExactSizeIterator<Item = u32> + Clone, asked: usize) -> usize {
    let count = halvings.len();
    let part = asked as f64 / count.max(1) as f64;
    share_of_weight(halvings, part, asked.min(count.saturating_sub(1)))
}

/// Returns how many of the heaviest states have this part of the weight together, at most `most`.
fn share_of_weight(
    halvings: impl ExactSizeIterator<Item = u32> + Clone,
    part: f64,
    most: usize,
) -> usize {
    // Weights are relative to the largest one: those of deep states are too small for a float.
    let least = halvings.clone().next().unwrap_or(0);
    let weight = |halvings: u32| (-f64::from(halvings - least)).exp2();
    let share = part * halvings.clone().map(weight).sum::<f64>();
    let mut given = 0.0;
    let is_less = |halvings: &u32| {
        let is_less = given < share;
        given += weight(*halvings);
        is_less
    };
    halvings.take(most).take_while(is_less).count()
}

/// Returns as many of these states, the heaviest first, that moving them together costs little in
/// comparison with the work below them. `expected` is the work of the whole search, and `replay_of`
/// returns the number of instructions that rematerialising states together takes.
fn worth_moving_together(
    states: Vec<(u32, StateId)>,
    expected: f64,
    replay_of: impl Fn(&[StateId]) -> u64,
) -> Vec<StateId> {
    let halvings = states.iter().map(|(halvings, _)| -f64::from(*halvings));
    let mut below: Vec<f64> = halvings.map(|part| expected * part.exp2()).collect();
    let mut states: Vec<StateId> = states.into_iter().map(|(_, id)| id).collect();
    while !states.is_empty() {
        let cost = MOVE_WORK.saturating_mul(states.len() as u64);
        let cost = cost.saturating_add(replay_of(&states));
        if below.iter().sum::<f64>() >= WORTH * cost as f64 {
            break;
        }
        states.truncate(states.len() / 2);
        below.truncate(states.len());
    }
    states
}

impl Explorer<'_> {
    /// Returns whether this worker should now give states to idle workers.
    pub(crate) fn is_asked_for_states(&self) -> bool {
        let is_asked = |member: &Member| {
            member.team.wanted.load(Ordering::Relaxed) > 0
                && self.config.clock.now() >= member.look_after
        };
        self.frontier.len() > 1 && self.member.as_ref().is_some_and(is_asked)
    }

    /// Gives states to idle workers: those with the largest weight, because most of the search is
    /// below them.
    pub(super) fn share_work(&mut self, team: &Team) {
        if !self.is_asked_for_states() {
            return;
        }
        // The last idle worker may have got a job meanwhile.
        let wanted = team.wanted.load(Ordering::Relaxed).max(1);
        let now = self.config.clock.now();
        let heaviest = self.heaviest_states();
        let most = (heaviest.len() - heaviest.len() / (wanted + 1)).min(self.most_given(&heaviest));
        let part = wanted as f64 / (wanted + 1) as f64;
        let count = share_of_weight(heaviest.iter().map(|(halvings, _)| *halvings), part, most);
        let expected = team.expected.load(Ordering::Relaxed) as f64;
        let worth = self.worth_moving(&heaviest[..count], expected);
        let mut jobs: Vec<Job> = Vec::new();
        for part in worth.chunks(worth.len().div_ceil(wanted).max(1)) {
            jobs.extend(self.give_together(part));
        }
        if jobs.is_empty() {
            let explored = team.explored.load(Ordering::Relaxed);
            let spent = team.given_replay.load(Ordering::Relaxed);
            let mut budget = ReplayBudget::new(explored, spent);
            for _ in 0..wanted {
                let subtree = self.affordable_subtree(most / wanted, &mut budget);
                jobs.extend(self.give_together(&subtree));
            }
            team.given_replay.fetch_add(budget.used, Ordering::Relaxed);
        }
        let taken = self.config.clock.now().saturating_sub(now);
        if let Some(member) = &mut self.member {
            member.look_after = now + LOOKING_PART * taken;
        }
        team.add_jobs(jobs);
    }

    /// Returns how many of these states may be given away at a time: as traces, states with long
    /// inputs take much memory.
    fn most_given(&self, states: &[(u32, StateId)]) -> usize {
        let mut live = states.iter().filter_map(|(_, id)| self.frontier.live(*id));
        let bytes = live.next().map_or(0, |state| {
            let sizes = state.path.inputs.iter().map(|input| input.size as usize);
            sizes.sum()
        });
        (MOST_BYTES / bytes.max(1)).clamp(1, MOST_GIVEN)
    }

    /// Removes states from the search and returns the job to explore them.
    fn give_together(&mut self, states: &[StateId]) -> Option<Job> {
        let traces = states.iter().filter_map(|id| self.give(*id).map(Arc::new));
        let traces: Vec<Arc<Trace>> = traces.collect();
        (!traces.is_empty()).then_some(Job::States(traces))
    }

    /// Returns the states that are not being executed, the heaviest first.
    fn heaviest_states(&self) -> Vec<(u32, StateId)> {
        let states = self.frontier.weights();
        let mut heaviest: Vec<(u32, StateId)> =
            states.map(|(id, weight)| (weight.halvings, id)).collect();
        heaviest.sort_unstable();
        heaviest
    }

    /// Returns those of these states below which so much work is expected that rematerialising them
    /// costs little in comparison.
    fn worth_moving(&self, states: &[(u32, StateId)], expected: f64) -> Vec<StateId> {
        let is_worth = |(halvings, id): &&(u32, StateId)| {
            let below = expected * (-f64::from(*halvings)).exp2();
            let replay = self.replay_of(*id);
            replay.is_some_and(|replay| expected == 0.0 || below >= WORTH * replay as f64)
        };
        let worth = states.iter().filter(is_worth);
        worth.map(|(_, id)| *id).collect()
    }

    /// Returns the states of a subtree of forks with at most this number of states that the budget
    /// allows to move. In many programs, most of the work has little weight. States of a subtree
    /// have most of their paths in common, so moving many costs little more than moving one.
    fn affordable_subtree(&self, mut most: usize, budget: &mut ReplayBudget) -> Vec<StateId> {
        while most > 0 {
            let states = self.frontier.subtree(most);
            if budget.take(self.frontier.instructions_to(&states)) {
                return states;
            }
            most /= 2;
        }
        Vec::new()
    }

    /// Returns the number of instructions that rematerialising a state takes; `None` if it cannot be
    /// moved.
    fn replay_of(&self, id: StateId) -> Option<u64> {
        match self.frontier.get(id)? {
            Stored::Live(state) => Some(state.instructions()),
            // A spilled state has to be rematerialised anyway.
            Stored::Spilled(_) => Some(0),
            Stored::Running => None,
        }
    }

    /// Gives worlds to idle workers: the newest dstates, because they share most states.
    pub(super) fn share_worlds(&mut self, team: &Team) {
        let wanted = team.wanted.load(Ordering::Relaxed);
        let Some(member) = &self.member else { return };
        if wanted == 0 || member.rounds < member.look_at || self.world.table.len() < 2 {
            return;
        }
        let picked = self.pick_dstates(team, wanted);
        if let Some(member) = &mut self.member {
            member.pause = match picked.is_empty() {
                true => (2 * member.pause).min(MOST_ROUNDS_A_LOOK),
                false => ROUNDS_A_LOOK,
            };
            member.look_at = member.rounds.saturating_add(member.pause);
        }
        if picked.is_empty() {
            return;
        }
        let parts = picked.chunks(picked.len().div_ceil(wanted));
        let parts = parts.filter_map(|part| self.move_worlds(part));
        team.add_jobs(parts.map(|part| Job::Worlds(Arc::new(part))).collect());
    }

    /// Returns the newest dstates that are worth giving to this number of workers.
    fn pick_dstates(&self, team: &Team, wanted: usize) -> Vec<DstateId> {
        let table = &self.world.table;
        let mut dstates = table.dstates();
        let weight = |id| weight_of(table.hosts(id), |state| self.frontier.weight(state)).to_f64();
        let first = dstates.len().saturating_sub(MOST_DSTATES);
        let newest = dstates.drain(first..).rev();
        let newest: Vec<(DstateId, f64)> = newest.map(|id| (id, weight(id))).collect();
        let all: f64 = newest.iter().map(|(_, weight)| weight).sum();
        let part = all * wanted as f64 / (wanted + 1) as f64;
        let most = newest.len() - newest.len().div_ceil(wanted + 1);
        let (mut given, mut picked) = (0.0, Vec::new());
        for (id, weight) in newest.into_iter().take(most) {
            if given >= part {
                break;
            }
            let members = table.members(id);
            let live = members.filter_map(|state| self.frontier.live(state));
            let instructions = live.map(work_to_move).sum();
            if team.is_worth_weight(weight, instructions) {
                given += weight;
                picked.push(id);
            }
        }
        picked
    }

    /// Removes a state from the frontier and returns the trace that leads to it.
    fn give(&mut self, id: StateId) -> Option<Trace> {
        let trace = self.copy(id);
        self.frontier.take(id);
        self.frontier.remove(id);
        self.searcher.removed(id);
        trace
    }

    /// Returns the trace that leads to a state.
    fn copy(&mut self, id: StateId) -> Option<Trace> {
        match self.frontier.get(id)? {
            Stored::Live(state) => Some(state.path.pending_trace(&mut Sharing::default())),
            Stored::Spilled(spilled) => match self.spill.as_ref()?.get(spilled.at) {
                Ok(trace) => Some(trace),
                Err(error) => {
                    let (at, error) = (spilled.at, error.to_string());
                    self.note_lost_state(at, &error);
                    None
                }
            },
            Stored::Running => None,
        }
    }

    /// Pauses while the lead writes a checkpoint, and gives it copies of all states.
    pub(super) fn pause(&mut self, team: &Team) {
        let Some(pause) = team.pause() else { return };
        if self.is_world() {
            let snapshots = self.snapshot_worlds().into_iter().collect();
            let jobs = Vec::new();
            pause.give(Elsewhere { jobs, snapshots });
            return pause.wait();
        }
        self.take_all_from_backlog();
        let ids: Vec<StateId> = self.frontier.iter().map(|(id, _)| id).collect();
        for part in ids.chunks(HANDED_TOGETHER) {
            let copies = part.iter().filter_map(|id| self.copy(*id));
            let jobs = copies.map(Job::state).collect();
            let snapshots = Vec::new();
            if !pause.give(Elsewhere { jobs, snapshots }) {
                break;
            }
        }
        pause.wait();
    }

    /// Gives all states that are left to the lead, a part at a time, because states take far more
    /// memory as traces. When the time for that is over, the rest is given up and counted.
    pub(super) fn hand_over(&mut self, team: &Team) {
        if self.is_world() {
            let part = self.give_all_worlds();
            let jobs = part.map(|part| Job::Worlds(Arc::new(part)));
            return team.add_jobs(jobs.into_iter().collect());
        }
        self.take_all_from_backlog();
        let ids: Vec<StateId> = self.frontier.iter().map(|(id, _)| id).collect();
        let mut parts = ids.chunks(HANDED_TOGETHER);
        for part in &mut parts {
            let traces = part.iter().filter_map(|id| self.give(*id));
            team.hand_over(traces.map(Job::state).collect());
            if team.is_closed_at(self.config.clock.now()) {
                break;
            }
        }
        for id in parts.flatten() {
            self.statistics.unknown.add(self.frontier.weight(*id));
            self.unsaved += 1;
        }
    }

    /// Removes up to this number of states of a program from the search and returns them as pending
    /// traces. It takes those with the largest weight, because most of the search is below them,
    /// and no more than have their share of the weight, because each has to be rematerialised. At
    /// least one state stays.
    pub fn give_states(&mut self, count: usize) -> Vec<Trace> {
        self.take_all_from_backlog();
        let explored = self.explored();
        let mut heaviest = self.heaviest_states();
        let halvings = heaviest.iter().map(|(halvings, _)| *halvings);
        heaviest.truncate(share_of(halvings, count));
        let expected = explored.work() / explored.finished;
        let replay_of = |states: &[StateId]| self.frontier.instructions_to(states);
        let mut states = worth_moving_together(heaviest, expected, replay_of);
        if states.is_empty() {
            let mut budget = ReplayBudget::new(explored.instructions, self.given_replay);
            let most = count.min(self.frontier.len().saturating_sub(1));
            states = self.affordable_subtree(most, &mut budget);
            self.given_replay += budget.used;
        }
        states.into_iter().filter_map(|id| self.give(id)).collect()
    }

    /// Removes up to this number of states in the spill file from the search of a program, the
    /// heaviest first, and returns them as pending traces. Wherever they are explored, they have to
    /// be rematerialised. At least one state stays.
    pub fn give_spilled_states(&mut self, count: usize) -> Vec<Trace> {
        self.take_from_backlog();
        let mut heaviest = self.heaviest_states();
        let most = count.min(heaviest.len().saturating_sub(1));
        heaviest.retain(|(_, id)| matches!(self.frontier.get(*id), Some(Stored::Spilled(_))));
        heaviest.truncate(most.min(MOST_SPILLED));
        let given = heaviest.into_iter();
        given.filter_map(|(_, id)| self.give(id)).collect()
    }

    /// Returns copies of all states of a program, as pending traces.
    pub fn copy_states(&mut self) -> Vec<Trace> {
        self.take_all_from_backlog();
        let ids: Vec<StateId> = self.frontier.iter().map(|(id, _)| id).collect();
        ids.into_iter().filter_map(|id| self.copy(id)).collect()
    }

    /// Removes all states of a program from the search and returns them as pending traces. The
    /// frontier is empty afterwards.
    pub fn take_states(&mut self) -> Vec<Trace> {
        self.take_all_from_backlog();
        let ids: Vec<StateId> = self.frontier.iter().map(|(id, _)| id).collect();
        ids.into_iter().filter_map(|id| self.give(id)).collect()
    }
}

/// Returns the work that it takes to move a state of a world, in instructions.
fn work_to_move(state: &State) -> u64 {
    match state.seems_movable() {
        true => state.instructions().min(MOVE_WORK),
        false => state.instructions(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_are_given_up_to_their_share() {
        let share = |halvings: &[u32], asked| share_of(halvings.iter().copied(), asked);
        // Equal weights: as many as requested.
        assert_eq!(share(&[5; 8], 4), 4);
        // The first state has half of the weight.
        assert_eq!(share(&[1, 2, 3, 4, 5, 5], 3), 1);
        assert_eq!(share(&[1, 2, 3, 4, 5, 5], 4), 2);
        // One state stays, and the weight of deep states is not rounded to zero.
        assert_eq!(share(&[3, 3], 9), 1);
        assert_eq!(share(&[5000; 4], 2), 2);
        assert_eq!(
            (share(&[7], 1), share(&[], 1), share(&[4, 4], 0)),
            (0, 0, 0)
        );
    }

    /// Returns how many of states with these halvings are worth moving, where each of their paths
    /// has 2,000 instructions of its own, and all have a beginning of `common` instructions.
    fn moved(halvings: &[u32], expected: f64, common: u64) -> usize {
        let states = halvings.iter().zip(0..);
        let states = states.map(|(halvings, id)| (*halvings, StateId(id)));
        let moved = worth_moving_together(states.collect(), expected, |states| {
            common + 2_000 * states.len() as u64
        });
        // The heaviest ones are the first.
        assert!(moved.iter().zip(0..).all(|(id, at)| id.0 == at));
        moved.len()
    }

    #[test]
    fn states_move_where_much_more_work_is_expected_below_them_than_moving_takes() {
        // A state takes 3,000 instructions to move, and 16 times as much is expected below it.
        let worth = 48_000.0;
        assert_eq!(moved(&[0], worth, 0), 1);
        assert_eq!(moved(&[0], worth - 1.0, 0), 0);
        assert_eq!(moved(&[3; 8], 8.0 * worth, 0), 8);
        // What many have in common is executed once: it is worth it for all, but not for a few.
        assert_eq!(moved(&[3; 8], 16.0 * worth, 24_000), 8);
        assert_eq!(moved(&[3; 4], 16.0 * worth, 24_000), 0);
        // Halves are dropped, the light ones first, until the rest is worth it.
        assert_eq!(moved(&[1, 5, 5, 5, 5, 5, 5, 5], 4.0 * worth, 0), 2);
        assert_eq!(moved(&[1, 9, 9, 9, 9, 9, 9, 9], 2.0 * worth, 0), 1);
        assert_eq!(moved(&[1, 9, 9, 9, 9, 9, 9, 9], worth, 0), 0);
    }

    #[test]
    fn what_cannot_be_told_does_not_move_states() {
        assert_eq!(moved(&[], 1e12, 0), 0);
        assert_eq!(moved(&[0; 4], 0.0, 0), 0);
        // Nothing has ended: any amount of work may be left.
        assert_eq!(moved(&[2; 4], f64::INFINITY, u64::MAX / 2), 4);
        // Of nothing explored and nothing ended, nothing follows.
        assert_eq!(moved(&[2; 4], f64::NAN, 0), 0);
        // Far down, no work is expected below a state.
        assert_eq!(moved(&[5_000; 4], 1e12, 0), 0);
    }
}
