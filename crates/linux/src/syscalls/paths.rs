//! Files by path name: resolving, opening and `stat`.

use everett_vm::{ChoiceSite, Value};
use triomphe::Arc;

use crate::bytes::Bytes;
use crate::capabilities::SYS_CHROOT;
use crate::errno::Errno;
use crate::files::{
    Dentry, Description, Device, FsCredentials, Generated, Inode, InodeKind, OpenFlags, READ, ROOT,
    Scope, Target, Tree, WRITE, Walk,
};
use crate::ids::InodeId;
use crate::kernel::{Answer, Kernel, Stop};
use crate::objects::Object;
use crate::objects::happened;
use crate::process::ExitState;
use crate::table::ArgKind::{Buffer, Fd, Flags, Int, Path, Pointer};
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("open", 2, &[Path, Flags, Int], OPEN_ERRORS, open)
        .fails_where(|_, args, errno| open_fails(args[1], errno)),
    Row::new("openat", 257, &[Fd, Path, Flags, Int], OPEN_ERRORS, openat)
        .fails_where(|_, args, errno| open_fails(args[2], errno)),
    Row::new(
        "openat2",
        437,
        &[Fd, Path, Pointer, Int],
        OPEN_ERRORS,
        openat2,
    ),
    Row::new("creat", 85, &[Path, Int], OPEN_ERRORS, creat),
    Row::new("stat", 4, &[Path, Pointer], ASK_ERRORS, stat),
    Row::new("fstat", 5, &[Fd, Pointer], &[], fstat),
    Row::new("lstat", 6, &[Path, Pointer], ASK_ERRORS, lstat),
    Row::new(
        "newfstatat",
        262,
        &[Fd, Path, Pointer, Flags],
        ASK_ERRORS,
        newfstatat,
    ),
    Row::new(
        "statx",
        332,
        &[Fd, Path, Flags, Flags, Pointer],
        ASK_ERRORS,
        statx,
    ),
    Row::new("access", 21, &[Path, Int], ASK_ERRORS, access),
    Row::new("faccessat", 269, &[Fd, Path, Int], ASK_ERRORS, faccessat),
    Row::new(
        "faccessat2",
        439,
        &[Fd, Path, Int, Flags],
        ASK_ERRORS,
        faccessat2,
    ),
    Row::new("readlink", 89, &[Path, Buffer, Int], ASK_ERRORS, readlink),
    Row::new(
        "readlinkat",
        267,
        &[Fd, Path, Buffer, Int],
        ASK_ERRORS,
        readlinkat,
    ),
    Row::new("getcwd", 79, &[Buffer, Int], &[], getcwd),
    Row::new("chdir", 80, &[Path], ASK_ERRORS, chdir),
    Row::new("fchdir", 81, &[Fd], &[Errno::EACCES], fchdir),
    Row::new("chroot", 161, &[Path], ASK_ERRORS, chroot),
];

/// Whether `open` can fail with this errno: only a new file needs space on the disk.
fn open_fails(flags: u64, errno: Errno) -> bool {
    errno != Errno::ENOSPC || flags as u32 & OpenFlags::CREATE != 0
}

const OPEN_ERRORS: &[Errno] = &[
    Errno::ENOENT,
    Errno::EACCES,
    Errno::EMFILE,
    Errno::ENOSPC,
    Errno::EINTR,
];
const ASK_ERRORS: &[Errno] = &[Errno::ENOENT, Errno::EACCES];

pub const AT_FDCWD: i32 = -100;
pub const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
pub const AT_EMPTY_PATH: u64 = 0x1000;

fn open(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.open_file(AT_FDCWD, call.args[0], call.args[1], call.args[2])
}

fn openat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.open_file(call.int(0), call.args[1], call.args[2], call.args[3])
}

fn openat2(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    /// Size of the first version of `struct open_how`.
    const FIRST_SIZE: u64 = 24;
    if call.args[3] < FIRST_SIZE {
        return Err(Errno::EINVAL.into());
    }
    const MOST: u64 = 4096;
    if call.args[3] > MOST {
        return Err(Errno::E2BIG.into());
    }
    let how = call.args[2];
    let later = kernel.read_bytes(how.wrapping_add(FIRST_SIZE), call.args[3] - FIRST_SIZE)?;
    if later.iter().any(|byte| *byte != 0) {
        return Err(Errno::E2BIG.into());
    }
    let flags = kernel.read_u64(how)?;
    let mode = kernel.read_u64(how.wrapping_add(8))?;
    let resolve = kernel.read_u64(how.wrapping_add(16))?;
    let scope = check_open_how(flags, mode, resolve)?;
    kernel.open_within(call.int(0), call.args[1], (flags, mode), scope)
}

/// Checks a `struct open_how`: unlike `openat`, `openat2` ignores nothing.
fn check_open_how(flags: u64, mode: u64, resolve: u64) -> Result<Scope, Errno> {
    const KNOWN: u64 = 0o37_777_703;
    const CREATING: u64 = (OpenFlags::CREATE | OpenFlags::TMPFILE) as u64;
    let has = |some: u32| flags & u64::from(some) != 0;
    let allowed = match flags & CREATING {
        0 => 0,
        _ => 0o7777,
    };
    let is_mixed = has(OpenFlags::PATH) && flags & !u64::from(OpenFlags::WITH_PATH) != 0;
    let scope = Scope::new(resolve)?;
    if flags & !KNOWN != 0 || mode & !allowed != 0 || is_mixed {
        return Err(Errno::EINVAL);
    }
    let opens_only = flags & CREATING == 0 && !has(OpenFlags::TRUNCATE);
    match scope.has(Scope::CACHED) && !opens_only {
        true => Err(Errno::EAGAIN),
        false => Ok(scope),
    }
}

fn creat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let flags = OpenFlags::CREATE | OpenFlags::WRITE_ONLY | OpenFlags::TRUNCATE;
    kernel.open_file(AT_FDCWD, call.args[0], u64::from(flags), call.args[1])
}

fn stat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let id = kernel.find(AT_FDCWD, call.args[0], true)?;
    kernel.write_status(Target::Inode(id), call.args[1])
}

fn lstat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let id = kernel.find(AT_FDCWD, call.args[0], false)?;
    kernel.write_link_status(id, call.args[1])
}

fn fstat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (_, description) = kernel.description(call.int(0))?;
    kernel.write_status(description.target, call.args[1])
}

fn newfstatat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const KNOWN: u64 = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | 0x800;
    if call.args[3] & !KNOWN != 0 {
        return Err(Errno::EINVAL.into());
    }
    match kernel.target(call.int(0), call.args[1], call.args[3])? {
        Target::Inode(id) if call.args[3] & AT_SYMLINK_NOFOLLOW != 0 => {
            kernel.write_link_status(id, call.args[2])
        }
        target => kernel.write_status(target, call.args[2]),
    }
}

fn statx(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    const RESERVED: u64 = 0x8000_0000;
    const SYNCHRONISATION: u64 = 0x6000;
    const KNOWN: u64 = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | 0x800 | SYNCHRONISATION;
    let flags = call.args[2] & 0xffff_ffff;
    let is_contrary = flags & SYNCHRONISATION == SYNCHRONISATION;
    if call.args[3] & RESERVED != 0 || flags & !KNOWN != 0 || is_contrary {
        return Err(Errno::EINVAL.into());
    }
    let target = kernel.target(call.int(0), call.args[1], call.args[2])?;
    kernel.choose_times(target)?;
    let status = kernel.host.status(target);
    let status = kernel.with_mode(target, &status.to_statx(call.args[3] as u32), true);
    kernel.write_buffer(call.args[4], &status)?;
    Ok(Value::ZERO)
}

fn access(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.may_access(AT_FDCWD, call.args[0], call.args[1], 0)
}

fn faccessat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.may_access(call.int(0), call.args[1], call.args[2], 0)
}

fn faccessat2(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.may_access(call.int(0), call.args[1], call.args[2], call.args[3])
}

fn readlink(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.read_link(AT_FDCWD, call.args[0], call.args[1], call.int(2))
}

fn readlinkat(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    kernel.read_link(call.int(0), call.args[1], call.args[2], call.int(3))
}

fn getcwd(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (tree, process) = (&kernel.host.files.tree, kernel.process());
    let path = tree.path_of(process.cwd).ok_or(Errno::ENOENT)?;
    let root = tree.path_of(process.root).unwrap_or_default();
    let mut path = seen_from(&root, &path);
    path.push(0);
    if call.args[1] < path.len() as u64 {
        return Err(Errno::ERANGE.into());
    }
    kernel.write_bytes(call.args[0], &path)?;
    Ok(Value::concrete(path.len() as u64))
}

fn chdir(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let id = kernel.find(AT_FDCWD, call.args[0], true)?;
    kernel.change_directory(id)
}

fn fchdir(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    match kernel.description(call.int(0))?.1.target {
        Target::Inode(id) => kernel.change_directory(id),
        _ => Err(Errno::ENOTDIR.into()),
    }
}

fn chroot(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let id = kernel.find(AT_FDCWD, call.args[0], true)?;
    kernel.check_enterable(id)?;
    if !kernel.is_capable(SYS_CHROOT) {
        return Err(Errno::EPERM.into());
    }
    kernel.process_mut().root = id;
    Ok(Value::ZERO)
}

/// The path of a directory as a process with this root directory sees it.
fn seen_from(root: &[u8], path: &[u8]) -> Vec<u8> {
    match path.strip_prefix(root) {
        _ if root == b"/" => path.to_vec(),
        Some(b"") => b"/".to_vec(),
        Some(rest) if rest.starts_with(b"/") => rest.to_vec(),
        _ => [b"(unreachable)", path].concat(),
    }
}

/// Where the resolution of a path starts, and what it must not do.
#[derive(Copy, Clone)]
struct Start {
    base: InodeId,
    scope: Scope,
}

impl Start {
    fn walk<'t>(self, tree: &'t Tree, who: &'t FsCredentials, root: InodeId) -> Walk<'t> {
        let walk = Walk::new(tree, who).within(root);
        walk.limited(self.scope, self.base)
    }
}

impl Default for Start {
    /// Without limits, the directory does not matter.
    fn default() -> Start {
        Start {
            base: ROOT,
            scope: Scope::default(),
        }
    }
}

impl Kernel<'_, '_> {
    /// Credentials of the process, for permission checks.
    pub fn fs_credentials(&self) -> FsCredentials {
        let process = self.process();
        FsCredentials {
            uid: process.file_ids[0].unwrap_or(process.uid[1]),
            gid: process.file_ids[1].unwrap_or(process.gid[1]),
            groups: process.groups.to_vec(),
            capabilities: process.capabilities.effective,
        }
    }

    /// Resolves a path, with `/proc` updated if the path leads through it.
    pub fn walk<T>(
        &mut self,
        who: &FsCredentials,
        work: impl Fn(&mut Walk<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.walk_within(Start::default(), who, work)
    }

    /// Resolves a path within limits.
    fn walk_within<T>(
        &mut self,
        start: Start,
        who: &FsCredentials,
        work: impl Fn(&mut Walk<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let root = self.process().root;
        let mut walk = start.walk(&self.host.files.tree, who, root);
        let found = work(&mut walk);
        if !walk.entered_proc {
            return found;
        }
        let (pid, tid) = (self.process().pid, self.task().tid);
        self.host.refresh_proc(pid, tid);
        work(&mut start.walk(&self.host.files.tree, who, root))
    }

    /// Resolves a path.
    pub fn resolve(&mut self, base: InodeId, path: &[u8], follow: bool) -> Result<InodeId, Errno> {
        let who = self.fs_credentials();
        self.walk(&who, |walk| walk.lookup(base, path, follow))
    }

    /// Resolves a path to its parent directory and last component, and to the file if it exists.
    pub fn resolve_dentry(
        &mut self,
        base: InodeId,
        path: &[u8],
    ) -> Result<(Dentry, Option<InodeId>), Errno> {
        let scope = Scope::default();
        self.resolve_dentry_within(Start { base, scope }, path)
    }

    fn resolve_dentry_within(
        &mut self,
        start: Start,
        path: &[u8],
    ) -> Result<(Dentry, Option<InodeId>), Errno> {
        let who = self.fs_credentials();
        self.walk_within(start, &who, |walk| {
            let dentry = walk.parent(start.base, path)?;
            let found = walk.child(dentry.directory, &dentry.name)?;
            Ok((dentry, found))
        })
    }

    /// The directory that a relative path starts from.
    pub fn base(&self, fd: i32, path: &[u8]) -> Result<InodeId, Errno> {
        if fd == AT_FDCWD || path.first() == Some(&b'/') {
            return Ok(self.process().cwd);
        }
        // An empty path fails first.
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        match self.description(fd)?.1.target {
            Target::Inode(id) if self.host.files.tree.get(id).is_directory() => Ok(id),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// Resolves a path in guest memory.
    pub fn find(&mut self, fd: i32, path: u64, follow: bool) -> Result<InodeId, Stop> {
        let path = self.read_path(path)?;
        let base = self.base(fd, &path)?;
        Ok(self.resolve(base, &path, follow)?)
    }

    /// The target of a path, or of the descriptor itself with `AT_EMPTY_PATH`.
    pub fn target(&mut self, fd: i32, path: u64, flags: u64) -> Result<Target, Stop> {
        if flags & AT_EMPTY_PATH != 0 {
            let empty = path == 0 || self.read_path(path)?.is_empty();
            if empty && fd != AT_FDCWD {
                return Ok(self.description(fd)?.1.target);
            }
            if empty {
                return Ok(Target::Inode(self.process().cwd));
            }
        }
        let id = self.find(fd, path, flags & AT_SYMLINK_NOFOLLOW == 0)?;
        Ok(Target::Inode(id))
    }

    /// If the run asks for it, chooses the times of a regular file when a program first reads them:
    /// as they are, old, or in the future. What a program has changed since boot keeps its times,
    /// whatever they are: files of the machine can be newer than the wall clock.
    fn choose_times(&mut self, target: Target) -> Result<(), Stop> {
        /// The second day of 1970, and the first of 2100.
        const OTHERS: [i64; 2] = [86_400_000_000_000, 4_102_444_800_000_000_000];
        let Target::Inode(id) = target else {
            return Ok(());
        };
        let is_wanted = self.host.options.symbolic_file_times && !self.host.internal_call;
        let files = &self.host.files;
        if !is_wanted || files.dated.contains(&id) || !files.tree.is_unmodified(id) {
            return Ok(());
        }
        let path = files.tree.any_path_of(id).unwrap_or_default();
        let name = path.rsplit(|byte| *byte == b'/').next();
        let name = String::from_utf8_lossy(name.unwrap_or_default());
        let site = ChoiceSite::FileTimes { name: name.into() };
        let picked = self.vm.choose(&site, 1 + OTHERS.len() as u32)? as usize;
        self.vm.commit();
        Arc::make_mut(&mut self.host.files.dated).insert(id);
        if let Some(time) = picked.checked_sub(1).and_then(|other| OTHERS.get(other)) {
            self.host.files.tree.date(id, *time);
        }
        Ok(())
    }

    fn write_status(&mut self, target: Target, address: u64) -> Answer {
        self.choose_times(target)?;
        let status = self.host.status(target);
        let status = self.with_mode(target, &status.to_stat(), false);
        self.write_buffer(address, &status)?;
        Ok(Value::ZERO)
    }

    /// Writes the status of the link itself, even if it is a magic link.
    fn write_link_status(&mut self, id: InodeId, address: u64) -> Answer {
        self.choose_times(Target::Inode(id))?;
        let status = crate::files::Status::of_inode(&self.host.files.tree, id);
        let status = self.with_mode(Target::Inode(id), &status.to_stat(), false);
        self.write_buffer(address, &status)?;
        Ok(Value::ZERO)
    }

    /// Whether the process may make a file its working or root directory.
    fn check_enterable(&self, id: InodeId) -> Result<(), Errno> {
        let inode = self.host.files.tree.get(id);
        if !inode.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        self.fs_credentials().check(inode, crate::files::EXECUTE)
    }

    fn change_directory(&mut self, id: InodeId) -> Answer {
        self.check_enterable(id)?;
        self.process_mut().cwd = id;
        Ok(Value::ZERO)
    }

    /// `access`: with real user and group ids, unless the flags ask for the effective ones.
    fn may_access(&mut self, fd: i32, path: u64, wanted: u64, flags: u64) -> Answer {
        const EFFECTIVE: u64 = 0x200;
        if wanted & !7 != 0 || flags & !(EFFECTIVE | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
            return Err(Errno::EINVAL.into());
        }
        let mut who = self.fs_credentials();
        if flags & EFFECTIVE == 0 {
            let process = self.process();
            (who.uid, who.gid) = (process.uid[0], process.gid[0]);
            who.capabilities = match who.uid {
                0 => process.capabilities.permitted,
                _ => 0,
            };
        }
        let id = if flags & AT_EMPTY_PATH != 0 {
            match self.target(fd, path, flags)? {
                Target::Inode(id) => id,
                _ => return Ok(Value::ZERO),
            }
        } else {
            let path = self.read_path(path)?;
            let base = self.base(fd, &path)?;
            let follow = flags & AT_SYMLINK_NOFOLLOW == 0;
            self.walk(&who, |walk| walk.lookup(base, &path, follow))?
        };
        who.check(self.host.files.tree.get(id), wanted as u32)?;
        Ok(Value::ZERO)
    }

    fn read_link(&mut self, fd: i32, path: u64, to: u64, room: i32) -> Answer {
        if room <= 0 {
            return Err(Errno::EINVAL.into());
        }
        let path = self.read_path(path)?;
        let id = match self.description(fd) {
            // A link that was opened with `O_PATH`.
            Ok((_, description)) if path.is_empty() => match description.target {
                Target::Inode(id) => id,
                _ => return Err(Errno::ENOENT.into()),
            },
            _ => {
                let base = self.base(fd, &path)?;
                let id = self.resolve(base, &path, false)?;
                let (dentry, _) = self.resolve_dentry(base, &path)?;
                if dentry.name != b"net" {
                    let who = self.fs_credentials();
                    let tree = &self.host.files.tree;
                    tree.check_process_link(dentry.directory, Target::Inode(id), &who)?;
                }
                id
            }
        };
        let mut target = match &self.host.files.tree.get(id).kind {
            InodeKind::Link(target) => target.clone(),
            InodeKind::Magic(target) => self.name_of_target(*target),
            _ if path.is_empty() => return Err(Errno::ENOENT.into()),
            _ => return Err(Errno::EINVAL.into()),
        };
        target.truncate(room as usize);
        self.write_bytes(to, &target)?;
        Ok(Value::concrete(target.len() as u64))
    }

    /// The name of an open target in `/proc`.
    fn name_of_target(&self, target: Target) -> Vec<u8> {
        let name = |kind: &str| {
            let inode = self.host.status(target).inode;
            format!("{kind}:[{inode}]").into_bytes()
        };
        if let Target::Object(id) = target
            && let Some(named) = self.host.files.fifo_of(id)
        {
            return self.name_of_target(Target::Inode(named));
        }
        match target {
            Target::Inode(id) => {
                let path = self.host.files.tree.any_path_of(id);
                path.unwrap_or_else(|| {
                    let last = self.host.files.tree.get(id).last_path.as_deref();
                    let unnamed = format!("/#{}", id.0).into_bytes();
                    [last.unwrap_or(&unnamed), &b" (deleted)"[..]].concat()
                })
            }
            Target::Object(_) if self.host.status(target).mode & 0o170_000 == 0o140_000 => {
                name("socket")
            }
            Target::Object(id) => match self.host.objects.get(id.0).map(Object::anonymous_name) {
                Some(Some(anonymous)) => anonymous.into(),
                _ => name("pipe"),
            },
            _ => name("pipe"),
        }
    }

    fn open_file(&mut self, fd: i32, path: u64, flags: u64, mode: u64) -> Answer {
        self.open_within(fd, path, (flags, mode), Scope::default())
    }

    /// Opens a file whose path may only lead where `scope` permits it.
    fn open_within(
        &mut self,
        fd: i32,
        path: u64,
        (flags, mode): (u64, u64),
        scope: Scope,
    ) -> Answer {
        let mut flags = OpenFlags(flags as u32);
        if flags.has(OpenFlags::PATH) {
            flags.0 &= OpenFlags::WITH_PATH;
        } else {
            flags.0 |= OpenFlags::LARGE;
        }
        let anonymous = flags.has(OpenFlags::TMPFILE);
        let creates = flags.has(OpenFlags::CREATE);
        if anonymous && (creates || !flags.has(OpenFlags::DIRECTORY) || !flags.writable())
            || (creates && flags.has(OpenFlags::DIRECTORY))
        {
            return Err(Errno::EINVAL.into());
        }
        let path = match creates {
            true => self.read_new_path(path)?,
            false => self.read_path(path)?,
        };
        if path.is_empty() {
            return Err(Errno::ENOENT.into());
        }
        // An absolute path starts there, too.
        let starts_at_fd = scope.has(Scope::IN_ROOT);
        let base = self.base(fd, if starts_at_fd { b"." } else { &path })?;
        let start = Start { base, scope };
        let to = self.process().descriptors.free_from(0)?;
        let target = if anonymous {
            self.open_tmpfile(start, &path, mode)?
        } else if creates {
            self.open_or_create(start, &path, flags, mode)?
        } else {
            let follow = !flags.has(OpenFlags::NO_FOLLOW);
            let who = self.fs_credentials();
            let found = self.walk_within(start, &who, |walk| walk.lookup(base, &path, follow));
            if let Err(Errno::ENOENT) = found {
                self.refuse_kernel_file(&path);
            }
            self.open_existing(found?, flags)?
        };
        const DROPPED: u32 =
            OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE | OpenFlags::TERMINAL;
        self.install(to, Description::new(target, flags.0 & !DROPPED));
        Ok(Value::concrete(to as u64))
    }

    /// Records a refusal if a missing file is one that a real kernel may have: the model has few of
    /// those.
    fn refuse_kernel_file(&mut self, path: &[u8]) {
        /// Directories in which programs, not the kernel, create files, and directories of which a
        /// real machine need not have more than the model.
        const OTHERS: &[&[u8]] = &[
            b"/dev/shm/",
            b"/dev/mqueue/",
            b"/dev/pts/",
            b"/dev/disk/",
            b"/sys/fs/cgroup/",
        ];
        let is_below = |folders: &[&[u8]]| folders.iter().any(|folder| path.starts_with(folder));
        let of_process = path.strip_prefix(b"/proc/");
        let of_process =
            of_process.is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit));
        if is_below(&[b"/proc/", b"/sys/", b"/dev/"]) && !is_below(OTHERS) && !of_process {
            let path = String::from_utf8_lossy(path).into_owned();
            self.refuse("open", format!("the file {path}"));
        }
    }

    fn open_or_create(
        &mut self,
        start: Start,
        path: &[u8],
        flags: OpenFlags,
        mode: u64,
    ) -> Result<Target, Stop> {
        let exclusive = flags.has(OpenFlags::EXCLUSIVE);
        let follow = !flags.has(OpenFlags::NO_FOLLOW) && !exclusive;
        let (dentry, found) = if follow {
            let who = self.fs_credentials();
            self.walk_within(start, &who, |walk| walk.final_dentry(start.base, path))?
        } else {
            self.resolve_dentry_within(start, path)?
        };
        if dentry.must_be_directory {
            return Err(Errno::EISDIR.into());
        }
        match found {
            Some(_) if exclusive => Err(Errno::EEXIST.into()),
            Some(id) if self.host.files.tree.get(id).is_directory() => Err(Errno::EISDIR.into()),
            Some(id) => self.open_existing(id, flags),
            None => {
                let node = InodeKind::Regular(Bytes::default());
                let id = self.create_file(&dentry, node, mode as u32)?;
                self.host.notify(id, happened::OPEN);
                Ok(Target::Inode(id))
            }
        }
    }

    /// Creates a file under a free name.
    pub fn create_file(
        &mut self,
        dentry: &Dentry,
        node: InodeKind,
        mode: u32,
    ) -> Result<InodeId, Errno> {
        let who = self.fs_credentials();
        let now_ns = self.wall_clock_ns();
        let directory = self.host.files.tree.get(dentry.directory);
        if directory.links == 0 {
            return Err(Errno::ENOENT);
        }
        who.check(directory, WRITE | crate::files::EXECUTE)?;
        if self.host.files.tree.is_in_proc(dentry.directory) {
            return Err(Errno::ENOENT);
        }
        let mode = match node {
            InodeKind::Link(_) => 0o777,
            _ => mode & 0o7777 & !self.process().umask,
        };
        let mut inode = Inode::new(node, mode, now_ns);
        who.own(directory, &mut inode);
        let tree = &mut self.host.files.tree;
        tree.get_mut(dentry.directory).touch(now_ns);
        let is_directory = inode.is_directory();
        let id = tree.add(dentry.directory, &dentry.name, inode);
        let mask = happened::CREATE | happened::directory(is_directory);
        self.host
            .notify_name(dentry.directory, &dentry.name, mask, 0);
        Ok(id)
    }

    /// `O_TMPFILE`.
    fn open_tmpfile(&mut self, start: Start, path: &[u8], mode: u64) -> Result<Target, Stop> {
        let who = self.fs_credentials();
        let directory =
            self.walk_within(start, &who, |walk| walk.lookup(start.base, path, true))?;
        let now_ns = self.wall_clock_ns();
        let inode = self.host.files.tree.get(directory);
        if !inode.is_directory() {
            return Err(Errno::ENOTDIR.into());
        }
        who.check(inode, WRITE | crate::files::EXECUTE)?;
        let mode = mode as u32 & 0o7777 & !self.process().umask;
        let mut new = Inode::new(InodeKind::Regular(Bytes::default()), mode, now_ns);
        who.own(inode, &mut new);
        Ok(Target::Inode(self.host.files.tree.add_unlinked(new)))
    }

    /// Opens an existing file. Nothing changes if it cannot be opened.
    fn open_existing(&mut self, id: InodeId, flags: OpenFlags) -> Result<Target, Stop> {
        let inode = self.host.files.tree.get(id);
        let is_directory = inode.is_directory();
        if flags.has(OpenFlags::DIRECTORY) && !is_directory {
            return Err(Errno::ENOTDIR.into());
        }
        if flags.has(OpenFlags::PATH) {
            return Ok(Target::Inode(id));
        }
        match &inode.kind {
            InodeKind::Directory(_) if flags.writable() => return Err(Errno::EISDIR.into()),
            InodeKind::Link(_) => return Err(Errno::ELOOP.into()),
            InodeKind::Magic(_) if flags.has(OpenFlags::NO_FOLLOW) => {
                return Err(Errno::ELOOP.into());
            }
            InodeKind::Socket => return Err(Errno::ENXIO.into()),
            // Root cannot write them, either.
            InodeKind::Generated(what) if flags.writable() && what.is_read_only() => {
                return Err(Errno::EACCES.into());
            }
            _ => {}
        }
        let mut wanted = 0;
        if flags.readable() {
            wanted |= READ;
        }
        if flags.writable() || flags.has(OpenFlags::TRUNCATE) {
            wanted |= WRITE;
        }
        let who = self.fs_credentials();
        who.check(inode, wanted)?;
        if flags.has(OpenFlags::NO_ACCESS_TIME) {
            who.check_owner(inode)?;
        }
        if wanted & WRITE != 0 {
            self.check_not_executed(id)?;
        }
        if flags.writable() && self.is_not_writable(id, flags.readable())? {
            return Err(Errno::EACCES.into());
        }
        match self.host.files.tree.get(id).kind {
            InodeKind::Device(Device::Other { .. }) => Err(Errno::ENXIO.into()),
            InodeKind::Device(Device::Terminal) => self.open_controlling_terminal(),
            InodeKind::Device(Device::Multiplexer) => self.open_terminal(),
            InodeKind::Device(Device::Line(number)) => self.open_line(number, flags),
            InodeKind::Generated(what) => {
                let bytes = match self.generate_of_memory(what)? {
                    Some(bytes) => bytes,
                    None if what == Generated::Uuid => self.host.random_uuid(),
                    None => {
                        let memory = (self.process().pid, &*self.vm.memory);
                        self.host.generate(what, memory)
                    }
                };
                let copy = Inode {
                    kind: InodeKind::Regular(bytes),
                    setting: what.is_setting().then_some(what),
                    ..self.host.files.tree.get(id).clone()
                };
                Ok(Target::Inode(self.host.files.tree.add_unlinked(copy)))
            }
            InodeKind::Magic(target) => self.open_again(target, flags),
            InodeKind::Fifo => self.open_fifo(id, flags),
            _ => {
                self.host.notify(id, happened::OPEN);
                let is_regular = matches!(self.host.files.tree.get(id).kind, InodeKind::Regular(_));
                if is_regular && flags.has(OpenFlags::TRUNCATE) {
                    self.truncate(id, 0)?;
                }
                Ok(Target::Inode(id))
            }
        }
    }

    /// Fails for a file that a process executes.
    pub fn check_not_executed(&self, id: InodeId) -> Result<(), Errno> {
        let mut running = self
            .host
            .processes
            .iter()
            .filter(|process| matches!(process.exit_state, ExitState::Alive));
        match running.any(|process| process.execution.file == Some(id)) {
            true => Err(Errno::ETXTBSY),
            false => Ok(()),
        }
    }

    /// Reopens an open target through `/proc`.
    fn open_again(&mut self, target: Target, flags: OpenFlags) -> Result<Target, Stop> {
        match target {
            Target::Inode(id) => self.open_existing(id, flags),
            Target::Stdin(_) | Target::Output(_) => Ok(target),
            Target::Object(id) => self.open_object_again(id, flags),
        }
    }
}
