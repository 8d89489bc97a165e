//! Directory listings: `getdents` and `getdents64`.

use everett_vm::Value;

use crate::errno::Errno;
use crate::files::{InodeKind, OpenFlags, Target};
use crate::kernel::{Answer, Kernel};
use crate::objects::event;
use crate::table::ArgKind::{Buffer, Fd, Int};
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("getdents", 78, &[Fd, Buffer, Int], &[Errno::EIO], getdents),
    Row::new(
        "getdents64",
        217,
        &[Fd, Buffer, Int],
        &[Errno::EIO],
        getdents64,
    ),
];

fn getdents(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.list(call.int(0), call.args[1], call.args[2], |entry| {
        let head = 18;
        let size = (head + entry.name.len() + 2).next_multiple_of(8);
        let mut bytes = Vec::with_capacity(size);
        bytes.extend_from_slice(&entry.inode.to_le_bytes());
        bytes.extend_from_slice(&entry.next.to_le_bytes());
        bytes.extend_from_slice(&(size as u16).to_le_bytes());
        bytes.extend_from_slice(entry.name);
        bytes.resize(size - 1, 0);
        bytes.push(entry.kind);
        bytes
    })
}

fn getdents64(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.list(call.int(0), call.args[1], call.args[2], |entry| {
        let head = 19;
        let size = (head + entry.name.len() + 1).next_multiple_of(8);
        let mut bytes = Vec::with_capacity(size);
        bytes.extend_from_slice(&entry.inode.to_le_bytes());
        bytes.extend_from_slice(&entry.next.to_le_bytes());
        bytes.extend_from_slice(&(size as u16).to_le_bytes());
        bytes.push(entry.kind);
        bytes.extend_from_slice(entry.name);
        bytes.resize(size, 0);
        bytes
    })
}

/// An encoded directory entry (`struct linux_dirent64`).
struct Listed<'n> {
    inode: u64,
    name: &'n [u8],
    /// Position of the next entry.
    next: u64,
    /// `DT_REG` and so on.
    kind: u8,
}

impl Kernel<'_, '_> {
    fn list(
        &mut self,
        fd: i32,
        address: u64,
        room: u64,
        encode: impl Fn(Listed<'_>) -> Vec<u8>,
    ) -> Answer {
        self.usable(fd)?;
        let (descriptor, description) = self.description(fd)?;
        let Target::Inode(id) = description.target else {
            return Err(Errno::ENOTDIR.into());
        };
        if self.host.files.tree.is_in_proc(id) {
            let (pid, tid) = (self.process().pid, self.task().tid);
            self.host.refresh_proc(pid, tid);
        }
        let tree = &self.host.files.tree;
        let directory = tree.directory(id).ok_or(Errno::ENOTDIR)?;
        if tree.get(id).links == 0 {
            return Err(Errno::ENOENT.into());
        }
        let entries = directory.listed_from(id, description.offset);
        let room = (room as u32) as usize;
        let (mut bytes, mut next) = (Vec::new(), description.offset);
        for (name, id, position) in &entries {
            let entry = encode(Listed {
                inode: u64::from(id.0),
                name,
                next: position + 1,
                kind: kind(&tree.get(*id).kind),
            });
            if bytes.len() + entry.len() > room {
                break;
            }
            bytes.extend(entry);
            next = position + 1;
        }
        if bytes.is_empty() && !entries.is_empty() {
            return Err(Errno::EINVAL.into());
        }
        self.write_bytes(address, &bytes)?;
        self.note_access(id, description.flags);
        self.host.notify(id, crate::objects::happened::ACCESS);
        if let Some(open) = self.host.files.description_mut(descriptor.description) {
            open.offset = next;
        }
        Ok(Value::concrete(bytes.len() as u64))
    }

    /// Updates the access time of a file that is open with these flags.
    pub fn note_access(&mut self, id: crate::ids::InodeId, flags: OpenFlags) {
        if let Some(events) = self.host.files.tree.get(id).polled
            && events & (event::ERROR | event::PRIORITY) != 0
        {
            // Its contents are known now.
            let left = events & !(event::ERROR | event::PRIORITY);
            self.host.files.tree.get_mut(id).polled = Some(left);
        }
        if flags.has(OpenFlags::NO_ACCESS_TIME) {
            return;
        }
        let now_ns = self.wall_clock_ns();
        if let Some(time) = self.host.files.tree.get(id).access_to_note(now_ns) {
            self.host.files.tree.get_mut(id).accessed_ns = time;
        }
    }
}

/// `DT_REG` and so on.
fn kind(node: &InodeKind) -> u8 {
    match node {
        InodeKind::Fifo => 1,
        InodeKind::Device(device) if device.is_block() => 6,
        InodeKind::Device(_) => 2,
        InodeKind::Directory(_) => 4,
        InodeKind::Regular(_) | InodeKind::Generated(_) => 8,
        InodeKind::Link(_) | InodeKind::Magic(_) => 10,
        InodeKind::Socket => 12,
    }
}
