//! `/proc`: its static files, and the process directories, which are updated on access.

use super::Files;
use super::access::FsCredentials;
use super::description::Target;
use super::generated::{About, Generated, IpcList, NetworkList, SocketList};
use super::inode::{Inode, InodeKind};
use super::kernel_files;
use super::tree::{PROC, Tree};
use crate::bytes::Bytes;
use crate::capabilities::SYS_PTRACE;
use crate::errno::Errno;
use crate::event;
use crate::host::HostState;
use crate::ids::InodeId;
use crate::objects::socket::Domain;
use crate::process::{ExitState, INIT, ProcessState};

const CPU: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 63\n\
model name\t: Everett virtual processor\nstepping\t: 2\ncpu MHz\t\t: 1000.000\ncache size\t: 4096 KB\n\
physical id\t: 0\nsiblings\t: 1\ncore id\t\t: 0\ncpu cores\t: 1\n\
flags\t\t: fpu tsc cx8 cmov mmx fxsr sse sse2\nbogomips\t: 2000.00\n\
address sizes\t: 48 bits physical, 48 bits virtual\n\n";

const MEMORY: &str = "MemTotal:        8388608 kB\nMemFree:         4194304 kB\n\
MemAvailable:    4194304 kB\nBuffers:               0 kB\nCached:                0 kB\n\
SwapTotal:             0 kB\nSwapFree:              0 kB\nHugePages_Total:       0\n\
HugePages_Free:        0\nHugepagesize:       2048 kB\n";

const MOUNTS: &str = "everett / ext4 rw,relatime 0 0\nproc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n\
tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0\n";

/// The same as `mountinfo` has it.
const MOUNT_POINTS: &str = "21 1 8:1 / / rw,relatime - ext4 everett rw\n\
22 21 0:21 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw\n\
23 21 0:22 / /dev/shm rw,nosuid,nodev - tmpfs tmpfs rw\n";

/// Files with constant contents.
const TEXTS: &[(&str, &str)] = &[
    ("/proc/cpuinfo", CPU),
    ("/proc/meminfo", MEMORY),
    ("/proc/filesystems", "nodev\tproc\nnodev\ttmpfs\n\text4\n"),
    ("/proc/version", "Linux version 6.1.0 (everett) #1 SMP\n"),
    ("/proc/cmdline", "\n"),
    (
        "/proc/net/arp",
        "IP address       HW type     Flags       HW address            Mask     Device\n",
    ),
    (
        "/proc/swaps",
        "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n",
    ),
];

/// Files about the only processor, and about memory: runtimes count processors by them.
const SYSTEM: &[(&str, &str)] = &[
    ("/sys/devices/system/cpu/online", "0\n"),
    ("/sys/devices/system/cpu/possible", "0\n"),
    ("/sys/devices/system/cpu/present", "0\n"),
    ("/sys/devices/system/cpu/offline", "\n"),
    ("/sys/devices/system/cpu/isolated", "\n"),
    ("/sys/devices/system/cpu/kernel_max", "0\n"),
    ("/sys/devices/system/cpu/cpu0/topology/core_id", "0\n"),
    (
        "/sys/devices/system/cpu/cpu0/topology/physical_package_id",
        "0\n",
    ),
    ("/sys/devices/system/cpu/cpu0/topology/core_siblings", "1\n"),
    (
        "/sys/devices/system/cpu/cpu0/topology/core_siblings_list",
        "0\n",
    ),
    (
        "/sys/devices/system/cpu/cpu0/topology/thread_siblings",
        "1\n",
    ),
    (
        "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
        "0\n",
    ),
    ("/sys/devices/system/node/online", "0\n"),
    ("/sys/devices/system/node/possible", "0\n"),
    ("/sys/devices/system/node/node0/cpulist", "0\n"),
    ("/sys/devices/system/node/node0/cpumap", "1\n"),
    (
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "always madvise [never]\n",
    ),
    (
        "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
        "2097152\n",
    ),
];

/// Writable files (`sysctl`), with their initial contents.
const SETTINGS: &[(&str, &str)] = &[
    ("/proc/sys/fs/file-max", "1048576\n"),
    ("/proc/sys/fs/nr_open", "1048576\n"),
    ("/proc/sys/fs/inotify/max_user_instances", "128\n"),
    ("/proc/sys/fs/inotify/max_user_watches", "65536\n"),
    ("/proc/sys/fs/inotify/max_queued_events", "16384\n"),
    ("/proc/sys/fs/mqueue/msg_default", "10\n"),
    ("/proc/sys/fs/mqueue/msg_max", "10\n"),
    ("/proc/sys/fs/mqueue/msgsize_default", "8192\n"),
    ("/proc/sys/fs/mqueue/msgsize_max", "8192\n"),
    ("/proc/sys/fs/mqueue/queues_max", "256\n"),
    ("/proc/sys/fs/pipe-max-size", "1048576\n"),
    ("/proc/sys/fs/protected_fifos", "0\n"),
    ("/proc/sys/fs/protected_regular", "0\n"),
    ("/proc/sys/fs/protected_symlinks", "0\n"),
    ("/proc/sys/fs/suid_dumpable", "0\n"),
    ("/proc/sys/kernel/msgmax", "8192\n"),
    ("/proc/sys/kernel/msgmnb", "16384\n"),
    ("/proc/sys/kernel/msgmni", "32000\n"),
    ("/proc/sys/kernel/overflowgid", "65534\n"),
    ("/proc/sys/kernel/overflowuid", "65534\n"),
    ("/proc/sys/kernel/sem", "32000\t1024000000\t500\t32000\n"),
    ("/proc/sys/kernel/shmall", "18446744073692774399\n"),
    ("/proc/sys/kernel/shmmax", "18446744073692774399\n"),
    ("/proc/sys/kernel/shmmni", "4096\n"),
    ("/proc/sys/net/ipv4/ip_forward", "0\n"),
    ("/proc/sys/net/ipv4/ping_group_range", "0\t2147483647\n"),
    (
        "/proc/sys/net/ipv4/tcp_available_congestion_control",
        "reno cubic\n",
    ),
    ("/proc/sys/net/ipv4/tcp_congestion_control", "cubic\n"),
    ("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0\n"),
    ("/proc/sys/fs/protected_hardlinks", "1\n"),
    ("/proc/sys/kernel/cap_last_cap", "40\n"),
    ("/proc/sys/kernel/ngroups_max", "65536\n"),
    ("/proc/sys/kernel/randomize_va_space", "2\n"),
    ("/proc/sys/kernel/hostname", "host\n"),
    ("/proc/sys/kernel/osrelease", "6.1.0\n"),
    ("/proc/sys/kernel/ostype", "Linux\n"),
    ("/proc/sys/kernel/pid_max", "32768\n"),
    ("/proc/sys/kernel/core_pattern", "core\n"),
    ("/proc/sys/kernel/random/entropy_avail", "256\n"),
    (
        "/proc/sys/kernel/random/boot_id",
        "00000000-0000-4000-8000-000000000000\n",
    ),
    ("/proc/sys/kernel/threads-max", "32768\n"),
    ("/proc/sys/kernel/version", "#1 SMP\n"),
    ("/proc/sys/net/core/rmem_default", "212992\n"),
    ("/proc/sys/net/core/rmem_max", "4194304\n"),
    ("/proc/sys/net/core/somaxconn", "4096\n"),
    ("/proc/sys/net/core/wmem_default", "212992\n"),
    ("/proc/sys/net/core/wmem_max", "4194304\n"),
    ("/proc/sys/net/unix/max_dgram_qlen", "512\n"),
    ("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
    ("/proc/sys/net/ipv4/ip_unprivileged_port_start", "1024\n"),
    ("/proc/sys/net/ipv4/tcp_max_syn_backlog", "4096\n"),
    ("/proc/sys/vm/max_map_count", "65530\n"),
    ("/proc/sys/vm/mmap_min_addr", "65536\n"),
    ("/proc/sys/vm/overcommit_memory", "0\n"),
    ("/proc/sys/vm/overcommit_ratio", "50\n"),
    ("/proc/sys/vm/swappiness", "60\n"),
];

/// Files that poll as readable only: they report changes, which do not happen here.
const REPORT_CHANGES: [&str; 3] = ["/proc/swaps", "mounts", "mountinfo"];

/// The events of a file of `/proc` with this name, or path if it is of no process.
fn events_of(name: &str) -> u16 {
    match REPORT_CHANGES.contains(&name) {
        true => event::READING,
        false => event::READING | event::WRITING,
    }
}

/// Adds files. Neighbours in a list are mostly in one directory, which is resolved once then.
struct Installer<'t> {
    tree: &'t mut Tree,
    directory: Option<(&'static str, InodeId)>,
}

impl Installer<'_> {
    fn add(&mut self, path: &'static str, inode: Inode) -> Result<(), Errno> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let directory = match self.directory {
            Some((known, directory)) if known == parent => directory,
            _ => self.tree.create_directories(PROC, parent.as_bytes())?,
        };
        self.directory = Some((parent, directory));
        self.tree.replace(directory, name.as_bytes(), inode)?;
        Ok(())
    }
}

/// Creates the static files of `/proc`.
pub fn populate(tree: &mut Tree, now_ns: u64) -> Result<(), Errno> {
    let mut files = Installer {
        tree,
        directory: None,
    };
    let generated = |what| Inode::new(InodeKind::Generated(what), 0o444, now_ns);
    for (path, text) in TEXTS.iter().chain(kernel_files::TEXTS) {
        let inode = generated(Generated::Text(text)).polled(events_of(path));
        files.add(path, inode)?;
    }
    for (path, text) in SYSTEM.iter().chain(kernel_files::SYSTEM) {
        // What was not read yet counts as changed.
        let events = events_of(path) | event::ERROR | event::PRIORITY;
        let inode = generated(Generated::System(text)).polled(events);
        files.add(path, inode)?;
    }
    for (path, text) in SETTINGS.iter().chain(kernel_files::SETTINGS) {
        let node = InodeKind::Regular(Bytes::from_text(text));
        let inode = Inode::new(node, 0o644, now_ns).polled(events_of(path));
        files.add(path, inode)?;
    }
    let changing = [
        ("/proc/loadavg", Generated::Load),
        ("/proc/uptime", Generated::Uptime),
        ("/proc/stat", Generated::Counters),
        ("/proc/net/dev", Generated::Interfaces),
        (
            "/proc/net/tcp",
            Generated::Sockets(SocketList::Tcp(Domain::Inet)),
        ),
        (
            "/proc/net/tcp6",
            Generated::Sockets(SocketList::Tcp(Domain::Inet6)),
        ),
        (
            "/proc/net/udp",
            Generated::Sockets(SocketList::Udp(Domain::Inet)),
        ),
        (
            "/proc/net/udp6",
            Generated::Sockets(SocketList::Udp(Domain::Inet6)),
        ),
        ("/proc/net/raw", Generated::Sockets(SocketList::Raw)),
        ("/proc/net/unix", Generated::Sockets(SocketList::Unix)),
        ("/proc/net/route", Generated::Network(NetworkList::Routes)),
        (
            "/proc/net/if_inet6",
            Generated::Network(NetworkList::Addresses6),
        ),
        ("/proc/sysvipc/shm", Generated::Ipc(IpcList::Segments)),
        ("/proc/sysvipc/sem", Generated::Ipc(IpcList::Semaphores)),
        ("/proc/sysvipc/msg", Generated::Ipc(IpcList::Messages)),
    ];
    for (path, what) in changing.iter().chain(kernel_files::CHANGING) {
        files.add(path, generated(*what).polled(events_of(path)))?;
    }
    for (name, target) in [("mounts", "self/mounts"), ("self", ""), ("thread-self", "")] {
        let link = Inode::new(InodeKind::Link(target.as_bytes().to_vec()), 0o777, now_ns);
        files.add(name, link)?;
    }
    Ok(())
}

impl HostState {
    /// Updates `/proc` as the thread `tid` of process `pid` sees it.
    pub fn refresh_proc(&mut self, pid: u32, tid: u32) {
        let now_ns = self.wall_clock_ns();
        let tree = &mut self.files.tree;
        set_link(tree, b"self", format!("{pid}"));
        set_link(tree, b"thread-self", format!("{pid}/task/{tid}"));
        self.remove_process_directories();
        let init = self.init.clone();
        self.refresh_process(&init.process, &[INIT], now_ns);
        for at in 0..self.processes.len() {
            let process = self.processes[at].clone();
            if !matches!(process.exit_state, ExitState::Reaped) {
                let tids: Vec<u32> = self.tasks_of(process.pid).map(|task| task.tid).collect();
                self.refresh_process(&process, &tids, now_ns);
            }
        }
    }

    /// Updates the directory of a process.
    fn refresh_process(&mut self, process: &ProcessState, tids: &[u32], now_ns: u64) {
        let pid = process.pid;
        let known = self.files.tree.child(PROC, pid.to_string().as_bytes());
        let directory = match known {
            Ok(Some(id)) => id,
            _ => self.files.tree.add_process(pid, now_ns),
        };
        self.files.tree.own_process(directory, process);
        let links = [
            (&b"cwd"[..], Some(process.cwd)),
            (b"root", Some(process.root)),
            (b"exe", process.execution.file),
        ];
        for (name, target) in links {
            if let (Ok(Some(id)), Some(target)) = (self.files.tree.child(directory, name), target) {
                self.files.tree.get_mut(id).kind = InodeKind::Magic(Target::Inode(target));
            }
        }
        let open = process.descriptors.iter();
        let open: Vec<(i32, Target)> = open
            .filter_map(|(fd, descriptor)| {
                let description = self.files.description(descriptor.description)?;
                Some((fd, description.target))
            })
            .collect();
        let tree = &mut self.files.tree;
        tree.update_fd_links(directory, &open, now_ns);
        tree.update_fd_files((directory, pid), &open, now_ns);
        tree.update_task_links(directory, tids, now_ns);
    }

    fn remove_process_directories(&mut self) {
        let Some(proc) = self.files.tree.directory(PROC) else {
            return;
        };
        let gone: Vec<Vec<u8>> = proc
            .names
            .keys()
            .filter(|name| {
                let pid = std::str::from_utf8(name)
                    .ok()
                    .and_then(|name| name.parse().ok());
                let lives = |pid| {
                    let process = self.process_by_pid(pid);
                    process.is_some_and(|process| !matches!(process.exit_state, ExitState::Reaped))
                };
                pid.is_some_and(|pid| !lives(pid))
            })
            .cloned()
            .collect();
        for name in gone {
            self.files.remove_tree(PROC, &name);
        }
    }
}

fn set_link(tree: &mut Tree, name: &[u8], target: String) {
    if let Ok(Some(id)) = tree.child(PROC, name)
        && !matches!(&tree.get(id).kind, InodeKind::Link(old) if *old == target.as_bytes())
    {
        tree.get_mut(id).kind = InodeKind::Link(target.into_bytes());
    }
}

impl Files {
    /// Removes a directory entry with everything below it.
    fn remove_tree(&mut self, directory: InodeId, name: &[u8]) {
        let Some(id) = self.tree.remove(directory, name) else {
            return;
        };
        let names = self.tree.directory(id).map(|below| below.names.clone());
        for name in names.unwrap_or_default().keys() {
            self.remove_tree(id, name);
        }
        self.free_if_unused(id);
    }
}

impl Tree {
    /// The directory of the process that a directory in `/proc` is about.
    fn process_directory(&self, directory: InodeId) -> Option<InodeId> {
        let mut at = directory;
        loop {
            let parent = self.directory(at)?.parent;
            if parent == PROC {
                return Some(at);
            }
            if parent == at {
                return None;
            }
            at = parent;
        }
    }

    /// `EACCES` for links of a process in `/proc` unless it has the same user, or the caller may
    /// trace all. The links to threads are for everybody.
    pub fn check_process_link(
        &self,
        directory: InodeId,
        target: Target,
        who: &FsCredentials,
    ) -> Result<(), Errno> {
        let Some(process) = self.process_directory(directory) else {
            return Ok(());
        };
        let is_own = self.get(process).uid == who.uid || who.has(SYS_PTRACE);
        let is_thread = matches!(target, Target::Inode(id) if id == process);
        match is_own || is_thread {
            true => Ok(()),
            false => Err(Errno::EACCES),
        }
    }

    /// Creates the directory of a process.
    fn add_process(&mut self, pid: u32, now_ns: u64) -> InodeId {
        let name = pid.to_string();
        let id = self.add(PROC, name.as_bytes(), Inode::directory(PROC, 0o555, now_ns));
        for (name, about, mode) in About::ALL {
            let node = InodeKind::Generated(Generated::Process(pid, about));
            self.add(id, name.as_bytes(), Inode::new(node, mode, now_ns));
        }
        for (name, text) in [("mounts", MOUNTS), ("mountinfo", MOUNT_POINTS)] {
            let node = InodeKind::Generated(Generated::Text(text));
            let inode = Inode::new(node, 0o444, now_ns).polled(events_of(name));
            self.add(id, name.as_bytes(), inode);
        }
        for (name, target) in [("root", "/"), ("cwd", "/"), ("exe", "/sbin/init")] {
            let link = InodeKind::Link(target.as_bytes().to_vec());
            self.add(id, name.as_bytes(), Inode::new(link, 0o777, now_ns));
        }
        let net = InodeKind::Link(b"../net".to_vec());
        self.add(id, b"net", Inode::new(net, 0o777, now_ns));
        for name in ["fd", "fdinfo", "task"] {
            self.add(id, name.as_bytes(), Inode::directory(id, 0o555, now_ns));
        }
        let namespaces = self.add(id, b"ns", Inode::directory(id, 0o511, now_ns));
        for (name, target) in kernel_files::NAMESPACES {
            let link = InodeKind::Link(target.as_bytes().to_vec());
            self.add(namespaces, name.as_bytes(), Inode::new(link, 0o777, now_ns));
        }
        id
    }

    /// Gives the directory of a process to its effective user, and what is in it, too, unless the
    /// process has changed its user: then it belongs to root.
    fn own_process(&mut self, directory: InodeId, process: &ProcessState) {
        let user = (process.uid[1], process.gid[1]);
        let of_files = if process.dumpable == 1 { user } else { (0, 0) };
        let owner = |inode: &Inode| (inode.uid, inode.gid);
        let names = self.directory(directory).map(|all| &all.names);
        let below: Vec<_> = names
            .into_iter()
            .flatten()
            .map(|entry| entry.1.id)
            .collect();
        let all = below.into_iter().map(|id| (id, of_files));
        for (id, wanted) in all.chain([(directory, user)]) {
            if owner(self.get(id)) != wanted {
                let inode = self.get_mut(id);
                (inode.uid, inode.gid) = wanted;
            }
        }
    }

    /// Updates the links in `fd` to match the open descriptors.
    fn update_fd_links(&mut self, process: InodeId, open: &[(i32, Target)], now_ns: u64) {
        let Ok(Some(folder)) = self.child(process, b"fd") else {
            return;
        };
        let listed = self.directory(folder).map(|folder| folder.names.clone());
        for (name, entry) in listed.unwrap_or_default() {
            let same = open.iter().any(|(fd, target)| {
                fd.to_string().as_bytes() == name
                    && matches!(&self.get(entry.id).kind, InodeKind::Magic(old) if old == target)
            });
            if !same {
                self.remove(folder, &name);
                self.forget(entry.id);
            }
        }
        for (fd, target) in open {
            let name = fd.to_string();
            if let Ok(None) = self.child(folder, name.as_bytes()) {
                let link = Inode::new(InodeKind::Magic(*target), 0o700, now_ns);
                self.add(folder, name.as_bytes(), link);
            }
        }
    }

    /// Updates the files in `fdinfo` to match the open descriptors.
    fn update_fd_files(&mut self, process: (InodeId, u32), open: &[(i32, Target)], now_ns: u64) {
        let Ok(Some(folder)) = self.child(process.0, b"fdinfo") else {
            return;
        };
        let listed = self.directory(folder).map(|folder| folder.names.clone());
        for (name, entry) in listed.unwrap_or_default() {
            if !open.iter().any(|(fd, _)| fd.to_string().as_bytes() == name) {
                self.remove(folder, &name);
                self.forget(entry.id);
            }
        }
        for (fd, _) in open {
            let name = fd.to_string();
            if let Ok(None) = self.child(folder, name.as_bytes()) {
                let node = InodeKind::Generated(Generated::Descriptor(process.1, *fd));
                self.add(folder, name.as_bytes(), Inode::new(node, 0o444, now_ns));
            }
        }
    }

    /// Updates the links in `task` to match the threads.
    fn update_task_links(&mut self, process: InodeId, tids: &[u32], now_ns: u64) {
        let Ok(Some(folder)) = self.child(process, b"task") else {
            return;
        };
        let listed = self.directory(folder).map(|folder| folder.names.clone());
        for (name, entry) in listed.unwrap_or_default() {
            if !tids.iter().any(|tid| tid.to_string().as_bytes() == name) {
                self.remove(folder, &name);
                self.forget(entry.id);
            }
        }
        for tid in tids {
            let name = tid.to_string();
            if let Ok(None) = self.child(folder, name.as_bytes()) {
                // The directory of a thread is that of its process.
                let link = Inode::new(InodeKind::Magic(Target::Inode(process)), 0o777, now_ns);
                self.add(folder, name.as_bytes(), link);
            }
        }
    }
}
