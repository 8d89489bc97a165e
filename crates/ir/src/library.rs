//! Distinguishes source files of the toolchain's libraries from files of the user.
//!
//! Libraries are recognised by the folders from which they were actually compiled, as named in the
//! program's own debug information: a user's folder may have any name.

use crate::module::Module;

/// Folders that the toolchain itself assigns: Everett's runtime and sysroot, and the crates that
/// Rust's std contains.
const ASSIGNED: &[&str] = &["/everett/", "/rust/deps/"];

/// The folder of sources in Rust's own releases, followed by the commit.
const RUST_RELEASES: &str = "/rustc/";

/// The folder of Everett's runtime.
const RUNTIME: &str = "/everett/runtime/";

/// The parts of the compiler package's library folder that contain the C library and the compilers'
/// runtimes.
const RUNTIME_PARTS: &[&str] = &["libc/", "c/", "compiler_rt", "libunwind/"];

/// Functions that libraries always contain: a part of the symbol, and the path of the file in the
/// library.
const LANDMARKS: &[(&str, &str)] = &[
    ("__libc_start_main", "libc/musl/src/env/__libc_start_main.c"),
    ("3std2rt19lang_start_internal", "std/src/rt.rs"),
];

/// The folders of the libraries that a program was linked with; each ends in a slash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibraryFolders(Vec<String>);

impl LibraryFolders {
    /// Finds the folders by functions that each library contains.
    pub fn of(module: &Module) -> Self {
        let functions = module.functions.iter();
        let functions = functions.filter(|function| !function.is_declaration());
        Self::by_functions(functions.map(|function| {
            let file = || module.path_of(function);
            (function.name.as_ref(), file)
        }))
    }

    /// Finds the folders by the functions of a program: each with its symbol, and a function that
    /// finds its file.
    pub fn by_functions<'f, F: FnOnce() -> Option<String>>(
        functions: impl Iterator<Item = (&'f str, F)>,
    ) -> Self {
        let mut folders = Vec::new();
        for (name, file) in functions {
            let landmark = LANDMARKS.iter().find(|(symbol, _)| name.contains(symbol));
            let Some((_, place)) = landmark else { continue };
            let path = file().unwrap_or_default();
            if let Some(folder) = path.strip_suffix(place)
                && folder.ends_with('/')
                && folder.len() > 1
            {
                folders.push(folder.to_owned());
            }
        }
        folders.sort();
        folders.dedup();
        Self(folders)
    }

    /// Returns whether a source file is part of a library. A file without a name is: only assembly
    /// has none.
    pub fn contains(&self, file: &str) -> bool {
        let starts = |folder: &str| file.starts_with(folder);
        file.is_empty()
            || self.0.iter().any(|folder| starts(folder))
            || ASSIGNED.iter().any(|folder| starts(folder))
            || is_of_rust_release(file)
    }

    /// Returns whether a source file is part of the C library or of the compilers' runtimes, which
    /// treat some plain words as atomic. Rust's std and the C++ library do not.
    pub fn is_runtime(&self, file: &str) -> bool {
        let is_of = |folder: &String| {
            let inside = file.strip_prefix(folder.as_str());
            inside.is_some_and(|inside| RUNTIME_PARTS.iter().any(|part| inside.starts_with(part)))
        };
        file.is_empty() || file.starts_with(RUNTIME) || self.0.iter().any(is_of)
    }
}

/// Returns whether a path begins with `/rustc/` and the 40 hexadecimal digits of a commit.
fn is_of_rust_release(file: &str) -> bool {
    let Some((commit, _)) = file
        .strip_prefix(RUST_RELEASES)
        .and_then(|rest| rest.split_once('/'))
    else {
        return false;
    };
    commit.len() == 40 && commit.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_folders_may_be_named_like_those_of_libraries() {
        let folders = LibraryFolders(vec!["/cache/zig/lib/".to_owned()]);
        for file in [
            "/cache/zig/lib/libc/musl/src/stdio/printf.c",
            "/cache/zig/lib/c/pthread.zig",
            "/everett/runtime/own.c",
            "/everett/sysroot/usr/include/c++/v1/vector",
            "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/option.rs",
            "/rust/deps/hashbrown-0.16.1/src/map.rs",
            "",
        ] {
            assert!(folders.contains(file), "{file}");
        }
        assert!(folders.is_runtime("/cache/zig/lib/libc/musl/src/thread/pthread_once.c"));
        assert!(!folders.is_runtime("/cache/zig/lib/libcxx/include/vector"));
        for file in [
            "/home/me/rustc/main.rs",
            "/rustc/main.rs",
            "/home/me/lib/c/main.c",
            "/home/me/lib/std/main.c",
            "/home/me/libc/musl/main.c",
            "/home/me/everett/runtime/main.c",
            "/home/me/library/core/lib.rs",
            "/home/me/include/c++/a.hpp",
            "lib/c/main.c",
        ] {
            assert!(
                !folders.contains(file) && !folders.is_runtime(file),
                "{file}"
            );
        }
    }
}
