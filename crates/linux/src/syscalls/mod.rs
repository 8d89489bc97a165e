//! System call handlers, one file for each family. Each handler is a function with its row of the table
//! beside it.

mod attributes;
pub(crate) mod bootstrap;
mod control;
mod copying;
mod descriptors;
mod epoll;
mod events;
mod extended;
mod fifos;
mod futex;
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
mod process;
mod scheduling;
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

use crate::table::Row;

/// All families.
pub const FAMILIES: &[&[Row]] = &[
    attributes::ROWS,
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
