//! The sysroot: headers and libraries for programs under everett, built once with the compiler
//! package and kept in the cache folder.
//!
//! The libraries are archives of bitcode, except where the library is written in assembly. The
//! compiler package builds them when it links a program; its link line says where they are.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache;
use crate::error::{IoContext, ToolchainError};
use crate::link;
use crate::process;
use crate::roots;
use crate::wheel;

/// The target of all programs.
pub const TARGET: &str = "x86_64-linux-musl";

/// Raised whenever the recipe in this file changes what a sysroot contains.
const RECIPE: &[u8] = b"7";

const START_ASM: &str = include_str!("../runtime/start.S");
const START_C: &str = include_str!("../runtime/start.c");
const STRINGS_C: &str = include_str!("../runtime/strings.c");
const LONG_DOUBLE_C: &str = include_str!("../runtime/long_double.c");
const NATIVE_C: &str = include_str!("../runtime/everett_native.c");
const EVERETT_H: &str = include_str!("../../../include/everett.h");
const KLEE_H: &str = include_str!("../../../include/klee/klee.h");

/// The tools as programs of their own, for compilers and builds that take a path.
const SHIMS: [&str; 5] = ["ld", "cc", "c++", "ar", "ranlib"];

/// A shim calls the executable that started the build.
fn shim_text(tool: &str) -> String {
    format!("#!/bin/sh\nexec \"${{EVERETT_EXECUTABLE:?is not set}}\" {tool} \"$@\"\n")
}

/// The C library: its parts in bitcode, those of everett first.
const LIBC_SCRIPT: &str =
    "INPUT ( everett-strings.o everett-long-double.o )\nGROUP ( libmusl.a libzigc.a )\n";

/// Flags for functions of everett in bitcode: plain loops that stay loops.
const PLAIN: [&str; 6] = [
    "-flto=full",
    "-O1",
    "-fno-builtin",
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-ffp-contract=off",
];

/// Libraries whose contents musl has in libc; builds name them all the same.
const EMPTY_LIBRARIES: [&str; 10] = [
    "m", "pthread", "rt", "dl", "util", "crypt", "resolv", "xnet", "gcc", "gcc_s",
];

/// Where the compiler driver looks for its runtime.
const BUILTINS: &str = "resource/lib/linux/libclang_rt.builtins-x86_64.a";

/// Headers and libraries, and the compiler that they were built with.
pub struct Sysroot {
    /// The program of the compiler package.
    pub zig: PathBuf,
    /// The folder to give to the compiler as `--sysroot`.
    pub folder: PathBuf,
}

impl Sysroot {
    /// The sysroot for C, built on first use.
    pub fn open() -> Result<Sysroot, ToolchainError> {
        let zig = wheel::ensure_zig()?;
        let sources = [
            START_ASM,
            START_C,
            STRINGS_C,
            LONG_DOUBLE_C,
            NATIVE_C,
            EVERETT_H,
            KLEE_H,
        ];
        let mut parts: Vec<&[u8]> = sources.iter().map(|text| text.as_bytes()).collect();
        let identity = identity_of(&zig)?;
        let shim = shim_text("");
        parts.extend([RECIPE, identity.as_bytes(), shim.as_bytes()]);
        let name = format!("sysroot-{}", cache::fingerprint(&parts));
        let sysroot = Sysroot {
            zig,
            folder: cache::folder()?.join(name),
        };
        cache::make_once(&sysroot.folder, |temporary| build(&sysroot.zig, temporary))?;
        Ok(sysroot)
    }

    /// Adds the C++ library where missing and returns the flags that its headers need.
    pub fn cxx_flags(&self) -> Result<Vec<OsString>, ToolchainError> {
        let marker = self.folder.join("cxx.flags");
        if !marker.is_file() {
            let _lock = cache::lock(&self.folder)?;
            if !marker.is_file() {
                build_cxx(&self.zig, &self.folder, &marker)?;
            }
        }
        let text = fs::read_to_string(&marker).context("read", &marker)?;
        Ok(text.lines().map(OsString::from).collect())
    }

    /// Where the libraries are.
    pub fn libraries(&self) -> PathBuf {
        self.folder.join("usr/lib")
    }

    /// The compiler's own headers and runtime.
    pub fn resources(&self) -> PathBuf {
        self.folder.join("resource")
    }

    /// A program that is the named tool of everett.
    pub fn shim(&self, tool: &str) -> PathBuf {
        self.folder.join("bin").join(tool)
    }

    /// The compiler's runtime as machine code.
    pub fn builtins(&self) -> PathBuf {
        self.folder.join(BUILTINS)
    }

    /// A command of the compiler package.
    pub fn zig_command(&self, tool: &str) -> Command {
        let mut command = Command::new(&self.zig);
        command.arg(tool);
        command
    }
}

/// What tells one compiler package from another, without running it.
fn identity_of(zig: &Path) -> Result<String, ToolchainError> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(zig).context("look at", zig)?;
    // The size is enough beside the version in the default path; a path of the user may change.
    Ok(format!("{} {}", zig.display(), metadata.size()))
}

fn build(zig: &Path, folder: &Path) -> Result<(), ToolchainError> {
    eprintln!("everett: building the C library as bitcode (first use only)");
    let libraries = folder.join("usr/lib");
    let headers = folder.join("usr/include");
    for made in [
        &libraries,
        &headers,
        &folder.join("bin"),
        &folder.join("resource/lib/linux"),
    ] {
        fs::create_dir_all(made).context("create", made)?;
    }
    let zig_library = zig_library(zig);
    for part in [
        "any-linux-any",
        "x86-linux-any",
        "generic-musl",
        "x86_64-linux-musl",
    ] {
        copy_tree(&zig_library.join("libc/include").join(part), &headers)?;
    }
    copy_tree(
        &zig_library.join("include"),
        &folder.join("resource/include"),
    )?;
    fs::create_dir_all(headers.join("klee")).context("create", headers.join("klee"))?;
    write(&headers.join("everett.h"), EVERETT_H)?;
    write(&headers.join("klee/klee.h"), KLEE_H)?;

    let built = link_probe(zig, "cc", "int main(void) { return 0; }\n", "the C library")?;
    copy(&built.find("libc.a")?, &libraries.join("libmusl.a"))?;
    copy(&built.find("libzigc.a")?, &libraries.join("libzigc.a"))?;
    copy(&built.find("libunwind.a")?, &libraries.join("libunwind.a"))?;
    copy(&built.find("libcompiler_rt.a")?, &folder.join(BUILTINS))?;
    write(&libraries.join("libc.a"), LIBC_SCRIPT)?;
    for name in EMPTY_LIBRARIES {
        write(&libraries.join(format!("lib{name}.a")), "!<arch>\n")?;
    }
    write(&libraries.join("libstdc++.a"), "INPUT ( -lc++ -lunwind )\n")?;
    for tool in SHIMS {
        let shim = folder.join("bin").join(tool);
        write(&shim, &shim_text(tool))?;
        cache::set_mode(&shim, 0o755)?;
    }
    build_runtime(zig, folder)?;
    build_arithmetic(zig, folder)?;
    build_native_math(zig, folder)
}

/// Compiles the mathematics library to machine code, for native programs.
///
/// The linker takes all functions that a compiler may call by itself out of bitcode libraries
/// into every program, and compiles them. With machine code at hand it does not.
fn build_native_math(zig: &Path, folder: &Path) -> Result<(), ToolchainError> {
    let work = tempfile::tempdir().context("create", "a temporary folder")?;
    let object = work.path().join("math.o");
    let libraries = folder.join("usr/lib");
    let names = roots::mathematics();
    let mut emit = OsString::from("--lto-obj-path=");
    emit.push(&object);
    let mut compile = Command::new(zig);
    compile.args([
        "ld.lld",
        "-static",
        "--unresolved-symbols=ignore-all",
        "--noinhibit-exec",
    ]);
    compile.args(names.iter().flat_map(|name| ["-u", name.as_str()]));
    compile.args(["musl", "zigc"].map(|name| libraries.join(format!("lib{name}.a"))));
    compile
        .arg(link::passes(&names))
        .arg(&emit)
        .arg("-o")
        .arg(work.path().join("unused"));
    let mut archive = Command::new(zig);
    archive
        .args(["ar", "crs"])
        .arg(libraries.join("libmath.a"))
        .arg(&object);
    check(&mut compile, "the mathematics library")?;
    check(&mut archive, "the mathematics library")
}

/// Builds the compiler's runtime (`memcpy`, `sin`, 128-bit division) as bitcode too.
///
/// The package has it as machine code alone. Native programs use that; bitcode uses this.
fn build_arithmetic(zig: &Path, folder: &Path) -> Result<(), ToolchainError> {
    let work = tempfile::tempdir().context("create", "a temporary folder")?;
    let plain = work.path().join("plain.bc");
    let object = work.path().join("compiler_rt.o");
    let mut emit = OsString::from("-femit-llvm-bc=");
    emit.push(&plain);
    let mut translate = Command::new(zig);
    translate
        .arg("build-obj")
        .arg(zig_library(zig).join("compiler_rt.zig"))
        // The smallest form has no vectors, and neither checks nor unwinding.
        .args([
            "-target",
            TARGET,
            "-mcpu=x86_64",
            "-O",
            "ReleaseSmall",
            "-fno-emit-bin",
        ])
        .args(["-fno-stack-check", "-fno-stack-protector", "-fno-builtin"])
        .arg(&emit)
        .env("ZIG_GLOBAL_CACHE_DIR", zig_cache()?)
        .env("ZIG_LOCAL_CACHE_DIR", work.path().join("local"));
    let mut optimise = Command::new(zig);
    optimise.args([
        "clang",
        "--target=x86_64-linux-musl",
        "-Wno-override-module",
        "-c",
    ]);
    optimise.args(PLAIN).arg(&plain).arg("-o").arg(&object);
    let mut archive = Command::new(zig);
    archive
        .args(["ar", "crs"])
        .arg(folder.join("usr/lib/libcompiler_rt.a"))
        .arg(&object);
    for command in [&mut translate, &mut optimise, &mut archive] {
        check(command, "the compiler's runtime")?;
    }
    Ok(())
}

/// Runs a command that must succeed.
fn check(command: &mut Command, what: &'static str) -> Result<(), ToolchainError> {
    let done = process::capture(command, "")?;
    if done.status.success() {
        return Ok(());
    }
    Err(ToolchainError::Sysroot {
        what,
        reason: String::from_utf8_lossy(&done.stderr).into(),
    })
}

/// Where the compiler package keeps what it has built.
fn zig_cache() -> Result<PathBuf, ToolchainError> {
    match std::env::var_os("ZIG_GLOBAL_CACHE_DIR") {
        Some(path) => Ok(PathBuf::from(path)),
        None => Ok(cache::folder()?.join("zig")),
    }
}

/// Compiles the program's entry and the functions that stand in for the engine natively.
fn build_runtime(zig: &Path, folder: &Path) -> Result<(), ToolchainError> {
    let work = tempfile::tempdir().context("create", "a temporary folder")?;
    let libraries = folder.join("usr/lib");
    let compile = |name: &str, text: &str, flags: &[&str], output: &Path| {
        let source = work.path().join(name);
        write(&source, text)?;
        let mut command = Command::new(zig);
        command
            .args([
                "clang",
                "--target=x86_64-linux-musl",
                "-O2",
                "-g",
                "-fno-pie",
                "-c",
            ])
            .args(["-fno-stack-protector", "-nostdlibinc", "-isystem"])
            .arg(folder.join("usr/include"))
            .arg("-resource-dir")
            .arg(folder.join("resource"))
            .args(flags)
            .arg(&source)
            .arg("-o")
            .arg(output);
        check(&mut command, "the runtime")
    };
    compile("start.S", START_ASM, &[], &libraries.join("crt1.o"))?;
    compile("start.c", START_C, &PLAIN, &libraries.join("crti.o"))?;
    compile(
        "strings.c",
        STRINGS_C,
        &PLAIN,
        &libraries.join("everett-strings.o"),
    )?;
    compile(
        "long_double.c",
        LONG_DOUBLE_C,
        &PLAIN,
        &libraries.join("everett-long-double.o"),
    )?;
    let native = work.path().join("everett_native.o");
    // Never bitcode: in the bitcode these functions are the engine's own.
    compile(
        "everett_native.c",
        NATIVE_C,
        &["-ffreestanding", "-fno-builtin"],
        &native,
    )?;
    let mut archive = Command::new(zig);
    archive
        .args(["ar", "crs"])
        .arg(libraries.join("libeverett.a"))
        .arg(&native);
    check(&mut archive, "the runtime")?;
    compile("empty.S", EMPTY_ASM, &[], &libraries.join("crtn.o"))?;
    for name in ["crtbegin", "crtend"] {
        let object = folder.join(format!("resource/lib/linux/clang_rt.{name}-x86_64.o"));
        copy(&libraries.join("crtn.o"), &object)?;
    }
    Ok(())
}

const EMPTY_ASM: &str = "\t.section .note.GNU-stack,\"\",@progbits\n";

fn build_cxx(zig: &Path, folder: &Path, marker: &Path) -> Result<(), ToolchainError> {
    eprintln!("everett: building the C++ library as bitcode (first use only, takes a minute)");
    let program = "#include <iostream>\nint main() { std::cout << 1; }\n";
    let built = link_probe(zig, "c++", program, "the C++ library")?;
    let headers = folder.join("usr/include/c++/v1");
    let zig_library = zig_library(zig);
    for part in ["libcxxabi/include", "libunwind/include", "libcxx/include"] {
        copy_tree(&zig_library.join(part), &headers)?;
    }
    let libraries = folder.join("usr/lib");
    for (name, to) in [("libc++.a", "libcxx.a"), ("libc++abi.a", "libc++abi.a")] {
        copy(&built.find(name)?, &libraries.join(to))?;
    }
    // The compiler driver names this library alone.
    write(
        &libraries.join("libc++.a"),
        "GROUP ( libcxx.a libc++abi.a )\n",
    )?;
    let unfinished = marker.with_extension("unfinished");
    write(&unfinished, &(built.definitions.join("\n") + "\n"))?;
    fs::rename(&unfinished, marker).context("move into place", marker)
}

/// What the compiler package linked into a program.
struct Probe {
    inputs: Vec<PathBuf>,
    /// The `-DNAME=VALUE` flags that it compiled the program with.
    definitions: Vec<String>,
}

impl Probe {
    fn find(&self, name: &str) -> Result<PathBuf, ToolchainError> {
        let found = self
            .inputs
            .iter()
            .find(|path| path.file_name().is_some_and(|n| n == name));
        found.cloned().ok_or_else(|| ToolchainError::Sysroot {
            what: "the libraries",
            reason: format!(
                "the compiler package linked no {name}; is EVERETT_ZIG a version other than 0.17?"
            ),
        })
    }
}

/// Has the compiler package build its libraries by linking a program, and reads its link line.
fn link_probe(
    zig: &Path,
    tool: &str,
    program: &str,
    what: &'static str,
) -> Result<Probe, ToolchainError> {
    let work = tempfile::tempdir().context("create", "a temporary folder")?;
    let source = if tool == "cc" { "probe.c" } else { "probe.cc" };
    write(&work.path().join(source), program)?;
    // The link line is not quoted: paths in it must be without spaces, hence the link.
    let zig_cache = zig_cache()?;
    fs::create_dir_all(&zig_cache).context("create", &zig_cache)?;
    let link = work.path().join("global");
    std::os::unix::fs::symlink(&zig_cache, &link).context("create the link", &link)?;
    let mut command = Command::new(zig);
    command
        .args([
            tool,
            "-target",
            TARGET,
            "-g",
            "-flto",
            "-fno-sanitize=undefined",
            "--verbose",
        ])
        .args(["-fno-stack-protector", source, "-lunwind", "-o", "probe"])
        .current_dir(work.path())
        .env("ZIG_GLOBAL_CACHE_DIR", &link)
        .env("ZIG_LOCAL_CACHE_DIR", work.path().join("local"));
    let done = process::capture(&mut command, "")?;
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    if !done.status.success() {
        return Err(ToolchainError::Sysroot { what, reason: text });
    }
    let probe = parse_verbose(&text, work.path());
    if probe.inputs.is_empty() {
        let reason = format!("the compiler package printed no link line:\n{text}");
        return Err(ToolchainError::Sysroot { what, reason });
    }
    let keep = work.keep();
    // The inputs lie in the package's cache, reached through the link; resolve it before it goes.
    let inputs = probe
        .inputs
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    fs::remove_dir_all(&keep).context("remove", &keep)?;
    Ok(Probe { inputs, ..probe })
}

/// Reads the output of `zig cc --verbose`.
fn parse_verbose(text: &str, folder: &Path) -> Probe {
    let mut probe = Probe {
        inputs: Vec::new(),
        definitions: Vec::new(),
    };
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() == Some(&"ld.lld") {
            let inputs = words
                .iter()
                .filter(|word| word.ends_with(".a") || word.ends_with(".o"));
            probe.inputs = inputs.map(|word| folder.join(word)).collect();
        } else if words.contains(&"-cc1") {
            let pairs = words.windows(2).filter(|pair| pair[0] == "-D");
            probe
                .definitions
                .extend(pairs.map(|pair| format!("-D{}", pair[1])));
        }
    }
    probe
}

/// The compiler package's library folder, beside its program.
fn zig_library(zig: &Path) -> PathBuf {
    zig.parent().unwrap_or(Path::new(".")).join("lib")
}

fn write(path: &Path, text: &str) -> Result<(), ToolchainError> {
    fs::write(path, text).context("write", path)
}

fn copy(from: &Path, to: &Path) -> Result<(), ToolchainError> {
    fs::copy(from, to).map(drop).context("copy", from)
}

fn copy_tree(from: &Path, to: &Path) -> Result<(), ToolchainError> {
    fs::create_dir_all(to).context("create", to)?;
    for entry in fs::read_dir(from).context("list", from)? {
        let entry = entry.context("list", from)?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            copy(&entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_line_and_the_definitions_are_found() {
        let text = "clang version\n \"/z/zig\" -cc1 -D A=1 -O0 -D B -x c++ p.cc\n\
                    ld.lld -o probe g/o/1/crt1.o l/p.o /abs/o/2/libc.a\n";
        let probe = parse_verbose(text, Path::new("/w"));
        assert_eq!(probe.definitions, ["-DA=1", "-DB"]);
        assert_eq!(probe.find("crt1.o").unwrap(), Path::new("/w/g/o/1/crt1.o"));
        assert_eq!(probe.find("libc.a").unwrap(), Path::new("/abs/o/2/libc.a"));
        assert!(probe.find("libc++.a").is_err());
    }
}
