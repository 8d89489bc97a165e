//! System V shared memory, semaphores and message queues.

mod messages;
mod semaphores;
mod shared_memory;

use triomphe::Arc;

use crate::errno::Errno;
use crate::ipc::{Ipc, Permissions};
use crate::kernel::{Kernel, Stop};
use crate::process::RunState;
use crate::table::ArgKind::{Buffer, Flags, Int, Pointer, Symbolic};
use crate::table::Row;
use crate::table::property::SIGNALS;
use crate::wait::WaitCondition;

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new(
        "shmget",
        29,
        &[Int, Int, Flags],
        &[Errno::ENOMEM, Errno::ENOSPC],
        shared_memory::shmget,
    )
    .fails_where(|_, args, _| makes_one(args[0], args[2])),
    Row::new(
        "shmat",
        30,
        &[Int, Pointer, Flags],
        &[Errno::ENOMEM],
        shared_memory::shmat,
    ),
    Row::new(
        "shmctl",
        31,
        &[Int, Int, Pointer],
        &[],
        shared_memory::shmctl,
    )
    .without("IPC_INFO, SHM_INFO, SHM_STAT"),
    Row::new("shmdt", 67, &[Pointer], &[], shared_memory::shmdt),
    Row::new(
        "semget",
        64,
        &[Int, Int, Flags],
        &[Errno::ENOSPC],
        semaphores::semget,
    )
    .fails_where(|_, args, _| makes_one(args[0], args[2])),
    Row::new(
        "semop",
        65,
        &[Int, Pointer, Int],
        &[Errno::EINTR],
        semaphores::semop,
    )
    .with(SIGNALS),
    Row::new(
        "semctl",
        66,
        &[Int, Int, Int, Symbolic],
        &[],
        semaphores::semctl,
    )
    .with(SIGNALS)
    .without("IPC_INFO, SEM_INFO, SEM_STAT"),
    Row::new(
        "semtimedop",
        220,
        &[Int, Pointer, Int, Pointer],
        &[Errno::EINTR],
        semaphores::semtimedop,
    )
    .with(SIGNALS),
    Row::new(
        "msgget",
        68,
        &[Int, Flags],
        &[Errno::ENOSPC],
        messages::msgget,
    )
    .fails_where(|_, args, _| makes_one(args[0], args[1])),
    Row::new(
        "msgsnd",
        69,
        &[Int, Buffer, Int, Flags],
        &[Errno::EINTR],
        messages::msgsnd,
    )
    .with(SIGNALS),
    Row::new(
        "msgrcv",
        70,
        &[Int, Buffer, Int, Int, Flags],
        &[Errno::EINTR],
        messages::msgrcv,
    )
    .with(SIGNALS)
    .without("MSG_COPY"),
    Row::new("msgctl", 71, &[Int, Int, Pointer], &[], messages::msgctl)
        .without("IPC_INFO, MSG_INFO, MSG_STAT"),
];

const PRIVATE: u32 = 0;
const CREATE: u64 = 0o1000;

/// Whether a call with this key and flags can create an object.
fn makes_one(key: u64, flags: u64) -> bool {
    const PRIVATE: i32 = 0;
    key as i32 == PRIVATE || flags & CREATE != 0
}

const EXCLUSIVE: u64 = 0o2000;
const NO_WAIT: u64 = 0o4000;

const REMOVE: u64 = 0;
const SET: u64 = 1;
const STATUS: u64 = 2;
/// `IPC_64`, set by the libraries of 32-bit programs; ignored here.
const IPC_64: u64 = 0x100;

const READ: u32 = 0o4;
const WRITE: u32 = 0o2;

/// Size of a `struct ipc_perm`.
const PERMISSIONS_SIZE: usize = 48;

impl Permissions {
    /// Encodes a `struct ipc_perm`.
    fn encode(&self, mode: u32) -> Vec<u8> {
        let fields = [
            self.key,
            self.uid,
            self.gid,
            self.creator_uid,
            self.creator_gid,
            mode,
        ];
        let mut bytes: Vec<u8> = fields
            .iter()
            .flat_map(|field| field.to_le_bytes())
            .collect();
        bytes.resize(PERMISSIONS_SIZE, 0);
        bytes
    }
}

/// Encodes numbers as a structure of longs.
fn longs(numbers: &[u64]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

impl Kernel<'_, '_> {
    fn ipc(&mut self) -> &mut Ipc {
        Arc::make_mut(&mut self.host.ipc)
    }

    /// Permissions of a new object.
    fn new_permissions(&self, key: u32, flags: u64) -> Permissions {
        let (uid, gid) = (self.process().uid[1], self.process().gid[1]);
        Permissions {
            key,
            uid,
            gid,
            creator_uid: uid,
            creator_gid: gid,
            mode: flags as u32 & 0o777,
        }
    }

    /// Whether the caller has read or write permission.
    fn allowed(&self, permissions: &Permissions, wanted: u32) -> Result<(), Errno> {
        let (uid, gid) = (self.process().uid[1], self.process().gid[1]);
        let shift = match () {
            () if uid == 0 => return Ok(()),
            () if uid == permissions.uid || uid == permissions.creator_uid => 6,
            () if gid == permissions.gid || gid == permissions.creator_gid => 3,
            () => 0,
        };
        if permissions.mode >> shift & wanted == wanted {
            Ok(())
        } else {
            Err(Errno::EACCES)
        }
    }

    /// Records a refusal of commands about the tables of all objects: `IPC_INFO`, and `others` of
    /// the call.
    fn refuse_tables(&mut self, call: &str, command: u64, others: &[u64]) {
        const INFO: u64 = 3;
        if command == INFO || others.contains(&command) {
            self.refuse(call, format!("{call} command {command}"));
        }
    }

    /// Whether the caller may change or remove the object.
    fn owns(&self, permissions: &Permissions) -> Result<(), Errno> {
        let uid = self.process().uid[1];
        if uid == 0 || uid == permissions.uid || uid == permissions.creator_uid {
            Ok(())
        } else {
            Err(Errno::EPERM)
        }
    }

    /// The id of an existing object with this key; `None` if a new one may be created.
    fn find_key(
        &self,
        key: u32,
        flags: u64,
        found: Option<(u32, Permissions)>,
    ) -> Result<Option<u32>, Errno> {
        match found {
            _ if key == PRIVATE => Ok(None),
            None if flags & CREATE == 0 => Err(Errno::ENOENT),
            None => Ok(None),
            Some(_) if flags & (CREATE | EXCLUSIVE) == CREATE | EXCLUSIVE => Err(Errno::EEXIST),
            Some((id, permissions)) => {
                let bits = flags as u32 & 0o777;
                let wanted = (bits >> 6 | bits >> 3 | bits) & 0o7;
                self.allowed(&permissions, wanted)?;
                Ok(Some(id))
            }
        }
    }

    /// Reads the fields that `IPC_SET` changes: owner, group and mode.
    fn read_permissions(&mut self, address: u64) -> Result<[u32; 3], Stop> {
        let mut fields = [0; 3];
        for (field, offset) in fields.iter_mut().zip([4, 8, 20]) {
            let value = self.read_value(address.wrapping_add(offset), 4)?;
            *field = self.vm.concretize(value)? as u32;
        }
        Ok(fields)
    }

    /// The error for an id that does not exist: `EIDRM` for threads that waited for the object,
    /// otherwise `EINVAL`.
    fn gone(&mut self, id: u32) -> Stop {
        let tid = self.task().tid;
        if (id as i32) >= 0 && self.host.ipc.removed_waiters.contains(&tid) {
            self.ipc().removed_waiters.remove(&tid);
            return Errno::EIDRM.into();
        }
        Errno::EINVAL.into()
    }

    /// Marks the threads that wait for an object that is being removed.
    fn mark_waiters_removed(&mut self, id: u32) {
        let waiting = self.host.tasks.iter().filter(|task| match &task.run_state {
            RunState::Waiting(wait) => {
                matches!(&wait.condition, WaitCondition::Ipc(wait) if wait.id() == id)
            }
            _ => false,
        });
        let waiting: Vec<u32> = waiting.map(|task| task.tid).collect();
        self.ipc().removed_waiters.extend(waiting);
    }
}

/// Changes owner and mode.
fn set_permissions(permissions: &mut Permissions, [uid, gid, mode]: [u32; 3]) {
    permissions.uid = uid;
    permissions.gid = gid;
    permissions.mode = mode & 0o777;
}
