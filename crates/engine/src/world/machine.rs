//! An explored host as a [`Machine`]: the vm on one path, with the path's oracle.

use everett_linux::{Disk, Ending, Host, HostExit, Packet};
use everett_sim::{Exit, Machine, Questions};
use everett_vm::Interrupt;

use crate::config::WorldHost;
use crate::oracle::{Fork, PathOracle};
use crate::state::State;
use crate::worker::{RunFor, Worker};

/// Maximum number of instructions of one step; the time limit is checked between steps.
pub const BUDGET: u64 = 1_000_000;

/// An explored host, for one step.
pub struct Explored<'m, 'a> {
    /// The state of the host.
    pub state: &'m mut State,
    /// The worker that runs it.
    pub worker: &'m mut Worker<'a>,
    /// The host's part of the scenario.
    pub config: &'m WorldHost,
    /// How long the host may run.
    pub run_for: RunFor,
}

impl Explored<'_, '_> {
    /// Runs or boots the host, and translates why it stopped.
    fn execute(&mut self, disk: Option<&Disk>) -> Result<Exit<Ending>, Option<Fork>> {
        let config = &self.config.config;
        let (exit, fork) = self.worker.run(self.state, config, disk, self.run_for);
        Ok(match exit {
            HostExit::Suspended => return Err(fork),
            HostExit::Budget | HostExit::Sent | HostExit::NeedsInput => Exit::Paused,
            HostExit::Exposed => Exit::Exposed,
            HostExit::AtCall(name) => Exit::AtCall(name),
            HostExit::Horizon => Exit::Horizon,
            HostExit::Waits(until_ns) => Exit::Waiting(until_ns),
            HostExit::Ended(Ending::Idle) => Exit::Waiting(None),
            HostExit::Ended(ending) => Exit::Stopped(ending),
        })
    }
}

impl Machine for Explored<'_, '_> {
    type Stop = Ending;
    /// A question with several answers; `None` if the run ends or the instruction waits for memory.
    type Error = Option<Fork>;

    fn host(&self) -> Option<&Host> {
        self.state.host.as_ref()
    }

    fn host_mut(&mut self) -> Option<&mut Host> {
        self.state.host.as_mut()
    }

    fn boot(&mut self, disk: Option<&Disk>, restarts: u32) -> Result<Exit<Ending>, Option<Fork>> {
        if let Some(begin) = self.config.begin.as_ref().filter(|_| restarts > 0) {
            // It is the same machine: its program gets the same inputs that it set the host up
            // with.
            self.state.path.again = 0..begin.inputs.len();
        }
        self.execute(disk)
    }

    fn run(&mut self) -> Result<Exit<Ending>, Option<Fork>> {
        self.execute(None)
    }

    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut Questions<'_>) -> Result<T, Interrupt>,
    ) -> Result<T, Option<Fork>> {
        let State {
            path, host, net, ..
        } = &mut *self.state;
        let number = net.as_ref().map_or(0, |net| net.host.index());
        let (solver, scratch) = (&mut self.worker.solver, &mut self.worker.scratch);
        let oracle = PathOracle::new(path, solver, scratch);
        let oracle = oracle.with_plan(self.worker.plans.get(number));
        let mut oracle = oracle.with_outside(self.worker.outside.as_deref());
        let mut questions = Questions {
            oracle: &mut oracle,
            arena: &mut self.worker.arena,
            host: host.as_ref(),
        };
        question(&mut questions).map_err(|_| oracle.fork.take())
    }

    fn receive(&mut self, packet: &Packet) {
        if let Some(host) = &mut self.state.host {
            host.receive(&mut self.worker.arena, packet);
        }
    }

    fn power_off(&mut self) {
        self.state.host = None;
    }
}
