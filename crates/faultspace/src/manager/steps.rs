//! Steps by which the sandbox of a test is made, with the words of their errors.

use std::fs;
use std::path::Path;

/// No path and no option, as an argument of `mount`.
pub(super) const NONE: Option<&str> = None;

/// The result of a step, or what could not be done and why.
pub(super) type Step<T> = Result<T, (String, nix::errno::Errno)>;

/// Says what could not be done at a path.
pub(super) fn step<T>(what: &str, path: &Path, done: nix::Result<T>) -> Step<T> {
    done.map_err(|error| (format!("{what} {}", path.display()), error))
}

/// Makes a folder and those above it.
pub(super) fn make_folder(path: &Path) -> Step<()> {
    let failed = |error: std::io::Error| {
        let number = error.raw_os_error().unwrap_or(0);
        (
            format!("cannot make {}", path.display()),
            nix::errno::Errno::from_raw(number),
        )
    };
    fs::create_dir_all(path).map_err(failed)
}
