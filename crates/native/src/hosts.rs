//! Worlds of native hosts: each host has its own kernel model and its trace. One loop steps the
//! hosts in the order of their clocks, as the search does with explored hosts.

use everett_engine::{EVENTS, Trace, VIRTUAL_TIME};
use everett_expr::Arena;
use everett_linux::{Disk, ExposedData, Host, HostExit, Packet};
use everett_net::{FaultCounters, FaultIndex, HostIndex, Scope, StartTime};
use everett_sim::{
    Arrival, Exit, Expected, Expects, History, Machine, Message, MessageLog, Network, PeerConfig,
    Questions, RunState, SimHost, Start, Step, decide_world_faults, first_expects, horizon_ns,
    step,
};
use everett_vm::{Buffer, Interrupt, Outside};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::error::NativeError;
use crate::machine::{Advance, NativeConfig, NativeEnd, NativeMachine, NativeRun};
use crate::memory_account::MemoryAccount;
use crate::oracle::{NativeOracle, Source};
use crate::sandbox::Pinned;
use crate::watch::Watcher;

/// What the marks of `everett trojans` are exposed as, and their names.
const MARKS: &str = "trojans";
const MARK_NAMES: [&str; 2] = ["accept", "reject"];

/// A host of a world.
#[derive(Clone)]
pub struct NativeHost {
    /// Name of the host.
    pub name: String,
    /// The programs and the configuration of the host.
    pub config: NativeConfig,
    /// When the host starts.
    pub start: StartTime,
    /// How the host's processes must end.
    pub expects: Vec<Expected>,
    /// The trace to the point at which the host begins, if its program sets it up itself.
    pub begin: Option<Arc<Trace>>,
    /// Set if the host is a live peer, which has no programs.
    pub peer: Option<Arc<PeerConfig>>,
    /// It is recorded when it waits for others.
    pub logs_waits: bool,
}

/// The environment that the hosts of a world share, and when the world is cut off.
pub struct NativeNetwork<'n> {
    /// The network and its faults.
    pub network: &'n Network,
    /// Virtual time at which the world is cut off.
    pub max_virtual_ns: Option<u64>,
    /// Answers for live peers; without it, their answers are those of the trace.
    pub outside: Option<Arc<dyn Outside>>,
}

/// The source of answers to a host's questions, and the watcher of the host.
pub struct Guide<'w> {
    /// The source of answers. Questions that a trace does not answer take their default.
    pub source: Source,
    /// The watcher of the host.
    pub watcher: &'w mut dyn Watcher,
}

/// The result of running a world.
#[derive(Default)]
pub struct WorldRun {
    /// The result of each host; a host that has not ended waits.
    pub hosts: BTreeMap<String, NativeRun>,
    /// The message of a check that failed.
    pub broken: Option<String>,
    /// The host whose change made the check fail, if any.
    pub broken_on: Option<String>,
    /// The histories of the data that hosts exposed.
    pub histories: Vec<(String, History)>,
    /// The message log.
    pub messages: Vec<Message>,
    /// When hosts have waited for others that record it: how many messages of the log each of them
    /// had sent by then.
    pub waits: BTreeMap<String, Vec<usize>>,
    /// What hosts did, and when on their clocks, in the order of each host.
    pub deeds: Vec<(String, u64, Deed)>,
    /// Limits of the world that it reached, by their options.
    pub limits_hit: BTreeSet<&'static str>,
    /// Number of packets that hosts sent.
    pub packets: u64,
    /// Names of faults of the scenario that happened.
    pub fired: BTreeSet<String>,
    /// Whether the world was cut off at the limit of virtual time although more would have
    /// happened.
    pub is_cut: bool,
    /// Whether nothing could happen any more. Otherwise the world was ended earlier, such as by a
    /// crash or a limit, and hosts that wait may not do so for ever.
    pub is_over: bool,
    /// Reasons why checks could not be evaluated.
    pub unevaluated: BTreeSet<String>,
    /// The reason why a live peer did not answer, if one did not.
    pub unanswered: Option<String>,
}

/// Something that the programs of a host did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Deed {
    /// They were about to make this system call; recorded for hosts that stop at calls.
    Call(&'static str),
    /// They exposed data; the marks of `everett trojans` that this was.
    Mark(&'static str),
}

/// When invariants are evaluated.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum CheckTrigger {
    /// A host exposes different data.
    Change,
    /// This time is reached.
    At(u64),
}

/// A function that evaluates invariants on the data of all hosts and returns the message of a
/// broken one.
pub type Check<'c> = &'c mut dyn FnMut(CheckTrigger, &[(String, ExposedData)]) -> Option<String>;

/// The invariants of a running world.
pub struct Checks<'c> {
    /// Times at which the invariants are evaluated.
    pub times: BTreeSet<u64>,
    /// Evaluates the invariants at these times and after changes.
    pub check: Check<'c>,
}

/// A native host as a [`Machine`]: its processes under ptrace and its kernel model.
struct HostMachine<'c> {
    /// The processes and the kernel model. `None` only while the host restarts.
    world: Option<NativeMachine<'c>>,
    is_on: bool,
    /// Number of inputs with which the host's program sets it up.
    set_up_with: usize,
    max_calls: u64,
    /// The oracle and the arena of a live peer, which has no processes.
    peer: Option<(NativeOracle, Arena)>,
}

impl<'c> HostMachine<'c> {
    fn world(&mut self) -> Result<&mut NativeMachine<'c>, NativeError> {
        let lost = || NativeError::Boot("the host is gone".to_owned());
        self.world.as_mut().ok_or_else(lost)
    }

    /// Returns the concrete bytes of a packet under the inputs of the run.
    fn bytes(&mut self, packet: &Packet) -> Option<Vec<u8>> {
        let bytes = packet.payload()?;
        if let Some((oracle, arena)) = &mut self.peer {
            return Some(oracle.inputs.bytes(bytes, arena));
        }
        let world = self.world.as_mut()?;
        Some(world.oracle.inputs.bytes(bytes, &mut world.arena))
    }
}

impl Machine for HostMachine<'_> {
    type Stop = NativeEnd;
    type Error = NativeError;

    fn host(&self) -> Option<&Host> {
        let world = self.world.as_ref().filter(|_| self.is_on);
        world.map(|world| &world.host)
    }

    fn host_mut(&mut self) -> Option<&mut Host> {
        let world = self.world.as_mut().filter(|_| self.is_on);
        world.map(|world| &mut world.host)
    }

    fn boot(&mut self, disk: Option<&Disk>, restarts: u32) -> Result<Exit<NativeEnd>, NativeError> {
        // The kernel model of a host is booted when the world is created; only restarts are left to
        // do.
        if let (Some(disk), true) = (disk, restarts > 0)
            && let Some(mut world) = self.world.take()
        {
            world.oracle.again = 0..self.set_up_with;
            self.world = Some(world.restart(disk)?);
        }
        self.is_on = true;
        Ok(Exit::Paused)
    }

    fn run(&mut self) -> Result<Exit<NativeEnd>, NativeError> {
        let max_calls = self.max_calls;
        let world = self.world()?;
        world.share_memory();
        let advance = world.advance(max_calls)?;
        if let Some(end) = world.check_memory() {
            return Ok(Exit::Stopped(end));
        }
        Ok(match advance {
            Advance::Paused(HostExit::Exposed) => Exit::Exposed,
            Advance::Paused(HostExit::AtCall(name)) => Exit::AtCall(name),
            Advance::Paused(HostExit::Horizon) => Exit::Horizon,
            Advance::Paused(HostExit::Waits(until_ns)) => Exit::Waiting(until_ns),
            Advance::Paused(_) => Exit::Paused,
            Advance::Ended(NativeEnd::Idle) if world.oracle.diverged.is_none() => {
                Exit::Waiting(None)
            }
            Advance::Ended(end) => Exit::Stopped(end),
        })
    }

    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut Questions<'_>) -> Result<T, Interrupt>,
    ) -> Result<T, NativeError> {
        let unanswered = |_| NativeError::Boot("a question has no answer in the trace".to_owned());
        if let Some((oracle, arena)) = &mut self.peer {
            let host = None;
            let mut questions = Questions {
                oracle,
                arena,
                host,
            };
            return question(&mut questions).map_err(unanswered);
        }
        let is_on = self.is_on;
        let world = self.world()?;
        let mut questions = Questions {
            oracle: &mut world.oracle,
            arena: &mut world.arena,
            host: Some(&world.host).filter(|_| is_on),
        };
        question(&mut questions).map_err(unanswered)
    }

    fn receive(&mut self, packet: &Packet) {
        let mut packet = packet.clone();
        let Some(world) = &mut self.world else {
            return;
        };
        if let Some(carried) = packet.bytes_mut() {
            // Symbolic bytes have the values of the trace's inputs.
            let bytes = world.oracle.inputs.bytes(carried, &mut world.arena);
            *carried = Buffer::with_bytes(&bytes, bytes.len());
        }
        world.host.receive(&mut world.arena, &packet);
    }

    fn power_off(&mut self) {
        if let Some(world) = &mut self.world {
            world.kill_all();
        }
        self.is_on = false;
    }
}

/// A host while the world runs.
struct Running<'c> {
    machine: HostMachine<'c>,
    sim: SimHost,
    end: Option<NativeEnd>,
    /// How the host's first process must end.
    expects: Option<Expects>,
    /// Messages that it has sent.
    sent: usize,
    /// How many these were when it waited for others, if that is recorded.
    waits: Option<Vec<usize>>,
}

impl Running<'_> {
    fn next_ns(&self) -> u64 {
        self.sim.next_ns(self.machine.host())
    }

    /// Records that the host waits for others, if it does.
    fn log_wait(&mut self) {
        let waits_for = |host: &Host| host.awaits_others() && !host.has_sent();
        let is_waiting = matches!(self.sim.run_state, RunState::Waiting(_))
            && self.sim.unsent.is_empty()
            && self.machine.host().is_some_and(waits_for);
        if let Some(waits) = self.waits.as_mut().filter(|_| is_waiting)
            && waits.last() != Some(&self.sent)
        {
            waits.push(self.sent);
        }
    }
}

struct Loop<'c, 'n, 'l> {
    hosts: Vec<Running<'c>>,
    names: Vec<String>,
    network: &'n Network,
    /// Limits on how often each fault may happen in a world.
    bounds: Vec<(FaultIndex, u32)>,
    max_virtual_ns: Option<u64>,
    lookahead_ns: u64,
    messages: MessageLog,
    deeds: Vec<(String, u64, Deed)>,
    limits_hit: BTreeSet<&'static str>,
    packets: u64,
    fired: BTreeSet<String>,
    checks: Checks<'l>,
    broken: Option<String>,
    broken_on: Option<String>,
    is_cut: bool,
    is_over: bool,
}

/// Runs the hosts of a world natively, each with its guide. The world ends when nothing can happen
/// any more, when a host ends badly, when a watcher stops it, or when a check fails.
pub fn run_world<'c>(
    hosts: &'c [NativeHost],
    network: &NativeNetwork<'_>,
    guides: Vec<Guide<'c>>,
    checks: Checks<'_>,
) -> Result<WorldRun, NativeError> {
    let _pinned = Pinned::here();
    let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    let mut all = Loop {
        hosts: boot_all(hosts, network, guides)?,
        messages: MessageLog::between(names.clone()),
        deeds: Vec::new(),
        limits_hit: BTreeSet::new(),
        packets: 0,
        fired: BTreeSet::new(),
        names,
        lookahead_ns: network.network.lookahead_ns(),
        network: network.network,
        bounds: network.network.faults.world_bounds(hosts.len()),
        max_virtual_ns: network.max_virtual_ns,
        checks,
        broken: None,
        broken_on: None,
        is_cut: false,
        is_over: false,
    };
    let ran = all.run();
    all.each_world(NativeMachine::show_stopped);
    all.each_world(NativeMachine::kill_all);
    ran?;
    let histories = all.histories();
    let mut unanswered = None;
    let (mut runs, mut waits) = (BTreeMap::new(), BTreeMap::new());
    for (name, host) in all.names.into_iter().zip(all.hosts) {
        waits.extend(host.waits.map(|waits| (name.clone(), waits)));
        if let Some(world) = host.machine.world {
            let run = world.finish_run(host.end.unwrap_or(NativeEnd::Idle))?;
            runs.insert(name, run);
        } else if let Some(NativeEnd::Diverged(why)) = host.end {
            unanswered = Some(format!("peer {name}: {why}"));
        }
    }
    Ok(WorldRun {
        hosts: runs,
        broken: all.broken,
        broken_on: all.broken_on,
        histories,
        messages: all.messages.in_order(),
        waits,
        deeds: all.deeds,
        limits_hit: all.limits_hit,
        packets: all.packets,
        fired: all.fired,
        is_cut: all.is_cut,
        is_over: all.is_over,
        unevaluated: BTreeSet::new(),
        unanswered,
    })
}

/// Boots all hosts. The first one answers for the faults of the whole world.
fn boot_all<'c>(
    hosts: &'c [NativeHost],
    around: &NativeNetwork<'_>,
    guides: Vec<Guide<'c>>,
) -> Result<Vec<Running<'c>>, NativeError> {
    let network = around.network;
    let mut all = Vec::with_capacity(hosts.len());
    let memory = MemoryAccount::hosts(hosts.len());
    let mut world_faults = Vec::new();
    for ((host, guide), at) in hosts.iter().zip(guides).zip(0..) {
        let mut oracle = NativeOracle::new(guide.source);
        if at == 0 {
            oracle.is_free = true;
            world_faults = decide_world_faults(&mut oracle, &network.faults);
            oracle.is_free = false;
        }
        let mut counters = FaultCounters::default();
        for (fault, happens) in &world_faults {
            counters.decide(*fault, *happens);
        }
        oracle.is_free = true;
        let (mut world, mut peer) = (None, None);
        if host.peer.is_some() {
            oracle.outside = around.outside.clone();
            peer = Some((oracle, Arena::new()));
        } else {
            let mut machine = NativeMachine::with_oracle(
                &host.config,
                oracle,
                guide.watcher,
                MemoryAccount::of_host(&memory, at as usize),
            )?;
            machine.oracle.is_free = true;
            world = Some(machine);
        }
        let start = Start::new(host.start);
        let times = network.faults.times(HostIndex(at));
        let sim = SimHost::new(start, times, host.begin.is_some());
        let sim = sim.with_peer(host.peer.as_ref());
        all.push(Running {
            machine: HostMachine {
                world,
                peer,
                is_on: false,
                set_up_with: host.begin.as_ref().map_or(0, |begin| begin.inputs.len()),
                max_calls: host.config.max_calls,
            },
            sim: SimHost { counters, ..sim },
            end: None,
            expects: first_expects(&host.expects),
            sent: 0,
            waits: host.logs_waits.then(Vec::new),
        });
    }
    Ok(all)
}

impl<'c> Loop<'c, '_, '_> {
    fn each_world(&mut self, each: impl FnMut(&mut NativeMachine<'c>)) {
        let hosts = self.hosts.iter_mut();
        hosts
            .filter_map(|host| host.machine.world.as_mut())
            .for_each(each);
    }

    fn run(&mut self) -> Result<(), NativeError> {
        loop {
            let next = self.hosts.iter().map(Running::next_ns).zip(0..).min();
            let next_ns = next.map_or(u64::MAX, |(next_ns, _)| next_ns);
            let time_ns = self.checks.times.first().copied();
            if let Some(time_ns) = time_ns.filter(|time_ns| *time_ns < next_ns) {
                self.checks.times.remove(&time_ns);
                if self.is_broken(CheckTrigger::At(time_ns), None) {
                    return Ok(());
                }
                continue;
            }
            let Some((_, at)) = next.filter(|(next_ns, _)| *next_ns != u64::MAX) else {
                self.is_over = true;
                return Ok(());
            };
            if self.max_virtual_ns.is_some_and(|most| next_ns > most) {
                self.is_cut = true;
                self.limits_hit.insert(VIRTUAL_TIME);
                return Ok(());
            }
            if !self.advance(at)? {
                return Ok(());
            }
        }
    }

    fn horizon(&self, at: usize) -> u64 {
        let others = || {
            self.hosts
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at)
        };
        let next = others().map(|(_, host)| host.next_ns()).min();
        let starts = others().filter(|(_, host)| host.sim.start.is_awaiting());
        let starts = starts.map(|(_, host)| host.sim.start.at_ns);
        let barriers = starts.chain(self.checks.times.first().copied());
        // A host that no other host can reach any more would otherwise continue beyond the limit.
        let barriers = barriers.chain(self.max_virtual_ns.map(|most| most.saturating_add(1)));
        horizon_ns(next.unwrap_or(u64::MAX), self.lookahead_ns, barriers)
    }

    /// Runs a host to its horizon. Returns `false` if that ends the world.
    fn advance(&mut self, at: usize) -> Result<bool, NativeError> {
        let here = HostIndex(at as u32);
        loop {
            let horizon_ns = self.horizon(at);
            let mut behind = self.hosts.iter().skip(at + 1);
            let stop_at_waits = behind.any(|host| host.sim.start.awaits(here));
            let stop_at_waits = stop_at_waits || self.hosts[at].waits.is_some();
            let used_up = self.used_up();
            if let Some(world) = &mut self.hosts[at].machine.world {
                world.oracle.used_up = used_up;
            }
            let Running { machine, sim, .. } = &mut self.hosts[at];
            let was_off = sim.is_off();
            let (step, now_ns) = step(self.network, here, sim, machine, horizon_ns, stop_at_waits)?;
            if let Step::Blocked = step {
                return Ok(true);
            }
            let delivered = match &step {
                Step::Delivered(_, delivery) => delivery.delivered.as_ref(),
                _ => None,
            };
            let bytes = delivered.and_then(|packet| machine.bytes(packet));
            self.messages
                .log_step(here, &step, &self.network.faults, bytes);
            let faults = step.faults().map(|fault| self.network.faults.get(fault));
            self.fired.extend(faults.map(|fault| fault.name.clone()));
            if !self.handle(at, step, now_ns) {
                return Ok(false);
            }
            let host = &mut self.hosts[at];
            if host.sim.is_off() && !was_off {
                host.end = (host.sim.run_state == RunState::Off(None)).then_some(NativeEnd::Off);
                // A host that is off exposes nothing.
                if self.is_broken(CheckTrigger::Change, Some(at)) {
                    return Ok(false);
                }
            }
            self.transmit(at);
            self.hosts[at].log_wait();
            self.notify_blocked(at, now_ns);
        }
    }

    /// Returns the names of faults that have happened as often as they may in a world.
    fn used_up(&self) -> Vec<String> {
        let hosts = || (0..).map(HostIndex).zip(&self.hosts);
        let used = |(here, host): (HostIndex, &Running<'c>), fault| {
            host.sim.counters.used(fault, Scope::Host, here)
        };
        let is_used_up = |fault, most| hosts().map(|host| used(host, fault)).sum::<u32>() >= most;
        let bounds = self.bounds.iter();
        let used_up = bounds.filter(|(fault, most)| is_used_up(*fault, *most));
        used_up
            .map(|(fault, _)| self.network.faults.get(*fault).name.clone())
            .collect()
    }

    /// Handles what a step did. Returns `false` if the world is over with that.
    fn handle(&mut self, at: usize, step: Step<NativeEnd>, now_ns: u64) -> bool {
        let host = &mut self.hosts[at];
        let mut did = |deed| self.deeds.push((self.names[at].clone(), now_ns, deed));
        match step {
            Step::Exposed => {
                if let Some(kernel) = host.machine.host_mut() {
                    host.sim.observe(kernel, true, ExposedData::clone);
                    let is_made = |mark: &&str| kernel.has_just_exposed(MARKS, mark);
                    let marks = MARK_NAMES.into_iter().filter(is_made);
                    marks.for_each(|mark| did(Deed::Mark(mark)));
                }
                !self.is_broken(CheckTrigger::Change, Some(at))
            }
            Step::Called(name) => {
                did(Deed::Call(name));
                true
            }
            Step::Livelock(_) => {
                self.limits_hit.insert(EVENTS);
                host.sim.run_state = RunState::Ended;
                host.end = Some(NativeEnd::Hang);
                false
            }
            Step::Unanswered(message) => {
                host.sim.run_state = RunState::Ended;
                host.end = Some(NativeEnd::Diverged(message));
                false
            }
            Step::Stopped(end) => {
                let is_expected = match &end {
                    NativeEnd::Exit(_) => true,
                    NativeEnd::Signal { signal, .. } => {
                        let expects = host.expects;
                        expects.is_some_and(|expects| expects.is_signal(*signal))
                    }
                    _ => false,
                };
                host.sim.run_state = RunState::Ended;
                host.end = Some(end);
                is_expected
            }
            _ => true,
        }
    }

    /// Notifies the hosts that have not started if a host has blocked or continues.
    fn notify_blocked(&mut self, at: usize, now_ns: u64) {
        let Running { machine, sim, .. } = &mut self.hosts[at];
        let Some(is_blocked) = sim.start.notification(sim.run_state, machine.host()) else {
            return;
        };
        let (here, known) = (HostIndex(at as u32), sim.counters.clone());
        for other in self.hosts.iter_mut().skip(at + 1) {
            if other.sim.start.awaits(here) {
                let faults = &self.network.faults;
                other.sim.notify(here, is_blocked, now_ns, &known, faults);
            }
        }
    }

    fn exposed(&self) -> Vec<(String, ExposedData)> {
        let all = self.names.iter().zip(&self.hosts);
        all.map(|(name, host)| (name.clone(), host.sim.exposed(host.machine.host())))
            .collect()
    }

    fn histories(&self) -> Vec<(String, History)> {
        let all = self.names.iter().zip(&self.hosts);
        all.map(|(name, host)| (name.clone(), host.sim.history(host.machine.host())))
            .collect()
    }

    fn is_broken(&mut self, trigger: CheckTrigger, at: Option<usize>) -> bool {
        let exposed = self.exposed();
        self.broken = (self.checks.check)(trigger, &exposed);
        let at = at.filter(|_| self.broken.is_some());
        self.broken_on = at.map(|at| self.names[at].clone());
        self.broken.is_some()
    }

    /// Puts the packets that a host has sent in transit.
    fn transmit(&mut self, at: usize) {
        let from = HostIndex(at as u32);
        let Running { machine, sim, .. } = &mut self.hosts[at];
        if let Some(host) = machine.host_mut() {
            sim.unsent.extend(host.take_sent());
        }
        for (packet, is_own) in sim.take_outgoing(false) {
            self.packets += 1;
            let Running { machine, sim, .. } = &mut self.hosts[at];
            let topology = &self.network.topology;
            let Some((targets, arrival)) = sim.transmit(topology, from, packet, is_own) else {
                continue;
            };
            let bytes = machine.bytes(&arrival.packet);
            self.hosts[at].sent += targets.len();
            for target in targets {
                self.receive(target, &arrival, bytes.clone());
            }
        }
    }

    fn receive(&mut self, target: HostIndex, arrival: &Arrival, bytes: Option<Vec<u8>>) {
        self.messages.log_sent(arrival, target, bytes);
        let receiver = &mut self.hosts[target.index()];
        receiver.sim.inbox.push(arrival.clone());
    }
}
