//! The linker driver: from objects of bitcode and machine code to a native program and its bitcode.
//!
//! The linker runs twice over the same inputs. One run produces the native program, with the
//! libraries as machine code. The other run merges the bitcode, keeps everything that is reachable
//! from the symbols to which machine code refers (mainly the entry in assembly), and changes
//! nothing else: each function stays as the compiler emitted it, so that a program built without
//! optimisation is explored as it was written.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::Notify;
use crate::arguments::shared_library;
use crate::checked;
use crate::error::{IoContext, ToolchainError};
use crate::keep;
use crate::process;
use crate::response;
use crate::roots;
use crate::sysroot::{self, Sysroot};

/// The default stack size of a thread, as on other systems.
const STACK_SIZE: &str = "stack-size=8388608";

/// The environment variable with a file to which the paths of linked programs are appended.
pub const LINKED_VARIABLE: &str = "EVERETT_LINKED";

/// The environment variable that requests the checked build of every program, beside it.
const CHECKED_VARIABLE: &str = "EVERETT_ASAN";

/// Suffixes of the program's name: its bitcode, and the linker's resolution of symbols.
const BITCODE: &str = ".bc";
const RESOLUTIONS: &str = ".resolution.txt";

/// Functions of the C library and of the entry to which assembly refers in most programs. Further
/// ones cost another run of the linker; names that a program does not have cost nothing.
///
/// The last one is a function of the unwinder, which native code calls to continue unwinding. In
/// bitcode that call is an instruction, so the bitcode does not name the function; builds from it
/// would get a second unwinder, with a second, uninitialised C library.
const USUAL_ROOTS: [&str; 7] = [
    "_start_c",
    "_init",
    "_fini",
    "__cancel",
    "__sigsetjmp_tail",
    "__syscall_ret",
    "_Unwind_Resume",
];

/// Returns the path of bitcode that is not complete yet.
fn unfinished(output: &Path) -> PathBuf {
    with_suffix(output, &format!("{BITCODE}.{}", std::process::id()))
}

/// The output files of a link. They are removed when the link begins, and again if it fails.
struct Made {
    files: [PathBuf; 4],
}

impl Made {
    fn new(output: &Path) -> Result<Made, ToolchainError> {
        let made = Made {
            files: [
                output.to_path_buf(),
                with_suffix(output, BITCODE),
                with_suffix(&unfinished(output), RESOLUTIONS),
                unfinished(output),
            ],
        };
        for file in made.files.iter().filter(|file| file.is_file()) {
            fs::remove_file(file).context("remove", file)?;
        }
        Ok(made)
    }

    /// Ends the link; its files stay if it succeeded.
    fn keep(mut self, succeeded: bool) {
        if succeeded {
            self.files = Default::default();
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for file in self.files.iter().filter(|file| file.is_file()) {
            // The link has already failed; the user sees that error.
            let _ = fs::remove_file(file);
        }
    }
}

/// A linker command line, reduced to the parts that Everett must understand.
#[derive(Debug, PartialEq)]
struct Link {
    /// The arguments without the output and without those that Everett overrides.
    kept: Vec<OsString>,
    output: PathBuf,
    relocatable: bool,
    optimised: bool,
}

/// Links like `ld.lld`, and writes `OUTPUT.bc` beside the output.
pub fn link(args: &[OsString], notify: Notify<'_>) -> Result<i32, ToolchainError> {
    let link = parse(&response::expand(args)?)?;
    let sysroot = Sysroot::open(notify)?;
    if link.relocatable {
        return link_relocatable(&sysroot, &link);
    }
    if is_probe(&link.output) {
        return link_probe(&sysroot, &link, notify);
    }
    refuse_other_libc(&sysroot, &link)?;
    // A failed link leaves no files, not even those of an earlier link.
    let made = Made::new(&link.output)?;
    let code = link_program(&sysroot, &link, notify)?;
    made.keep(code == 0);
    Ok(code)
}

/// Links the native program and its bitcode concurrently.
fn link_program(sysroot: &Sysroot, link: &Link, notify: Notify<'_>) -> Result<i32, ToolchainError> {
    let optimised = keep::optimise(sysroot, &link.kept)?;
    let (native, bitcode) = std::thread::scope(|scope| {
        let bitcode = scope.spawn(|| link_bitcode(sysroot, link));
        let native = link_native(sysroot, link, optimised.as_ref());
        (native, bitcode.join())
    });
    let code = native?;
    if code != 0 {
        explain_missing_libraries(sysroot, link, notify);
        return Ok(code);
    }
    match bitcode {
        Ok(done) => done?,
        Err(panic) => std::panic::resume_unwind(panic),
    }
    announce(&link.output)?;
    if std::env::var_os(CHECKED_VARIABLE).is_some_and(|value| value == "1") {
        let limits = checked::BuildLimits::NONE;
        checked::checked_build(&link.output, checked::Checks::Memory, limits, notify)?;
    }
    Ok(0)
}

/// Links the native program: the user's bitcode is compiled, the libraries are machine code.
fn link_native(
    sysroot: &Sysroot,
    link: &Link,
    optimised: Option<&keep::Optimised>,
) -> Result<i32, ToolchainError> {
    let mut args = common(sysroot, link);
    if let Some(optimised) = optimised {
        args.retain(|arg| arg != "--lto-CGO0");
        args.push("--lto-CGO2".into());
        args.push(format!("--defsym={}=1", keep::MARK).into());
        optimised.replace(&mut args);
    }
    let folder = sysroot.native_libraries();
    prefer(&mut args, sysroot, &folder);
    let libraries = [sysroot.libraries().join("libmath.a"), sysroot.builtins()];
    insert_before_libc(&mut args, &Sysroot::own_objects(&folder), libraries);
    args.push("-o".into());
    args.push(link.output.clone().into());
    args.push("--lto-newpm-passes=globaldce".into());
    run_linker(sysroot, args)
}

/// Makes the linker find the libraries of a folder before those as bitcode, if it searches for these
/// at all.
fn prefer(args: &mut Vec<OsString>, sysroot: &Sysroot, preferred: &Path) {
    let is_libraries = |path: &[u8]| Path::new(OsStr::from_bytes(path)) == sysroot.libraries();
    let found = (0..args.len()).find(|&at| match args[at].as_bytes().strip_prefix(b"-L") {
        Some(b"") => args
            .get(at + 1)
            .is_some_and(|next| is_libraries(next.as_bytes())),
        Some(path) => is_libraries(path),
        None => false,
    });
    if let Some(at) = found {
        let mut folder = OsString::from("-L");
        folder.push(preferred);
        args.insert(at, folder);
    }
}

/// Returns whether the program is a configure probe of autoconf or CMake, which is discarded after
/// it was linked or run. There are hundreds of them, and their bitcode is never used.
fn is_probe(output: &Path) -> bool {
    let Some(name) = output.file_name().and_then(OsStr::to_str) else {
        return false;
    };
    let folder = output.parent().unwrap_or(Path::new(""));
    output == Path::new("/dev/null")
        || name.starts_with("cmTC_")
        // The log is beside the program while the script runs.
        || (name == "conftest" && folder.join("config.log").exists())
}

/// Links a configure probe.
fn link_probe(sysroot: &Sysroot, link: &Link, notify: Notify<'_>) -> Result<i32, ToolchainError> {
    let code = link_native(sysroot, link, None)?;
    if code != 0 {
        explain_missing_libraries(sysroot, link, notify);
    }
    Ok(code)
}

/// Links the bitcode: without the mathematics in the libraries, unless it turns out to be needed.
fn link_bitcode(sysroot: &Sysroot, link: &Link) -> Result<(), ToolchainError> {
    let bitcode = with_suffix(&link.output, BITCODE);
    let unfinished = unfinished(&link.output);
    let mut kept: BTreeSet<String> = USUAL_ROOTS.map(str::to_owned).into();
    let mut is_short = true;
    // The symbols to which machine code refers, and the intrinsics that the kept functions use, are
    // known only after a run.
    loop {
        let mut args = match is_short {
            true => short_inputs(sysroot, link),
            false => whole_inputs(sysroot, link),
        };
        args.push("-o".into());
        args.push(unfinished.clone().into());
        args.push("--lto-emit-llvm".into());
        args.push("--save-temps=resolution".into());
        // The native link, which runs beside this, verifies the program's code.
        args.push("--disable-verify".into());
        args.push(passes_option(&kept));
        let traced = match run_bitcode_linker(sysroot, link, args) {
            // Options of the user may ask for what is not there.
            Err(ToolchainError::Bitcode { .. }) if is_short => {
                is_short = false;
                continue;
            }
            done => done?,
        };
        let roots = needed_roots(&unfinished)?;
        let is_complete = roots.is_subset(&kept);
        kept.extend(roots);
        if is_short && (roots::is_missing(&traced) || kept.iter().any(roots::is_mathematics)) {
            is_short = false;
        } else if is_complete {
            return fs::rename(&unfinished, &bitcode).context("move the bitcode to", &bitcode);
        }
    }
}

/// Returns the inputs of the bitcode link with all libraries.
fn whole_inputs(sysroot: &Sysroot, link: &Link) -> Vec<OsString> {
    let mut args = common(sysroot, link);
    let folder = sysroot.libraries();
    let runtime = folder.join("libcompiler_rt.a");
    insert_before_libc(&mut args, &Sysroot::own_objects(&folder), [runtime]);
    args
}

/// Returns the inputs of the bitcode link with the libraries without mathematics. What refers to
/// mathematics is traced.
fn short_inputs(sysroot: &Sysroot, link: &Link) -> Vec<OsString> {
    let mut args = common(sysroot, link);
    let folder = sysroot.short_libraries();
    let runtime = folder.join("libcompiler_rt.a");
    let objects = Sysroot::short_objects(&sysroot.libraries());
    insert_before_libc(&mut args, &objects, [runtime]);
    // As machine code it has mathematics.
    args.retain(|arg| !is_builtins(arg));
    prefer(&mut args, sysroot, &folder);
    let names = roots::mathematics_of_libraries();
    args.extend(names.map(|name| format!("--trace-symbol={name}").into()));
    args
}

/// Runs the linker, and returns what it says of traced symbols.
fn run_bitcode_linker(
    sysroot: &Sysroot,
    link: &Link,
    args: Vec<OsString>,
) -> Result<String, ToolchainError> {
    let packed = response::pack(args)?;
    let mut linker = sysroot.zig_command("ld.lld");
    let done = process::capture(linker.args(packed.args()), "")?;
    if !done.status.success() {
        let reason = String::from_utf8_lossy(&done.stderr).into_owned();
        return Err(ToolchainError::Bitcode {
            program: link.output.clone(),
            reason,
        });
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Returns what linked bitcode has to keep, and removes the linker's list of symbols.
fn needed_roots(bitcode: &Path) -> Result<BTreeSet<String>, ToolchainError> {
    let resolutions = with_suffix(bitcode, RESOLUTIONS);
    let text = fs::read(&resolutions).context("read", &resolutions)?;
    fs::remove_file(&resolutions).context("remove", &resolutions)?;
    let bytes = fs::read(bitcode).context("read", bitcode)?;
    let mut roots = roots::from_resolutions(&String::from_utf8_lossy(&text));
    // The compiler's runtime also defines Everett's own versions of functions; this alone is no
    // reason to keep them.
    for name in sysroot::own_functions() {
        roots.remove(name);
    }
    roots.extend(roots::from_intrinsics(&bytes));
    Ok(roots)
}

/// Reports a linked program to a waiting cargo or rustc; several links may run concurrently.
fn announce(program: &Path) -> Result<(), ToolchainError> {
    use std::io::Write;
    let Some(list) = std::env::var_os(LINKED_VARIABLE) else {
        return Ok(());
    };
    let path = std::path::absolute(program).context("find", program)?;
    let mut line = path.into_os_string().into_encoded_bytes();
    line.push(b'\n');
    let file = fs::File::options().append(true).open(&list);
    file.and_then(|mut file| file.write_all(&line))
        .context("write", PathBuf::from(list))
}

/// Merges objects into one object of bitcode, or of machine code if there is no bitcode.
fn link_relocatable(sysroot: &Sysroot, link: &Link) -> Result<i32, ToolchainError> {
    let mut args = link.kept.clone();
    args.push("-o".into());
    args.push(link.output.clone().into());
    args.push("--lto-emit-llvm".into());
    args.push("--lto-O0".into());
    run_linker(sysroot, args)
}

/// Returns the arguments of both runs: the user's, and the library of Everett's own functions.
fn common(sysroot: &Sysroot, link: &Link) -> Vec<OsString> {
    let mut args = vec![OsString::from("-z"), OsString::from(STACK_SIZE)];
    args.extend(link.kept.iter().cloned());
    args.push(sysroot.libraries().join("libeverett.a").into());
    args.push(
        if link.optimised {
            "--lto-CGO2"
        } else {
            "--lto-CGO0"
        }
        .into(),
    );
    args
}

/// Returns the folders of `-L` and the libraries of `-l`, in order.
fn searched(link: &Link) -> (Vec<PathBuf>, Vec<OsString>) {
    let (mut folders, mut wanted) = (Vec::new(), Vec::new());
    let mut rest = link.kept.iter();
    while let Some(arg) = rest.next() {
        let bytes = arg.as_bytes();
        match (bytes.get(..2), bytes.get(2..)) {
            (Some(b"-L"), Some(b"")) => folders.extend(rest.next().map(PathBuf::from)),
            (Some(b"-L"), Some(path)) => folders.push(PathBuf::from(OsStr::from_bytes(path))),
            (Some(b"-l"), Some(b"")) => wanted.extend(rest.next().cloned()),
            (Some(b"-l"), Some(name)) => wanted.push(OsStr::from_bytes(name).to_os_string()),
            _ => {}
        }
    }
    (folders, wanted)
}

/// Rejects the C library of the machine: it is not bitcode, and no program can have two.
fn refuse_other_libc(sysroot: &Sysroot, link: &Link) -> Result<(), ToolchainError> {
    const MARK: &[u8] = b"GNU C Library";
    let (folders, wanted) = searched(link);
    if !wanted.iter().any(|name| name == "c") {
        return Ok(());
    }
    let own = sysroot.libraries();
    let found = folders.iter().find(|folder| folder.join("libc.a").exists());
    let Some(folder) = found.filter(|folder| folder.canonicalize().ok() != own.canonicalize().ok())
    else {
        return Ok(());
    };
    let library = folder.join("libc.a");
    let bytes = fs::read(&library).context("read", &library)?;
    if roots::find(&bytes, MARK).is_none() {
        return Ok(());
    }
    Err(ToolchainError::Unsupported(format!(
        "{} is glibc, the C library of this machine, which -L{} puts in place of Everett's (musl, as bitcode)\n\
         leave out this -L; libraries that the program needs from there must be built with `everett cc`",
        library.display(),
        folder.display()
    )))
}

/// Explains why a system library was not found.
fn explain_missing_libraries(sysroot: &Sysroot, link: &Link, notify: Notify<'_>) {
    let (mut folders, wanted) = searched(link);
    folders.push(sysroot.libraries());
    for name in wanted {
        let mut file = OsString::from("lib");
        file.push(&name);
        file.push(".a");
        let exact = name.as_bytes().strip_prefix(b":").map(OsStr::from_bytes);
        let file = exact.unwrap_or(&file);
        if !folders.iter().any(|folder| folder.join(file).exists()) {
            notify(&format!(
                "note: -l{} was not found: libraries of the system are not used, because \
                 they are not bitcode; build the library with `everett cc` and name its folder \
                 with -L",
                name.display()
            ));
        }
    }
}

/// Inserts libraries and Everett's own objects before libc, so that they take precedence over its
/// functions, but after all user code, which may define the same functions. A program without libc
/// gets none of them.
fn insert_before_libc<const N: usize>(
    args: &mut Vec<OsString>,
    own: &[PathBuf],
    libraries: [PathBuf; N],
) {
    let is_libc = |arg: &OsString| arg == "-lc";
    let objects = if args.iter().any(is_libc) { own } else { &[] };
    let first = args.iter().position(|arg| is_libc(arg) || is_builtins(arg));
    let at = first.unwrap_or(args.len());
    let all = objects.iter().cloned().chain(libraries).map(OsString::from);
    args.splice(at..at, all);
}

/// Returns whether an argument is the compiler's runtime as machine code.
fn is_builtins(arg: &OsString) -> bool {
    arg.to_string_lossy().contains("libclang_rt.builtins")
}

/// Returns the linker's option for [`passes`].
pub fn passes_option(kept: &BTreeSet<String>) -> OsString {
    let mut option = OsString::from("--lto-newpm-passes=");
    option.push(passes(kept));
    option
}

/// Returns the passes that keep everything that is reachable from the named functions and change
/// nothing else.
pub fn passes(kept: &BTreeSet<String>) -> OsString {
    // A name with a metacharacter of the list can only come from assembly.
    let names = kept
        .iter()
        .filter(|name| !name.contains([',', ';', '<', '>', '(', ')']));
    let list: Vec<String> = names.map(|name| format!("preserve-gv={name}")).collect();
    let list = list.join(";");
    format!("internalize<{list}>,globaldce,strip-dead-debug-info").into()
}

fn run_linker(sysroot: &Sysroot, args: Vec<OsString>) -> Result<i32, ToolchainError> {
    let packed = response::pack(args)?;
    process::run(sysroot.zig_command("ld.lld").args(packed.args()), "")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

fn parse(args: &[OsString]) -> Result<Link, ToolchainError> {
    let mut link = Link {
        kept: Vec::new(),
        output: PathBuf::from("a.out"),
        relocatable: false,
        optimised: false,
    };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_bytes() {
            b"-o" | b"--output" => {
                link.output = rest.next().map(PathBuf::from).unwrap_or_default();
            }
            b"-shared" | b"--shared" | b"-Bshareable" => return Err(shared_library()),
            b"-wrap" | b"--wrap" => {
                return Err(wrapped(rest.next().map_or(b"", |name| name.as_bytes())));
            }
            // These consume the next argument.
            b"-plugin" | b"-dynamic-linker" | b"--dynamic-linker" => drop(rest.next()),
            // The next argument is a value, not a flag.
            b"-z" | b"-u" | b"-e" | b"-L" | b"-l" | b"-T" | b"-m" | b"-rpath" | b"-soname"
            | b"-mllvm" => {
                link.kept.push(arg.clone());
                link.kept.extend(rest.next().cloned());
            }
            b"-r" | b"--relocatable" => {
                link.relocatable = true;
                link.kept.push(arg.clone());
            }
            bytes => {
                if let Some(name) = bytes.strip_prefix(b"--wrap=") {
                    return Err(wrapped(name));
                }
                if let Some(level) = bytes.strip_prefix(b"-plugin-opt=O") {
                    link.optimised = level != b"0";
                } else if let Some(path) = output_in(bytes) {
                    link.output = path;
                } else if !is_decided_by_everett(bytes) {
                    link.kept.push(arg.clone());
                }
            }
        }
    }
    Ok(link)
}

/// Returns the error for a replaced symbol: the linker replaces it after the bitcode is merged, so
/// the native program would call other functions than the bitcode.
fn wrapped(symbol: &[u8]) -> ToolchainError {
    let symbol = String::from_utf8_lossy(symbol);
    ToolchainError::Unsupported(format!(
        "the linker's --wrap={symbol} replaces calls only in the native program, not in its bitcode\n\
         replace them in the source instead, such as with -D{symbol}=__wrap_{symbol} where they are"
    ))
}

/// Returns the output if one argument contains it: `-oFILE` or `--output=FILE`.
fn output_in(arg: &[u8]) -> Option<PathBuf> {
    let name = arg.strip_prefix(b"--output=").or_else(|| {
        // Every other linker option with this prefix is longer than the prefix.
        arg.strip_prefix(b"-o")
            .filter(|name| !name.is_empty() && !name.starts_with(b"mit"))
    })?;
    Some(PathBuf::from(OsStr::from_bytes(name)))
}

fn is_decided_by_everett(arg: &[u8]) -> bool {
    matches!(
        arg,
        b"-pie"
            | b"--pie"
            | b"-pic-executable"
            | b"-export-dynamic"
            | b"--export-dynamic"
            | b"-E"
            | b"--save-temps"
    ) || arg.starts_with(b"--lto-O")
        || arg.starts_with(b"--lto-CGO")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Link {
        parse(&args.iter().map(OsString::from).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn the_output_is_found_in_all_its_forms() {
        for args in [
            &["-o", "p"][..],
            &["-op"],
            &["--output=p"],
            &["--output", "p"],
        ] {
            assert_eq!(parsed(args).output, Path::new("p"));
        }
        assert_eq!(parsed(&["x.o"]).output, Path::new("a.out"));
        assert_eq!(parsed(&["-omit"]).output, Path::new("a.out"));
    }

    #[test]
    fn what_makes_the_program_dynamic_is_dropped() {
        let args = [
            "-pie",
            "-E",
            "-dynamic-linker",
            "/lib/ld.so",
            "-plugin",
            "p.so",
            "x.o",
        ];
        assert_eq!(parsed(&args).kept, ["x.o"]);
        assert_eq!(
            parsed(&["-u", "-E", "-z", "-pie"]).kept,
            ["-u", "-E", "-z", "-pie"]
        );
        assert!(parse(&["-shared".into()]).is_err());
    }

    #[test]
    fn symbols_are_not_replaced_in_the_native_program_alone() {
        for args in [&["--wrap=f", "x.o"][..], &["-wrap", "f"], &["--wrap", "f"]] {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            let message = parse(&args).expect_err("it is refused").to_string();
            assert!(message.contains("__wrap_f"), "{message}");
        }
    }

    #[test]
    fn the_level_of_optimisation_is_the_compilers() {
        assert!(parsed(&["-plugin-opt=O2"]).optimised);
        assert!(!parsed(&["-plugin-opt=O0"]).optimised);
        assert!(parsed(&["-r"]).relocatable);
    }

    #[test]
    fn programs_of_configure_scripts_get_no_bitcode() {
        let folder = tempfile::tempdir().unwrap();
        let conftest = folder.path().join("conftest");
        assert!(!is_probe(&conftest));
        fs::write(folder.path().join("config.log"), "").unwrap();
        assert!(is_probe(&conftest));
        assert!(is_probe(Path::new("/dev/null")));
        assert!(is_probe(Path::new("CMakeFiles/cmTC_1a2b3")));
        assert!(!is_probe(&folder.path().join("server")));
        assert!(!is_probe(Path::new("a.out")));
    }

    #[test]
    fn all_roots_are_named_to_the_pass() {
        let kept = ["main", "_start_c"].map(String::from).into_iter().collect();
        let expected = "--lto-newpm-passes=internalize<preserve-gv=_start_c;preserve-gv=main>,\
                        globaldce,strip-dead-debug-info";
        assert_eq!(passes_option(&kept), OsString::from(expected));
    }
}
