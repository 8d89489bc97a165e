//! What can become of a host: it is switched off, starts again, or does nothing for a while. The same for hosts that are explored and
//! for native ones.

use everett_linux::{Disk, Errno, Host, InodeId, Packet, PacketKind};
use everett_net::{Alternative, FaultCounters, FaultIndex, Faults, HostEvent, HostFate};
use everett_vm::{ChoiceSite, Interrupt, Oracle};

use super::post::{Arrival, sent_again};

/// How long TCP tries to reach a host that is gone: where a connection is wanted, and where there is one.
const NO_CONNECTION_NS: u64 = 127_000_000_000;
const NO_ANSWER_NS: u64 = 924_000_000_000;

/// What becomes of a host.
#[derive(Clone, Debug)]
pub enum Befalls {
    /// Nothing.
    Nothing,
    /// It does nothing until this time.
    Pauses(u64),
    /// It is off for good.
    Off,
    /// It is off, and starts again at this time with this disk.
    Restarts(u64, Box<Disk>),
}

/// What becomes of a host, and what is to be told of it.
pub struct Befallen {
    /// What.
    pub what: Befalls,
    /// By which fault.
    pub fault: Option<FaultIndex>,
    /// Files that lose what was not synchronised.
    pub lost: Vec<Vec<u8>>,
}

/// Asks what becomes of a host at a moment. Nothing is changed where a question has several answers.
pub fn befalls(
    oracle: &mut dyn Oracle,
    faults: &Faults,
    event: &HostEvent<'_>,
    host: Option<&Host>,
    counters: &mut FaultCounters,
) -> Result<Befallen, Interrupt> {
    let alternatives = faults.host_fates(event, counters);
    let mut picked = 0;
    if alternatives.len() > 1 {
        picked = oracle.choose(&site(faults, &alternatives), alternatives.len() as u32)? as usize;
    }
    let taken = alternatives[picked.min(alternatives.len() - 1)];
    let (mut lost, mut paths) = (Vec::new(), Vec::new());
    if let HostFate::Restart {
        loses_unsynced: true,
        ..
    } = taken.fate
    {
        for (id, path) in host.map_or_else(Vec::new, Host::unsynced) {
            let site = ChoiceSite {
                name: format!("fault:lost:{}", String::from_utf8_lossy(&path)),
            };
            if oracle.choose(&site, 2)? == 1 {
                lost.push(id);
                paths.push(path);
            }
        }
    }
    oracle.commit();
    faults.note_host(event, &taken, counters);
    Ok(Befallen {
        what: carried_out(taken.fate, event.now_ns, host, &lost),
        fault: taken.fault,
        lost: paths,
    })
}

fn carried_out(fate: HostFate, now_ns: u64, host: Option<&Host>, lost: &[InodeId]) -> Befalls {
    match (fate, host) {
        (HostFate::GoOn, _) => Befalls::Nothing,
        (HostFate::Pause { for_ns }, _) => Befalls::Pauses(now_ns.saturating_add(for_ns)),
        (HostFate::Restart { after_ns, .. }, Some(host)) => Befalls::Restarts(
            now_ns.saturating_add(after_ns.max(1)),
            Box::new(host.disk(lost)),
        ),
        (HostFate::Crash | HostFate::Restart { .. }, _) => Befalls::Off,
    }
}

/// The name of the question what becomes of a host.
fn site(faults: &Faults, alternatives: &[Alternative<HostFate>]) -> ChoiceSite {
    let possible = alternatives.iter().filter_map(|other| other.fault);
    let names: Vec<&str> = possible
        .map(|fault| faults.get(fault).name.as_str())
        .collect();
    ChoiceSite {
        name: format!("fault:host:{}", names.join(",")),
    }
}

/// What becomes of something that arrives at a host that is off.
pub enum AtNobody {
    /// It is lost, and nobody learns it.
    Lost,
    /// TCP sends it again.
    Later(Arrival),
    /// The sender gives up and learns that nobody answers.
    GivenUp(Packet),
}

/// Something arrives at a host that is off, for good or until later.
pub fn arrive_at_nobody(arrival: &Arrival, for_good: bool) -> AtNobody {
    let again = if for_good { None } else { sent_again(arrival) };
    match again {
        Some(later) => AtNobody::Later(later),
        None => given_up(arrival).map_or(AtNobody::Lost, AtNobody::GivenUp),
    }
}

/// What the sender of a part of a stream learns when it is never answered.
pub fn given_up(arrival: &Arrival) -> Option<Packet> {
    let after_ns = match &arrival.packet.kind {
        PacketKind::Syn { .. } => NO_CONNECTION_NS,
        PacketKind::Data(_) | PacketKind::Fin => NO_ANSWER_NS,
        _ => return None,
    };
    Some(Packet {
        clock_ns: arrival.at_ns.saturating_add(after_ns),
        from: arrival.packet.to,
        to: arrival.packet.from,
        kind: PacketKind::Unreachable(Errno::ETIMEDOUT),
    })
}
