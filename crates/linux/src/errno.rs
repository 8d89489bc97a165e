//! Error numbers.

/// An error number: why a system call failed.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error)]
#[error("{}", self.name())]
pub struct Errno(pub i32);

macro_rules! errnos {
    ($($name:ident = $number:literal),* $(,)?) => {
        impl Errno {
            $(#[doc = concat!("`", stringify!($name), "`.")] pub const $name: Errno = Errno($number);)*

            /// Its name, as C programs write it.
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($number => stringify!($name),)*
                    _ => "E?",
                }
            }
        }
    };
}

errnos! {
    EPERM = 1, ENOENT = 2, ESRCH = 3, EINTR = 4, EIO = 5, ENXIO = 6, E2BIG = 7, ENOEXEC = 8, EBADF = 9, ECHILD = 10,
    EAGAIN = 11, ENOMEM = 12, EACCES = 13, EFAULT = 14, EBUSY = 16, EEXIST = 17, EXDEV = 18, ENODEV = 19,
    ENOTDIR = 20, EISDIR = 21, EINVAL = 22, ENFILE = 23, EMFILE = 24, ENOTTY = 25, EFBIG = 27,
    ENOSPC = 28, ESPIPE = 29, EROFS = 30, EMLINK = 31, EPIPE = 32, ERANGE = 34, ENAMETOOLONG = 36,
    ENOSYS = 38, ENOTEMPTY = 39, ELOOP = 40, EOVERFLOW = 75, EILSEQ = 84, ENOTSOCK = 88, EDESTADDRREQ = 89,
    EMSGSIZE = 90, EPROTOTYPE = 91, ENOPROTOOPT = 92, EPROTONOSUPPORT = 93, EOPNOTSUPP = 95,
    EAFNOSUPPORT = 97, EADDRINUSE = 98, EADDRNOTAVAIL = 99, ENETDOWN = 100, ENETUNREACH = 101,
    ECONNABORTED = 103, ECONNRESET = 104, ENOBUFS = 105, EISCONN = 106, ENOTCONN = 107,
    ETIMEDOUT = 110, ECONNREFUSED = 111, EHOSTUNREACH = 113, EALREADY = 114, EINPROGRESS = 115,
    EDEADLK = 35, EOWNERDEAD = 130, ENOTBLK = 15, ETXTBSY = 26, ECANCELED = 125, ENODATA = 61,
    ETIME = 62, EIDRM = 43, ENOMSG = 42, EDOM = 33, EDQUOT = 122, EUSERS = 87, EPROTO = 71,
    ESHUTDOWN = 108, ESOCKTNOSUPPORT = 94, ENOLCK = 37,
}

impl Errno {
    /// The error number with this name.
    pub fn named(name: &str) -> Option<Errno> {
        if name == "EWOULDBLOCK" {
            return Some(Errno::EAGAIN);
        }
        (1..134).map(Errno).find(|errno| errno.name() == name)
    }

    /// The result of a system call that fails with it.
    pub fn result(self) -> u64 {
        i64::from(self.0).wrapping_neg() as u64
    }
}
