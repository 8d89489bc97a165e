//! The arguments of libc functions, by which a call is told from others with the same stack.

use everett_vm::ShownArgument;

/// The arguments of libc functions: `s` is a text, `i` and `n` are numbers, `-` is an address.
const FUNCTIONS: &[(&str, &str)] = &[
    ("malloc", "n"),
    ("calloc", "nn"),
    ("realloc", "-n"),
    ("reallocarray", "-nn"),
    ("posix_memalign", "-nn"),
    ("aligned_alloc", "nn"),
    ("strdup", "s"),
    ("strndup", "-n"),
    ("mmap", "-niiin"),
    ("mprotect", "-ni"),
    ("open", "si"),
    ("openat", "isi"),
    ("creat", "si"),
    ("read", "i-n"),
    ("pread", "i-nn"),
    ("readv", "i-i"),
    ("write", "i-n"),
    ("pwrite", "i-nn"),
    ("writev", "i-i"),
    ("lseek", "ini"),
    ("close", "i"),
    ("fsync", "i"),
    ("fdatasync", "i"),
    ("ftruncate", "in"),
    ("truncate", "sn"),
    ("posix_fallocate", "inn"),
    ("fcntl", "ii"),
    ("flock", "ii"),
    ("dup", "i"),
    ("dup2", "ii"),
    ("ioctl", "in"),
    ("fopen", "ss"),
    ("fdopen", "is"),
    ("freopen", "ss"),
    ("fputs", "s"),
    ("stat", "s"),
    ("lstat", "s"),
    ("fstat", "i"),
    ("fstatat", "is-i"),
    ("statx", "isii"),
    ("access", "si"),
    ("faccessat", "isii"),
    ("chmod", "si"),
    ("fchmod", "ii"),
    ("fchmodat", "isii"),
    ("chown", "sii"),
    ("lchown", "sii"),
    ("fchown", "iii"),
    ("fchownat", "isiii"),
    ("utimensat", "is-i"),
    ("futimens", "i"),
    ("getxattr", "ss-n"),
    ("lgetxattr", "ss-n"),
    ("setxattr", "ss-ni"),
    ("link", "ss"),
    ("linkat", "isisi"),
    ("symlink", "ss"),
    ("symlinkat", "sis"),
    ("unlink", "s"),
    ("unlinkat", "isi"),
    ("rename", "ss"),
    ("renameat", "isis"),
    ("renameat2", "isisi"),
    ("readlink", "s"),
    ("readlinkat", "is"),
    ("realpath", "s"),
    ("mkdir", "si"),
    ("mkdirat", "isi"),
    ("rmdir", "s"),
    ("mkfifo", "si"),
    ("mkstemp", "s"),
    ("mkdtemp", "s"),
    ("opendir", "s"),
    ("fdopendir", "i"),
    ("chdir", "s"),
    ("fchdir", "i"),
    ("scandir", "s"),
    ("socket", "iii"),
    ("bind", "i"),
    ("listen", "ii"),
    ("accept", "i"),
    ("accept4", "i"),
    ("connect", "i"),
    ("send", "i-ni"),
    ("sendto", "i-ni"),
    ("sendmsg", "i-i"),
    ("recv", "i-ni"),
    ("recvfrom", "i-ni"),
    ("recvmsg", "i-i"),
    ("shutdown", "ii"),
    ("getsockopt", "iii"),
    ("setsockopt", "iii"),
    ("getsockname", "i"),
    ("getpeername", "i"),
    ("getaddrinfo", "ss"),
    ("socketpair", "iii"),
    ("poll", "-ni"),
    ("epoll_create1", "i"),
    ("epoll_ctl", "iii"),
    ("epoll_wait", "i-ii"),
    ("eventfd", "ii"),
    ("pipe2", "-i"),
    ("waitpid", "i-i"),
    ("execve", "s"),
    ("execvp", "s"),
    ("kill", "ii"),
    ("sigaction", "i"),
    ("setrlimit", "i"),
    ("getrlimit", "i"),
    ("setuid", "i"),
    ("setgid", "i"),
    ("getpwnam", "s"),
    ("getpwuid", "i"),
    ("getgrnam", "s"),
    ("setenv", "ssi"),
    ("putenv", "s"),
    ("getenv", "s"),
    ("setlocale", "is"),
    ("dlopen", "si"),
    ("clock_gettime", "i"),
    ("usleep", "i"),
    ("strtol", "s"),
    ("strtoul", "s"),
];

/// Returns what the arguments of a libc function are, as far as they are known.
pub fn shown_arguments_of_function(name: &str) -> Vec<ShownArgument> {
    let row = FUNCTIONS.iter().find(|(function, _)| *function == name);
    let letters = row.map_or("", |(_, letters)| letters);
    let kind = |letter: char| match letter {
        's' => ShownArgument::Text,
        'i' => ShownArgument::Number,
        'n' => ShownArgument::Size,
        _ => ShownArgument::Address,
    };
    letters.chars().map(kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::named;

    #[test]
    fn the_table_has_functions_that_can_be_failed() {
        for (name, letters) in FUNCTIONS {
            assert_eq!(named(name).map(|row| row.name), Some(*name));
            assert!(letters.len() <= 6 && letters.chars().all(|c| "sin-".contains(c)));
        }
        assert_eq!(
            shown_arguments_of_function("fopen"),
            [ShownArgument::Text; 2]
        );
        assert_eq!(shown_arguments_of_function("frobnicate"), []);
    }
}
