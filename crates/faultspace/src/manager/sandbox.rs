//! Isolates a test from the machine with PID and mount namespaces, if the machine has them. Writes
//! of the commands go to an in-memory file system overlaid on the real ones, and are discarded
//! after the test. Only folders that the user declares writable keep them.

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, chdir, fork, getgid, getuid, pivot_root};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use super::steps::{NONE, Step, make_folder, step};
use super::{Job, virtual_files};
use crate::results::Isolation;

/// The file systems that commands see.
pub(super) struct SandboxFiles {
    /// How they are isolated.
    pub isolation: Isolation,
    /// The working folder.
    pub folder: PathBuf,
    /// A folder for files of the manager that the commands can reach.
    pub own: PathBuf,
    /// Paths, and the folders with what was written below them.
    pub written: Vec<(PathBuf, File)>,
}

/// The role of this process after the fork.
pub(super) enum Role {
    /// The process that runs the commands.
    Inside(SandboxFiles),
    /// The process that has waited for it, with its exit code.
    Outside(i32),
}

/// Makes the kernel kill this process when its parent dies.
pub(super) fn end_with_parent() {
    // If the kernel refuses, only the safety net is lost.
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
}

/// Enters namespaces if possible; otherwise copies the folder.
pub(super) fn enter(job: &Job) -> Result<Role, String> {
    if std::env::var_os("EVERETT_NO_NAMESPACES").is_some() || !unshared(job) {
        return Ok(Role::Inside(copied(job)?));
    }
    // SAFETY: this process has one thread, so the child may do anything.
    match unsafe { fork() }.map_err(|error| format!("cannot fork: {error}"))? {
        ForkResult::Parent { child } => loop {
            match waitpid(child, None) {
                Ok(WaitStatus::Exited(_, code)) => return Ok(Role::Outside(code)),
                Ok(WaitStatus::Signaled(..)) => return Ok(Role::Outside(1)),
                Err(nix::errno::Errno::EINTR) | Ok(_) => {}
                Err(_) => return Ok(Role::Outside(1)),
            }
        },
        ForkResult::Child => {
            end_with_parent();
            let place = mounted(job).map_err(|(what, error)| format!("{what}: {error}"));
            Ok(Role::Inside(place?))
        }
    }
}

/// Creates namespaces; `false` if the machine refuses. A separate network with only a loopback
/// device lets concurrent tests use the same ports.
fn unshared(job: &Job) -> bool {
    let spaces = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    let with_network = spaces | CloneFlags::CLONE_NEWNET;
    if !job.shares_network && unshared_with(with_network) {
        // If this fails, a test that needs the device sees that it is down.
        let _ = raise_loopback();
        return true;
    }
    unshared_with(spaces)
}

fn unshared_with(spaces: CloneFlags) -> bool {
    let (user, group) = (getuid(), getgid());
    if unshare(spaces | CloneFlags::CLONE_NEWUSER).is_err() {
        return unshare(spaces).is_ok();
    }
    // The superuser can map all users, others only themselves.
    let all = "0 0 4294967295";
    let write = |file: &str, text: &str| fs::write(format!("/proc/self/{file}"), text).is_ok();
    let is_all = user.is_root() && write("uid_map", all) && write("gid_map", all);
    let is_mapped = is_all || {
        write("setgroups", "deny");
        write("uid_map", &format!("{user} {user} 1"))
            && write("gid_map", &format!("{group} {group} 1"))
    };
    // Another namespace of control groups would give access to those of the machine. The limit is one of this user
    // namespace.
    let _ = fs::write("/proc/sys/user/max_cgroup_namespaces", "0");
    is_mapped
}

/// Brings the loopback device up.
fn raise_loopback() -> std::io::Result<()> {
    let socket = std::net::UdpSocket::bind(("0.0.0.0", 0))?;
    // SAFETY: the request contains no pointers, and all bytes may be 0.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request lives until the call returns, and the call only reads it.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request) };
    match done {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn open(path: &Path) -> Step<File> {
    let failed = |error: std::io::Error| {
        let number = error.raw_os_error().unwrap_or(0);
        (
            format!("cannot open {}", path.display()),
            nix::errno::Errno::from_raw(number),
        )
    };
    File::open(path).map_err(failed)
}

/// File systems without user files.
const VIRTUAL: &[&str] = &[
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "mqueue",
    "hugetlbfs",
    "debugfs",
    "tracefs",
    "securityfs",
    "bpf",
    "pstore",
    "configfs",
    "fusectl",
    "binfmt_misc",
    "autofs",
    "nsfs",
    "efivarfs",
    "ramfs",
    "rpc_pipefs",
    "selinuxfs",
];

/// Returns the mount points with user files, outermost first.
fn mounts(text: &str, but: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in text.lines() {
        let (Some(point), Some(kind)) = (
            line.split(' ').nth(4),
            line.split(" - ")
                .nth(1)
                .and_then(|rest| rest.split(' ').next()),
        ) else {
            continue;
        };
        let point = PathBuf::from(point.replace("\\040", " ").replace("\\134", "\\"));
        let is_virtual = ["/dev", "/proc", "/sys"]
            .iter()
            .any(|one| point.starts_with(one));
        let is_own = point == Path::new("/") || point.starts_with(but) || is_virtual;
        if !is_own && !VIRTUAL.contains(&kind) && !found.contains(&point) {
            found.push(point);
        }
    }
    found.sort();
    found
}

/// Builds the file systems of the test and enters them.
fn mounted(job: &Job) -> Step<SandboxFiles> {
    let top = Path::new("/");
    step(
        "cannot separate mounts of",
        top,
        mount(NONE, top, NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE),
    )?;
    let base = &job.scratch;
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut points = mounts(&table, base);
    // A user may not copy folders of others to memory, so what is below them has its own layer.
    if !getuid().is_root() && !points.contains(&job.folder) {
        points.push(job.folder.clone());
    }
    let options = format!("size={},nr_inodes=200000,mode=0755", job.limits.disk);
    let fresh = mount(
        Some("tmpfs"),
        base,
        Some("tmpfs"),
        MsFlags::empty(),
        Some(options.as_str()),
    );
    step("cannot mount memory on", base, fresh)?;
    let root = base.join("root");
    make_folder(&root)?;
    // The new root must be a mount point.
    step(
        "cannot mount",
        &root,
        mount(Some(&root), &root, NONE, MsFlags::MS_BIND, NONE),
    )?;
    let mut layers = Layers {
        base,
        points: &points,
        count: 0,
        written: Vec::new(),
    };
    for point in top_level(top, &root)?.iter().chain(&points) {
        layers.add(point, &root.join(point.strip_prefix("/").unwrap_or(point)));
    }
    let written = layers.written;
    virtual_files::devices(&root)?;
    virtual_files::system(&root);
    for folder in &job.writable {
        let target = root.join(folder.strip_prefix("/").unwrap_or(folder));
        step(
            "cannot mount",
            folder,
            mount(Some(folder), &target, NONE, MsFlags::MS_BIND, NONE),
        )?;
    }
    virtual_files::processes(&root, !job.shares_network)?;
    step("cannot enter", &root, chdir(&root))?;
    step("cannot enter", &root, pivot_root(".", "."))?;
    step("cannot leave", top, umount2(".", MntFlags::MNT_DETACH))?;
    step("cannot enter", top, chdir(top))?;
    virtual_files::drop_capabilities();
    let own = PathBuf::from("/tmp/.everett");
    make_folder(&own)?;
    Ok(SandboxFiles {
        isolation: Isolation::Namespaces,
        folder: job.folder.clone(),
        own,
        written,
    })
}

/// Returns the folders of the root, which are overlaid one by one: a user namespace may not copy a
/// mount that has others below it. Recreates symbolic links, and copies plain files.
fn top_level(top: &Path, root: &Path) -> Step<Vec<PathBuf>> {
    let mut folders = Vec::new();
    let Ok(entries) = fs::read_dir(top) else {
        return Ok(folders);
    };
    for entry in entries.flatten() {
        let (path, target) = (entry.path(), root.join(entry.file_name()));
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_symlink() {
            // If this fails, a test that needs the link notices.
            let _ = fs::read_link(&path).and_then(|to| std::os::unix::fs::symlink(to, &target));
        } else if kind.is_dir() {
            make_folder(&target)?;
            let is_virtual = ["/dev", "/proc", "/sys"]
                .iter()
                .any(|one| path == Path::new(one));
            folders.extend((!is_virtual).then_some(path));
        } else if kind.is_file() {
            copy_file(&entry, &target);
        }
    }
    folders.sort();
    Ok(folders)
}

/// Maximum size of files that are copied if their folder cannot be overlaid; larger ones are
/// read-only.
const MAX_FILE: u64 = 1 << 20;

/// In-memory layers over folders.
struct Layers<'l> {
    base: &'l Path,
    /// The mount points that are overlaid separately.
    points: &'l [PathBuf],
    count: usize,
    /// Folders, and the layers that hold what is written to them.
    written: Vec<(PathBuf, File)>,
}

impl Layers<'_> {
    /// Overlays a folder. A folder that cannot be overlaid becomes read-only.
    fn add(&mut self, point: &Path, target: &Path) {
        if !point.is_dir() {
            return read_only(point, target);
        }
        self.count += 1;
        if let Ok(layer) = overlay(self.base, self.count, point, target) {
            self.written.push(layer);
            return;
        }
        let is_below = |other: &PathBuf| other != point && other.starts_with(point);
        let is_divided = self.points.iter().any(is_below) && self.divide(point, target).is_ok();
        if !is_divided {
            read_only(point, target);
        }
    }

    /// Overlays the entries of a folder one by one; the folder itself is in memory. This is for
    /// mounts with others below them, which a user namespace may not copy.
    fn divide(&mut self, point: &Path, target: &Path) -> Step<()> {
        make_folder(target)?;
        if let Ok(seen) = fs::metadata(point) {
            let _ = fs::set_permissions(target, seen.permissions());
        }
        let entries = fs::read_dir(point).into_iter().flatten().flatten();
        for entry in entries {
            let (path, to) = (entry.path(), target.join(entry.file_name()));
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            // If an entry cannot be created, a test that needs it notices.
            if kind.is_symlink() {
                let _ = fs::read_link(&path).and_then(|link| std::os::unix::fs::symlink(link, &to));
            } else if kind.is_dir() {
                make_folder(&to)?;
                if !self.points.contains(&path) {
                    self.add(&path, &to);
                }
            } else if kind.is_file() {
                copy_file(&entry, &to);
            }
        }
        self.written.push((point.to_owned(), open(target)?));
        Ok(())
    }
}

/// Copies a file of a folder that is not overlaid; a large one becomes read-only. If this fails, a
/// test that needs the file notices.
fn copy_file(entry: &fs::DirEntry, to: &Path) {
    match entry.metadata().is_ok_and(|seen| seen.len() <= MAX_FILE) {
        true => drop(fs::copy(entry.path(), to)),
        false if File::create(to).is_ok() => read_only(&entry.path(), to),
        false => {}
    }
}

/// Mounts an in-memory overlay over a mount point.
fn overlay(base: &Path, number: usize, point: &Path, target: &Path) -> Step<(PathBuf, File)> {
    let layer = base.join(format!("layer{number}"));
    let (upper, work) = (layer.join("upper"), layer.join("work"));
    for folder in [&upper, &work, &target.to_path_buf()] {
        make_folder(folder)?;
    }
    let escaped = |path: &Path| {
        path.display()
            .to_string()
            .replace('\\', "\\\\")
            .replace(':', "\\:")
            .replace(',', "\\,")
    };
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        escaped(point),
        escaped(&upper),
        escaped(&work)
    );
    let with_users = format!("{options},userxattr");
    let mut done = Err(nix::errno::Errno::EINVAL);
    for options in [with_users.as_str(), options.as_str()] {
        done = mount(
            Some("overlay"),
            target,
            Some("overlay"),
            MsFlags::empty(),
            Some(options),
        );
        if done.is_ok() {
            break;
        }
    }
    step("cannot lay memory over", point, done)?;
    Ok((point.to_owned(), open(&upper)?))
}

/// Mounts a mount point read-only.
fn read_only(point: &Path, target: &Path) {
    let bind = MsFlags::MS_BIND | MsFlags::MS_REC;
    if mount(Some(point), target, NONE, bind, NONE).is_ok() {
        let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        let _ = mount(NONE, target, NONE, flags, NONE);
    }
}

/// Maximum size of a folder that is copied.
const MAX_COPY: u64 = 64 << 20;

/// Copies the folder, without namespaces. Processes are found and killed because they are traced.
fn copied(job: &Job) -> Result<SandboxFiles, String> {
    let _ = nix::sys::prctl::set_child_subreaper(true);
    let folder = job.scratch.join("folder");
    let own = job.scratch.join("own");
    let written = job.scratch.join("folder");
    for path in [&folder, &own] {
        fs::create_dir_all(path)
            .map_err(|error| format!("cannot make {}: {error}", path.display()))?;
    }
    let mut left = MAX_COPY;
    copy(&job.folder, &folder, &job.scratch, &mut left)
        .map_err(|error| format!("cannot copy {}: {error}", job.folder.display()))?;
    let opened = File::open(&written)
        .map_err(|error| format!("cannot open {}: {error}", written.display()))?;
    Ok(SandboxFiles {
        isolation: Isolation::Processes,
        folder: folder.clone(),
        own,
        written: vec![(folder, opened)],
    })
}

fn copy(from: &Path, to: &Path, but: &Path, left: &mut u64) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if but.starts_with(&source) || entry.file_name() == "everett-out" {
            continue;
        }
        if kind.is_dir() {
            fs::create_dir_all(&target)?;
            copy(&source, &target, but, left)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&source)?, &target)?;
        } else if kind.is_file() {
            let size = entry.metadata()?.len();
            *left = left.checked_sub(size).ok_or_else(|| {
                std::io::Error::other(
                    "it is too large to be copied; this machine has no namespaces",
                )
            })?;
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

/// Returns the path of an open folder.
pub(super) fn path_of(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_of_a_test_has_the_files_of_the_root() {
        let base = std::env::temp_dir().join(format!("everett-root-{}", std::process::id()));
        let (top, root) = (base.join("top"), base.join("root"));
        fs::create_dir_all(top.join("folder")).unwrap();
        fs::create_dir_all(&root).unwrap();
        fs::write(top.join("file"), "text").unwrap();
        std::os::unix::fs::symlink("folder", top.join("link")).unwrap();
        let folders = top_level(&top, &root);
        let text = fs::read_to_string(root.join("file"));
        let link = fs::read_link(root.join("link"));
        let is_made = root.join("folder").is_dir();
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(folders, Ok(vec![top.join("folder")]));
        assert_eq!(text.ok().as_deref(), Some("text"));
        assert_eq!(link.ok().as_deref(), Some(Path::new("folder")));
        assert!(is_made);
    }

    #[test]
    fn mounts_with_files_of_users_are_found() {
        let table = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                     23 22 0:5 / /proc rw - proc proc rw\n\
                     24 22 0:6 / /home/a\\040b rw,nosuid shared:1 - xfs /dev/sdb rw\n\
                     25 22 0:7 / /dev/shm rw - tmpfs tmpfs rw\n\
                     27 22 0:9 / /sys/fs/cgroup ro - tmpfs tmpfs rw\n\
                     26 22 0:8 / /scratch/x rw - tmpfs tmpfs rw\n";
        assert_eq!(
            mounts(table, Path::new("/scratch")),
            [PathBuf::from("/home/a b")]
        );
    }
}
