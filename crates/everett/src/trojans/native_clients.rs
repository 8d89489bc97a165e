//! Runs the native clients with random inputs, and checks their messages against the analysis: a
//! message that no client sends according to it is a contradiction.

use everett_engine::{Trace, TraceInput};
use everett_linux::{PacketKind, split_mix};
use everett_native::{NativeEnd, WorldRun};
use everett_net::HostIndex;
use everett_sim::Message;
use everett_solver::SolverConfig;
use everett_trojans::{Answer, Encoded};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use super::classes::hex;
use super::summary::{Contradiction, TrojansSummary};
use super::{Analysis, Class};
use crate::error::Result;
use crate::native::run_begun;
use crate::native_world::NativeWorld;
use crate::spec::{BuildSpec, RunSpec, Sender};
use crate::world::hosts::draw_by;

/// Maximum virtual time of a run in nanoseconds; clients may send forever.
const MOST_NS: u64 = 60_000_000_000;

/// Maximum number of kept inputs with which a client sent something.
const MOST_SPEAKING: usize = 64;

/// Distinct messages, each with a client that has sent it.
type Sent = BTreeMap<Vec<u8>, HostIndex>;

/// Runs all clients, and adds contradictions to the summary.
pub(super) fn run(
    analysis: &Analysis<'_>,
    predicates: &[Encoded],
    classes: &[Class],
    summary: &mut TrojansSummary,
) -> Result<()> {
    if summary.trojans.is_empty() {
        return Ok(());
    }
    let before = analysis.session.now();
    let mut sent = Sent::new();
    let clients = &analysis.setup.clients;
    let count = clients.len() as u64;
    for (number, client) in (0u64..).zip(clients) {
        let runs = analysis.spec.native_runs;
        let share = runs / count + u64::from(number < runs % count);
        if let Err(error) = run_client(analysis, *client, share, &mut sent, summary) {
            let name = analysis.name(*client);
            let problem = format!("{name}: {error}");
            summary.native_runs.problem.get_or_insert(problem);
        }
    }
    summary.native_runs.different = sent.len();
    for (message, client) in &sent {
        check(analysis, predicates, classes, (message, *client), summary)?;
    }
    summary.phases.native_runs = (analysis.session.now() - before).as_secs_f64();
    Ok(())
}

/// Runs one client with the server; the other clients do nothing.
fn run_client(
    analysis: &Analysis<'_>,
    client: HostIndex,
    runs: u64,
    sent: &mut Sent,
    summary: &mut TrojansSummary,
) -> Result<()> {
    let session = analysis.session;
    let others = analysis.setup.clients.iter();
    let others = others.filter(|other| **other != client);
    let notices = &session.notices;
    let run = RunSpec {
        sender: Some(Sender {
            program: everett_toolchain::sender(&|text| notices.tell(text))?,
            idle: others.map(|other| analysis.name(*other)).collect(),
            ..Sender::default()
        }),
        out: None,
        ..analysis.spec.run.clone()
    };
    let mut world = NativeWorld::of(&run, &BuildSpec::default(), session)?;
    if let Some(context) = &mut world.context {
        let most = context.max_virtual_ns.unwrap_or(MOST_NS);
        context.max_virtual_ns = Some(most.min(MOST_NS));
    }
    let name = analysis.name(client);
    let clients = world.hosts.iter_mut().filter(|host| host.name == name);
    clients.for_each(|host| host.logs_waits = analysis.setup.is_stream);
    let (mut begun, none) = (BTreeMap::new(), BTreeMap::new());
    let mut speaking: Vec<Vec<TraceInput>> = Vec::new();
    for seed in 0..runs {
        if session.stop.load(Ordering::Relaxed) {
            break;
        }
        // In every second run, inputs that the client constrains are drawn until they satisfy it.
        let is_free = seed % 2 == 0;
        let mut hosts = world.hosts.clone();
        let clients = hosts.iter_mut().filter(|host| host.name == name);
        // The server is in the state that was explored, so it draws the same random bytes.
        clients.for_each(|host| draw_by(seed, client, &mut host.config.host));
        let from = if is_free { &none } else { &begun };
        let seen = run_begun(&world, &hosts, seed, from)?;
        summary.native_runs.runs += 1;
        let messages = match analysis.setup.is_stream {
            true => bursts(analysis, &name, &seen),
            false => datagrams(analysis, client, &seen.messages),
        };
        if let Some(run) = seen.hosts.get(&name) {
            let inputs: Vec<TraceInput> = run.trace.inputs.iter().cloned().collect();
            if !messages.is_empty() && speaking.len() < MOST_SPEAKING {
                speaking.push(inputs.clone());
            }
            let trace = Trace {
                inputs: next_inputs(&inputs, &speaking, seed).into_iter().collect(),
                ..Trace::default()
            };
            begun.insert(name.clone(), trace);
        }
        for message in messages {
            summary.native_runs.messages += 1;
            sent.entry(message).or_insert(client);
        }
    }
    Ok(())
}

/// Returns the inputs for the next run: those of this run with other bytes, or ones with which the
/// client sent something, changed in one byte.
fn next_inputs(inputs: &[TraceInput], speaking: &[Vec<TraceInput>], seed: u64) -> Vec<TraceInput> {
    let mut state = seed;
    let mut below = |count: usize| (split_mix(&mut state) % count.max(1) as u64) as usize;
    if speaking.is_empty() || below(4) == 0 {
        return inputs.iter().map(|input| drawn(input, seed)).collect();
    }
    let mut changed = speaking[below(speaking.len())].clone();
    let at = below(changed.len());
    if let Some(input) = changed.get_mut(at) {
        let place = below(input.bytes.len());
        if let Some(byte) = input.bytes.get_mut(place) {
            *byte = below(256) as u8;
        }
    }
    changed
}

/// Returns an input with random bytes. Few programs accept uniform bytes, so these are text of any
/// length, or small numbers.
fn drawn(input: &TraceInput, seed: u64) -> TraceInput {
    let mut state = seed;
    for byte in input.name.bytes() {
        state = split_mix(&mut state) ^ u64::from(byte);
    }
    let (low, high) = [(33, 126), (b'a', b'z'), (0, 9)][(seed / 2 % 3) as usize];
    let is_text = low > 0;
    let count = u64::from(high - low) + 1;
    let size = input.bytes.len();
    let mut bytes: Vec<u8> = (0..size)
        .map(|_| low + (split_mix(&mut state) % count) as u8)
        .collect();
    if is_text {
        let length = split_mix(&mut state) % (size as u64 + 1);
        bytes[length as usize..].fill(0);
    }
    TraceInput {
        name: input.name.clone(),
        bytes,
    }
}

/// Returns the messages of a stream client that count: what it has written to a connection when it
/// waits for others or closes the stream.
fn bursts(analysis: &Analysis<'_>, client: &str, seen: &WorldRun) -> Vec<Vec<u8>> {
    let (setup, server) = (&analysis.setup, analysis.name(analysis.setup.server));
    let waits = seen.waits.get(client).map_or(&[][..], |waits| waits);
    let mut all: Vec<Vec<u8>> = Vec::new();
    // What it has written since its last wait.
    let mut now: Vec<(SocketAddr, Vec<u8>)> = Vec::new();
    let mut end = |now: &mut Vec<(SocketAddr, Vec<u8>)>| {
        all.extend(now.drain(..).map(|(_, bytes)| bytes));
    };
    let mut sent = 0;
    let messages = seen.messages.iter();
    for message in messages.filter(|message| message.from == client) {
        if waits.contains(&sent) {
            end(&mut now);
        }
        sent += 1;
        let packet = message.packet.as_ref();
        let mut packet = packet.filter(|_| message.to == server);
        let Some(packet) = packet.take_if(|packet| packet.to.port() == setup.port) else {
            continue;
        };
        let at = now.iter().position(|(from, _)| *from == packet.from);
        match (&packet.kind, at) {
            (PacketKind::Data(data), Some(at)) => now[at].1.extend(data.bytes()),
            (PacketKind::Data(data), None) => now.push((packet.from, data.bytes().to_vec())),
            (PacketKind::Fin, Some(at)) => end(&mut vec![now.remove(at)]),
            _ => {}
        }
    }
    let is_over = |end: &NativeEnd| matches!(end, NativeEnd::Exit(_) | NativeEnd::Signal { .. });
    let has_ended = seen.hosts.get(client).is_some_and(|run| is_over(&run.end));
    if has_ended || waits.last() == Some(&sent) {
        end(&mut now);
    }
    let number = match setup.ever || setup.has_state() {
        true => setup.number,
        // Later messages find the server in another state.
        false => setup.number.or(Some(1)),
    };
    let counted = (1..).zip(all);
    let counted = counted.filter(|(at, _)| number.is_none_or(|number| number == *at));
    counted.map(|(_, bytes)| bytes).collect()
}

/// Returns the datagrams of a client that count.
fn datagrams(analysis: &Analysis<'_>, client: HostIndex, all: &[Message]) -> Vec<Vec<u8>> {
    let (client, server) = (analysis.name(client), analysis.name(analysis.setup.server));
    let setup = &analysis.setup;
    let answers = all.iter().filter(|message| {
        let packet = message.packet.as_ref();
        let is_from_port = packet.is_some_and(|packet| packet.from.port() == setup.port);
        is_from_port && message.from == server && message.to == client
    });
    // Later datagrams find the server in another state.
    let heard_ns = answers.filter_map(|answer| answer.arrived_ns.first()).min();
    let counts_later = setup.ever || setup.number.is_some() || setup.has_state();
    let sent = all.iter().filter(|message| {
        let is_early = heard_ns.is_none_or(|heard_ns| message.sent_ns < *heard_ns);
        message.from == client && message.to == server && (is_early || counts_later)
    });
    let sent = sent.filter_map(|message| message.packet.as_ref());
    let sent = sent.filter(|packet| {
        packet.to.port() == setup.port && matches!(packet.kind, PacketKind::Datagram(_))
    });
    let sent = (1..).zip(sent.filter_map(|packet| packet.payload()));
    let sent = sent.filter(|(number, _)| setup.number.is_none_or(|wanted| wanted == *number));
    sent.map(|(_, payload)| payload.bytes().to_vec()).collect()
}

/// Records a message that no client sends according to the analysis, and the classes that contain
/// it.
fn check(
    analysis: &Analysis<'_>,
    predicates: &[Encoded],
    classes: &[Class],
    (message, client): (&[u8], HostIndex),
    summary: &mut TrojansSummary,
) -> Result<()> {
    let length = message.len() as u32;
    let setup = &analysis.setup;
    if !(setup.least_length..=setup.most_length).contains(&length) {
        return Ok(());
    }
    let mut search = analysis.search(length, predicates, &SolverConfig::default())?;
    let places = search.unmasked(message);
    // If the solver has no answer, there is no contradiction.
    if !matches!(search.produced(message, &places), Ok(None)) {
        return Ok(());
    }
    let trojans = classes
        .iter()
        .filter(|class| matches!(class.accepted.answer, Answer::Trojan(_)));
    let mut numbers = Vec::new();
    for (class, entry) in trojans.zip(&mut summary.trojans) {
        if class.length != length {
            continue;
        }
        for path in class.also.iter().chain([&class.accepted.path]) {
            let terms = search.stored(path).unwrap_or_default();
            if search.takes_like(&terms, message, &places) == Ok(true) {
                entry.certain = false;
                numbers.push(entry.number);
                break;
            }
        }
    }
    summary.complete = false;
    summary.native_runs.contradictions.push(Contradiction {
        client: analysis.name(client),
        message: hex(message),
        trojans: numbers,
    });
    Ok(())
}
