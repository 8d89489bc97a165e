//! The context of a system call: the tables that a handler may access, and how it reads and writes
//! guest memory.

use everett_vm::{Buffer, Bug, BugKind, ExecContext, Interrupt, ObjectKind, PAGE, Value, Vm};
use triomphe::Arc;

use crate::errno::Errno;
use crate::files::{Description, Descriptor, Files, OpenFlags};
use crate::guest::Guest;
use crate::host::HostState;
use crate::process::{Execution, ExitStatus, ProcessState, TaskState};
use crate::wait::{Wait, WaitCondition};

/// Why a system call has no result yet. The call has no effects.
#[derive(Clone, Debug)]
pub enum Stop {
    /// The call failed.
    Errno(Errno),
    /// A question to the oracle has several answers, or the program has a bug.
    Interrupt(Interrupt),
    /// The call blocks.
    Block(Box<Wait>),
    /// A preemption point: another thread may run before this one continues.
    Point,
    /// The driver of the host decides before the call is made.
    Ask,
    /// The path ends here until all hosts of its world are declared.
    SetUp,
    /// The thread exits.
    ExitThread,
    /// The process exits.
    Exit(ExitStatus),
    /// The process executes another program.
    Execute(Box<Execution>),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Stop {
        Stop::Errno(errno)
    }
}

impl From<Interrupt> for Stop {
    fn from(interrupt: Interrupt) -> Stop {
        Stop::Interrupt(interrupt)
    }
}

impl From<Bug> for Stop {
    fn from(bug: Bug) -> Stop {
        Stop::Interrupt(bug.into())
    }
}

/// Checks a range of native memory by its first and last page. The pages between them are assumed
/// to be mapped in the same way.
fn check_native(guest: &mut dyn Guest, address: u64, len: u64, write: bool) -> Result<(), Stop> {
    const PAGE: u64 = everett_vm::PAGE as u64;
    let last = address.checked_add(len - 1).ok_or(Errno::EFAULT)?;
    let mut allows = |address| match write {
        true => guest.can_write(address),
        false => guest.read(address, &mut [0]),
    };
    if allows(address) && (last / PAGE == address / PAGE || allows(last)) {
        Ok(())
    } else {
        Err(Errno::EFAULT.into())
    }
}

/// Reborrows the execution context for a shorter lifetime.
pub fn reborrow<'s>(around: &'s mut ExecContext<'_>) -> ExecContext<'s> {
    ExecContext {
        images: around.images,
        arena: around.arena,
        oracle: around.oracle,
        stacks: around.stacks,
        coverage: around.coverage,
        options: around.options,
    }
}

/// The context of a system call.
pub struct Kernel<'k, 'v> {
    /// Memory of the calling process, and the calling thread.
    pub vm: &'k mut Vm<'v>,
    /// Index of the calling task in [`HostState::tasks`].
    pub task: usize,
    /// Index of the calling process in [`HostState::processes`].
    pub process: usize,
    /// Memory of the calling process if it is native; otherwise it is the vm's.
    pub guest: Option<&'k mut (dyn Guest + 'k)>,
    /// The kernel's tables.
    pub host: &'k mut HostState,
}

impl Kernel<'_, '_> {
    /// The calling task.
    pub fn task(&self) -> &TaskState {
        &self.host.tasks[self.task]
    }

    /// The calling task, for changing it.
    pub fn task_mut(&mut self) -> &mut TaskState {
        Arc::make_mut(&mut self.host.tasks[self.task])
    }

    /// The calling process.
    pub fn process(&self) -> &ProcessState {
        &self.host.processes[self.process]
    }

    /// The calling process, for changing it.
    pub fn process_mut(&mut self) -> &mut ProcessState {
        Arc::make_mut(&mut self.host.processes[self.process])
    }

    /// The files of the host.
    pub fn files(&mut self) -> &mut Files {
        &mut self.host.files
    }

    /// Checks that the kernel can access guest memory. The guest gets `EFAULT` where native code
    /// would get it. An access where the real kernel would silently overrun a live block or use a
    /// freed one is a finding.
    pub fn check(&mut self, address: u64, len: u64, write: bool) -> Result<(), Stop> {
        if len == 0 {
            return Ok(());
        }
        if let Some(guest) = &mut self.guest {
            return check_native(*guest, address, len, write);
        }
        let unmapped = match self.vm.memory.near(address) {
            None => true,
            Some(object) if object.region().is_some() => {
                // The real kernel faults at page granularity.
                let inside = address.wrapping_sub(object.start);
                let room = object.size.checked_sub(inside);
                room.is_none_or(|room| room < len) || !object.allows(inside, len, write)
            }
            Some(object) => {
                let gone = object.kind == ObjectKind::Mapping && !object.is_live();
                gone || (write && object.kind == ObjectKind::Constant)
            }
        };
        if unmapped {
            return Err(Errno::EFAULT.into());
        }
        Ok(self.vm.check_kernel_range(address, len, write)?)
    }

    /// How many of these bytes of guest memory, from the first on, the kernel can access.
    pub fn accessible_from(&mut self, address: u64, len: u64, write: bool) -> Result<u64, Stop> {
        const FAULT: Stop = Stop::Errno(Errno::EFAULT);
        let fits = |checked: Result<(), Stop>| match checked {
            Ok(()) => Ok(true),
            Err(Stop::Errno(Errno::EFAULT)) => Ok(false),
            Err(stop) => Err(stop),
        };
        if fits(self.check(address, len, write))? {
            return Ok(len);
        }
        let end = address.checked_add(len).ok_or(FAULT)?;
        let mut at = address;
        while at < end {
            let next = (at / PAGE as u64 + 1).saturating_mul(PAGE as u64).min(end);
            if !fits(self.check(address, next - address, write))? {
                break;
            }
            at = next;
        }
        Ok(at - address)
    }

    /// A copy of guest memory, symbolic bytes included.
    pub fn read_buffer(&mut self, address: u64, len: u64) -> Result<Buffer, Stop> {
        // A short read of native memory fails by itself. A long one must not allocate in vain.
        if self.guest.is_none() || len > PAGE as u64 {
            self.check(address, len, false)?;
        }
        if let Some(guest) = &mut self.guest {
            let mut bytes = vec![0; len as usize];
            return match guest.read(address, &mut bytes) {
                true => Ok(Buffer::with_bytes(&bytes, bytes.len())),
                false => Err(Errno::EFAULT.into()),
            };
        }
        match self.vm.memory.object_at(address, len) {
            Some(object) if len > 0 => Ok(object.snapshot(address - object.start, len)),
            _ => Ok(Buffer::zeroed(0)),
        }
    }

    /// Writes to guest memory.
    pub fn write_buffer(&mut self, address: u64, bytes: &Buffer) -> Result<(), Stop> {
        if self.guest.is_some() {
            return self.write_native(address, bytes);
        }
        self.check(address, bytes.len() as u64, true)?;
        if let Some(object) = self.vm.memory.object_at_mut(address, bytes.len() as u64)
            && !bytes.is_empty()
        {
            let offset = address - object.start;
            object.write_buffer(offset, bytes);
        }
        Ok(())
    }

    /// Writes to the memory of a native process. Symbolic bytes get their values from the trace.
    fn write_native(&mut self, address: u64, bytes: &Buffer) -> Result<(), Stop> {
        let mut concrete = bytes.bytes().to_vec();
        for (at, byte) in concrete.iter_mut().enumerate() {
            if bytes.has_symbolic(at, 1) {
                let value = bytes.byte(self.vm.arena, at);
                *byte = self.vm.concretize(value)? as u8;
            }
        }
        let written = match &mut self.guest {
            Some(guest) => guest.write(address, &concrete),
            None => false,
        };
        if written {
            Ok(())
        } else {
            Err(Errno::EFAULT.into())
        }
    }

    /// Writes concrete bytes to guest memory.
    pub fn write_bytes(&mut self, address: u64, bytes: &[u8]) -> Result<(), Stop> {
        self.write_buffer(address, &Buffer::with_bytes(bytes, bytes.len()))
    }

    /// Concrete bytes of guest memory. Symbolic bytes are concretized, with one path for each
    /// value. Uninitialised bytes count as zero: a structure can have fields that the call ignores
    /// or only returns.
    pub fn read_bytes(&mut self, address: u64, len: u64) -> Result<Vec<u8>, Stop> {
        let buffer = self.read_buffer(address, len)?;
        let mut bytes = buffer.bytes().to_vec();
        for (at, byte) in bytes.iter_mut().enumerate() {
            if buffer.has_symbolic(at, 1) {
                let value = buffer.byte(self.vm.arena, at);
                let value = self.vm.zero_uninitialised(value);
                *byte = self.vm.concretize(value)? as u8;
            }
        }
        Ok(bytes)
    }

    /// A concrete 64-bit number in guest memory that the call only returns later.
    pub fn read_cookie(&mut self, address: u64) -> Result<u64, Stop> {
        let value = self.read_value(address, 8)?;
        let value = self.vm.zero_uninitialised(value);
        Ok(self.vm.concretize(value)?)
    }

    /// A concrete 64-bit number in guest memory.
    pub fn read_u64(&mut self, address: u64) -> Result<u64, Stop> {
        let value = self.read_value(address, 8)?;
        Ok(self.vm.concretize(value)?)
    }

    /// A number in guest memory, concrete or symbolic.
    pub fn read_value(&mut self, address: u64, len: usize) -> Result<Value, Stop> {
        let buffer = self.read_buffer(address, len as u64)?;
        Ok(buffer.load(self.vm.arena, 0, len))
    }

    /// Blocks until a condition holds, or until a deadline on the virtual clock. Returns `Ok` once
    /// the deadline has passed: a handler that runs again checks its condition first.
    pub fn wait(
        &mut self,
        condition: WaitCondition,
        deadline_ns: Option<u64>,
        what: &'static str,
    ) -> Result<(), Stop> {
        // The deadline was set when the handler ran for the first time.
        let deadline_ns = deadline_ns.map(|new| self.task().deadline_ns.unwrap_or(new));
        if deadline_ns.is_some_and(|at| at <= self.host.clock_ns) {
            return Ok(());
        }
        Err(Stop::Block(Box::new(Wait {
            deadline_ns,
            condition,
            what,
            restarts: false,
        })))
    }

    /// Blocks without a deadline. The wait restarts after a signal whose action has `SA_RESTART`.
    pub fn wait_restartable(&mut self, condition: WaitCondition, what: &'static str) -> Stop {
        Stop::Block(Box::new(Wait {
            deadline_ns: None,
            condition,
            what,
            restarts: true,
        }))
    }

    /// Restores the signal mask that a system call replaced while it waited.
    pub(crate) fn restore_mask(&mut self) {
        if self.task().restored_mask.is_some() {
            let task = self.task_mut();
            task.blocked = task.restored_mask.take().unwrap_or(task.blocked);
        }
    }

    /// A finding that names a feature that the model lacks.
    pub fn unsupported(&self, what: impl Into<String>) -> Stop {
        Bug::new(BugKind::Unsupported, what).into()
    }

    /// Installs an open file description at a free descriptor.
    pub fn install(&mut self, fd: i32, mut description: Description) {
        let close_on_exec = description.flags.has(OpenFlags::CLOSE_ON_EXEC);
        // Close-on-exec is a flag of the descriptor, not of the open file description.
        description.flags.0 &= !OpenFlags::CLOSE_ON_EXEC;
        let description = self.host.files.open(description);
        let descriptor = Descriptor {
            description,
            close_on_exec,
        };
        self.process_mut().descriptors.set(fd, Some(descriptor));
    }
}

/// Result of a handler: the return value, or why there is none.
pub type Answer = Result<Value, Stop>;
