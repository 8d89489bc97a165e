//! The steps of a hardened build that run tools: instrumentation, and linking with the chosen
//! checks.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::Kind;
use super::atoms::{self, Atom, Extra, Part};
use super::program::{self, Libraries};
use super::rewrite::{self, Choice, Dynamic};
use super::versions;
use crate::Notify;
use crate::cache;
use crate::error::{IoContext, ToolchainError};
use crate::process::{self, BuildTime};
use crate::sysroot::Sysroot;

/// The files of an instrumented program in its folder.
const MODULE: &str = "instrumented.ll";
const EXTRA: &str = "instrumented.txt";

/// The runtime as machine code, and the checks that are inlined.
const RUNTIME: &str = concat!(
    include_str!("../../runtime/system_call.h"),
    include_str!("../../runtime/shadow_values.h"),
    include_str!("../../runtime/hard/shadow.c"),
    include_str!("../../runtime/hard/heap.c"),
    include_str!("../../runtime/hard/api.c"),
    include_str!("../../runtime/hard/decide.c"),
);
const INLINE: &str = include_str!("../../runtime/hard/inline.c");

/// Options for accesses: each access calls a function, so that it is a line of text. Frames are
/// instrumented later, individually.
const ACCESSES: [&str; 2] = [
    "-asan-instrumentation-with-call-threshold=0",
    "-asan-stack=0",
];

/// Options for the instrumentation of frames alone.
const FRAMES: [&str; 8] = [
    "-asan-stack=1",
    "-asan-instrument-reads=0",
    "-asan-instrument-writes=0",
    "-asan-instrument-atomics=0",
    "-asan-instrument-byval=0",
    "-asan-globals=0",
    "-asan-constructor-kind=none",
    "-asan-use-after-return=never",
];

/// Functions of the C library that the runtime must intercept.
const WRAPPED: [&str; 8] = [
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "mmap",
    "__mmap",
    "_Unwind_RaiseException",
    "_Unwind_Resume_or_Rethrow",
    "_Unwind_ForcedUnwind",
];

/// Instrumentation in addition to memory accesses.
#[derive(Clone, Debug, Default)]
pub struct Instrumentation {
    /// Functions of the program that write logs: calls of them are also atoms.
    pub logs: Vec<String>,
}

/// An instrumented program.
pub struct Instrumented {
    module: String,
    extra: Extra,
    /// The checks.
    pub atoms: Vec<Atom>,
}

/// The treatment of the checks.
#[derive(Clone, Copy, Debug)]
pub enum Activation<'a> {
    /// Checks with `true` are kept.
    Kept(&'a [bool]),
    /// No check is kept; each counts its executions, in a file of [`super::counters_size`].
    Counted(&'a Path),
    /// Checks with `true` are kept; the others run for some requests, as the program decides at run
    /// time.
    Versions(&'a [bool], &'a Dynamic),
}

/// Instruments a program into a folder.
pub fn instrument(
    program: &Path,
    folder: &Path,
    options: &Instrumentation,
    notify: Notify<'_>,
) -> Result<Instrumented, ToolchainError> {
    let sysroot = Sysroot::open(notify)?;
    fs::create_dir_all(folder).context("create", folder)?;
    let tools = Tools::new(&sysroot, program)?;
    let original = tools.text_of(&with_suffix(program, ".bc"))?;
    let separated = program::separate(&original, &libraries(&sysroot)?);
    if separated.functions == 0 {
        return Err(tools.error(
            "none of its functions has debug information, so no check would have a place: compile it with -g".into(),
        ));
    }
    let prepared = tools.bitcode_of(&rewrite::prepare(&separated.text), "prepared")?;
    let passes = "globaldce,function(bounds-checking<trap>),asan";
    let instrumented = tools.transform(&prepared, passes, &ACCESSES, "instrumented")?;
    let module = tools.text_of(&instrumented)?;
    let frames = tools.transform(&prepared, "globaldce,asan", &FRAMES, "frames")?;
    let extra = Extra {
        logs: options.logs.iter().cloned().collect(),
        frames: functions_with_frames(&tools.text_of(&frames)?),
        ..Extra::default()
    };
    let text = extra_text(&extra);
    let made = Instrumented::new(module, extra);
    let is_left_out = |log: &&String| {
        let mut atoms = made.atoms.iter();
        !atoms.any(|atom| atom.kind == Kind::Log && atom.detail == **log)
    };
    if let Some(log) = options.logs.iter().find(is_left_out) {
        return Err(tools.error(format!(
            "it has no call of {log} whose result is not used, so none can be left out"
        )));
    }
    let path = folder.join(MODULE);
    fs::write(&path, &made.module).context("write", &path)?;
    let path = folder.join(EXTRA);
    fs::write(&path, text).context("write", &path)?;
    Ok(made)
}

/// Reads the files that [`instrument`] has written to a folder.
pub fn open_instrumented(folder: &Path) -> Result<Instrumented, ToolchainError> {
    let path = folder.join(MODULE);
    let module = fs::read_to_string(&path).context("read", &path)?;
    let path = folder.join(EXTRA);
    let text = fs::read_to_string(&path).context("read", &path)?;
    Ok(Instrumented::new(module, read_extra(&text)))
}

impl Instrumented {
    fn new(module: String, mut extra: Extra) -> Instrumented {
        extra.own = atoms::own_calls(&module);
        let atoms = atoms::atoms(&module, &extra);
        Instrumented {
            module,
            extra,
            atoms,
        }
    }
}

/// Returns the symbols of the functions that have two versions if these checks are always kept.
pub fn doubled(instrumented: &Instrumented, kept: &[bool], dynamic: &Dynamic) -> BTreeSet<String> {
    let choice = Choice::Versions(kept, dynamic);
    let Instrumented {
        module,
        extra,
        atoms,
    } = instrumented;
    rewrite::doubled(module, extra, atoms, choice)
}

/// Builds the program with the chosen checks.
pub fn activate(
    instrumented: &Instrumented,
    activation: Activation<'_>,
    output: &Path,
    notify: Notify<'_>,
) -> Result<(), ToolchainError> {
    let sysroot = Sysroot::open(notify)?;
    let runtime = sysroot.hard_runtime(notify)?;
    let tools = Tools::new(&sysroot, output)?;
    let path = match activation {
        Activation::Counted(path) => path.display().to_string(),
        Activation::Kept(_) | Activation::Versions(..) => String::new(),
    };
    let choice = match activation {
        Activation::Kept(kept) => Choice::Kept(kept),
        Activation::Counted(_) => Choice::Counted(&path),
        Activation::Versions(kept, dynamic) => Choice::Versions(kept, dynamic),
    };
    let (module, extra) = (&instrumented.module, &instrumented.extra);
    if let Activation::Versions(_, dynamic) = activation {
        check_entries(&tools, module, &dynamic.entries)?;
    }
    let text = rewrite::rewrite(module, extra, &instrumented.atoms, choice);
    let bitcode = tools.bitcode_of(&text, "chosen")?;
    let unfinished = with_suffix(output, &format!(".{}", std::process::id()));
    let mut linker = sysroot.zig_command("ld.lld");
    linker.args(link_arguments(&sysroot, &bitcode, &runtime));
    let linked = tools.run(linker.arg("-o").arg(&unfinished));
    if linked.is_err() {
        // The link has already failed; the user sees that error.
        let _ = fs::remove_file(&unfinished);
    }
    linked?;
    fs::rename(&unfinished, output).context("move the hardened build to", output)
}

/// Rejects entry points that the program does not have, or that cannot have two versions.
fn check_entries(
    tools: &Tools<'_>,
    module: &str,
    entries: &BTreeSet<String>,
) -> Result<(), ToolchainError> {
    let parts = atoms::parts(module);
    for entry in entries {
        let found = parts.iter().find_map(|part| match part {
            Part::Function(function) if function.symbol == entry => Some(function),
            _ => None,
        });
        match found {
            Some(function) if !function.is_checked => {
                return Err(tools.error(format!("{entry} is a function of a library")));
            }
            Some(function) if versions::can_have_two(module, function) => {}
            Some(_) => {
                return Err(tools.error(format!(
                    "{entry} cannot be an entry point: it has variable arguments, or is main"
                )));
            }
            None => {
                return Err(tools.error(format!(
                    "there is no function {entry}, or it was inlined everywhere (__attribute__((noinline)) keeps it)"
                )));
            }
        }
    }
    Ok(())
}

fn link_arguments(sysroot: &Sysroot, bitcode: &Path, runtime: &Runtime) -> Vec<OsString> {
    let (libraries, native) = (sysroot.libraries(), sysroot.native_libraries());
    let mut args: Vec<OsString> = [
        "-static",
        "--eh-frame-hdr",
        "--gc-sections",
        // A program finds the entries of its own sections by the symbols at both ends.
        "-z",
        "nostart-stop-gc",
        "-z",
        "stack-size=8388608",
        "-e",
        "everett_hard_start",
        "--lto-CGO2",
        // Removes values that only dropped checks used before frames are instrumented.
        "--lto-newpm-passes=globaldce,function(dce),asan,always-inline,function(simplifycfg,dce),globaldce",
    ]
    .map(OsString::from)
    .into();
    for option in FRAMES {
        args.extend(["-mllvm", option].map(OsString::from));
    }
    args.extend(WRAPPED.map(|name| OsString::from(format!("--wrap={name}"))));
    args.extend([libraries.join("crt1.o"), bitcode.to_owned()].map(OsString::from));
    args.extend([runtime.inline.clone(), runtime.code.clone()].map(OsString::from));
    args.extend(Sysroot::own_objects(&native).map(OsString::from));
    args.extend([
        libraries.join("libmath.a").into(),
        libraries.join("libeverett.a").into(),
        sysroot.builtins().into(),
    ]);
    args.push("--start-group".into());
    args.extend(archives(&native).into_iter().map(OsString::from));
    args.push("--end-group".into());
    args
}

/// Returns the existing libraries as machine code: those of C++ are built on first use.
fn archives(native: &Path) -> Vec<PathBuf> {
    let names = [
        "libcxx.a",
        "libc++abi.a",
        "libmusl.a",
        "libzigc.a",
        "libunwind.a",
    ];
    let paths = names.map(|name| native.join(name));
    paths.into_iter().filter(|path| path.is_file()).collect()
}

fn libraries(sysroot: &Sysroot) -> Result<Libraries, ToolchainError> {
    let native = sysroot.native_libraries();
    let mut files = archives(&native);
    files.extend(Sysroot::own_objects(&native));
    files.push(sysroot.libraries().join("libmath.a"));
    files.push(sysroot.libraries().join("libeverett.a"));
    files.push(sysroot.builtins());
    Libraries::read(&files, &sysroot.sources())
}

/// Returns the functions whose frames have red zones from the pass.
fn functions_with_frames(module: &str) -> BTreeSet<String> {
    let marks = ["@___asan_gen_stack", "@__asan_alloca_poison("];
    let functions = atoms::parts(module).into_iter();
    let found = functions.filter_map(|part| match part {
        Part::Function(function) if function.is_checked => Some(function),
        _ => None,
    });
    found
        .filter(|function| {
            let mut lines = function.lines.iter();
            lines.any(|line| marks.iter().any(|mark| line.contains(mark)))
        })
        .map(|function| function.symbol.to_owned())
        .collect()
}

fn extra_text(extra: &Extra) -> String {
    let logs = extra.logs.iter().map(|name| format!("log {name}\n"));
    let frames = extra.frames.iter().map(|name| format!("frame {name}\n"));
    logs.chain(frames).collect()
}

fn read_extra(text: &str) -> Extra {
    let of = |kind: &str| {
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let found = lines.filter(|(found, _)| *found == kind);
        found.map(|(_, name)| name.to_owned()).collect()
    };
    Extra {
        logs: of("log"),
        frames: of("frame"),
        ..Extra::default()
    }
}

/// The tools of the compiler package, with a folder for their output.
struct Tools<'s> {
    sysroot: &'s Sysroot,
    program: PathBuf,
    work: tempfile::TempDir,
}

impl<'s> Tools<'s> {
    fn new(sysroot: &'s Sysroot, program: &Path) -> Result<Tools<'s>, ToolchainError> {
        Ok(Tools {
            sysroot,
            program: program.to_owned(),
            work: tempfile::tempdir().context("create a folder in", std::env::temp_dir())?,
        })
    }

    fn error(&self, reason: String) -> ToolchainError {
        ToolchainError::Hard {
            program: self.program.clone(),
            reason,
        }
    }

    fn run(&self, command: &mut std::process::Command) -> Result<(), ToolchainError> {
        let done = process::capture(command, "")?;
        match done.status.success() {
            true => Ok(()),
            false => Err(self.error(String::from_utf8_lossy(&done.stderr).into_owned())),
        }
    }

    fn convert(&self, from: &Path, to: &Path, way: &str) -> Result<(), ToolchainError> {
        let mut clang = self.sysroot.zig_command("clang");
        clang
            .args(["--target=x86_64-linux-musl", "-x", "ir", "-emit-llvm"])
            .args(["-O0", "-Wno-override-module"])
            .args(["-Xclang", "-disable-llvm-passes", way])
            .arg(from)
            .arg("-o")
            .arg(to);
        self.run(&mut clang)
    }

    fn text_of(&self, bitcode: &Path) -> Result<String, ToolchainError> {
        let path = self.work.path().join("module.ll");
        self.convert(bitcode, &path, "-S")?;
        let bytes = fs::read(&path).context("read", &path)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn bitcode_of(&self, text: &str, name: &str) -> Result<PathBuf, ToolchainError> {
        let path = self.work.path().join(format!("{name}.ll"));
        fs::write(&path, text).context("write", &path)?;
        let bitcode = path.with_extension("bc");
        self.convert(&path, &bitcode, "-c")?;
        Ok(bitcode)
    }

    /// Runs passes over a module.
    fn transform(
        &self,
        bitcode: &Path,
        passes: &str,
        options: &[&str],
        name: &str,
    ) -> Result<PathBuf, ToolchainError> {
        let output = self.work.path().join(format!("{name}.out.bc"));
        let mut linker = self.sysroot.zig_command("ld.lld");
        linker.args(["-r", "--lto-emit-llvm"]);
        linker.arg(format!("--lto-newpm-passes={passes}"));
        linker.args(options.iter().flat_map(|option| ["-mllvm", option]));
        self.run(linker.arg(bitcode).arg("-o").arg(&output))?;
        Ok(output)
    }
}

/// The runtime of hardened builds.
struct Runtime {
    code: PathBuf,
    inline: PathBuf,
}

impl Sysroot {
    /// Returns the runtime of hardened builds; builds it if it is missing, once for all programs.
    fn hard_runtime(&self, notify: Notify<'_>) -> Result<Runtime, ToolchainError> {
        let parts = [RUNTIME.as_bytes(), INLINE.as_bytes()];
        let name = format!("hard-{}", cache::fingerprint(&parts));
        let folder = self.folder.join(name);
        cache::make_once(&folder, &BuildTime::from_now(None), |temporary| {
            notify("building the runtime of hardened builds (first use only)");
            self.compile_runtime(RUNTIME, temporary, "runtime", &["-fno-builtin"])?;
            self.compile_runtime(INLINE, temporary, "inline", &["-emit-llvm"])
        })?;
        Ok(Runtime {
            code: folder.join("runtime.o"),
            inline: folder.join("inline.o"),
        })
    }

    fn compile_runtime(
        &self,
        source: &str,
        folder: &Path,
        name: &str,
        flags: &[&str],
    ) -> Result<(), ToolchainError> {
        let file = folder.join(format!("{name}.c"));
        fs::write(&file, source).context("write", &file)?;
        let mut compile = self.zig_command("clang");
        compile
            .args(["--target=x86_64-linux-musl", "-O2", "-fno-pie", "-c"])
            .args(["-fno-stack-protector", "-ffunction-sections"])
            .args(["-ftls-model=local-exec", "-nostdlibinc", "-isystem"])
            .arg(self.folder.join("usr/include"))
            .arg("-resource-dir")
            .arg(self.resources())
            .args(flags)
            .arg(&file)
            .arg("-o")
            .arg(folder.join(format!("{name}.o")));
        let done = process::capture(&mut compile, "")?;
        match done.status.success() {
            true => Ok(()),
            false => Err(ToolchainError::Sysroot {
                what: "the runtime of hardened builds",
                reason: String::from_utf8_lossy(&done.stderr).into_owned(),
            }),
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_beside_the_text_is_kept() {
        let extra = Extra {
            logs: ["note".to_owned()].into(),
            frames: ["main".to_owned(), "a b".to_owned()].into(),
            ..Extra::default()
        };
        assert_eq!(read_extra(&extra_text(&extra)), extra);
    }
}
