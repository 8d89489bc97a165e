//! Job control: signals for processes in the background that use their controlling terminal, and
//! for those whose terminal or whose controlling process is gone.

use crate::errno::Errno;
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::kernel::{Kernel, Stop};
use crate::objects::{Object, terminal, terminal_mut};
use crate::process::ExitState;
use crate::signals::{IGNORE, SIGCONT, SIGHUP, SIGTTIN, bit};
use crate::wait::WaitCondition;

impl Kernel<'_, '_> {
    /// Checks whether the caller may use a terminal: a process in the background of its own
    /// controlling terminal gets this signal, with its whole group, and tries again afterwards.
    pub fn check_foreground(&mut self, id: ObjectId, signal: i32) -> Result<(), Stop> {
        let terminal = terminal(self.host, id).ok_or(Errno::EIO)?;
        let (session, foreground) = (terminal.session, terminal.foreground);
        let process = self.process();
        let group = process.group;
        if session != Some(process.session) || foreground == 0 || foreground == group {
            return Ok(());
        }
        let is_blocked = self.task().blocked & bit(signal) != 0;
        if is_blocked || process.actions[signal as usize - 1].handler == IGNORE {
            return match signal {
                SIGTTIN => Err(Errno::EIO.into()),
                _ => Ok(()),
            };
        }
        if self.host.is_orphaned(group) {
            return Err(Errno::EIO.into());
        }
        self.host.send_to_group(group, signal);
        Err(self.wait_restartable(WaitCondition::SignalTaken, "the foreground of a terminal"))
    }
}

impl HostState {
    /// A session ends, or gives up its controlling terminal: the foreground group is told.
    pub fn give_up_terminal(&mut self, session: u32, is_exit: bool) {
        let Some(id) = self.terminal_of_session(session) else {
            return;
        };
        let Some(foreground) = self.release_terminal(id) else {
            return;
        };
        self.send_to_group(foreground, SIGHUP);
        if !is_exit {
            self.send_to_group(foreground, SIGCONT);
        }
    }

    /// The master side of a terminal is closed: the leader of its session is told.
    pub fn hang_up(&mut self, id: ObjectId) {
        let leader = terminal(self, id).and_then(|terminal| terminal.session);
        self.release_terminal(id);
        if let Some(leader) = leader {
            self.send_to_process(leader, SIGHUP);
            self.send_to_process(leader, SIGCONT);
        }
    }

    /// Takes a terminal away from its session. Returns the foreground group, if there is one.
    fn release_terminal(&mut self, id: ObjectId) -> Option<u32> {
        let terminal = terminal_mut(self, id)?;
        terminal.session = None;
        let foreground = std::mem::take(&mut terminal.foreground);
        (foreground != 0).then_some(foreground)
    }

    /// A process has exited, or its children have got another parent: groups that nobody can
    /// continue any more are told if one of their processes is stopped.
    pub fn continue_orphans(&mut self, groups: &[u32]) {
        for group in groups {
            let mut members = self.processes.iter().filter(|process| {
                process.group == *group && matches!(process.exit_state, ExitState::Alive)
            });
            if members.any(|member| member.stopped.is_some()) && self.is_orphaned(*group) {
                self.send_to_group(*group, SIGHUP);
                self.send_to_group(*group, SIGCONT);
            }
        }
    }

    /// The groups that may be orphaned when a process exits: those that it controls, and its own.
    pub fn groups_controlled_by(&self, pid: u32) -> Vec<u32> {
        let Some(exiting) = self.process_by_pid(pid) else {
            return Vec::new();
        };
        let children = self.processes.iter().filter(|child| {
            child.parent == pid && child.session == exiting.session && child.group != exiting.group
        });
        let mut groups: Vec<u32> = children.map(|child| child.group).collect();
        let is_controlled = self.process_by_pid(exiting.parent).is_some_and(|parent| {
            parent.group != exiting.group && parent.session == exiting.session
        });
        groups.extend(is_controlled.then_some(exiting.group));
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// Sends a signal from the kernel to a process group.
    pub fn send_to_group(&mut self, group: u32, signal: i32) {
        let members = self
            .processes
            .iter()
            .filter(|process| process.group == group);
        let members: Vec<u32> = members.map(|process| process.pid).collect();
        for pid in members {
            self.send_to_process(pid, signal);
        }
    }

    /// The controlling terminal of a session.
    pub fn terminal_of_session(&self, session: u32) -> Option<ObjectId> {
        let mut objects = self.objects.iter();
        let found = objects.find(|(_, object)| match object {
            Object::Terminal(terminal) => terminal.session == Some(session),
            _ => false,
        });
        found.map(|(id, _)| ObjectId(id))
    }
}
