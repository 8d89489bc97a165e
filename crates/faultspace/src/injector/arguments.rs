//! The arguments by which a call is told from others with the same stack: texts such as paths, and
//! numbers. Addresses are left out, because they differ between runs.

use everett_linux::ArgKind;

/// What an argument is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The address of a text.
    Text,
    /// A number of 32 bits, with sign.
    Number,
    /// A number of 64 bits.
    Size,
    /// An address, which tells nothing.
    Address,
}

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
pub(crate) fn of_function(name: &str) -> Vec<Kind> {
    let row = FUNCTIONS.iter().find(|(function, _)| *function == name);
    let letters = row.map_or("", |(_, letters)| letters);
    let kind = |letter: char| match letter {
        's' => Kind::Text,
        'i' => Kind::Number,
        'n' => Kind::Size,
        _ => Kind::Address,
    };
    letters.chars().map(kind).collect()
}

/// Returns what the arguments of a system call are.
pub(crate) fn of_system_call(number: u64) -> Vec<Kind> {
    let row = everett_linux::row(number);
    let kind = |argument: &ArgKind| match argument {
        ArgKind::Path => Kind::Text,
        ArgKind::Fd => Kind::Number,
        ArgKind::Int | ArgKind::Flags | ArgKind::Symbolic => Kind::Size,
        ArgKind::Pointer | ArgKind::Buffer => Kind::Address,
    };
    row.map_or(Vec::new(), |row| row.args.iter().map(kind).collect())
}

/// Returns a text as it is written in spaces and results.
pub(crate) fn plain(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let is_odd = |c: char| c.is_control() || matches!(c, '"' | '\\' | char::REPLACEMENT_CHARACTER);
    let shown = |c: char| if is_odd(c) { '?' } else { c };
    text.chars().map(shown).collect()
}

/// Returns the arguments of a call as one text.
pub(crate) fn joined(arguments: &[String]) -> String {
    arguments.join(", ")
}

/// Returns whether the arguments of a call are those of a fault: all of them, or one of them.
pub(crate) fn matches(wanted: &str, arguments: &[String]) -> bool {
    wanted == joined(arguments) || arguments.iter().any(|one| one == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::injector::functions::named;

    #[test]
    fn the_table_has_functions_that_can_be_failed() {
        for (name, letters) in FUNCTIONS {
            assert_eq!(named(name).map(|row| row.name), Some(*name));
            assert!(letters.len() <= 6 && letters.chars().all(|c| "sin-".contains(c)));
        }
        assert_eq!(of_function("fopen"), [Kind::Text, Kind::Text]);
        assert_eq!(of_function("frobnicate"), []);
        assert_eq!(of_system_call(257)[..2], [Kind::Number, Kind::Text]);
    }

    #[test]
    fn a_fault_names_one_argument_or_all() {
        let arguments = ["a b".to_owned(), "3".to_owned()];
        for wanted in ["a b, 3", "a b", "3"] {
            assert!(matches(wanted, &arguments), "{wanted}");
        }
        assert!(!matches("a", &arguments) && !matches("", &arguments));
        assert_eq!(plain(b"a\n\"\\\xff"), "a????");
    }
}
