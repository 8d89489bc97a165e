//! Preemption between system calls: runs a native thread to the point where the vm switched
//! threads, and switches there.

use std::collections::BTreeMap;

use everett_linux::TaskName;
use everett_vm::ExecContext;
use iced_x86::{FlowControl, Instruction};

use super::{NativeError, NativeMachine, call_numbers};
use crate::events::EventKind;
use crate::operands::{Accesses, LONGEST, execute_without_write, instruction_at, shared_accesses};
use crate::points::{Lines, Ranges, ScriptPoint};
use crate::tracee::{Registers, Stopped, Tracee};
use crate::watchdog::Watchdog;

/// Maximum number of single-stepped instructions for one point.
const MAX_STEPS: u32 = 100_000;
const BREAKPOINT: u8 = 0xcc;

/// The progress of a thread towards a point. The thread may stop for other reasons in between, such
/// as a call that only manages memory.
#[derive(Clone, Default)]
pub(super) struct Progress {
    /// Number of the point.
    point: Option<usize>,
    /// Number of accesses of the line so far. A checked access is counted at its check: a thread
    /// that is preempted after the check would make the access unchecked.
    accesses: i64,
    /// Number of accesses that were checked and not made yet.
    checked: u32,
    /// Addresses outside of the line at which the thread must stop: the starts of the line, and
    /// behind its calls.
    stops: Vec<u64>,
}

/// A point that a thread runs to: an access in a line.
struct Aim<'c> {
    lines: &'c Lines,
    /// The address at which the program starts.
    start: u64,
    /// The code of the line.
    ranges: Ranges,
    /// Number of accesses of the line before the one at which the thread is preempted.
    wanted: i64,
}

impl Progress {
    /// Counts the accesses of an instruction of the line. Returns `None` if the thread is preempted
    /// before it.
    fn count(&mut self, aim: &Aim<'_>, instruction: Option<&Instruction>) -> Option<Accesses> {
        let is_check = |call: &Instruction| {
            call.is_call_near() && aim.lines.is_check(call.near_branch_target(), aim.start)
        };
        let accesses = match instruction {
            Some(call) if is_check(call) => {
                self.checked += u32::from(self.accesses < aim.wanted);
                Accesses::Once
            }
            Some(access) => self.unchecked(shared_accesses(access)),
            None => Accesses::None,
        };
        if accesses != Accesses::None {
            if self.accesses >= aim.wanted {
                return None;
            }
            self.accesses += 1;
        }
        // A call that ends the line returns elsewhere: a thread that stopped there would
        // never leave the line.
        let back = instruction.and_then(return_address);
        let is_new = |back: &u64| contains(&aim.ranges, *back) && !self.stops.contains(back);
        let back = back.filter(is_new);
        self.stops.extend(back);
        Some(accesses)
    }

    /// Counts the write of an instruction whose read was counted. Returns `false` if the thread is
    /// preempted between the two.
    fn passes_write(&mut self, aim: &Aim<'_>) -> bool {
        let passes = self.accesses < aim.wanted;
        self.accesses += i64::from(passes);
        passes
    }

    /// Returns the accesses of an instruction that count: none if they were counted at their check.
    fn unchecked(&mut self, accesses: Accesses) -> Accesses {
        let made = match accesses {
            Accesses::None => return accesses,
            Accesses::Once => 1,
            Accesses::ReadThenWrite => 2,
        };
        let is_checked = self.checked > 0;
        self.checked = self.checked.saturating_sub(made);
        if is_checked { Accesses::None } else { accesses }
    }
}

/// The outcome of running a thread towards a point.
pub(super) enum Reached {
    /// The thread is at the point.
    Point,
    /// The thread stopped earlier, for another reason.
    Stopped(Stopped),
}

impl<'c> NativeMachine<'c> {
    /// Returns the next point of the script, if the running thread reaches it before its next
    /// system call.
    fn next_point(&self, name: TaskName) -> Option<&ScriptPoint> {
        let script = self.config.script.as_ref();
        let script = script.filter(|script| script.restarts == self.restarts)?;
        let point = script.points.get(self.points_passed)?;
        (point.task == name && point.calls == self.host.calls_made()).then_some(point)
    }

    /// Consults the scheduler at points without a switch, up to one with a switch; `all` includes
    /// that one, since the thread has passed it. Returns `false` if another thread runs now.
    pub(super) fn pass_points(&mut self, name: TaskName, all: bool) -> bool {
        while let Some(point) = self.next_point(name) {
            if point.switches && !all {
                return true;
            }
            self.points_passed += 1;
            self.host.reach_preemption_point();
            let around = &mut ExecContext {
                images: &self.images,
                arena: &mut self.arena,
                oracle: &mut self.oracle,
                stacks: &mut self.stacks,
                coverage: &mut self.coverage,
                options: &self.options,
            };
            if self.host.choose_thread(around).is_some() {
                return false;
            }
            self.events
                .note(EventKind::Picked, self.host.running(), &[]);
            if self.host.running() != name {
                return false;
            }
        }
        true
    }

    /// Passes points before a system call. Memory management calls are ignored, because the vm
    /// makes different ones.
    pub(super) fn pass_points_before_call(&mut self, name: TaskName, call: u64) -> bool {
        const NO_LANDMARKS: [u64; 10] = [
            call_numbers::MMAP,
            call_numbers::MPROTECT,
            call_numbers::MUNMAP,
            call_numbers::BRK,
            call_numbers::MREMAP,
            call_numbers::MINCORE,
            call_numbers::MADVISE,
            call_numbers::ARCH_PRCTL,
            call_numbers::RT_SIGRETURN,
            call_numbers::OWN_INPUT,
        ];
        NO_LANDMARKS.contains(&call)
            || self.is_of_allocator(name, call)
            || self.pass_points(name, true)
    }

    /// Runs a thread to the next point at which it is preempted, if there is
    /// one before its next system call.
    pub(super) fn reach_point(&mut self, name: TaskName) -> Result<Option<Reached>, NativeError> {
        let Some(aim) = self.aim(name)? else {
            return Ok(None);
        };
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        let progress = &mut self.progress;
        let mut steps = 0;
        loop {
            let rip = native.tracee.registers()?.rip;
            let stopped = if contains(&aim.ranges, rip) {
                let instruction = instruction_of(&native.tracee, rip);
                let Some(accesses) = progress.count(&aim, instruction.as_ref()) else {
                    self.points_passed += 1;
                    return Ok(Some(Reached::Point));
                };
                steps += 1;
                if steps > MAX_STEPS {
                    return Ok(None);
                }
                let is_both = accesses == Accesses::ReadThenWrite;
                match instruction {
                    Some(instruction) if is_both && !progress.passes_write(&aim) => {
                        let (stopped, held) =
                            execute_without_write(&mut native.tracee, &instruction)?;
                        if stopped == Stopped::Signal(libc::SIGTRAP) {
                            native.held_write = Some(held);
                            native.halfway_at = Some(rip);
                            self.points_passed += 1;
                            return Ok(Some(Reached::Point));
                        }
                        stopped
                    }
                    _ => native.tracee.step()?,
                }
            } else {
                run_to(&progress.stops, &mut native.tracee, &mut self.watchdog)?
            };
            if stopped != Stopped::Signal(libc::SIGTRAP) {
                return Ok(Some(Reached::Stopped(stopped)));
            }
            let registers = native.tracee.registers()?;
            let back = registers.rip.wrapping_sub(1);
            if !contains(&aim.ranges, rip) {
                if !progress.stops.contains(&back) {
                    return Ok(Some(Reached::Stopped(stopped)));
                }
                native.tracee.set_registers(Registers {
                    rip: back,
                    ..registers
                })?;
            }
        }
    }

    /// Returns the next point of a thread, if there is one before its next system call, and begins
    /// to count its accesses.
    fn aim(&mut self, name: TaskName) -> Result<Option<Aim<'c>>, NativeError> {
        let config = self.config;
        let Some(script) = &config.script else {
            return Ok(None);
        };
        let Some(point) = self.next_point(name).cloned() else {
            return Ok(None);
        };
        let shift = script.shifts.get(&self.points_passed);
        let wanted = i64::from(point.ordinal) + i64::from(*shift.unwrap_or(&0));
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        let programs = &config.programs;
        let lines = script
            .lines
            .get_or_init(|| programs.iter().map(|program| Lines::of(program)).collect());
        let Some(lines) = lines.get(usize::from(native.image.0)) else {
            return Ok(None);
        };
        let start = native.tracee.start_address()?;
        let ranges = lines.find(&point.place, start);
        if ranges.is_empty() {
            return Ok(None);
        }
        if self.progress.point != Some(self.points_passed) {
            // The write of an instruction that was half executed was the access at which the thread
            // stopped.
            let halfway = native.halfway_at.take();
            self.progress = Progress {
                point: Some(self.points_passed),
                accesses: i64::from(halfway.is_some_and(|at| contains(&ranges, at))),
                checked: 0,
                stops: ranges.iter().map(|range| range.0).collect(),
            };
        }
        Ok(Some(Aim {
            lines,
            start,
            ranges,
            wanted,
        }))
    }
}

/// Runs a thread to one of these addresses, or to another stop.
fn run_to(
    stops: &[u64],
    tracee: &mut Tracee,
    watchdog: &mut Watchdog,
) -> Result<Stopped, NativeError> {
    let (process, thread) = (tracee.process, tracee.thread);
    let kept = set_breakpoints(tracee, stops);
    watchdog.watch(process.as_raw(), thread.as_raw(), false);
    let stopped = tracee.run(None);
    watchdog.stop_watching();
    for (at, byte) in kept {
        tracee.poke(at, &[byte]);
    }
    Ok(stopped?)
}

/// Returns the instruction at an address of a process.
fn instruction_of(tracee: &Tracee, address: u64) -> Option<Instruction> {
    let mut code = [0; LONGEST];
    // The last bytes may lie on an unmapped page.
    for (at, byte) in code.iter_mut().enumerate() {
        tracee.peek(address + at as u64, std::slice::from_mut(byte));
    }
    instruction_at(&code, address)
}

/// Returns the return address of a call instruction.
fn return_address(instruction: &Instruction) -> Option<u64> {
    let flow = instruction.flow_control();
    let is_call = matches!(flow, FlowControl::Call | FlowControl::IndirectCall);
    is_call.then(|| instruction.next_ip())
}

fn contains(ranges: &Ranges, address: u64) -> bool {
    let mut all = ranges.iter();
    all.any(|(from, to)| (*from..*to).contains(&address))
}

/// Sets breakpoints and returns the original bytes.
fn set_breakpoints(tracee: &mut Tracee, at: &[u64]) -> BTreeMap<u64, u8> {
    let mut kept = BTreeMap::new();
    for address in at {
        let mut byte = [0];
        if tracee.peek(*address, &mut byte) {
            kept.insert(*address, byte[0]);
            tracee.poke(*address, &[BREAKPOINT]);
        }
    }
    kept
}
