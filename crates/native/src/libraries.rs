//! Shared libraries of dynamically linked programs.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, elf};

/// Default search path of loaders.
const FOLDERS: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// The dynamic section of a program or library.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Needs {
    /// Whether the file needs a loader.
    is_dynamic: bool,
    /// Names of needed libraries.
    names: Vec<Vec<u8>>,
    /// The search path of the file itself.
    folders: Vec<PathBuf>,
}

/// Returns the paths of all libraries of a program; none for a static one. Missing libraries are
/// skipped: the loader reports them itself.
pub fn libraries(program: &Path) -> Vec<PathBuf> {
    let needs = needs_of(program);
    if !needs.is_dynamic {
        return Vec::new();
    }
    let mut found = BTreeSet::new();
    let mut pending = vec![needs];
    while let Some(needs) = pending.pop() {
        for name in &needs.names {
            let Some(path) = find(name, &needs.folders) else {
                continue;
            };
            if found.insert(path.clone()) {
                pending.push(needs_of(&path));
            }
        }
    }
    found.into_iter().collect()
}

fn find(name: &[u8], first: &[PathBuf]) -> Option<PathBuf> {
    let name = Path::new(OsStr::from_bytes(name));
    if name.is_absolute() {
        return name.is_file().then(|| name.to_owned());
    }
    let folders = first.iter().map(PathBuf::as_path);
    let mut paths = folders
        .chain(FOLDERS.map(Path::new))
        .map(|folder| folder.join(name));
    paths.find(|path| path.is_file())
}

fn needs_of(file: &Path) -> Needs {
    let bytes = std::fs::read(file).unwrap_or_default();
    read(&bytes).unwrap_or_default()
}

/// Reads the dynamic section. A damaged file has no libraries.
fn read(bytes: &[u8]) -> object::Result<Needs> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let mut needs = Needs::default();
    for segment in header.program_headers(endian, bytes)? {
        needs.is_dynamic |= segment.p_type(endian) == elf::PT_INTERP;
    }
    let sections = header.sections(endian, bytes)?;
    let Some((entries, strings)) = sections.dynamic(endian, bytes)? else {
        return Ok(needs);
    };
    let strings = sections.strings(endian, bytes, strings)?;
    for entry in entries {
        let tag = entry.tag(endian);
        if ![DT_NEEDED, DT_RPATH, DT_RUNPATH].contains(&tag) {
            continue;
        }
        let text = entry.string(endian, strings)?;
        if tag == DT_NEEDED {
            needs.names.push(text.to_vec());
        } else {
            needs.folders.extend(folders(text));
        }
    }
    Ok(needs)
}

/// Returns the directories of a search path. Directories relative to the program (`$ORIGIN`) are
/// skipped, because the program has another path in the guest.
fn folders(text: &[u8]) -> Vec<PathBuf> {
    let parts = text.split(|byte| *byte == b':');
    let named = parts.filter(|part| part.starts_with(b"/"));
    named
        .map(|part| PathBuf::from(OsStr::from_bytes(part)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_paths_are_those_that_the_guest_has_too() {
        let found = folders(b"$ORIGIN/../lib:/opt/lib::/srv");
        assert_eq!(found, ["/opt/lib", "/srv"].map(PathBuf::from));
    }

    #[test]
    fn a_test_program_needs_its_libc() {
        let own = std::env::current_exe().unwrap();
        let found = libraries(&own);
        let is_libc = |path: &PathBuf| path.ends_with("libc.so.6");
        assert!(found.iter().any(is_libc), "{found:?}");
        assert!(found.iter().all(|path| path.is_absolute()));
    }

    #[test]
    fn what_is_no_program_needs_nothing() {
        assert_eq!(libraries(Path::new("/no/such/file")), Vec::<PathBuf>::new());
        assert!(read(b"\x7fELF\x02\x01\x01").is_err());
    }
}
