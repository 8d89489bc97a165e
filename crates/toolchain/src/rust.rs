//! `rustc` and `cargo`, configured so that std and the program are compiled to bitcode and linked
//! like C.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Notify;
use crate::driver::{EXECUTABLE_VARIABLE, executable};
use crate::error::{IoContext, ToolchainError};
use crate::link::LINKED_VARIABLE;
use crate::process;
use crate::sysroot::Sysroot;

/// Rust's name for the target.
const TARGET: &str = "x86_64-unknown-linux-musl";

const NO_RUST: &str = "install Rust with rustup, see https://rustup.rs";

/// The path of std in debug information, after the equals sign of the flag.
const STD_NAME: &str = "=/everett/rust";

/// The separator of flags in `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: &str = "\x1f";

/// Runs `rustc` so that a program gets bitcode.
pub fn rustc(args: &[OsString], notify: Notify<'_>) -> Result<i32, ToolchainError> {
    let (toolchain, args) = split_toolchain(args);
    let args = without_target(args)?;
    let rust = ensure_target(toolchain, notify)?;
    let sysroot = Sysroot::open(notify)?;
    let mut command = Command::new("rustc");
    command.args(toolchain).args(["--target", TARGET, "-g"]);
    command
        .args(["-Clto=fat", "-Ccodegen-units=1"])
        .args(flags(&sysroot, &rust))
        .args(args);
    run_linking(command, notify)
}

/// Runs `cargo` so that every program that it links gets bitcode.
pub fn cargo(args: &[OsString], notify: Notify<'_>) -> Result<i32, ToolchainError> {
    let (toolchain, args) = split_toolchain(args);
    let args = without_target(args)?;
    let rust = ensure_target(toolchain, notify)?;
    let sysroot = Sysroot::open(notify)?;
    let mut command = Command::new("cargo");
    command
        .args(toolchain)
        .args(args)
        .env("CARGO_BUILD_TARGET", TARGET);
    let ours = flags(&sysroot, &rust);
    command.env(
        "CARGO_ENCODED_RUSTFLAGS",
        with_users_flags(ours, |name| env::var_os(name)),
    );
    for profile in ["DEV", "RELEASE"] {
        command.env(format!("CARGO_PROFILE_{profile}_LTO"), "fat");
        command.env(format!("CARGO_PROFILE_{profile}_CODEGEN_UNITS"), "1");
        command.env(format!("CARGO_PROFILE_{profile}_DEBUG"), "2");
        command.env(format!("CARGO_PROFILE_{profile}_STRIP"), "none");
    }
    // C and C++ in build scripts are also compiled to bitcode.
    for (variable, tool) in [
        ("CC", "cc"),
        ("CXX", "c++"),
        ("AR", "ar"),
        ("RANLIB", "ranlib"),
    ] {
        let name = format!("{variable}_{}", TARGET.replace('-', "_"));
        command.env(name, sysroot.shim(tool));
    }
    run_linking(command, notify)
}

/// Returns the flags of every compilation for the target: bitcode objects, linked by Everett.
fn flags(sysroot: &Sysroot, rust: &Path) -> Vec<OsString> {
    let libraries = sysroot.libraries();
    let mut flags: Vec<OsString> = [
        "-Clinker-plugin-lto",
        "-Cembed-bitcode=yes",
        "-Clinker-flavor=ld",
        "-Clink-self-contained=no",
        "-Crelocation-model=static",
        "-Ctarget-feature=+crt-static",
    ]
    .map(OsString::from)
    .to_vec();
    let mut add = |name: &str, path: &Path| {
        let mut flag = OsString::from(name);
        flag.push(path);
        flags.push(flag);
    };
    // If the sources of std are installed, its generic functions would have paths in the user's own
    // folder.
    let mut renamed = rust.join("lib/rustlib/src/rust").into_os_string();
    renamed.push(STD_NAME);
    add("--remap-path-prefix=", Path::new(&renamed));
    add("-Clinker=", &sysroot.shim("ld"));
    add("-Lnative=", &libraries);
    add("-Clink-arg=", &libraries.join("crt1.o"));
    add("-Clink-arg=", &libraries.join("crti.o"));
    add("-Clink-arg=", &sysroot.builtins());
    flags
}

/// Adds the user's flags. Cargo reads flags from one source only, so the user's must be included.
fn with_users_flags(ours: Vec<OsString>, variable: impl Fn(&str) -> Option<OsString>) -> OsString {
    let mut all = match (variable("CARGO_ENCODED_RUSTFLAGS"), variable("RUSTFLAGS")) {
        (Some(encoded), _) => encoded,
        (None, Some(plain)) => {
            let plain = plain.to_string_lossy();
            plain
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(SEPARATOR)
                .into()
        }
        (None, None) => OsString::new(),
    };
    for flag in ours {
        if !all.is_empty() {
            all.push(SEPARATOR);
        }
        all.push(flag);
    }
    all
}

/// Runs a command that links, then prints the paths of the programs and their bitcode.
fn run_linking(mut command: Command, notify: Notify<'_>) -> Result<i32, ToolchainError> {
    let list = tempfile::NamedTempFile::new().context("create", "a temporary file")?;
    command
        .env(LINKED_VARIABLE, list.path())
        .env(EXECUTABLE_VARIABLE, executable()?);
    // A command that fails may have linked programs before, which cargo does not link again: another
    // program has an error, a test fails, or the program that cargo ran ends with this code.
    let code = process::run(&mut command, NO_RUST)?;
    let text = fs::read_to_string(list.path()).context("read", list.path())?;
    for line in text.lines() {
        for program in publish(Path::new(line))? {
            let program = program.display();
            notify(&format!("{program} with {program}.bc"));
        }
    }
    Ok(code)
}

/// Places the bitcode beside every path under which cargo exposes a linked program.
///
/// Cargo links `deps/name-HASH` and then exposes it as `../name` or `name`.
fn publish(linked: &Path) -> Result<Vec<PathBuf>, ToolchainError> {
    use std::os::unix::fs::MetadataExt;
    let Ok(metadata) = fs::metadata(linked) else {
        return Ok(Vec::new());
    };
    let mut shown = Vec::new();
    let folder = linked.parent().unwrap_or(Path::new("."));
    let above = folder.parent().filter(|_| folder.ends_with("deps"));
    for place in [Some(folder), above].into_iter().flatten() {
        for entry in fs::read_dir(place).context("list", place)? {
            let path = entry.context("list", place)?.path();
            let same = fs::metadata(&path)
                .is_ok_and(|other| other.ino() == metadata.ino() && other.dev() == metadata.dev());
            if same && path != linked {
                shown.push(path);
            }
        }
    }
    shown.sort();
    let bitcode = suffixed(linked);
    for program in &shown {
        let target = suffixed(program);
        let unfinished = target.with_extension("unfinished");
        fs::copy(&bitcode, &unfinished).context("copy", &bitcode)?;
        fs::rename(&unfinished, &target).context("move the bitcode to", &target)?;
    }
    if shown.is_empty() {
        shown.push(linked.to_path_buf());
    }
    Ok(shown)
}

fn suffixed(program: &Path) -> PathBuf {
    let mut name = program.as_os_str().to_os_string();
    name.push(".bc");
    PathBuf::from(name)
}

/// Strips a leading `+toolchain`.
fn split_toolchain(args: &[OsString]) -> (Option<&OsString>, &[OsString]) {
    match args.split_first() {
        Some((first, rest)) if first.to_string_lossy().starts_with('+') => (Some(first), rest),
        _ => (None, args),
    }
}

/// Strips `--target`; rejects any other target.
fn without_target(args: &[OsString]) -> Result<Vec<OsString>, ToolchainError> {
    let mut kept = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let text = arg.to_string_lossy();
        if text == "--" {
            kept.push(arg.clone());
            kept.extend(rest.cloned());
            break;
        }
        let target = if text == "--target" {
            rest.next().map(OsString::as_os_str).unwrap_or_default()
        } else if let Some(target) = text.strip_prefix("--target=") {
            OsStr::new(target)
        } else {
            kept.push(arg.clone());
            continue;
        };
        if target != TARGET {
            return Err(ToolchainError::Unsupported(format!(
                "target {} is not supported: everett builds for {TARGET} only",
                target.display()
            )));
        }
    }
    Ok(kept)
}

/// Installs the target's std if it is missing. Returns the folder of the Rust toolchain.
fn ensure_target(
    toolchain: Option<&OsString>,
    notify: Notify<'_>,
) -> Result<PathBuf, ToolchainError> {
    let mut ask = Command::new("rustc");
    ask.args(toolchain).args([
        "--print",
        "target-libdir",
        "--print",
        "sysroot",
        "--target",
        TARGET,
    ]);
    let answer = process::capture(&mut ask, NO_RUST)?;
    let text = String::from_utf8_lossy(&answer.stdout);
    let mut lines = text.lines().map(PathBuf::from);
    let (folder, sysroot) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    if answer.status.success() && folder.is_dir() {
        return Ok(sysroot);
    }
    notify(&format!("adding the Rust target {TARGET} (first use only)"));
    let mut add = Command::new("rustup");
    add.args(toolchain)
        .args(["target", "add", TARGET])
        .stdout(std::io::stderr());
    let added = add.status().is_ok_and(|status| status.success());
    if added {
        return Ok(sysroot);
    }
    Err(ToolchainError::Rust(format!(
        "Rust's standard library for {TARGET} is missing and `rustup target add {TARGET}` failed\n\
         add it with a network connection, or install it with your system's Rust packages"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(args: &[&str]) -> Vec<OsString> {
        args.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_toolchain_and_the_target_are_taken_off() {
        let args = strings(&["+nightly", "build", "--target", TARGET, "--release"]);
        let (toolchain, rest) = split_toolchain(&args);
        assert_eq!(toolchain, Some(&OsString::from("+nightly")));
        assert_eq!(
            without_target(rest).unwrap(),
            strings(&["build", "--release"])
        );
        assert!(without_target(&strings(&["--target=wasm32-wasip1"])).is_err());
        let program = strings(&["run", "--", "--target", "x"]);
        assert_eq!(without_target(&program).unwrap(), program);
    }

    #[test]
    fn the_users_flags_come_first() {
        let ours = || strings(&["-Cx=a b", "-Cy"]);
        let with = |name: &'static str, value: &'static str| {
            with_users_flags(ours(), move |asked| (asked == name).then(|| value.into()))
        };
        assert_eq!(with("NONE", ""), "-Cx=a b\x1f-Cy");
        assert_eq!(with("RUSTFLAGS", " -O  -g"), "-O\x1f-g\x1f-Cx=a b\x1f-Cy");
        assert_eq!(
            with("CARGO_ENCODED_RUSTFLAGS", "-O\x1f-g"),
            "-O\x1f-g\x1f-Cx=a b\x1f-Cy"
        );
    }

    #[test]
    fn programs_that_were_linked_before_a_failure_have_their_bitcode() {
        let folder = tempfile::tempdir().unwrap();
        let deps = folder.path().join("deps");
        fs::create_dir(&deps).unwrap();
        let linked = deps.join("prog-1f");
        fs::write(&linked, "program").unwrap();
        fs::write(deps.join("prog-1f.bc"), "bitcode").unwrap();
        fs::hard_link(&linked, folder.path().join("prog")).unwrap();
        let mut command = Command::new("sh");
        let script = format!(
            "echo '{}' >> \"${LINKED_VARIABLE}\"; exit 3",
            linked.display()
        );
        command.args(["-c", &script]);
        assert_eq!(run_linking(command, &|_| {}).unwrap(), 3);
        assert!(folder.path().join("prog.bc").exists());
    }

    #[test]
    fn bitcode_appears_beside_every_name_of_a_program() {
        let folder = tempfile::tempdir().unwrap();
        let deps = folder.path().join("deps");
        fs::create_dir(&deps).unwrap();
        let linked = deps.join("my_prog-1f");
        fs::write(&linked, "program").unwrap();
        fs::write(deps.join("my_prog-1f.bc"), "bitcode").unwrap();
        fs::write(folder.path().join("other"), "program").unwrap();
        assert_eq!(publish(&linked).unwrap(), std::slice::from_ref(&linked));
        fs::hard_link(&linked, folder.path().join("my-prog")).unwrap();
        assert_eq!(publish(&linked).unwrap(), [folder.path().join("my-prog")]);
        assert_eq!(
            fs::read(folder.path().join("my-prog.bc")).unwrap(),
            b"bitcode"
        );
        assert!(!folder.path().join("other.bc").exists());
    }
}
