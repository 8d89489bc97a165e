//! Reports events and output to the watcher of a native run, and computes how the run ended.

use everett_linux::{Ending, HostExit, Stream};

use super::{NativeEnd, NativeMachine, SentPacket};
use crate::watch::{StoppedRun, StoppedThread};

impl NativeMachine<'_> {
    /// Reports new events to the watcher; `false` if the run must stop.
    pub(super) fn report_events(&mut self) -> bool {
        let clock = self.host.clock_ns();
        let mut goes_on = true;
        for line in self.host.log().iter().skip(self.reported) {
            self.reported += 1;
            goes_on &= self.watcher.event(self.reported, line, clock);
        }
        goes_on
    }

    /// Passes new output to the watcher, if it wants it.
    pub(crate) fn show_output(&mut self) {
        if !self.watcher.sees_output() {
            return;
        }
        for (at, stream) in [Stream::Stdout, Stream::Stderr].into_iter().enumerate() {
            let output = self.host.output(stream);
            if output.len() > self.shown[at] {
                let inputs = &self.oracle.inputs;
                let bytes =
                    output.evaluate_range(self.shown[at]..output.len(), &mut self.arena, inputs);
                self.shown[at] = output.len();
                self.watcher.output(stream, &bytes);
            }
        }
    }

    /// Passes the stopped processes to the watcher.
    pub(crate) fn show_stopped(&mut self) {
        self.report_events();
        // A debugger should see the program without breakpoints.
        self.remove_access_points();
        let programs = &self.config.programs;
        let threads = self.threads.iter_mut().map(|(name, native)| StoppedThread {
            name: *name,
            tracee: &mut native.tracee,
            program: programs[usize::from(native.image.0)].clone(),
            pending_call: native.pending.map(|call| call.number),
        });
        self.watcher.stopped(&mut StoppedRun {
            running: self.host.running(),
            threads: threads.collect(),
        });
    }

    /// Describes where a run diverged from its trace: the number of calls, the last call, and the
    /// thread that made it.
    pub(super) fn position(&self) -> String {
        let thread = self.host.running().tid;
        let call = everett_linux::row(self.last_call).map_or("no call", |row| row.name);
        let calls = self.calls;
        format!("at system call {calls}, {call}, of thread {thread} on host")
    }

    /// Returns the packets so far.
    pub(super) fn packets(&mut self) -> Vec<SentPacket> {
        let mut packets = Vec::new();
        for packet in self.host.packets() {
            let bytes = match packet.payload() {
                Some(buffer) => self.oracle.inputs.bytes(buffer, &mut self.arena),
                None => Vec::new(),
            };
            packets.push((packet.clone(), bytes));
        }
        packets
    }

    /// Returns how a run ended, according to the model.
    pub(super) fn ended(&self, exit: HostExit) -> NativeEnd {
        match exit {
            HostExit::Ended(Ending::Exit(status)) => {
                let bits = match status.term {
                    None => status.bits,
                    Some(term) => {
                        let mut scratch = everett_expr::EvalScratch::new();
                        self.arena.eval(term, &self.oracle.inputs, &mut scratch)
                    }
                };
                NativeEnd::Exit(bits as i32)
            }
            HostExit::Ended(Ending::Signal(signal)) => NativeEnd::Signal {
                signal,
                place: None,
            },
            HostExit::Ended(Ending::Bug(bug)) => NativeEnd::Finding {
                kind: bug.kind.name().to_owned(),
                message: bug.message,
            },
            HostExit::Ended(Ending::EndPath | Ending::Idle | Ending::SetUp) => NativeEnd::Idle,
            HostExit::Budget
            | HostExit::Suspended
            | HostExit::NeedsInput
            | HostExit::Sent
            | HostExit::Horizon
            | HostExit::Exposed
            | HostExit::AtCall(_)
            | HostExit::Waits(_) => {
                NativeEnd::Diverged("the program reads input that is not supplied".to_owned())
            }
        }
    }
}
