//! Numbers of errors.

/// Why a system call failed.
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
    EPERM = 1, ENOENT = 2, ESRCH = 3, EINTR = 4, EIO = 5, EBADF = 9, ECHILD = 10, EAGAIN = 11,
    ENOMEM = 12, EACCES = 13, EFAULT = 14, EBUSY = 16, EEXIST = 17, EXDEV = 18, ENODEV = 19,
    ENOTDIR = 20, EISDIR = 21, EINVAL = 22, ENFILE = 23, EMFILE = 24, ENOTTY = 25, EFBIG = 27,
    ENOSPC = 28, ESPIPE = 29, EROFS = 30, EMLINK = 31, EPIPE = 32, ERANGE = 34, ENAMETOOLONG = 36,
    ENOSYS = 38, ENOTEMPTY = 39, ELOOP = 40, EOVERFLOW = 75, EOPNOTSUPP = 95, ETIMEDOUT = 110,
}

impl Errno {
    /// What the system call returns for it.
    pub fn result(self) -> u64 {
        i64::from(self.0).wrapping_neg() as u64
    }
}
