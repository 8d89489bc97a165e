//! The compiler drivers: clang with Everett's sysroot, linking through [`crate::link`].

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::Notify;
use crate::arguments;
use crate::error::{IoContext, ToolchainError};
use crate::keep;
use crate::process;
use crate::response;
use crate::sysroot::{Sysroot, TARGET};

/// The environment variable with the executable that the linker shim calls.
pub const EXECUTABLE_VARIABLE: &str = "EVERETT_EXECUTABLE";

/// The path of the sysroot in debug information.
const SYSROOT_NAME: &str = "/everett/sysroot";

/// The language of a compiler driver.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Language {
    C,
    Cxx,
}

/// Compiles and links like clang.
pub fn compile(
    language: Language,
    args: &[OsString],
    notify: Notify<'_>,
) -> Result<i32, ToolchainError> {
    compile_by(language, args, notify, |command| process::run(command, ""))
}

/// Compiles and links like clang, and returns what it has printed.
pub fn compile_captured(
    language: Language,
    args: &[OsString],
    notify: Notify<'_>,
) -> Result<Output, ToolchainError> {
    compile_by(language, args, notify, |command| {
        process::capture(command, "")
    })
}

fn compile_by<T>(
    language: Language,
    args: &[OsString],
    notify: Notify<'_>,
    run: impl FnOnce(&mut Command) -> Result<T, ToolchainError>,
) -> Result<T, ToolchainError> {
    let args = arguments::parse(&response::expand(args)?)?;
    let sysroot = Sysroot::open(notify)?;
    let mut flags = base_flags(&sysroot, language, notify)?;
    if !args.says_debug {
        flags.push("-g".into());
    }
    if !args.to_assembly {
        flags.push("-flto=full".into());
    }
    if args.checks {
        // Nothing goes on after a check that failed.
        let fails = match args.traps {
            true => "-fsanitize-trap=all",
            false => "-fno-sanitize-recover=all",
        };
        flags.push(fails.into());
    }
    flags.push("--end-no-unused-arguments".into());
    let mut kept = args.kept;
    if args.checks {
        // What they call is Everett's own; `vptr` needs clang's runtime. The last flag counts.
        let own = [
            "--start-no-unused-arguments",
            "-fno-sanitize=vptr",
            "-fno-sanitize-link-runtime",
            "--end-no-unused-arguments",
        ];
        let end = kept.iter().position(|arg| arg == "--");
        let end = end.unwrap_or(kept.len());
        kept.splice(end..end, own.map(OsString::from));
    }
    flags.extend(kept);
    let level = match args.level {
        Some(level) => level,
        // A command line that only links need not repeat the level.
        None if args.keeps_errors => "-O2".to_owned(),
        None => "-O0".to_owned(),
    };
    let keeps_errors = (args.keeps_errors || keep::is_wanted()) && level != "-O0";
    if keeps_errors {
        // The program must not see the difference between the levels.
        flags.extend(["-O0", "-D__OPTIMIZE__=1"].map(OsString::from));
    }
    let packed = response::pack(flags)?;
    let mut command = sysroot.zig_command("clang");
    command
        .args(packed.args())
        .env(EXECUTABLE_VARIABLE, executable()?);
    if keeps_errors {
        command.env(keep::LEVEL_VARIABLE, level);
    }
    run(&mut command)
}

/// Returns the flags that precede the user's, so that the user's take precedence.
fn base_flags(
    sysroot: &Sysroot,
    language: Language,
    notify: Notify<'_>,
) -> Result<Vec<OsString>, ToolchainError> {
    let mut flags: Vec<OsString> = vec!["--start-no-unused-arguments".into()];
    if language == Language::Cxx {
        flags.push("--driver-mode=g++".into());
        flags.push("-stdlib=libc++".into());
        flags.push("-unwindlib=libunwind".into());
        flags.extend(sysroot.cxx_flags(notify)?);
    } else {
        flags.push("-unwindlib=none".into());
    }
    flags.push(format!("--target={TARGET}").into());
    for (name, path) in [
        ("--sysroot=", &sysroot.folder),
        ("-resource-dir=", &sysroot.resources()),
        ("--ld-path=", &sysroot.shim("ld")),
    ] {
        let mut flag = OsString::from(name);
        flag.push(path);
        flags.push(flag);
    }
    // Reports recognise headers of the sysroot by a path that is the same on every machine.
    let mut renamed = OsString::from("-fdebug-prefix-map=");
    renamed.push(&sysroot.folder);
    renamed.push("=");
    renamed.push(SYSROOT_NAME);
    flags.push(renamed);
    // Unoptimised code also contains the scopes of variables.
    flags.extend(["-Xclang", "-fsanitize-address-use-after-scope"].map(OsString::from));
    // The native program must compute the same results as the bitcode: no fused multiply-add.
    flags.extend(["-ffp-contract=off", "-fno-pie", "-no-pie", "-static"].map(OsString::from));
    flags.extend(["-rtlib=compiler-rt", "--no-default-config"].map(OsString::from));
    Ok(flags)
}

/// Runs a tool of the compiler package unchanged.
pub fn pass_through(
    tool: &str,
    args: &[OsString],
    notify: Notify<'_>,
) -> Result<i32, ToolchainError> {
    let mut command = Command::new(crate::wheel::ensure_zig(notify)?);
    command.arg(tool).args(args);
    process::run(&mut command, "")
}

/// Returns the running executable, through which compilers call the linker.
pub fn executable() -> Result<PathBuf, ToolchainError> {
    env::current_exe().context("find", "the running executable")
}
