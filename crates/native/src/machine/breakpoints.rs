//! Breakpoints in native programs: allocators, watched instructions and reports of checked builds.

use everett_linux::{Errno, Guest, TaskName, shown_arguments, shown_arguments_of};
use everett_vm::{BugKind, ExecContext, FunctionFailure};
use std::sync::Arc;

use super::{Call, NativeConfig, NativeEnd, NativeError, NativeLimit, NativeMachine};
use crate::allocations::{Allocator, AllocatorCall, Request};
use crate::arithmetic::Arithmetic;
use crate::call_stack::{CallOrigin, NativeStack, SEARCHED, SEARCHED_AT_PANIC, ThreadStack};
use crate::events::EventKind;
use crate::failing::{FailingCall, Point};
use crate::jumps::Jumps;
use crate::known::KnownProgram;
use crate::leaks;
use crate::line_coverage::CoverableLines;
use crate::oracle::{self, NativeOracle, Source};
use crate::panics::Panics;
use crate::points::Lines;
use crate::races::{AtAccess, Races};
use crate::replacements;
use crate::sandbox::SandboxKind;
use crate::tracee::{Registers, Stopped, Tracee};

/// The relation of a thread's stop to the allocator and to other breakpoints.
pub(super) enum AtAllocator {
    /// The stop has another reason.
    Not,
    /// The stop was handled; the thread continues.
    GoesOn,
    /// The stop was handled, and the thread stopped again for this reason.
    Stopped(Stopped),
    /// The thread is held, so that others can run.
    Waits,
    /// The run ends.
    Ends(NativeEnd),
}

impl AtAllocator {
    /// Returns how a thread goes on after a step over a breakpoint.
    fn after(stopped: Stopped) -> AtAllocator {
        match stopped {
            Stopped::Signal(libc::SIGTRAP) => AtAllocator::GoesOn,
            other => AtAllocator::Stopped(other),
        }
    }
}

/// The finding of an allocation that is larger than any may be.
fn huge_allocation(bytes: u64) -> NativeEnd {
    NativeEnd::Finding {
        kind: BugKind::HugeAllocation.name().to_owned(),
        message: format!("allocation of {}", everett_vm::bytes(bytes)),
    }
}

/// How often the bytes of an input are in memory while it is supplied: for the run, its trace, the
/// program, and on their way there.
const INPUT_COPIES: u64 = 4;

/// A breakpoint at which a thread is about to do something that can fail.
#[derive(Copy, Clone)]
pub(super) struct AtEntry {
    /// The address of the breakpoint at which the thread is stopped.
    address: u64,
    what: Intercepted,
}

/// What a thread is about to do at a breakpoint.
#[derive(Copy, Clone)]
enum Intercepted {
    /// It requests memory.
    Request(Request),
    /// It calls a libc function that can fail, with this index.
    Function(usize),
}

impl NativeConfig {
    /// Returns the allocators of all programs, if the run must watch them; otherwise none.
    pub(super) fn allocators(&self, source: &Source) -> Result<Vec<Allocator>, NativeError> {
        // If the order of threads is explored, system calls of allocators must be distinguished
        // from those of the program: the model's own allocator makes none.
        let watched = self.asks_about_allocations(source) || self.host.options.scheduler.preempts();
        // Programs that cannot be read are reported before they are started.
        let mut all = self.all_known().collect::<std::io::Result<Vec<_>>>()?;
        if !watched {
            all.clear();
        }
        Ok(all.iter().map(|known| known.allocator.clone()).collect())
    }

    /// Returns the facts about all programs, by image number.
    fn all_known(&self) -> impl Iterator<Item = std::io::Result<Arc<KnownProgram>>> {
        self.programs.iter().map(|program| self.known.get(program))
    }

    /// Returns the facts about a program, if its file can be read.
    pub(super) fn known_program(&self, image: usize) -> Option<Arc<KnownProgram>> {
        self.known.get(self.programs.get(image)?).ok()
    }

    /// The lines of a program whose coverage is counted, if it is.
    pub(super) fn coverable_lines(&self, image: usize) -> Option<Arc<CoverableLines>> {
        let program = self.programs.get(image).filter(|_| self.counts_lines)?;
        Some(self.known.lines(program))
    }

    /// Returns whether the model is asked about allocations.
    pub(super) fn asks_about_allocations(&self, source: &Source) -> bool {
        let mut all = self.all_known().flatten();
        all.any(|known| known.allocator.bounds_memory())
            || match source {
                Source::Trace(trace) => oracle::depends_on_allocations(trace),
                Source::Random(_) | Source::Begun(..) | Source::Planned(..) => {
                    self.host.options.faults.allocations_may_fail()
                }
            }
    }

    /// Returns the sandbox that the programs need.
    pub(super) fn kind(&self) -> SandboxKind {
        let mut all = self.all_known().flatten();
        match all.any(|known| known.allocator.tracks_initialisation) {
            true => SandboxKind::FullAddressSpace,
            false => SandboxKind::LimitedMemory,
        }
    }

    /// Watches the arithmetic of the line that a trace ends at, if it ends with such a finding.
    pub(super) fn watch_arithmetic(
        &self,
        oracle: &NativeOracle,
        tracee: &mut Tracee,
    ) -> Result<Arithmetic, NativeError> {
        let Some((kind, file, line)) = oracle.expected_arithmetic() else {
            return Ok(Arithmetic::default());
        };
        let mut arithmetic = Arithmetic::of(&self.programs[0], &file, line, kind);
        arithmetic.watch(tracee, self.first_bias(tracee)?);
        Ok(arithmetic)
    }

    /// Watches jumps, if a trace ends with an invalid one.
    pub(super) fn watch_jumps(
        &self,
        oracle: &NativeOracle,
        tracee: &mut Tracee,
    ) -> Result<Jumps, NativeError> {
        if !oracle.expects(BugKind::BadJump) {
            return Ok(Jumps::default());
        }
        let bias = self.first_bias(tracee)?;
        Ok(Jumps::watch(
            &*self.known.get(&self.programs[0])?,
            tracee,
            bias,
        ))
    }

    /// Watches panics, if a trace ends with one or all are findings.
    pub(super) fn watch_panics(
        &self,
        oracle: &NativeOracle,
        tracee: &mut Tracee,
    ) -> Result<Panics, NativeError> {
        let is_any = self.finds_panics && !matches!(oracle.source(), Source::Trace(_));
        let Some(stack) = oracle.expected_panic().or(is_any.then_some(&[])) else {
            return Ok(Panics::default());
        };
        let bias = self.first_bias(tracee)?;
        let known = self.known.get(&self.programs[0])?;
        Ok(Panics::watch(stack, &known, tracee, bias))
    }

    /// Watches two accesses, if a trace ends with a race between them.
    pub(super) fn watch_races(
        &self,
        oracle: &NativeOracle,
        tracee: &mut Tracee,
    ) -> Result<Races, NativeError> {
        let Some(places) = oracle.expected_race() else {
            return Ok(Races::default());
        };
        let lines = Lines::of(&self.programs[0]);
        Ok(Races::watch(&lines, &places, self.race_skips, tracee)?)
    }

    /// Returns the load bias of the first program.
    fn first_bias(&self, tracee: &Tracee) -> Result<u64, NativeError> {
        Ok(match self.known_program(0) {
            Some(known) => known.allocator.bias_of(tracee)?,
            None => 0,
        })
    }
}

impl NativeMachine<'_> {
    /// Asks, as the model does, whether a memory management call fails. Calls of the allocator are
    /// excluded, because the model does not have them.
    pub(crate) fn ask_memory_call_fault(&mut self, name: TaskName, call: Call) -> Option<Errno> {
        let native = self.threads.get(&name)?;
        let allocator = self.allocators.get(usize::from(native.image.0));
        let in_runtime = |address| allocator.is_some_and(|one| one.is_in_runtime(address));
        let is_own = native.allocator_call.is_some()
            || native.loading.is_some()
            || !native.has_initialised_tls
            || in_runtime(native.tracee.registers().ok()?.rip);
        if is_own || !self.oracle.sees_allocations {
            return None;
        }
        self.host
            .ask_memory_call_fault(&mut around!(self), call.number)
    }

    /// Handles a thread that stopped at the entry or exit of the allocator.
    pub(super) fn at_allocator(&mut self, name: TaskName) -> Result<AtAllocator, NativeError> {
        if self.at_replaced(name)? || self.at_line(name)? {
            return Ok(AtAllocator::GoesOn);
        }
        if let Some(at) = self.at_failing_function(name)? {
            return Ok(at);
        }
        if let Some(at) = self.at_shared_access(name)? {
            return Ok(at);
        }
        if let Some(at) = self.at_access(name)? {
            return Ok(at);
        }
        if let Some(at) = self.at_panic(name)? {
            return Ok(at);
        }
        if let Some(at) = self.at_arithmetic(name)? {
            return Ok(at);
        }
        if let Some(at) = self.at_jump(name)? {
            return Ok(at);
        }
        self.at_allocation(name)
    }

    /// Executes watched arithmetic of the first program.
    fn at_arithmetic(&mut self, name: TaskName) -> Result<Option<AtAllocator>, NativeError> {
        let native = self.threads.get_mut(&name);
        let Some(native) = native.filter(|native| native.image.0 == 0) else {
            return Ok(None);
        };
        let Some(kind) = self.arithmetic.kind() else {
            return Ok(None);
        };
        let Some((stopped, wrong)) = self.arithmetic.execute(&mut native.tracee)? else {
            return Ok(None);
        };
        if wrong {
            self.record_stack(name, None)?;
            let message = "the result does not fit".to_owned();
            let kind = kind.name().to_owned();
            let end = NativeEnd::Finding { kind, message };
            return Ok(Some(AtAllocator::Ends(end)));
        }
        Ok(Some(AtAllocator::after(stopped)))
    }

    /// Executes a watched jump of the first program.
    fn at_jump(&mut self, name: TaskName) -> Result<Option<AtAllocator>, NativeError> {
        let native = self.threads.get_mut(&name);
        let Some(native) = native.filter(|native| native.image.0 == 0) else {
            return Ok(None);
        };
        let Some(jump) = self.jumps.execute(&mut native.tracee)? else {
            return Ok(None);
        };
        if let Some(behind) = jump.dead_frame {
            self.record_stack(name, Some(behind))?;
            let message = "the frame that the jump leads to has returned".to_owned();
            let kind = BugKind::BadJump.name().to_owned();
            let end = NativeEnd::Finding { kind, message };
            return Ok(Some(AtAllocator::Ends(end)));
        }
        Ok(Some(AtAllocator::after(jump.stopped)))
    }

    /// Handles a thread that stopped at the entry or exit of the allocator itself.
    fn at_allocation(&mut self, name: TaskName) -> Result<AtAllocator, NativeError> {
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(AtAllocator::Not);
        };
        let Some(allocator) = self.allocators.get(usize::from(native.image.0)) else {
            return Ok(AtAllocator::Not);
        };
        let mut registers = native.tracee.registers()?;
        if AllocatorCall::has_returned(&registers)
            && let Some(allocator_call) = native.allocator_call.take()
        {
            let heap = self.heaps.entry(name.pid).or_default();
            allocator_call.leave(&mut native.tracee, heap)?;
            return Ok(AtAllocator::GoesOn);
        }
        let Some(stop) = allocator.stopped_at(&registers) else {
            return Ok(AtAllocator::Not);
        };
        let entry = Some(AtEntry {
            address: stop.address(),
            what: Intercepted::Request(stop.request(&registers)),
        });
        self.note_origin(name, entry)?;
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(AtAllocator::Not);
        };
        if stop.is_end() {
            leaks::clear_dead_stack(&mut native.tracee, &registers);
        } else if native.allocator_call.is_none() {
            let request = stop.request(&registers);
            if let Request::Bytes(bytes) = request
                && self.oracle.sees_allocations
            {
                if bytes > self.options.max_allocation {
                    return Ok(AtAllocator::Ends(huge_allocation(bytes)));
                }
                let used = self.heaps.get(&name.pid).map_or(0, |heap| heap.bytes);
                let after = used.saturating_add(bytes);
                if self.host.ask_allocation_fault(&mut around!(self))
                    || after > self.host.max_heap(name.pid)
                {
                    stop.fail(&mut registers);
                }
            }
            native.allocator_call = Some(stop.enter(&mut native.tracee, &registers, request));
        }
        self.note_injected(name, entry)?;
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(AtAllocator::Not);
        };
        let stopped = stop.step_over(&mut native.tracee, registers)?;
        Ok(AtAllocator::after(stopped))
    }

    /// Handles a thread that stopped at the entry of a libc function that may fail, or has returned
    /// from one that does.
    fn at_failing_function(&mut self, name: TaskName) -> Result<Option<AtAllocator>, NativeError> {
        if self.failing.is_empty() {
            return Ok(None);
        }
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        let registers = native.tracee.registers()?;
        if FailingCall::has_returned(&registers)
            && let Some(call) = native.failing_call.take()
        {
            call.leave(&mut native.tracee, registers)?;
            return Ok(Some(AtAllocator::GoesOn));
        }
        let Some(point) = self.failing.reached(native.image, &registers) else {
            return Ok(None);
        };
        let failure = self.ask_function_fault(name, &point, &registers)?;
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        if let Some(failure) = failure {
            let function = &self.config.host.options.faults.functions[point.function];
            if !function.is_done {
                point.fail(function, failure, (&mut native.tracee, registers))?;
                return Ok(Some(AtAllocator::GoesOn));
            }
            let call = Point::fail_later(failure, &mut native.tracee, &registers);
            native.failing_call = Some(call);
        }
        let stopped = point.step_over(&mut native.tracee, registers)?;
        Ok(stopped.map(|stopped| match stopped {
            Stopped::Signal(libc::SIGTRAP) => AtAllocator::GoesOn,
            other => AtAllocator::Stopped(other),
        }))
    }

    /// Asks, as the vm does, whether a call of a libc function fails, unless the library makes it.
    fn ask_function_fault(
        &mut self,
        name: TaskName,
        point: &Point,
        registers: &Registers,
    ) -> Result<Option<FunctionFailure>, NativeError> {
        let Some(native) = self.threads.get(&name) else {
            return Ok(None);
        };
        let Some(known) = self.config.known_program(usize::from(native.image.0)) else {
            return Ok(None);
        };
        if native.allocator_call.is_some()
            || native.failing_call.is_some()
            || point.is_called_by_library(&known, &native.tracee, registers)?
        {
            return Ok(None);
        }
        let at = Some(AtEntry {
            address: point.address,
            what: Intercepted::Function(point.function),
        });
        self.note_origin(name, at)?;
        let failure = self
            .host
            .ask_function_fault(&mut around!(self), point.function);
        self.note_injected(name, at)?;
        Ok(failure)
    }

    /// Makes a thread that has called a replaced function return from it at once.
    fn at_replaced(&mut self, name: TaskName) -> Result<bool, NativeError> {
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(false);
        };
        let reached = self.replacements.reached(native.image, &native.tracee)?;
        let Some((function, registers)) = reached else {
            return Ok(false);
        };
        let value = match function.low == function.high {
            true => function.low as u64,
            false => {
                let (label, bytes) = (&function.name, function.bytes);
                let bytes = self.oracle.input_bytes(&mut self.arena, label, bytes);
                replacements::number(function, &bytes)
            }
        };
        replacements::leave(&mut native.tracee, registers, value)?;
        Ok(true)
    }

    /// Counts the line that a thread begins to execute for the first time. Returns whether it
    /// has stopped for that.
    fn at_line(&mut self, name: TaskName) -> Result<bool, NativeError> {
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(false);
        };
        let reached = self
            .line_coverage
            .reached(native.image, &mut native.tracee)?;
        Ok(reached)
    }

    /// Handles a thread that is about to raise an exception.
    fn at_panic(&mut self, name: TaskName) -> Result<Option<AtAllocator>, NativeError> {
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        if native.image.0 != 0 {
            return Ok(None);
        }
        let Some(registers) = self.panics.entries.reached(&native.tracee)? else {
            return Ok(None);
        };
        if Panics::is_panic(&mut native.tracee, &registers) {
            self.record_stack_of(name, None, SEARCHED_AT_PANIC)?;
            if self.panics.is_at_place(&self.stack) {
                if self.panics.are_all_wanted() {
                    self.stack.put_user_first();
                }
                let message = "a panic is raised".to_owned();
                let kind = BugKind::Panic.name().to_owned();
                return Ok(Some(AtAllocator::Ends(NativeEnd::Finding {
                    kind,
                    message,
                })));
            }
        }
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        let stopped = self.panics.entries.step(&mut native.tracee, registers)?;
        Ok(Some(match stopped {
            Stopped::Signal(libc::SIGTRAP) => AtAllocator::GoesOn,
            other => AtAllocator::Stopped(other),
        }))
    }

    /// Handles a thread that stopped before a racing access.
    fn at_access(&mut self, name: TaskName) -> Result<Option<AtAllocator>, NativeError> {
        let mut threads = self.threads.keys();
        let can_wait = threads.any(|other| other.pid == name.pid && *other != name);
        let Some(native) = self.threads.get_mut(&name) else {
            return Ok(None);
        };
        if native.image.0 != 0 {
            return Ok(None);
        }
        let arrived = self.races.arrive(name, &mut native.tracee, can_wait)?;
        Ok(match arrived {
            None => None,
            Some(AtAccess::Passed(Stopped::Signal(libc::SIGTRAP))) => Some(AtAllocator::GoesOn),
            Some(AtAccess::Passed(other)) => Some(AtAllocator::Stopped(other)),
            Some(AtAccess::Held) => {
                self.oracle.is_free = true;
                self.host.hold(Some(name.tid));
                Some(AtAllocator::Waits)
            }
            Some(AtAccess::Races) => {
                self.record_stack(name, None)?;
                let message = "two threads are about to access the same memory".to_owned();
                let kind = BugKind::DataRace.name().to_owned();
                Some(AtAllocator::Ends(NativeEnd::Finding { kind, message }))
            }
        })
    }

    /// Searches for unreachable blocks when a process exits by itself, if leaks are findings.
    pub(super) fn find_leaks(&mut self, name: TaskName) -> Result<Option<NativeEnd>, NativeError> {
        let threads = self
            .threads
            .iter()
            .filter(|thread| thread.0.pid == name.pid);
        let registers: std::io::Result<Vec<_>> = threads
            .map(|thread| Ok((thread.1.tracee.registers()?, *thread.0 == name)))
            .collect();
        let registers = registers?;
        let (Some(native), Some(heap)) = (self.threads.get_mut(&name), self.heaps.get(&name.pid))
        else {
            return Ok(None);
        };
        let Some(allocator) = self.allocators.get(usize::from(native.image.0)) else {
            return Ok(None);
        };
        let known = (heap, allocator);
        let (blocks, bytes) = leaks::leaked(&mut native.tracee, known, &registers)?;
        Ok((blocks > 0).then(|| NativeEnd::Finding {
            kind: BugKind::Leak.name().to_owned(),
            message: format!(
                "{} in unreachable heap blocks ({blocks})",
                everett_vm::bytes(bytes)
            ),
        }))
    }

    /// Records whether a program that a thread is about to execute is a checked build.
    pub(super) fn set_checks(config: &NativeConfig, image: usize, tracee: &mut Tracee) {
        let known = config.known_program(image);
        let allocator = known.as_ref().map(|known| &known.allocator);
        tracee.is_checked = allocator.is_some_and(|allocator| allocator.is_checked);
        tracee.tracks_initialisation =
            allocator.is_some_and(|allocator| allocator.tracks_initialisation);
    }

    /// Reports a write by the kernel to memory that a checked build has poisoned.
    pub(super) fn report_kernel_write(
        &mut self,
        name: TaskName,
    ) -> Result<Option<NativeEnd>, NativeError> {
        let native = self.threads.get_mut(&name);
        let Some((address, kind)) = native.and_then(|native| native.tracee.violation.take()) else {
            return Ok(None);
        };
        self.record_stack(name, None)?;
        Ok(Some(NativeEnd::Finding {
            kind: kind.to_owned(),
            message: format!("a system call writes at address {address:#x}"),
        }))
    }

    /// Reads a NUL-terminated text in the memory of a thread.
    pub(super) fn text_at(&mut self, name: TaskName, address: u64) -> String {
        let mut text = Vec::new();
        if let Some(native) = self.threads.get_mut(&name) {
            let mut byte = [0];
            while native.tracee.peek(address + text.len() as u64, &mut byte) && byte[0] != 0 {
                text.push(byte[0]);
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Returns the finding that a checked build reports.
    pub(super) fn reported(
        &mut self,
        name: TaskName,
        call: Call,
    ) -> Result<Option<NativeEnd>, NativeError> {
        let [kind, address, behind, ..] = call.args;
        let kind = self.text_at(name, kind);
        self.record_stack(name, Some(behind))?;
        Ok(Some(NativeEnd::Finding {
            kind,
            message: format!("at address {address:#x}"),
        }))
    }

    /// Records the call stack of a thread.
    pub(super) fn record_stack(
        &mut self,
        name: TaskName,
        behind: Option<u64>,
    ) -> Result<(), NativeError> {
        self.record_stack_of(name, behind, SEARCHED)
    }

    /// Records the call that a planned fault hit, if one has happened.
    pub(super) fn note_injected(
        &mut self,
        name: TaskName,
        entry: Option<AtEntry>,
    ) -> Result<(), NativeError> {
        if std::mem::take(&mut self.oracle.has_injected) {
            let at = entry.map(|entry| entry.address);
            let stack = self.stack_of(name, (at, None), SEARCHED)?;
            let arguments = self.arguments_of(name, entry);
            self.injected.push(CallOrigin { stack, arguments });
        }
        Ok(())
    }

    /// Tells the oracle from where a thread makes a call that may fail, if that matters.
    pub(super) fn note_origin(
        &mut self,
        name: TaskName,
        entry: Option<AtEntry>,
    ) -> Result<(), NativeError> {
        let Some(has_stack) = self.oracle.needs_origin() else {
            return Ok(());
        };
        let at = entry.map(|entry| entry.address);
        let stack = match has_stack {
            true => self.stack_of(name, (at, None), 0)?,
            false => NativeStack::default(),
        };
        let arguments = self.arguments_of(name, entry);
        self.oracle.origin = Some(CallOrigin { stack, arguments });
        Ok(())
    }

    /// Returns the arguments of the call that a thread makes; of an allocation, its size.
    fn arguments_of(&mut self, name: TaskName, entry: Option<AtEntry>) -> Vec<String> {
        if let Some(entry) = entry {
            return match entry.what {
                Intercepted::Request(Request::Bytes(bytes)) => vec![bytes.to_string()],
                Intercepted::Request(Request::Other) => Vec::new(),
                Intercepted::Function(function) => self.function_arguments(name, function),
            };
        }
        let Some(native) = self.threads.get_mut(&name) else {
            return Vec::new();
        };
        let Some(call) = native.pending else {
            return Vec::new();
        };
        let shown = shown_arguments_of(call.number);
        let tracee = &mut native.tracee;
        shown_arguments(&shown, call.args, |address, into| {
            tracee.read(address, into)
        })
    }

    /// Returns the arguments of the libc function at whose entry a thread is.
    fn function_arguments(&mut self, name: TaskName, function: usize) -> Vec<String> {
        let Some(native) = self.threads.get_mut(&name) else {
            return Vec::new();
        };
        let Ok(registers) = native.tracee.registers() else {
            return Vec::new();
        };
        let Registers {
            rdi,
            rsi,
            rdx,
            rcx,
            r8,
            r9,
            ..
        } = registers;
        let tracee = &mut native.tracee;
        let functions = &self.config.host.options.faults.functions;
        let shown = &functions[function].arguments;
        let words = [rdi, rsi, rdx, rcx, r8, r9];
        shown_arguments(shown, words, |address, into| tracee.read(address, into))
    }

    fn record_stack_of(
        &mut self,
        name: TaskName,
        behind: Option<u64>,
        searched: u64,
    ) -> Result<(), NativeError> {
        self.stack = self.stack_of(name, (None, behind), searched)?;
        Ok(())
    }

    /// Returns the call stack of a thread. `at` is where it is stopped, if that is at a breakpoint;
    /// `behind` is the return address of the instruction to blame, if that is another one.
    fn stack_of(
        &mut self,
        name: TaskName,
        (at, behind): (Option<u64>, Option<u64>),
        searched: u64,
    ) -> Result<NativeStack, NativeError> {
        let Some(native) = self.threads.get(&name) else {
            return Ok(NativeStack::default());
        };
        let image = usize::from(native.image.0);
        let Some(known) = self.config.known_program(image) else {
            return Ok(NativeStack::default());
        };
        let mut registers = native.tracee.registers()?;
        registers.rip = at.unwrap_or(registers.rip);
        let thread = ThreadStack {
            tracee: &native.tracee,
            registers,
            tables: &known.tables,
            bias: known.allocator.bias_of(&native.tracee)?,
            allocator_call: native.allocator_call,
            hidden: native.failing_call.as_ref().map(FailingCall::hidden),
        };
        let addresses = thread.addresses(behind, searched);
        Ok(addresses.symbolise(thread.bias, known.frames()))
    }

    /// Supplies bytes for `everett_make_symbolic` and similar calls.
    pub(super) fn supply_symbolic_input(
        &mut self,
        name: TaskName,
        call: Call,
    ) -> Option<NativeEnd> {
        let [text, address, size, ..] = call.args;
        if size == 0 {
            // A probe: the program only checks whether the call is answered.
            return None;
        }
        if let Some(end) = self.check_memory_for(size.saturating_mul(INPUT_COPIES)) {
            return Some(end);
        }
        let Ok(size) = u32::try_from(size) else {
            let most = self.config.max_memory;
            return Some(NativeEnd::Limit(NativeLimit::Memory(most)));
        };
        let label = self.text_at(name, text);
        let bytes = self.oracle.input_bytes(&mut self.arena, &label, size);
        if let Some(native) = self.threads.get_mut(&name) {
            native.tracee.write(address, &bytes);
        }
        None
    }

    /// Returns whether the trace ends with a fault that the program handles, and this signal may be
    /// it.
    pub(super) fn expects_fault(&self, signal: i32) -> bool {
        let mut kinds = BugKind::ALL.iter();
        !self.config.host.options.faults_to_handlers
            && kinds.any(|kind| kind.faults_with(signal) && self.oracle.expects(*kind))
    }

    /// Ends the run after a fault of real code.
    pub(super) fn crashed(
        &mut self,
        name: TaskName,
        signal: i32,
    ) -> Result<Option<NativeEnd>, NativeError> {
        let native = &self.threads[&name];
        // The thread may not exist any more.
        let registers = native.tracee.registers().ok();
        let address = registers.map_or(0, |registers| registers.rip);
        let program = self.config.programs[usize::from(native.image.0)].clone();
        self.events
            .note(EventKind::Fault, name, &[signal as u64, address]);
        if self.host.is_first(name.pid) || self.config.host.options.crashes_end_all {
            if registers.is_some() {
                self.record_stack(name, None)?;
            }
            return Ok(Some(NativeEnd::Signal {
                signal,
                place: registers.map(|registers| (program, registers.rip)),
            }));
        }
        self.host.mark_killed(name.pid, signal);
        self.update_tasks(name)?;
        Ok(None)
    }
}
