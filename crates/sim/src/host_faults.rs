//! Host faults: a host crashes, pauses, or restarts with what is left on its disk. Pure functions,
//! shared by explored and native hosts.

use everett_linux::{Disk, Host, InodeId, Packet};
use everett_net::{Alternative, FaultCounters, FaultIndex, Faults, HostEvent, HostFaultEffect};
use everett_vm::{ChoiceSite, Interrupt, Oracle};

use crate::arrival::{Arrival, connection_timeout};
use crate::transit::retransmitted;

/// What a host fault does to a host.
#[derive(Clone, Debug)]
pub enum HostFaultOutcome {
    /// No fault happens.
    None,
    /// The host pauses until this time.
    Pause(u64),
    /// The host is powered off for good.
    Off,
    /// The host is powered off, and boots again at this time with this disk.
    Restart(u64, Box<Disk>),
}

/// A decided host fault.
pub struct HostFault {
    /// What the fault does to the host.
    pub effect: HostFaultOutcome,
    /// The fault of the scenario, if one happens.
    pub fault: Option<FaultIndex>,
    /// Paths of files that lose data that was not synchronised.
    pub lost: Vec<Vec<u8>>,
}

/// Decides which host fault happens at a point of a host's execution. Changes nothing while a
/// question is open.
pub fn decide_host_fault(
    oracle: &mut dyn Oracle,
    faults: &Faults,
    event: &HostEvent<'_>,
    host: Option<&Host>,
    counters: &mut FaultCounters,
) -> Result<HostFault, Interrupt> {
    let alternatives = faults.host_fault_effects(event, counters);
    let mut picked = 0;
    if alternatives.len() > 1 {
        picked = oracle.choose(&site(faults, &alternatives), alternatives.len() as u32)? as usize;
    }
    let taken = alternatives[picked.min(alternatives.len() - 1)];
    let (mut lost, mut paths) = (Vec::new(), Vec::new());
    if let HostFaultEffect::Restart {
        loses_unsynced: true,
        ..
    } = taken.effect
    {
        for (id, path) in host.map_or_else(Vec::new, Host::unsynced) {
            let site = ChoiceSite::UnsyncedLoss {
                path: String::from_utf8_lossy(&path).into(),
            };
            if oracle.choose(&site, 2)? == 1 {
                lost.push(id);
                paths.push(path);
            }
        }
    }
    oracle.commit();
    faults.record_host_fault(event, &taken, counters);
    Ok(HostFault {
        effect: effect_of(taken.effect, event.now_ns, host, &lost),
        fault: taken.fault,
        lost: paths,
    })
}

/// Returns what a fault does to a host at this time, with the disk that is left after a restart.
fn effect_of(
    effect: HostFaultEffect,
    now_ns: u64,
    host: Option<&Host>,
    lost: &[InodeId],
) -> HostFaultOutcome {
    match (effect, host) {
        (HostFaultEffect::Continue, _) => HostFaultOutcome::None,
        (HostFaultEffect::Pause { for_ns }, _) => {
            HostFaultOutcome::Pause(now_ns.saturating_add(for_ns))
        }
        (HostFaultEffect::Restart { after_ns, .. }, Some(host)) => HostFaultOutcome::Restart(
            now_ns.saturating_add(after_ns.max(1)),
            Box::new(host.disk(lost)),
        ),
        (HostFaultEffect::Crash | HostFaultEffect::Restart { .. }, _) => HostFaultOutcome::Off,
    }
}

/// Returns the site of the choice between the possible host faults.
fn site(faults: &Faults, alternatives: &[Alternative<HostFaultEffect>]) -> ChoiceSite {
    let possible = alternatives.iter().filter_map(|other| other.fault);
    let names = possible.map(|fault| faults.get(fault).name.as_str());
    ChoiceSite::HostFault {
        faults: names.collect(),
    }
}

/// The outcome of an arrival at a host that is powered off.
pub enum OffDelivery {
    /// The packet is lost without notice.
    Lost,
    /// TCP retransmits the packet.
    Retransmitted(Arrival),
    /// TCP gives up, and the sender gets this error.
    TimedOut(Packet),
}

/// Delivers a packet to a host that is powered off, for good or until later.
pub fn deliver_to_off(arrival: &Arrival, for_good: bool) -> OffDelivery {
    let again = if for_good {
        None
    } else {
        retransmitted(arrival)
    };
    match again {
        Some(later) => OffDelivery::Retransmitted(later),
        None => connection_timeout(arrival).map_or(OffDelivery::Lost, OffDelivery::TimedOut),
    }
}
