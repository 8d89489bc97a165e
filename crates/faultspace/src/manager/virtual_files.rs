//! The virtual file systems of a test: devices, `/proc` and `/sys`. A test of the superuser must not change the machine
//! through them, so it gets harmless devices, and what is not its own is read-only.

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

use super::steps::{NONE, Step, make_folder, step};

/// Devices that change nothing outside.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
/// Symbolic links below `/dev`.
const LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// What is below `/proc` and concerns the whole machine.
const OF_MACHINE: &[&str] = &[
    "sys",
    "sysrq-trigger",
    "irq",
    "bus",
    "fs",
    "acpi",
    "scsi",
    "timer_list",
    "mtrr",
    "dynamic_debug",
];
/// Capabilities that would undo the isolation (`CAP_SYS_ADMIN` could mount again what is read-only), or that change the
/// machine where there are no user namespaces.
const DROPPED: &[u64] = &[
    9,  // CAP_LINUX_IMMUTABLE
    16, // CAP_SYS_MODULE
    17, // CAP_SYS_RAWIO
    20, // CAP_SYS_PACCT
    21, // CAP_SYS_ADMIN
    22, // CAP_SYS_BOOT
    25, // CAP_SYS_TIME
    26, // CAP_SYS_TTY_CONFIG
    27, // CAP_MKNOD
    30, // CAP_AUDIT_CONTROL
    32, // CAP_MAC_OVERRIDE
    33, // CAP_MAC_ADMIN
    34, // CAP_SYSLOG
    35, // CAP_WAKE_ALARM
    36, // CAP_BLOCK_SUSPEND
    38, // CAP_PERFMON
    39, // CAP_BPF
    40, // CAP_CHECKPOINT_RESTORE
];

/// Makes `/dev` of the test: files in memory, harmless devices, and its own terminals and shared memory.
pub(super) fn devices(root: &Path) -> Step<()> {
    let dev = root.join("dev");
    make_folder(&dev)?;
    for name in DEVICES {
        let target = dev.join(name);
        // If a device is missing, a test that needs it notices.
        if File::create(&target).is_ok() {
            let from = Path::new("/dev").join(name);
            let _ = mount(Some(&from), &target, NONE, MsFlags::MS_BIND, NONE);
        }
    }
    for (name, target) in LINKS {
        let _ = symlink(target, dev.join(name));
    }
    for (name, kind, options) in [
        ("shm", "tmpfs", "size=64m,mode=1777"),
        ("pts", "devpts", "newinstance,ptmxmode=0666,mode=0620"),
        ("mqueue", "mqueue", ""),
    ] {
        let target = dev.join(name);
        make_folder(&target)?;
        let options = Some(options).filter(|options| !options.is_empty());
        let _ = mount(Some(kind), &target, Some(kind), MsFlags::empty(), options);
    }
    Ok(())
}

/// Shows `/sys` of the machine, read-only, with the mounts below it. What cannot be made read-only is not shown.
pub(super) fn system(root: &Path) {
    let (from, to) = (Path::new("/sys"), root.join("sys"));
    let bind = MsFlags::MS_BIND | MsFlags::MS_REC;
    if mount(Some(from), &to, NONE, bind, NONE).is_ok() && !make_read_only(&to) {
        let _ = umount2(&to, MntFlags::MNT_DETACH);
    }
}

/// Makes a mount and those below it read-only. (Flags of these mounts that are locked stay as they are.)
fn make_read_only(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()) else {
        return false;
    };
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the path and the attributes live until the call returns, and their sizes are given.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            std::mem::size_of::<libc::mount_attr>(),
        )
    };
    done == 0
}

/// Mounts `/proc` with the processes of the test. Settings of the machine are read-only; those of its network are its
/// own if it has one.
pub(super) fn processes(root: &Path, has_network: bool) -> Step<()> {
    let proc = root.join("proc");
    step(
        "cannot mount",
        &proc,
        mount(Some("proc"), &proc, Some("proc"), MsFlags::empty(), NONE),
    )?;
    for name in OF_MACHINE {
        let path = proc.join(name);
        if fs::symlink_metadata(&path).is_err() {
            continue;
        }
        step("cannot mount", &path, bind_again(&path, MsFlags::MS_RDONLY))?;
    }
    let network = proc.join("sys/net");
    if has_network && network.exists() {
        // If this fails, the settings of the network are read-only.
        let _ = bind_again(&network, MsFlags::empty());
    }
    Ok(())
}

/// Mounts a path on itself, with other flags.
fn bind_again(path: &Path, flags: MsFlags) -> nix::Result<()> {
    mount(Some(path), path, NONE, MsFlags::MS_BIND, NONE)?;
    let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | flags;
    mount(NONE, path, NONE, flags, NONE)
}

/// Programs that this process executes do not get some capabilities of the superuser.
pub(super) fn drop_capabilities() {
    for &capability in DROPPED {
        // SAFETY: the call has no pointers. Numbers that the kernel does not know are refused.
        let _ = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
}
