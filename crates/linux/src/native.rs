//! The door for native processes: their system calls are answered by the same kernel model, their memory is reached
//! through [`Guest`]. Frames and registers are their own affair.

use everett_vm::{ChoiceSite, ExecContext, Interrupt, Memory, SystemCall, Thread, Value};
use triomphe::Arc;

use crate::dispatch::{Pause, Slice};
use crate::files::Disk;
use crate::host::{Ending, Host, HostExit};
use crate::kernel::{Kernel, Stop};
use crate::life::Execution;
use crate::process::Doing;
use crate::signals::{Signal, bit};
use crate::{Errno, HostConfig, boot, table};

/// The memory of a native process.
pub trait Guest {
    /// Fills `into` from an address; `false` where that cannot be read.
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool;
    /// Writes bytes at an address; `false` where that cannot be written.
    fn write(&mut self, address: u64, bytes: &[u8]) -> bool;
    /// Whether the byte at an address can be written.
    fn can_write(&mut self, address: u64) -> bool;
    /// Whether there is something at an address, however it is protected.
    fn is_mapped(&mut self, address: u64) -> bool;
    /// Where the stack of the thread ends that calls.
    fn stack_pointer(&mut self) -> u64;
    /// The signals that the thread blocks now that a handler has returned, as the frame of the handler says.
    fn restored_mask(&mut self) -> Option<u64>;
    /// The file that several processes can have mapped at an address, by a number, and where in it that is.
    fn shared_file_offset(&mut self, address: u64) -> Option<(u64, u64)>;
}

/// A signal whose handler the native thread is to run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Injected {
    /// Which.
    pub signal: i32,
    /// Where it comes from: `si_code`.
    pub code: i32,
    /// What `siginfo` holds from byte 16 on: sender and value, a child and its status.
    pub words: [u64; 3],
    /// The signals that are blocked again when the handler has returned.
    pub mask: u64,
}

/// What became of a system call, or of a thread that was picked.
#[derive(Debug)]
pub enum Served {
    /// The thread goes on, after the handlers of these signals.
    Goes(Vec<Injected>),
    /// The call has this result; the thread goes on, after the handlers of these signals.
    Done(u64, Vec<Injected>),
    /// The call is to be made again when the thread is picked again.
    Waits,
    /// The call is to be made again after the handlers of these signals.
    Again(Vec<Injected>),
    /// The thread or its whole process has ended.
    Off,
    /// The process executes another program.
    Executes(Box<Execution>),
    /// The host is at its end, or cannot go on.
    Exit(HostExit),
}

/// A thread of the host.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskName {
    /// Number of its process.
    pub pid: u32,
    /// Its own.
    pub tid: u32,
}

impl Kernel<'_, '_> {
    /// The native thread is to run the handler of a signal.
    pub(crate) fn inject(&mut self, signal: &Signal, mask: u64) {
        let [first, second, third] = signal.words;
        let status = signal.status.and_then(|status| status.as_concrete());
        let second = status.map_or(second, |status| second & !0xff | status & 0xff);
        self.host.injected.push(Injected {
            signal: signal.number,
            code: signal.code,
            words: [first, second, third],
            mask,
        });
    }
}

impl Host {
    /// A host whose processes are native. What they are to execute comes with it, in the order of its threads.
    pub fn boot_native(
        config: &HostConfig,
        disk: Option<&Disk>,
        around: &mut ExecContext<'_>,
    ) -> Result<(Host, Vec<Execution>), Interrupt> {
        let (state, executions) = boot::prepare(config, disk, around)?;
        around.oracle.commit();
        let host = Host {
            memories: executions.iter().map(|_| Memory::empty()).collect(),
            threads: executions
                .iter()
                .map(|_| Arc::new(Thread::new(0)))
                .collect(),
            state,
        };
        Ok((host, executions))
    }

    /// The thread that runs.
    pub fn running(&self) -> TaskName {
        let task = &self.state.tasks[self.state.schedule.running];
        TaskName {
            pid: task.pid,
            tid: task.tid,
        }
    }

    /// How many threads have not ended, once who has ended is forgotten.
    pub fn thread_count(&self) -> usize {
        self.state.tasks.len()
    }

    /// The threads that have not ended.
    pub fn alive(&self) -> Vec<TaskName> {
        let tasks = self.state.tasks.iter();
        let alive = tasks.filter(|task| task.doing != Doing::Ended);
        let name = |task: &Arc<crate::process::TaskState>| TaskName {
            pid: task.pid,
            tid: task.tid,
        };
        alive.map(name).collect()
    }

    /// Picks who runs, where somebody has to be picked. `Some` if nobody can.
    pub fn choose_thread(&mut self, around: &mut ExecContext<'_>) -> Option<HostExit> {
        if !self.state.schedule.due {
            return None;
        }
        self.pick(around)
            .unwrap_or_else(|interrupt| Some(interrupt.into()))
    }

    /// Takes up the thread that was picked.
    pub fn resume_thread(&mut self, around: &mut ExecContext<'_>, guest: &mut dyn Guest) -> Served {
        let waited = {
            let task = &self.state.tasks[self.state.schedule.running];
            matches!(task.doing, Doing::Waiting(_))
        };
        self.native_step(around, guest, waited, |slice| slice.take_up())
    }

    /// Answers a system call of the thread that runs.
    pub fn serve(
        &mut self,
        around: &mut ExecContext<'_>,
        guest: &mut dyn Guest,
        call: &SystemCall,
    ) -> Served {
        self.native_step(around, guest, true, |slice| slice.system_call(call))
    }

    /// The same for a call that is not the program's own, such as one of its loader: it takes no time, is no turn, does
    /// not fail and is not logged.
    pub fn serve_aside(
        &mut self,
        around: &mut ExecContext<'_>,
        guest: &mut dyn Guest,
        call: &SystemCall,
    ) -> Served {
        self.state.aside = true;
        let served = self.serve(around, guest, call);
        self.state.aside = false;
        served
    }

    /// A handler of a signal has returned.
    pub fn handler_has_returned(
        &mut self,
        around: &mut ExecContext<'_>,
        guest: &mut dyn Guest,
    ) -> Served {
        self.native_step(around, guest, false, |slice| {
            slice.kernel.handler_returned()
        })
    }

    fn native_step(
        &mut self,
        around: &mut ExecContext<'_>,
        guest: &mut dyn Guest,
        in_call: bool,
        step: impl FnOnce(&mut Slice<'_, '_>) -> Result<(), Stop>,
    ) -> Served {
        let stepped = self.with_guest(around, Some(guest), |mut slice| {
            let stop = step(&mut slice);
            let result = slice.result.take();
            let pause = stop.err().and_then(|stop| slice.stopped(stop));
            (result, pause)
        });
        let Some((result, pause)) = stepped else {
            return Served::Exit(HostExit::Ended(Ending::EndPath));
        };
        let signals = std::mem::take(&mut self.state.injected);
        let result = result.map(|value: Value| value.bits);
        match pause {
            None if in_call && result.is_none() => Served::Again(signals),
            None | Some(Pause::Budget) => match result {
                Some(result) => Served::Done(result, signals),
                None => Served::Goes(signals),
            },
            Some(Pause::Point) => {
                self.state.schedule.due = true;
                match result {
                    Some(result) => Served::Done(result, signals),
                    None => Served::Waits,
                }
            }
            Some(Pause::Off) => {
                self.state.schedule.due = true;
                let task = &self.state.tasks[self.state.schedule.running];
                match task.doing {
                    Doing::Ended => Served::Off,
                    _ => Served::Waits,
                }
            }
            Some(Pause::Execute(execution)) => Served::Executes(execution),
            Some(Pause::Exit(exit)) => Served::Exit(exit),
        }
    }

    /// Takes in who was born and forgets who is gone. Those that were born, in order.
    pub fn settle_native(&mut self) -> Vec<TaskName> {
        let name = |newborn: &crate::life::Newborn| TaskName {
            pid: newborn.task.pid,
            tid: newborn.task.tid,
        };
        let born = self.state.newborn.iter().map(name).collect();
        self.settle();
        born
    }

    /// The running process has begun to execute another program.
    pub fn has_executed(&mut self, execution: &Execution) {
        let task = self.state.schedule.running;
        if let Some(process) = self.process_index(task) {
            self.state.become_program(process, task, execution);
        }
    }

    /// A native process was ended by a signal of its own making.
    pub fn process_died(&mut self, pid: u32, signal: i32) {
        self.state
            .end_process(pid, crate::process::Death::Signal(signal));
        self.state.schedule.due = true;
    }

    /// Lets a thread wait until another one, or none, is named. Somebody has to be picked.
    pub fn hold(&mut self, tid: Option<u32>) {
        self.state.schedule.held = tid;
        self.state.schedule.due = true;
    }

    /// The thread that runs has come to a point at which another one may run.
    pub fn comes_to_point(&mut self) {
        self.state.schedule.due = true;
    }

    /// System calls that the thread that runs has made, those about memory left out.
    pub fn calls_made(&self) -> u64 {
        self.state.tasks[self.state.schedule.running].calls
    }

    /// Somebody has to be picked before anybody goes on.
    pub fn must_choose(&self) -> bool {
        self.state.schedule.due
    }

    /// It is the process that the host was started with.
    pub fn is_first(&self, pid: u32) -> bool {
        let first = self.state.processes.first();
        first.is_some_and(|first| first.pid == pid)
    }

    /// What the thread that runs has executed raises a signal. Nothing if that is its end: it has no handler, or blocks it.
    pub fn fault(
        &mut self,
        around: &mut ExecContext<'_>,
        guest: &mut dyn Guest,
        (number, code, words): (i32, i32, [u64; 3]),
    ) -> Option<Served> {
        let task = &self.state.tasks[self.state.schedule.running];
        let action = self.state.process_by_pid(task.pid)?.actions[number as usize - 1];
        if action.handler <= 1 || task.blocked & bit(number) != 0 {
            return None;
        }
        let signal = Signal {
            words,
            ..Signal::new(number, code)
        };
        Some(self.native_step(around, guest, false, |slice| {
            slice.kernel.run_handler(&signal, action, None)
        }))
    }

    /// Asks whether an allocation fails that the running thread asks for.
    pub fn allocation_fails(&mut self, around: &mut ExecContext<'_>) -> bool {
        let failed = self.with_guest(around, None, |slice| {
            if slice.kernel.malloc_faults_left() == 0 {
                return false;
            }
            let picked = slice.kernel.vm.choose(&ChoiceSite::AllocationFault, 2);
            let fails = matches!(picked, Ok(1));
            slice.kernel.host.faults.used += u32::from(fails);
            fails
        });
        failed.unwrap_or(false)
    }

    /// Asks whether a call about memory fails that the running thread makes; the native kernel carries those out.
    pub fn memory_call_fails(
        &mut self,
        around: &mut ExecContext<'_>,
        number: u64,
    ) -> Option<Errno> {
        let row = table::row(number)?;
        self.with_guest(around, None, |mut slice| {
            slice.kernel.memory_call_fails(row)
        })?
    }

    /// Most bytes that a process may have allocated.
    pub fn max_heap(&self, pid: u32) -> u64 {
        let process = self.state.process_by_pid(pid);
        process.map_or(u64::MAX, |process| process.max_heap)
    }

    /// Random bytes for the start of a program, as the model gives them.
    pub fn start_bytes(&mut self) -> Vec<u8> {
        self.state.random_bytes(16)
    }

    /// A native thread has executed for a long time without a system call.
    pub fn time_goes_by(&mut self) {
        self.state.long_computation();
    }
}
