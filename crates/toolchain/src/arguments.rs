//! The compiler's command line as the user writes it, and the changes that it needs before clang
//! sees it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::error::ToolchainError;

/// Flags whose value is the next argument, which is then not a flag.
const TAKES_VALUE: [&str; 30] = [
    "-o",
    "-I",
    "-D",
    "-U",
    "-L",
    "-l",
    "-x",
    "-u",
    "-z",
    "-T",
    "-e",
    "-F",
    "-B",
    "-A",
    "-MF",
    "-MT",
    "-MQ",
    "-MJ",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-iwithprefix",
    "-isysroot",
    "-Xlinker",
    "-Xclang",
    "-Xassembler",
    "-Xpreprocessor",
];

/// A command line, ready for clang.
#[derive(Debug, PartialEq)]
pub struct Arguments {
    /// The user's arguments without those that Everett overrides.
    pub kept: Vec<OsString>,
    /// Whether assembly output is requested: link-time optimisation would emit LLVM IR instead.
    pub to_assembly: bool,
    /// Whether the user sets any debug information flag.
    pub says_debug: bool,
    /// Whether undefined behaviour is checked.
    pub checks: bool,
    /// Whether the user wants these checks to trap.
    pub traps: bool,
    /// Whether the bitcode must be unoptimised (`--keep-errors`).
    pub keeps_errors: bool,
    /// The last optimisation level, such as `-O2`.
    pub level: Option<String>,
}

/// Parses a command line; response files are already expanded.
pub fn parse(args: &[OsString]) -> Result<Arguments, ToolchainError> {
    let mut parsed = Arguments {
        kept: Vec::new(),
        to_assembly: false,
        says_debug: false,
        checks: false,
        traps: false,
        keeps_errors: false,
        level: None,
    };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let text = String::from_utf8_lossy(arg.as_bytes());
        if text == "--" {
            parsed.kept.push(arg.clone());
            parsed.kept.extend(rest.cloned());
            break;
        }
        if TAKES_VALUE.contains(&text.as_ref()) {
            parsed.kept.push(arg.clone());
            parsed.kept.extend(rest.next().cloned());
            continue;
        }
        if matches!(text.as_ref(), "-target" | "--target") {
            check_target(rest.next().map(OsString::as_os_str).unwrap_or_default())?;
            continue;
        }
        if let Some(target) = text.strip_prefix("--target=") {
            check_target(OsStr::new(target))?;
            continue;
        }
        if text == "--keep-errors" {
            parsed.keeps_errors = true;
            continue;
        }
        if text.starts_with("-O") {
            parsed.level = Some(text.clone().into_owned());
        }
        check_supported(&text)?;
        parsed.to_assembly |= text == "-S";
        parsed.says_debug |= is_debug_flag(&text);
        parsed.checks |= text.starts_with("-fsanitize=");
        parsed.traps |= says_trap(&text);

        if !is_decided_by_everett(&text) {
            parsed.kept.push(arg.clone());
        }
    }
    Ok(parsed)
}

/// Returns whether Everett overrides a flag: flags about bitcode, position independence and
/// linking.
fn is_decided_by_everett(flag: &str) -> bool {
    matches!(
        flag,
        "-flto"
            | "-fno-lto"
            | "-ffat-lto-objects"
            | "-fno-fat-lto-objects"
            | "-funified-lto"
            | "-fwhole-program-vtables"
            | "-pie"
            | "-static-pie"
            | "-rdynamic"
            | "-m64"
            | "-fuse-linker-plugin"
            | "-static-libgcc"
            | "-static-libstdc++"
            | "-fsanitize-minimal-runtime"
    ) || ["-flto=", "-flto-", "-fuse-ld=", "--ld-path="]
        .iter()
        .any(|p| flag.starts_with(p))
}

/// Returns whether checks trap by this flag. Clang's small runtime is one of traps with a message.
fn says_trap(flag: &str) -> bool {
    let traps = [
        "-fsanitize-undefined-trap-on-error",
        "-fsanitize-trap",
        "-fsanitize-minimal-runtime",
    ];
    traps.contains(&flag) || flag.starts_with("-fsanitize-trap=")
}

fn is_debug_flag(flag: &str) -> bool {
    matches!(flag, "-g" | "-g0" | "-g1" | "-g2" | "-g3")
        || ["-ggdb", "-gdwarf", "-gline", "-gfull", "-gmlt"]
            .iter()
            .any(|p| flag.starts_with(p))
}

fn check_supported(flag: &str) -> Result<(), ToolchainError> {
    match flag {
        "-shared" => Err(shared_library()),
        _ if flag.strip_prefix("-fsanitize=").is_some_and(needs_runtime) => {
            Err(ToolchainError::Unsupported(format!(
                "{flag} is not supported: everett itself finds what it would find\n\
                 build without it; the checks of -fsanitize=undefined are supported"
            )))
        }
        "-pg"
        | "--coverage"
        | "-fprofile-arcs"
        | "-ftest-coverage"
        | "-fprofile-generate"
        | "-fprofile-instr-generate" => Err(ToolchainError::Unsupported(format!(
            "{flag} is not supported: everett has no runtime library of profilers\n\
             build without it; `everett coverage` shows which lines a run has covered"
        ))),
        "-m32" | "-mx32" => Err(ToolchainError::Unsupported(format!(
            "{flag} is not supported: programs under everett are x86-64 with 64-bit pointers"
        ))),
        _ => Ok(()),
    }
}

/// Returns whether a list of sanitizers contains one that needs a runtime library.
fn needs_runtime(sanitizers: &str) -> bool {
    let with_library = [
        "address",
        "memory",
        "thread",
        "leak",
        "hwaddress",
        "fuzzer",
        "dataflow",
        "realtime",
        "vptr",
    ];
    sanitizers
        .split(',')
        .any(|name| with_library.contains(&name))
}

/// Returns the error that shared libraries are not supported, with a workaround.
pub fn shared_library() -> ToolchainError {
    ToolchainError::Unsupported(
        "-shared is not supported: a program under everett is one static program with its \
         bitcode beside it\nbuild a static library instead (`everett ar`; for configure scripts: \
         --disable-shared --enable-static)"
            .into(),
    )
}

fn check_target(target: &OsStr) -> Result<(), ToolchainError> {
    let text = target.to_string_lossy();
    if text.starts_with("x86_64") && text.contains("linux") {
        return Ok(());
    }
    Err(ToolchainError::Unsupported(format!(
        "target {text} is not supported: everett builds for {} only",
        crate::sysroot::TARGET
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Arguments, ToolchainError> {
        parse(&args.iter().map(OsString::from).collect::<Vec<_>>())
    }

    fn kept(args: &[&str]) -> Vec<String> {
        let kept = parsed(args).unwrap().kept;
        kept.into_iter()
            .map(|arg| arg.into_string().unwrap())
            .collect()
    }

    #[test]
    fn the_wish_to_keep_errors_is_not_clangs() {
        let args = parsed(&["-O1", "--keep-errors", "-O2", "a.c"]).unwrap();
        assert!(args.keeps_errors);
        assert_eq!(args.level.as_deref(), Some("-O2"));
        assert_eq!(args.kept, ["-O1", "-O2", "a.c"]);
        assert!(!parsed(&["a.c"]).unwrap().keeps_errors);
    }

    #[test]
    fn link_time_and_position_flags_are_dropped() {
        let args = [
            "-flto=thin",
            "-c",
            "-fPIC",
            "x.c",
            "-fuse-ld=gold",
            "-pie",
            "-rdynamic",
            "-m64",
        ];
        assert_eq!(kept(&args), ["-c", "-fPIC", "x.c"]);
        assert_eq!(
            kept(&["-target", "x86_64-unknown-linux-gnu", "x.c"]),
            ["x.c"]
        );
    }

    #[test]
    fn values_are_never_taken_for_flags() {
        let args = [
            "-o", "-flto", "-Xlinker", "-shared", "-D", "-S", "--", "-shared",
        ];
        assert_eq!(kept(&args), args);
        assert!(!parsed(&args).unwrap().to_assembly);
        assert_eq!(kept(&["x.c", "-o"]), ["x.c", "-o"]);
    }

    #[test]
    fn what_cannot_work_is_refused_with_a_way_out() {
        let message = parsed(&["-shared", "x.c"]).unwrap_err().to_string();
        assert!(message.contains("--disable-shared"), "{message}");
        assert!(parsed(&["-m32"]).is_err());
        for profiler in ["-pg", "--coverage", "-fprofile-instr-generate"] {
            let message = parsed(&[profiler]).unwrap_err().to_string();
            assert!(message.contains("everett coverage"), "{message}");
        }
        assert!(parsed(&["-fsanitize=undefined,address"]).is_err());
        let checked = parsed(&["-fsanitize=undefined"]).unwrap();
        assert!(checked.checks && !checked.traps);
        let trapping = ["-fsanitize=undefined", "-fsanitize-trap=all"];
        assert!(parsed(&trapping).unwrap().traps);
        assert!(parsed(&["--target=aarch64-linux-gnu"]).is_err());
        assert!(parsed(&["-target", "wasm32"]).is_err());
    }

    #[test]
    fn debug_and_assembly_flags_are_noticed() {
        assert!(parsed(&["-ggdb3"]).unwrap().says_debug);
        assert!(parsed(&["-g0"]).unwrap().says_debug);
        assert!(!parsed(&["-gcc-toolchain"]).unwrap().says_debug);
        assert!(parsed(&["-S", "x.c"]).unwrap().to_assembly);
    }
}
