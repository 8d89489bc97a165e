//! Rewrites bitcode for checked builds: unreachable code traps instead of being removed, and
//! accesses to thread-local variables show which variable they address, so that bounds checks cover
//! them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{IoContext, ToolchainError};
use crate::process::{self, BuildTime};
use crate::sysroot::Sysroot;

const TRAP: &str = "  call void asm sideeffect \"ud2\", \"\"()";
const UNREACHABLE: &str = "  unreachable";
const THREAD_LOCAL: &str = "@llvm.threadlocal.address.p0(ptr ";

/// Writes a copy of a module, in which unreachable code traps, into a folder.
pub fn with_traps(
    sysroot: &Sysroot,
    bitcode: &Path,
    folder: &Path,
    time: &BuildTime,
) -> Result<PathBuf, ToolchainError> {
    let text = folder.join("program.ll");
    let changed = folder.join("changed.ll");
    let result = folder.join("program.bc");
    convert(sysroot, bitcode, (&text, "-S"), time)?;
    let source = fs::read_to_string(&text).context("read", &text)?;
    let file = fs::File::create(&changed).context("create", &changed)?;
    let mut file = std::io::BufWriter::new(file);
    for line in source.lines() {
        writeln!(file, "{}", rewrite(line)).context("write", &changed)?;
    }
    file.flush().context("write", &changed)?;
    convert(sysroot, &changed, (&result, "-c"), time)?;
    Ok(result)
}

/// Converts a module between its forms, unchanged.
pub fn convert(
    sysroot: &Sysroot,
    from: &Path,
    (to, way): (&Path, &str),
    time: &BuildTime,
) -> Result<(), ToolchainError> {
    let mut clang = sysroot.zig_command("clang");
    clang
        .args([
            "--target=x86_64-linux-musl",
            "-x",
            "ir",
            "-emit-llvm",
            "-O0",
        ])
        .args(["-Xclang", "-disable-llvm-passes", way])
        .arg(from)
        .arg("-o")
        .arg(to);
    let done = process::capture_within(&mut clang, time)?;
    match done.status.success() {
        true => Ok(()),
        false => Err(ToolchainError::Checked {
            program: from.to_owned(),
            reason: String::from_utf8_lossy(&done.stderr).into_owned(),
        }),
    }
}

/// Rewrites a line of a module.
fn rewrite(line: &str) -> String {
    if let Some(rest) = line.strip_prefix(UNREACHABLE)
        && (rest.is_empty() || rest.starts_with(','))
    {
        return format!("{TRAP}{rest}\n{line}");
    }
    thread_local(line).unwrap_or_else(|| line.to_owned())
}

/// Returns a computation of the address of a thread-local variable that shows the variable.
fn thread_local(line: &str) -> Option<String> {
    let (call, rest) = line.split_once(THREAD_LOCAL)?;
    let (result, _) = call.split_once(" = ")?;
    let (argument, rest) = rest.split_once(')')?;
    let name = argument.split_whitespace().last()?;
    let debug = rest.find(", !dbg").map_or("", |at| &rest[at..]);
    (name.starts_with('@') && !name.contains('"'))
        .then(|| format!("{result} = getelementptr i8, ptr {name}, i64 0{debug}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_reached_traps() {
        assert_eq!(
            rewrite("  unreachable, !dbg !7"),
            "  call void asm sideeffect \"ud2\", \"\"(), !dbg !7\n  unreachable, !dbg !7"
        );
        assert_eq!(rewrite("unreachable:"), "unreachable:");
        assert_eq!(rewrite("  ret void"), "  ret void");
    }

    #[test]
    fn thread_local_variables_are_named() {
        let call =
            "  %3 = call align 16 ptr @llvm.threadlocal.address.p0(ptr align 16 @slots), !dbg !4";
        let named = "  %3 = getelementptr i8, ptr @slots, i64 0, !dbg !4";
        assert_eq!(rewrite(call), named);
        let declared = "declare nonnull ptr @llvm.threadlocal.address.p0(ptr nonnull) #5";
        assert_eq!(rewrite(declared), declared);
    }
}
