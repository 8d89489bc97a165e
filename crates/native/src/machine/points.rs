//! Preemption between system calls: brings a native thread to where the vm switched, and switches there.

use std::collections::BTreeMap;

use everett_linux::TaskName;
use everett_vm::ExecContext;

use super::{NativeError, NativeMachine, call_numbers};
use crate::events::EventKind;
use crate::points::{Lines, Ranges, ScriptPoint, decode};
use crate::tracee::{Registers, Stopped, Tracee};

/// The most single-stepped instructions for one point.
const MAX_STEPS: u32 = 100_000;
const BREAKPOINT: u8 = 0xcc;
/// The longest instruction in bytes.
const LONGEST: usize = 15;

/// Where a thread is that was run towards a point.
pub(super) enum Reached {
    /// At the point.
    Point,
    /// It stopped earlier for another reason.
    Stopped(Stopped),
}

impl NativeMachine<'_> {
    /// The next point of the script, if the running thread reaches it before its next system call.
    fn next_point(&self, name: TaskName) -> Option<&ScriptPoint> {
        let script = self.config.script.as_ref();
        let script = script.filter(|script| script.restarts == self.restarts)?;
        let point = script.points.get(self.points_passed)?;
        (point.task == name && point.calls == self.host.calls_made()).then_some(point)
    }

    /// Consults the scheduler at points without a switch, up to one with a switch; `all` includes that one,
    /// since the thread has passed it. Returns `false` if another thread runs now.
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

    /// Passes points before a system call. Memory management calls are no landmarks: the vm makes others.
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
        NO_LANDMARKS.contains(&call) || self.pass_points(name, true)
    }

    /// Runs a thread to the next point at which it is preempted, if there is one before its next system call.
    pub(super) fn reach_point(&mut self, name: TaskName) -> Result<Option<Reached>, NativeError> {
        let Some(script) = &self.config.script else {
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
        let programs = &self.config.programs;
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
        let mut stops: Vec<u64> = ranges.iter().map(|range| range.0).collect();
        let (mut arrivals, mut steps) = (0, 0);
        loop {
            let rip = native.tracee.registers()?.rip;
            let stopped = if contains(&ranges, rip) {
                let mut code = [0; LONGEST];
                for (at, byte) in code.iter_mut().enumerate() {
                    native
                        .tracee
                        .peek(rip + at as u64, std::slice::from_mut(byte));
                }
                let does = decode(&code, rip);
                if does.reaches_memory {
                    if arrivals >= wanted {
                        self.points_passed += 1;
                        return Ok(Some(Reached::Point));
                    }
                    arrivals += 1;
                }
                stops.extend(does.returns_to.filter(|back| !stops.contains(back)));
                steps += 1;
                if steps > MAX_STEPS {
                    return Ok(None);
                }
                native.tracee.step()?
            } else {
                let (process, thread) = (native.tracee.process, native.tracee.thread);
                let kept = set_breakpoints(&mut native.tracee, &stops);
                self.watchdog.watch(process.as_raw(), thread.as_raw());
                let stopped = native.tracee.run(None);
                self.watchdog.stop_watching();
                for (at, byte) in kept {
                    native.tracee.poke(at, &[byte]);
                }
                stopped?
            };
            if stopped != Stopped::Signal(libc::SIGTRAP) {
                return Ok(Some(Reached::Stopped(stopped)));
            }
            let registers = native.tracee.registers()?;
            let back = registers.rip.wrapping_sub(1);
            if !contains(&ranges, rip) {
                if !stops.contains(&back) {
                    return Ok(Some(Reached::Stopped(stopped)));
                }
                native.tracee.set_registers(Registers {
                    rip: back,
                    ..registers
                })?;
            }
        }
    }
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
