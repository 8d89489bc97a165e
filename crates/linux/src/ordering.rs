//! The happens-before edges of system calls, for data race detection: what a thread did before it
//! wrote to a pipe happens before what another thread does after it has read from the pipe.

use crate::files::Target;
use crate::kernel::Kernel;
use crate::table::property::{ACQUIRES_ALL, SIGNALS};
use crate::table::{ArgKind, Row};

/// The happens-before edges of a call.
#[derive(Default)]
pub(crate) struct Ordering {
    /// The objects that the call uses.
    objects: Vec<u64>,
    /// `Some` if the call acquires from all objects; `true` if it also releases to them.
    all: Option<bool>,
}

impl Kernel<'_, '_> {
    /// Determines the edges of a call before it runs: its descriptors may be closed afterwards.
    pub(crate) fn ordering_of(&self, row: &Row, args: &[u64; 6]) -> Ordering {
        /// The two ends of a connection are different objects, so all sockets count as one.
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
            all: match row {
                row if row.has(SIGNALS) => Some(true),
                row if row.has(ACQUIRES_ALL) => Some(false),
                _ => None,
            },
        }
    }

    /// Adds the happens-before edges of a call that has succeeded.
    pub(crate) fn order_threads(&mut self, ordering: &Ordering) {
        for object in &ordering.objects {
            self.vm.order_by_object(*object);
        }
        if let Some(releases) = ordering.all {
            self.vm.order_by_all_objects(releases);
        }
    }
}
