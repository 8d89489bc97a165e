//! Checked builds of a program: its own bitcode, instrumented and linked with a small runtime.
//! Native code survives many memory errors; a checked build stops at them.
//!
//! Checked builds are made from `PROG.bc`, so nothing is compiled again from source.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, TryLockError};
use std::time::Duration;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::Notify;
use crate::cache;
use crate::error::{IoContext, ToolchainError};
use crate::process::{self, BuildTime};
use crate::sysroot::Sysroot;
use crate::traps;

/// The checks of a checked build.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Checks {
    /// Accesses to red zones around objects and to freed memory: the instrumentation of
    /// AddressSanitizer.
    Memory,
    /// Accesses outside the object that the pointer is derived from, however far, and unreachable
    /// code.
    Bounds,
    /// Uninitialised values: the instrumentation of MemorySanitizer.
    Initialised,
    /// No checks: the unoptimised bitcode of a program that keeps its errors.
    Nothing,
}

/// Describes the build for people, to follow the word "its".
impl std::fmt::Display for Checks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Checks::Memory => "build that checks memory",
            Checks::Bounds => "build that checks bounds",
            Checks::Initialised => "build that checks what is initialised",
            Checks::Nothing => "unoptimised build",
        })
    }
}

impl Checks {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            Checks::Memory => "memory",
            Checks::Bounds => "bounds",
            Checks::Initialised => "initialised",
            Checks::Nothing => "unoptimised",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Checks::Memory => ".asan",
            Checks::Bounds => ".bounds",
            Checks::Initialised => ".msan",
            Checks::Nothing => ".unoptimised",
        }
    }

    /// Returns the source of the runtime that instrumented code calls, if any.
    fn runtime(self) -> Option<&'static str> {
        match self {
            Checks::Memory => Some(concat!(
                include_str!("../runtime/system_call.h"),
                include_str!("../runtime/shadow_values.h"),
                include_str!("../runtime/checked.c")
            )),
            Checks::Bounds | Checks::Nothing => None,
            Checks::Initialised => Some(concat!(
                include_str!("../runtime/system_call.h"),
                include_str!("../runtime/initialised.c")
            )),
        }
    }

    fn passes(self) -> &'static str {
        match self {
            Checks::Memory => "forceattrs,asan",
            Checks::Bounds => "forceattrs,function(bounds-checking<trap>)",
            Checks::Initialised => "forceattrs,msan",
            Checks::Nothing => "forceattrs",
        }
    }

    /// Returns the options of the instrumentation: every function is instrumented, every access
    /// calls the runtime, frames outlive their functions, and unreachable code traps.
    fn options(self) -> &'static [&'static str] {
        match self {
            Checks::Memory => &[
                "-force-attribute=sanitize_address",
                "-force-attribute=frame-pointer=all",
                "-asan-instrumentation-with-call-threshold=0",
                "-asan-max-inline-poisoning-size=0",
                "-asan-use-after-return=always",
                "-asan-use-after-scope",
                "-trap-unreachable",
            ],
            Checks::Bounds => &["-force-attribute=frame-pointer=all", "-trap-unreachable"],
            Checks::Initialised => &[
                "-force-attribute=sanitize_memory",
                "-force-attribute=frame-pointer=all",
                "-msan-poison-stack-with-call",
            ],
            Checks::Nothing => &["-force-attribute=frame-pointer=all"],
        }
    }

    fn entry(self) -> &'static str {
        match self {
            Checks::Bounds | Checks::Nothing => "_start",
            Checks::Memory => "everett_checked_start",
            Checks::Initialised => "everett_initialised_start",
        }
    }
}

/// Functions of the program's allocator and a query about memory, with their replacements in the
/// runtime.
const STAND_INS: &[(&str, &str)] = &[
    ("malloc", "malloc"),
    ("__libc_malloc", "malloc"),
    ("__libc_malloc_impl", "malloc"),
    ("__simple_malloc", "malloc"),
    ("free", "free"),
    ("__libc_free", "free"),
    ("calloc", "calloc"),
    ("__libc_calloc", "calloc"),
    ("realloc", "realloc"),
    ("__libc_realloc", "realloc"),
    ("reallocarray", "reallocarray"),
    ("aligned_alloc", "memalign"),
    ("memalign", "memalign"),
    ("__libc_memalign", "memalign"),
    ("posix_memalign", "posix_memalign"),
    ("valloc", "valloc"),
    ("malloc_usable_size", "usable_size"),
    ("klee_check_memory_access", "access"),
];

/// The lock that a thread holds during a checked build.
static BUILDING: Mutex<()> = Mutex::new(());

/// Returns the path of a checked build of a program.
pub fn checked_path(program: &Path, checks: Checks) -> PathBuf {
    with_suffix(program, checks.suffix())
}

/// Limits of a checked build.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BuildLimits {
    /// Whether to install the toolchain and build its libraries if they are missing, which takes
    /// minutes.
    pub installs: bool,
    /// Time limit for the whole build: waiting for other builds, the runtime if it is missing, and
    /// the build itself.
    pub time: Option<Duration>,
}

impl BuildLimits {
    /// No limits.
    pub const NONE: BuildLimits = BuildLimits {
        installs: true,
        time: None,
    };

    fn sysroot(self, notify: Notify<'_>) -> Result<Option<Sysroot>, ToolchainError> {
        match self.installs {
            true => Sysroot::open(notify).map(Some),
            false => Sysroot::installed(),
        }
    }
}

/// Builds a checked program from its bitcode, unless there is an up-to-date one.
pub fn checked_build(
    program: &Path,
    checks: Checks,
    limits: BuildLimits,
    notify: Notify<'_>,
) -> Result<PathBuf, ToolchainError> {
    let bitcode = with_suffix(program, ".bc");
    let output = checked_path(program, checks);
    // The mutex is for several threads that request the same build. Several processes may also do
    // so, but each renames its result into place.
    let time = BuildTime::from_now(limits.time);
    let _only = time.wait_for(&output, || {
        Ok(match BUILDING.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })
    })?;
    let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
    let mut newest = changed(&bitcode).context("read", &bitcode)?;
    let Some(sysroot) = limits.sysroot(notify)? else {
        let is_there = changed(&output).is_ok_and(|made| made >= newest);
        return is_there
            .then_some(output)
            .ok_or(ToolchainError::NotInstalled);
    };
    let runtime = match checks.runtime() {
        Some(source) => Some(sysroot.checked_runtime(source, &time, notify)?),
        None => None,
    };
    if let Some(runtime) = &runtime {
        newest = newest.max(changed(runtime).context("read", runtime)?);
    }
    if changed(&output).is_ok_and(|made| made >= newest) {
        return Ok(output);
    }
    let work = tempfile::tempdir().context("create a folder in", std::env::temp_dir())?;
    let bitcode = match checks {
        Checks::Bounds => traps::with_traps(&sysroot, &bitcode, work.path(), &time)?,
        Checks::Memory | Checks::Initialised | Checks::Nothing => bitcode,
    };
    let unfinished = with_suffix(&output, &format!(".{}", std::process::id()));
    let mut linker = sysroot.zig_command("ld.lld");
    linker.args(link_arguments(
        &sysroot,
        &bitcode,
        runtime.as_deref(),
        checks,
    ));
    let done = process::capture_within(linker.arg("-o").arg(&unfinished), &time);
    if done.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    let done = done?;
    if !done.status.success() {
        let _ = fs::remove_file(&unfinished);
        return Err(ToolchainError::Checked {
            program: program.to_owned(),
            reason: String::from_utf8_lossy(&done.stderr).into_owned(),
        });
    }
    if runtime.is_some() {
        redirect(&unfinished)?;
    }
    fs::rename(&unfinished, &output).context("move the checked build to", &output)?;
    Ok(output)
}

fn link_arguments(
    sysroot: &Sysroot,
    bitcode: &Path,
    runtime: Option<&Path>,
    checks: Checks,
) -> Vec<OsString> {
    let libraries = sysroot.libraries();
    let mut args: Vec<OsString> = [
        "-static",
        "--eh-frame-hdr",
        "-z",
        "stack-size=8388608",
        "-e",
        checks.entry(),
        "--lto-CGO0",
    ]
    .map(OsString::from)
    .into();
    // Nothing reads the names of variables in a checked build, and without them the compiler needs a
    // third less time.
    let passes = format!("strip-nonlinetable-debuginfo,{}", checks.passes());
    args.push(format!("--lto-newpm-passes={passes}").into());
    args.push("--disable-verify".into());
    for option in checks.options() {
        args.extend(["-mllvm", option].map(OsString::from));
    }
    args.extend([libraries.join("crt1.o").into(), bitcode.into()]);
    args.extend(runtime.map(OsString::from));
    args.extend([
        libraries.join("libmath.a").into(),
        libraries.join("libeverett.a").into(),
        sysroot.builtins().into(),
    ]);
    args.push("--start-group".into());
    for name in ["libmusl.a", "libzigc.a", "libunwind.a"] {
        args.push(libraries.join(name).into());
    }
    args.push("--end-group".into());
    args
}

/// Redirects the entry points of the program's allocator to the runtime. Symbol resolution cannot
/// do this, because the bitcode has already bound them.
fn redirect(program: &Path) -> Result<(), ToolchainError> {
    let mut bytes = fs::read(program).context("read", program)?;
    for (at, jump) in jumps(&bytes) {
        if let Some(code) = bytes.get_mut(at..at + jump.len()) {
            code.copy_from_slice(&jump);
        }
    }
    fs::write(program, bytes).context("write", program)
}

/// Returns the file offsets of the jumps to write, with the jumps.
fn jumps(bytes: &[u8]) -> Vec<(usize, [u8; 5])> {
    const JUMP: u8 = 0xe9;
    let Ok(file) = object::File::parse(bytes) else {
        return Vec::new();
    };
    let functions = || {
        file.symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && !symbol.is_undefined())
            .filter_map(|symbol| Some((symbol.name().ok()?, symbol)))
    };
    let offset_of = |address: u64| {
        let section = file.sections().find(|section| {
            address.wrapping_sub(section.address()) < section.size() && section.address() != 0
        })?;
        let (start, _) = section.file_range()?;
        Some((start + (address - section.address())) as usize)
    };
    let mut jumps = Vec::new();
    for (name, symbol) in functions() {
        // If two modules have a function of the same name, one of them gets a numeric suffix.
        let plain = match name.rsplit_once('.') {
            Some((plain, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => plain,
            _ => name,
        };
        let Some((_, to)) = STAND_INS.iter().find(|(from, _)| *from == plain) else {
            continue;
        };
        let wanted = format!("everett_checked_{to}");
        let Some((_, target)) = functions().find(|(name, _)| *name == wanted) else {
            continue;
        };
        let from = symbol.address();
        let distance = target.address().wrapping_sub(from + 5) as i32;
        if let Some(at) = offset_of(from) {
            let [a, b, c, d] = distance.to_le_bytes();
            jumps.push((at, [JUMP, a, b, c, d]));
        }
    }
    jumps
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

impl Sysroot {
    /// Returns the runtime of checked builds as machine code; builds it if it is missing, once for
    /// all programs.
    fn checked_runtime(
        &self,
        source: &str,
        time: &BuildTime,
        notify: Notify<'_>,
    ) -> Result<PathBuf, ToolchainError> {
        let name = format!("checked-{}.o", cache::fingerprint(&[source.as_bytes()]));
        let object = self.folder.join(name);
        if object.is_file() {
            return Ok(object);
        }
        let _lock = cache::lock_within(&self.folder, time)?;
        if object.is_file() {
            return Ok(object);
        }
        notify("building the runtime of checked builds (first use only)");
        let work =
            tempfile::tempdir_in(&self.folder).context("create a folder in", &self.folder)?;
        let file = work.path().join("checked.c");
        fs::write(&file, source).context("write", &file)?;
        let unfinished = work.path().join("checked.o");
        let mut compile = self.zig_command("clang");
        compile
            .args(["--target=x86_64-linux-musl", "-O2", "-fno-pie", "-c"])
            .args([
                "-fno-builtin",
                "-fno-stack-protector",
                "-fno-omit-frame-pointer",
            ])
            .args(["-nostdlibinc", "-isystem"])
            .arg(self.folder.join("usr/include"))
            .arg("-resource-dir")
            .arg(self.resources())
            .arg(&file)
            .arg("-o")
            .arg(&unfinished);
        let done = process::capture_within(&mut compile, time)?;
        if !done.status.success() {
            return Err(ToolchainError::Sysroot {
                what: "the runtime of checked builds",
                reason: String::from_utf8_lossy(&done.stderr).into_owned(),
            });
        }
        fs::rename(&unfinished, &object).context("move the runtime to", &object)?;
        Ok(object)
    }
}
