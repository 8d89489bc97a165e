//! `--keep-errors`: the bitcode of a program is unoptimised, and its native code is optimised.
//!
//! Optimisers remove undefined behaviour, and with it the errors. With this flag the compiler does
//! not optimise; instead the linker driver optimises each object for the native program alone.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol};

use crate::error::{IoContext, ToolchainError};
use crate::process;
use crate::sysroot::Sysroot;

/// The environment variable that has the same effect as the flag, for build systems that cannot
/// pass a flag.
const WANTED_VARIABLE: &str = "EVERETT_KEEP_ERRORS";

/// The environment variable that passes the level of native code from the compiler driver to the
/// linker driver.
pub const LEVEL_VARIABLE: &str = "EVERETT_NATIVE_LEVEL";

/// The symbol that marks native programs that are optimised while their bitcode is not.
pub const MARK: &str = "everett_keeps_errors";

/// Returns whether a native program is optimised while its bitcode is not.
pub fn keeps_errors(program: &Path) -> bool {
    let Ok(bytes) = fs::read(program) else {
        return false;
    };
    let Ok(file) = object::File::parse(&*bytes) else {
        return false;
    };
    file.symbols().any(|symbol| symbol.name() == Ok(MARK))
}

/// Magic numbers of bitcode, plain and wrapped.
pub const BITCODE: [[u8; 4]; 2] = [*b"BC\xc0\xde", [0xde, 0xc0, 0x17, 0x0b]];

/// The attributes by which `-O0` excludes functions from optimisation.
const REMOVED: [&str; 2] = [
    "-force-remove-attribute=optnone",
    "-force-remove-attribute=noinline",
];

/// Returns whether the environment requests `--keep-errors`.
pub fn is_wanted() -> bool {
    std::env::var_os(WANTED_VARIABLE).is_some_and(|value| value == "1")
}

/// Optimised objects, by the path of the originals.
pub struct Optimised {
    objects: BTreeMap<OsString, PathBuf>,
    /// The folder of the objects, until this is dropped.
    _folder: tempfile::TempDir,
}

impl Optimised {
    /// Replaces the original objects by the optimised ones.
    pub fn replace(&self, args: &mut [OsString]) {
        for arg in args {
            if let Some(object) = self.objects.get(arg) {
                *arg = object.clone().into();
            }
        }
    }
}

/// Optimises the user's objects in a linker command line, if the compiler driver requests it.
pub fn optimise(sysroot: &Sysroot, args: &[OsString]) -> Result<Option<Optimised>, ToolchainError> {
    let Some(level) = std::env::var_os(LEVEL_VARIABLE) else {
        return Ok(None);
    };
    let folder = tempfile::tempdir().context("create a folder in", std::env::temp_dir())?;
    let mut objects = BTreeMap::new();
    let folders = library_folders(args);
    for (number, arg) in args.iter().enumerate() {
        let named = library_named(arg, &folders);
        let path = named.as_deref().unwrap_or(Path::new(arg));
        if path.starts_with(&sysroot.folder) || objects.contains_key(arg) {
            continue;
        }
        let target = folder.path().join(number.to_string());
        if is_bitcode(path) {
            let object = target.with_extension("o");
            optimise_one(sysroot, path, &object, &level)?;
            objects.insert(arg.clone(), object);
        } else if path.extension().is_some_and(|extension| extension == "a") && path.is_file() {
            let archive = target.with_extension("a");
            if optimise_archive(sysroot, path, &target, &archive, &level)? {
                objects.insert(arg.clone(), archive);
            }
        }
    }
    Ok(Some(Optimised {
        objects,
        _folder: folder,
    }))
}

/// Returns the folders that a command line searches for libraries.
fn library_folders(args: &[OsString]) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_bytes().strip_prefix(b"-L") {
            Some(b"") => folders.extend(rest.next().map(PathBuf::from)),
            Some(folder) => folders.push(PathBuf::from(OsStr::from_bytes(folder))),
            None => {}
        }
    }
    folders
}

/// Returns the library that `-lNAME` names.
fn library_named(arg: &OsStr, folders: &[PathBuf]) -> Option<PathBuf> {
    let name = arg
        .as_bytes()
        .strip_prefix(b"-l")
        .filter(|name| !name.is_empty())?;
    let file = [b"lib", name, b".a"].concat();
    let paths = folders
        .iter()
        .map(|folder| folder.join(OsStr::from_bytes(&file)));
    paths.into_iter().find(|path| path.is_file())
}

fn is_bitcode(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && BITCODE.contains(&magic)
}

fn optimise_one(
    sysroot: &Sysroot,
    object: &Path,
    target: &Path,
    level: &OsStr,
) -> Result<(), ToolchainError> {
    let mut command = sysroot.zig_command("clang");
    command
        .args(["--target=x86_64-linux-musl", "-Wno-override-module", "-c"])
        .args(["-flto=full", "-fno-pie", "-ffp-contract=off"])
        .arg(level);
    for option in REMOVED {
        command.args(["-mllvm", option]);
    }
    command.args(["-x", "ir"]).arg(object).arg("-o").arg(target);
    succeed(&mut command, object)
}

/// Optimises the members of an archive that are bitcode. Returns `false` if the archive has no
/// members or cannot be listed, or if two members have the same name.
fn optimise_archive(
    sysroot: &Sysroot,
    archive: &Path,
    folder: &Path,
    target: &Path,
    level: &OsStr,
) -> Result<bool, ToolchainError> {
    let list = process::capture(sysroot.zig_command("ar").arg("t").arg(archive), "")?;
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    let names: Vec<&str> = text.lines().collect();
    let mut different = names.clone();
    different.sort_unstable();
    different.dedup();
    if !list.status.success() || names.is_empty() || different.len() < names.len() {
        return Ok(false);
    }
    fs::create_dir_all(folder).context("create", folder)?;
    let whole = std::path::absolute(archive).context("find", archive)?;
    let mut extract = sysroot.zig_command("ar");
    succeed(extract.arg("x").arg(whole).current_dir(folder), archive)?;
    let mut collect = sysroot.zig_command("ar");
    collect.arg("crs").arg(target);
    for name in names {
        let member = folder.join(name);
        if is_bitcode(&member) {
            let optimised = folder.join(format!("{name}.optimised"));
            optimise_one(sysroot, &member, &optimised, level)?;
            fs::rename(&optimised, &member).context("replace", &member)?;
        }
        collect.arg(member);
    }
    succeed(&mut collect, archive)?;
    Ok(true)
}

fn succeed(command: &mut std::process::Command, input: &Path) -> Result<(), ToolchainError> {
    let done = process::capture(command, "")?;
    if done.status.success() {
        return Ok(());
    }
    Err(ToolchainError::Optimise {
        object: input.to_owned(),
        reason: String::from_utf8_lossy(&done.stderr).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_where_the_linker_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libown.a");
        fs::write(&library, "!<arch>\n").unwrap();
        let there = folder.path().as_os_str().to_owned();
        let mut joined = OsString::from("-L");
        joined.push(&there);
        for args in [vec![joined], vec!["-L".into(), there]] {
            let folders = library_folders(&args);
            let found = library_named(OsStr::new("-lown"), &folders);
            assert_eq!(found, Some(library.clone()));
            assert_eq!(library_named(OsStr::new("-lother"), &folders), None);
            assert_eq!(library_named(OsStr::new("own.o"), &folders), None);
        }
    }

    #[test]
    fn bitcode_is_known_by_its_magic_number() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.o");
        fs::write(&file, b"BC\xc0\xde and more").unwrap();
        assert!(is_bitcode(&file));
        fs::write(&file, b"\x7fELF").unwrap();
        assert!(!is_bitcode(&file));
        assert!(!is_bitcode(Path::new("-lc")));
    }
}
