//! Process descriptors (`pidfd`): readable when the process has exited.

use super::{Object, Open, Operations, event};
use crate::host::HostState;
use crate::process::Life;
use crate::wait::Hope;

/// Operations of a pidfd.
pub const OPERATIONS: Operations = Operations {
    mode: 0o600,
    readiness,
    hope,
    ..Operations::CLOSED
};

/// The pid of a pidfd.
pub fn process_of(host: &HostState, open: Open<'_>) -> Option<u32> {
    match host.objects.get(open.object.0) {
        Some(Object::Process(pid)) => Some(*pid),
        _ => None,
    }
}

fn readiness(host: &HostState, open: Open<'_>) -> u16 {
    let process = process_of(host, open).and_then(|pid| host.process_by_pid(pid));
    match process {
        Some(process) if matches!(process.life, Life::Running) => 0,
        _ => event::IN | event::READ_NORMAL,
    }
}

fn hope(_: &HostState, _: Open<'_>, _: u16) -> Hope {
    Hope::None
}
