//! Generates the files in `/proc/PID/fdinfo`.

use std::fmt::Write;

use crate::files::{OpenFlags, Target};
use crate::host::HostState;
use crate::ids::ObjectId;
use crate::objects::{Epoll, Object, TimerDescriptor};
use crate::process::ExitState;

const SECOND: u64 = 1_000_000_000;
/// The id of the only mount.
const MOUNT: u32 = 21;

impl HostState {
    /// The offset, flags and file behind a descriptor, and what is particular to its kind.
    pub(crate) fn descriptor_text(&self, pid: u32, fd: i32) -> String {
        let process = self.process_by_pid(pid);
        let Some(descriptor) = process.and_then(|process| process.descriptors.get(fd).ok()) else {
            return String::new();
        };
        let Some(open) = self.files.description(descriptor.description) else {
            return String::new();
        };
        let mut flags = open.flags.0 & !OpenFlags::CLOSE_ON_EXEC;
        if descriptor.close_on_exec {
            flags |= OpenFlags::CLOSE_ON_EXEC;
        }
        let mut text = format!(
            "pos:\t{}\nflags:\t0{flags:o}\nmnt_id:\t{MOUNT}\nino:\t{}\n",
            open.offset,
            self.status(open.target).inode
        );
        if let Target::Object(id) = open.target {
            text.push_str(&self.object_text(id));
        }
        text
    }

    fn object_text(&self, id: ObjectId) -> String {
        match self.objects.get(id.0) {
            Some(Object::Process(pid)) => {
                let process = self.process_by_pid(*pid);
                let lives = process.is_some_and(|one| !matches!(one.exit_state, ExitState::Reaped));
                let shown = if lives { i64::from(*pid) } else { -1 };
                format!("Pid:\t{shown}\nNSpid:\t{shown}\n")
            }
            Some(Object::Signals(mask)) => format!("sigmask:\t{mask:016x}\n"),
            Some(Object::EventCounter(counter)) => format!(
                "eventfd-count: {:16x}\neventfd-id: {}\neventfd-semaphore: {}\n",
                counter.count,
                id.0,
                u32::from(counter.is_semaphore)
            ),
            Some(Object::Timer(timer)) => self.timer_text(timer),
            Some(Object::Epoll(epoll)) => self.watches_text(epoll),
            _ => String::new(),
        }
    }

    fn timer_text(&self, timer: &TimerDescriptor) -> String {
        let running = timer.running.and_then(|number| self.timers.get(number));
        let left = running.map_or(0, |running| running.at_ns.saturating_sub(self.clock_ns));
        let interval = timer.interval_ns;
        let flags = running.map_or(0, |running| u32::from(running.on_wall_clock))
            | u32::from(timer.cancels) << 1;
        format!(
            "clockid: {}\nticks: {}\nsettime flags: 0{flags:o}\nit_value: ({}, {})\n\
             it_interval: ({}, {})\n",
            timer.clock,
            timer.fired,
            left / SECOND,
            left % SECOND,
            interval / SECOND,
            interval % SECOND
        )
    }

    fn watches_text(&self, epoll: &Epoll) -> String {
        let mut text = String::new();
        for ((open, fd), watch) in epoll.watches() {
            let Some(open) = self.files.description(*open) else {
                continue;
            };
            let status = self.status(open.target);
            let _ = writeln!(
                text,
                "tfd: {fd:8} events: {:8x} data: {:16x}  pos:{} ino:{:x} sdev:{:x}",
                watch.events, watch.data, open.offset, status.inode, status.device
            );
        }
        text
    }
}
