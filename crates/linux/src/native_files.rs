//! Files that native processes map. The real kernel holds the mappings, the model holds the
//! contents of the files, and the native driver keeps the two consistent.

use everett_vm::{Buffer, ExecContext, Value};

use crate::files::InodeKind;
use crate::guest::{MappedFile, MemoryChange};
use crate::host::Host;
use crate::ids::{DescriptionId, InodeId};
use crate::kernel::{Answer, Kernel, Stop};
use crate::syscalls::memory::{ADDRESSES, LOWEST, MapRequest, decode_mmap};
use crate::table::Call;
use crate::{Bytes, Errno};

/// The address at which System V shared memory is attached if the program names none: far from
/// everything that the real kernel maps.
const FIRST_SEGMENT: u64 = 0x6000_0000_0000;

impl Kernel<'_, '_> {
    /// Requests that a native process map a file that only the model knows.
    pub(crate) fn map_natively(&mut self, request: MapRequest) -> Answer {
        let Some((inode, holder, _)) = request.file else {
            return Err(Errno::EINVAL.into());
        };
        let start = match request.address {
            0 => FIRST_SEGMENT + self.host.segment_bytes,
            address => address,
        };
        let end = start.checked_add(request.size);
        if start < LOWEST || end.is_none_or(|end| end > ADDRESSES) {
            return Err(Errno::ENOMEM.into());
        }
        // A guard page between two segments, so that an overrun faults.
        self.host.segment_bytes += request.size + everett_vm::PAGE as u64;
        self.host.memory_changes.push(MemoryChange::Map {
            start,
            size: request.size,
            protection: request.protection,
            file: MappedFile {
                inode: inode.0,
                holder,
                may_write: request.may_write,
            },
        });
        Ok(Value::concrete(start))
    }

    /// Whether no file is mapped in a range.
    pub(crate) fn is_free(&mut self, start: u64, size: u64) -> bool {
        let Some(guest) = &mut self.guest else {
            return self.vm.memory.is_free(start, size);
        };
        let mut pages = (start..start.saturating_add(size)).step_by(everett_vm::PAGE);
        pages.all(|page| !guest.is_mapped(page))
    }

    /// Requests that a native mapping be removed.
    pub(crate) fn unmap_natively(&mut self, start: u64, size: u64) {
        let change = MemoryChange::Unmap { start, size };
        self.host.memory_changes.push(change);
    }
}

impl Host {
    /// The file that `mmap` with these arguments maps, as the model
    /// sees it; `None` for `/dev/zero`.
    pub fn file_to_map(
        &mut self,
        around: &mut ExecContext<'_>,
        args: [u64; 6],
    ) -> Result<Option<MappedFile>, Errno> {
        let call = Call {
            raw: args.map(Value::concrete),
            args,
            entry: None,
        };
        let wanted = self.with_guest(around, None, |mut slice| {
            decode_mmap(&mut slice.kernel, &call)
        });
        let request = match wanted {
            Some(Ok(request)) => request,
            Some(Err(Stop::Errno(errno))) => return Err(errno),
            _ => return Err(Errno::ENOMEM),
        };
        Ok(request.file.map(|(inode, holder, _)| MappedFile {
            inode: inode.0,
            holder,
            may_write: request.may_write,
        }))
    }

    /// The reason why a run ends whose processes write more to files through mappings than files
    /// may hold.
    pub fn full_files(&mut self) -> Option<String> {
        let bug = self.state.check_mapped_files()?;
        Some(format!("writes too much: {}", bug.message))
    }

    /// Contents of a file.
    pub fn mapped_bytes(&self, inode: u32) -> Option<&Bytes> {
        match &self.state.files.tree.get(InodeId(inode)).kind {
            InodeKind::Regular(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Stores what the running process has changed in a file through a mapping.
    pub fn write_mapped(&mut self, inode: u32, changes: &[(u64, Vec<u8>)]) {
        let id = InodeId(inode);
        let page = |at: u64| at / everett_vm::PAGE as u64;
        let ranges = changes
            .iter()
            .map(|(at, change)| (*at, change.len() as u64));
        let pages = ranges.flat_map(|(at, len)| page(at)..=page(at + len.saturating_sub(1)));
        self.state.note_mapped_writes(id, pages);
        if let InodeKind::Regular(bytes) = &mut self.state.files.tree.get_mut(id).kind {
            for (at, change) in changes {
                bytes.write(*at, &Buffer::with_bytes(change, change.len()));
            }
        }
    }

    /// Whether the open file of a mapping is writable.
    pub fn is_writable(&self, file: MappedFile) -> bool {
        let open = self.state.files.description(DescriptionId(file.holder));
        open.is_some_and(|open| open.flags.writable())
    }

    /// Retains the file of a new mapping.
    pub fn retain_mapped(&mut self, file: MappedFile) {
        self.state.files.hold(file.held());
    }

    /// Releases the file of a removed mapping.
    pub fn release_mapped(&mut self, file: MappedFile) {
        self.state.let_go(file.held());
    }

    /// Records that a process no longer has a shared mapping of a file: its next write to one is a
    /// page fault.
    pub fn forget_mapped_writes(&mut self, pid: u32, file: MappedFile) {
        let is_other = |other: InodeId| other.0 != file.inode;
        self.state.files.dirty_pages.keep(pid, is_other);
    }

    /// Takes the memory changes that the last calls of the running process requested.
    pub fn memory_changes(&mut self) -> Vec<MemoryChange> {
        std::mem::take(&mut self.state.memory_changes)
    }
}
