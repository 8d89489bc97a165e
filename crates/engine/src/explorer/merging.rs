//! Merging of paths between `klee_open_merge` and `klee_close_merge`.
//!
//! When a program opens a region, all its paths to the close are explored at once, and those that
//! can be merged continue as one state. So a region is a single answer on the path of a merged
//! state, and that answer is a function of the state that opens the region: a pending trace records
//! which regions were merged, and following it explores them again. A finished trace needs no
//! record, because its inputs take one of the merged paths.

use everett_expr::ExprId;
use everett_vm::Merge;

use super::*;
use crate::path::{Answer, MergePoint};
use crate::worker::Other;

/// Maximum number of paths of a region that are explored at once. If there are more, they continue
/// one by one.
const MOST_PATHS: usize = 256;
/// Maximum number of instructions on all paths of a region together.
const MOST_INSTRUCTIONS: u64 = 4_000_000;

/// The outcome for a state that opens a region.
pub(super) enum Opened {
    /// The state continues behind the opening or the close.
    Continues,
    /// The run stops; the state remains at the opening of the region.
    Stands,
    /// The state follows a trace of a merged state, and the paths cannot be merged again.
    Lost,
}

/// Why the paths of a region were not explored.
enum Unexplored {
    /// There are too many paths, or they take too long.
    TooMany,
    /// The run stops.
    Late,
}

/// The paths of a region.
#[derive(Default)]
struct Region {
    /// States at the close of the region.
    closed: Vec<State>,
    /// States that do not reach the close without a choice or an end, before that choice or end.
    left: Vec<State>,
    /// The number of instructions on all paths.
    instructions: u64,
}

/// States that are merged into one at the close of a region.
struct Group {
    /// The merged state.
    state: Box<State>,
    /// The condition under which a path belongs to the group, added since the region was opened.
    condition: ExprId,
    /// The number of merged states.
    members: u32,
    /// A digest of the answers on all merged paths.
    digest: u64,
}

/// Returns whether a path differs from the path that opened the region in nothing but its
/// condition.
fn is_mergeable(path: &Path, since: &Path) -> bool {
    path.inputs.len() == since.inputs.len()
        && path.choices.len() == since.choices.len()
        && path.answers.len() == since.answers.len()
        && path.preferences == since.preferences
        && path.takes_one_side == since.takes_one_side
}

impl Explorer<'_> {
    /// Returns whether a search merges paths. It does not for worlds, also those that a program
    /// boots, because they have states of several hosts; with a second build, because that depends
    /// on the path of the first; and with checks about single paths.
    pub(super) fn merges_paths(config: &ExplorerConfig, images: &[Image]) -> bool {
        let vm = &config.vm;
        let checks = vm.check_races || vm.check_uninitialised || vm.log_writes;
        let mut needed = images.iter().flat_map(|image| &image.program().externals);
        let boots = needed.any(|name| name == "klee_net_host_setup");
        config.world.is_none() && config.against.is_none() && !boots && !checks
    }

    /// Explores the paths of a region that a state opens to its close, and merges them.
    pub(super) fn open_region(
        &mut self,
        id: StateId,
        state: &mut Box<State>,
        listener: &mut dyn Listener,
    ) -> Opened {
        let follows = state.path.follow.is_some();
        let coverage = self.worker.coverage.clone();
        let region = match self.explore_region(state) {
            Ok(region) => region,
            Err(unexplored) => {
                // This coverage is seen again when the paths continue one by one.
                self.worker.coverage = coverage;
                return match unexplored {
                    Unexplored::Late => Opened::Stands,
                    Unexplored::TooMany if follows => Opened::Lost,
                    Unexplored::TooMany => {
                        state.path.unmerged_regions += 1;
                        state.path.answer(Answer::Merge(0));
                        Opened::Continues
                    }
                };
            }
        };
        match follows {
            true => self.statistics.replayed += region.instructions,
            false => self.statistics.instructions += region.instructions,
        }
        let groups = self.merge_closed(state, region.closed);
        if follows {
            return self.take_group(state, groups);
        }
        let merged = groups.iter().map(|group| u64::from(group.members) - 1);
        self.statistics.paths_merged += merged.sum::<u64>();
        let merged = groups.into_iter().map(|group| self.leave(state, group));
        let mut outcomes: VecDeque<Box<State>> = merged.collect();
        outcomes.extend(region.left.into_iter().map(Box::new));
        let Some(first) = outcomes.pop_front() else {
            return Opened::Lost;
        };
        let opened = std::mem::replace(state, first);
        self.share_weight(&opened, state, &mut outcomes);
        outcomes
            .into_iter()
            .for_each(|other| self.add_outcome(id, other, listener));
        Opened::Continues
    }

    /// Divides the weight of the state that opened a region among all states that came of it.
    fn share_weight(&self, opened: &State, first: &mut State, others: &mut VecDeque<Box<State>>) {
        let mut rest = opened.path.weight;
        let all = std::iter::once(first).chain(others.iter_mut().map(|other| &mut **other));
        let mut all = all.peekable();
        while let Some(state) = all.next() {
            if all.peek().is_some() {
                rest = rest.half();
            }
            state.path.weight = rest;
        }
    }

    /// Adds a state that came of a region to the frontier, unless it is too deep or pruned.
    fn add_outcome(&mut self, id: StateId, state: Box<State>, listener: &mut dyn Listener) {
        if self.is_over_depth(&state) {
            self.note_limit("max-depth");
            self.statistics.unknown.add(state.path.weight);
            return self.count_partial();
        }
        let covered_new = state.covered_new;
        match listener.forked(&mut StateView::new(id, &state, &mut self.worker)) {
            Keep::Yes | Keep::Lose | Keep::Mark(_) => {
                self.add_state(id, state, covered_new);
            }
            Keep::Prune => self.statistics.pruned.add(state.path.weight),
        }
    }

    /// Explores all paths of a region from its opening to its close.
    fn explore_region(&mut self, opened: &State) -> Result<Region, Unexplored> {
        let mut first = Box::new(opened.clone());
        // All paths are explored, not just that of the trace.
        first.path.follow = None;
        first.path.open_regions = Some(1);
        first.path.answer(Answer::Merge(0));
        let mut region = Region::default();
        let mut pending = vec![first];
        while let Some(mut state) = pending.pop() {
            let paths = region.closed.len() + region.left.len() + pending.len();
            let budget = MOST_INSTRUCTIONS.saturating_sub(region.instructions);
            if paths >= MOST_PATHS || budget == 0 {
                return Err(Unexplored::TooMany);
            }
            let mut before = state.clone();
            let (exit, fork) = self.run_slice(&mut state, budget);
            region.instructions += state.instructions() - before.instructions();
            self.note_coverage(&mut state);
            match (exit, fork) {
                (HostExit::Suspended, Some(fork))
                    if fork.is_of_data()
                        && !state.path.takes_one_side
                        && !state.path.fixes_floats =>
                {
                    if !self.reserve(Counted::Forks) {
                        return Err(Unexplored::TooMany);
                    }
                    self.statistics.forks += 1;
                    match self.worker.split(&mut state, fork) {
                        Other::State(mut other) => {
                            other.covered_new = false;
                            pending.extend([state, other]);
                        }
                        Other::Unknown(_) => return Err(Unexplored::TooMany),
                    }
                }
                (HostExit::Suspended, None) if state.path.at_merge.take().is_some() => {
                    region.closed.push(*state);
                }
                (HostExit::Suspended, None) if self.is_stopping() || self.must_leave() => {
                    return Err(Unexplored::Late);
                }
                // The instruction waits for memory.
                (HostExit::Suspended, None) if self.clear_room() => {
                    if self.is_waiting_for_team() {
                        return Err(Unexplored::Late);
                    }
                    pending.push(state);
                }
                (HostExit::Suspended, None) => return Err(Unexplored::TooMany),
                (HostExit::Budget, _) if self.is_out_of_room() && !self.clear_room() => {
                    return Err(Unexplored::TooMany);
                }
                (HostExit::Budget, _) => pending.push(state),
                _ => {
                    // The state executes the last slice again.
                    before.covered_new |= state.covered_new;
                    before.path.counted = before.path.counted.max(state.instructions());
                    before.path.open_regions = None;
                    region.left.push(*before);
                }
            }
        }
        Ok(region)
    }

    /// Merges the states at the close of a region, as far as possible.
    fn merge_closed(&mut self, opened: &State, mut closed: Vec<State>) -> Vec<Group> {
        // The order of exploration depends on models, which are not the same in every run.
        closed.sort_by_key(|state| state.path.digest);
        let mut groups: Vec<Group> = Vec::new();
        for state in closed {
            let group = self.group_of(opened, Box::new(state));
            let joined = groups
                .iter_mut()
                .any(|known| self.join_group(opened, known, &group));
            if !joined {
                groups.push(group);
            }
        }
        groups
    }

    /// Creates the group of a single state.
    fn group_of(&mut self, opened: &State, state: Box<State>) -> Group {
        let arena = &mut self.worker.arena;
        let new = state.path.constraints.iter();
        let new = new.skip(opened.path.constraints.len());
        let mut condition = arena.constant(1, 1);
        for one in new {
            condition = arena.and(condition, one);
        }
        Group {
            condition,
            members: 1,
            digest: state.path.digest,
            state,
        }
    }

    /// Merges the state of another group into this group. Returns `false` if that is impossible.
    fn join_group(&mut self, opened: &State, group: &mut Group, other: &Group) -> bool {
        let states = [&group.state, &other.state];
        if !states
            .iter()
            .all(|state| is_mergeable(&state.path, &opened.path))
        {
            return false;
        }
        let hosts = (&group.state.host, &other.state.host, &opened.host);
        let (Some(one), Some(two), Some(since)) = hosts else {
            return false;
        };
        let mut merge = Merge {
            arena: &mut self.worker.arena,
            second: other.condition,
        };
        let Some(host) = one.merged(two, since, &mut merge) else {
            return false;
        };
        group.state.host = Some(host);
        group.condition = self.worker.arena.or(group.condition, other.condition);
        group.members += 1;
        group.digest = group.digest.rotate_left(7) ^ other.digest;
        if other.state.covered_new && !group.state.covered_new {
            // The test of the merged state then takes a path that covered something new.
            group.state.path.model = other.state.path.model.clone();
        }
        group.state.covered_new |= other.state.covered_new;
        group.state.since_new = group.state.since_new.min(other.state.since_new);
        true
    }

    /// Returns the state of a group, behind the close of the region.
    fn leave(&mut self, opened: &State, group: Group) -> Box<State> {
        let mut state = group.state;
        state.path.counted = state.path.counted.max(state.instructions());
        if group.members == 1 {
            state.path.open_regions = None;
            state.path.answer(Answer::Merge(0));
            return state;
        }
        let path = Path {
            model: state.path.model.clone(),
            counted: state.path.counted,
            ..opened.path.clone()
        };
        state.path = path;
        self.pass(&mut state.path, group.condition, group.digest);
        state.path.depth += 1;
        state
    }

    /// Records the opening and the close of a region on the path of a merged state.
    fn pass(&mut self, path: &mut Path, condition: ExprId, digest: u64) {
        path.merges.push(path.answered);
        path.constrain(&mut self.worker.arena, condition);
        path.answer(Answer::Merge(digest));
        // The next answer is that of the close, where the state is now.
        path.tape.clear();
        path.answer(Answer::Merge(0));
    }

    /// Continues a state that follows a trace as the merged state that the trace belongs to.
    fn take_group(&mut self, state: &mut State, groups: Vec<Group>) -> Opened {
        for group in groups.into_iter().filter(|group| group.members > 1) {
            let (arena, scratch) = (&self.worker.arena, &mut self.worker.scratch);
            if arena.eval(group.condition, &state.path.model, scratch) == 0 {
                continue;
            }
            state.host = group.state.host;
            self.pass(&mut state.path, group.condition, group.digest);
            return Opened::Continues;
        }
        Opened::Lost
    }

    /// Returns whether a suspended state is at the opening of a region, and clears that mark.
    pub(super) fn opens_region(state: &mut State) -> bool {
        state.path.at_merge.take() == Some(MergePoint::Open)
    }
}
