//! How a sysroot is made: what is copied from the compiler package, what it builds, and what is
//! everett's own.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::machine_code;
use super::probe::{check, link_probe, zig_cache, zig_library};
use super::short;
use super::{
    BUILTINS, CDEFS_H, CLOUD9_H, CPU_MODEL_C, EVERETT_H, GNU_NAMES_C, KLEE_H, NATIVE, NATIVE_C,
    NETKLEE_H, OWN_OBJECTS, OWN_SOURCES, SHORT, SHORT_FLOATS_C, SILENT_EXIT_C, START_ASM, START_C,
    TARGET,
};
use crate::Notify;
use crate::cache;
use crate::error::{IoContext, ToolchainError};
use crate::link;
use crate::roots;

/// The tools as programs of their own, for compilers and builds that take a path.
const SHIMS: [&str; 5] = ["ld", "cc", "c++", "ar", "ranlib"];

/// A shim calls the executable that started the build.
pub fn shim_text(tool: &str) -> String {
    format!("#!/bin/sh\nexec \"${{EVERETT_EXECUTABLE:?is not set}}\" {tool} \"$@\"\n")
}

/// The C library, in either folder of libraries.
const LIBC_SCRIPT: &str = "GROUP ( libmusl.a libzigc.a )\n";

/// The C++ library, likewise.
const CXX_SCRIPT: &str = "GROUP ( libcxx.a libc++abi.a )\n";

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

/// What programs expect of headers and musl's do otherwise: file, text, replacement.
const PATCHES: [(&str, &str, &str); 3] = [
    // glibc's name of a function of musl; `gnu_names.c` has it.
    (
        "stdlib.h",
        "int ptsname_r(int, char *, size_t);\n",
        "int ptsname_r(int, char *, size_t);\nchar *canonicalize_file_name(const char *);\n",
    ),
    // A comparison of signed with unsigned in the program's own code is
    // an error under `-Werror -Wextra`.
    (
        "sys/socket.h",
        "__MHDR_END(mhdr) - (unsigned char *)(cmsg) \\",
        "(size_t)(__MHDR_END(mhdr) - (unsigned char *)(cmsg)) \\",
    ),
    // Every header of other C libraries defines `__BEGIN_DECLS`.
    (
        "features.h",
        "#define _FEATURES_H\n",
        "#define _FEATURES_H\n\n#include <sys/cdefs.h>\n",
    ),
];

/// Fills a folder with the headers and libraries of C.
pub fn c_library(zig: &Path, folder: &Path, notify: Notify<'_>) -> Result<(), ToolchainError> {
    notify("building the C library as bitcode (first use only, takes a minute)");
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
    // musl has no lists of macros, but programs take them for granted; the header stands alone.
    copy(
        &zig_library.join("libc/include/generic-glibc/sys/queue.h"),
        &headers.join("sys/queue.h"),
    )?;
    copy_tree(
        &zig_library.join("include"),
        &folder.join("resource/include"),
    )?;
    write(&headers.join("sys/cdefs.h"), CDEFS_H)?;
    for (name, from, to) in PATCHES {
        patch(&headers.join(name), from, to)?;
    }
    fs::create_dir_all(headers.join("klee")).context("create", headers.join("klee"))?;
    write(&headers.join("everett.h"), EVERETT_H)?;
    write(&headers.join("cloud9.h"), CLOUD9_H)?;
    write(&headers.join("netklee.h"), NETKLEE_H)?;
    write(&headers.join("klee/klee.h"), KLEE_H)?;

    let built = link_probe(zig, "cc", "int main(void) { return 0; }\n", "the C library")?;
    copy(&built.find("libc.a")?, &libraries.join("libmusl.a"))?;
    machine_code::with_lines_only(zig, &built.find("libzigc.a")?, &libraries.join("libzigc.a"))?;
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
    runtime(zig, folder)?;
    arithmetic(zig, folder)?;
    native_math(zig, folder)?;
    let made = libraries.join(SHORT);
    fs::create_dir_all(&made).context("create", &made)?;
    let musl = "libmusl.a";
    short::without_members(zig, &libraries.join(musl), &made.join(musl))?;
    for name in ["libzigc.a", "libcompiler_rt.a"] {
        short::without_functions(zig, &libraries.join(name), &made.join(name))?;
    }
    write(&made.join("libc.a"), LIBC_SCRIPT)?;
    let made = libraries.join(NATIVE);
    fs::create_dir_all(&made).context("create", &made)?;
    for name in ["libmusl.a", "libzigc.a", "libunwind.a"] {
        machine_code::archive(zig, &libraries.join(name), &made.join(name))?;
    }
    for name in OWN_OBJECTS {
        machine_code::object(zig, &libraries.join(name), &made.join(name))?;
    }
    write(&made.join("libc.a"), LIBC_SCRIPT)
}

/// Compiles the mathematics library to machine code, for native programs.
///
/// The linker takes all functions that a compiler may call by itself out of bitcode libraries
/// into every program, and compiles them. With machine code at hand it does not. Functions of the
/// program's own take precedence.
fn native_math(zig: &Path, folder: &Path) -> Result<(), ToolchainError> {
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
        .arg(link::passes_option(&names))
        .arg(&emit)
        .arg("-o")
        .arg(work.path().join("unused"));
    let mut archive = Command::new(zig);
    archive
        .args(["ar", "crs"])
        .arg(libraries.join("libmath.a"))
        .arg(&object);
    check(&mut compile, "the mathematics library")?;
    machine_code::weaken(&object)?;
    check(&mut archive, "the mathematics library")
}

/// Builds the compiler's runtime (`memcpy`, `sin`, 128-bit division) as bitcode too.
///
/// The package has it as machine code alone. Native programs use that; bitcode uses this.
fn arithmetic(zig: &Path, folder: &Path) -> Result<(), ToolchainError> {
    let work = tempfile::tempdir().context("create", "a temporary folder")?;
    let plain = work.path().join("plain.bc");
    let object = work.path().join("compiler_rt.o");
    let whole = work.path().join("whole.a");
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
    archive.args(["ar", "crs"]).arg(&whole).arg(&object);
    for command in [&mut translate, &mut optimise, &mut archive] {
        check(command, "the compiler's runtime")?;
    }
    machine_code::with_lines_only(zig, &whole, &folder.join("usr/lib/libcompiler_rt.a"))
}

/// Compiles parts of the runtime in a temporary folder.
struct RuntimeBuild<'r> {
    zig: &'r Path,
    /// The folder of the sysroot.
    folder: &'r Path,
    work: tempfile::TempDir,
}

impl RuntimeBuild<'_> {
    /// Compiles a text, which is a file of this name, to an output.
    fn compile(
        &self,
        name: &str,
        text: &str,
        flags: &[&str],
        output: &Path,
    ) -> Result<(), ToolchainError> {
        let source = self.work.path().join(name);
        write(&source, text)?;
        // Reports name the runtime's files by a path that is the same on every machine.
        let prefix = format!(
            "-ffile-prefix-map={}=/everett/runtime",
            self.work.path().display()
        );
        let mut command = Command::new(self.zig);
        command
            .args([
                "clang",
                "--target=x86_64-linux-musl",
                "-O2",
                "-g",
                "-fno-pie",
                "-c",
            ])
            .arg(&prefix)
            .args([
                "-fno-stack-protector",
                "-Wno-override-module",
                "-nostdlibinc",
                "-isystem",
            ])
            .arg(self.folder.join("usr/include"))
            .arg("-resource-dir")
            .arg(self.folder.join("resource"))
            .args(flags)
            .arg(&source)
            .arg("-o")
            .arg(output);
        check(&mut command, "the runtime")
    }

    /// Compiles a text into an archive of the sysroot.
    fn add(
        &self,
        archive: &str,
        name: &str,
        text: &str,
        flags: &[&str],
    ) -> Result<(), ToolchainError> {
        let object = self.work.path().join(name).with_extension("o");
        self.compile(name, text, flags, &object)?;
        self.archive(archive, &object)
    }

    /// Adds an object to an archive of the sysroot, in the place of its member of that name.
    fn archive(&self, archive: &str, object: &Path) -> Result<(), ToolchainError> {
        let mut command = Command::new(self.zig);
        command
            .args(["ar", "crs"])
            .arg(self.folder.join("usr/lib").join(archive))
            .arg(object);
        check(&mut command, "the runtime")
    }

    /// Returns flags for what is made of the C library's sources.
    fn internal(&self) -> [String; 5] {
        let musl = zig_library(self.zig).join("libc/musl");
        [
            "src/math",
            "src/include",
            "src/internal",
            "arch/x86_64",
            "arch/generic",
        ]
        .map(|part| format!("-I{}", musl.join(part).display()))
    }

    /// Compiles Everett's own versions of functions of the C library.
    fn own_functions(&self) -> Result<(), ToolchainError> {
        let internal = self.internal();
        for (text, name) in OWN_SOURCES.into_iter().zip(OWN_OBJECTS) {
            let readable = self.work.path().join("own.ll");
            let mut flags = [&PLAIN[1..], &["-S", "-emit-llvm"]].concat();
            if text.contains("\"libm.h\"") {
                flags.extend(internal.iter().map(String::as_str));
            }
            self.compile("own.c", text, &flags, &readable)?;
            let text = fs::read_to_string(&readable).context("read", &readable)?;
            // The library's versions are weak and said to be all the same (`odr`). The linker insists
            // that other versions are, too, and C has no word for it.
            let text = text.replace("define weak ", "define weak_odr ");
            let object = self.folder.join("usr/lib").join(name);
            self.compile("own.ll", &text, &PLAIN, &object)?;
        }
        // Another name than that of the file of the library that it includes.
        let mut flags = PLAIN.to_vec();
        flags.extend(internal.iter().map(String::as_str));
        let floatscan = self.work.path().join("floatscan.o");
        self.compile("short_floats.c", SHORT_FLOATS_C, &flags, &floatscan)?;
        self.archive("libmusl.a", &floatscan)
    }
}

/// Compiles the program's entry and the functions that stand in for the engine natively.
fn runtime(zig: &Path, folder: &Path) -> Result<(), ToolchainError> {
    let work = tempfile::tempdir().context("create", "a temporary folder")?;
    let build = RuntimeBuild { zig, folder, work };
    let libraries = folder.join("usr/lib");
    build.compile("start.S", START_ASM, &[], &libraries.join("crt1.o"))?;
    build.compile("start.c", START_C, &PLAIN, &libraries.join("crti.o"))?;
    build.own_functions()?;
    // Beside the C library, which exists as bitcode and as machine code.
    build.add("libmusl.a", "cpu_model.c", CPU_MODEL_C, &PLAIN)?;
    build.add("libmusl.a", "gnu_names.c", GNU_NAMES_C, &PLAIN)?;
    build.add("libmusl.a", "silent_exit.c", SILENT_EXIT_C, &PLAIN)?;
    // Never bitcode: in the bitcode these functions are the engine's own.
    let flags = ["-ffreestanding", "-fno-builtin"];
    build.add("libeverett.a", "everett_native.c", NATIVE_C, &flags)?;
    build.compile("empty.S", EMPTY_ASM, &[], &libraries.join("crtn.o"))?;
    for name in ["crtbegin", "crtend"] {
        let object = folder.join(format!("resource/lib/linux/clang_rt.{name}-x86_64.o"));
        copy(&libraries.join("crtn.o"), &object)?;
    }
    Ok(())
}

const EMPTY_ASM: &str = "\t.section .note.GNU-stack,\"\",@progbits\n";

/// Adds the headers and libraries of C++; the marker, written last, holds the flags they need.
pub fn cxx_library(
    zig: &Path,
    folder: &Path,
    marker: &Path,
    notify: Notify<'_>,
) -> Result<(), ToolchainError> {
    notify("building the C++ library as bitcode (first use only, takes a minute)");
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
    for name in ["libcxx.a", "libc++abi.a"] {
        machine_code::archive(
            zig,
            &libraries.join(name),
            &libraries.join(NATIVE).join(name),
        )?;
    }
    // The compiler driver names this library alone.
    for folder in [&libraries.join(NATIVE), &libraries] {
        write(&folder.join("libc++.a"), CXX_SCRIPT)?;
    }
    let unfinished = marker.with_extension("unfinished");
    write(&unfinished, &(built.definitions.join("\n") + "\n"))?;
    fs::rename(&unfinished, marker).context("move into place", marker)
}

fn write(path: &Path, text: &str) -> Result<(), ToolchainError> {
    fs::write(path, text).context("write", path)
}

/// Replaces a text in a file, which must be there.
fn patch(path: &Path, from: &str, to: &str) -> Result<(), ToolchainError> {
    let text = fs::read_to_string(path).context("read", path)?;
    if !text.contains(from) {
        return Err(ToolchainError::Sysroot {
            what: "the C library",
            reason: format!("{} has no `{}`", path.display(), from.trim_end()),
        });
    }
    write(path, &text.replace(from, to))
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
