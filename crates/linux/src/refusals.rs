//! Refusals: requests that the model rejects or ignores although Linux would fulfil them. Handlers
//! record each one with [`Kernel::refuse`]. No refusal may be silent, because a program that fails
//! early for this reason would look correct.

use everett_vm::CallSite;
use triomphe::Arc;

use crate::host::{HostState, Refusal};
use crate::kernel::Kernel;

/// Maximum number of different refusals that a host keeps: a program can make new requests without
/// end.
const MAX_REFUSALS: usize = 64;

impl Kernel<'_, '_> {
    /// Records that the model does not do what the current call requests, although Linux would.
    pub fn refuse(&mut self, call: &str, what: impl Into<String>) {
        let sites = self.vm.innermost_sites();
        self.refuse_at(call, what.into(), sites);
    }

    /// Records the requests that the vm has declined.
    pub(crate) fn take_declined(&mut self) {
        for declined in std::mem::take(&mut self.vm.declined) {
            self.refuse_at(declined.call, declined.what.to_owned(), declined.sites);
        }
    }

    fn refuse_at(&mut self, call: &str, what: String, sites: Vec<CallSite>) {
        self.host.add_refusal(call, what, sites);
    }
}

impl HostState {
    /// Records that the model does not do what Linux would, outside a system call.
    pub(crate) fn note_refusal(&mut self, call: &str, what: &str) {
        self.add_refusal(call, what.to_owned(), Vec::new());
    }

    fn add_refusal(&mut self, call: &str, what: String, sites: Vec<CallSite>) {
        let all = &mut Arc::make_mut(&mut self.notices).refusals;
        let is_same = |one: &Refusal| one.call == call && one.what == what && one.sites == sites;
        match all.iter().position(is_same) {
            Some(at) => all[at].count += 1,
            None if all.len() < MAX_REFUSALS => all.push(Refusal {
                call: call.to_owned(),
                what,
                sites,
                count: 1,
            }),
            None => {}
        }
    }
}
