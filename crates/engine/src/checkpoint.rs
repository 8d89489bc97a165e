//! Writes and restores checkpoints: everything that another search needs to continue this one.
//! States in memory are written to a file of the checkpoint; spilled states stay in the spill file.

use everett_net::HostIndex;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path as FilePath, PathBuf};

use crate::error::SavedError;
use crate::explorer::Explorer;
use crate::frontier::{Spilled, SpilledNet, StateId, Stored};
use crate::mapping::{MemberId, StoredTable};
use crate::part::Part;
use crate::path::Path;
use crate::saved::{Saved, SavedState, SavedWorld, StateFacts};
use crate::spill::{BUNDLE, Bundle, Places, SpillId, SpillWriter};
use crate::state::State;
use crate::team::member::Job;

/// Memory for the index of a checkpoint's file.
const INDEX_MEMORY: u64 = 1 << 20;

impl Explorer<'_> {
    /// Saves the search. States in memory are written to a new file at this path; the search can
    /// continue. With `sync`, everything is on disk afterwards, which can take long. If `go_on`
    /// returns `false` between two parts, nothing is saved.
    pub fn save(
        &self,
        path: &FilePath,
        sync: bool,
        go_on: &dyn Fn() -> bool,
    ) -> io::Result<Option<Saved>> {
        let mut writer = self.writer_of_states(path)?;
        let (mut left, mut world) = (Vec::new(), None);
        match self.is_world() {
            true => world = self.save_world(&mut writer, go_on)?,
            false => {
                let Some(elsewhere) = self.save_elsewhere(&mut writer, go_on)? else {
                    return Ok(None);
                };
                let (bundles, unsaved) = self.save_program(&mut writer, go_on)?;
                if !unsaved.is_empty() {
                    return Ok(None);
                }
                left = bundles;
                left.extend(elsewhere);
            }
        }
        if sync {
            writer.sync()?;
            if let Some(spill) = &self.spill {
                spill.sync()?;
            }
        }
        let is_whole = !self.is_world() || world.is_some();
        Ok(is_whole.then(|| self.saved(path, left, world)))
    }

    /// Saves a search that has stopped for good. If `go_on` returns `false`, the states of a
    /// program that are not written yet are given up. Worlds are saved as a whole or not at all,
    /// because they share states.
    pub fn save_last(
        &mut self,
        path: &FilePath,
        go_on: &dyn Fn() -> bool,
    ) -> io::Result<Option<Saved>> {
        if self.is_world() {
            let saved = self.save(path, false, go_on)?;
            if saved.is_none() {
                self.unsaved = self.frontier.len() as u64;
            }
            return Ok(saved);
        }
        let mut writer = self.writer_of_states(path)?;
        let (left, unsaved) = self.save_program(&mut writer, go_on)?;
        for id in &unsaved {
            if let Some(state) = self.frontier.live(*id) {
                self.statistics.unknown.add(state.path.weight);
            }
            self.frontier.remove(*id);
            self.searcher.removed(*id);
        }
        self.unsaved += unsaved.len() as u64;
        Ok(Some(self.saved(path, left, None)))
    }

    /// Records that the last checkpoint could not be written: all states that are left are unsaved.
    pub fn note_unwritten_checkpoint(&mut self) {
        self.unsaved = self.states() as u64;
    }

    /// Returns the number of states that are in no checkpoint, for lack of time, memory or disk
    /// space.
    pub fn unsaved(&self) -> u64 {
        self.unsaved
    }

    /// Creates the file for the states of a checkpoint, with a copy beside it.
    fn writer_of_states(&self, path: &FilePath) -> io::Result<SpillWriter> {
        let number = self.spill.as_ref().map_or(1, |spill| spill.next_number());
        SpillWriter::create_twice(path, number, INDEX_MEMORY)
    }

    /// Returns the checkpoint as plain data, with the counters of the search.
    fn saved(&self, path: &FilePath, left: Vec<Bundle>, world: Option<SavedWorld>) -> Saved {
        let mut files = self.older_files.clone();
        files.extend(path.file_name().map(PathBuf::from));
        let part = self.part();
        Saved {
            files,
            left,
            world,
            statistics: part.statistics,
            covered: part.covered,
            findings: part.findings,
            limits: part.limits,
            warnings: part.warnings,
            unsupported: part.unsupported,
        }
    }

    /// Saves the states of a program. Returns the lists of saved states, and the states that were
    /// not written because `go_on` returned `false`. The first states are always written, so that a
    /// resumed run gets further.
    fn save_program(
        &self,
        writer: &mut SpillWriter,
        go_on: &dyn Fn() -> bool,
    ) -> io::Result<(Vec<Bundle>, Vec<StateId>)> {
        let mut bundles: Vec<Bundle> = self.backlog().cloned().collect();
        let (mut live, mut spilled) = (Vec::new(), Vec::new());
        for (id, stored) in self.frontier.iter() {
            match stored {
                Stored::Live(state) => live.push((id, &**state)),
                Stored::Spilled(state) => spilled.push(state.at),
                Stored::Running => {}
            }
        }
        for part in spilled.chunks(BUNDLE) {
            bundles.push(writer.bundle(part)?);
        }
        let mut parts = live.chunks(BUNDLE);
        for part in &mut parts {
            let states = part.iter().map(|(_, state)| *state);
            let places = writer.put(states, &self.worker.arena)?;
            bundles.push(writer.bundle(&places)?);
            if !go_on() {
                break;
            }
        }
        let unsaved = parts.flatten().map(|(id, _)| *id).collect();
        Ok((bundles, unsaved))
    }

    /// Saves the states of a program that other workers have or that are in transit. Returns `None`
    /// if `go_on` returned `false`.
    fn save_elsewhere(
        &self,
        writer: &mut SpillWriter,
        go_on: &dyn Fn() -> bool,
    ) -> io::Result<Option<Vec<Bundle>>> {
        let (mut bundles, mut jobs) = (Vec::new(), self.in_transit.clone());
        while let Some(more) = self.next_elsewhere() {
            jobs.extend(more.jobs);
            while jobs.len() >= BUNDLE {
                let part = jobs.split_off(jobs.len() - BUNDLE);
                bundles.push(self.save_jobs(writer, part)?);
            }
            if !go_on() {
                return Ok(None);
            }
        }
        while !jobs.is_empty() {
            let part = jobs.split_off(jobs.len().saturating_sub(BUNDLE));
            bundles.push(self.save_jobs(writer, part)?);
        }
        Ok(Some(bundles))
    }

    fn save_jobs(&self, writer: &mut SpillWriter, jobs: Vec<Job>) -> io::Result<Bundle> {
        let traces = jobs.iter().flat_map(Job::traces).cloned();
        let states: Vec<State> = traces
            .map(|trace| State::starting(Path::following(trace)))
            .collect();
        let places = writer.put(states.iter(), &self.worker.arena)?;
        writer.bundle(&places)
    }

    /// Saves the worlds; `None` if `go_on` returned `false`.
    pub(crate) fn save_world(
        &self,
        writer: &mut SpillWriter,
        go_on: &dyn Fn() -> bool,
    ) -> io::Result<Option<SavedWorld>> {
        let ids: Vec<StateId> = self.frontier.iter().map(|(id, _)| id).collect();
        let mut spilled: BTreeMap<StateId, Spilled> = BTreeMap::new();
        let arena = &self.worker.arena;
        let mut places = Places::default();
        // Paths of worlds have long conditions, so the clock is checked more often.
        for part in ids.chunks(BUNDLE / 4) {
            if !go_on() {
                return Ok(None);
            }
            let live = part
                .iter()
                .filter_map(|id| Some((*id, self.frontier.live(*id)?)));
            let live: Vec<_> = live.collect();
            let states = live.iter().map(|(_, state)| *state);
            let ids = writer.put_more(states, arena, &mut places)?;
            for ((id, state), at) in live.into_iter().zip(ids) {
                spilled.insert(id, Spilled::of(at, state));
            }
            for id in part {
                if let Some(Stored::Spilled(state)) = self.frontier.get(*id) {
                    spilled.insert(*id, state.clone());
                }
            }
        }
        let mut states = Vec::with_capacity(ids.len());
        let mut numbers = BTreeMap::new();
        for (id, state) in &spilled {
            let Some(facts) = state.net.as_ref().and_then(|net| self.facts(*id, net)) else {
                continue;
            };
            numbers.insert(*id, MemberId(states.len() as u32));
            let at = state.at;
            states.push(SavedState { at, facts });
        }
        let mut table = self.table().store(&self.table().dstates(), &numbers);
        self.save_worlds_elsewhere(writer, &mut states, &mut table)?;
        let (times, fired) = self.world.times_and_fired();
        Ok(Some(SavedWorld {
            hosts: self.host_names(),
            mapping: self.mapping_name().to_owned(),
            states,
            table,
            times,
            fired,
            counted: self.world.counted.clone(),
            next_world: self.world.next_world,
            begun: self.world.begun,
            has_open_questions: self.world.has_open_questions,
        }))
    }

    /// Saves the worlds that other workers have or that are in transit.
    fn save_worlds_elsewhere(
        &self,
        writer: &mut SpillWriter,
        states: &mut Vec<SavedState>,
        table: &mut StoredTable,
    ) -> io::Result<()> {
        let mut add = |(more, dstates): (Vec<SavedState>, &StoredTable)| {
            table.append(dstates, states.len() as u32);
            states.extend(more);
        };
        for job in &self.in_transit {
            if let Job::Worlds(part) = job {
                add(self.save_moved(part, writer)?);
            }
        }
        while let Some(more) = self.next_elsewhere() {
            for snapshot in &more.snapshots {
                add(snapshot.save(writer)?);
            }
        }
        Ok(())
    }

    /// Returns the facts about a state in the queue.
    pub(crate) fn facts(&self, id: StateId, net: &SpilledNet) -> Option<StateFacts> {
        let (next_ns, host, is_awaiting) = self.queued(id)?;
        Some(StateFacts {
            host,
            next_ns,
            is_awaiting,
            history: net.history,
            identity: net.identity,
            covered_new: net.covered_new,
            is_waiting: net.is_waiting,
            used: self.frontier.used(id).to_vec(),
            answers: net.answers,
        })
    }

    /// Adds worlds whose states are in the spill file.
    pub(crate) fn add_spilled_worlds(
        &mut self,
        states: &[SavedState],
        table: &StoredTable,
    ) -> Result<(), SavedError> {
        let spilled = states.iter().map(|state| state.facts.spilled_at(state.at));
        let facts: Vec<&StateFacts> = states.iter().map(|state| &state.facts).collect();
        self.add_worlds(spilled.map(Stored::Spilled).collect(), &facts, table)
    }

    /// Adds worlds with their states, about which these facts are known.
    pub(crate) fn add_worlds(
        &mut self,
        states: Vec<Stored>,
        facts: &[&StateFacts],
        table: &StoredTable,
    ) -> Result<(), SavedError> {
        let ids = self.frontier.add_roots(states);
        let hosts = facts.iter().map(|facts| facts.host);
        let members: Vec<(StateId, HostIndex)> = ids.iter().copied().zip(hosts).collect();
        let added = table.add_to(&mut self.world.table, &members);
        added.ok_or(SavedError::Damaged)?;
        for (id, facts) in ids.into_iter().zip(facts) {
            self.world.know_history(facts.history, id);
            self.frontier.set_used(id, facts.used.as_slice().into());
            self.enqueue_at(id, facts.next_ns, facts.is_awaiting);
        }
        Ok(())
    }

    /// Continues a saved search.
    pub(crate) fn restore_saved(&mut self, saved: Saved) -> Result<(), SavedError> {
        saved.check()?;
        self.add_part(&Part {
            statistics: saved.statistics,
            covered: saved.covered,
            findings: saved.findings,
            limits: saved.limits,
            warnings: saved.warnings,
            unsupported: saved.unsupported,
            ..Part::default()
        })?;
        for bundle in saved.left {
            self.put_last(bundle);
        }
        match (saved.world, self.is_world()) {
            (Some(world), true) => self.restore_world(world),
            (None, false) => Ok(()),
            _ => Err(SavedError::Other),
        }
    }

    fn restore_world(&mut self, saved: SavedWorld) -> Result<(), SavedError> {
        if saved.hosts != self.host_names() || saved.mapping != self.mapping_name() {
            return Err(SavedError::Other);
        }
        self.add_spilled_worlds(&saved.states, &saved.table)?;
        self.world.set_times_and_fired(saved.times, saved.fired);
        self.world.counted = saved.counted;
        (self.world.next_world, self.world.begun) = (saved.next_world, saved.begun);
        self.world.has_open_questions = saved.has_open_questions;
        Ok(())
    }
}

impl StateFacts {
    /// Returns the entry of the state, which is at this position of the spill file.
    pub(crate) fn spilled_at(&self, at: SpillId) -> Spilled {
        let net = SpilledNet {
            history: self.history,
            identity: self.identity,
            covered_new: self.covered_new,
            is_waiting: self.is_waiting,
            answers: self.answers,
            exposed: None,
        };
        Spilled {
            at,
            net: Some(Box::new(net)),
        }
    }
}
