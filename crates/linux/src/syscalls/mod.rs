//! System call handlers, one file for each family. The row of a handler in the system call table is
//! in the same file.

mod attributes;
pub(crate) mod bootstrap;
mod capabilities;
mod clock_adjustment;
mod control;
mod copying;
mod descriptors;
mod epoll;
mod events;
mod execution;
mod extended;
mod fifos;
mod futex;
mod groups;
mod identity;
mod inotify;
mod input_output;
mod interval_timers;
mod ipc;
mod links;
mod listing;
mod locks;
pub(crate) mod memory;
mod message_queues;
pub(crate) mod own;
mod paths;
mod pidfd;
mod pipes;
mod poll;
mod privileged;
mod process;
mod scheduling;
mod settings;
pub(crate) mod signals;
mod socket_control;
mod socket_ioctl;
mod socket_messages;
mod socket_options;
pub(crate) mod sockets;
mod splice;
mod terminals;
mod time;
mod users;
mod waiting;

use std::sync::LazyLock;

use crate::table::{Row, property};

/// All families.
pub const FAMILIES: &[&[Row]] = &[
    attributes::ROWS,
    capabilities::ROWS,
    clock_adjustment::ROWS,
    copying::ROWS,
    descriptors::ROWS,
    extended::ROWS,
    epoll::ROWS,
    events::ROWS,
    futex::ROWS,
    identity::ROWS,
    inotify::ROWS,
    input_output::ROWS,
    links::ROWS,
    listing::ROWS,
    locks::ROWS,
    ipc::ROWS,
    memory::ROWS,
    message_queues::ROWS,
    paths::ROWS,
    pipes::ROWS,
    poll::ROWS,
    execution::ROWS,
    privileged::ROWS,
    process::ROWS,
    scheduling::ROWS,
    signals::ROWS,
    socket_messages::ROWS,
    socket_options::ROWS,
    sockets::ROWS,
    interval_timers::ROWS,
    users::ROWS,
    waiting::ROWS,
    control::ROWS,
    pidfd::ROWS,
    splice::ROWS,
    time::ROWS,
];

static BY_NUMBER: LazyLock<Vec<Option<&'static Row>>> = LazyLock::new(|| {
    let highest = rows().map(|row| row.number as usize).max();
    let mut table = vec![None; highest.map_or(0, |highest| highest + 1)];
    for row in rows() {
        table[row.number as usize] = Some(row);
    }
    table
});

/// Whether a system call only reads a clock; `None` for `sched_yield`, which polling loops combine
/// with clock readings.
pub fn only_reads_clock(number: u64) -> Option<bool> {
    match row(number) {
        Some(row) if row.has(property::YIELDS) => None,
        row => Some(row.is_some_and(|row| row.has(property::READS_CLOCK))),
    }
}

/// All rows.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The row of a system call number.
pub fn row(number: u64) -> Option<&'static Row> {
    let number = usize::try_from(number).ok()?;
    if let Some(own) = number.checked_sub(everett_vm::HYPERCALL_BASE as usize) {
        let own_or_bootstrap = own::ROWS.get(own);
        return own_or_bootstrap
            .or_else(|| bootstrap::ROWS.get(own.checked_sub(bootstrap::FIRST)?));
    }
    BY_NUMBER.get(number).copied().flatten()
}
