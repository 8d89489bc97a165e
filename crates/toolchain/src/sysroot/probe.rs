//! Runs the compiler package, and finds the libraries that it builds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::TARGET;
use crate::cache;
use crate::error::{IoContext, ToolchainError};
use crate::process;

/// The inputs that the compiler package linked into a program.
pub struct Probe {
    inputs: Vec<PathBuf>,
    /// The `-DNAME=VALUE` flags that it compiled the program with.
    pub definitions: Vec<String>,
}

impl Probe {
    /// Finds the input with this name.
    pub fn find(&self, name: &str) -> Result<PathBuf, ToolchainError> {
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

/// Makes the compiler package build its libraries by linking a program, and parses its link line.
pub fn link_probe(
    zig: &Path,
    tool: &str,
    program: &str,
    what: &'static str,
) -> Result<Probe, ToolchainError> {
    let work = tempfile::tempdir().context("create", "a temporary folder")?;
    let source = if tool == "cc" { "probe.c" } else { "probe.cc" };
    let program_file = work.path().join(source);
    fs::write(&program_file, program).context("write", &program_file)?;
    // The link line is not quoted: paths in it must not contain spaces, hence the symbolic link.
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
    // The inputs are in the package's cache, reached through a symbolic link that is deleted with
    // `work`.
    let inputs = probe
        .inputs
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    Ok(Probe { inputs, ..probe })
}

/// Parses the output of `zig cc --verbose`.
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
        } else if words.contains(&"-cc1") && words.iter().any(|word| word.contains("probe.c")) {
            // The libraries are compiled with their own definitions.
            let pairs = words.windows(2).filter(|pair| pair[0] == "-D");
            probe
                .definitions
                .extend(pairs.map(|pair| format!("-D{}", pair[1])));
        }
    }
    probe
}

/// Returns the compiler package's library folder, beside its program.
pub fn zig_library(zig: &Path) -> PathBuf {
    zig.parent().unwrap_or(Path::new(".")).join("lib")
}

/// Returns the cache folder of the compiler package.
pub fn zig_cache() -> Result<PathBuf, ToolchainError> {
    match std::env::var_os("ZIG_GLOBAL_CACHE_DIR") {
        Some(path) => Ok(PathBuf::from(path)),
        None => Ok(cache::folder()?.join("zig")),
    }
}

/// Runs a command that must succeed.
pub fn check(command: &mut Command, what: &'static str) -> Result<(), ToolchainError> {
    let done = process::capture(command, "")?;
    if done.status.success() {
        return Ok(());
    }
    Err(ToolchainError::Sysroot {
        what,
        reason: String::from_utf8_lossy(&done.stderr).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_line_and_the_definitions_are_found() {
        let text = "clang version\n \"/z/zig\" -cc1 -D A=1 -O0 -D B -x c++ probe.cc\n\
                    \"/z/zig\" -cc1 -D C -x c++ ios.cpp\nld.lld -o probe g/o/1/crt1.o l/p.o /abs/o/2/libc.a\n";
        let probe = parse_verbose(text, Path::new("/w"));
        assert_eq!(probe.definitions, ["-DA=1", "-DB"]);
        assert_eq!(probe.find("crt1.o").unwrap(), Path::new("/w/g/o/1/crt1.o"));
        assert_eq!(probe.find("libc.a").unwrap(), Path::new("/abs/o/2/libc.a"));
        assert!(probe.find("libc++.a").is_err());
    }
}
