//! The table of libc functions that fault injection can make fail, with their return values on
//! failure and their errnos.

use everett_vm::FunctionFailure;

use crate::errno::Errno;

/// A libc function.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// The family; functions are ordered by it.
    pub family: &'static str,
    /// The name.
    pub name: &'static str,
    /// Other names under which programs call it.
    pub aliases: &'static [&'static str],
    /// The return value on failure.
    pub retval: i64,
    /// The errnos on failure; empty if the return value is the error.
    pub errnos: &'static [&'static str],
    /// Whether it does its work even if it fails.
    pub is_done: bool,
}

impl Function {
    /// Returns whether it returns the number of the error, and does not set `errno`.
    pub fn returns_error(&self) -> bool {
        self.errnos.is_empty() && self.retval > 0 && self.name != "ferror"
    }
}

macro_rules! functions {
    ($($family:literal {
        $($name:ident $([$($alias:ident)*])? $retval:literal $($errno:ident)* $(; $done:ident)?,)*
    })*) => {
        /// All functions, by family.
        pub const FUNCTIONS: &[Function] = &[$($(Function {
            family: $family,
            name: stringify!($name),
            aliases: &[$($(stringify!($alias)),*)?],
            retval: $retval,
            errnos: &[$(stringify!($errno)),*],
            is_done: is_done(&[$(stringify!($done))?]),
        }),*),*];
    };
}

const fn is_done(words: &[&str]) -> bool {
    !words.is_empty()
}

functions! {
    "memory" {
        malloc 0 ENOMEM,
        calloc 0 ENOMEM,
        realloc 0 ENOMEM,
        reallocarray 0 ENOMEM,
        posix_memalign 12,
        aligned_alloc 0 ENOMEM,
        strdup [__strdup] 0 ENOMEM,
        strndup [__strndup] 0 ENOMEM,
        mmap [mmap64] -1 ENOMEM EACCES EAGAIN,
        mprotect -1 ENOMEM EACCES,
    }
    "file" {
        open [open64 __open_2 __open64_2] -1 EACCES ENOENT EMFILE ENFILE ENOSPC EIO EINTR EROFS,
        openat [openat64 __openat_2 __openat64_2] -1 EACCES ENOENT EMFILE ENFILE ENOSPC EIO EINTR EROFS,
        creat [creat64] -1 EACCES EMFILE ENOSPC EIO,
        read [__read_chk] -1 EIO EINTR EAGAIN,
        pread [pread64 __pread_chk __pread64_chk] -1 EIO EINTR,
        readv -1 EIO EINTR,
        write -1 ENOSPC EIO EINTR EPIPE EAGAIN EDQUOT,
        pwrite [pwrite64] -1 ENOSPC EIO EINTR,
        writev -1 ENOSPC EIO EINTR EPIPE,
        lseek [lseek64] -1 ESPIPE EINVAL,
        close -1 EIO EINTR; done,
        fsync -1 EIO ENOSPC,
        fdatasync -1 EIO ENOSPC,
        ftruncate [ftruncate64] -1 EIO EFBIG,
        truncate [truncate64] -1 EIO EACCES,
        posix_fallocate [posix_fallocate64] 28,
        fcntl [fcntl64] -1 EACCES EAGAIN ENOLCK EINTR,
        flock -1 EINTR ENOLCK,
        dup -1 EMFILE,
        dup2 -1 EMFILE EINTR,
        ioctl -1 EIO ENOTTY,
        copy_file_range -1 EIO ENOSPC EXDEV,
        sendfile [sendfile64] -1 EIO EAGAIN,
    }
    "stream" {
        fopen [fopen64] 0 EACCES ENOENT EMFILE ENOMEM EIO,
        fdopen 0 EMFILE ENOMEM,
        freopen [freopen64] 0 EACCES ENOENT EIO,
        fclose -1 EIO ENOSPC; done,
        fread [fread_unlocked __fread_chk __fread_unlocked_chk] 0 EIO,
        fwrite [fwrite_unlocked] 0 ENOSPC EIO,
        fgets [fgets_unlocked __fgets_chk] 0 EIO,
        fputs [fputs_unlocked] -1 ENOSPC EIO,
        getline -1 EIO ENOMEM,
        getdelim [__getdelim] -1 EIO ENOMEM,
        fflush [fflush_unlocked] -1 ENOSPC EIO,
        fseek [fseeko fseeko64] -1 ESPIPE EIO,
        ferror [ferror_unlocked] 1,
        tmpfile [tmpfile64] 0 EMFILE ENOSPC,
    }
    "status" {
        stat [stat64] -1 EACCES ENOENT EIO,
        lstat [lstat64] -1 EACCES ENOENT EIO,
        fstat [fstat64] -1 EIO,
        fstatat [fstatat64] -1 EACCES ENOENT EIO,
        statx -1 EACCES ENOENT EIO,
        access -1 EACCES ENOENT,
        faccessat -1 EACCES ENOENT,
        chmod -1 EPERM EROFS EIO,
        fchmod -1 EPERM EIO,
        fchmodat -1 EPERM EROFS EIO,
        chown -1 EPERM EROFS,
        lchown -1 EPERM EROFS,
        fchown -1 EPERM EIO,
        fchownat -1 EPERM EROFS,
        utimensat -1 EACCES EROFS,
        futimens -1 EACCES,
        getxattr -1 ENODATA EOPNOTSUPP,
        lgetxattr -1 ENODATA EOPNOTSUPP,
        setxattr -1 ENOSPC EOPNOTSUPP,
    }
    "name" {
        link -1 EEXIST EMLINK EXDEV EPERM EIO,
        linkat -1 EEXIST EMLINK EXDEV EPERM EIO,
        symlink -1 EEXIST ENOSPC EPERM EIO,
        symlinkat -1 EEXIST ENOSPC EPERM EIO,
        unlink -1 EACCES EBUSY EPERM EIO,
        unlinkat -1 EACCES EBUSY EPERM EIO,
        rename -1 EXDEV EACCES ENOSPC EBUSY EIO,
        renameat -1 EXDEV EACCES ENOSPC EBUSY EIO,
        renameat2 -1 EXDEV EACCES ENOSPC EINVAL EIO,
        readlink [__readlink_chk] -1 EINVAL EACCES EIO,
        readlinkat [__readlinkat_chk] -1 EINVAL EACCES EIO,
        realpath [__realpath_chk] 0 EACCES ELOOP ENOMEM EIO,
        mkdir -1 EEXIST ENOSPC EACCES,
        mkdirat -1 EEXIST ENOSPC EACCES,
        rmdir -1 ENOTEMPTY EBUSY EACCES,
        mkfifo -1 EEXIST ENOSPC,
        mkstemp [mkstemp64 mkostemp mkostemp64] -1 EEXIST EMFILE ENOSPC,
        mkdtemp 0 EEXIST ENOSPC,
    }
    "folder" {
        opendir 0 EACCES EMFILE ENOENT ENOMEM,
        fdopendir 0 ENOMEM,
        readdir [readdir64] 0 EIO,
        closedir -1 EIO; done,
        chdir -1 EACCES ENOENT EIO,
        fchdir -1 EACCES EIO,
        getcwd [__getcwd_chk] 0 ENOENT ERANGE ENOMEM,
        scandir [scandir64] -1 ENOMEM ENOENT,
    }
    "network" {
        socket -1 EMFILE ENFILE ENOBUFS EACCES,
        bind -1 EADDRINUSE EACCES,
        listen -1 EADDRINUSE,
        accept -1 ECONNABORTED EMFILE ENFILE EINTR EAGAIN,
        accept4 -1 ECONNABORTED EMFILE ENFILE EINTR EAGAIN,
        connect -1 ECONNREFUSED ETIMEDOUT ENETUNREACH EINTR,
        send -1 ECONNRESET EPIPE EAGAIN EINTR ENOBUFS,
        sendto -1 ECONNRESET EPIPE EAGAIN EINTR ENOBUFS,
        sendmsg -1 ECONNRESET EPIPE EAGAIN EINTR ENOBUFS,
        recv [__recv_chk] -1 ECONNRESET EAGAIN EINTR,
        recvfrom [__recvfrom_chk] -1 ECONNRESET EAGAIN EINTR,
        recvmsg -1 ECONNRESET EAGAIN EINTR,
        shutdown -1 ENOTCONN,
        getsockopt -1 ENOBUFS,
        setsockopt -1 ENOBUFS ENOMEM,
        getsockname -1 ENOBUFS,
        getpeername -1 ENOTCONN,
        getaddrinfo -3,
        getifaddrs -1 ENOMEM,
        socketpair -1 EMFILE,
    }
    "event" {
        poll [__poll_chk] -1 EINTR ENOMEM,
        select -1 EINTR ENOMEM,
        epoll_create1 -1 EMFILE ENOMEM,
        epoll_ctl -1 ENOMEM ENOSPC,
        epoll_wait -1 EINTR,
        eventfd -1 EMFILE,
        timerfd_create -1 EMFILE,
        signalfd -1 EMFILE,
        inotify_init1 -1 EMFILE,
        pipe -1 EMFILE ENFILE,
        pipe2 -1 EMFILE ENFILE,
    }
    "process" {
        fork -1 EAGAIN ENOMEM,
        waitpid -1 EINTR ECHILD,
        execve -1 ENOENT EACCES E2BIG ENOMEM,
        execvp -1 ENOENT EACCES,
        kill -1 EPERM ESRCH,
        sigaction -1 EINVAL,
        setrlimit [setrlimit64] -1 EPERM,
        getrlimit [getrlimit64] -1 EINVAL,
        setuid -1 EPERM EAGAIN,
        setgid -1 EPERM,
        getpwnam 0 EIO ENOMEM,
        getpwuid 0 EIO ENOMEM,
        getgrnam 0 EIO ENOMEM,
        setenv -1 ENOMEM,
        putenv -1 ENOMEM,
        getenv [secure_getenv] 0,
        setlocale 0,
        dlopen 0,
    }
    "thread" {
        pthread_create 11,
        pthread_mutex_lock 35,
        pthread_mutex_trylock 16,
        pthread_mutex_init 12,
        pthread_cond_init 12,
        pthread_rwlock_rdlock 11,
        pthread_rwlock_wrlock 35,
        sem_init -1 ENOSPC,
        sem_wait -1 EINTR,
    }
    "time" {
        clock_gettime -1 EINVAL,
        gettimeofday -1 EINVAL,
        nanosleep -1 EINTR,
        usleep -1 EINTR,
        localtime 0 EOVERFLOW,
        strtol [__isoc23_strtol] 0 ERANGE EINVAL,
        strtoul [__isoc23_strtoul] 0 ERANGE EINVAL,
    }
}

/// Returns the function with a name, which may be an alias.
pub fn named(name: &str) -> Option<&'static Function> {
    FUNCTIONS
        .iter()
        .find(|function| function.name == name || function.aliases.contains(&name))
}

/// What follows the name of a libc function, in filters and choices: system calls may have the same
/// names.
pub const CALLED: &str = "()";

/// The filter that means all libc functions.
pub(crate) const ANY: &str = "*()";

/// Functions that set the error indicator of a stream when they fail, with the stream's argument.
pub(crate) const STREAMS: &[(&str, usize)] = &[
    ("fread", 3),
    ("fwrite", 3),
    ("fgets", 2),
    ("fputs", 1),
    ("getline", 2),
    ("getdelim", 3),
    ("fflush", 0),
];

impl Function {
    /// Returns the names of its usual failures.
    pub fn failures(&self) -> Vec<String> {
        let numbered = Errno(self.retval as i32);
        match self.errnos {
            [] if self.returns_error() => vec![numbered.name().to_owned()],
            [] => vec![format!("={}", self.retval)],
            errnos => errnos.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    /// Returns the failure with a name: `ERRNO`, `ERRNO=VALUE` or `=VALUE`.
    pub fn failure(&self, name: &str) -> Option<FunctionFailure> {
        let (errno, value) = match name.split_once('=') {
            Some((errno, value)) => (errno, Some(value.parse::<i32>().ok()?)),
            None => (name, None),
        };
        let errno = match errno {
            "" => None,
            errno => Some(Errno::named(errno)?.0),
        };
        if errno.is_none() && value.is_none() {
            return None;
        }
        let usual = errno.filter(|_| self.returns_error());
        let value = value.or(usual).map_or(self.retval, i64::from);
        let errno = errno.filter(|_| !self.returns_error());
        Some(FunctionFailure {
            name: name.to_owned(),
            errno: errno.map(|errno| errno as u32),
            value,
        })
    }
}

/// Returns the function that a filter or a choice means, if it means one.
pub fn called(name: &str) -> Option<&'static Function> {
    named(name.strip_suffix(CALLED)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_function_has_one_row_and_known_errnos() {
        let mut seen = BTreeSet::new();
        for function in FUNCTIONS {
            assert!(seen.insert(function.name), "{}", function.name);
            for alias in function.aliases {
                assert!(seen.insert(alias), "{alias}");
            }
            for errno in function.errnos {
                assert!(Errno::named(errno).is_some(), "{errno}");
            }
        }
        assert!(FUNCTIONS.len() > 100);
        assert_eq!(named("open64").unwrap().name, "open");
    }

    #[test]
    fn failures_have_an_errno_a_value_or_both() {
        let failure = |function: &str, name: &str| {
            let failure = named(function).unwrap().failure(name)?;
            Some((failure.errno, failure.value))
        };
        assert_eq!(failure("fopen", "EIO"), Some((Some(5), 0)));
        assert_eq!(failure("fopen", "EIO=7"), Some((Some(5), 7)));
        assert_eq!(failure("fopen", "=7"), Some((None, 7)));
        assert_eq!(failure("pthread_create", "EAGAIN"), Some((None, 11)));
        for wrong in ["", "=", "EWHAT", "=x", "EIO="] {
            assert_eq!(failure("fopen", wrong), None, "{wrong}");
        }
    }
}
