//! A host of a world, and [`step`], the function that advances it by one event.

use everett_expr::{Arena, VisitTerms};
use everett_linux::{Disk, ExposedData, Host, Packet};
use everett_net::{
    FaultCounters, FaultIndex, Faults, HostEvent, HostFaultPoint, HostIndex, LinkState, Topology,
};
use everett_vm::{Interrupt, Oracle};
use std::sync::Arc;

use crate::arrival::Arrival;
use crate::host_faults::{
    HostFault, HostFaultOutcome, OffDelivery, decide_host_fault, deliver_to_off,
};
use crate::inbox::{Inbox, NextEvent, RunState};
use crate::observation::{History, Observation, ObservationLog};
use crate::peer::{Peer, PeerConfig};
use crate::start::Start;
use crate::transit::{Delivery, Routed, deliver, packet_info, route};

/// Maximum number of observations that a host remembers; an invariant about more is not decided.
pub const MAX_OBSERVATIONS: usize = 1 << 12;

/// The environment that the hosts of a world share: network, faults and
/// limits. The default is a single host.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Links and routes.
    pub topology: Topology,
    /// Faults of packets and hosts.
    pub faults: Faults,
    /// How often a packet may overtake others in transit to the same host.
    pub orders: u32,
    /// Number of events of one host beyond which it counts as a livelock.
    pub max_events: Option<u64>,
}

impl Network {
    /// Returns how far a host may run ahead of the others: what they send later arrives after that.
    pub fn lookahead_ns(&self) -> u64 {
        match self.orders {
            0 => crate::transit::least_latency_ns(&self.topology),
            // If the order of arrivals is explored, all packets of an instant must be known.
            _ => 1,
        }
    }
}

/// Returns the horizon of a host: the time before which nothing can still arrive. `others_ns` is
/// the least clock of the other hosts; `barriers` are times that no host may pass yet, such as
/// those of invariants and of hosts that have not started.
pub fn horizon_ns(
    others_ns: u64,
    lookahead_ns: u64,
    barriers: impl IntoIterator<Item = u64>,
) -> u64 {
    let horizon = others_ns.saturating_add(lookahead_ns - 1);
    barriers.into_iter().fold(horizon, u64::min)
}

/// The context of a question of [`Machine::ask`].
pub struct Questions<'q> {
    /// The oracle that answers.
    pub oracle: &'q mut dyn Oracle,
    /// The arena of terms.
    pub arena: &'q mut Arena,
    /// The kernel of the host, if it is on.
    pub host: Option<&'q Host>,
}

/// Why the programs of a host stopped running.
pub enum Exit<S> {
    /// The budget is used up, or there are packets to send.
    Paused,
    /// Exposed data has changed.
    Exposed,
    /// This system call is about to be made, and host faults can happen at it.
    AtCall(&'static str),
    /// The host has reached its horizon.
    Horizon,
    /// All threads are blocked until this time or until a packet arrives.
    Waiting(Option<u64>),
    /// The programs have ended.
    Stopped(S),
}

/// The machine that runs the programs of a host: the vm on one path, or native processes.
pub trait Machine {
    /// How the programs of a host end.
    type Stop;
    /// Why a step cannot be completed: an open question of an explored host, or a failure of a
    /// native one.
    type Error;

    /// Returns the kernel of the host, if it is on.
    fn host(&self) -> Option<&Host>;
    /// Returns the kernel of the host, to change it.
    fn host_mut(&mut self) -> Option<&mut Host>;
    /// Boots the host with the disk that it had when it was powered off, for the `restarts`-th
    /// time.
    fn boot(&mut self, disk: Option<&Disk>, restarts: u32)
    -> Result<Exit<Self::Stop>, Self::Error>;
    /// Runs the programs until the horizon of the kernel, or until one of the other reasons of
    /// [`Exit`].
    fn run(&mut self) -> Result<Exit<Self::Stop>, Self::Error>;
    /// Asks questions about the network and its faults, which no program asked.
    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut Questions<'_>) -> Result<T, Interrupt>,
    ) -> Result<T, Self::Error>;
    /// Delivers a packet to the kernel.
    fn receive(&mut self, packet: &Packet);
    /// Powers the host off: everything but its disk is lost.
    fn power_off(&mut self);
}

/// A host of a world without the machine that runs its programs. Cloning shares everything large.
#[derive(Clone)]
pub struct SimHost {
    /// The run state of the host.
    pub run_state: RunState,
    /// Packets in transit to the host.
    pub inbox: Inbox,
    /// Faults that have happened in the host's causal past.
    pub counters: FaultCounters,
    /// The number of packets that the host has sent.
    pub sent: u64,
    /// Queues of the links on which the host sends.
    pub links: LinkState,
    /// Packets that the host has sent and that are not in transit yet.
    pub unsent: Vec<Packet>,
    /// Errors about this host that the network reports to other hosts.
    pub errors: Vec<Packet>,
    /// When the host boots, for the first time or again.
    pub start: Start,
    /// The disk with which the host boots after it was powered off.
    pub disk: Option<Arc<Disk>>,
    /// How often the host was powered off to restart.
    pub restarts: u32,
    /// When the host was last powered off.
    pub off_since_ns: u64,
    /// How often a packet overtook another one in transit to this host.
    pub overtaken: u32,
    /// The observations so far, if an invariant needs them.
    pub observations: ObservationLog,
    /// Whether the host had more observations than it remembers.
    pub has_forgotten: bool,
    /// The data of the last observation.
    pub observed: ExposedData,
    /// How often the exposed data has changed.
    pub exposures: u64,
    /// Whether the host's program sets it up (`netklee.h`): until then, it takes no part in the
    /// world.
    pub sets_itself_up: bool,
    /// The live peer, if the host is one.
    pub peer: Option<Peer>,
}

impl SimHost {
    /// Creates a host that has not started; host faults can happen to it at these times.
    pub fn new(start: Start, fault_times: Vec<u64>, sets_itself_up: bool) -> SimHost {
        SimHost {
            run_state: RunState::Running,
            inbox: Inbox::new(fault_times),
            counters: FaultCounters::default(),
            sent: 0,
            links: LinkState::default(),
            unsent: Vec::new(),
            errors: Vec::new(),
            start,
            disk: None,
            restarts: 0,
            off_since_ns: 0,
            overtaken: 0,
            observations: ObservationLog::default(),
            has_forgotten: false,
            observed: ExposedData::default(),
            exposures: 0,
            sets_itself_up,
            peer: None,
        }
    }

    /// Makes the host a live peer, if a configuration is given.
    pub fn with_peer(self, peer: Option<&Arc<PeerConfig>>) -> SimHost {
        let Some(config) = peer else { return self };
        SimHost {
            peer: Some(Peer::new(config.clone())),
            // No host fault can be applied to a live peer.
            inbox: Inbox::default(),
            ..self
        }
    }

    /// Returns the clock of the host, which has this kernel.
    pub fn clock_ns(&self, host: Option<&Host>) -> u64 {
        let peer_ns = self.peer.as_ref().map_or(0, Peer::clock_ns);
        host.map_or(peer_ns, Host::clock_ns)
    }

    /// Returns whether the host is powered off.
    pub fn is_off(&self) -> bool {
        matches!(self.run_state, RunState::Off(_))
    }

    /// Returns whether the host's program is still setting it up: until then, no event reaches the
    /// host.
    pub fn is_setting_up(&self, host: Option<&Host>) -> bool {
        self.run_state == RunState::Running
            && self.sets_itself_up
            && host.is_none_or(|host| host.setup().is_before_start())
    }

    /// Returns the send time of the oldest packet that is not in transit yet.
    pub fn unsent_ns(&self) -> Option<u64> {
        self.unsent.iter().map(|packet| packet.clock_ns).min()
    }

    /// Returns the time of the host's next event; `u64::MAX` for never. That a packet is put in
    /// transit is one, also after the host has ended: its kernel answers that nobody listens.
    pub fn next_ns(&self, host: Option<&Host>) -> u64 {
        let error_ns = self.errors.iter().map(|packet| packet.clock_ns).min();
        let untaken_ns = host.and_then(Host::sent_ns);
        let outgoing = [self.unsent_ns(), error_ns, untaken_ns];
        if let Some(sent_ns) = outgoing.into_iter().flatten().min() {
            return sent_ns;
        }
        match (host, self.run_state) {
            (None, RunState::Running) => self.start.at_ns,
            (host, run_state) => {
                let clock_ns = self.clock_ns(host);
                self.inbox.next_event_ns(run_state, clock_ns)
            }
        }
    }

    /// Takes the packets to put in transit: those that the host sent, unless they are held, and
    /// errors of the network. The second value of each says whether the host itself sent it.
    pub fn take_outgoing(&mut self, hold_own: bool) -> Vec<(Packet, bool)> {
        let own = if hold_own {
            Vec::new()
        } else {
            std::mem::take(&mut self.unsent)
        };
        let own = own.into_iter().map(|packet| (packet, true));
        let errors = std::mem::take(&mut self.errors).into_iter();
        own.chain(errors.map(|packet| (packet, false))).collect()
    }

    /// Puts a packet in transit. Returns its receivers; a packet that cannot be routed comes back
    /// to the sender's own inbox as an error.
    pub fn transmit(
        &mut self,
        topology: &Topology,
        from: HostIndex,
        packet: Packet,
        is_own: bool,
    ) -> Option<(Vec<HostIndex>, Arrival)> {
        self.sent += 1;
        let (number, links, known) = (self.sent, &mut self.links, &self.counters);
        match route(topology, from, packet, number, links, known) {
            Routed::Dropped => None,
            Routed::Bounced(arrival) => {
                self.inbox.push(arrival);
                None
            }
            Routed::To(targets, mut arrival) => {
                // Faults do not happen to errors that the network itself reports.
                arrival.decided |= !is_own;
                arrival.host_faults_decided |= !is_own;
                Some((targets, arrival))
            }
        }
    }

    /// Notifies the host that an earlier one blocks or continues at a time; `known` are the faults
    /// in that host's causal past.
    pub fn notify(
        &mut self,
        from: HostIndex,
        is_blocked: bool,
        now_ns: u64,
        known: &FaultCounters,
        faults: &Faults,
    ) {
        self.start.notify(from, is_blocked, now_ns);
        faults.learn(&mut self.counters, known);
    }

    /// Takes the exposed data of the host, and returns whether it has changed. `share` may replace
    /// the data by an equal copy that others have.
    pub fn observe(
        &mut self,
        host: &mut Host,
        remember: bool,
        share: impl FnOnce(&ExposedData) -> ExposedData,
    ) -> bool {
        let data = host.take_exposed();
        if data == self.observed {
            return false;
        }
        self.exposures += 1;
        let data = share(&data);
        host.share_exposed(data.clone());
        self.observed = data.clone();
        if remember {
            let at_ns = host.clock_ns();
            self.remember(Observation { at_ns, data });
        }
        true
    }

    /// Adds an observation to the log, up to the maximum.
    fn remember(&mut self, observation: Observation) {
        if self.observations.len() < MAX_OBSERVATIONS {
            self.observations.push(observation);
        } else {
            self.has_forgotten = true;
        }
    }

    /// Returns the data that the host exposes now.
    pub fn exposed(&self, host: Option<&Host>) -> ExposedData {
        host.map_or(&self.observed, Host::exposed).clone()
    }

    /// Returns the history of the data that the host exposed.
    pub fn history(&self, host: Option<&Host>) -> History {
        History {
            observations: self.observations.clone(),
            last: self.exposed(host),
        }
    }

    /// Visits all terms that the host refers to.
    pub fn for_each_term(&self, visit: &mut dyn VisitTerms) {
        let arriving = self.inbox.arrivals().iter().map(|arrival| &*arrival.packet);
        for packet in arriving.chain(&self.unsent) {
            packet.terms().for_each(|term| visit.term(term));
        }
        let shown = self
            .observations
            .iter()
            .map(|observation| &observation.data);
        for data in shown.chain([&self.observed]) {
            for bytes in data.values() {
                bytes.terms().for_each(|term| visit.term(term));
            }
        }
        if let Some(disk) = &self.disk {
            disk.for_each_term(visit);
        }
        if let Some(peer) = &self.peer {
            peer.for_each_term(visit);
        }
    }

    /// Powers the host off; it boots again if `again` has a time and a disk.
    fn power_off(&mut self, now_ns: u64, again: Option<(u64, Box<Disk>)>) {
        self.off_since_ns = now_ns;
        let nothing = Observation::nothing(now_ns);
        self.observed = nothing.data.clone();
        self.remember(nothing);
        self.run_state = RunState::Off(again.as_ref().map(|(at_ns, _)| *at_ns));
        if let Some((at_ns, disk)) = again {
            self.start.at_ns = at_ns;
            self.disk = Some(Arc::from(disk));
            self.restarts += 1;
        }
    }

    /// Applies a host fault. Returns `false` if there is none.
    fn apply<M: Machine>(
        &mut self,
        machine: &mut M,
        effect: HostFaultOutcome,
        now_ns: u64,
    ) -> bool {
        match effect {
            HostFaultOutcome::None => return false,
            HostFaultOutcome::Pause(until_ns) => {
                if let Some(host) = machine.host_mut() {
                    host.pass_time(until_ns);
                }
                if let RunState::Waiting(_) = self.run_state {
                    self.run_state = RunState::Running;
                }
            }
            HostFaultOutcome::Off => {
                machine.power_off();
                self.power_off(now_ns, None);
            }
            HostFaultOutcome::Restart(at_ns, disk) => {
                machine.power_off();
                self.power_off(now_ns, Some((at_ns, disk)));
            }
        }
        true
    }
}

/// The result of a step of a host.
pub enum Step<S> {
    /// Nothing happened: the next event is beyond the horizon, or there is none.
    Blocked,
    /// Time passed: the programs ran, or a timeout expired.
    Ran,
    /// The exposed data has changed; [`SimHost::observe`] takes it.
    Exposed,
    /// This system call is about to be made, and no host fault happened at it.
    Called(&'static str),
    /// A packet arrived, with this outcome.
    Delivered(Arrival, Box<Delivery>),
    /// A packet arrived while the host was powered off.
    FoundOff(Arrival),
    /// A host fault happened at this time.
    Faulted(HostFault, u64),
    /// The host had more events than are allowed: a livelock.
    Livelock(u64),
    /// The programs of the host ended.
    Stopped(S),
    /// A live peer was asked; this number of symbolic bytes that hosts sent to it got one value.
    Asked(u64),
    /// A live peer was asked and there is no answer, for this reason.
    Unanswered(String),
}

impl<S> Step<S> {
    /// Returns the faults of the scenario that happened in this step.
    pub fn faults(&self) -> impl Iterator<Item = FaultIndex> + '_ {
        let (taken, marks) = match self {
            Step::Delivered(_, delivery) => {
                let taken = delivery.taken.and_then(|taken| taken.fault);
                (taken, &delivery.marks[..])
            }
            Step::Faulted(hit, _) => (hit.fault, &[][..]),
            _ => (None, &[][..]),
        };
        taken.into_iter().chain(marks.iter().copied())
    }
}

/// Advances a host by one event, but not beyond its horizon. With `stop_at_waits`, it stops when
/// the host blocks, because hosts that have not started wait for that. Returns what happened and
/// when. After an error nothing has changed, and the same step can be tried again.
pub fn step<M: Machine>(
    network: &Network,
    here: HostIndex,
    sim: &mut SimHost,
    machine: &mut M,
    horizon_ns: u64,
    stop_at_waits: bool,
) -> Result<(Step<M::Stop>, u64), M::Error> {
    let clock_ns = sim.clock_ns(machine.host());
    let events = sim.inbox.events();
    if sim.peer.is_some() && sim.run_state == RunState::Running {
        return Ok(start_peer(sim, horizon_ns));
    }
    if sim.run_state == RunState::Running && network.max_events.is_some_and(|most| events >= most) {
        return Ok((Step::Livelock(events), clock_ns));
    }
    let is_setting_up = sim.is_setting_up(machine.host());
    if !is_setting_up && sim.inbox.is_due(sim.run_state, clock_ns, horizon_ns) {
        let next_ns = sim.inbox.next_ns();
        if next_ns > horizon_ns {
            // Packets that others still send may arrive before it.
            return Ok((Step::Blocked, clock_ns));
        }
        let step = arrive(network, here, sim, machine)?;
        return Ok((step, clock_ns.max(next_ns)));
    }
    match sim.run_state {
        RunState::Waiting(Some(until_ns)) if sim.peer.is_some() && until_ns <= horizon_ns => {
            ask_peer(network, sim, machine)
        }
        RunState::Running => {
            let until_ns = match is_setting_up {
                true => u64::MAX,
                false => horizon_ns.min(sim.inbox.next_ns().saturating_sub(1)),
            };
            run(network, here, sim, machine, until_ns, stop_at_waits)
        }
        RunState::Waiting(Some(until_ns)) | RunState::Off(Some(until_ns))
            if until_ns <= horizon_ns =>
        {
            sim.inbox.count_waits(1);
            if let Some(host) = machine.host_mut() {
                host.pass_time(until_ns);
            }
            sim.run_state = RunState::Running;
            Ok((Step::Ran, until_ns))
        }
        _ => Ok((Step::Blocked, clock_ns)),
    }
}

/// Starts a live peer at its start time.
fn start_peer<S>(sim: &mut SimHost, horizon_ns: u64) -> (Step<S>, u64) {
    let now_ns = sim.start.at_ns;
    let Some(peer) = sim.peer.as_mut().filter(|_| now_ns <= horizon_ns) else {
        return (Step::Blocked, 0);
    };
    peer.start(now_ns);
    sim.run_state = RunState::Waiting(peer.ask_ns());
    sim.start.begin();
    (Step::Ran, now_ns)
}

/// Asks a live peer for its next act.
fn ask_peer<M: Machine>(
    network: &Network,
    sim: &mut SimHost,
    machine: &mut M,
) -> Result<(Step<M::Stop>, u64), M::Error> {
    let Some(peer) = &mut sim.peer else {
        return Ok((Step::Blocked, 0));
    };
    if network
        .max_events
        .is_some_and(|most| sim.inbox.events() >= most)
    {
        return Ok((Step::Livelock(sim.inbox.events()), peer.clock_ns()));
    }
    let acted = machine.ask(|questions| peer.act(questions.oracle, questions.arena))?;
    let step = match acted {
        Err(message) => Step::Unanswered(message),
        Ok(acted) => {
            sim.inbox.count_waits(1);
            sim.unsent.extend(acted.packets);
            sim.run_state = RunState::Waiting(peer.ask_ns());
            Step::Asked(acted.concretised)
        }
    };
    Ok((step, peer.clock_ns()))
}

/// Boots the host, or runs its programs.
fn run<M: Machine>(
    network: &Network,
    here: HostIndex,
    sim: &mut SimHost,
    machine: &mut M,
    until_ns: u64,
    stop_at_waits: bool,
) -> Result<(Step<M::Stop>, u64), M::Error> {
    let exit = if let Some(host) = machine.host_mut() {
        host.set_horizon(until_ns);
        host.stop_at_waits(stop_at_waits);
        run_counted(network, sim, machine)?
    } else {
        let exit = machine.boot(sim.disk.as_deref(), sim.restarts)?;
        if let Some(host) = machine.host_mut() {
            host.set_restart_count(sim.restarts);
            host.pass_time(sim.start.at_ns);
            sim.start.begin();
        }
        exit
    };
    let now_ns = machine.host().map_or(0, Host::clock_ns);
    let step = match exit {
        Exit::Paused => Step::Ran,
        Exit::Exposed => Step::Exposed,
        Exit::Horizon => Step::Blocked,
        Exit::AtCall(name) => {
            let point = HostFaultPoint::Call(name);
            let hit = ask_host_fault(network, here, sim, machine, point, now_ns)?;
            if let Some(host) = machine.host_mut() {
                host.take_call();
            }
            match faulted(sim, machine, hit, now_ns) {
                Step::Ran => Step::Called(name),
                hit => hit,
            }
        }
        Exit::Waiting(until_ns) => {
            sim.run_state = RunState::Waiting(until_ns);
            Step::Ran
        }
        Exit::Stopped(stop) => Step::Stopped(stop),
    };
    Ok((step, now_ns))
}

/// Runs the programs, and counts the timeouts that they waited for, so that their number does not
/// depend on the horizon.
fn run_counted<M: Machine>(
    network: &Network,
    sim: &mut SimHost,
    machine: &mut M,
) -> Result<Exit<M::Stop>, M::Error> {
    let events = sim.inbox.events();
    let most = network.max_events.unwrap_or(u64::MAX);
    let left = most.saturating_sub(events);
    if let Some(host) = machine.host_mut() {
        host.set_waits_left(left);
    }
    let exit = machine.run();
    let after = machine.host().map_or(left, Host::waits_left);
    sim.inbox.count_waits(left.saturating_sub(after));
    exit
}

/// Handles the next event of the inbox.
fn arrive<M: Machine>(
    network: &Network,
    here: HostIndex,
    sim: &mut SimHost,
    machine: &mut M,
) -> Result<Step<M::Stop>, M::Error> {
    if let Some(NextEvent::Time(time_ns)) = sim.inbox.next() {
        if sim.is_off() {
            sim.inbox.pop();
            return Ok(Step::Ran);
        }
        let hit = ask_host_fault(network, here, sim, machine, HostFaultPoint::Time, time_ns)?;
        sim.inbox.pop();
        return Ok(faulted(sim, machine, hit, time_ns));
    }
    if sim.overtaken < network.orders
        && !sim.is_off()
        && machine.ask(|questions| sim.inbox.race(questions.oracle))?
    {
        sim.overtaken += 1;
        return Ok(Step::Ran);
    }
    let Some(NextEvent::Packet(arrival)) = sim.inbox.next() else {
        return Ok(Step::Ran);
    };
    if let RunState::Off(until) = sim.run_state {
        sim.inbox.pop();
        match deliver_to_off(&arrival, until.is_none()) {
            OffDelivery::Lost => {}
            OffDelivery::Retransmitted(later) => sim.inbox.push(later),
            OffDelivery::TimedOut(error) => sim.errors.push(error),
        }
        return Ok(Step::FoundOff(arrival));
    }
    network.faults.learn(&mut sim.counters, &arrival.known);
    if !arrival.host_faults_decided && sim.peer.is_none() && network.faults.has_message_faults(here)
    {
        let clock_ns = sim.clock_ns(machine.host());
        let now_ns = arrival.at_ns.max(clock_ns);
        let packet = packet_info(&arrival, here, sim.run_state);
        let point = HostFaultPoint::Message(&packet);
        let hit = ask_host_fault(network, here, sim, machine, point, now_ns)?;
        sim.inbox.mark_host_faults_decided();
        if !matches!(hit.effect, HostFaultOutcome::None) {
            return Ok(faulted(sim, machine, hit, now_ns));
        }
    }
    arrive_packet(network, here, sim, machine, arrival)
}

/// Handles the arrival of a packet at a host that is on.
fn arrive_packet<M: Machine>(
    network: &Network,
    here: HostIndex,
    sim: &mut SimHost,
    machine: &mut M,
    arrival: Arrival,
) -> Result<Step<M::Stop>, M::Error> {
    let (run_state, counters) = (sim.run_state, &mut sim.counters);
    let mut delivery = machine.ask(|questions| {
        let (oracle, arena) = (&mut *questions.oracle, &mut *questions.arena);
        let at = (here, run_state);
        deliver(oracle, arena, &network.faults, at, &arrival, counters)
    })?;
    let came_at = arrival.held_since.unwrap_or(sim.inbox.clock().removed);
    sim.inbox.pop();
    if let Some(later) = &mut delivery.later {
        later.held_since = (later.held_behind > 0).then_some(came_at);
        sim.inbox.push(later.clone());
    }
    sim.errors.extend(delivery.bounce.take());
    if let Some(packet) = &delivery.delivered {
        if let Some(host) = machine.host_mut() {
            host.pass_time(arrival.at_ns);
            machine.receive(packet);
        }
        if let Some(peer) = &mut sim.peer {
            let answers = peer.receive(packet, arrival.at_ns);
            sim.unsent.extend(answers);
            sim.run_state = RunState::Waiting(peer.ask_ns());
        } else if let RunState::Waiting(_) = sim.run_state {
            sim.run_state = RunState::Running;
        }
        let now_ns = sim.clock_ns(machine.host());
        sim.inbox.release_held(now_ns, came_at);
    }
    Ok(Step::Delivered(arrival, Box::new(delivery)))
}

/// Decides which host fault happens at a point of the host's execution.
fn ask_host_fault<M: Machine>(
    network: &Network,
    host: HostIndex,
    sim: &mut SimHost,
    machine: &mut M,
    point: HostFaultPoint<'_>,
    now_ns: u64,
) -> Result<HostFault, M::Error> {
    let event = HostEvent {
        host,
        point,
        now_ns,
    };
    let counters = &mut sim.counters;
    machine.ask(|questions| {
        let (oracle, host) = (&mut *questions.oracle, questions.host);
        decide_host_fault(oracle, &network.faults, &event, host, counters)
    })
}

/// Applies a decided host fault, and reports it if it has an effect.
fn faulted<M: Machine>(
    sim: &mut SimHost,
    machine: &mut M,
    hit: HostFault,
    now_ns: u64,
) -> Step<M::Stop> {
    let effect = hit.effect.clone();
    match sim.apply(machine, effect, now_ns) {
        true => Step::Faulted(hit, now_ns),
        false => Step::Ran,
    }
}
