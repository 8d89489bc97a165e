//! Generates the files in `/proc/sysvipc`.

use std::fmt::Write;

use crate::files::IpcList;
use crate::host::HostState;
use crate::ipc::Permissions;

impl HostState {
    /// The System V objects of a kind.
    pub(crate) fn ipc_text(&self, list: IpcList) -> String {
        match list {
            IpcList::Segments => self.segments_text(),
            IpcList::Semaphores => self.semaphores_text(),
            IpcList::Messages => self.messages_text(),
        }
    }

    fn segments_text(&self) -> String {
        const PAGE: u64 = 4096;
        let mut text = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  \
                        cuid  cgid      atime      dtime      ctime                   rss                  \
                        swap\n"
            .to_owned();
        for (id, segment) in &self.ipc.segments {
            let [attached, detached, changed] = segment.times;
            let [creator, last] = segment.pids;
            let used = match &self.files.tree.get(segment.inode).kind {
                crate::files::InodeKind::Regular(bytes) => {
                    let pages = bytes.clone().pages();
                    pages.iter().flatten().count() as u64 * PAGE
                }
                _ => 0,
            };
            // SHM_DEST: destroyed with its last attachment.
            let destroyed = if segment.removed { 0o1000 } else { 0 };
            let _ = writeln!(
                text,
                "{} {:21} {creator:5} {last:5}  {:5} {} {attached:10} {detached:10} {changed:10} \
                 {used:21} {:21}",
                start(*id, &segment.permissions, destroyed),
                segment.size,
                self.ipc.attachments(*id),
                owners(&segment.permissions),
                0
            );
        }
        text
    }

    fn semaphores_text(&self) -> String {
        let mut text =
            "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      \
                        ctime\n"
                .to_owned();
        for (id, set) in &self.ipc.sets {
            let [used, changed] = set.times;
            let _ = writeln!(
                text,
                "{} {:10} {} {used:10} {changed:10}",
                start(*id, &set.permissions, 0),
                set.semaphores.len(),
                owners(&set.permissions)
            );
        }
        text
    }

    fn messages_text(&self) -> String {
        let mut text =
            "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  \
                        cgid      stime      rtime      ctime\n"
                .to_owned();
        for (id, queue) in &self.ipc.queues {
            let [sent, received, changed] = queue.times;
            let [sender, receiver] = queue.pids;
            let _ = writeln!(
                text,
                "{}  {:10} {:10} {sender:5} {receiver:5} {} {sent:10} {received:10} {changed:10}",
                start(*id, &queue.permissions, 0),
                queue.bytes(),
                queue.messages.len(),
                owners(&queue.permissions)
            );
        }
        text
    }
}

/// Key, id and permissions.
fn start(id: u32, permissions: &Permissions, more: u32) -> String {
    let (key, mode) = (permissions.key as i32, permissions.mode | more);
    format!("{key:10} {id:10}  {mode:4o}")
}

/// Owner and creator.
fn owners(permissions: &Permissions) -> String {
    let Permissions {
        uid,
        gid,
        creator_uid,
        creator_gid,
        ..
    } = permissions;
    format!("{uid:5} {gid:5} {creator_uid:5} {creator_gid:5}")
}
