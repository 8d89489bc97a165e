//! State merging: joins two states of a host that have the same kernel tables.

use everett_vm::Merge;
use triomphe::Arc;

use crate::host::{Host, HostState};

/// Whether the kernel tables are the same as in the state `since`. The caller holds `since`, so
/// every system call and every signal copies the state of its task before it changes it: shared
/// pointers mean that nothing has changed.
fn is_unchanged(now: &HostState, since: &HostState) -> bool {
    let tasks = now.tasks.iter().zip(&since.tasks);
    let processes = now.processes.iter().zip(&since.processes);
    now.tasks.len() == 1
        && since.tasks.len() == 1
        && now.processes.len() == since.processes.len()
        && tasks
            .into_iter()
            .all(|(now, since)| Arc::ptr_eq(now, since))
        && processes
            .into_iter()
            .all(|(now, since)| Arc::ptr_eq(now, since))
        && Arc::ptr_eq(&now.notices, &since.notices)
        && now.clock_ns == since.clock_ns
        && now.next_pid == since.next_pid
        && now.printed == since.printed
        && now.random == since.random
        && now.waits == since.waits
        && now.schedule.running == since.schedule.running
        && now.schedule.due == since.schedule.due
        && now.schedule.calls == since.schedule.calls
        && now.schedule.random == since.schedule.random
        && now.schedule.preemptions == since.schedule.preemptions
}

impl Host {
    /// Merges two states that forked from `since`, have made no system calls since then, and are at
    /// the same program location. `None` if they are not, or if they do not have the same objects
    /// in memory.
    pub fn merged(&self, other: &Host, since: &Host, merge: &mut Merge<'_>) -> Option<Host> {
        let is_same = is_unchanged(&self.state, &since.state)
            && is_unchanged(&other.state, &since.state)
            && self.memories.len() == other.memories.len()
            && self.threads.len() == 1
            && other.threads.len() == 1;
        if !is_same {
            return None;
        }
        let memories = self.memories.iter().zip(&other.memories);
        let memories: Option<Vec<_>> = memories
            .map(|(one, other)| merge.memory(one, other))
            .collect();
        let thread = merge.thread(&self.threads[0], &other.threads[0])?;
        let mut state = self.state.clone();
        state.instructions = state.instructions.max(other.state.instructions);
        let quantum = other.state.schedule.quantum;
        state.schedule.quantum = state.schedule.quantum.min(quantum);
        Some(Host {
            memories: memories?,
            threads: vec![Arc::new(thread)],
            state,
        })
    }
}
