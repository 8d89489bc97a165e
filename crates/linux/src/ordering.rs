//! Which system calls order threads, for the detection of data races: what a thread did before it
//! wrote to a pipe happens before what another one does after it has read from it.

use crate::files::Target;
use crate::kernel::Kernel;
use crate::table::{ArgKind, Row};

/// Calls that may hear of any object, or of none that has a descriptor.
const ABOUT_ALL: &[&str] = &[
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "poll",
    "ppoll",
    "pselect6",
    "select",
];

/// Calls that tell others something, or hear of it, without a descriptor.
const WITHOUT_DESCRIPTOR: &[&str] = &[
    "kill",
    "msgrcv",
    "msgsnd",
    "pause",
    "pidfd_send_signal",
    "rt_sigqueueinfo",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_tgsigqueueinfo",
    "semctl",
    "semop",
    "semtimedop",
    "tgkill",
    "tkill",
];

/// How a call orders threads.
#[derive(Default)]
pub(crate) struct Ordering {
    /// The objects that it uses.
    objects: Vec<u64>,
    /// Whether it may hear of any object, and whether it tells others, too.
    all: Option<bool>,
}

impl Kernel<'_, '_> {
    /// Returns how a call will order threads. Its descriptors may be gone afterwards.
    pub(crate) fn ordering_of(&self, row: &Row, args: &[u64; 6]) -> Ordering {
        /// Sockets that are connected are different objects, so all of them count as one.
        const SOCKETS: u64 = 0;
        if !self.vm.checks_races() {
            return Ordering::default();
        }
        let descriptors = row.args.iter().zip(args);
        let descriptors = descriptors.filter(|(kind, _)| **kind == ArgKind::Fd);
        let objects = descriptors.filter_map(|(_, fd)| {
            let descriptor = self.process().descriptors.get(*fd as i32).ok()?;
            match self.host.files.description(descriptor.description)?.target {
                Target::Object(id) if self.host.socket(id).is_some() => Some(SOCKETS),
                Target::Object(id) => Some(1 + u64::from(id.0)),
                _ => None,
            }
        });
        Ordering {
            objects: objects.collect(),
            all: match row.name {
                name if WITHOUT_DESCRIPTOR.contains(&name) => Some(true),
                name if ABOUT_ALL.contains(&name) => Some(false),
                _ => None,
            },
        }
    }

    /// Orders threads by a call that has succeeded.
    pub(crate) fn order_threads(&mut self, ordering: &Ordering) {
        for object in &ordering.objects {
            self.vm.order_by_object(*object);
        }
        if let Some(releases) = ordering.all {
            self.vm.order_by_all_objects(releases);
        }
    }
}
