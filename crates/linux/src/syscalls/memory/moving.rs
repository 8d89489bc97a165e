//! `mremap` and `brk`: grow, shrink and move mappings and the heap.

use everett_vm::{Backing, Mapping, MappingTraits, Placement, Value};

use super::{ADDRESSES, PAGE_SIZE, Space, aligned, whole_pages};
use crate::errno::Errno;
use crate::file_mappings::holders;
use crate::kernel::{Answer, Kernel, Stop};
use crate::process::Break;
use crate::table::Call;

const MAY_MOVE: u64 = 1;
const FIXED: u64 = 2;
const DONT_UNMAP: u64 = 4;

/// Arguments of `mremap`.
#[derive(Copy, Clone)]
struct Move {
    old: u64,
    old_size: u64,
    new_size: u64,
    flags: u64,
    target: u64,
}

pub(super) fn mremap(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let [old, old_len, new_len, flags, target, _] = call.args;
    let sizes = (whole_pages(old_len), whole_pages(new_len));
    let (Some(old_size), Some(new_size)) = sizes else {
        return Err(Errno::EINVAL.into());
    };
    let wrong_flags = flags & !(MAY_MOVE | FIXED | DONT_UNMAP) != 0
        || flags & FIXED != 0 && flags & MAY_MOVE == 0
        || flags & DONT_UNMAP != 0 && (flags & MAY_MOVE == 0 || old_size != new_size);
    if wrong_flags || !old.is_multiple_of(PAGE_SIZE) || new_size == 0 {
        return Err(Errno::EINVAL.into());
    }
    let request = Move {
        old,
        old_size,
        new_size,
        flags,
        target,
    };
    let mapping = kernel.vm.memory.mapping_at(old).ok_or(Errno::EFAULT)?;
    if flags & FIXED != 0 {
        aligned(target)?;
        let end = target.checked_add(new_size);
        let apart = target >= old.saturating_add(old_size) || end.is_some_and(|end| end <= old);
        if end.is_none_or(|end| end > ADDRESSES) || !apart {
            return Err(Errno::EINVAL.into());
        }
    }
    if old_size == 0 {
        return kernel.map_again(mapping, request);
    }
    if new_size < old_size {
        let stays = flags & FIXED == 0;
        let range = kernel.vm.memory.mappings_in(old, old_size);
        if range.is_none_or(|all| all.is_empty()) {
            return Err(Errno::EFAULT.into());
        }
        kernel.unmap(old + new_size, old_size - new_size);
        if stays {
            return Ok(Value::concrete(old));
        }
        let shrunk = Move {
            old_size: new_size,
            ..request
        };
        return kernel.move_mapping(mapping, shrunk);
    }
    if old_size > mapping.end() - old {
        return Err(Errno::EFAULT.into());
    }
    if new_size == old_size && flags & (FIXED | DONT_UNMAP) == 0 {
        return Ok(Value::concrete(old));
    }
    if flags & (FIXED | DONT_UNMAP) == 0 {
        if let Some(done) = kernel.grow_in_place(mapping, request)? {
            return Ok(done);
        }
        if flags & MAY_MOVE == 0 {
            return Err(Errno::ENOMEM.into());
        }
    }
    kernel.move_mapping(mapping, request)
}

pub(super) fn brk(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let start = everett_vm::BREAK_START;
    let current = kernel.process().program_break;
    let current = current.unwrap_or(Break { start, end: start });
    let wanted = call.args[0];
    let unchanged = Ok(Value::concrete(current.end));
    if wanted < start || wanted > everett_vm::BREAK_END {
        return unchanged;
    }
    let pages_end = |end: u64| end.next_multiple_of(PAGE_SIZE);
    let (from, to) = (pages_end(current.end), pages_end(wanted));
    if to > from {
        let free = kernel.vm.memory.is_free(from, to - from);
        let more = Space::new(to - from, true);
        let fits = kernel.check_space(more, Space::default(), false).is_ok()
            && !kernel.process().limits.forbids_break();
        if !free || !fits || kernel.check_heap(to - from).is_err() {
            return unchanged;
        }
        let traits = MappingTraits {
            allocated: kernel.vm.stack(),
            ..MappingTraits::PLAIN
        };
        let memory = &mut kernel.vm.memory;
        if memory
            .map(Placement::At(from), to - from, traits, None)
            .is_none()
        {
            return unchanged;
        }
    } else if to < from {
        kernel.unmap(to, from - to);
    }
    kernel.process_mut().program_break = Some(Break { start, end: wanted });
    Ok(Value::concrete(wanted))
}

/// Traits of a mapping at an offset.
fn traits_at(mapping: &Mapping, bytes: u64) -> MappingTraits {
    let pages = bytes / PAGE_SIZE;
    let backing = match mapping.traits.backing {
        Backing::Anonymous => Backing::Anonymous,
        Backing::Shared { file, page } => Backing::Shared {
            file,
            page: page + pages,
        },
        Backing::Private { file, page } => Backing::Private {
            file,
            page: page + pages,
        },
    };
    MappingTraits {
        backing,
        ..mapping.traits
    }
}

impl Kernel<'_, '_> {
    /// Grows a mapping in place, if the addresses after it are free.
    fn grow_in_place(&mut self, mapping: Mapping, request: Move) -> Result<Option<Value>, Stop> {
        let end = request.old + request.old_size;
        let more = request.new_size - request.old_size;
        let room = end.checked_add(more).is_some_and(|end| end <= ADDRESSES);
        if end != mapping.end() || !room || !self.vm.memory.is_free(end, more) {
            return Ok(None);
        }
        self.check_growth(&mapping, more)?;
        let traits = traits_at(&mapping, end - mapping.start);
        let view = self.view_for(&mapping, request.old);
        let memory = &mut self.vm.memory;
        let grown = memory.map(Placement::At(end), more, traits, view);
        Ok(grown.map(|_| Value::concrete(request.old)))
    }

    /// Checks that a mapping may grow by `more` bytes.
    fn check_growth(&mut self, mapping: &Mapping, more: u64) -> Result<(), Stop> {
        let locked = &self.process().locked_memory;
        let is_locked = !locked.all && locked.overlaps(mapping.start, mapping.end());
        let space = Space::new(more, mapping.traits.is_data());
        self.check_space(space, Space::default(), is_locked)?;
        match mapping.traits.counted {
            true => self.check_heap(more),
            false => Ok(()),
        }
    }

    fn view_for(&self, mapping: &Mapping, address: u64) -> Option<everett_vm::FileView> {
        let file = mapping.traits.backing.file()?;
        let region = self.vm.memory.near(address)?.region()?;
        let mut views = region.files().iter();
        views.find(|view| view.file == file).cloned()
    }

    /// Finds or frees the addresses that a mapping moves to.
    fn free_addresses(&mut self, mapping: &Mapping, request: Move) -> Result<u64, Stop> {
        let memory = &mut self.vm.memory;
        if request.flags & FIXED != 0 {
            let (target, size) = (request.target, request.new_size);
            if !memory.is_free(target, size) && !memory.can_replace(target, size) {
                return Err(Errno::ENOMEM.into());
            }
            self.unmap(target, size);
            return Ok(target);
        }
        let traits = traits_at(mapping, request.old - mapping.start);
        let view = self.view_for(mapping, request.old);
        let memory = &mut self.vm.memory;
        let placed = memory.map(Placement::Anywhere, request.new_size, traits, view);
        let target = placed.ok_or(Errno::ENOMEM)?;
        Ok(target)
    }

    fn move_mapping(&mut self, mapping: Mapping, request: Move) -> Answer {
        let more = request.new_size - request.old_size;
        self.check_growth(&mapping, more)?;
        let before = holders(self.vm.memory);
        let target = self.free_addresses(&mapping, request)?;
        let memory = &mut self.vm.memory;
        // Pages after the old end are new; the old pages move.
        memory.unmap(target, request.new_size, None);
        let keep = request.flags & DONT_UNMAP != 0;
        let moved = memory.relocate(request.old, request.old_size, target, keep);
        if moved.is_some() && more > 0 {
            let end = request.old + request.old_size;
            let traits = traits_at(&mapping, end - mapping.start);
            let view = self.view_for(&mapping, target);
            let memory = &mut self.vm.memory;
            let at = Placement::At(target + request.old_size);
            memory.map(at, more, traits, view);
        }
        self.host.update_holders(&before, self.vm.memory);
        moved.ok_or(Errno::ENOMEM)?;
        Ok(Value::concrete(target))
    }

    /// Handles an old size of zero: maps the same shared pages once more.
    fn map_again(&mut self, mapping: Mapping, request: Move) -> Answer {
        if !matches!(mapping.traits.backing, Backing::Shared { .. }) {
            return Err(Errno::EINVAL.into());
        }
        if request.flags & MAY_MOVE == 0 {
            return Err(Errno::ENOMEM.into());
        }
        let more = Space::new(request.new_size, false);
        self.check_space(more, Space::default(), false)?;
        let before = holders(self.vm.memory);
        let traits = traits_at(&mapping, request.old - mapping.start);
        let view = self.view_for(&mapping, request.old);
        let placement = match request.flags & FIXED {
            0 => Placement::Anywhere,
            _ => Placement::At(self.free_addresses(&mapping, request)?),
        };
        let memory = &mut self.vm.memory;
        let start = memory.map(placement, request.new_size, traits, view);
        self.host.update_holders(&before, self.vm.memory);
        Ok(Value::concrete(start.ok_or(Errno::ENOMEM)?))
    }
}
