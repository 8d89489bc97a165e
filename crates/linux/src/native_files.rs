//! Files that native processes map: the real kernel has the mappings, the model has what the files hold, and whoever
//! carries the calls out keeps the two the same.

use everett_vm::{ExecContext, Value};

use crate::files::{DescriptionId, InodeId, Node};
use crate::host::Host;
use crate::kernel::{Kernel, Stop};
use crate::syscalls::memory::{MapRequest, wanted_mapping};
use crate::table::{Answer, Call};
use crate::{Bytes, Errno};

/// Where shared memory of System V goes that may lie anywhere: far from all that the real kernel places by itself.
const FIRST_SEGMENT: u64 = 0x6000_0000_0000;

/// A file that a process maps.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MappedFile {
    /// Which.
    pub inode: u32,
    /// The open file that keeps it.
    pub holder: u32,
    /// It may be written through the mapping.
    pub may_write: bool,
}

/// What is to be done to the memory of a native process.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MemoryChange {
    /// A file is mapped, from its beginning.
    Map {
        /// Where.
        start: u64,
        /// Bytes.
        size: u64,
        /// As `mmap` has it.
        protection: u64,
        /// The file.
        file: MappedFile,
    },
    /// Nothing is mapped there any more.
    Unmap {
        /// Where.
        start: u64,
        /// Bytes.
        size: u64,
    },
}

impl Kernel<'_, '_> {
    /// A native process is to map a file that only the model knows.
    pub(crate) fn map_natively(&mut self, request: MapRequest) -> Answer {
        let Some((inode, holder, _)) = request.file else {
            return Err(Errno::EINVAL.into());
        };
        let start = match request.address {
            0 => FIRST_SEGMENT + self.host.segment_bytes,
            address => address,
        };
        // A page between two, so that who runs over the end of one faults.
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

    /// Nothing is mapped there.
    pub(crate) fn is_free(&mut self, start: u64, size: u64) -> bool {
        let Some(guest) = &mut self.guest else {
            return self.vm.memory.is_free(start, size);
        };
        let mut pages = (start..start.saturating_add(size)).step_by(everett_vm::PAGE);
        pages.all(|page| !guest.is_mapped(page))
    }

    /// What is mapped natively is to go.
    pub(crate) fn unmap_natively(&mut self, start: u64, size: u64) {
        let change = MemoryChange::Unmap { start, size };
        self.host.memory_changes.push(change);
    }
}

impl Host {
    /// The file that `mmap` with these arguments maps, as the model sees it; none for `/dev/zero`.
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
            wanted_mapping(&mut slice.kernel, &call)
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

    /// What a file holds.
    pub fn mapped_bytes(&self, inode: u32) -> Option<&Bytes> {
        match &self.state.files.tree.get(InodeId(inode)).node {
            Node::Regular(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The same for changing it.
    pub fn mapped_bytes_mut(&mut self, inode: u32) -> Option<&mut Bytes> {
        match &mut self.state.files.tree.get_mut(InodeId(inode)).node {
            Node::Regular(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The open file of a mapping can be written to.
    pub fn is_writable(&self, file: MappedFile) -> bool {
        let open = self.state.files.description(DescriptionId(file.holder));
        open.is_some_and(|open| open.flags.writable())
    }

    /// A mapping keeps its file.
    pub fn keep_mapped(&mut self, file: MappedFile) {
        self.state.files.retain(DescriptionId(file.holder));
    }

    /// A mapping is gone.
    pub fn let_go_mapped(&mut self, file: MappedFile) {
        self.state.release(DescriptionId(file.holder));
    }

    /// What the last calls want to be done to the memory of the process that made them.
    pub fn memory_changes(&mut self) -> Vec<MemoryChange> {
        std::mem::take(&mut self.state.memory_changes)
    }
}
