//! Process descriptors (`pidfd`): readable when the process has exited, hung up when it was reaped.

use super::{Object, OpenObject, Operations, event};
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::process::ExitState;
use crate::wait::WakeSource;

/// Operations of a pidfd.
pub const OPERATIONS: Operations = Operations {
    mode: 0o600,
    readiness,
    wake_source,
    ..Operations::CLOSED
};

/// Events of a pidfd whose process was reaped.
pub const REAPED: u16 = event::READING | event::HANG_UP;

/// The pid of a pidfd.
pub fn process_of(host: &HostState, open: OpenObject<'_>) -> Option<u32> {
    match host.objects.get(open.object.0) {
        Some(Object::Process(pid)) => Some(*pid),
        _ => None,
    }
}

fn readiness(host: &HostState, open: OpenObject<'_>) -> u16 {
    let process = process_of(host, open).and_then(|pid| host.process_by_pid(pid));
    match process.map(|process| process.exit_state) {
        Some(ExitState::Alive) => 0,
        Some(ExitState::Zombie(_)) => event::READING,
        Some(ExitState::Reaped) | None => REAPED,
    }
}

impl HostState {
    /// Announces events of a process to the watchers of its pidfds: its exit, and that it was reaped.
    pub fn announce_exit(&mut self, pid: u32, events: u16) {
        let objects = self.objects.iter();
        let of_it =
            objects.filter(|(_, object)| matches!(object, Object::Process(of) if *of == pid));
        let of_it: Vec<u32> = of_it.map(|(id, _)| id).collect();
        for id in of_it {
            self.announce(ObjectId(id), events);
        }
    }
}

fn wake_source(_: &HostState, _: OpenObject<'_>, _: u16) -> WakeSource {
    WakeSource::None
}
