//! File status, as `stat` and `statx` report it.

use super::description::Target;
use super::inode::InodeKind;
use super::tree::{PROC, Tree};
use crate::host::HostState;
use crate::ids::InodeId;
use crate::objects::Object;
use crate::objects::message_queue::MessageQueue;

const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
const BLOCK_DEVICE: u32 = 0o060_000;
const PIPE: u32 = 0o010_000;
const SOCKET: u32 = 0o140_000;
const BLOCK: u64 = 4096;
const SECOND_NS: i64 = 1_000_000_000;

/// File status.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// Device that contains the file.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Number of hard links.
    pub links: u64,
    /// Type and permission bits.
    pub mode: u32,
    /// Owner's user id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Device number, for device files.
    pub represents: (u32, u32),
    /// Size in bytes.
    pub size: u64,
    /// Times of last access, modification and status change, in nanoseconds since 1970.
    pub times_ns: [i64; 3],
    /// Time of creation, if the file system knows it.
    pub born_ns: Option<i64>,
}

impl HostState {
    /// Status of the target of an open file description.
    pub fn status(&self, target: Target) -> Status {
        match target {
            Target::Inode(id) => match self.files.tree.get(id).kind {
                InodeKind::Magic(target) if !matches!(target, Target::Inode(_)) => {
                    self.status(target)
                }
                _ => Status::of_inode(&self.files.tree, id),
            },
            // Standard streams are pipes, neither files nor terminals.
            Target::Stdin(number) => Status {
                // A symbolic one can be a file.
                size: match self.files.mode(target) {
                    Some(_) => self.files.stdin(number).total(),
                    None => 0,
                },
                ..self.anonymous_status(1, PIPE | 0o600)
            },
            Target::Output(stream) => self.anonymous_status(2 + stream as u64, PIPE | 0o600),
            Target::Object(id) => {
                if let Some(fifo) = self.files.fifo_of(id) {
                    return Status::of_inode(&self.files.tree, fifo);
                }
                let object = self.objects.get(id.0);
                if let Some(Object::MessageQueue(queue)) = object {
                    return self.queue_status(8 + u64::from(id.0), queue);
                }
                let mode = object.map_or(PIPE | 0o600, |object| object.operations().mode);
                self.anonymous_status(8 + u64::from(id.0), mode)
            }
        }
    }

    fn queue_status(&self, inode: u64, queue: &MessageQueue) -> Status {
        /// Length of the text that a read of the descriptor can return.
        const SIZE: u64 = 80;
        // In whole seconds.
        let time_ns = i64::try_from(queue.time_ns).unwrap_or(i64::MAX);
        let time_ns = time_ns - time_ns.rem_euclid(SECOND_NS);
        Status {
            uid: queue.uid,
            gid: queue.gid,
            size: SIZE,
            times_ns: [time_ns; 3],
            ..self.anonymous_status(inode, REGULAR | queue.mode)
        }
    }

    fn anonymous_status(&self, inode: u64, mode: u32) -> Status {
        let start_ns = i64::try_from(self.start_time_ns).unwrap_or(i64::MAX);
        Status {
            device: 2,
            inode,
            links: 1,
            mode,
            uid: 0,
            gid: 0,
            represents: (0, 0),
            size: 0,
            times_ns: [start_ns; 3],
            born_ns: None,
        }
    }
}

impl Status {
    /// Status of an inode.
    pub fn of_inode(tree: &Tree, id: InodeId) -> Status {
        let inode = tree.get(id);
        let is_of_proc =
            inode.is_of_kernel() || inode.is_directory() && (id == PROC || tree.is_in_proc(id));
        let (kind, size, represents) = match &inode.kind {
            InodeKind::Regular(bytes) => (REGULAR, bytes.len(), (0, 0)),
            InodeKind::Generated(_) => (REGULAR, 0, (0, 0)),
            InodeKind::Directory(..) => (DIRECTORY, BLOCK, (0, 0)),
            InodeKind::Link(target) => (LINK, target.len() as u64, (0, 0)),
            InodeKind::Magic(_) => (LINK, 64, (0, 0)),
            InodeKind::Device(device) if device.is_block() => (BLOCK_DEVICE, 0, device.number()),
            InodeKind::Device(device) => (CHARACTER_DEVICE, 0, device.number()),
            InodeKind::Fifo => (PIPE, 0, (0, 0)),
            InodeKind::Socket => (SOCKET, 0, (0, 0)),
        };
        Status {
            device: 1,
            inode: u64::from(id.0),
            links: u64::from(inode.links),
            mode: kind | inode.mode,
            uid: inode.uid,
            gid: inode.gid,
            represents,
            size,
            times_ns: [inode.accessed_ns, inode.modified_ns, inode.changed_ns],
            born_ns: (!is_of_proc).then_some(inode.born_ns),
        }
    }

    fn blocks(&self) -> u64 {
        self.size.div_ceil(BLOCK) * (BLOCK / 512)
    }

    /// Encodes a `struct stat`.
    pub fn to_stat(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(144);
        for field in [self.device, self.inode, self.links] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        for field in [self.mode, self.uid, self.gid, 0] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        let (major, minor) = self.represents;
        let (high, low) = (u64::from(minor) >> 8, u64::from(minor) & 0xff);
        let represents = high << 20 | u64::from(major) << 8 | low;
        for field in [represents, self.size, BLOCK, self.blocks()] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        for time in self.times_ns {
            bytes.extend_from_slice(&time.div_euclid(SECOND_NS).to_le_bytes());
            bytes.extend_from_slice(&time.rem_euclid(SECOND_NS).to_le_bytes());
        }
        bytes.resize(144, 0);
        bytes
    }

    /// Encodes a `struct statx` for a program that wants these fields.
    pub fn to_statx(self, wanted: u32) -> Vec<u8> {
        const BASIC_STATS: u32 = 0x7ff;
        const BIRTH: u32 = 0x800;
        const MOUNT: u32 = 0x1000;
        let born_ns = self.born_ns.filter(|_| wanted & BIRTH != 0);
        let known = BASIC_STATS | MOUNT | born_ns.map_or(0, |_| BIRTH);
        let mut bytes = vec![0; 256];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &known.to_le_bytes());
        put(4, &(BLOCK as u32).to_le_bytes());
        put(16, &(self.links as u32).to_le_bytes());
        put(20, &self.uid.to_le_bytes());
        put(24, &self.gid.to_le_bytes());
        put(28, &(self.mode as u16).to_le_bytes());
        put(32, &self.inode.to_le_bytes());
        put(40, &self.size.to_le_bytes());
        put(48, &self.blocks().to_le_bytes());
        let times_ns = [64, 112, 96].into_iter().zip(self.times_ns);
        for (at, time) in times_ns.chain(born_ns.map(|time| (80, time))) {
            put(at, &time.div_euclid(SECOND_NS).to_le_bytes());
            put(at + 8, &(time.rem_euclid(SECOND_NS) as u32).to_le_bytes());
        }
        put(128, &self.represents.0.to_le_bytes());
        put(132, &self.represents.1.to_le_bytes());
        put(140, &(self.device as u32).to_le_bytes());
        // As in `mountinfo`: the disk, `/proc`, and what pipes and sockets are on.
        let mount: u64 = match (self.born_ns, self.device) {
            (Some(_), _) => 21,
            (None, 1) => 22,
            _ => 13,
        };
        put(144, &mount.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::ROOT;

    #[test]
    fn both_layouts_have_their_size_and_say_the_same() {
        let tree = Tree::new(0);
        let status = Status::of_inode(&tree, ROOT);
        let (stat, statx) = (status.to_stat(), status.to_statx(0xfff));
        assert_eq!((stat.len(), statx.len()), (144, 256));
        assert_eq!(stat[24..28], (0o040_755u32).to_le_bytes());
        assert_eq!(statx[28..30], (0o040_755u16).to_le_bytes());
        assert_eq!(stat[48..56], statx[40..48]);
    }
}
