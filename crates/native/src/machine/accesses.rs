//! Preemption at accesses by a random schedule, or by the trace of one.

use everett_linux::{Row, TaskName, property};

use super::breakpoints::AtAllocator;
use super::{NativeConfig, NativeError, NativeMachine, NativeThread, call_numbers};
use crate::accesses::{AccessPoints, Event};
use crate::operands::{
    Accesses, HeldWrite, execute_without_write, memory_operands, shared_accesses,
};
use crate::oracle::{NativeOracle, Source};
use crate::priorities::change_points;
use crate::tracee::{Registers, Stopped, Tracee};

const BREAKPOINT: u8 = 0xcc;

impl NativeConfig {
    /// Creates the accesses at which the threads of a run stop.
    pub(super) fn access_points(
        &self,
        oracle: &NativeOracle,
        tracee: &Tracee,
    ) -> Result<AccessPoints, NativeError> {
        let program = &self.programs[0];
        let points = match (oracle.source(), &self.random_schedule) {
            (Source::Trace(trace), _) if !trace.native_points.is_empty() => {
                AccessPoints::of_trace(program, &trace.native_points, tracee)?
            }
            (Source::Random(_) | Source::Begun(..), Some(random)) => {
                let events = match random.surveys {
                    Some(_) => 0,
                    None => random.survey.events,
                };
                let changes = change_points(oracle.schedule_seed, random.depth, events);
                AccessPoints::of_random(program, random, changes, tracee)?
            }
            _ => AccessPoints::default(),
        };
        Ok(points)
    }
}

impl NativeThread {
    /// Returns whether a system call is made by the allocator. The model's allocator makes none.
    /// Waiting is never internal.
    pub(super) fn is_in_allocator(&self, call: u64) -> bool {
        self.allocator_call.is_some() && call != call_numbers::FUTEX
    }
}

impl NativeMachine<'_> {
    /// Returns whether a system call of a thread is made by its allocator.
    pub(super) fn is_of_allocator(&self, name: TaskName, call: u64) -> bool {
        let native = self.threads.get(&name);
        native.is_some_and(|native| native.is_in_allocator(call))
    }

    /// Returns whether other threads can reach the memory of a thread.
    fn shares_memory(&self, name: TaskName) -> bool {
        let native = self.threads.get(&name);
        let mut others = self.threads.keys();
        native.is_some_and(|native| native.tracee.shares)
            || others.any(|other| other.pid == name.pid && other.tid != name.tid)
    }

    /// Enables the stops of a thread that is about to run, if other threads can reach its memory.
    pub(super) fn update_access_points(&mut self, name: TaskName) {
        if self.access_points.is_off() {
            return;
        }
        if self.access_points.is_used_up() {
            self.remove_access_points();
            return;
        }
        let is_wanted = self.shares_memory(name);
        if let Some(native) = self.threads.get_mut(&name)
            && native.image.0 == 0
        {
            if !is_wanted {
                native.preempted_at = None;
            }
            let tracee = &mut native.tracee;
            self.access_points.place(name.pid, tracee, is_wanted);
        }
    }

    /// Removes all access points.
    pub(super) fn remove_access_points(&mut self) {
        if self.access_points.is_off() {
            return;
        }
        for (name, native) in &mut self.threads {
            native.preempted_at = None;
            let tracee = &mut native.tracee;
            self.access_points.place(name.pid, tracee, false);
        }
        self.access_points.turn_off();
    }

    /// Handles a thread that stopped before an access.
    pub(super) fn at_shared_access(
        &mut self,
        name: TaskName,
    ) -> Result<Option<AtAllocator>, NativeError> {
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        if self.access_points.is_off() || native.image.0 != 0 {
            return Ok(None);
        }
        let registers = native.tracee.registers()?;
        let address = registers.rip.wrapping_sub(1);
        let known = self.access_points.instruction(address, &native.tracee);
        let Some((instruction, original)) = known else {
            return Ok(None);
        };
        let registers = Registers {
            rip: address,
            ..registers
        };
        native.tracee.set_registers(registers)?;
        if native.preempted_at.take() != Some(address) {
            let operands = memory_operands(&instruction, &registers);
            let shares = native.tracee.shares;
            self.access_points.arrive(name, address, &operands);
            self.access_points
                .record_access(name, address, &operands, shares);
            if self.is_decided_at(name, address, false) {
                if let Some(native) = self.threads.get_mut(&name) {
                    native.preempted_at = Some(address);
                }
                self.host.reach_preemption_point();
                return Ok(Some(AtAllocator::Waits));
            }
        }
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        native.tracee.poke(address, &[original]);
        let is_in_halves = shared_accesses(&instruction) == Accesses::ReadThenWrite;
        let (stopped, held) = match is_in_halves {
            true => execute_without_write(&mut native.tracee, &instruction)?,
            false => (native.tracee.step()?, HeldWrite::default()),
        };
        native.tracee.poke(address, &[BREAKPOINT]);
        if stopped != Stopped::Signal(libc::SIGTRAP) {
            return Ok(Some(AtAllocator::Stopped(stopped)));
        }
        native.held_write = Some(held);
        if is_in_halves && self.is_decided_at(name, address, true) {
            self.host.reach_preemption_point();
            return Ok(Some(AtAllocator::Waits));
        }
        Ok(Some(AtAllocator::GoesOn))
    }

    /// Returns whether a thread is chosen here, by the trace or by the random schedule.
    fn is_decided_at(&mut self, name: TaskName, address: u64, halfway: bool) -> bool {
        let point = self.access_points.named(name, address, halfway);
        if let Source::Trace(_) = self.oracle.source() {
            return self.oracle.take_point(&point);
        }
        let event = self.access_points.event();
        let is_decided = self.apply_event(name, &event);
        if is_decided {
            self.oracle.note_point(point);
        }
        is_decided
    }

    /// Applies an event to the priority of the running thread. Returns whether a thread must be
    /// chosen.
    fn apply_event(&mut self, name: TaskName, event: &Event) -> bool {
        let Some(priorities) = &mut self.oracle.priorities else {
            return false;
        };
        match event {
            Event::Nothing => return false,
            Event::Decides => {}
            Event::Changes(priority) => priorities.change(name.tid, *priority),
            Event::Yields => priorities.yields(name.tid),
        }
        true
    }

    /// Lowers the priority of a thread that computes for long, so that others run before it.
    pub(super) fn lower_priority(&mut self, name: TaskName) {
        if let Some(priorities) = &mut self.oracle.priorities {
            priorities.yields(name.tid);
        }
    }

    /// Counts the event of a thread that is about to make a system call. The model chooses a thread
    /// before the call anyway.
    pub(super) fn count_call_event(&mut self, name: TaskName, call: u64) {
        if self.access_points.is_off()
            || self.oracle.priorities.is_none()
            || is_of_one_thread(call)
            || self.is_of_allocator(name, call)
            || !self.shares_memory(name)
        {
            return;
        }
        let event = self.access_points.event();
        self.apply_event(name, &event);
        if call == call_numbers::SCHED_YIELD {
            self.lower_priority(name);
        }
        self.access_points.called();
    }
}

/// Whether a call concerns only the thread that makes it.
fn is_of_one_thread(call: u64) -> bool {
    everett_linux::row(call).is_some_and(|row: &Row| row.has(property::ONE_THREAD))
}
