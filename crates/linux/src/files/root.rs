//! The root directory that every host has: standard directories, devices, and the
//! files in `/etc` that libraries read.

use super::inode::{Device, Inode, InodeKind};
use super::tree::{ROOT, Tree};
use crate::bytes::Bytes;
use crate::errno::Errno;

const DIRECTORIES: &[&str] = &[
    "/bin",
    "/boot",
    "/dev/pts",
    "/dev/shm",
    "/etc",
    "/home",
    "/lib",
    "/media",
    "/mnt",
    "/opt",
    "/root",
    "/run/lock",
    "/sbin",
    "/srv",
    "/tmp",
    "/usr/bin",
    "/usr/lib",
    "/usr/local",
    "/usr/sbin",
    "/usr/share",
    "/var/cache",
    "/var/lib",
    "/var/mail",
    "/var/spool",
    "/var/log",
    "/var/tmp",
];

/// World-writable directories with the sticky bit.
const OPEN_TO_ALL: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

const DEVICES: &[(&str, Device)] = &[
    ("/dev/null", Device::Null),
    ("/dev/zero", Device::Zero),
    ("/dev/full", Device::Full),
    ("/dev/random", Device::Random),
    ("/dev/urandom", Device::Urandom),
    ("/dev/tty", Device::Terminal),
    ("/dev/ptmx", Device::Multiplexer),
];

const LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/etc/mtab", "/proc/self/mounts"),
    ("/var/lock", "/run/lock"),
    ("/var/run", "/run"),
];

const TEXTS: &[(&str, &str)] = &[
    (
        "/etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\n\
         daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n\
         www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    (
        "/etc/group",
        "root:x:0:\ndaemon:x:1:\nwww-data:x:33:\nnogroup:x:65534:\n",
    ),
    ("/etc/hostname", "host\n"),
    (
        "/etc/hosts",
        "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n",
    ),
    ("/etc/fstab", ""),
    ("/etc/host.conf", "multi on\n"),
    (
        "/etc/networks",
        "default\t\t0.0.0.0\nloopback\t127.0.0.0\nlink-local\t169.254.0.0\n",
    ),
    (
        "/etc/os-release",
        "NAME=\"Linux\"\nID=linux\nPRETTY_NAME=\"Linux\"\n",
    ),
    ("/etc/timezone", "Etc/UTC\n"),
    ("/etc/resolv.conf", "nameserver 127.0.0.1\n"),
    (
        "/etc/nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files dns\nservices: files\n",
    ),
    (
        "/etc/services",
        "ftp\t21/tcp\nssh\t22/tcp\ntelnet\t23/tcp\nsmtp\t25/tcp\ndomain\t53/tcp\ndomain\t53/udp\n\
         tftp\t69/udp\nhttp\t80/tcp\npop3\t110/tcp\nntp\t123/udp\nhttps\t443/tcp\n",
    ),
    (
        "/etc/protocols",
        "ip\t0\tIP\nicmp\t1\tICMP\ntcp\t6\tTCP\nudp\t17\tUDP\n",
    ),
    ("/etc/shells", "/bin/sh\n"),
];

/// Creates the standard files in an empty tree.
pub fn populate(tree: &mut Tree, now_ns: u64) -> Result<(), Errno> {
    for path in DIRECTORIES {
        tree.create_directories(ROOT, path.as_bytes())?;
    }
    for path in OPEN_TO_ALL {
        let id = tree.lookup(ROOT, path.as_bytes(), true)?;
        tree.get_mut(id).mode = 0o1777;
    }
    let root = tree.lookup(ROOT, b"/root", true)?;
    tree.get_mut(root).mode = 0o700;
    for (path, device) in DEVICES {
        let inode = Inode::new(InodeKind::Device(*device), 0o666, now_ns);
        tree.install(ROOT, path.as_bytes(), inode)?;
    }
    for (path, target) in LINKS {
        let inode = Inode::new(InodeKind::Link(target.as_bytes().to_vec()), 0o777, now_ns);
        tree.install(ROOT, path.as_bytes(), inode)?;
    }
    for (path, text) in TEXTS {
        let node = InodeKind::Regular(Bytes::from_text(text));
        tree.install(ROOT, path.as_bytes(), Inode::new(node, 0o644, now_ns))?;
    }
    Ok(())
}
