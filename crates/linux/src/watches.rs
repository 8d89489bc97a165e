//! Watched variables: data that a scenario names and that the program does not expose itself. The
//! host samples it whenever its first process is about to make a system call, which is the same
//! point for bitcode and native programs.

use everett_vm::Buffer;
use triomphe::Arc;

use crate::config::Watch;
use crate::host::Origin;
use crate::kernel::Kernel;

impl Kernel<'_, '_> {
    /// Samples the watched variables. Returns `true` if one has changed and
    /// the driver of the host must know.
    pub(crate) fn sample_watches(&mut self) -> bool {
        if self.host.watches.is_empty() || self.process().pid != self.host.options.first_pid {
            return false;
        }
        let watches = Arc::clone(&self.host.watches);
        let image = self.process().image;
        let mut is_changed = false;
        for watch in watches.iter().filter(|watch| watch.image == image) {
            let found = self.find_watched(watch);
            let known = self.host.exposed.get(&watch.name);
            match (found, known) {
                (None, None) => continue,
                (Some((_, new)), Some(old)) if new == **old => continue,
                (Some((at, new)), _) => {
                    let shown = Arc::make_mut(&mut self.host.exposed);
                    shown.insert(watch.name.clone(), Arc::new(new));
                    self.note_origin(&watch.name, at, watch.len);
                }
                (None, Some(_)) => {
                    Arc::make_mut(&mut self.host.exposed).remove(&watch.name);
                }
            }
            is_changed = true;
        }
        if is_changed {
            self.host.wire.mark_exposed();
        }
        is_changed
    }

    /// Records the origin of data that is exposed under a name, if writes are logged.
    pub(crate) fn note_origin(&mut self, name: &(String, String), address: u64, len: u64) {
        if !self.vm.options.log_writes {
            return;
        }
        let origin = Origin {
            written: self.vm.memory.writes.of(address, len),
            observed: self.vm.stack(),
        };
        Arc::make_mut(&mut self.host.origins).insert(name.clone(), origin);
    }

    /// Finds the data, with its address; `None` if a pointer on the way is invalid.
    fn find_watched(&mut self, watch: &Watch) -> Option<(u64, Buffer)> {
        const POINTER: u64 = 8;
        let mut start = watch.address;
        for at in &watch.through {
            let pointer = self.look_at(start.checked_add(*at)?, POINTER)?;
            if pointer.has_symbolic(0, pointer.len()) {
                let (_, key) = &watch.name;
                let warning = format!("{key} cannot be sampled: a pointer on its path is symbolic");
                self.host.warn(warning);
                return None;
            }
            start = u64::from_le_bytes(pointer.bytes().try_into().ok()?);
        }
        let start = start.checked_add(watch.offset)?;
        Some((start, self.look_at(start, watch.len)?))
    }

    /// A copy of guest memory; `None` if it is not mapped, which is not a bug of the program.
    fn look_at(&mut self, address: u64, len: u64) -> Option<Buffer> {
        if let Some(guest) = &mut self.guest {
            let mut bytes = vec![0; usize::try_from(len).ok()?];
            let is_there = guest.read(address, &mut bytes);
            return is_there.then(|| Buffer::with_bytes(&bytes, bytes.len()));
        }
        let object = self.vm.memory.object_at(address, len)?;
        Some(object.snapshot(address - object.start, len))
    }
}

impl crate::Host {
    /// Whether the host has watched variables.
    pub fn is_watched(&self) -> bool {
        !self.state.watches.is_empty()
    }

    /// Sets the addresses of watched variables in a native program, which differ from those of the
    /// bitcode. `place` maps a symbol to its address. Fails with the first unknown symbol.
    pub fn place_watches(&mut self, place: impl Fn(&str) -> Option<u64>) -> Result<(), String> {
        for watch in Arc::make_mut(&mut self.state.watches) {
            watch.address = place(&watch.symbol).ok_or_else(|| watch.symbol.clone())?;
        }
        Ok(())
    }
}
