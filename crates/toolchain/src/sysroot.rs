//! The sysroot: headers and libraries for programs under Everett, built once with the compiler
//! package and kept in the cache folder.
//!
//! The libraries are archives of bitcode, except for those written in assembly. The compiler
//! package builds them when it links a program; its link line contains their paths. Native programs
//! are linked with the same libraries as machine code.

mod build;
mod machine_code;
mod probe;
mod short;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Notify;
use crate::cache;
use crate::error::{IoContext, ToolchainError};
use crate::process::BuildTime;
use crate::roots;
use crate::wheel;

/// The target of all programs.
pub const TARGET: &str = "x86_64-linux-musl";

/// The recipe of the sysroot. It is part of the name of the folder, so a sysroot of another recipe
/// is not used.
const RECIPE: [&[u8]; 3] = [
    include_bytes!("sysroot/build.rs"),
    include_bytes!("sysroot/machine_code.rs"),
    include_bytes!("sysroot/short.rs"),
];

/// The folder of libraries as machine code, beside those of bitcode.
const NATIVE: &str = "native";
/// The folder of libraries of bitcode without mathematics, beside the whole ones.
const SHORT: &str = "short";

const START_ASM: &str = include_str!("../runtime/start.S");
const START_C: &str = include_str!("../runtime/start.c");
const STRINGS_C: &str = include_str!("../runtime/strings.c");
const LONG_DOUBLE_C: &str = include_str!("../runtime/long_double.c");
const LONG_DOUBLE_FUNCTIONS_C: &str = include_str!("../runtime/long_double_functions.c");
const LONG_DOUBLE_MUSL_C: &str = include_str!("../runtime/long_double_musl.c");
const FUSED_MUSL_C: &str = include_str!("../runtime/fused_musl.c");
const SHORT_FLOATS_C: &str = include_str!("../runtime/short_floats.c");
const CPU_MODEL_C: &str = include_str!("../runtime/cpu_model.c");
const NATIVE_C: &str = concat!(
    include_str!("../runtime/system_call.h"),
    include_str!("../runtime/everett_native.c")
);
const GNU_NAMES_C: &str = include_str!("../runtime/gnu_names.c");
const SILENT_EXIT_C: &str = include_str!("../runtime/silent_exit.c");
const CDEFS_H: &str = include_str!("../runtime/cdefs.h");
const EVERETT_H: &str = include_str!("../../../include/everett.h");
const CLOUD9_H: &str = include_str!("../../../include/cloud9.h");
const NETKLEE_H: &str = include_str!("../../../include/netklee.h");
const KLEE_H: &str = include_str!("../../../include/klee/klee.h");

/// The path at which the compiler driver searches for its runtime.
const BUILTINS: &str = "resource/lib/linux/libclang_rt.builtins-x86_64.a";

/// Bitcode objects with Everett's own versions of library functions.
const OWN_OBJECTS: [&str; 5] = [
    "everett-strings.o",
    "everett-long-double.o",
    "everett-long-double-functions.o",
    "everett-long-double-musl.o",
    "everett-fused-musl.o",
];
/// So many of these objects belong to the libraries without mathematics, too.
const SHORT_OBJECTS: usize = 2;
/// The sources of these objects.
const OWN_SOURCES: [&str; 5] = [
    STRINGS_C,
    LONG_DOUBLE_C,
    LONG_DOUBLE_FUNCTIONS_C,
    LONG_DOUBLE_MUSL_C,
    FUSED_MUSL_C,
];

/// A sysroot: headers and libraries, and the compiler that they were built with.
pub struct Sysroot {
    /// The program of the compiler package.
    pub zig: PathBuf,
    /// The folder to pass to the compiler as `--sysroot`.
    pub folder: PathBuf,
}

impl Sysroot {
    /// Returns the sysroot for C, built on first use.
    pub fn open(notify: Notify<'_>) -> Result<Sysroot, ToolchainError> {
        let sysroot = Sysroot::of(wheel::ensure_zig(notify)?)?;
        cache::make_once(&sysroot.folder, &BuildTime::from_now(None), |temporary| {
            build::c_library(&sysroot.zig, temporary, notify)
        })?;
        Ok(sysroot)
    }

    /// Returns the sysroot for C, if it exists: building it takes minutes.
    pub fn installed() -> Result<Option<Sysroot>, ToolchainError> {
        let sysroot = wheel::installed_zig().map(Sysroot::of).transpose()?;
        Ok(sysroot.filter(|sysroot| sysroot.folder.is_dir()))
    }

    /// Returns the sysroot that belongs to a compiler package, whether it exists or not.
    fn of(zig: PathBuf) -> Result<Sysroot, ToolchainError> {
        let sources = [
            START_ASM,
            START_C,
            STRINGS_C,
            LONG_DOUBLE_C,
            LONG_DOUBLE_FUNCTIONS_C,
            LONG_DOUBLE_MUSL_C,
            FUSED_MUSL_C,
            SHORT_FLOATS_C,
            CPU_MODEL_C,
            GNU_NAMES_C,
            SILENT_EXIT_C,
            NATIVE_C,
            CDEFS_H,
            EVERETT_H,
            KLEE_H,
            CLOUD9_H,
            NETKLEE_H,
        ];
        let mut parts: Vec<&[u8]> = sources.iter().map(|text| text.as_bytes()).collect();
        let identity = identity_of(&zig)?;
        let shim = build::shim_text("");
        let mathematics = roots::mathematics();
        parts.extend(mathematics.iter().map(String::as_bytes));
        parts.extend(RECIPE);
        parts.extend([identity.as_bytes(), shim.as_bytes()]);
        let name = format!("sysroot-{}", cache::fingerprint(&parts));
        Ok(Sysroot {
            zig,
            folder: cache::folder()?.join(name),
        })
    }

    /// Builds the C++ library if it is missing, and returns the flags for its headers.
    pub fn cxx_flags(&self, notify: Notify<'_>) -> Result<Vec<OsString>, ToolchainError> {
        let marker = self.folder.join("cxx.flags");
        if !marker.is_file() {
            let _lock = cache::lock(&self.folder)?;
            if !marker.is_file() {
                build::cxx_library(&self.zig, &self.folder, &marker, notify)?;
            }
        }
        let text = fs::read_to_string(&marker).context("read", &marker)?;
        Ok(text.lines().map(OsString::from).collect())
    }

    /// Returns the library folder.
    pub fn libraries(&self) -> PathBuf {
        self.folder.join("usr/lib")
    }

    /// Returns the folder of the libraries as machine code.
    pub fn native_libraries(&self) -> PathBuf {
        self.libraries().join(NATIVE)
    }

    /// Returns the folder of the libraries of bitcode without mathematics.
    pub fn short_libraries(&self) -> PathBuf {
        self.libraries().join(SHORT)
    }

    /// Returns Everett's own versions of library functions in a library folder; they take
    /// precedence over the library's.
    pub fn own_objects(folder: &Path) -> [PathBuf; 5] {
        OWN_OBJECTS.map(|name| folder.join(name))
    }

    /// Returns those of [`Sysroot::own_objects`] that belong to the libraries without mathematics.
    pub fn short_objects(folder: &Path) -> Vec<PathBuf> {
        let names = OWN_OBJECTS.iter().take(SHORT_OBJECTS);
        names.map(|name| folder.join(name)).collect()
    }

    /// Returns the folder of the compiler's own headers and runtime.
    pub fn resources(&self) -> PathBuf {
        self.folder.join("resource")
    }

    /// Returns the folder with the sources of the libraries.
    pub fn sources(&self) -> PathBuf {
        probe::zig_library(&self.zig)
    }

    /// Returns the shim program of a tool of Everett.
    pub fn shim(&self, tool: &str) -> PathBuf {
        self.folder.join("bin").join(tool)
    }

    /// Returns the path of the compiler's runtime as machine code.
    pub fn builtins(&self) -> PathBuf {
        self.folder.join(BUILTINS)
    }

    /// Creates a command of the compiler package.
    pub fn zig_command(&self, tool: &str) -> Command {
        let mut command = Command::new(&self.zig);
        command.arg(tool);
        command
    }
}

/// Returns the names of the functions in Everett's own objects.
pub fn own_functions() -> impl Iterator<Item = &'static str> {
    let lines = OWN_SOURCES.into_iter().flat_map(str::lines);
    lines.filter_map(|line| {
        let (head, _) = line.strip_prefix("LIBRARY ")?.split_once('(')?;
        head.rsplit([' ', '*']).next()
    })
}

/// Identifies a compiler package without running it.
fn identity_of(zig: &Path) -> Result<String, ToolchainError> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(zig).context("look at", zig)?;
    // The size suffices, because the default path contains the version; a package at a user's path
    // may change.
    Ok(format!("{} {}", zig.display(), metadata.size()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_functions_are_read_from_their_sources() {
        let names: Vec<&str> = own_functions().collect();
        for name in [
            "strlen",
            "memchr",
            "__strchrnul",
            "wcsdup",
            "fabsl",
            "fmodl",
            "sincosl",
            "log1pl",
        ] {
            assert!(names.contains(&name), "{name}");
        }
        let definitions = OWN_SOURCES.map(|text| text.matches("\nLIBRARY ").count());
        assert_eq!(names.len(), definitions.iter().sum::<usize>());
    }
}
