//! Worlds of several native hosts: each has its own kernel model, and one loop lets them run in the order of their clocks and carries what
//! they send each other, as the search does it.

use everett_engine::{
    Arrival, AtNobody, Befallen, Befalls, Doing, Expects, Look, Looks, Mailbox, Next, Sent, Story,
    Trace, arrive, arrive_at_nobody, befalls, described, least_latency_ns, send,
};
use everett_linux::{Disk, ExposedData, HostExit, Packet, PacketKind};
use everett_net::{FaultCounters, Faults, HostEvent, HostIndex, HostMoment, LinkState, Topology};
use everett_vm::{Buffer, Oracle};
use std::collections::{BTreeMap, BTreeSet};

use crate::oracle::Source;
use crate::sandbox::Pinned;
use crate::watch::Nobody;
use crate::world::{Advance, NativeConfig, NativeEnd, NativeError, NativeRun, World};

/// A host of a world.
pub struct NativeHost {
    /// Its name.
    pub name: String,
    /// Its programs, and what it is started with.
    pub config: NativeConfig,
    /// When it is started.
    pub start_ns: u64,
    /// How it has to end.
    pub expects: Option<Expects>,
}

/// What came out of a world.
pub struct WorldRun {
    /// What came out of each host; who has not ended waits.
    pub hosts: BTreeMap<String, NativeRun>,
    /// What a check says is wrong.
    pub broken: Option<String>,
    /// What hosts showed, change after change and at the end.
    pub shown: Vec<(String, Story)>,
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
    world: World<'c>,
    doing: Doing,
    mailbox: Mailbox,
    counters: FaultCounters,
    links: LinkState,
    sent: u64,
    looks: Looks,
    end: Option<NativeEnd>,
    /// What others learn of it though it does not say it.
    outbox: Vec<Packet>,
    /// The disk that it starts with again.
    disk: Option<Box<Disk>>,
    restarts: u32,
    /// How it has to end.
    expects: Option<Expects>,
}

impl Node<'_> {
    fn next_ns(&self) -> u64 {
        let clock_ns = self.world.host.clock_ns();
        self.mailbox.next_event_ns(self.doing, clock_ns)
    }
}

struct Loop<'c, 'n, 'l> {
    nodes: Vec<Node<'c>>,
    names: Vec<String>,
    topology: &'n Topology,
    faults: &'n Faults,
    checks: Checks<'l>,
    broken: Option<String>,
    max_calls: u64,
}

/// Runs the hosts of a world natively, each as its trace says; what a trace does not say goes as usual. It ends when nothing will happen
/// any more, when something is wrong on a host, or when the check finds something.
pub fn run_world(
    hosts: &[NativeHost],
    topology: &Topology,
    faults: &Faults,
    traces: &BTreeMap<String, Trace>,
    checks: Checks<'_>,
) -> Result<WorldRun, NativeError> {
    let _pinned = Pinned::here();
    let mut watchers: Vec<Nobody> = hosts.iter().map(|_| Nobody).collect();
    let mut nodes = Vec::with_capacity(hosts.len());
    for ((host, watcher), at) in hosts.iter().zip(&mut watchers).zip(0..) {
        let trace = traces.get(&host.name).cloned().unwrap_or_default();
        let source = Source::Trace(Box::new(trace));
        let mut world = World::start(&host.config, source, watcher)?;
        world.oracle.is_free = true;
        world.host.pass_time(host.start_ns);
        nodes.push(Node {
            world,
            doing: Doing::Runs,
            mailbox: Mailbox::new(faults.times(HostIndex(at))),
            counters: FaultCounters::default(),
            links: LinkState::default(),
            sent: 0,
            looks: Looks::default(),
            end: None,
            outbox: Vec::new(),
            disk: None,
            restarts: 0,
            expects: host.expects,
        });
    }
    let mut all = Loop {
        nodes,
        names: hosts.iter().map(|host| host.name.clone()).collect(),
        topology,
        faults,
        checks,
        broken: None,
        max_calls: hosts
            .iter()
            .map(|host| host.config.max_calls)
            .max()
            .unwrap_or(0),
    };
    let ran = all.run();
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
        shown,
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
                if self.is_broken(Moment::At(time_ns)) {
                    return Ok(());
                }
                continue;
            }
            let Some((_, at)) = next.filter(|(next_ns, _)| *next_ns != u64::MAX) else {
                return Ok(());
            };
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
        let horizon = next.saturating_add(least_latency_ns(self.topology) - 1);
        // Nobody is ahead of a time at which all are looked at.
        let looked_at = self.checks.times.first().copied();
        horizon.min(looked_at.unwrap_or(u64::MAX))
    }

    /// Runs a host as far as it may go. `false` if the world has come to what is wrong with it.
    fn advance(&mut self, at: usize) -> Result<bool, NativeError> {
        loop {
            let horizon = self.horizon(at);
            let node = &mut self.nodes[at];
            let clock_ns = node.world.host.clock_ns();
            let was_off = matches!(node.doing, Doing::Off(_));
            if node.mailbox.is_due(node.doing, clock_ns, horizon) {
                self.arrive(at)?;
            } else if node.doing == Doing::Runs {
                let until = horizon.min(node.mailbox.next_ns().saturating_sub(1));
                node.world.host.set_horizon(until);
                match node.world.advance(self.max_calls)? {
                    Advance::Paused(HostExit::Exposed) => {
                        let (at_ns, data) =
                            (node.world.host.clock_ns(), node.world.host.take_exposed());
                        node.looks.push(Look { at_ns, data });
                        if self.is_broken(Moment::Change) {
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
                self.restart(at, until)?;
            } else if matches!(node.doing, Doing::Waits(Some(until)) if until <= horizon) {
                node.doing = Doing::Runs;
            } else {
                return Ok(true);
            }
            // Who is off shows nothing.
            let is_off = matches!(self.nodes[at].doing, Doing::Off(_));
            if is_off && !was_off && self.is_broken(Moment::Change) {
                return Ok(false);
            }
            self.transmit(at);
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

    fn is_broken(&mut self, moment: Moment) -> bool {
        let shown = self.shown();
        self.broken = (self.checks.look)(moment, &shown);
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
            match send(self.topology, from, packet, node.sent, links, known) {
                Sent::Nowhere => {}
                Sent::Back(arrival) => node.mailbox.expect(arrival),
                Sent::To(targets, mut arrival) => {
                    arrival.decided |= !is_own;
                    arrival.met |= !is_own;
                    let counters = node.counters.clone();
                    for target in targets {
                        let receiver = &mut self.nodes[target.index()];
                        // In one world nobody contradicts anybody.
                        let _ = self.faults.meet(&mut receiver.counters, &counters);
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
        if let Doing::Off(until) = node.doing {
            node.mailbox.take();
            match arrive_at_nobody(&arrival, until.is_none()) {
                AtNobody::Lost => {}
                AtNobody::Later(arrival) => node.mailbox.expect(arrival),
                AtNobody::GivenUp(packet) => node.outbox.push(packet),
            }
            return Ok(());
        }
        let here = HostIndex(at as u32);
        self.faults.learn(&mut node.counters, &arrival.known);
        if !arrival.met && self.faults.asks_at_messages(here) {
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
        let here = (here, node.doing);
        let Ok(fated) = arrive(oracle, arena, self.faults, here, arrival, counters) else {
            return;
        };
        if let Some(later) = fated.later {
            node.mailbox.expect(later);
        }
        node.outbox.extend(fated.back);
        let Some(packet) = fated.now else { return };
        let mut packet = (*packet).clone();
        if let PacketKind::Datagram(bytes) | PacketKind::Data(bytes) = &mut packet.kind {
            // What may be anything is what the trace says.
            let known = world.oracle.inputs.bytes(bytes, &mut world.arena);
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
        let befallen = befalls(oracle, self.faults, &event, Some(host), &mut node.counters);
        let Ok(Befallen { what, .. }) = befallen else {
            return false;
        };
        match what {
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
            node.world = node.world.restart(&disk)?;
            node.restarts += 1;
            node.world.host.has_restarted(node.restarts);
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
