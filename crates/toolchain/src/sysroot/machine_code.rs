//! Archives of libraries, made again from those of the compiler: with less debug information, or as
//! machine code, for native programs: the same functions as in the bitcode, compiled once instead of
//! at every link. Members stay apart, so that a program gets those that its bitcode gets.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::elf::{STB_GLOBAL, STB_WEAK};
use object::read::archive::ArchiveFile;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol};

use super::probe::check;
use crate::error::{IoContext, ToolchainError};
use crate::keep::BITCODE;

/// Code generation alone: the compiler optimised the members when it made them.
const FLAGS: [&str; 10] = [
    "clang",
    "--target=x86_64-linux-musl",
    "-Wno-override-module",
    "-O2",
    "-fno-pic",
    "-ffp-contract=off",
    "-Xclang",
    "-disable-llvm-passes",
    "-c",
    "-xir",
];
/// So many members are compiled by one command.
const BATCH: usize = 40;
const WHAT: &str = "the libraries as machine code";

/// Compiles the members of an archive; those that are machine code already stay as they are.
pub fn archive(zig: &Path, from: &Path, to: &Path) -> Result<(), ToolchainError> {
    let work = tempfile::tempdir().context("create", "a temporary folder")?;
    let members = unpack(from, work.path(), |_| true)?;
    compile(zig, work.path(), &members.bitcode)?;
    pack(zig, work.path(), &members.objects, to)
}

/// Packs an archive again without the types and variables of its debug information. Every program
/// gets the one large member of such an archive, and merging its types took a fifth of each link.
pub fn with_lines_only(zig: &Path, from: &Path, to: &Path) -> Result<(), ToolchainError> {
    rewritten(zig, from, to, OsStr::new("strip-nonlinetable-debuginfo"))
}

/// Packs an archive again after passes over its members of bitcode. They get a summary, by which the
/// linker merges only what a program needs of them.
pub fn rewritten(zig: &Path, from: &Path, to: &Path, passes: &OsStr) -> Result<(), ToolchainError> {
    let work = tempfile::tempdir().context("create", "a temporary folder")?;
    let members = unpack(from, work.path(), |_| true)?;
    for file in &members.bitcode {
        let changed = file.with_extension("changed");
        let mut option = OsString::from("--lto-newpm-passes=");
        option.push(passes);
        let mut change = Command::new(zig);
        change
            .args(["ld.lld", "-r", "--lto-emit-llvm", "--lto-O0"])
            .arg(option)
            .arg(file)
            .arg("-o")
            .arg(&changed)
            .current_dir(work.path());
        let mut summarise = Command::new(zig);
        summarise
            .args(["clang", "--target=x86_64-linux-musl", "-c", "-xir", "-O0"])
            .args(["-Wno-override-module", "-flto=full"])
            .arg(&changed)
            .arg("-o")
            .arg(file.with_extension("o"))
            .current_dir(work.path());
        check(&mut change, WHAT)?;
        check(&mut summarise, WHAT)?;
    }
    pack(zig, work.path(), &members.objects, to)
}

/// The members of an archive as files of a folder.
#[derive(Default)]
pub struct Members {
    /// What was unpacked.
    pub files: Vec<PathBuf>,
    /// The objects in their order; those of bitcode are not there yet.
    objects: Vec<PathBuf>,
    /// The files of bitcode, from which objects of the same names are made.
    bitcode: Vec<PathBuf>,
}

/// Writes the members of an archive, those in certain ranges of it, into a folder.
pub fn unpack(
    from: &Path,
    folder: &Path,
    is_wanted: impl Fn((u64, u64)) -> bool,
) -> Result<Members, ToolchainError> {
    let bytes = fs::read(from).context("read", from)?;
    let broken = |error: object::Error| ToolchainError::Sysroot {
        what: WHAT,
        reason: format!("{}: {error}", from.display()),
    };
    let mut members = Members::default();
    let parsed = ArchiveFile::parse(&*bytes).map_err(broken)?;
    for (number, member) in parsed.members().enumerate() {
        let member = member.map_err(broken)?;
        if !is_wanted(member.file_range()) {
            continue;
        }
        let name = String::from_utf8_lossy(member.name()).into_owned();
        let name = name.rsplit('/').next().unwrap_or_default();
        // Two members of an archive may have the same name.
        let object = PathBuf::from(format!("{number}-{name}"));
        let data = member.data(&*bytes).map_err(broken)?;
        let file = if BITCODE.iter().any(|magic| data.starts_with(magic)) {
            let file = object.with_extension("bc");
            members.bitcode.push(file.clone());
            file
        } else {
            object.clone()
        };
        let path = folder.join(&file);
        fs::write(&path, data).context("write", &path)?;
        members.files.push(file);
        members.objects.push(object);
    }
    Ok(members)
}

/// Packs objects of a folder into an archive.
pub fn pack(
    zig: &Path,
    folder: &Path,
    objects: &[PathBuf],
    to: &Path,
) -> Result<(), ToolchainError> {
    let mut pack = Command::new(zig);
    pack.args(["ar", "crs"])
        .arg(to)
        .args(objects)
        .current_dir(folder);
    check(&mut pack, WHAT)
}

/// Makes all definitions of an object of machine code weak.
pub fn weaken(path: &Path) -> Result<(), ToolchainError> {
    let mut bytes = fs::read(path).context("read", path)?;
    let broken = |error: object::Error| ToolchainError::Sysroot {
        what: WHAT,
        reason: format!("{}: {error}", path.display()),
    };
    let file = ElfFile64::<Endianness>::parse(&*bytes).map_err(broken)?;
    let mut weak = Vec::new();
    for symbol in file.symbols().filter(ObjectSymbol::is_definition) {
        let entry = symbol.elf_symbol();
        if entry.st_bind() == STB_GLOBAL {
            // The byte of an entry behind the name.
            let start = std::ptr::from_ref(entry) as usize - bytes.as_ptr() as usize;
            weak.push(start + 4);
        }
    }
    for at in weak {
        bytes[at] = (STB_WEAK.0 << 4) | (bytes[at] & 0xf);
    }
    fs::write(path, bytes).context("write", path)
}

/// Compiles one object of bitcode.
pub fn object(zig: &Path, from: &Path, to: &Path) -> Result<(), ToolchainError> {
    let mut command = Command::new(zig);
    command.args(FLAGS).arg(from).arg("-o").arg(to);
    check(&mut command, WHAT)
}

/// Compiles files of a folder into objects beside them, on all cores.
fn compile(zig: &Path, folder: &Path, files: &[PathBuf]) -> Result<(), ToolchainError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::Mutex::new(files.chunks(BATCH));
    let work = || -> Result<(), ToolchainError> {
        loop {
            let Some(batch) = next.lock().ok().and_then(|mut batches| batches.next()) else {
                return Ok(());
            };
            let mut command = Command::new(zig);
            command.args(FLAGS).args(batch).current_dir(folder);
            check(&mut command, WHAT)?;
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().try_for_each(join)
    })
}
