//! Real threads and processes: `clone`, `execve` and exit, as the model decides.

use std::collections::BTreeSet;
use std::path::Path;

use everett_linux::{Execution, Guest, TaskName};
use everett_vm::BugKind;

use super::{Call, NativeError, NativeMachine, NativeThread, call_numbers, loading};
use crate::events::EventKind;
use crate::sandbox;
use crate::tracee::{Registers, Tracee, kill_all_tracees};
use crate::zygote::string_list;

/// The address at which a call stores the tid of the new process in its memory.
fn child_tid_address(child: &Tracee, call: Call) -> Option<u64> {
    const CHILD_SETTID: u64 = 0x100_0000;
    /// Offset of the address in a `struct clone_args`, which starts with the flags.
    const CHILD_TID_AT: u64 = 16;
    let word = |at: u64| {
        let mut bytes = [0; 8];
        child
            .peek(at, &mut bytes)
            .then(|| u64::from_le_bytes(bytes))
    };
    let (flags, address) = match call.number {
        call_numbers::CLONE => (call.args[0], call.args[3]),
        call_numbers::CLONE3 => {
            let [flags, address] = [0, CHILD_TID_AT].map(|offset| word(call.args[0] + offset));
            (flags?, address?)
        }
        _ => return None,
    };
    (flags & CHILD_SETTID != 0).then_some(address)
}

impl NativeMachine<'_> {
    /// Creates the real thread or process of a task that the model has created.
    pub(super) fn create_real_task(
        &mut self,
        parent: TaskName,
        child: TaskName,
        call: Call,
    ) -> Result<(), NativeError> {
        let is_thread = parent.pid == child.pid;
        // The model has decided the kind of the child. Of the guest's arguments, only the stack and
        // the TLS base are used.
        let kind = match is_thread {
            true => sandbox::THREAD,
            false if self.host.borrows_memory(child.pid) => sandbox::BORROWER,
            false => 0,
        };
        let args = match call.number {
            call_numbers::CLONE => {
                let tls = call.args[0] & sandbox::SET_TLS;
                [kind | tls, call.args[1], 0, 0, call.args[4], 0]
            }
            call_numbers::FORK | call_numbers::VFORK | call_numbers::CLONE3 => {
                [kind, 0, 0, 0, 0, 0]
            }
            other => {
                let message = format!("system call {other} created a process");
                return Err(NativeError::NotReplayable(message));
            }
        };
        let Some(native) = self.threads.get_mut(&parent) else {
            return Ok(());
        };
        let before = native.tracee.registers()?;
        let (_, created) = native.tracee.inject_call(call_numbers::CLONE, args)?;
        native.tracee.set_registers(before)?;
        let image = native.image;
        let Some(created) = created else {
            let message = "the real machine refuses to create more threads".to_owned();
            return Err(NativeError::NotReplayable(message));
        };
        let mut tracee = native.tracee.child(created, is_thread)?;
        // All registers but the stack pointer and the TLS base are as the
        // program had them at its own call.
        let own = tracee.registers()?;
        tracee.set_registers(Registers {
            rax: 0,
            orig_rax: u64::MAX,
            rsp: own.rsp,
            fs_base: own.fs_base,
            gs_base: own.gs_base,
            ..before
        })?;
        if !is_thread {
            self.access_points.inherit(parent.pid, child.pid);
            if let Some(heap) = self.heaps.get(&parent.pid).cloned() {
                self.heaps.insert(child.pid, heap);
            }
            self.shared_files
                .inherit(&mut self.host, parent.pid, child.pid);
            if let Some(address) = child_tid_address(&tracee, call) {
                tracee.write(address, &child.tid.to_le_bytes());
            }
        }
        let native = NativeThread {
            tracee,
            image,
            pending: None,
            allocator_call: None,
            failing_call: None,
            held_write: None,
            halfway_at: None,
            preempted_at: None,
            loading: None,
            has_initialised_tls: true,
        };
        self.threads.insert(child, native);
        self.events.note(EventKind::Born, child, &[]);
        Ok(())
    }

    /// Replaces the program of a process (`execve`).
    pub(super) fn execute(
        &mut self,
        name: TaskName,
        execution: &Execution,
    ) -> Result<(), NativeError> {
        let program = self.config.programs.get(usize::from(execution.image.0));
        let Some(program) = program.cloned() else {
            let message = "execve of a program that is not part of the run".to_owned();
            return Err(NativeError::NotReplayable(message));
        };
        self.host.complete_exec(execution);
        self.access_points.forget(name.pid);
        let Some(mut native) = self.threads.remove(&name) else {
            return Ok(());
        };
        let Some(call) = native.pending.take() else {
            return Ok(());
        };
        if let Err(error) = self.replace_program(name, &mut native, execution, (&program, call)) {
            // The thread is not in any table at this point.
            kill_all_tracees(vec![native.tracee]);
            return Err(error);
        }
        // The thread that calls `execve` takes over the tid of its process.
        let running = self.host.running();
        self.threads.insert(running, native);
        let image = u64::from(execution.image.0);
        self.events.note(EventKind::Executed, running, &[image]);
        self.update_mapped_files(running.pid)?;
        self.update_tasks(running)
    }

    /// Makes a thread that is stopped at a call execute a program.
    fn replace_program(
        &mut self,
        name: TaskName,
        native: &mut NativeThread,
        execution: &Execution,
        (program, call): (&Path, Call),
    ) -> Result<(), NativeError> {
        let values = self.host.auxiliary_values(name.pid);
        let mut path = program
            .canonicalize()?
            .into_os_string()
            .into_encoded_bytes();
        // The name that the program sees replaces this one: slashes make room for it.
        let room = values.name.len().saturating_sub(path.len());
        path.splice(0..0, std::iter::repeat_n(b'/', room));
        path.push(0);
        path.resize(path.len().next_multiple_of(8), 0);
        let (argv, env) = match call.number {
            call_numbers::EXECVE => (call.args[1], call.args[2]),
            _ => (call.args[2], call.args[3]),
        };
        let words = self.changed_arguments(native, execution, argv);
        let size = path.len()
            + words
                .as_ref()
                .map_or(0, |words| string_list(words, 0).len());
        // The memory of the process is about to be replaced, and this memory with it.
        let room = native.tracee.map_room(size as u64)?;
        let list = room + path.len() as u64;
        let argv = words.as_ref().map_or(argv, |_| list);
        path.extend(words.map_or_else(Vec::new, |words| string_list(&words, list)));
        native.tracee.poke(room, &path);
        let args = [room, argv, env, 0, 0, 0];
        self.end_other_threads(name, native);
        if native.tracee.inject_exec(args)? != 0 {
            let message = format!("{} cannot be executed natively", program.display());
            return Err(NativeError::NotReplayable(message));
        }
        native.tracee.set_up_program(&values)?;
        native.image = execution.image;
        let image = usize::from(execution.image.0);
        NativeMachine::set_checks(self.config, image, &mut native.tracee);
        native.allocator_call = None;
        native.failing_call = None;
        native.loading = loading::begin(&mut native.tracee)?;
        native.has_initialised_tls = false;
        self.heaps.remove(&name.pid);
        if let Some(allocator) = self.allocators.get_mut(usize::from(execution.image.0)) {
            allocator.watch(&mut native.tracee, self.oracle.expects(BugKind::Leak))?;
        }
        if let Some(known) = self.config.known_program(image) {
            let functions = &self.config.host.options.faults.functions;
            let tracee = &mut native.tracee;
            self.failing
                .watch(execution.image, functions, &known, tracee)?;
        }
        if let Some(functions) = self.config.replaced.get(usize::from(execution.image.0)) {
            let tracee = &mut native.tracee;
            let watched = self
                .replacements
                .watch(execution.image, functions, program, tracee);
            watched?;
        }
        if let Some(lines) = self.config.coverable_lines(image) {
            let tracee = &mut native.tracee;
            self.line_coverage.watch(execution.image, &lines, tracee)?;
        }
        Ok(())
    }

    /// Creates the tasks that the current call of a thread has created, and ends exited ones.
    pub(super) fn update_tasks(&mut self, parent: TaskName) -> Result<(), NativeError> {
        let call = self.threads.get(&parent).and_then(|native| native.pending);
        for child in self.host.update_native_tasks() {
            if let Some(call) = call {
                self.create_real_task(parent, child, call)?;
            }
        }
        if !self.end_exited() {
            return Ok(());
        }
        for pid in self.shared_files.processes() {
            let threads = TaskName { pid, tid: 0 }..=TaskName { pid, tid: u32::MAX };
            if self.threads.range(threads).next().is_none() {
                self.update_mapped_files(pid)?;
            }
        }
        Ok(())
    }

    /// Returns the arguments of an `execve` if they differ from those of the caller: a script
    /// passes words to its interpreter.
    fn changed_arguments(
        &mut self,
        native: &mut NativeThread,
        execution: &Execution,
        argv: u64,
    ) -> Option<Vec<Vec<u8>>> {
        let word = |native: &mut NativeThread, at: usize| {
            let mut bytes = [0; 8];
            let at = argv.wrapping_add(8 * at as u64);
            native.tracee.peek(at, &mut bytes);
            u64::from_le_bytes(bytes)
        };
        let count = execution.args.len();
        if argv != 0 && (0..count).all(|at| word(native, at) != 0) && word(native, count) == 0 {
            return None;
        }
        let args = execution.args.iter();
        let args = args.map(|arg| self.oracle.inputs.string(arg, &mut self.arena));
        Some(args.collect())
    }

    /// Ends all threads of a process except the one that is about to call `execve`. The real kernel
    /// ends the main thread, whose tid it reassigns.
    fn end_other_threads(&mut self, name: TaskName, native: &NativeThread) {
        self.parked.remove(&name.pid);
        let others: Vec<TaskName> = self
            .threads
            .keys()
            .filter(|other| other.pid == name.pid)
            .copied()
            .collect();
        for other in others {
            let Some(mut other) = self.threads.remove(&other) else {
                continue;
            };
            if other.tracee.thread != native.tracee.process {
                let _ = other.tracee.inject_call(call_numbers::EXIT, [0; 6]);
            }
        }
    }

    /// Ends real threads whose task in the model has exited. Returns whether there may be any.
    pub(super) fn end_exited(&mut self) -> bool {
        // Every live task has a real thread, so equal counts mean equal sets.
        if self.host.thread_count() == self.threads.len() {
            return false;
        }
        let alive: BTreeSet<TaskName> = self.host.alive().into_iter().collect();
        let ended: Vec<TaskName> = self
            .threads
            .keys()
            .filter(|name| !alive.contains(name))
            .copied()
            .collect();
        let mut dead = Vec::new();
        for name in ended {
            let Some(mut native) = self.threads.remove(&name) else {
                continue;
            };
            if !alive.iter().any(|other| other.pid == name.pid) {
                dead.extend(self.parked.remove(&name.pid));
                dead.push(native.tracee);
            } else if native.tracee.thread == native.tracee.process {
                // The kernel reports the exit of a main thread only when all other threads are
                // gone, and its tid is the pid.
                self.parked.insert(name.pid, native.tracee);
            } else {
                let _ = native.tracee.inject_call(call_numbers::EXIT, [0; 6]);
            }
        }
        kill_all_tracees(dead);
        true
    }

    pub(crate) fn kill_all(&mut self) {
        let threads = std::mem::take(&mut self.threads).into_values();
        let parked = std::mem::take(&mut self.parked).into_values();
        kill_all_tracees(threads.map(|native| native.tracee).chain(parked).collect());
        self.account.note(0);
    }
}
