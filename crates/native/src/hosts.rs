//! Worlds of several native hosts: each has its own kernel model, and one loop lets them run in the order of their clocks and carries what
//! they send each other, as the search does it.

use everett_engine::{
    Arrival, AtNobody, Befalls, Doing, Expected, Expects, Look, Looks, Mailbox, Message, Messages,
    Next, Sent, Starting, Story, Trace, arrive, arrive_at_nobody, befalls, carried, decided,
    described, first_expects, least_latency_ns, send,
};
use everett_linux::{Disk, ExposedData, HostExit, Packet, PacketKind};
use everett_net::{FaultCounters, Faults, HostEvent, HostIndex, HostMoment, LinkState, Topology};
use everett_vm::{Buffer, Oracle};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::error::NativeError;
use crate::machine::{Advance, NativeConfig, NativeEnd, NativeMachine, NativeRun};
use crate::oracle::{NativeOracle, Source};
use crate::sandbox::Pinned;
use crate::watch::Watcher;

/// A host of a world.
#[derive(Clone)]
pub struct NativeHost {
    /// Its name.
    pub name: String,
    /// Its programs, and what it is started with.
    pub config: NativeConfig,
    /// When it is started; `None` for when those before it wait.
    pub start_ns: Option<u64>,
    /// How its processes have to end.
    pub expects: Vec<Expected>,
    /// What leads to where it begins, where its program sets it up itself.
    pub begin: Option<Arc<Trace>>,
}

/// What is between the hosts of a world, and when it is cut off.
pub struct NativeNetwork<'n> {
    /// Where packets go.
    pub topology: &'n Topology,
    /// What can go wrong.
    pub faults: &'n Faults,
    /// Virtual time at which a world is cut off.
    pub max_virtual_ns: Option<u64>,
    /// How often at most something arrives at a host before what would have arrived earlier.
    pub orders: u32,
    /// Messages and times to wait for of one host before it counts as a livelock.
    pub max_events: Option<u64>,
}

/// Where the answers to what a host asks come from, and who looks at it.
pub struct Guide<'w> {
    /// Where answers come from. What a trace does not say goes as usual.
    pub source: Source,
    /// Who looks.
    pub watcher: &'w mut dyn Watcher,
}

/// What came out of a world.
pub struct WorldRun {
    /// What came out of each host; who has not ended waits.
    pub hosts: BTreeMap<String, NativeRun>,
    /// What a check says is wrong.
    pub broken: Option<String>,
    /// The host that showed it, where one did.
    pub broken_on: Option<String>,
    /// What hosts showed, change after change and at the end.
    pub shown: Vec<(String, Story)>,
    /// What hosts sent each other.
    pub messages: Vec<Message>,
    /// It was cut off: something would still have happened.
    pub is_cut: bool,
}

/// When hosts are looked at.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Moment {
    /// One of them shows other data.
    Change,
    /// It is this time.
    At(u64),
}

/// Looks at what hosts show; says what is wrong.
pub type Looker<'c> = &'c mut dyn FnMut(Moment, &[(String, ExposedData)]) -> Option<String>;

/// What is looked at while a world goes on.
pub struct Checks<'c> {
    /// Times at which all hosts are looked at.
    pub times: BTreeSet<u64>,
    /// Looks then and after changes.
    pub look: Looker<'c>,
}

struct Node<'c> {
    world: NativeMachine<'c>,
    doing: Doing,
    mailbox: Mailbox,
    counters: FaultCounters,
    links: LinkState,
    sent: u64,
    looks: Looks,
    /// When it is started, where it is not yet.
    starting: Starting,
    end: Option<NativeEnd>,
    /// What others learn of it though it does not say it.
    outbox: Vec<Packet>,
    /// The disk that it starts with again.
    disk: Option<Box<Disk>>,
    restarts: u32,
    /// How often something overtook what would have arrived before it.
    overtaken: u32,
    /// How its first process has to end.
    expects: Option<Expects>,
    /// Inputs that its program sets it up with.
    set_up_with: usize,
}

impl Node<'_> {
    /// Its program is still setting it up.
    fn is_absent(&self) -> bool {
        self.doing == Doing::Runs && self.world.host.setup().is_before_start()
    }

    fn next_ns(&self) -> u64 {
        if self.starting.listens() {
            return self.starting.at_ns;
        }
        let clock_ns = self.world.host.clock_ns();
        self.mailbox.next_event_ns(self.doing, clock_ns)
    }
}

struct Loop<'c, 'n, 'l> {
    nodes: Vec<Node<'c>>,
    names: Vec<String>,
    network: &'n NativeNetwork<'n>,
    messages: Messages,
    checks: Checks<'l>,
    broken: Option<String>,
    broken_on: Option<String>,
    is_cut: bool,
    max_calls: u64,
}

/// Runs the hosts of a world natively, each as its guide says. It ends when nothing will happen any more, when something is wrong on a
/// host, when somebody who looks stops it, or when the check finds something.
pub fn run_world<'c>(
    hosts: &'c [NativeHost],
    network: &NativeNetwork<'_>,
    guides: Vec<Guide<'c>>,
    checks: Checks<'_>,
) -> Result<WorldRun, NativeError> {
    let _pinned = Pinned::here();
    let mut nodes = Vec::with_capacity(hosts.len());
    let mut answers = Vec::new();
    for ((host, guide), at) in hosts.iter().zip(guides).zip(0..) {
        let mut oracle = NativeOracle::new(guide.source);
        if at == 0 {
            oracle.is_free = true;
            answers = decided(&mut oracle, network.faults);
            oracle.is_free = false;
        }
        let mut counters = FaultCounters::default();
        for (fault, answer) in &answers {
            counters.decide(*fault, *answer);
        }
        let mut world = NativeMachine::with_oracle(&host.config, oracle, guide.watcher)?;
        world.oracle.is_free = true;
        world.host.pass_time(host.start_ns.unwrap_or(0));
        nodes.push(Node {
            world,
            doing: Doing::Runs,
            mailbox: Mailbox::new(network.faults.times(HostIndex(at))),
            counters,
            links: LinkState::default(),
            sent: 0,
            looks: Looks::default(),
            starting: Starting::new(at as usize, host.start_ns),
            end: None,
            outbox: Vec::new(),
            disk: None,
            restarts: 0,
            overtaken: 0,
            expects: first_expects(&host.expects),
            set_up_with: host.begin.as_ref().map_or(0, |begin| begin.inputs.len()),
        });
    }
    let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    let mut all = Loop {
        nodes,
        messages: Messages::between(names.clone()),
        names,
        network,
        checks,
        broken: None,
        broken_on: None,
        is_cut: false,
        max_calls: hosts
            .iter()
            .map(|host| host.config.max_calls)
            .max()
            .unwrap_or(0),
    };
    let ran = all.run();
    for node in &mut all.nodes {
        node.world.show_stopped();
    }
    for node in &mut all.nodes {
        node.world.kill_all();
    }
    ran?;
    let shown = all.stories();
    let mut runs = BTreeMap::new();
    for (name, node) in all.names.into_iter().zip(all.nodes) {
        let run = node.world.finish_run(node.end.unwrap_or(NativeEnd::Idle))?;
        runs.insert(name, run);
    }
    Ok(WorldRun {
        hosts: runs,
        broken: all.broken,
        broken_on: all.broken_on,
        shown,
        messages: all.messages.in_order(),
        is_cut: all.is_cut,
    })
}

impl Loop<'_, '_, '_> {
    fn run(&mut self) -> Result<(), NativeError> {
        loop {
            let next = self.nodes.iter().map(Node::next_ns).zip(0..).min();
            let next_ns = next.map_or(u64::MAX, |(next_ns, _)| next_ns);
            let time_ns = self.checks.times.first().copied();
            if let Some(time_ns) = time_ns.filter(|time_ns| *time_ns < next_ns) {
                self.checks.times.remove(&time_ns);
                if self.is_broken(Moment::At(time_ns), None) {
                    return Ok(());
                }
                continue;
            }
            let Some((_, at)) = next.filter(|(next_ns, _)| *next_ns != u64::MAX) else {
                return Ok(());
            };
            if self
                .network
                .max_virtual_ns
                .is_some_and(|most| next_ns > most)
            {
                self.is_cut = true;
                return Ok(());
            }
            if !self.advance(at)? {
                return Ok(());
            }
        }
    }

    /// How far a host may go: what others send later arrives after that.
    fn horizon(&self, at: usize) -> u64 {
        let others = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at);
        let next = others.map(|(_, node)| node.next_ns()).min();
        let next = next.unwrap_or(u64::MAX);
        let latency_ns = match self.network.orders {
            0 => least_latency_ns(self.network.topology),
            _ => 1,
        };
        let horizon = next.saturating_add(latency_ns - 1);
        // Nobody is ahead of a time at which all are looked at, or at which somebody starts because others wait.
        let looked_at = self.checks.times.first().copied();
        let others = self.nodes.iter().enumerate();
        let starting = others.filter(|(other, node)| *other != at && node.starting.listens());
        let starts = starting.map(|(_, node)| node.starting.at_ns);
        starts.chain(looked_at).fold(horizon, u64::min)
    }

    /// Runs a host as far as it may go. `false` if the world has come to what is wrong with it.
    fn advance(&mut self, at: usize) -> Result<bool, NativeError> {
        loop {
            let horizon = self.horizon(at);
            let is_waited_for = self.is_waited_for(at);
            let node = &mut self.nodes[at];
            if node.starting.begins() {
                node.world.host.pass_time(node.starting.at_ns);
            }
            let clock_ns = node.world.host.clock_ns();
            let now_ns;
            let was_off = matches!(node.doing, Doing::Off(_));
            if node.doing == Doing::Runs
                && let Some(most) = self.network.max_events
                && node.mailbox.events() >= most
            {
                node.doing = Doing::Over;
                node.end = Some(NativeEnd::Hang);
                return Ok(false);
            }
            // Nothing happens to a host that is on the way to where it begins.
            let is_absent = node.is_absent();
            if !is_absent && node.mailbox.is_due(node.doing, clock_ns, horizon) {
                if node.mailbox.next_ns() > horizon {
                    // What others send may still come before it.
                    return Ok(true);
                }
                now_ns = clock_ns.max(node.mailbox.next_ns());
                self.arrive(at)?;
            } else if node.doing == Doing::Runs {
                let until = match is_absent {
                    true => u64::MAX,
                    false => horizon.min(node.mailbox.next_ns().saturating_sub(1)),
                };
                node.world.host.set_horizon(until);
                node.world.host.stop_at_waits(is_waited_for);
                let advanced = node.world.advance(self.max_calls)?;
                now_ns = node.world.host.clock_ns();
                match advanced {
                    Advance::Paused(HostExit::Exposed) => {
                        let (at_ns, data) =
                            (node.world.host.clock_ns(), node.world.host.take_exposed());
                        node.looks.push(Look { at_ns, data });
                        if self.is_broken(Moment::Change, Some(at)) {
                            return Ok(false);
                        }
                    }
                    Advance::Paused(HostExit::AtCall(name)) => {
                        node.world.host.take_call();
                        let now_ns = node.world.host.clock_ns();
                        self.befall(at, HostMoment::Call(name), now_ns);
                    }
                    Advance::Paused(HostExit::Horizon) => return Ok(true),
                    Advance::Paused(HostExit::Waits(until)) => node.doing = Doing::Waits(until),
                    Advance::Paused(_) => {}
                    Advance::Ended(NativeEnd::Idle) if node.world.oracle.diverged.is_none() => {
                        node.doing = Doing::Waits(None);
                    }
                    Advance::Ended(end) => {
                        let is_well = match &end {
                            NativeEnd::Exit(_) => true,
                            NativeEnd::Signal { signal, .. } => {
                                let expects = node.expects;
                                expects.is_some_and(|expects| expects.is_signal(*signal))
                            }
                            _ => false,
                        };
                        node.doing = Doing::Over;
                        node.end = Some(end);
                        if !is_well {
                            return Ok(false);
                        }
                    }
                }
            } else if let Doing::Off(Some(until)) = node.doing
                && until <= horizon
            {
                node.mailbox.has_waited();
                now_ns = until;
                self.restart(at, until)?;
            } else if let Doing::Waits(Some(until)) = node.doing
                && until <= horizon
            {
                node.mailbox.has_waited();
                now_ns = until;
                node.world.host.pass_time(until);
                node.doing = Doing::Runs;
            } else {
                return Ok(true);
            }
            // Who is off shows nothing.
            let is_off = matches!(self.nodes[at].doing, Doing::Off(_));
            if is_off && !was_off && self.is_broken(Moment::Change, Some(at)) {
                return Ok(false);
            }
            self.transmit(at);
            self.tell_waiting(at, now_ns);
        }
    }

    /// Somebody wants to know when a host waits.
    fn is_waited_for(&self, at: usize) -> bool {
        let mut after = self.nodes.iter().skip(at + 1);
        after.any(|node| node.starting.listens())
    }

    /// Tells those that have not started whether a host waits, if that has changed.
    fn tell_waiting(&mut self, at: usize, now_ns: u64) {
        let node = &mut self.nodes[at];
        let running = Some(&node.world.host);
        let Some(waits) = node.starting.news(node.doing, running) else {
            return;
        };
        let known = node.counters.clone();
        for other in self.nodes.iter_mut().skip(at + 1) {
            if other.starting.listens() {
                other.starting.hears(HostIndex(at as u32), waits, now_ns);
                self.network.faults.learn(&mut other.counters, &known);
            }
        }
    }

    fn shown(&self) -> Vec<(String, ExposedData)> {
        let shown = self.names.iter().zip(&self.nodes);
        shown
            .map(|(name, node)| {
                let data = match node.doing {
                    Doing::Off(_) => ExposedData::default(),
                    _ => node.world.host.exposed().clone(),
                };
                (name.clone(), data)
            })
            .collect()
    }

    fn stories(&self) -> Vec<(String, Story)> {
        let shown = self.shown().into_iter().zip(&self.nodes);
        shown
            .map(|((name, last), node)| {
                let looks = node.looks.clone();
                (name, Story { looks, last })
            })
            .collect()
    }

    fn is_broken(&mut self, moment: Moment, at: Option<usize>) -> bool {
        let shown = self.shown();
        self.broken = (self.checks.look)(moment, &shown);
        let at = at.filter(|_| self.broken.is_some());
        self.broken_on = at.map(|at| self.names[at].clone());
        self.broken.is_some()
    }

    fn transmit(&mut self, at: usize) {
        let from = HostIndex(at as u32);
        let node = &mut self.nodes[at];
        let own = match node.doing {
            Doing::Off(_) => Vec::new(),
            _ => node.world.host.take_sent(),
        };
        let own = own.into_iter().map(|packet| (packet, true));
        let others = std::mem::take(&mut node.outbox).into_iter();
        for (packet, is_own) in own.chain(others.map(|packet| (packet, false))) {
            let node = &mut self.nodes[at];
            node.sent += 1;
            let (links, known) = (&mut node.links, &node.counters);
            let topology = self.network.topology;
            match send(topology, from, packet, node.sent, links, known) {
                Sent::Nowhere => {}
                Sent::Back(arrival) => node.mailbox.expect(arrival),
                Sent::To(targets, mut arrival) => {
                    arrival.decided |= !is_own;
                    arrival.met |= !is_own;
                    let (inputs, arena) = (&node.world.oracle.inputs, &mut node.world.arena);
                    let bytes = carried(&arrival.packet).map(|bytes| inputs.bytes(bytes, arena));
                    for target in targets {
                        self.messages.sent(&arrival, target, bytes.clone());
                        let receiver = &mut self.nodes[target.index()];
                        receiver.mailbox.expect(arrival.clone());
                    }
                }
            }
        }
    }

    /// What happens to a host next: something arrives, or a time comes.
    fn arrive(&mut self, at: usize) -> Result<(), NativeError> {
        let node = &mut self.nodes[at];
        let arrival = match node.mailbox.next() {
            None => return Ok(()),
            Some(Next::Time(time)) => {
                node.mailbox.take();
                if !matches!(node.doing, Doing::Off(_)) {
                    self.befall(at, HostMoment::Time, time);
                }
                return Ok(());
            }
            Some(Next::Packet(arrival)) => arrival,
        };
        if node.overtaken < self.network.orders
            && !matches!(node.doing, Doing::Off(_))
            && let Ok(true) = node.mailbox.race(&mut node.world.oracle)
        {
            node.overtaken += 1;
            return Ok(());
        }
        if let Doing::Off(until) = node.doing {
            node.mailbox.take();
            self.messages.finds_nobody(&arrival, HostIndex(at as u32));
            match arrive_at_nobody(&arrival, until.is_none()) {
                AtNobody::Lost => {}
                AtNobody::Later(arrival) => node.mailbox.expect(arrival),
                AtNobody::GivenUp(packet) => node.outbox.push(packet),
            }
            return Ok(());
        }
        let here = HostIndex(at as u32);
        let faults = self.network.faults;
        faults.learn(&mut node.counters, &arrival.known);
        if !arrival.met && faults.asks_at_messages(here) {
            let now_ns = arrival.at_ns.max(node.world.host.clock_ns());
            node.mailbox.is_met();
            let packet = described(&arrival, here, node.doing);
            if self.befall(at, HostMoment::Message(&packet), now_ns) {
                return Ok(());
            }
        }
        self.arrive_packet(at, &arrival);
        Ok(())
    }

    fn arrive_packet(&mut self, at: usize, arrival: &Arrival) {
        let node = &mut self.nodes[at];
        node.mailbox.take();
        let world = &mut node.world;
        let oracle: &mut dyn Oracle = &mut world.oracle;
        let here = HostIndex(at as u32);
        let (arena, counters) = (&mut world.arena, &mut node.counters);
        // A trace answers everything.
        let faults = self.network.faults;
        let doing = node.doing;
        let Ok(fated) = arrive(oracle, arena, faults, (here, doing), arrival, counters) else {
            return;
        };
        if let Some(later) = &fated.later {
            node.mailbox.expect(later.clone());
        }
        let known = fated.now.as_ref().and_then(|packet| {
            let bytes = carried(packet)?;
            Some(world.oracle.inputs.bytes(bytes, &mut world.arena))
        });
        self.messages
            .arrives(arrival, here, &fated, faults, known.clone());
        node.outbox.extend(fated.back);
        let Some(packet) = fated.now else { return };
        let mut packet = (*packet).clone();
        if let (PacketKind::Datagram(bytes) | PacketKind::Data(bytes), Some(known)) =
            (&mut packet.kind, known)
        {
            // What may be anything is what the trace says.
            *bytes = Buffer::with_bytes(&known, known.len());
        }
        receive(node, arrival.at_ns, &packet);
    }

    /// Something may become of a host at a moment. `false` if that is nothing.
    fn befall(&mut self, at: usize, moment: HostMoment<'_>, now_ns: u64) -> bool {
        let event = HostEvent {
            host: HostIndex(at as u32),
            moment,
            now_ns,
        };
        let node = &mut self.nodes[at];
        let (oracle, host) = (&mut node.world.oracle, &node.world.host);
        let faults = self.network.faults;
        let befallen = befalls(oracle, faults, &event, Some(host), &mut node.counters);
        let Ok(befallen) = befallen else {
            return false;
        };
        self.messages.befalls(event.host, &befallen, faults, now_ns);
        match befallen.what {
            Befalls::Nothing => return false,
            Befalls::Pauses(until) => {
                node.world.host.pass_time(until);
                if let Doing::Waits(_) = node.doing {
                    node.doing = Doing::Runs;
                }
            }
            Befalls::Off => {
                node.looks.push(Look::nothing(now_ns));
                node.world.kill_all();
                node.doing = Doing::Off(None);
                node.end = Some(NativeEnd::Off);
            }
            Befalls::Restarts(at_ns, disk) => {
                node.looks.push(Look::nothing(now_ns));
                node.world.kill_all();
                node.doing = Doing::Off(Some(at_ns));
                node.disk = Some(disk);
                node.end = None;
            }
        }
        true
    }

    /// A host that was switched off starts again.
    fn restart(&mut self, at: usize, now_ns: u64) -> Result<(), NativeError> {
        let mut node = self.nodes.remove(at);
        if let Some(disk) = node.disk.take() {
            node.world.oracle.again = 0..node.set_up_with;
            node.world = node.world.restart(&disk)?;
            node.restarts += 1;
            node.world.host.set_restart_count(node.restarts);
            node.world.host.pass_time(now_ns);
        }
        node.doing = Doing::Runs;
        self.nodes.insert(at, node);
        Ok(())
    }
}

fn receive(node: &mut Node<'_>, at_ns: u64, packet: &Packet) {
    let host = &mut node.world.host;
    host.pass_time(at_ns);
    host.receive(packet);
    if let Doing::Waits(_) = node.doing {
        node.doing = Doing::Runs;
    }
    let now = node.world.host.clock_ns();
    node.mailbox.let_others_follow(now);
}
